#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What earlier versions stored is read: datasets, indexes, states, strategies, results. A copy of it has other times."""
import hashlib
import json
import shutil
import sys
import unittest

from cli import GOLDEN, Case, a_sweep, main, run

VERSIONS = sorted((path for path in (GOLDEN / "versions").iterdir() if path.is_dir()), key=lambda path: path.name)
sys.path.insert(0, str(GOLDEN / "versions"))
from make_version import DATASETS, STATE, STREAMS  # noqa: E402


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Versions(Case):
    def each(self):
        """A copy of what each version stored, and what it read from it."""
        for version in VERSIONS:
            stored = self.new(version.name)
            shutil.copytree(version, stored, copy_function=shutil.copyfile)
            yield stored, json.loads((stored / "expected.json").read_text())

    def test_there_is_one(self):
        self.assertIn("0.2.0", [version.name for version in VERSIONS])

    def test_streams_are_the_same_to_the_byte(self):
        for stored, expected in self.each():
            self.assertLessEqual(set(expected["streams"]), set(STREAMS))
            for name, digest in expected["streams"].items():
                dataset, options = STREAMS[name]
                self.assertEqual(sha256(self.load("-q", *options, stored / dataset)), digest, name)

    def test_a_state_goes_on(self):
        for stored, expected in self.each():
            rest = self.load(*STATE, "--state", stored / "state", stored / "zstd")
            self.assertEqual(sha256(rest), expected["rest"])

    def test_a_copy_has_no_fault(self):
        for stored, _ in self.each():
            for name in [*DATASETS, "foreign"]:
                done = run("presto-inspect", "verify", stored / name)
                self.assertEqual(done.returncode, 0, done.stdout.decode() + done.stderr)

    def test_a_kept_index_of_other_records_serves(self):
        for stored, _ in self.each():
            whole = self.load("-q", stored / "none")
            self.assertEqual(self.load("-q", "--index", "keep", stored / "foreign"), whole)
            self.assertEqual(len(self.load("-q", "--index", "keep", "--shuffle", "full", stored / "foreign")), len(whole))

    def test_a_dataset_is_processed_further(self):
        for stored, _ in self.each():
            out = self.new("dataset")
            done = run("presto-write", "-q", "-p", stored / "small.yaml", "-u", "pixel-centered", "-o", out, stored / "none")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.load("-q", "-b", "4", "--format", "npy", out),
                             self.load("-q", "-b", "4", "--format", "npy", stored / "none"))

    @a_sweep
    def test_a_strategy_is_carried_out_and_its_results_are_checked_against(self):
        for stored, _ in self.each():
            out = self.new("dataset")
            photos = self.make_photos()
            done = run("presto-write", "-q", "--strategy", stored / "sweep" / "strategy.yaml", "-o", out, photos)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.load("-q", "--strategy", stored / "sweep" / "strategy.yaml", "--format", "null", out)
            done = run("presto-sweep", "--json", "--check", out, "-o", stored / "sweep", photos)
            self.assertIn(done.returncode, (0, 4), done.stderr)


if __name__ == "__main__":
    main()
