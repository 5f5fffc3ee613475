#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every program ends at the first signal, also while a sample is inside code that cannot be interrupted."""
import json
import os
import pathlib
import select
import signal
import subprocess
import time

from cli import ROOT, TOOLS, Case, a_sweep, frames, main, run

PLUGIN = pathlib.Path(os.environ.get("PRESTO_PLUGIN", ROOT / "build" / "release" / "tests" / "plugin_invert.so")).with_name("plugin_stuck.so")
STUCK = 77  # bytes of the text that never comes back
SIZES = (10, 20, 30, 40, STUCK, 50, 60, 70)


class LateEnd(Case):
    def setUp(self):
        super().setUp()
        self.texts = self.new("texts")
        self.texts.mkdir()
        for i, size in enumerate(SIZES):
            (self.texts / f"{i}.txt").write_bytes(bytes([65 + i]) * size)
        self.pipeline = self.new("stuck.yaml")
        self.pipeline.write_text(f"name: t\nplugin: {PLUGIN}\nsource: {{type: files, match: ['*.txt']}}\nsteps:\n"
                                 f"  - {{step: read-file, yields: read}}\n  - {{step: stuck, stuck: {STUCK}, yields: passed}}\n")

    def start(self, program, *arguments, **options):
        process = subprocess.Popen([TOOLS / program, *map(str, arguments)], stderr=subprocess.PIPE, **options)
        self.addCleanup(process.kill)
        return process

    def read_until_stuck(self, process):
        """What the program writes before it is inside the step: then nothing comes for a while."""
        got = b""
        while select.select([process.stdout], [], [], 1.5 if got else 60)[0]:
            piece = os.read(process.stdout.fileno(), 4096)
            got += piece
            if not piece:
                break
        return got

    def wait_until_inside(self, out):
        """The program has begun to write, and soon is inside the step."""
        limit = time.monotonic() + 60
        while not out.exists() and time.monotonic() < limit:
            time.sleep(0.05)
        time.sleep(1)

    def end(self, process, number):
        start = time.monotonic()
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, -number, err)
        self.assertGreater(time.monotonic() - start, 4)  # the program waits for the sample for a while
        return out, err.decode()

    def test_a_load_leaves_the_state_before_the_sample(self):
        order = ("-q", "-b", "1", "--format", "tfrecord", "-p", self.pipeline, self.texts)
        unstuck = ("--set", "stuck.stuck=0")
        whole = run("presto-load", *unstuck, *order).stdout
        ends = [0]
        for payload in frames(whole):
            ends.append(ends[-1] + 16 + len(payload))
        for threads, number in (("0", signal.SIGINT), ("1", signal.SIGTERM), ("3", signal.SIGHUP)):
            with self.subTest(threads=threads):
                state, stats = self.new("state"), self.new("stats")
                process = self.start("presto-load", "-j", threads, "--stats", stats, "--state", state, *order, stdout=subprocess.PIPE)
                got = self.read_until_stuck(process)
                out, err = self.end(process, number)
                delivered = json.loads(state.read_text())["next"]
                self.assertEqual((got + out, err), (whole[: ends[delivered]], ""))
                # Of several threads, one may work at the sample before together with the one that never ends.
                self.assertIn(delivered, (SIZES.index(STUCK), SIZES.index(STUCK) - (threads == "3")))
                self.assertEqual(stats.exists(), threads != "0")  # no figures while a step runs in the only thread
                done = run("presto-load", *unstuck, "--state", state, *order)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(done.stdout, whole[ends[delivered]:])

    def test_a_conversion_ends_and_says_how_to_go_on(self):
        out = self.new("out")
        process = self.start("presto-write", "-q", "-j", "2", "-s", "8", "-p", self.pipeline, "-o", out, self.texts)
        self.wait_until_inside(out)
        _, err = self.end(process, signal.SIGTERM)
        self.assertEqual(err, f"presto-write: {out}: stopped; the same command with --resume goes on from here\n")
        self.assertFalse((out / "dataset.json").exists())

    @a_sweep
    def test_a_sweep_ends_and_leaves_no_lock(self):
        out = self.new("sweep")
        arguments = ("-q", "--codecs", "none", "--threads", "1", "--runs", "1", "--run-time", "0.01", "--decide-time", "0", "-p",
                     self.pipeline, "-o", out, self.texts)
        process = self.start("presto-sweep", *arguments)
        self.wait_until_inside(out)
        self.end(process, signal.SIGINT)
        done = run("presto-sweep", "--force", "--set", "stuck.stuck=0", *arguments, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse((out / "trials").exists(), "what the sweep that was stopped has left")


if __name__ == "__main__":
    main()
