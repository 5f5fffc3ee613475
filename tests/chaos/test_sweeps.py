#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto-sweep where the disk gets full, Ctrl-C comes, or it is killed before any of its writes: what it has is shown and kept,
and --resume goes on from there. fault.c is preloaded and says which write.

The first writes are those of probes, then come those of anchors, of looks at codecs, and of strategies that confirm.
"""
import errno
import json
import os
import shutil
import signal

from chaos import FaultCase, main, run, seeded

ALL = os.environ.get("PRESTO_CHAOS_ALL", "") not in ("", "0")


class Sweeps(FaultCase):
    photo_count = 6
    classes = 2
    MEASURE = ("--measure", "--codecs", "none", "--threads", "1")
    PREDICT = ("--codecs", "none,zlib:1", "--threads", "1,2", "--confirm", "2")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.random = seeded(cls.__name__)

    def command(self, mode, out):
        return ["-q", "-p", self.pipeline, "--stored", "unprocessed,concatenated,resized", *mode, "--samples", "4", "--runs", "2",
                "--run-time", "0", "--decide-time", "0", "-o", out, self.make_photos()]

    def writes(self, mode, some, call="write"):
        """Which writes, or other calls, are tried: the first, and some, evenly."""
        out = self.new("sweep")
        self.most = self.count("presto-sweep", *self.command(mode, out))[call]
        self.whole = {path.name for path in out.iterdir()}
        if ALL or self.most <= some:
            return range(1, self.most + 1)
        return sorted({1, *range(1 + self.random.randrange(self.most // some), self.most + 1, self.most // some)})

    def has_no_fault(self, done, number):
        """What is run depends on times: a sweep may have fewer writes than the one that was counted."""
        return done.returncode == 0 and done.stderr == "" and number > self.most // 2

    def assert_goes_on(self, mode, out, message):
        """Nothing that the journal has is measured again."""
        before = (out / "trials.jsonl").read_bytes()
        before = before[:before.rindex(b"\n") + 1]
        done = run("presto-sweep", "--resume", *self.command(mode, out))
        self.assertEqual((done.returncode, done.stderr), (0, ""), message)
        journal = (out / "trials.jsonl").read_bytes()
        self.assertTrue(journal.startswith(before), message)
        lines = [json.loads(line) for line in journal.splitlines()]
        for what, most in (("probe", 1), ("preparation_s", 1), ("cold", 2)):
            of = [line["probe" if what == "probe" else "strategy"] for line in lines if what in line]
            self.assertLessEqual(max(map(of.count, of), default=0), most, message)
        self.assertEqual({r["status"] for r in json.loads((out / "results.json").read_text())["results"]}, {"ok"}, message)

    def check_full_disk(self, mode, some):
        for number in self.writes(mode, some):
            out = self.new("sweep")
            done = self.run_with(f"write:{number}:{errno.ENOSPC}+", "presto-sweep", *self.command(mode, out))
            if self.has_no_fault(done, number):
                continue
            self.assertEqual(done.returncode, 1, (number, done.stderr))
            self.assert_clean_failure(done.returncode, done.stderr, message=number)
            self.assertRegex(done.stderr, rf"No space left on device; .* free in {out} now; with room, .*--resume goes on", number)
            if not (out / "trials.jsonl").exists():  # not even that could be begun: nothing is measured
                self.assertEqual(done.stdout, b"")
                continue
            table = done.stdout.decode()
            self.assertIn("* Recommended:", table, number)
            self.assertRegex(table, r"\n[*=]? +(\* )?unprocessed ")
            self.assertLess(len(list(out.iterdir())), len(self.whole))
            self.assertFalse((out / "trials").exists())
            self.assert_goes_on(mode, out, number)  # there is room again
            shutil.rmtree(out)

    def test_a_full_disk_ends_it_with_what_was_measured(self):
        self.check_full_disk(self.MEASURE, 16)

    def test_a_full_disk_ends_it_with_what_was_predicted_and_measured(self):
        self.check_full_disk(self.PREDICT, 7)

    def test_without_room_for_a_moment_it_goes_on(self):
        """What has failed then, failed for that; all else is as it should be."""
        for number in self.writes(self.PREDICT, 7):
            out = self.new("sweep")
            done = self.run_with(f"write:{number}:{errno.ENOSPC}", "presto-sweep", *self.command(self.PREDICT, out))
            if not (out / "trials.jsonl").exists():
                self.assertEqual(done.returncode, 1)
                continue
            self.assertIn("* Recommended:", done.stdout.decode(), number)
            self.assertEqual(done.returncode != 0, done.stderr != "", number)
            if done.returncode != 0:
                self.assert_clean_failure(done.returncode, done.stderr, (1,), number)
            for path in self.whole - {path.name for path in out.iterdir()}:
                self.assertIn(f"/{path}: cannot ", done.stderr)
            self.assert_goes_on(self.PREDICT, out, number)
            shutil.rmtree(out)

    def test_a_stall_of_storage_does_not_count_as_preparation(self):
        """The disk of the machine may stall, too: then once more."""
        for number in self.writes(self.MEASURE, 5, "sync"):
            for _ in range(3):
                out = self.new("sweep")
                done = self.run_with(f"sync:{number}:late", "presto-sweep", *self.command(self.MEASURE, out))
                self.assertEqual((done.returncode, done.stderr), (0, ""), number)
                lines = [json.loads(line) for line in (out / "trials.jsonl").read_text().splitlines()]
                longest = max(line["preparation_s"] for line in lines if "preparation_s" in line)
                if longest < 0.4:
                    break
            self.assertLess(longest, 0.4, number)

    def test_stopped_or_killed_before_a_write_it_goes_on_from_there(self):
        for i, number in enumerate(self.writes(self.PREDICT, 10)):
            for how in ("int", "kill") if ALL else (("int", "kill")[i % 2],):
                with self.subTest(number=number, how=how):
                    out = self.new("sweep")
                    done = self.run_with(f"write:{number}:{how}", "presto-sweep", *self.command(self.PREDICT, out))
                    if self.has_no_fault(done, number):
                        continue
                    self.assertEqual(done.returncode, -(signal.SIGINT if how == "int" else signal.SIGKILL), done.stderr)
                    if how == "int":
                        self.assertFalse((out / "trials").exists())
                        self.assertLessEqual({path.name for path in out.iterdir()}, self.whole)
                    if not (out / "trials.jsonl").exists():
                        continue
                    journal = (out / "trials.jsonl").read_text()
                    if how == "int" and '"cold"' in journal:
                        self.assertIn("* Recommended:", done.stdout.decode())
                        self.assertEqual({path.name for path in out.iterdir()}, self.whole)
                    self.assert_goes_on(self.PREDICT, out, number)
                    shutil.rmtree(out)


if __name__ == "__main__":
    main()
