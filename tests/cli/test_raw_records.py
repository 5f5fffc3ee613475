#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto-load --raw-records: records of any content are samples, so everything that goes for samples goes for them. The
files were framed here, and the arrays are read by NumPy."""
import io
import json
import os
import random
import struct
import time


from cli import Case, frames, main, run
from test_npy import masked_crc, npy_stream

THREADS = (0, 1, 2, 8)


def framed(payload):
    length = struct.pack("<Q", len(payload))
    return length + masked_crc(length) + payload + masked_crc(payload)


class RawRecords(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        seed = os.environ.get("PRESTO_TEST_SEED") or str(time.time_ns())
        print(f"PRESTO_TEST_SEED={seed}", flush=True)
        draw = random.Random(seed)
        cls.records = [draw.randbytes(draw.choice([0, 1, 17, 100, 1000])) for _ in range(1500)]
        cls.records[700] = draw.randbytes(300_000)
        cls.parts = [cls.records[:400], cls.records[400:401], [], cls.records[401:]]
        cls.data = cls.folder / "raw"
        cls.data.mkdir()
        for i, part in enumerate(cls.parts):
            (cls.data / f"{i}.tfrecord").write_bytes(b"".join(map(framed, part)))

    def raw(self, *arguments):
        return self.load("-q", "--raw-records", *arguments, self.data)

    def batches(self, *arguments):
        stream = self.raw("--format", "npy", *arguments)
        return list(npy_stream.batches(io.BufferedReader(io.BytesIO(stream))))

    def test_frames_are_the_same_for_any_number_of_threads(self):
        whole = b"".join(map(framed, self.records))
        for j in THREADS:
            for batch in ([], ["-b", "1"], ["-b", "7"]):
                self.assertTrue(self.raw("-j", j, "-e", "2", *batch) == whole * 2, (j, batch))
        self.assertTrue(self.raw("--verify", "none") == whole)
        self.assertTrue(self.raw("--limit", "3", "--skip", "1499", "-e", "2") ==
                        b"".join(map(framed, [self.records[-1], *self.records[:2]])))

    def test_batches_are_values_and_offsets(self):
        for batch in (1, 2, 64, 4000):
            for j in (0, 2):
                found = self.batches("-b", batch, "-j", j)
                self.assertEqual({tuple(b) for b in found}, {("record",)})
                self.assertEqual([len(b["record"]) for b in found[:-1]], [batch] * (len(found) - 1))
                self.assertEqual([b["record"][i] for b in found for i in range(len(b["record"]))], self.records)

    def test_shuffles_and_ranks_deliver_every_record_once(self):
        for shuffle in ("full", "blocks:100", "buffer:50"):
            order = ["--shuffle", shuffle, "--seed", "3"]
            alone = frames(self.raw(*order))
            self.assertNotEqual(alone, self.records)
            self.assertEqual(sorted(alone), sorted(self.records))
            shares = [frames(self.raw(*order, "--rank", r, "--world", "3", "-j", r)) for r in range(3)]
            self.assertEqual([record for three in zip(*shares) for record in three], alone)
            rows = [b["record"][i] for b in self.batches(*order, "-b", "9") for i in range(len(b["record"]))]
            self.assertEqual(rows, alone)

    def test_a_state_goes_on_where_it_was_left(self):
        for order in ([], ["--shuffle", "full"]):
            whole = frames(self.raw("-e", "2", *order))
            state, got = self.new("state"), []
            while len(got) < len(whole):
                more = frames(self.raw("-e", "2", "--state", state, "--limit", "777", *order))
                self.assertGreater(len(more), 0)
                got += more
            self.assertTrue(got == whole)

    def test_stats_count_records(self):
        stats = self.new("stats")
        self.raw("--format", "null", "--stats", stats)
        found = json.loads(stats.read_text())
        self.assertEqual((found["samples"], found["skipped"], found["delivered_bytes"]),
                         (1500, 0, sum(map(len, self.records))))

    def test_only_damaged_records_are_left_out(self):
        folder = self.new("damaged")
        folder.mkdir()
        at = [sum(len(r) + 16 for r in self.records[:i]) for i in range(len(self.records))]
        data = bytearray(b"".join(map(framed, self.records)))
        lost = [i for i in (5, 6, 300, 1200) if len(self.records[i]) > 0]
        for i in lost:
            data[at[i] + 12] ^= 1
        (folder / "some.tfrecord").write_bytes(data)
        kept = [r for i, r in enumerate(self.records) if i not in lost]
        for j in (0, 2):
            for arguments in ([], ["--format", "npy", "-b", "50"]):
                report = self.new("report")
                done = run("presto-load", "--raw-records", "-j", j, "--on-error", "skip", "--error-report", report, *arguments,
                           folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                got = frames(done.stdout) if not arguments else \
                    [b["record"][i] for b in npy_stream.batches(io.BufferedReader(io.BytesIO(done.stdout)))
                     for i in range(len(b["record"]))]
                self.assertTrue(got == kept)
                told = [json.loads(line) for line in report.read_text().splitlines()]
                self.assertEqual([(line["record"], line["byte"]) for line in told], [(i, at[i]) for i in lost])

    def test_compressed_records_of_a_dataset_come_as_they_are_stored(self):
        dataset = self.write("-u", "resized", "-c", "zstd", "-s", "2")
        stored = b"".join(path.read_bytes() for path in sorted(dataset.glob("*.tfrecord")))
        self.assertTrue(self.load("-q", "--raw-records", dataset) == stored)
        self.assertEqual(sorted(frames(self.load("-q", "--raw-records", "--shuffle", "full", dataset))), sorted(frames(stored)))


if __name__ == "__main__":
    main()
