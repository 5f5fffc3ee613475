#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto-load --state and --skip: where a stream goes on, and what is refused before any work."""
import io
import json
import os
import random
import time
import unittest

import numpy as np

from cli import Case, frames, main, run

SHUFFLES = ("none", "full", "buffer:7", "blocks:5")


def arrays(data):
    """Shape and bytes of each array of an npy stream, without the messages around them."""
    stream, found = io.BytesIO(data), []
    while stream.tell() < len(data):
        array = np.lib.format.read_array(stream)
        found.append((array.shape, array.tobytes()))
    return found[1:-1]


class State(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.resized = cls.write("-u", "resized", "-c", "zstd:1", "-s", "3")
        seed = int(os.environ.get("PRESTO_TEST_SEED", time.time_ns() % 1000000))
        print(f"{cls.__name__}: PRESTO_TEST_SEED={seed}", flush=True)
        cls.random = random.Random(seed)

    def position(self, state):
        saved = json.loads(state.read_text())
        return saved["epoch"] * self.photo_count + saved["next"]

    # ---- --skip ----

    def test_skip_gives_the_rest_of_the_stream_whatever_its_order(self):
        total = 3 * self.photo_count
        edges = {0, 1, self.photo_count - 1, self.photo_count, self.photo_count + 1, total - 1, total}
        for shuffle in SHUFFLES:
            order = ["-q", "-e", "3", "--seed", "5", "--shuffle", shuffle, self.resized]
            records = frames(self.load(*order))
            self.assertEqual(len(records), total)
            for skip in edges | set(self.random.sample(range(total), 4)):
                j = self.random.choice([0, 1, 3])
                rest = frames(self.load("-j", j, "--skip", skip, *order))
                self.assertTrue(rest == records[skip:], (shuffle, skip, j))

    def test_skip_counts_the_samples_of_the_rank(self):
        for drop in ([], ["--drop-last", "--format", "raw", "--features", "label"]):
            for rank in range(5):
                order = ["-q", "-e", "2", "--shuffle", "full", "--rank", rank, "--world", "5", *drop, self.resized]
                whole = self.load(*order)
                unit = 8 if drop else None
                rows = [whole[i : i + unit] for i in range(0, len(whole), unit)] if drop else frames(whole)
                for skip in self.random.sample(range(len(rows) + 1), 4):
                    rest = self.load("--skip", skip, *order)
                    self.assertTrue(rest == b"".join(rows[skip:]) if drop else frames(rest) == rows[skip:], (rank, skip))

    def test_skip_goes_with_batches_and_limit(self):
        order = ["-q", "-e", "2", "-b", "4", "--shuffle", "buffer:9", "--format", "npy", self.resized]
        parts = [arrays(self.load("--skip", skip, "--limit", "8", *order)) for skip in range(0, 2 * self.photo_count, 8)]
        self.assertTrue(sum(parts, []) == arrays(self.load(*order)))

    def test_drop_last_after_skip_leaves_out_no_later_epoch(self):
        order = ["-q", "-e", "2", "-b", "5", "--drop-last", "--format", "raw", "--features", "label", self.resized]
        whole = self.load(*order)
        self.assertEqual(len(whole), 2 * 20 * 8)  # 24 photos: four batches an epoch
        # From sample 17 on the first epoch has no full batch.
        self.assertTrue(self.load("--skip", "17", *order) == whole[20 * 8 :])

    def test_more_than_the_stream_has_cannot_be_skipped(self):
        done = run("presto-load", "-e", "2", "--skip", 2 * self.photo_count + 1, self.resized)
        self.assert_fails(done, 2, f"{2 * self.photo_count + 1} samples", f"2 x {self.photo_count}")
        self.assertEqual(done.stdout, b"")
        for wrong in ("-1", "x", "", str(1 << 64)):
            self.assert_usage(run("presto-load", "--skip", wrong, self.resized), "--skip")
        self.assert_usage(run("presto-load", "--skip", "3", "--order", "completion", self.resized), "--order strict")

    def test_skip_comes_before_the_state_which_is_checked_and_written(self):
        order = ["-q", "-e", "2", "--shuffle", "full", self.resized]
        records = frames(self.load(*order))
        state = self.new("state")
        self.load("--state", state, "--limit", "20", *order)
        # The trainer has seen 7 of the 20.
        self.assertTrue(frames(self.load("--state", state, "--skip", "7", "--limit", "5", *order)) == records[7:12])
        self.assertEqual(self.position(state), 12)
        self.assertTrue(frames(self.load("--state", state, *order)) == records[12:])
        self.assertTrue(frames(self.load("--state", state, "--skip", "40", *order)) == records[40:])
        self.assert_fails(run("presto-load", "--state", state, "--skip", "3", "--seed", "9", *order), 2, state.name, "seed")

    # ---- a dataset that was recoded ----

    def test_a_state_goes_on_with_the_recoded_dataset_and_back(self):
        import shutil
        foreign = self.new("foreign")
        foreign.mkdir()
        for number, shard in enumerate(sorted(self.resized.glob("*.tfrecord"))):
            run("presto-inspect", "recode", "-q", "-c", "none", "-s", "1", "-o", plain := self.new("plain"), shard)
            shutil.copy(next(plain.glob("*.tfrecord")), foreign / f"part-{number}.tfrecord")
        for source in (self.resized, foreign):
            first, second = self.new("first"), self.new("second")
            for into, options, of in ((first, ["-c", "lz4", "-s", "5"], source), (second, ["-c", "none", "-s", "1"], first)):
                self.assertEqual(run("presto-inspect", "recode", "-q", *options, "-o", into, of).returncode, 0)
            for shuffle in ("none", "full", "buffer:7"):
                order = ["-q", "-e", "2", "--shuffle", shuffle]
                whole = frames(self.load(*order, source))
                state, got = self.new("state"), []
                for where, limit in ((source, 7), (first, 9), (second, 20), (source, 1), (second, 99)):
                    got += frames(self.load(*order, "--state", state, "--limit", limit, where))
                self.assertTrue(got == whole, (source.name, shuffle))
        # A part, one shard of several, and other steps are other streams.
        state = self.new("state")
        self.load("-q", "--limit", "5", "--state", state, self.resized)
        for options, source in ((["--split", "50/50", "--part", "1"], self.resized), (["-n", "20"], self.resized)):
            done = run("presto-inspect", "recode", "-q", *options, "-o", part := self.new("part"), source)
            if done.returncode == 0:
                self.assert_fails(run("presto-load", "--state", state, part), 2, state.name)
        one = sorted(first.glob("*.tfrecord"))[0]
        self.assert_fails(run("presto-load", "--state", state, one), 2, state.name)

    # ---- a state that says that nothing remains ----

    def test_a_finished_stream_gives_its_figures_again(self):
        state, stats = self.new("state"), self.new("stats")
        first = json.loads(self.load("--json", "--format", "null", "--state", state, "--stats", stats, self.resized))
        self.assertEqual((first["samples"], first["complete"]), (self.photo_count, True))
        saved = state.read_text()
        for _ in range(2):
            stats.unlink()
            done = run("presto-load", "--json", "--format", "null", "--state", state, "--stats", stats, self.resized)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr, f"presto-load: {state}: nothing remains\n")
            for again in (json.loads(done.stdout), json.loads(stats.read_text())):
                self.assertEqual((again["samples"], again["batches"], again["complete"]), (0, 0, True))
                self.assertEqual(again.keys(), first.keys())
            self.assertEqual(state.read_text(), saved)
        # Of a longer stream the rest remains.
        self.assertEqual(len(frames(self.load("-q", "-e", "2", "--state", state, self.resized))), self.photo_count)

    # ---- what is refused at once ----

    def test_what_cannot_be_written_is_told_before_the_stream_begins(self):
        folder = self.new("folder")
        folder.mkdir()
        for option in ("--state", "--stats"):
            for path, why in ((folder, "directory"), (folder / "no" / "where", "No such file"), (folder / ("x" * 300), "too long")):
                done = run("presto-load", "-q", option, path, self.resized)
                self.assert_fails(done, 1, path, why)
                self.assertEqual(done.stdout, b"", (option, path))
        for option in ("--state", "--stats", "--error-report"):
            self.assert_usage(run("presto-load", "--on-error", "skip", option, "", self.resized), option, "empty")
        self.assert_usage(run("presto-write", "-p", self.pipeline, "--on-error", "skip", "--error-report", "", "-o",
                              folder, self.make_photos()), "--error-report", "empty")
        self.assertEqual(list(folder.iterdir()), [])

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_folder_that_may_not_be_written_is_told_as_well(self):
        folder = self.new("folder")
        folder.mkdir(mode=0o555)
        for option in ("--state", "--stats"):
            done = run("presto-load", "-q", option, folder / "x", self.resized)
            self.assert_fails(done, 1, folder / "x", "Permission denied")
            self.assertEqual(done.stdout, b"")

    def test_a_damaged_position_is_corrupt_data_and_names_the_file(self):
        state = self.new("state")
        options = ["-q", "-e", "3", "--shuffle", "full", "--state", state, "--format", "null", self.resized]
        self.load("--limit", "30", *options)
        saved = json.loads(state.read_text())
        self.assertEqual((saved["epoch"], saved["next"]), (1, 6))
        for wrong in (self.photo_count, self.photo_count + 1, 1000, 1 << 62, (1 << 63) - 1, -1, 1 << 63, 1.5, "3", None):
            state.write_text(json.dumps({**saved, "next": wrong}))
            self.assert_fails(run("presto-load", *options), 3, state)
        for wrong in (-1, 1 << 63, 0.5, "1", None):
            state.write_text(json.dumps({**saved, "epoch": wrong}))
            self.assert_fails(run("presto-load", *options), 3, state)
        for text in ("", "null", json.dumps(saved)[:-5], "\0" * 100, "[" * 70000, " " * 70000 + json.dumps(saved)):
            state.write_text(text)
            self.assert_fails(run("presto-load", *options), 3, state)


if __name__ == "__main__":
    main()
