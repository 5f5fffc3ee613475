#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Datasets by their URLs: batches, samples and states are those of the folder, also in a child process."""
import os
import pathlib
import sys

from case import PythonCase, frozen, main, plain, presto

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import servers  # noqa: E402


class Urls(PythonCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.environ["no_proxy"] = "127.0.0.1"
        cls.server = servers.Files(pathlib.Path(cls.stored).parent).__enter__()
        cls.addClassCleanup(cls.server.__exit__)
        cls.url = f"{cls.server.url}/{pathlib.Path(cls.stored).name}"

    def batches(self, where, **options):
        return [frozen(batch) for batch in presto.Loader(where, **options)]

    def test_batches_are_those_of_the_folder(self):
        for options in ({"batch": 5}, {"batch": 3, "shuffle": "full", "epochs": 2, "threads": 3}, {"batch": 4, "world": 2, "rank": 1}):
            self.assertEqual(self.batches(self.url, **options), self.batches(self.stored, **options))
        there, here = presto.open(self.url), presto.open(self.stored)
        self.assertEqual(len(there), len(here))
        self.assertEqual({k: plain(v) for k, v in there[3].items()}, {k: plain(v) for k, v in here[3].items()})

    def test_a_state_goes_on(self):
        options = {"batch": 3, "shuffle": "full", "seed": 5, "epochs": 2}
        whole = self.batches(self.url, **options)
        loader = presto.Loader(self.url, **options)
        taken = [frozen(batch) for _, batch in zip(range(2), loader)]
        state = loader.state_dict()
        again = presto.Loader(self.url, **options)
        again.load_state_dict(state)
        self.assertEqual(taken + [frozen(batch) for batch in again], whole)

    def test_a_child_process_reads_with_connections_of_its_own(self):
        wanted = self.batches(self.url, batch=5)
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if self.batches(self.url, batch=5) == wanted else 1)
            finally:
                os._exit(2)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(self.batches(self.url, batch=5), wanted)

    def test_what_is_wrong_is_said(self):
        with self.assertRaisesRegex(presto.NotFoundError, "no such object"):
            presto.open(self.url + "-none")
        with self.assertRaisesRegex(presto.ArgumentError, "nothing can be written there"):
            presto.Writer("s3://bucket/x")
        with self.assertRaisesRegex(presto.ArgumentError, "nothing can be written there"):
            presto.sweep(self.make_photos(), "cv", output="s3://bucket/report")
        self.assertFalse(os.path.exists("s3:"))


if __name__ == "__main__":
    main()
