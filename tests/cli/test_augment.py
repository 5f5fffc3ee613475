#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps that augment images: the same stream for any threads, ranks and interruptions, from any split, and from any file."""
import json
import os
import random
import shutil
import time
import unittest

from cli import GOLDEN, Case, main, run

STEPS = """\
name: augmented
source: {type: files, match: ["*.jpg", "*.png"], label: parent-folder}
steps:
  - {step: read-file,           yields: concatenated}
  - {step: decode-image,        yields: decoded, orient: exif, scale: auto}
  - {step: random-resized-crop, height: 20, width: 24, scale: [0.3, 1]}
  - {step: horizontal-flip}
  - {step: color-jitter,        brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1}
  - {step: normalize,           mean: [0.5, 0.5, 0.5], std: [0.25, 0.25, 0.25]}
"""
ROW = 20 * 24 * 3 * 4
RAW = ["-q", "--format", "raw", "--features", "image"]


class Augment(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.pipeline.write_text(STEPS)
        cls.photos = cls.make_photos()
        seed = int(os.environ.get("PRESTO_TEST_SEED", time.time_ns() % 1000000))
        print(f"{cls.__name__}: PRESTO_TEST_SEED={seed}", flush=True)
        cls.random = random.Random(seed)

    def rows(self, *arguments):
        data = self.load(*RAW, "-p", self.pipeline, *arguments, self.photos)
        self.assertEqual(len(data) % ROW, 0)
        return [data[i : i + ROW] for i in range(0, len(data), ROW)]

    def test_threads_change_nothing(self):
        for shuffle in ("none", "full"):
            order = ["-e", "2", "--seed", "3", "--shuffle", shuffle]
            whole = self.rows("-j", "0", *order)
            self.assertEqual(len(whole), 2 * self.photo_count)
            self.assertEqual(len(set(whole)), len(whole), "each epoch draws anew")
            for threads in (1, 2, 5):
                self.assertTrue(self.rows("-j", threads, *order) == whole, (shuffle, threads))
            self.assertTrue(self.rows("-j", "2", "-b", "5", *order) == whole)
        self.assertTrue(self.rows("--seed", "4") != self.rows("--seed", "3"))

    def test_a_stream_goes_on_where_it_stopped(self):
        order = ["-e", "2", "--seed", "3", "--shuffle", "full"]
        whole = self.rows(*order)
        for _ in range(3):
            state, cut = self.new("state"), self.random.randrange(1, len(whole))
            first = self.rows("-j", "2", "--state", state, "--limit", cut, *order)
            rest = self.rows("-j", "3", "--state", state, *order)
            self.assertTrue(first + rest == whole, cut)

    def test_ranks_share_the_samples(self):
        order = ["--seed", "3", "--shuffle", "full", "--drop-last"]
        parts = [self.rows("--rank", rank, "--world", "3", *order) for rank in range(3)]
        self.assertTrue(sorted(sum(parts, [])) == sorted(self.rows(*order)))

    def test_every_split_gives_the_same_stream(self):
        online = self.rows("--seed", "3", "-e", "2")
        for split in ("concatenated", "decoded"):
            dataset = self.write("-u", split, "-s", "3", source=self.photos)
            decode = json.loads((dataset / "dataset.json").read_text())["pipeline"]["steps"][1]
            # 24^2 / 0.75 / 0.3, the width being the longer side.
            self.assertEqual((decode["scale"], decode["least-pixels"]), ("auto", 2560))
            data = self.load(*RAW, "--seed", "3", "-e", "2", dataset)
            self.assertTrue(data == b"".join(online), split)

    def test_a_cache_changes_nothing(self):
        online = self.rows("--seed", "3", "-e", "3")
        self.assertTrue(self.rows("--seed", "3", "-e", "3", "--cache", "memory:64MiB") == online)

    def test_no_sample_runs_unfused(self):
        stats = self.new("stats")
        self.rows("--stats", stats, "-j", "2")
        steps = {step["step"]: step for step in json.loads(stats.read_text())["steps"]}
        self.assertEqual([step.get("unfused", 0) for step in steps.values()], [0] * len(steps))
        self.assertEqual(steps["random-resized-crop"]["samples"], self.photo_count)

    def test_files_of_all_kinds_are_samples_or_left_out(self):
        """Golden images: 1x1, grey, CMYK, 16 bits, cut, with EXIF; and files whose EXIF is damaged."""
        source = self.new("source")
        shutil.copytree(GOLDEN / "images", source / "a")
        turned = (GOLDEN / "images" / "jpeg-exif6-120x80.jpg").read_bytes()
        at = turned.index(b"Exif\0\0")
        for i in range(60):
            damaged = bytearray(turned)
            damaged[self.random.randrange(at + 6, at + 32)] ^= 1 << self.random.randrange(8)
            (source / "a" / f"damaged-{i}.jpg").write_bytes(damaged)
        (source / "a" / "empty.jpg").write_bytes(b"")
        stats = self.new("stats")
        data = self.load(*RAW, "-p", self.pipeline, "-j", "2", "--on-error", "skip", "--stats", stats, source)
        found = json.loads(stats.read_text())
        self.assertEqual(len(data) % ROW, 0)
        total = sum(1 for _ in (source / "a").iterdir())
        self.assertEqual(len(data) // ROW + found["skipped"], total)
        self.assertLess(found["skipped"], 12)
        self.assertGreaterEqual(found["skipped"], 4)

    def test_an_image_that_cannot_be_used_is_named(self):
        source = self.new("source")
        source.mkdir()
        (source / "cut.jpg").write_bytes((GOLDEN / "images" / "jpeg-exif6-120x80.jpg").read_bytes()[:900])
        done = run("presto-load", *RAW, "-p", self.pipeline, source)
        self.assert_fails(done, 3, "cut.jpg", "decode-image: truncated JPEG")


if __name__ == "__main__":
    main()
