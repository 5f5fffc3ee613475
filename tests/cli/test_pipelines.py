#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every built-in pipeline: stored at any split it gives what it gives without being stored, on any number of threads."""
import sys

from cli import PHOTOS, ROOT, SANITIZED, TOOLS, Case, frames, main, run

sys.path.insert(0, str(ROOT / "tests" / "corpora"))
from pipelines import PIPELINES, Pipeline, built_in  # noqa: E402

THREADS = (0, 3) if SANITIZED else (0, 1, 2, 3)
# Their steps are those of other pipelines: sanitizers, which are slow, see nothing new in them.
LIKE_OTHERS = {"cv2-jpg", "cv-grey-early", "cv-grey-late"}


class Pipelines(Case):
    def for_each(self, check):
        """All pipelines, each as a subtest. A library that this build lacks is no failure: the programs say so."""
        folder = self.folder / "corpora"
        folder.mkdir(exist_ok=True)
        names = built_in(TOOLS / "presto-load")
        for name in [name for name in names if not SANITIZED or name not in LIKE_OTHERS]:
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
        whole = self.load(*pipeline.arguments("--seed", "7"))
        self.assertGreater(len(frames(whole)), 3)
        self.assertGreater(len(pipeline.representations), 0)
        # A run without a split passes through all steps. What sanitizers see of a split is the same for all of them.
        for split in pipeline.representations[-1:] if SANITIZED else pipeline.representations:
            out = self.new("dataset")
            done = run("presto-write", *pipeline.arguments("--up-to", split, "--shards", "2", "--codec", "zstd:1", "-o", out))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.load("-q", "--seed", "7", out), whole, split)
            self.assertEqual(self.load("-q", "--to", split, out), self.load(*pipeline.arguments("--to", split)), split)

    def test_stored_at_any_split_the_samples_are_the_same(self):
        self.for_each(self.check_splits)

    def check_threads(self, pipeline):
        shuffled = ["--epochs", "2", "--shuffle", "full", "--seed", "3"]
        streams = {threads: self.load(*pipeline.arguments("--threads", str(threads), *shuffled)) for threads in THREADS}
        for threads in THREADS:
            self.assertEqual(streams[threads], streams[0], threads)
        self.assertNotEqual(self.load(*pipeline.arguments("--threads", "2", "--epochs", "2")), streams[0])

    def test_streams_are_the_same_on_any_number_of_threads(self):
        self.for_each(self.check_threads)


if __name__ == "__main__":
    main()
