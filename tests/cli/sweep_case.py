# SPDX-License-Identifier: Apache-2.0
"""Sweeps that take a moment, for the tests of presto-sweep."""
import json

from cli import Case, run


class SweepCase(Case):
    photo_count = 16

    SMALL = ("--measure", "--stored", "unprocessed,concatenated,resized", "--codecs", "none", "--threads", "1", "--samples",
             "4", "--run-time", "0", "--decide-time", "0")

    PREDICTED = ("--stored", "unprocessed,concatenated,resized", "--codecs", "none,zlib:1,lz4", "--threads", "1,2,64", "--samples",
                 "6", "--runs", "2", "--run-time", "0", "--decide-time", "0")

    def predicted(self, out, *more):
        done = run("presto-sweep", "-q", "-p", self.pipeline, *self.PREDICTED, "-o", out, *more, self.make_photos())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.decode(), json.loads((out / "results.json").read_text())
