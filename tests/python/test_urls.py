#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Datasets by their URLs: batches, samples and states are those of the folder, also in a child process."""
import os
import pathlib
import sys
import unittest

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
        for url in (self.url + "-x", "hf://datasets/a/b/x"):
            with self.assertRaisesRegex(presto.UnsupportedError, "nothing is written to"):
                presto.Writer(url)
        with self.assertRaisesRegex(presto.ArgumentError, "nothing can be written there"):
            presto.sweep(self.make_photos(), "cv", output="s3://bucket/report")
        self.assertFalse(os.path.exists("s3:"))


class Buckets(PythonCase):
    """What is written to a bucket has the bytes of what is written to a folder."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        program, why = servers.versitygw()
        if program is None:
            raise unittest.SkipTest(why)
        os.environ["no_proxy"] = "127.0.0.1"
        cls.store = pathlib.Path(cls.folder) / "store"
        cls.server = servers.S3(program, cls.store).__enter__()
        cls.addClassCleanup(cls.server.__exit__)
        cls.server.send("PUT", "/bucket")
        os.environ.update(AWS_ACCESS_KEY_ID=servers.ACCESS, AWS_SECRET_ACCESS_KEY=servers.SECRET, AWS_ENDPOINT_URL=cls.server.url,
                          AWS_EC2_METADATA_DISABLED="true", AWS_CONFIG_FILE="/dev/null", AWS_SHARED_CREDENTIALS_FILE="/dev/null")

    def assert_equal_bytes(self, key, folder):
        wanted = {file.name: file.read_bytes() for file in pathlib.Path(folder).iterdir()}
        found = {file.name: file.read_bytes() for file in (self.store / "bucket" / key).iterdir()}
        self.assertEqual(sorted(found), sorted(wanted))
        for name, content in wanted.items():
            self.assertTrue(found[name] == content, name)

    @staticmethod
    def fill(where, count=200, **options):
        with presto.Writer(where, threads=2, **options) as writer:
            for i in range(writer.samples, count):
                writer.add({"x": [i] * 50, "text": f"sample {i}"})
        return writer.summary

    def test_a_writer(self):
        for i, options in enumerate(({}, {"shard_bytes": 9000}, {"shards": 3, "samples": 200, "codec": "zlib"})):
            folder = pathlib.Path(self.folder) / f"written-{i}"
            self.assertEqual(self.fill(folder, **options).sent_requests, 0)
            summary = self.fill(f"s3://bucket/written-{i}", **options)
            self.assertGreater(summary.sent_requests, 4)
            self.assertEqual(summary.path, f"s3://bucket/written-{i}")
            self.assert_equal_bytes(f"written-{i}", folder)
            self.assertEqual([sample["x"].tolist() for sample in presto.open(summary.path)], [[k] * 50 for k in range(200)])

    def test_a_writer_that_ends_early_goes_on(self):
        class Enough(Exception):
            pass

        def fill(where, end=40, **options):
            with presto.Writer(where, shard_bytes=1000000, threads=0, **options) as writer:  # without threads, add() stores
                for i in range(writer.samples, 40):
                    if i == end:
                        raise Enough
                    writer.add({"x": list(range(i, i + 20000))})

        folder = pathlib.Path(self.folder) / "early"
        fill(folder)
        with self.assertRaises(Enough):
            fill("s3://bucket/early", end=25)
        with self.assertRaisesRegex(presto.Error, "unfinished"):
            presto.Loader("s3://bucket/early")
        fill("s3://bucket/early", resume=True)
        self.assert_equal_bytes("early", folder)

    def test_what_is_written_of_files(self):
        here, there = pathlib.Path(self.folder) / "cv", "s3://bucket/cv"
        presto.write(self.make_photos(), here, pipeline="cv", shards=2, threads=2)
        summary = presto.write(self.make_photos(), there, pipeline="cv", shards=2, threads=2)
        self.assertGreater(summary.sent_bytes, summary.stored_bytes)
        self.assert_equal_bytes("cv", here)


if __name__ == "__main__":
    main()
