#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SequenceExamples and serialized tensors that TensorFlow wrote, with the values that TensorFlow reads: through the Python package,
presto.tf, every format of presto-load, and a recoded dataset. Runs in the tests' Python environment; PRESTO_TOOLS is the folder of the
programs.
"""
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import presto  # noqa: E402
import presto.tf  # noqa: E402

TOOLS = pathlib.Path(os.environ["PRESTO_TOOLS"])
COUNT = 24
INT, FLOAT, BYTES = "int64_list", "float_list", "bytes_list"
KINDS = {INT: tf.int64, FLOAT: tf.float32, BYTES: tf.string}


def run(program, *arguments, code=0):
    done = subprocess.run([TOOLS / program, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    assert done.returncode == code, (done.returncode, done.stderr.decode())
    return done.stdout


def write(path, records):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record if isinstance(record, bytes) else record.SerializeToString())
    return path


def rows_of(value, count):
    """The rows of a feature of a presto.Batch as NumPy arrays or lists of bytes, whatever its layout."""
    return [value[i] for i in range(count)]


def plain(value):
    """Nested lists of Python's numbers and bytes."""
    if isinstance(value, (tf.Tensor, tf.RaggedTensor, np.ndarray, np.generic)):
        value = value.to_list() if isinstance(value, tf.RaggedTensor) else np.asarray(value).tolist()
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value


class Sequences(unittest.TestCase):
    # name -> kind, and how many values each step has
    LISTS = {"frames": (FLOAT, lambda n, step: 2), "ids": (INT, lambda n, step: 1), "words": (BYTES, lambda n, step: 1),
             "tokens": (INT, lambda n, step: (n + step) % 3), "pairs": (BYTES, lambda n, step: 2),
             "widths": (FLOAT, lambda n, step: 1 + n % 3), "both": (FLOAT, lambda n, step: 1)}

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="presto-live-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.records = [cls.record(n).SerializeToString() for n in range(COUNT)]
        cls.path = write(cls.folder / "seq.tfrecord", cls.records)
        lists = {name: tf.io.RaggedFeature(KINDS[kind], row_splits_dtype=tf.int64) for name, (kind, _) in cls.LISTS.items()}
        context = {"label": tf.io.FixedLenFeature([], tf.int64), "name": tf.io.FixedLenFeature([], tf.string),
                   "both": tf.io.FixedLenFeature([], tf.int64), "weights": tf.io.RaggedFeature(tf.float32, row_splits_dtype=tf.int64)}
        cls.context, cls.lists, _ = tf.io.parse_sequence_example(cls.records, context, lists)
        cls.wanted = cls.expected()

    @classmethod
    def record(cls, n):
        record = tf.train.SequenceExample()
        record.context.feature["label"].int64_list.value.append(n - 3)
        record.context.feature["name"].bytes_list.value.append(b"record %d" % n)
        record.context.feature["both"].int64_list.value.append(n * n)
        record.context.feature["weights"].float_list.value.extend([n / 4] * (n % 3 + 1))
        for name, (kind, values) in cls.LISTS.items():
            steps = record.feature_lists.feature_list[name].feature
            for step in range((n * 7) % 5 + (n != 5)):
                new = [n * 1000 + step * 10 + i for i in range(values(n, step))]
                if kind == BYTES:
                    new = [b"%d" % v * (v % 3) for v in new]
                getattr(steps.add(), kind).value.extend(new)
        return record

    @classmethod
    def expected(cls):
        """What each row is, feature by feature, from TensorFlow's ragged [batch, steps, values]."""
        wanted = {name: plain(value) for name, value in cls.context.items()}
        for name, value in cls.lists.items():
            rows = plain(value)
            if name in ("tokens", "pairs"):
                wanted[name] = [[v for step in row for v in step] for row in rows]
                wanted[name + "/row_lengths"] = [[len(step) for step in row] for row in rows]
            else:
                called = "feature_lists/both" if name == "both" else name
                wanted[called] = rows if name in ("frames", "widths") else [[v for step in row for v in step] for row in rows]
        return wanted

    def assert_row(self, name, number, row, where=""):
        self.assertEqual(plain(row), self.wanted[name][number], (where, name, number))

    def check_batches(self, batches, names=None, where=""):
        number = 0
        for batch in batches:
            self.assertEqual(sorted(batch), sorted(names or self.wanted), where)
            for name, value in batch.items():
                for i in range(batch.rows):
                    self.assert_row(name, number + i, value[i], where)
            number += batch.rows
        self.assertEqual(number, COUNT, where)

    def test_the_package_gives_what_tensorflow_reads(self):
        for batch in (1, 5, COUNT):
            self.check_batches(presto.Loader(self.path, batch), where=f"batch {batch}")
        dataset = presto.open(self.path)
        for number in (0, 5, 17):
            for name, value in dataset[number].items():
                self.assert_row(name, number, value)
        shapes = {name: (f.dtype, f.shape) for name, f in dataset.features.items()}
        self.assertEqual(shapes["frames"], ("float32", (None, 2)))
        self.assertEqual(shapes["widths"], ("float32", (None, None)))
        self.assertEqual(shapes["ids"], ("int64", (None,)))
        self.assertEqual(shapes["label"], ("int64", ()))

    def test_filters(self):
        for names, given in ((["frames"], ["frames"]), (["label", "words"], ["label", "words"]),
                             (["tokens"], ["tokens", "tokens/row_lengths"]), (["feature_lists/both"], ["feature_lists/both"]),
                             (["tokens/row_lengths"], ["tokens/row_lengths"])):
            self.check_batches(presto.Loader(self.path, 4, features=names), given, where=names)

    def test_pads_as_a_dense_sequence_feature(self):
        dense = {"frames": tf.io.FixedLenSequenceFeature([2], tf.float32), "ids": tf.io.FixedLenSequenceFeature([], tf.int64)}
        at = 0
        for batch in presto.Loader(self.path, 6, pad={"frames": 0, "ids": 0}):
            wanted = tf.io.parse_sequence_example(self.records[at:at + 6], None, dense)[1]
            for name in dense:
                self.assertTrue(np.array_equal(np.asarray(batch[name]), wanted[name].numpy()), name)
            at += 6

    def test_presto_tf_gives_the_same_ragged_tensors(self):
        at = 0
        for batch in presto.tf.dataset(self.path, 7):
            for name in ("tokens", "pairs", "widths"):
                wanted = self.lists[name][at:at + 7]
                self.assertEqual(plain(batch[name]), plain(wanted), name)
                self.assertEqual(batch[name].ragged_rank, 2)
            self.assertEqual(plain(batch["frames"]), plain(self.lists["frames"][at:at + 7]))
            self.assertEqual(plain(batch["label"]), plain(self.context["label"][at:at + 7]))
            self.assertNotIn("tokens/row_lengths", batch)
            at += 7
        self.assertGreaterEqual(at, COUNT)

    def test_every_format(self):
        names = ",".join(sorted(self.wanted))
        path = self.folder / "stream"
        path.write_bytes(run("presto-load", "-q", "-b", 5, "--format", "npy", "--features", names, self.path))
        with open(path, "rb") as file:
            self.check_batches(presto.npy_stream(file), where="npy")
        import pyarrow as pa
        table = pa.ipc.open_stream(io.BytesIO(run("presto-load", "-q", "-b", 5, "--format", "arrow", self.path))).read_all()
        self.assertEqual(sorted(table.column_names), sorted([*self.wanted, "frames.shape", "widths.shape"]))
        for name in self.wanted:
            rows = table.column(name).to_pylist()
            if name in ("frames", "widths"):
                shapes = table.column(name + ".shape").to_pylist()
                rows = [np.array(row).reshape([d for d in shape if d >= 0] + [0] * (-1 in shape)).tolist()
                        for row, shape in zip(rows, shapes)]
            self.assertEqual(rows, self.wanted[name], ("arrow", name))
        flat = np.frombuffer(run("presto-load", "-q", "--format", "raw", "--pad", "frames=-1:6", "--features", "frames", self.path),
                             np.float32).reshape(COUNT, 6, 2)
        self.assertEqual(flat.tolist(), [row + [[-1, -1]] * (6 - len(row)) for row in self.wanted["frames"]])
        process = subprocess.Popen([TOOLS / "presto-load", "-q", "-b", "5", "--format", f"shm:{self.folder / 'socket'}", self.path])
        with presto.shm_stream(self.folder / "socket") as batches:
            self.check_batches(batches, where="shm")
        self.assertEqual(process.wait(60), 0)

    def test_a_recoded_dataset_has_the_same_features(self):
        out = self.folder / "recoded"
        run("presto-inspect", "recode", "-q", "-c", "zstd", "-s", 3, "-o", out, self.path)
        self.check_batches(presto.Loader(out, 5), where="recoded")
        self.assertIn(b"no faults", run("presto-inspect", "verify", out))
        self.assertEqual(presto.open(out).features["frames"].shape, (None, 2))
        stream = self.folder / "stream.tfrecord"
        stream.write_bytes(run("presto-load", "-q", self.path))
        self.assertEqual([r.numpy() for r in tf.data.TFRecordDataset(str(stream))], self.records)

    def test_steps_on_a_feature_list_and_what_presto_write_keeps(self):
        pipeline = self.folder / "p.yaml"
        pipeline.write_text("name: p\nsource: {type: tfrecord, feature: frames, label: label}\nsteps:\n  - {step: cast, yields: cast, dtype: float64}\n")
        out = self.folder / "written"
        run("presto-write", "-q", "-p", pipeline, "-o", out, self.path)
        for source in (presto.Loader(presto.open(self.path, pipeline=pipeline), 5), presto.Loader(out, 5)):
            number = 0
            for batch in source:
                for i in range(batch.rows):
                    for name in batch:
                        self.assert_row(name, number + i, batch[name][i], "written")
                number += batch.rows
            self.assertEqual(number, COUNT)
        self.assertIn(b"no faults", run("presto-inspect", "verify", out))

    def test_inspect_shows_and_checks_them(self):
        info = json.loads(run("presto-inspect", "info", "--json", self.path))
        self.assertEqual(info["record_kind"], "SequenceExample")
        self.assertTrue({"frames", "tokens", "feature_lists/both"} <= set(info["features"]))
        cat = json.loads(run("presto-inspect", "cat", "--json", "--full", "--record", 3, self.path))
        self.assertIn("frames", json.dumps(cat))
        bad = bytearray(self.records[4])
        at = bad.index(b"frames") + len("frames")
        bad[at + 1] = 0x7F  # the length of the list
        path = write(self.folder / "bad.tfrecord", [*self.records[:4], bytes(bad)])
        self.assertIn(b"bad Example", run("presto-inspect", "verify", path, code=3))

    def test_what_the_first_records_do_not_show_is_an_error(self):
        more = [self.record(n) for n in range(70)]
        more[-1].feature_lists.feature_list["ids"].feature.add().int64_list.value.extend([1, 2])
        path = write(self.folder / "odd.tfrecord", more)
        with self.assertRaises(presto.Error) as caught:
            for _ in presto.Loader(path, 8):
                pass
        self.assertIn('feature list "ids"', str(caught.exception))
        skipped = []
        self.assertEqual(sum(b.rows for b in presto.Loader(path, 8, on_error="skip", on_skip=lambda *a: skipped.append(a[1]))), 69)
        self.assertEqual(skipped, [69])

    def test_odd_messages_as_tensorflow_reads_them(self):
        first, second = tf.train.SequenceExample(), tf.train.SequenceExample()
        first.feature_lists.feature_list["d"].feature.add().int64_list.value.append(1)
        for value in (2, 3):
            second.feature_lists.feature_list["d"].feature.add().int64_list.value.append(value)
        empty = tf.train.SequenceExample()
        empty.feature_lists.feature_list["d"]
        gap = tf.train.SequenceExample()
        gap.feature_lists.feature_list["d"].feature.add().int64_list.value.append(4)
        gap.feature_lists.feature_list["d"].feature.add()
        records = [first.SerializeToString() + second.SerializeToString(), empty.SerializeToString(), gap.SerializeToString()]
        wanted = tf.io.parse_sequence_example(records, None, {"d": tf.io.RaggedFeature(tf.int64)})[1]["d"]
        path = write(self.folder / "messages.tfrecord", records)
        (batch,) = presto.tf.dataset(path, 3)
        self.assertEqual(plain(batch["d"]), plain(wanted))
        mixed = tf.train.SequenceExample()
        mixed.feature_lists.feature_list["m"].feature.add().int64_list.value.append(1)
        mixed.feature_lists.feature_list["m"].feature.add().float_list.value.append(1)
        path = write(self.folder / "mixed.tfrecord", [mixed])
        with self.assertRaisesRegex(presto.Error, "different kinds"):
            list(presto.Loader(path))


class Tensors(unittest.TestCase):
    DTYPES = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="presto-live-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.path = write(cls.folder / "t.tfrecord", [cls.record(n) for n in range(COUNT)])

    @classmethod
    def tensors(cls, n):
        random = np.random.default_rng(n)
        found = {d: tf.constant((random.random((2, 3)) * 100).astype(d)) for d in cls.DTYPES}
        found["scalar"] = tf.constant(n, tf.int32)
        found["varies"] = tf.constant(random.random((n % 4, 2)).astype(np.float32))
        found["rank"] = tf.constant(random.random((2,) * (n % 2 + 1)).astype(np.float32))
        return found

    @classmethod
    def record(cls, n, **others):
        features = {name: tf.io.serialize_tensor(value).numpy() for name, value in cls.tensors(n).items()}
        features = {**features, "jpeg": b"\xff\xd8\xff bytes", "text": b"text %d" % n, **others}
        made = {k: tf.train.Feature(bytes_list=tf.train.BytesList(value=[v])) for k, v in features.items()}
        made["label"] = tf.train.Feature(int64_list=tf.train.Int64List(value=[n]))
        return tf.train.Example(features=tf.train.Features(feature=made))

    def check(self, batches, where):
        number = 0
        for batch in batches:
            for i in range(batch.rows):
                for name, value in self.tensors(number + i).items():
                    got = np.asarray(batch[name][i])
                    self.assertEqual(got.dtype, value.numpy().dtype, (where, name))
                    self.assertEqual(got.tolist(), value.numpy().tolist(), (where, name, number + i))
                self.assertEqual(bytes(batch["jpeg"][i]), b"\xff\xd8\xff bytes")
                self.assertEqual(int(batch["label"][i]), number + i)
            number += batch.rows
        self.assertEqual(number, COUNT, where)

    def test_they_are_decoded_alike_everywhere(self):
        self.check(presto.Loader(self.path, 5), "python")
        stream = self.folder / "stream"
        stream.write_bytes(run("presto-load", "-q", "-b", 5, "--format", "npy", self.path))
        with open(stream, "rb") as file:
            self.check(presto.npy_stream(file), "npy")
        import pyarrow as pa
        table = pa.ipc.open_stream(io.BytesIO(run("presto-load", "-q", "-b", 5, "--format", "arrow", self.path))).read_all()
        for name in ("float32", "uint8", "scalar"):
            self.assertEqual([np.ravel(v).tolist() for v in table.column(name).to_pylist()],
                             [self.tensors(n)[name].numpy().ravel().tolist() for n in range(COUNT)], name)
        info = json.loads(run("presto-inspect", "info", "--json", self.path))["features"]
        features = presto.open(self.path).features
        self.assertEqual((features["float32"].dtype, features["float32"].shape), ("float32", (2, 3)))
        self.assertEqual(features["varies"].shape, (None, 2))
        self.assertEqual(features["text"].dtype, "string")
        self.assertIn("float32", json.dumps(info["float32"]))
        out = self.folder / "recoded"
        run("presto-inspect", "recode", "-q", "-c", "zstd", "-o", out, self.path)
        self.check(presto.Loader(out, 5), "recoded")
        self.assertIn(b"no faults", run("presto-inspect", "verify", out))

    def test_raw_keeps_bytes(self):
        out = self.folder / "kept"
        run("presto-inspect", "recode", "-q", "-o", out, self.path)
        for path in (self.path, out):
            (batch,) = presto.Loader(presto.open(path, tensors="raw"), COUNT)
            stream = self.folder / "raw"
            stream.write_bytes(run("presto-load", "-q", "--tensors", "raw", "-b", COUNT, "--format", "npy", path))
            with open(stream, "rb") as file:
                (streamed,) = presto.npy_stream(file)
            for n in range(COUNT):
                for name, value in self.tensors(n).items():
                    for found in (batch, streamed):
                        self.assertEqual(bytes(found[name][n]), tf.io.serialize_tensor(value).numpy(), (path, name))

    def test_bytes_that_once_are_none_stay_bytes(self):
        path = write(self.folder / "some.tfrecord", [self.record(n, **({"int8": b"no tensor"} if n == 9 else {})) for n in range(COUNT)])
        (batch,) = presto.Loader(path, COUNT)
        self.assertEqual(bytes(batch["int8"][9]), b"no tensor")
        self.assertEqual(bytes(batch["int8"][8]), tf.io.serialize_tensor(self.tensors(8)["int8"]).numpy())
        other = write(self.folder / "dtypes.tfrecord",
                      [self.record(n, one=tf.io.serialize_tensor(tf.cast(n, tf.int32 if n % 2 else tf.int64)).numpy()) for n in range(4)])
        (batch,) = presto.Loader(other, 4)
        self.assertEqual(bytes(batch["one"][1]), tf.io.serialize_tensor(tf.constant(1, tf.int32)).numpy())
        self.assertIn("differing dtypes: one", "".join(presto.open(other).notes))
        self.assertEqual(presto.open(self.path).notes, [])

    def test_tensors_that_stay_bytes_are_told(self):
        texts = tf.io.serialize_tensor(tf.constant(["a", "bc"])).numpy()
        path = write(self.folder / "texts.tfrecord", [self.record(n, texts=texts) for n in range(4)])
        with self.assertWarnsRegex(presto.NoteWarning, "serialized tensors stay bytes, .*: texts$"):
            (batch,) = presto.Loader(path, 4)
        self.assertEqual(bytes(batch["texts"][3]), texts)
        steps = [tf.io.serialize_tensor(tf.constant([n, 2])).numpy() for n in range(3)]
        lists = {name: tf.train.FeatureList(feature=[tf.train.Feature(bytes_list=tf.train.BytesList(value=[v])) for v in values])
                 for name, values in (("steps", steps), ("words", [b"x", b"yz"]))}
        path = write(self.folder / "steps.tfrecord", [tf.train.SequenceExample(feature_lists=tf.train.FeatureLists(feature_list=lists))] * 3)
        self.assertRegex("".join(presto.open(path).notes), "serialized tensors stay bytes, .*: steps$")

    def test_a_late_record_that_is_none_says_what_to_do(self):
        records = [self.record(n % 9) for n in range(80)]
        records[70] = self.record(1, float32=b"late")
        path = write(self.folder / "late.tfrecord", records)
        with self.assertRaises(presto.Error) as caught:
            list(presto.Loader(path, 8))
        self.assertIn("raw", str(caught.exception))
        self.assertEqual(sum(b.rows for b in presto.Loader(presto.open(path, tensors="raw"), 8)), 80)

    def test_presto_tf_and_a_pipeline(self):
        names = ["float32", "scalar", "label", "text"]
        at = 0
        for batch in presto.tf.dataset(presto.open(self.path, features=names), 6):
            for i in range(6):
                self.assertTrue(np.array_equal(batch["float32"][i], self.tensors(at + i)["float32"]))
            at += 6
        pipeline = self.folder / "p.yaml"
        pipeline.write_text("name: p\nsource: {type: tfrecord, feature: uint8, label: label}\nsteps:\n  - {step: cast, yields: cast, dtype: float32}\n")
        (batch,) = presto.Loader(presto.open(self.path, pipeline=pipeline), COUNT)
        for n in range(COUNT):
            self.assertEqual(np.asarray(batch["uint8"][n]).tolist(), self.tensors(n)["uint8"].numpy().astype(np.float32).tolist())
            self.assertEqual(np.asarray(batch["int16"][n]).tolist(), self.tensors(n)["int16"].numpy().tolist())


if __name__ == "__main__":
    unittest.main(verbosity=2 if "-v" in sys.argv else 1)
