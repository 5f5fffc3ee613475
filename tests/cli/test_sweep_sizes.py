#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto-sweep: sizes in a codec are predicted for all records, not only for the few large ones that codecs are tried on."""
import json

import numpy

from cli import Case, main, run

COUNT, VALUES, BLOCK = 40, 3 << 18, 1 << 10
CODECS = ("zlib", "lz4")


class Sizes(Case):
    def make_arrays(self):
        """3 MiB each. Every third one is mostly zeros: those that codecs are tried on are every third one."""
        folder, random = self.new("arrays"), numpy.random.default_rng(7)
        folder.mkdir()
        for i in range(COUNT):
            array = random.integers(0, 1 << 30, VALUES // BLOCK * BLOCK, dtype=numpy.int32).reshape(-1, BLOCK)
            array[random.random(len(array)) < (0.9 if i % 3 == 0 else 0.2)] = 0
            numpy.save(folder / f"{i:02}.npy", array)
        return folder

    def test_few_large_records_do_not_stand_for_all(self):
        arrays, out = self.make_arrays(), self.new("sweep")
        done = run("presto-sweep", "-q", "-p", "npy", "--splits", "decoded", "--codecs", ",".join(CODECS), "--threads", "1", "--samples",
                   "0", "--runs", "1", "--run-time", "0.01", "--confirm", "0", "--decide-time", "0", "-o", out, arrays)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        results = json.loads((out / "results.json").read_text())
        predicted = {r["codec"]: r["predicted_storage_bytes"] for r in results["results"] if r["split"] == "decoded"}
        for codec in CODECS:
            stored = self.new(codec)
            done = run("presto-write", "-q", "-p", "npy", "-u", "decoded", "-c", codec, "-o", stored, arrays)
            self.assertEqual(done.returncode, 0, done.stderr)
            bytes_there = sum(path.stat().st_size for path in stored.glob("*.tfrecord"))
            with self.subTest(codec=codec, predicted=predicted[codec], stored=bytes_there):
                self.assertLess(abs(predicted[codec] / bytes_there - 1), 0.02)


if __name__ == "__main__":
    main()
