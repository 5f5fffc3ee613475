#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto-sweep on a disk that is too small, a file system of its own: it goes on as far as it can, and later from there."""
import json
import subprocess

from cli import main, run
from sweep_case import SweepCase


class Room(SweepCase):
    def mounted(self, size):
        mount = self.new("mount")
        mount.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", mount], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("needs the right to mount")
        self.addCleanup(subprocess.run, ["umount", mount])
        return mount

    def sweep(self, out, *more):
        done = run("presto-sweep", "-q", "-p", self.pipeline, *self.PREDICTED, *more, "-o", out, self.make_photos())
        self.assertFalse((out / "trials").exists())
        return done, done.stdout.decode().replace("\n  ", " ")

    def assert_ends_for_want_of_room(self, done, out):
        """One line: the folder, and what is free there."""
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, rf"^presto-sweep: [^\n]*[0-9.]+ .?B free in {out} now[^\n]*--resume[^\n]*\n$")

    def assert_nothing_is_measured_twice(self, out, before, runs):
        journal = (out / "trials.jsonl").read_bytes()
        self.assertTrue(journal.startswith(before))
        lines = [json.loads(line) for line in journal.splitlines()]
        probes = [line["probe"] for line in lines if "probe" in line]
        self.assertEqual(len(probes), len(set(probes)))
        prepared = [line["strategy"] for line in lines if "preparation_s" in line]
        self.assertEqual(len(prepared), len(set(prepared)))
        ran = [line["strategy"] for line in lines if "cold" in line]
        self.assertLessEqual(max(map(ran.count, ran)), runs)

    def test_without_room_to_measure_storage_that_is_unknown(self):
        mount = self.mounted("3m")
        out = mount / "out"
        done, table = self.sweep(out)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(table, "too full to look at the speed of its storage.*[23][0-9]{3} KiB are free; 4 MiB are needed")
        results = json.loads((out / "results.json").read_text())
        self.assertEqual({r["status"] for r in results["results"]}, {"ok"})
        self.assertIsNone(results["model"]["storage"]["bytes_per_s"])
        self.assertNotIn("storage were", json.dumps(results["what_if"]))
        before = (out / "trials.jsonl").read_bytes()
        subprocess.run(["mount", "-o", "remount,size=64m", mount], check=True)
        done, table = self.sweep(out, "--resume")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotIn("too full", table)
        results = json.loads((out / "results.json").read_text())
        self.assertGreater(results["model"]["storage"]["bytes_per_s"], 0)
        self.assertIn("storage were", json.dumps(results["what_if"]))
        self.assert_nothing_is_measured_twice(out, before, 2)

    def test_a_disk_that_gets_full_ends_with_what_was_measured(self):
        phases = set()
        for size in ("48k", "72k", "96k", "112k", "128k"):
            with self.subTest(size=size):
                mount = self.mounted(size)
                out = mount / "out"
                done, table = self.sweep(out)
                self.assert_ends_for_want_of_room(done, out)
                self.assertIn("* Recommended:", table)
                self.assertRegex(done.stdout.decode(), r"\n[*=]? +(\* )?unprocessed ")
                phases |= {"anchors"} if "concatenated, none, 2 threads" in table.split("Recommended")[0] else set()
                phases |= {"codecs"} if "too full to look at the records of" in table else set()
                before = (out / "trials.jsonl").read_bytes()
                before = before[:before.rindex(b"\n") + 1]
                subprocess.run(["mount", "-o", "remount,size=64m", mount], check=True)
                done, table = self.sweep(out, "--resume")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertNotIn("too full", table)
                results = json.loads((out / "results.json").read_text())["results"]
                self.assertEqual({r["status"] for r in results}, {"ok"})
                self.assert_nothing_is_measured_twice(out, before, 2)
        self.assertEqual(phases, {"anchors", "codecs"})

    def test_runs_are_kept_where_there_is_no_room_for_more(self):
        for mode in (["--measure", "--threads", "1"], []):
            with self.subTest(mode=mode):
                mount = self.mounted("8m")
                out = mount / "out"
                done, _ = self.sweep(out, *mode, "--runs", "1")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                (mount / "lock").write_bytes(bytes(4096))
                with open(mount / "others", "wb", 0) as others:
                    try:
                        while others.write(bytes(4096)):
                            pass
                    except OSError:
                        pass
                done, table = self.sweep(out, *mode, "--runs", "3", "--resume")
                self.assert_ends_for_want_of_room(done, out)
                self.assertIn(".presto.lock", done.stderr)
                (mount / "lock").unlink()
                done, table = self.sweep(out, *mode, "--runs", "3", "--resume")
                self.assert_ends_for_want_of_room(done, out)
                self.assertNotIn("Failed:", table)
                self.assertRegex(table, "concatenated uncompressed on 1 thread has 1 of 3 runs: .*No space left on device")
                self.assertRegex(table, "what was measured from here on is not in the journal")
                (mount / "others").unlink()
                before = (out / "trials.jsonl").read_bytes()
                done, table = self.sweep(out, *mode, "--runs", "3", "--resume")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assert_nothing_is_measured_twice(out, before[:before.rindex(b"\n") + 1], 3)


if __name__ == "__main__":
    main()
