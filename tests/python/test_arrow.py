#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The loader as an Arrow stream: what pyarrow reads is what batches hold, on the same memory."""
import errno
import gc
import json
import shutil
import threading

import pyarrow as pa

import test_reading
from case import PythonCase, main, np, plain, presto


class Arrow(PythonCase):
    foreign = test_reading.Reading.foreign

    def assert_same(self, column, value):
        """A column of pyarrow's holds the values of a batch."""
        if isinstance(value, presto.Bytes):
            self.assertEqual(column.to_pylist(), list(value))
        elif isinstance(value, presto.Ragged):
            self.assertEqual(column.to_pylist(), [row.tolist() for row in value])
        elif value.ndim > 1:
            self.assertIsInstance(column.type, pa.FixedShapeTensorType)
            self.assertEqual(tuple(column.type.shape), value.shape[1:])
            self.assertEqual(plain(column.to_numpy_ndarray()), plain(value))
        else:
            self.assertEqual(plain(column.to_numpy()), plain(value))

    def assert_stream(self, source, **options):
        wanted = list(presto.Loader(source, **options))
        reader = pa.RecordBatchReader.from_stream(presto.Loader(source, **options))
        found = list(reader)
        self.assertEqual([b.num_rows for b in found], [b.rows for b in wanted])
        for ours, theirs in zip(found, wanted):
            ours.validate(full=True)
            self.assertEqual(ours.schema.names, list(theirs))
            for name, value in theirs.items():
                self.assert_same(ours.column(name), value)
        return reader.schema

    def test_dense_features_bytes_and_labels(self):
        schema = self.assert_stream(self.stored, batch=7, shuffle="full", seed=3, epochs=2)
        self.assertEqual(schema.field("image").type, pa.fixed_shape_tensor(pa.float32(), (32, 40, 3)))
        self.assertEqual((schema.field("key").type, schema.field("label").type), (pa.large_binary(), pa.int64()))

    def test_ragged_features(self):
        file, _ = self.foreign()
        schema = self.assert_stream(file, batch=9)
        self.assertEqual(schema.field("tokens").type, pa.large_list(pa.int64()))
        schema = self.assert_stream(file, batch=9, pad={"tokens": (0, 8)})
        self.assertEqual(schema.field("tokens").type, pa.fixed_shape_tensor(pa.int64(), (8,)))

    def test_a_batch_with_another_schema_is_an_error(self):
        file, _ = self.foreign()
        with self.assertRaisesRegex(pa.ArrowInvalid, "pad them"):
            list(pa.RecordBatchReader.from_stream(presto.Loader(file, batch=1)))

    def test_arrays_outlive_the_loader_and_give_their_memory_back(self):
        loader = presto.Loader(self.stored, batch=7)
        wanted = [batch["image"].copy() for batch in presto.Loader(self.stored, batch=7)]
        kept = [batch.column("image") for batch in pa.RecordBatchReader.from_stream(loader)]
        self.assertEqual(kept[0].storage.flatten().buffers()[1].address % 64, 0)
        loader.close()
        del loader
        gc.collect()
        for array, copy in zip(kept, wanted):
            self.assertTrue(np.array_equal(array.to_numpy_ndarray(), copy))
        loader = presto.Loader(self.stored, batch=7, epochs=2, per_epoch=True)
        table = pa.RecordBatchReader.from_stream(loader).read_all()
        self.assertEqual((table.num_rows, loader.held[0]), (24, 4))
        del table
        gc.collect()
        self.assertEqual(loader.held, (0, 0))

    def test_failures_are_told_and_streams_may_be_dropped(self):
        loader = presto.Loader(self.stored, batch=1, hold=100_000)
        with self.assertRaisesRegex(OSError, "HeldError: .* more than `hold` allows"):
            pa.RecordBatchReader.from_stream(loader).read_all()
        for taken in range(3):
            reader = pa.RecordBatchReader.from_stream(presto.Loader(self.stored, batch=4))
            for _ in range(taken):
                reader.read_next_batch()
            del reader
        presto.Loader(self.stored).__arrow_c_stream__()  # a capsule that nobody takes
        gc.collect()

    def test_ctrl_c_is_no_error_of_the_stream_alone(self):
        """Whoever goes on after the error, as with another file, gets it."""
        for kind in (KeyboardInterrupt, SystemExit):
            def tell(*_, kind=kind):
                raise kind("now")

            folder = self.new("damaged")
            shutil.copytree(self.stored, folder)
            shard = sorted(folder.glob("*.tfrecord"))[0]
            data = bytearray(shard.read_bytes())
            data[40] ^= 1
            shard.write_bytes(data)
            loader = presto.Loader(folder, 4, on_error="skip", on_skip=tell)
            with self.assertRaises(kind) as raised:
                try:
                    pa.RecordBatchReader.from_stream(loader)
                except OSError as error:
                    self.assertEqual(str(error).partition(". Detail")[0], f"[Errno {errno.ECANCELED}] {kind.__name__}: now")
                    for _ in range(1000):
                        pass
            self.assertEqual(str(raised.exception), "now")

    def test_the_position_counts_what_the_stream_gave(self):
        loader = presto.Loader(self.stored, batch=5)
        reader = pa.RecordBatchReader.from_stream(loader)
        first = reader.read_next_batch().column("label").to_pylist()
        state = json.loads(json.dumps(loader.state_dict()))
        rest = [n for batch in loader for n in batch["label"].tolist()]
        again = presto.Loader(self.stored, batch=5)
        again.load_state_dict(state)
        self.assertEqual([n for batch in again for n in batch["label"].tolist()], rest)
        self.assertEqual(first + rest, [int(s["label"]) for s in presto.open(self.stored)])

    def test_another_thread_reads(self):
        reader = pa.RecordBatchReader.from_stream(presto.Loader(self.stored, batch=5, threads=2))
        found = []
        worker = threading.Thread(target=lambda: found.extend(b.num_rows for b in reader))
        worker.start()
        worker.join(120)
        self.assertEqual(sum(found), 24)

    def test_an_empty_stream_has_no_batches_and_the_schema_of_others(self):
        """Of images, labels, texts; of rows that differ; of columns that are chosen or padded."""
        table = self.new("table")
        with presto.Writer(table) as writer:
            for i in range(4):
                writer.add({"x": np.zeros((2, i), np.float32), "n": [1] * i, "flag": True, "word": f"{i}", "words": ["a"] * i,
                            "half": np.float16(i)})
        raw = presto.open(self.make_photos(), pipeline="cv", to="decoded")
        for source, options in ((self.stored, {}), (self.stored, {"features": ["label", "key"]}), (table, {}), (raw, {}),
                                (table, {"pad": {"n": (0, 5), "word": (0, 3)}}), (table, {"features": ["words", "x"]})):
            wanted = pa.RecordBatchReader.from_stream(presto.Loader(source, batch=4, **options)).schema
            reader = pa.RecordBatchReader.from_stream(presto.Loader(source, batch=25, drop_last=True, **options))
            self.assertEqual(reader.schema, wanted)
            self.assertGreater(len(wanted), 1)
            self.assertEqual(list(reader), [])
            self.assertEqual(reader.schema, wanted)
        file, _ = self.foreign()  # declares nothing
        arrays = self.new("arrays")
        arrays.mkdir()
        np.save(arrays / "a.npy", np.ones(3, np.float32))  # the dtype of each file is its own
        for source in (file, presto.open(arrays, pipeline="npy")):
            reader = pa.RecordBatchReader.from_stream(presto.Loader(source, batch=99, drop_last=True))
            self.assertEqual((len(reader.schema), list(reader)), (0, []))


class EmptyLists(PythonCase):
    """A list without values is nothing in a record. Batches have it nevertheless."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lists = [[] if i % 3 != 1 else [i] * (i // 3 + 1) for i in range(12)]
        with presto.Writer(cls.folder / "lists") as writer:
            for i, tokens in enumerate(cls.lists):
                # Of a large array a batch of one row is a copy, not a view.
                writer.add({"y": i, "large": np.zeros(5000, np.uint8), "tokens": tokens, "words": [f"w{t}" for t in tokens]})
        cls.dataset = presto.open(cls.folder / "lists")

    def test_a_batch_has_lists_that_all_of_its_rows_lack(self):
        for batch, threads, shuffle in ((1, 0, None), (2, 0, None), (2, 2, None), (5, 2, "full"), (12, 1, None)):
            for features in (None, ["tokens", "y"], ["tokens"]):
                for found in presto.Loader(self.dataset, batch, threads=threads, shuffle=shuffle, seed=1, features=features):
                    self.assertIn("tokens", found)
                    tokens = [row.tolist() for row in found["tokens"]]
                    self.assertEqual(tokens, [self.lists[n] for n in found.numbers.tolist()])
                    self.assertEqual("words" in found, features is None)
        for found in presto.Loader(self.dataset, 2, features=["tokens"], pad={"tokens": (7, 5)}):
            self.assertEqual(found["tokens"].tolist(), [self.lists[n] + [7] * (5 - len(self.lists[n])) for n in found.numbers.tolist()])
        self.assertEqual(self.dataset[0]["tokens"].tolist(), [])
        self.assertEqual(self.dataset[0]["tokens"].dtype, np.int64)

    def test_a_list_of_one_string_is_a_list(self):
        for i in range(12):
            wanted = [f"w{t}".encode() for t in self.lists[i]]
            self.assertEqual(list(self.dataset[i]["words"]), wanted)
            self.assertEqual([list(row) for found in presto.Loader(self.dataset, 1) for row in found["words"]][i], wanted)

    def test_lists_beside_steps_are_lists(self):
        pipeline = {"name": "cast", "source": {"type": "files", "match": ["*.jpg"]},
                    "steps": [{"step": "read-file", "yields": "file"}, {"step": "decode-image", "yields": "pixels"}, {"step": "cast", "dtype": "float32"}]}
        with presto.Writer(self.folder / "pixels", main="pixels") as writer:
            for i, tokens in enumerate(self.lists):
                writer.add({"pixels": np.full((40, 42, 3), i, np.uint8), "tokens": tokens, "words": [f"w{t}" for t in tokens]})
        dataset = presto.open(self.folder / "pixels", pipeline=pipeline, from_="pixels")
        for batch in (1, 2, 5):
            rows = [(float(p.flat[0]), t.tolist(), list(w)) for found in presto.Loader(dataset, batch)
                    for p, t, w in zip(found["pixels"], found["tokens"], found["words"])]
            self.assertEqual(rows, [(float(i), t, [f"w{k}".encode() for k in t]) for i, t in enumerate(self.lists)])

    def test_arrow_reads_all_of_it(self):
        for batch in (2, 5):
            table = pa.RecordBatchReader.from_stream(presto.Loader(self.dataset, batch)).read_all().to_pydict()
            self.assertEqual(table["tokens"], self.lists)
            self.assertEqual(table["words"], [[f"w{t}".encode() for t in tokens] for tokens in self.lists])


if __name__ == "__main__":
    main()
