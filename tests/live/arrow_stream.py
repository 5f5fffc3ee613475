#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto-load --format arrow as pyarrow reads it: values are those of the npy stream, types are Arrow's own, and a stream that
is not whole is never taken for one. polars, DuckDB and pandas read it, too, where they are installed.

Runs in the tests' Python environment; PRESTO_TOOLS and PRESTO_PHOTOS as in tests/cli/cli.py.
"""
import importlib.util
import io
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time
import unittest

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import test_npy  # noqa: E402
from cli import TOOLS, Case, main, run  # noqa: E402
from test_npy import bytes_list, int64_list, record  # noqa: E402

THREADS = (0, 1, 2, 8)


def read(data):
    """The record batches of a whole stream, checked."""
    batches = list(pa.ipc.open_stream(data))
    for batch in batches:
        batch.validate(full=True)
    return batches


def rows(batches, name):
    return [row for batch in batches for row in batch.column(name).to_pylist()]


class Arrow(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        seed = os.environ.get("PRESTO_TEST_SEED") or str(time.time_ns())
        print(f"PRESTO_TEST_SEED={seed}", flush=True)
        cls.random = random.Random(seed)
        cls.stored = cls.write("-u", "resized", "-s", "3")

    file_of = test_npy.Npy.file_of
    make_rows = test_npy.Npy.make_rows
    write_rows = test_npy.Npy.write_rows

    def arrow(self, *arguments):
        return self.load("-q", "--format", "arrow", *arguments)

    # ---- values and types ----

    def test_tensors_labels_and_keys_are_those_of_the_npy_stream(self):
        arguments = ["-b", "7", "-e", "2", "--shuffle", "full", "--seed", "3", self.stored]
        streams = [self.arrow("-j", j, *arguments) for j in THREADS]
        self.assertEqual(len(set(streams)), 1)
        found = read(streams[0])
        wanted = test_npy.read(self.load("-q", "--format", "npy", *arguments))
        schema = found[0].schema
        self.assertEqual(schema.names, ["image", "label", "key"])
        self.assertEqual(schema.types, [pa.fixed_shape_tensor(pa.float32(), (32, 40, 3)), pa.int64(), pa.large_binary()])
        self.assertEqual([b.num_rows for b in found], [7, 7, 7, 3] * 2)
        for ours, theirs in zip(found, wanted, strict=True):
            self.assertTrue(np.array_equal(ours.column("image").to_numpy_ndarray(), theirs["image"]))
            self.assertEqual(ours.column("label").to_pylist(), theirs["label"].tolist())
            self.assertEqual(ours.column("key").to_pylist(), [theirs["key"][i] for i in range(len(theirs["key"]))])

    def test_rows_of_every_kind(self):
        wanted = self.make_rows(150, self.random)
        path = self.write_rows(wanted)
        lists = [f"--arrow-type={name}=list" for name in ("tokens", "scores", "words")]
        for size in (1, 2, 7, 64, 1000):
            streams = [self.arrow("-j", j, "-b", size, *lists, path) for j in THREADS]
            self.assertEqual(len(set(streams)), 1, size)
            found = read(streams[0])
            self.assertEqual([b.num_rows for b in found], [min(size, 150 - at) for at in range(0, 150, size)])
            for name in ("blob", "tokens", "scores", "label", "box", "words"):
                self.assertEqual(rows(found, name), [row[name] for row in wanted], name)
        self.assertEqual(found[0].schema.field("tokens").type, pa.large_list(pa.int64()))
        self.assertEqual(found[0].schema.field("words").type, pa.large_list(pa.large_binary()))
        self.assertEqual(found[0].schema.field("box").type, pa.fixed_shape_tensor(pa.float32(), (4,)))

    def test_every_dtype_arrives(self):
        source = self.new("arrays")
        source.mkdir()
        types = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]
        for code in types:
            values = np.arange(-3, 3).reshape(2, 3).astype(code)
            np.save(source / f"{code.replace('?', 'b1')}.npy", values)
            stored = self.load("-q", "-p", "npy", "--format", "arrow", source / f"{code.replace('?', 'b1')}.npy")
            column = read(stored)[0].column(0)
            self.assertEqual(column.type.value_type, pa.uint8() if code == "?" else pa.from_numpy_dtype(np.dtype(code)))
            self.assertEqual(column.flatten().to_pylist(), values.reshape(-1).tolist(), code)
        np.save(source / "c8.npy", np.ones(3, "c8"))
        self.assert_fails(run("presto-load", "-p", "npy", "--format", "arrow", source / "c8.npy"), 1, "no type for complex64")

    def test_images_of_differing_size_have_their_shapes_beside_them(self):
        source = self.new("arrays")
        source.mkdir()
        arrays = [self.random_array() for _ in range(20)]
        for i, array in enumerate(arrays):
            np.save(source / f"{i:02}.npy", array)
        for size in (2, 6, 20):
            found = read(self.arrow("-p", "npy", "-b", size, source))
            name = found[0].schema.names[0]
            at = 0
            for batch in found:
                shapes = batch.column(f"{name}.shape")
                for values, shape in zip(batch.column(name), shapes):
                    shape = [n for n in shape.as_py() if n >= 0]
                    self.assertTrue(np.array_equal(np.array(values.as_py(), np.uint8).reshape(shape), arrays[at]))
                    at += 1
            self.assertEqual(at, len(arrays))

    def random_array(self):
        shape = self.random.randrange(1, 9), self.random.randrange(1, 9), 3
        return np.frombuffer(self.random.randbytes(shape[0] * shape[1] * 3), np.uint8).reshape(shape)

    def test_padded_features_are_tensors(self):
        wanted = self.make_rows(40, self.random)
        path = self.write_rows(wanted)
        found = read(self.arrow("-b", "9", "--pad", "tokens=-1:7", "--features", "tokens,label", path))
        self.assertEqual(found[0].schema.names, ["tokens", "label"])
        self.assertEqual(found[0].schema.field("tokens").type, pa.fixed_shape_tensor(pa.int64(), (7,)))
        self.assertEqual([row for b in found for row in b.column("tokens").to_numpy_ndarray().tolist()],
                         [row["tokens"] + [-1] * (7 - len(row["tokens"])) for row in wanted])

    def test_text_is_utf8_if_that_is_asked_for(self):
        texts = ["", "plain", "Grüße", "\N{GRINNING FACE}" * 30, "a" * 100 + "é"]
        path = self.file_of(record({"text": bytes_list([t.encode()]), "words": bytes_list([t.encode()] * (i % 3))})
                            for i, t in enumerate(texts))
        found = read(self.arrow("--arrow-type", "text=utf8", "--arrow-type", "words=utf8", path))
        self.assertEqual(found[0].schema.field("text").type, pa.large_string())
        self.assertEqual(rows(found, "text"), texts)
        self.assertEqual(rows(found, "words"), [[t] * (i % 3) for i, t in enumerate(texts)])
        broken = self.file_of(record({"text": bytes_list([b"fine"] if i != 5 else [b"12345678\xc3"])}) for i in range(9))
        self.assert_broken(run("presto-load", "-q", "--arrow-type", "text=utf8", "--format", "arrow", broken), 1,
                           "sample 5", "not UTF-8")
        self.assertEqual(rows(read(self.arrow(broken)), "text")[5], b"12345678\xc3")

    def test_raw_records_are_one_binary_column(self):
        found = read(self.arrow("--raw-records", self.stored))
        frames = test_npy.read(self.load("-q", "-b", "64", "--raw-records", "--format", "npy", self.stored))
        self.assertEqual(found[0].schema.names, ["record"])
        self.assertEqual(rows(found, "record"), [b["record"][i] for b in frames for i in range(len(b["record"]))])

    # ---- one schema ----

    def assert_broken(self, done, code, *parts):
        """Fails with such a message, and what is on stdout is no whole stream."""
        self.assertEqual(done.returncode, code, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)
        with self.assertRaises((pa.ArrowInvalid, OSError)):
            read(done.stdout)

    def test_features_that_change_are_refused_or_lists(self):
        path = self.file_of(record({"x": int64_list(range(2 + i // 4)), "label": int64_list([i])}) for i in range(12))
        self.assert_broken(run("presto-load", "-q", "-b", "4", "--format", "arrow", path), 1, "feature 'x'", "--arrow-type",
                           "samples 4 to 7")
        found = read(self.arrow("-b", "4", "--arrow-type", "x=list", path))
        self.assertEqual(rows(found, "x"), [list(range(2 + i // 4)) for i in range(12)])
        found = read(self.arrow("-b", "5", path))  # ragged in the first batch, dense in the last one
        self.assertEqual(rows(found, "x"), [list(range(2 + i // 4)) for i in range(12)])

    def test_features_that_come_and_go(self):
        path = self.file_of(record({"x": int64_list([i, i]), **({"maybe": bytes_list([b"\0"])} if i % 5 == 3 else {})})
                            for i in range(20))
        found = read(self.arrow("-b", "5", path))
        self.assertEqual(rows(found, "maybe"), [[b"\0"] if i % 5 == 3 else [] for i in range(20)])
        self.assert_broken(run("presto-load", "-q", "-b", "2", "--format", "arrow", path), 1, "'maybe'", "--features")
        found = read(self.arrow("-b", "2", "--skip", "2", path))
        self.assertEqual(rows(found, "maybe"), [[b"\0"] if i % 5 == 3 else [] for i in range(2, 20)])

    def test_empty_inputs_and_features_without_values(self):
        self.assertEqual(read(self.arrow(self.file_of([]))), [])
        self.assertEqual(pa.ipc.open_stream(self.arrow(self.file_of([]))).schema.names, [])
        nothing = read(self.arrow("-b", "4", self.file_of(record({}) for _ in range(10))))
        self.assertEqual(([b.num_rows for b in nothing], nothing[0].num_columns), ([4, 4, 2], 0))
        empty = self.file_of(record({"x": int64_list([]), "b": bytes_list([b""])}) for _ in range(10))
        found = read(self.arrow("-b", "4", empty))
        self.assertEqual((rows(found, "x"), rows(found, "b")), ([[]] * 10, [b""] * 10))

    def schema(self, *arguments):
        """That of a stream which begins behind its last sample."""
        samples = sum(batch.num_rows for batch in pa.ipc.open_stream(self.arrow(*arguments)))
        reader = pa.ipc.open_stream(self.arrow("--skip", samples, *arguments))
        self.assertEqual(list(reader), [])
        return reader.schema

    def test_a_stream_without_samples_has_the_columns_of_others(self):
        """Those that are declared: by a dataset, or by a pipeline and its steps; chosen, padded, lists or texts."""
        few = self.write("-u", "resized", "--limit", "5")
        raw = ["-p", self.pipeline, self.make_photos()]
        for arguments in ([self.stored], ["--cache", "memory:1MiB", self.stored], [*raw], ["--features", "key,label", self.stored],
                          ["--to", "concatenated", *raw], ["--pad", "key=0:40", self.stored], ["--raw-records", self.stored],
                          ["--arrow-type", "image=list", "--arrow-type", "key=utf8", self.stored],
                          ["--mix", f"{self.stored}=1", "--mix", f"{few}=1"]):
            whole = pa.ipc.open_stream(self.arrow("--limit", "3", *arguments)).schema
            self.assertEqual(self.schema(*arguments), whole, arguments)
            self.assertGreater(len(whole), 0)
        # Photos may differ in size: a list, and their shapes.
        schema = self.schema("--to", "decoded", *raw)
        self.assertEqual((schema.names[:2], schema.field("image").type), (["image", "image.shape"], pa.large_list(pa.uint8())))
        self.assertEqual(schema.field("image.shape").type, pa.list_(pa.int64(), 3))
        with_types = self.schema("--pad", "key=0", self.stored)
        self.assertEqual(with_types.field("key").type, pa.large_list(pa.uint8()))

    def test_a_stream_without_samples_of_which_nothing_is_known_has_no_columns(self):
        path = self.write_rows(self.make_rows(5, self.random))
        source = self.new("arrays")
        source.mkdir()
        np.save(source / "a.npy", np.ones(3, "f4"))
        for arguments in ([path], ["--features", "tokens,label", path], ["--arrow-type", "tokens=list", path], ["-p", "npy", source]):
            self.assertEqual(self.schema(*arguments).names, [], arguments)

    # ---- the stream's form ----

    def test_buffers_are_aligned_to_64_bytes(self):
        data = self.arrow("-b", "7", self.stored)
        aligned = np.empty(len(data) + 64, np.uint8)
        aligned = aligned[-aligned.ctypes.data % 64 :][: len(data)]
        aligned[:] = np.frombuffer(data, np.uint8)
        for batch in pa.ipc.open_stream(pa.py_buffer(aligned)):
            for column in batch.columns:
                storage = column.storage if isinstance(column, pa.ExtensionArray) else column
                addresses = [b.address for b in storage.buffers() if b is not None and b.size > 0]
                self.assertEqual([a % 64 for a in addresses], [0] * len(addresses))
                self.assertTrue(all(0 <= a - aligned.ctypes.data < len(data) for a in addresses))

    def test_a_stream_cut_anywhere_is_not_taken_for_whole(self):
        path = self.file_of(record({"label": int64_list([i]), "blob": bytes_list([b"x" * i])}) for i in range(6))
        data = self.arrow("-b", "3", path)
        self.assertEqual(sum(b.num_rows for b in read(data)), 6)
        # By the format a stream may end between two messages. presto-load ends no write there.
        boundaries = [found.start() for found in re.finditer(rb"\xff\xff\xff\xff", data)][1:]
        self.assertEqual(len(boundaries), 3)
        for cut in set(range(len(data))) - set(boundaries):
            with self.assertRaises((pa.ArrowInvalid, OSError), msg=f"cut at {cut} of {len(data)}"):
                read(data[:cut])

    def test_a_run_that_fails_or_is_killed_is_not_whole(self):
        stored = [record({"label": int64_list([i])}) for i in range(50)]
        damaged = bytearray(b"".join(stored))
        damaged[len(b"".join(stored[:30])) + 14] ^= 1
        path = self.file_of([bytes(damaged)])
        self.assert_broken(run("presto-load", "-q", "-b", "8", "--format", "arrow", path), 3, "record 30")
        for number in (signal.SIGTERM, signal.SIGKILL):
            process = subprocess.Popen([TOOLS / "presto-load", "-q", "-e", "1000000", "--format", "arrow", self.stored],
                                       stdout=subprocess.PIPE)
            data = process.stdout.read(300_000)
            process.send_signal(number)
            data += process.stdout.read()
            process.stdout.close()
            self.assertEqual(process.wait(), -number)
            with self.assertRaises((pa.ArrowInvalid, OSError)):
                read(data)

    def test_a_pipe_is_read_while_it_is_written(self):
        with subprocess.Popen([TOOLS / "presto-load", "-q", "-e", "1000000", "-b", "8", "--format", "arrow", self.stored],
                              stdout=subprocess.PIPE) as process:
            reader = pa.ipc.open_stream(process.stdout)
            self.assertEqual([reader.read_next_batch().num_rows for _ in range(9)], [8] * 9)
            process.stdout.close()
            self.assertEqual(process.wait(), 0)  # a reader that stops early ends the program

    # ---- position and share ----

    def test_skip_state_and_ranks(self):
        whole = rows(read(self.arrow("--shuffle", "full", self.stored)), "key")
        self.assertEqual(rows(read(self.arrow("--shuffle", "full", "--skip", "9", self.stored)), "key"), whole[9:])
        state = self.new("state")
        arguments = ["--shuffle", "full", "--state", state, "-b", "5"]
        first = rows(read(self.arrow(*arguments, "--limit", "10", self.stored)), "key")
        self.assertEqual(first + rows(read(self.arrow(*arguments, self.stored)), "key"), whole)
        self.assertEqual(read(self.arrow(*arguments, self.stored)), [])  # nothing remains
        shares = [rows(read(self.arrow("--shuffle", "full", "--rank", r, "--world", 3, self.stored)), "key") for r in range(3)]
        self.assertEqual([shares[i % 3][i // 3] for i in range(len(whole))], whole)
        self.assertEqual([b.num_rows for b in read(self.arrow("-b", "7", "--drop-last", self.stored))], [7, 7, 7])

    def test_usage(self):
        for arguments, part in ((["--format", "npy", "--arrow-type", "x=list"], "--format arrow"),
                                (["--format", "arrow", "--arrow-type", "x"], "x"), (["--format", "arrow", "--arrow-type", "=utf8"], ""),
                                (["--format", "arrow", "--arrow-type", "x=float"], "float")):
            self.assert_usage(run("presto-load", *arguments, self.stored), "--arrow-type", part)
        self.assert_fails(run("presto-load", "--format", "arrow", "--arrow-type", "nope=list", self.stored), 1, "nope")
        self.assert_fails(run("presto-load", "--format", "arrow", "--arrow-type", "label=utf8", self.stored), 1, "no text")

    # ---- other readers ----

    def table(self):
        return self.write_rows([{**row, "words": [b"w"]} for row in self.make_rows(30, self.random)])

    def other(self, name):
        if importlib.util.find_spec(name) is None:
            self.skipTest(f"{name} is not installed")
        return importlib.import_module(name)

    def test_polars_reads_it(self):
        polars = self.other("polars")
        path = self.table()
        frame = polars.read_ipc_stream(io.BytesIO(self.arrow("--features", "label,tokens,blob", path)))
        table = pa.ipc.open_stream(self.arrow("--features", "label,tokens,blob", path)).read_all()
        for name in ("label", "tokens", "blob"):
            self.assertEqual(frame[name].to_list(), table.column(name).to_pylist())

    def test_duckdb_reads_it(self):
        duckdb = self.other("duckdb")
        stream = pa.ipc.open_stream(self.arrow("--features", "label,tokens", self.table()))
        self.assertEqual(duckdb.sql("select count(*), sum(label) from stream").fetchall(), [(30, sum(range(30)))])

    def test_pandas_reads_it(self):
        self.other("pandas")
        frame = pa.ipc.open_stream(self.arrow("--features", "label,blob,box", self.table())).read_pandas()
        self.assertEqual(frame["label"].tolist(), list(range(30)))


if __name__ == "__main__":
    main()
