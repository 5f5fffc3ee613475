#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--set STEP.OPTION=VALUE in all programs: checked, recorded, carried over."""
import json
import pathlib

from cli import Case, a_sweep, main, run


class Set(Case):
    def test_what_is_set_is_stored_and_recorded(self):
        out = self.new("set")
        done = run("presto-write", "-q", "-p", "cv", "--set", "resize-image.min-side=64", "--set",
                   "source.match=['*0.jpg']", "-u", "resized", "-o", out, self.make_photos())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        info = json.loads((out / "dataset.json").read_text())
        definition = info["pipeline"]
        self.assertEqual(definition["steps"][2]["min-side"], 64)
        self.assertEqual(definition["source"]["match"], ["*0.jpg"])
        image = next(f for f in info["features"] if f["name"] == "image")
        self.assertIn(64, image["shape"])

        small = "random-crop.height=32", "random-crop.width=48"
        load = ["presto-load", "-b", "4", "--format", "null"]
        done = run(*load, "--explain", "--set", small[0], "--set", small[1], out)
        self.assertIn("float32[32,48,3]", done.stdout.decode())
        # The same pipeline by name goes on there, what is stored notwithstanding.
        done = run(*load, "--set", small[0], "--set", small[1], out)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = run(*load, "--set", "resize-image.min-side=32", out)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--set changes a step that", done.stderr)
        self.assertIn("'resized'", done.stderr)

    def test_a_file_is_found_from_any_working_folder(self):
        source = self.new("texts")
        source.mkdir()
        (source / "a.txt").write_text("a text of some words")
        pipeline = self.new("ids.yaml")
        pipeline.write_text("name: ids\nsource: {type: files, match: ['*.txt'], feature: text}\nsteps:\n"
                            "  - {step: read-file, yields: concatenated}\n  - {step: bpe-encode, yields: ids}\n")
        models = pathlib.Path(__file__).resolve().parents[1] / "golden" / "tokenizers"
        streams = []
        for split in ("concatenated", "ids"):
            out = self.new(split)
            done = run("presto-write", "-q", "-p", pipeline, "--set", "bpe-encode.model=roberta.json", "-u", split, "-o", out,
                       source, cwd=models)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            done = run("presto-load", "-q", "--format", "npy", out, cwd="/")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            streams.append(done.stdout)
        self.assertEqual(streams[0], streams[1])

    def test_mistakes_are_told_with_the_argument(self):
        for argument, code, text in (
            ("resize-image.min-side=x", 1, "--set resize-image.min-side=x: step resize-image: option 'min-side' needs a whole number"),
            ("resize-image.min-sid=1", 1, "has no option 'min-sid', did you mean"),
            ("resize.min-side=1", 1, "the pipeline has no such step"),
            ("min-side", 1, "must be STEP.OPTION=VALUE"),
        ):
            with self.subTest(argument=argument):
                for program in (["presto-write", "-o", self.new("no")], ["presto-load"], ["presto-sweep", "-o", self.new("no")]):
                    done = run(*program, "-p", "cv", "--set", argument, self.make_photos())
                    self.assertEqual(done.returncode, code, done.stderr)
                    self.assertIn(text, done.stderr)
        done = run("presto-load", "--set", "x.y=1", "--format", "null", self.make_photos())
        self.assertNotEqual(done.returncode, 0)

    @a_sweep
    def test_a_sweep_carries_it_into_its_commands_and_its_strategy(self):
        out = self.new("sweep")
        done = run("presto-sweep", "-q", "-p", "cv", "--set", "resize-image.min-side=40", "--set",
                   "random-crop.height=32", "--set", "random-crop.width=32", "--stored", "resized",
                   "--codecs", "none", "--threads", "1", "--samples", "4", "--runs", "1",
                   "--run-time", "0.01", "-o", out, self.make_photos())
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads((out / "results.json").read_text())
        self.assertIn("--set resize-image.min-side=40", json.dumps(results))
        written = self.new("written")
        done = run("presto-write", "-q", "--strategy", out / "strategy.yaml", "-o", written, self.make_photos())
        self.assertEqual(done.returncode, 0, done.stderr)
        definition = json.loads((written / "dataset.json").read_text())["pipeline"]
        self.assertEqual(definition["steps"][2]["min-side"], 40)
        self.assertEqual(definition["steps"][4]["height"], 32)


if __name__ == "__main__":
    main()
