#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto-load --format npy as examples/npy_stream.py and as bare NumPy read it: rows of every kind come back as they
were stored, whole streams say so, and what was not asked for harms nobody."""
import io
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import time
import types
import unittest

import numpy as np

from cli import PHOTOS, TOOLS, Case, main, run

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))
import npy_stream  # noqa: E402

THREADS = (0, 1, 2, 8)


# ---- TFRecords by hand, so that what is read was written by somebody else ----

def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc32c_table()


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def varint(value):
    out = b""
    value &= 2**64 - 1
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def int64_list(values):
    return field(3, field(1, b"".join(map(varint, values))) if values else b"")


def float_list(values):
    return field(2, field(1, struct.pack(f"<{len(values)}f", *values)) if values else b"")


def bytes_list(values):
    return field(1, b"".join(field(1, value) for value in values))


def record(features):
    entries = b"".join(field(1, field(1, name.encode()) + field(2, value)) for name, value in features.items())
    payload = field(1, entries)
    length = struct.pack("<Q", len(payload))
    return length + masked_crc(length) + payload + masked_crc(payload)


# ---- streams ----

def read(data):
    return list(npy_stream.batches(io.BufferedReader(io.BytesIO(data))))


def rows_of(batch, name):
    value = batch[name]
    return [value[row] for row in range(len(value))]


class Npy(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        seed = os.environ.get("PRESTO_TEST_SEED") or str(time.time_ns())
        print(f"PRESTO_TEST_SEED={seed}", flush=True)
        cls.random = random.Random(seed)

    def file_of(self, records):
        path = self.new("foreign").with_suffix(".tfrecord")
        path.write_bytes(b"".join(records))
        return path

    def make_rows(self, count, draw):
        """Of every kind; rows as the reader is to give them back."""
        rows = []
        for i in range(count):
            rows.append({
                "blob": bytes(draw.choice([0, 0, 1, 255]) for _ in range(draw.choice([0, 1, 5, 300]))),
                "words": [bytes(draw.randrange(3) for _ in range(draw.randrange(4))) for _ in range(draw.randrange(4))],
                "tokens": [draw.randrange(-2**63, 2**63) for _ in range(draw.randrange(6))],
                "scores": [float(draw.randrange(1000)) for _ in range(draw.randrange(6))],
                "label": i,
                "box": [float(i), 1.0, 2.0, 3.0],
            })
        return rows

    def write_rows(self, rows):
        return self.file_of(record({
            "blob": bytes_list([row["blob"]]), "box": float_list(row["box"]), "label": int64_list([row["label"]]),
            "scores": float_list(row["scores"]), "tokens": int64_list(row["tokens"]), "words": bytes_list(row["words"]),
        }) for row in rows)

    def assert_rows(self, batches, rows):
        at = 0
        for batch in batches:
            for i in range(len(batch["label"])):
                row = rows[at]
                self.assertEqual(batch["label"].dtype, np.int64)
                self.assertEqual(int(batch["label"][i]), row["label"])
                self.assertEqual(batch["blob"][i], row["blob"])
                self.assertEqual(np.atleast_1d(batch["tokens"][i]).tolist(), row["tokens"])
                self.assertEqual(np.atleast_1d(batch["scores"][i]).tolist(), row["scores"])
                self.assertEqual(batch["box"][i].tolist(), row["box"])
                words = batch["words"][i]
                self.assertEqual([words] if batch["words"].rows is None else words, row["words"])
                at += 1
        self.assertEqual(at, len(rows))

    # ---- what is stored comes back ----

    def test_rows_of_every_kind_come_back_whatever_the_threads_and_batches(self):
        rows = self.make_rows(150, self.random)
        path = self.write_rows(rows)
        for batch in (1, 2, 7, 64, 1000):
            streams = [self.load("-q", "-j", j, "-b", batch, "--format", "npy", path) for j in THREADS]
            self.assertEqual(len(set(streams)), 1, batch)
            self.assert_rows(read(streams[0]), rows)

    def test_large_batches_of_many_workers_and_caches_are_the_same(self):
        rows = self.make_rows(400, self.random)
        path = self.write_rows(rows)
        plain = self.load("-q", "-j", "0", "-b", "256", "-e", "2", "--format", "npy", path)
        self.assert_rows(read(plain), rows * 2)
        for more in (["--prefetch-bytes", "100KiB"], ["--cache", "memory:10MiB"],
                     ["--cache", f"disk:{self.new('cache')}:10MiB"]):
            for _ in range(2):
                again = self.load("-q", "-j", "8", "-b", "256", "-e", "2", "--format", "npy", *more, path)
                self.assertTrue(again == plain, more)

    def test_bytes_of_any_content_keep_their_length(self):
        source = self.new("source")
        source.mkdir()
        contents = {f"{i:02}.bin": self.random.randbytes(self.random.randrange(1, 3000)) + bytes(i) for i in range(14)}
        for name, content in contents.items():
            (source / name).write_bytes(content)
        pipeline = self.new("files").with_suffix(".yaml")
        pipeline.write_text("name: files\nsource: {type: files, match: ['*.bin']}\n"
                            "steps:\n  - {step: read-file, yields: content}\n")
        for batch in (1, 5, 14):
            for j in (0, 2):
                stream = self.load("-q", "-j", j, "-b", batch, "--format", "npy", "-p", pipeline, source)
                found = [(key, content) for b in read(stream) for key, content in
                         zip(b["key"].strings(), rows_of(b, next(iter(b))))]
                self.assertEqual(dict(found), contents)

    def test_a_declared_dim_that_is_unknown_makes_every_batch_ragged(self):
        source = self.new("photos")
        source.mkdir()
        for i, (width, height) in enumerate(((96, 72), (96, 72), (50, 60), (96, 72))):
            subprocess.run([PHOTOS, "-n", "1", "-c", "1", "--width",
                            str(width), "--height", str(height), "-o", source / str(i)], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        pipeline = self.new("decoded").with_suffix(".yaml")
        pipeline.write_text("name: decoded\nsource: {type: files, match: ['*.jpg']}\nsteps:\n"
                            "  - {step: read-file, yields: concatenated}\n"
                            "  - {step: decode-image, yields: decoded, channels: 3}\n")
        one = [b["image"][0] for b in read(self.load("-q", "--format", "npy", "-p", pipeline, source))]
        self.assertEqual([image.shape for image in one], [(72, 96, 3), (72, 96, 3), (60, 50, 3), (72, 96, 3)])
        stored = self.new("stored")
        subprocess.run([TOOLS / "presto-write", "-q", "-p", pipeline, "-o", stored, source], check=True)
        for where in (["-p", pipeline, source], [stored]):
            for batch in (2, 3, 4):
                found = read(self.load("-q", "-b", batch, "--format", "npy", *where))
                for b in found:
                    self.assertIsInstance(b["image"], npy_stream.Ragged)
                images = [image for b in found for image in rows_of(b, "image")]
                self.assertEqual(len(images), 4)
                for got, wanted in zip(images, one):
                    self.assertTrue(np.array_equal(got, wanted))
        self.assert_fails(run("presto-load", "--format", "raw", "-b", "4", *where), 1, "[60,50,3]")

    def test_a_feature_that_some_samples_lack_is_empty_there(self):
        path = self.file_of(record({"x": int64_list([i, i]), **({"maybe": bytes_list([b"\0"])} if i % 5 == 3 else {})})
                            for i in range(20))
        for j in THREADS:
            found = read(self.load("-q", "-j", j, "-b", "2", "--format", "npy", path))
            self.assertNotIn("maybe", found[0])
            self.assertEqual([rows_of(b, "maybe") for b in found[1:3]], [[[], [b"\0"]], [[], []]])
            self.assertEqual(found[3]["x"].tolist(), [[6, 6], [7, 7]])

    def test_a_feature_of_two_types_is_named_with_the_record(self):
        path = self.file_of([record({"x": int64_list([1]), "y": int64_list([1])})] * 3 + [record({"x": float_list([1]), "y": int64_list([1])})])
        for j in THREADS:
            done = run("presto-load", "-j", j, "-b", "4", "--format", "npy", path)
            self.assert_fails(done, 1, path.name, "record 3", '"x"', "float32", "int64")
            self.assertEqual(len(read(self.load("-q", "-j", j, "-b", "4", "--features", "y", "--format", "npy", path))), 1)

    def test_a_feature_that_is_named_twice_is_refused(self):
        path = self.file_of([record({"x": int64_list([1]), "y": int64_list([1])})])
        done = run("presto-load", "-b", "4", "--features", "y,x,y", "--format", "npy", path)
        self.assert_usage(done, "--features: 'y' is named twice")
        done = run("presto-load", "-b", "4", "--pad", "x=0", "--pad", "x=1:9", "--format", "npy", path)
        self.assert_usage(done, "--pad: 'x' is named twice")

    def test_an_unknown_feature_names_the_one_that_was_meant(self):
        out = self.write("-u", "resized")
        for option in (["--features", "image,lable"], ["--pad", "lable=0"]):
            done = run("presto-load", "--format", "npy", *option, out)
            self.assert_fails(done, 1, "the samples have no feature 'lable', did you mean 'label'; they have: image, key, label")

    # ---- what bare NumPy reads ----

    def test_the_stream_is_arrays_that_numpy_reads_and_two_kinds_of_messages(self):
        path = self.file_of(record({"a": int64_list([i]), "b": bytes_list([b"x" * i]), "c": int64_list([1] * i)})
                            for i in range(4))
        data = self.load("-q", "-b", "2", "--format", "npy", path)
        stream, found = io.BytesIO(data), []
        while stream.tell() < len(data):
            found.append(np.lib.format.read_array(stream))
        self.assertEqual([a.dtype.kind for a in found], list("S" "iuiii" "iuiii" "S"))
        description, end = json.loads(found[0].item()), json.loads(found[-1].item())
        self.assertEqual((found[0].shape, description["presto"], description["version"]), ((), "npy", 1))
        self.assertEqual([(f["name"], f["layout"], f["arrays"]) for f in description["features"]],
                         [("a", "dense", ["values"]), ("b", "bytes", ["values", "offsets"]),
                          ("c", "ragged", ["values", "offsets"])])
        self.assertEqual([a.tolist() for a in found[6:11]],
                         [[2, 3], [120] * 5, [0, 2, 5], [1] * 5, [0, 2, 5]])
        self.assertEqual(end, {"presto": "npy", "end": True, "samples": 4, "batches": 2})

    # ---- what was not asked for ----

    def test_what_was_not_asked_for_is_neither_parsed_nor_compared(self):
        broken = field(3, field(1, b"\xff" * 11))  # a varint without an end
        path = self.file_of(record({"bad": broken if i == 7 else int64_list([i]), "label": int64_list([i]),
                                    "odd": float_list([1.0] * i) if i % 2 else bytes_list([b"x"])}) for i in range(10))
        self.assert_fails(run("presto-load", "-b", "10", "--format", "npy", "--features", "bad,label", path), 3, "record 7")
        for j in THREADS:
            for batch in (1, 8):
                data = self.load("-q", "-j", j, "-b", batch, "--format", "npy", "--features", "label", path)
                self.assertEqual([int(x) for b in read(data) for x in b["label"]], list(range(10)))

    def test_steps_run_on_the_main_feature_even_if_only_the_label_is_wanted(self):
        self.make_photos()
        labels = self.load("-q", "-b", "6", "--format", "npy", "--features", "label,key", "-p", self.pipeline, self.make_photos())
        whole = self.load("-q", "-b", "6", "--format", "npy", "-p", self.pipeline, self.make_photos())
        for few, all in zip(read(labels), read(whole), strict=True):
            self.assertEqual(list(few), ["label", "key"])
            self.assertEqual(few["label"].tolist(), all["label"].tolist())
            self.assertEqual(rows_of(few, "key"), rows_of(all, "key"))

    # ---- the end ----

    def test_a_stream_that_failed_is_told_from_a_short_epoch(self):
        rows = [record({"label": int64_list([i])}) for i in range(50)]
        damaged = bytearray(b"".join(rows))
        damaged[len(b"".join(rows[:30])) + 14] ^= 1
        path = self.file_of([bytes(damaged)])
        done = subprocess.run([TOOLS / "presto-load", "-b", "8", "--format", "npy", path], capture_output=True)
        self.assertEqual(done.returncode, 3)
        with self.assertRaises(npy_stream.IncompleteStream):
            read(done.stdout)
        seen = []
        with self.assertRaisesRegex(npy_stream.IncompleteStream, "ended with 3"):
            for batch in npy_stream.load("-q", "-b", "8", path, program=TOOLS / "presto-load"):
                seen += batch["label"].tolist()
        self.assertEqual(seen, list(range(len(seen))))
        self.assertGreaterEqual(len(seen), 24)

    def test_a_stream_cut_anywhere_is_not_taken_for_whole(self):
        path = self.write_rows(self.make_rows(10, self.random))
        data = self.load("-q", "-b", "4", "--format", "npy", path)
        read(data)
        for cut in [0, len(data) - 1] + [self.random.randrange(len(data)) for _ in range(60)]:
            with self.assertRaises(npy_stream.IncompleteStream, msg=f"cut at {cut}"):
                read(data[:cut])

    def test_a_stream_that_a_signal_ends_is_not_whole(self):
        path = self.write_rows(self.make_rows(50, self.random))
        process = subprocess.Popen([TOOLS / "presto-load", "-q", "-e", "1000000", "-b", "4", "--format", "npy", path],
                                   stdout=subprocess.PIPE)
        first = process.stdout.read(10000)
        process.send_signal(signal.SIGTERM)
        data = first + process.stdout.read()
        process.stdout.close()
        self.assertEqual(process.wait(), -signal.SIGTERM)
        with self.assertRaises(npy_stream.IncompleteStream):
            read(data)

    def test_whole_streams_end_with_their_counts_even_if_nothing_is_in_them(self):
        path = self.write_rows(self.make_rows(9, self.random))
        self.assertEqual(sum(len(b["label"]) for b in read(self.load("-q", "-b", "2", "--limit", "5", "--format", "npy", path))), 5)
        self.assertEqual(read(self.load("-q", "--format", "npy", self.file_of([]))), [])
        state = self.new("state")
        arguments = ["-q", "-b", "4", "--state", state, "--format", "npy", path]
        self.assertEqual(len(read(self.load(*arguments))), 3)
        self.assertEqual(read(self.load(*arguments)), [])  # nothing remains

    def test_a_reader_that_stops_early_ends_the_program(self):
        path = self.write_rows(self.make_rows(50, self.random))
        for batch in npy_stream.load("-q", "-e", "1000000", "-b", "4", path, program=TOOLS / "presto-load"):
            self.assertEqual(len(batch["label"]), 4)
            break

    # ---- padding ----

    def test_pad_makes_features_dense(self):
        rows = self.make_rows(40, self.random)
        path = self.write_rows(rows)
        features = ["--features", "tokens,scores,blob", "--format", "npy", path]
        for j in THREADS:
            found = read(self.load("-q", "-j", j, "-b", "8", "--pad", "tokens=-1:7", "--pad", "scores=0.5", "--pad",
                                   "blob=255", *features))
            for at, b in enumerate(found):
                some = rows[at * 8 : at * 8 + 8]
                self.assertEqual(b["tokens"].tolist(), [row["tokens"] + [-1] * (7 - len(row["tokens"])) for row in some])
                longest = max(len(row["scores"]) for row in some)
                self.assertEqual(b["scores"].tolist(), [row["scores"] + [0.5] * (longest - len(row["scores"])) for row in some])
                width = max(len(row["blob"]) for row in some)
                self.assertEqual([bytes(r) for r in b["blob"]], [row["blob"].ljust(width, b"\xff") for row in some])
        raw = self.load("-q", "-b", "8", "--pad", "tokens=0:7", "--features", "tokens", "--format", "raw", path)
        self.assertEqual(np.frombuffer(raw, "<i8").reshape(40, 7).tolist(),
                         [row["tokens"] + [0] * (7 - len(row["tokens"])) for row in rows])

    def test_what_cannot_be_padded_is_refused(self):
        path = self.write_rows(self.make_rows(40, self.random))
        for pad, code, part in (("tokens=0:2", 3, "more than the 2"), ("tokens=0.5", 1, "int64"), ("words=0", 1, "words"),
                                ("blob=256", 1, "uint8")):
            done = run("presto-load", "-b", "16", "--format", "npy", "--pad", pad, path)
            self.assertIn(part, done.stderr)
            self.assertNotEqual(done.returncode, 0, pad)
            self.assertIn(done.returncode, (1, code))
        kept = read(self.load("-q", "-b", "16", "--on-error", "skip", "--format", "npy", "--pad", "tokens=0:2", path))
        self.assertEqual({b["tokens"].shape[1] for b in kept}, {2})
        for pad in ("tokens", "tokens=", "=3", "tokens=x", "tokens=1:", "tokens=1:0", "tokens=nan", "tokens=1:2x"):
            self.assert_usage(run("presto-load", "--format", "npy", "--pad", pad, path), "--pad")
        self.assert_usage(run("presto-load", "--format", "null", "--pad", "x=0", path), "--pad")

    # ---- torch ----

    def test_dataloader_workers_share_the_epoch(self):
        """examples/train_torch.py with PyTorch's DataLoader played by two worker infos."""
        dataset = self.write("-u", "resized", "-s", "3")
        torch = types.ModuleType("torch")
        torch.nn, torch.from_numpy = types.ModuleType("torch.nn"), lambda array: array
        info = types.SimpleNamespace(current=None)
        torch.utils = types.SimpleNamespace(data=types.SimpleNamespace(IterableDataset=object,
                                                                       get_worker_info=lambda: info.current))
        before = {name: sys.modules.get(name) for name in ("torch", "torch.nn")}
        sys.modules.update({"torch": torch, "torch.nn": torch.nn})
        try:
            import train_torch
        finally:
            for name, module in before.items():
                sys.modules.pop(name) if module is None else sys.modules.update({name: module})
        keys = lambda data: [key for _, _, batch in data for key in batch]
        whole = keys(train_torch.PrestoDataset(TOOLS / "presto-load", dataset, 5, 1))
        self.assertEqual(len(set(whole)), self.photo_count)
        for world in (1, 2):
            found = []
            for rank in range(world):
                for worker in range(2):
                    info.current = types.SimpleNamespace(id=worker, num_workers=2)
                    found += keys(train_torch.PrestoDataset(TOOLS / "presto-load", dataset, 5, 1, rank, world))
            self.assertEqual(sorted(found), sorted(whole))


if __name__ == "__main__":
    main()
