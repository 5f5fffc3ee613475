#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A hostile round ends in time, whatever its tests do: hostile, on tests that are shell scripts."""
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

HOSTILE = pathlib.Path(__file__).resolve().with_name("hostile")


class Rounds(unittest.TestCase):
    def round(self, seconds, *jobs, **scripts):
        """Exit code, output and time of a round of these tests."""
        with tempfile.TemporaryDirectory() as folder:
            tests = pathlib.Path(folder) / "tests"
            tests.mkdir()
            for name, text in scripts.items():
                (tests / f"loader_test_{name}").write_text(f"#!/bin/sh\n{text}\n")
                (tests / f"loader_test_{name}").chmod(0o755)
            started = time.monotonic()
            done = subprocess.run([HOSTILE, "--build", folder, "--seconds", str(seconds), "--seed", "5", *jobs, *scripts],
                                  capture_output=True, text=True, check=False)
            return done.returncode, done.stdout, time.monotonic() - started

    def test_a_test_that_hangs_is_ended_and_named(self):
        code, said, took = self.round(3, hangs="echo begun; sleep 1000 & sleep 1000", passes="exit 0")
        self.assertEqual(code, 1, said)
        self.assertRegex(said, r"^seed 5\n(?s:.*)begun\n(?s:.*)hangs: it has not ended after \d+ s\n(?s:.*)--seed 5 hangs\n")
        self.assertIn("1 failures", said)
        self.assertLess(took, 60)

    def test_a_test_that_computes_is_slow_and_does_not_hang(self):
        code, said, took = self.round(2, slow="while :; do :; done", passes="exit 0")
        self.assertEqual(code, 0, said)
        self.assertIn("no time for: slow\n", said)
        self.assertLess(took, 60)

    def test_what_there_is_no_time_for_is_left_out(self):
        tests = {f"t{i}": "sleep 0.3" for i in range(40)}
        code, said, took = self.round(2, "--jobs", "1", **tests)
        self.assertEqual(code, 0, said)
        left_out = re.search("no time for: (.*)", said)[1].split(", ")
        self.assertGreater(len(left_out), 20)
        self.assertLess(len(left_out), 40)
        self.assertLess(took, 60)

    def test_a_failure_is_a_failure_in_any_case(self):
        code, said, _ = self.round(60, fails="echo it broke; exit 1", passes="exit 0")
        self.assertEqual(code, 1, said)
        self.assertIn("it broke", said)


if __name__ == "__main__":
    unittest.main()
