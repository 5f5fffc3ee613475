#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every built-in pipeline: stored at any split it gives what it gives without being stored, on any number of threads."""
import sys

from cli import PHOTOS, ROOT, TOOLS, Case, frames, main, run

sys.path.insert(0, str(ROOT / "tests" / "corpora"))
from pipelines import PIPELINES, Pipeline, built_in  # noqa: E402

THREADS = 0, 1, 2, 3


class Pipelines(Case):
    def for_each(self, check):
        """All pipelines, each as a subtest. A library that this build lacks is no failure: the programs say so."""
        folder = self.folder / "corpora"
        folder.mkdir(exist_ok=True)
        for name in built_in(TOOLS / "presto-load"):
            with self.subTest(pipeline=name):
                pipeline = Pipeline(name, folder, PHOTOS)
                done = run("presto-load", *pipeline.arguments("--explain"))
                if "built without" not in done.stderr:
                    self.assertEqual(done.returncode, 0, done.stderr)
                    check(pipeline)

    def test_all_are_in_the_table(self):
        self.assertEqual(set(built_in(TOOLS / "presto-load")) - set(PIPELINES), set())
        files = {path.stem for path in (ROOT / "pipelines").glob("*.yaml")}
        self.assertEqual(set(built_in(TOOLS / "presto-load")), files)

    def check_splits(self, pipeline):
        online = {to: self.load(*pipeline.arguments("--to", to)) for to in pipeline.representations}
        whole = self.load(*pipeline.arguments("--seed", "7"))
        self.assertGreater(len(frames(whole)), 3)
        self.assertGreater(len(pipeline.representations), 0)
        for split in pipeline.representations:
            out = self.new("dataset")
            done = run("presto-write", *pipeline.arguments("--up-to", split, "--shards", "2", "--codec", "zstd:1", "-o", out))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.load("-q", "--seed", "7", out), whole, split)
            for to in pipeline.representations[pipeline.representations.index(split):]:
                self.assertEqual(self.load("-q", "--to", to, out), online[to], (split, to))

    def test_stored_at_any_split_the_samples_are_the_same(self):
        self.for_each(self.check_splits)

    def check_threads(self, pipeline):
        for options in ([], ["--epochs", "2", "--shuffle", "full", "--seed", "3"]):
            streams = {threads: self.load(*pipeline.arguments("--threads", str(threads), *options)) for threads in THREADS}
            for threads in THREADS:
                self.assertEqual(streams[threads], streams[0], threads)
        self.assertNotEqual(self.load(*pipeline.arguments("--threads", "2")), streams[0])

    def test_streams_are_the_same_on_any_number_of_threads(self):
        self.for_each(self.check_threads)


if __name__ == "__main__":
    main()
