#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the machine fails at is never a sample's fault: with --on-error skip a run without memory delivers all samples or ends.

The libraries that decode say in many ways, or not at all, that memory has run out. Each pipeline of tests/corpora, and some formats
beside, runs with one allocation that fails, and with all from one on. PRESTO_CHAOS_ALL=1 tries every allocation of a run.
"""
import collections
import errno
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest

from chaos import FaultCase, main, run, seeded

ALL = os.environ.get("PRESTO_CHAOS_ALL", "") not in ("", "0")
SOME = int(os.environ.get("PRESTO_CHAOS_MOMENTS", "12"))
MAKE = pathlib.Path(__file__).resolve().parents[1] / "corpora" / "make"
MODEL = pathlib.Path(__file__).resolve().parents[1] / "golden" / "tokenizers" / "unigram.model"
# libhdf5 and MyHTML do not survive every failure: docs/security.md. A crash ends the run, or a library that libhdf5 brings in ends the
# process by exit(255); nothing false is delivered.
FRAGILE = ("nilm", "nlp")
# What libhdf5 prints before it can be told not to, and libraries that it brings in and never uses here; libmpg123's own words.
PRINTED = re.compile(r"Error in GnuTLS initialization: .*\n|HDF5-DIAG: .*\n(  .*\n)*|\[src/libmpg123/.*\n")


class MachineFaults(FaultCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.random = seeded(cls.__name__)

    def check(self, name, arguments):
        order = ["-q", "-j", "1", "-b", "1", "--format", "npy", "--on-error", "skip", *arguments]
        done = run("presto-load", *order)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        whole, calls, found = done.stdout, self.count("presto-load", *order)["malloc"], collections.Counter()
        some = range(1, calls + 1) if ALL else self.random.sample(range(1, calls + 1), min(SOME, calls))
        for number, more in ((number, more) for number in some for more in ("", "+")):
            fault = f"malloc:{number}:{errno.ENOMEM}{more}"
            done = self.run_with(fault, "presto-load", *order)
            found[f"{done.returncode}{more}"] += 1
            with self.subTest(pipeline=name, fault=fault):
                if name in FRAGILE and done.returncode in (-signal.SIGSEGV, -signal.SIGABRT, 255):
                    continue
                said = PRINTED.sub("", done.stderr)
                self.assertIn(done.returncode, (0, 1, 2, 3), said)  # 3: a library that calls it damage, and says why
                if done.returncode == 0:
                    self.assertEqual((said, done.stdout == whole), ("", True))
                else:
                    self.assertRegex(said, r"(?i)memory|alloc|cannot|No such file|unavailable")
        print(f"{name}: {dict(found)}", flush=True)

    def corpus(self, name):
        folder = self.new(name)
        made = subprocess.run([sys.executable, MAKE, name, "--tiny", "-o", folder], capture_output=True, text=True)
        if made.returncode != 0:
            raise unittest.SkipTest(made.stderr)
        return folder

    def test_pipelines(self):
        for name in ("cv2-jpg", "cv2-png", "nlp", "nilm", "mp3", "flac"):
            model = ("--set", f"bpe-encode.model={MODEL}") if name == "nlp" else ()
            self.check(name, ["-p", name, *model, "--limit", "3", self.corpus(name)])


if __name__ == "__main__":
    main()
