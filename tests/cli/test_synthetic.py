#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pipeline synthetic, whose source makes its samples: all programs run without a SOURCE."""
import json

from cli import Case, a_sweep, frames, main, run

OPTIONS = ["-p", "synthetic", "--set", "source.count=20", "--set", "source.size=5000"]


class Synthetic(Case):
    @a_sweep
    def test_load_write_and_sweep_take_no_source(self):
        online = self.load("-q", *OPTIONS, "--set", "source.dtype=float32", "--set", "rms.period=250")
        self.assertEqual(len(frames(online)), 20)
        for split in ("generated", "rms"):
            out = self.new("dataset")
            done = run("presto-write", "-q", *OPTIONS, "--set", "source.dtype=float32", "--set", "rms.period=250", "-u",
                       split, "-c", "zlib", "-o", out)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.load("-q", out), online, split)
        plan = self.new("plan")
        done = run("presto-sweep", "-q", *OPTIONS, "--codecs", "none", "--threads", "1", "--decide-time", "0", "-o", plan)
        self.assertEqual(done.returncode, 0, done.stderr)
        for row in (b"unprocessed ", b"generated ", b"rms "):
            self.assertIn(row, done.stdout)
        commands = [line.split() for line in done.stdout.decode().splitlines() if line.startswith("  presto-")]
        for command in commands:  # as they are recommended, they run
            self.assertEqual(run(*command, cwd=self.folder).returncode, 0, command)
        self.assertGreaterEqual(len(commands), 1)

    def test_a_strategy_needs_no_source_either(self):
        strategy = self.new("strategy").with_suffix(".yaml")
        for split, rest in (("unprocessed", ""), ("rms", "codec: none\nshards: 1\n")):
            strategy.write_text("schema: 1\npipeline: synthetic\nset: [source.count=3, source.size=500]\n"
                                f"stored: {split}\n{rest}threads: 1\nseed: 0\n")
            out = self.new("dataset")
            if split == "rms":
                done = run("presto-write", "-q", "--strategy", strategy, "-o", out)
                self.assertEqual(done.returncode, 0, done.stderr)
            done = run("presto-load", "--strategy", strategy, "--format", "null", "--json", *([out] if split == "rms" else []))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["samples"], 3)

    def test_explaining_tells_the_bytes_of_each_representation(self):
        text = self.load(*OPTIONS, "--explain").decode()
        self.assertIn("input               uint8[5000] (5.00 kB), yields generated\n", text)
        self.assertIn("rms              -> float32[10] (40 B), yields rms\n", text)

    def test_a_source_is_refused_where_none_belongs_and_missed_where_one_does(self):
        self.assert_fails(run("presto-load", *OPTIONS, self.folder), 2, "makes its samples and reads nothing")
        self.assert_fails(run("presto-write", *OPTIONS, "-o", self.new(), self.folder), 2, "makes its samples")
        self.assert_fails(run("presto-sweep", *OPTIONS, "-o", self.new(), self.folder), 2, "makes its samples")
        for pipeline in ("cv", "nilm"):
            self.assert_usage(run("presto-load", "-p", pipeline), "SOURCE) is missing")
            self.assert_usage(run("presto-write", "-p", pipeline, "-o", "x"), "SOURCE is missing")
            self.assert_usage(run("presto-sweep", "-p", pipeline, "-o", "x"), "SOURCE is missing")
            self.assert_usage(run("presto-load", "-p", pipeline, "--from", "decoded"), "SOURCE) is missing")
        self.assert_usage(run("presto-load", "-p", "synthetic", "--from", "generated"), "SOURCE) is missing")

    def test_help_lists_the_built_in_pipelines(self):
        for program in ("presto-load", "presto-write", "presto-sweep"):
            text = " ".join(run(program, "--help").stdout.decode().split())
            for name in ("cv", "cv-grey-early", "cv-grey-late", "cv2-jpg", "cv2-png", "nilm", "synthetic"):
                self.assertRegex(text, rf"Built-in pipelines:[^.]* {name}[, ]", (program, name))
            self.assertIn("(synthetic) takes no SOURCE", text)


if __name__ == "__main__":
    main()
