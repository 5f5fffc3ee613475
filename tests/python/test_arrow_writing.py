#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables of pyarrow, pandas and others become datasets: the bytes of Writer.add() of the same rows, for random schemas and slices."""
import ctypes
import gc
import itertools
import signal
import threading
import warnings

import pyarrow as pa

from case import PythonCase, cli, main, np, plain, presto

ROWS = 40
NUMBERS = {"int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(), "uint8": pa.uint8(), "uint16": pa.uint16(),
           "uint32": pa.uint32(), "uint64": pa.uint64(), "float16": pa.float16(), "float32": pa.float32(), "float64": pa.float64(),
           "bool": pa.bool_()}
TEXTS = [pa.string(), pa.large_string(), pa.string_view()]
BYTES = [pa.binary(), pa.large_binary(), pa.binary_view()]


class Column:
    """Random values of a type: as Arrow has them, and as Writer.add() takes them."""

    def __init__(self, random, depth=0):
        self.random = random
        kinds = ["number", "number", "text", "bytes", "fixed", "dictionary", "list", "large", "same", "lists", "tensor"]
        self.kind = random.choice(kinds + ["struct"] * (2 if depth < 2 else 0))
        self.nulls = random.choice([0, 0, 0.3])
        self.dtype = random.choice(list(NUMBERS))
        number = NUMBERS[self.dtype]
        self.leaf = random.choice([number, random.choice(TEXTS)])
        self.size = random.randrange(1, 5)
        if self.kind == "struct":
            self.fields = {name: Column(random, depth + 1) for name in random.sample("xyzuvw", random.randrange(1, 4))}
        self.type = {
            "number": lambda: number,
            "text": lambda: random.choice(TEXTS),
            "bytes": lambda: random.choice(BYTES),
            "fixed": lambda: pa.binary(5),
            "dictionary": lambda: pa.dictionary(random.choice([pa.int8(), pa.uint16(), pa.int64()]),
                                                random.choice([pa.string(), pa.int64(), pa.float32(), pa.int16()])),
            "list": lambda: pa.list_(self.leaf),
            "large": lambda: pa.large_list(self.leaf),
            "same": lambda: pa.list_(self.leaf, self.size),
            "lists": lambda: random.choice([pa.list_, pa.large_list])(random.choice([pa.list_(number), pa.list_(number, self.size)])),
            "tensor": lambda: pa.fixed_shape_tensor(number, (2, self.size)),
            "struct": lambda: pa.struct([(name, column.type) for name, column in self.fields.items()]),
        }[self.kind]()

    def number(self, dtype):
        if dtype == "bool":
            return self.random.random() < 0.5
        if dtype.startswith("float"):
            return float(np.dtype(dtype).type(self.random.uniform(-1000, 1000)))
        bounds = np.iinfo(dtype)
        low, high = self.random.choice([(int(bounds.min), int(bounds.max)), (0, 100)])
        return self.random.randint(low, high)

    def text(self):
        return "".join(self.random.choices("aé漢 \n", k=self.random.choice([0, 1, 11, 12, 13, 40])))

    def items(self, type_, count):
        if pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
            return [self.text() for _ in range(count)]
        return [self.number(self.dtype) for _ in range(count)]

    def value(self):
        """As Arrow's from_pylist takes it."""
        if self.random.random() < self.nulls:
            return None
        kind, random = self.kind, self.random
        if kind == "number":
            return self.number(self.dtype)
        if kind == "dictionary":
            of = self.type.value_type
            return self.text() if of == pa.string() else self.number({"float": "float32"}.get(str(of), str(of)))
        if kind == "text":
            return self.text()
        if kind in ("bytes", "fixed"):
            return random.randbytes(5 if kind == "fixed" else random.choice([0, 3, 12, 13, 100]))
        if kind in ("list", "large"):
            return self.items(self.leaf, random.randrange(1, 6))
        if kind == "same":
            return self.items(self.leaf, self.size)
        if kind == "lists":
            inner = self.type.value_type
            size = inner.list_size if pa.types.is_fixed_size_list(inner) else random.randrange(1, 4)
            return [self.items(inner.value_type, size) for _ in range(random.randrange(1, 4))]
        if kind == "tensor":
            return self.items(NUMBERS[self.dtype], 2 * self.size)
        return {name: column.value() for name, column in self.fields.items()}

    def features(self, name, value):
        """As Writer.add() takes it."""
        if self.kind == "struct":
            found = {}
            for field, column in self.fields.items():
                found |= column.features(f"{name}.{field}", None if value is None else value[field])
            return found
        return {name: None if value is None else self.feature(value)}

    def scalar(self, dtype, value):
        return value if dtype in ("int64", "float32") else np.dtype(dtype).type(value)

    def feature(self, value):
        if self.kind == "number":
            return self.scalar(self.dtype, value)
        if self.kind == "dictionary":
            of = str(self.type.value_type)
            return value if of == "string" else self.scalar({"float": "float32"}.get(of, of), value)
        if self.kind == "tensor":
            return np.array(value, self.dtype).reshape(2, self.size)
        if self.kind == "lists":
            return np.array(value, self.dtype)
        if self.kind in ("list", "large", "same") and not isinstance(value[0], str) and self.dtype not in ("int64", "float32"):
            return np.array(value, self.dtype)
        return value


def array_of(column, values):
    """pyarrow makes no arrays of extension types, nor of float16 in lists, from Python's values."""
    if isinstance(column.type, pa.FixedShapeTensorType):
        return pa.ExtensionArray.from_storage(column.type, array_of_type(column.type.storage_type, values))
    if pa.types.is_struct(column.type):
        fields = [array_of(field, [None if v is None else v[name] for v in values]) for name, field in column.fields.items()]
        mask = pa.array([v is None for v in values])
        return pa.StructArray.from_arrays(fields, fields=list(column.type), mask=mask)
    return array_of_type(column.type, values)


def array_of_type(type_, values):
    def halves(value):
        return [halves(item) for item in value] if isinstance(value, list) else None if value is None else np.float16(value)

    return pa.array(halves(values) if "halffloat" in str(type_) else values, type_)


class ArrowWriting(PythonCase):
    number = 0

    def out(self):
        ArrowWriting.number += 1
        return self.new(f"out-{self.number}")

    def shards(self, folder):
        return [file.read_bytes() for file in sorted(folder.glob("*.tfrecord"))]

    def store(self, *batches, threads=1, **options):
        folder = self.out()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", presto.NoteWarning)
            with presto.Writer(folder, threads=threads, sync=False) as writer:
                for batch in batches:
                    writer.add_batch(batch, **options)
        return folder

    def store_rows(self, rows):
        folder = self.out()
        with presto.Writer(folder, sync=False) as writer:
            writer.add_all(rows)
        return folder

    def random_table(self):
        columns = {f"c{i}": Column(self.random) for i in range(self.random.randrange(1, 7))}
        values = {name: [column.value() for _ in range(ROWS)] for name, column in columns.items()}
        table = pa.table({name: array_of(column, values[name]) for name, column in columns.items()})
        rows = []
        for i in range(ROWS):
            row = {}
            for name, column in columns.items():
                row |= column.features(name, values[name][i])
            rows.append(row)
        return table, rows

    def as_seen(self, table, first, rows):
        """The rows [first, first + rows) in one of the ways in which Arrow's arrays come."""
        part = table.slice(first, rows)
        way = self.random.randrange(5)
        if way == 0:
            return part
        if way == 1:  # several chunks
            cut = self.random.randrange(rows + 1)
            return pa.concat_tables([part.slice(0, cut), part.slice(cut)])
        if way == 2:
            return part.to_reader(max_chunksize=self.random.randrange(1, 9))
        if way == 3:
            return table.combine_chunks().to_batches()[0].slice(first, rows)
        return table.to_struct_array().combine_chunks().slice(first, rows)  # the offset of the struct itself

    def test_random_tables_have_the_bytes_of_their_rows(self):
        for _ in range(25):
            table, rows = self.random_table()
            cuts = sorted({0, ROWS, self.random.randrange(ROWS), self.random.randrange(ROWS)})
            parts = [self.as_seen(table, a, b - a) for a, b in zip(cuts, cuts[1:])]
            with self.subTest(schema=str(table.schema)):
                wanted, found = self.store_rows(rows), self.store(*parts, threads=self.random.randrange(3))
                self.assertEqual(self.shards(found), self.shards(wanted), table.schema)
                self.assertEqual(presto.open(found).features, presto.open(wanted).features)

    def test_values_are_read_back(self):
        table = pa.table({
            "i8": pa.array([-128, 127, 0], pa.int8()), "u64": pa.array([2**64 - 1, 0, 1], pa.uint64()),
            "half": array_of_type(pa.float16(), [0.5, -2.0, 65504.0]), "flag": [True, False, True], "word": ["é", "", "x"],
            "list": [[1, 2], [], [3]], "words": [["a", "b"], [], ["c"]],
        })
        found = [presto.open(self.store(table))[i] for i in range(3)]
        for i, row in enumerate(table.to_pylist()):
            self.assertEqual((found[i]["i8"], found[i]["i8"].dtype), (row["i8"], np.int8))
            self.assertEqual((int(found[i]["u64"]), found[i]["flag"], float(found[i]["half"])), (row["u64"], row["flag"], row["half"]))
            self.assertEqual(found[i]["word"].decode(), row["word"])
            self.assertEqual(found[i]["list"].tolist(), row["list"])
            self.assertEqual([w.decode() for w in found[i]["words"]], row["words"])

    def test_what_cannot_be_stored_is_refused_by_name_before_anything_is_written(self):
        bad = {f"odd-{i:03}": pa.array([], pa.map_(pa.string(), pa.int64())) for i in range(60)}
        table = pa.table({"good": pa.array([], pa.int64()), "when": pa.array([], pa.timestamp("us", "UTC")), **bad})
        with presto.Writer(self.out()) as writer:
            with self.assertRaises(presto.InputError) as raised:
                writer.add_batch(table)
            for name in (*bad, "when (timestamp[us]: convert it to int64, microseconds since 1970-01-01)"):
                self.assertIn(name, str(raised.exception))
            self.assertNotIn("good", str(raised.exception))
            with self.assertRaisesRegex(presto.ArgumentError, "'what=int64' names no column"):
                writer.add_batch(table.select(["good"]), convert={"what": "int64"})
            with self.assertRaisesRegex(presto.InputError, "no columns"):
                writer.add_batch(pa.table({}))
            with self.assertRaisesRegex(presto.InputError, "x.y .there twice."):
                writer.add_batch(pa.table({"x": [{"y": 1}], "x.y": [1]}))
            with self.assertRaisesRegex(TypeError, "a list is no table of Arrow's"):
                writer.add_batch([1, 2])
            with self.assertRaises(presto.InputError):
                writer.add_batch(pa.array([1, 2]))
            with self.assertRaisesRegex(ValueError, "nulls is"):
                writer.add_batch(pa.table({"x": [1]}), nulls="zero")
            with self.assertRaisesRegex(presto.LimitError, "65536"):
                writer.add_batch(pa.table({str(i): pa.array([], pa.int8()) for i in range(65537)}))
            self.assertEqual(writer.samples, 0)
            writer.add_batch(table.select(["good"]))

    def test_conversions(self):
        import datetime
        import decimal
        times = [datetime.datetime(1970, 1, 2, tzinfo=datetime.timezone.utc), datetime.datetime(1969, 12, 31, 23, 59, 59, 1, datetime.timezone.utc)]
        days = [datetime.date(1970, 1, 3), datetime.date(1969, 12, 31)]
        prices = [decimal.Decimal("-12.345"), decimal.Decimal("0.001")]
        table = pa.table({"when": pa.array(times, pa.timestamp("us", "UTC")), "day": days, "price": pa.array(prices, pa.decimal256(60, 3)),
                          "each": pa.array([[prices[0]], [prices[1], prices[0]]], pa.list_(pa.decimal128(9, 3))),
                          "near": pa.array(prices, pa.decimal128(9, 3))})
        folder = self.out()
        with self.assertWarnsRegex(presto.NoteWarning, "'when': timestamp.us., is stored as int64: microseconds since 1970-01-01 in UTC"):
            with presto.Writer(folder) as writer:
                writer.add_batch(table, convert={"when": "int64", "day": "int64", "price": "string", "each": "string", "near": "float64"})
        found = [presto.open(folder)[i] for i in range(2)]
        self.assertEqual([int(f["when"]) for f in found], [86400 * 10**6, -999999])
        self.assertEqual([int(f["day"]) for f in found], [2, -1])
        self.assertEqual([f["price"] for f in found], [b"-12.345", b"0.001"])
        self.assertEqual([f["each"] for f in found], [[b"-12.345"], [b"0.001", b"-12.345"]])
        self.assertEqual([float(f["near"]) for f in found], [-12.345, 0.001])

    def test_nulls_are_told_once_or_refused(self):
        table = pa.table({"x": pa.array([1, None, 3]), "y": ["a", "b", "c"]})
        folder = self.out()
        with presto.Writer(folder) as writer:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                writer.add_batch(table)
                writer.add_batch(table)
            self.assertEqual([str(w.message) for w in told], ["column 'x': has missing values: such rows are stored without a value"])
            with self.assertRaisesRegex(presto.InputError, "column 'x', row 1 of its batch: the value is missing"):
                writer.add_batch(table, nulls="error")
            self.assertEqual(writer.samples, 7)  # rows before it are there
        self.assertEqual([presto.open(folder)[i]["x"].tolist() for i in range(3)], [[1], [], [3]])

    def test_tensors(self):
        values = np.arange(24, dtype=np.float32).reshape(2, 12)
        table = pa.table({"v": pa.FixedSizeListArray.from_arrays(values.ravel(), 12), "w": [row.tolist() for row in values]})
        folder = self.store(table, tensors={"v": "float32[3,4]", "w": "float64[2,6]"})
        self.assertTrue(np.array_equal(presto.open(folder)[1]["v"], values[1].reshape(3, 4)))
        self.assertTrue(np.array_equal(presto.open(folder)[1]["w"], values[1].reshape(2, 6)))
        for tensors, kind in (({"v": "float32[5]"}, presto.InputError), ({"w": "float64[5]"}, presto.RaggedError),
                              ({"v": "int8[12]"}, presto.InputError), ({"v": "float32"}, presto.InputError),
                              ({"v": "float32[?]"}, presto.ArgumentError), ({"v": "words"}, presto.ArgumentError)):
            with self.assertRaises(kind, msg=str(tensors)):
                self.store(table, tensors=tensors)
        with self.assertRaisesRegex(presto.InputError, "permuted"):
            self.store(pa.table({"v": pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int8(), (2, 3), permutation=[1, 0]),
                                                                     pa.array([[1] * 6], pa.list_(pa.int8(), 6)))}))

    def test_lists_of_another_shape_are_no_tensor(self):
        """Those that have as many values in all would be moved to other places."""
        lists = pa.list_(pa.list_(pa.int16()))
        whole = pa.table({"x": pa.array([[[1, 2, 3], [4, 5, 6]]], lists)})
        self.assertEqual(presto.open(self.store(whole, tensors={"x": "int16[2,3]"}))[0]["x"].tolist(), [[1, 2, 3], [4, 5, 6]])
        self.assertEqual(presto.open(self.store(whole, tensors={"x": "int16[2,3,1]"}))[0]["x"].shape, (2, 3, 1))
        flat = pa.table({"x": pa.array([[list(range(12))] * 2], lists)})
        self.assertEqual(presto.open(self.store(flat, tensors={"x": "int16[2,3,4]"}))[0]["x"].tolist()[1][2], [8, 9, 10, 11])
        for value, why in (([[1, 2], [3, 4, 5, 6]], "differ in length"), ([[1, 2], [3, 4], [5, 6]], "3 lists are no int16.2,3."),
                           ([[1, 2, 3, 4, 5, 6]], None), ([[1, 2], [3, 4]], "4 values are no int16.2,3.")):
            table = pa.table({"x": pa.array([value], lists)})
            if why is None:  # a list more is no other order
                self.assertEqual(presto.open(self.store(table, tensors={"x": "int16[2,3]"}))[0]["x"].tolist(), [[1, 2, 3], [4, 5, 6]])
                continue
            with self.assertRaisesRegex(presto.RaggedError, f"column 'x', row 0 of its batch: .*{why}"):
                self.store(table, tensors={"x": "int16[2,3]"})

    def test_a_dictionary_of_dictionaries_is_refused(self):
        inner = pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), pa.array(["a", "b"]))
        with self.assertRaisesRegex(presto.InputError, "x .a dictionary of dictionaries."):
            self.store(pa.table([pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int32()), inner)], ["x"]))

    def test_a_column_of_nothing_is_missing_values(self):
        table = pa.table({"x": pa.nulls(2), "y": [1, 2]})
        nothing = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), pa.nulls(1))
        with presto.Writer(self.out()) as writer:
            for batch in (table, pa.table([nothing, pa.array([1, 2])], ["x", "y"])):
                with self.assertRaisesRegex(presto.InputError, "column 'x', row 0 of its batch: the value is missing"):
                    writer.add_batch(batch, nulls="error")
            self.assertEqual(writer.samples, 0)
            with self.assertWarnsRegex(presto.NoteWarning, "column 'x': has missing values"):
                writer.add_batch(table)

    def test_extensions_are_told_also_within(self):
        tensors = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int8(), (2, 1)), pa.array([[1, 2]], pa.list_(pa.int8(), 2)))
        uuids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0123456789abcdef"], pa.binary(16)))
        table = pa.table([pa.ListArray.from_arrays([0, 1], tensors), uuids, pa.LargeListArray.from_arrays([0, 1], uuids)], ["t", "u", "v"])
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with presto.Writer(self.out()) as writer:
                writer.add_batch(table)
        self.assertEqual(sorted(str(w.message) for w in told),
                         ["column 't': of extension arrow.fixed_shape_tensor, is stored as what that is made of",
                          "column 'u': extension arrow.uuid, is stored as what it is made of",
                          "column 'v': of extension arrow.uuid, is stored as what that is made of"])

    def test_shapes_that_no_memory_has_are_refused(self):
        for shape in ("[4294967296,4294967296]", "[0,9223372036854775807,9223372036854775807]"):
            metadata = {"ARROW:extension:name": "arrow.fixed_shape_tensor", "ARROW:extension:metadata": '{"shape":%s}' % shape}
            field = pa.field("x", pa.list_(pa.float32(), 0), metadata=metadata)
            with self.assertRaisesRegex(presto.InputError, "x .a tensor of an impossible size."):
                self.store(pa.table([pa.array([[]], field.type)], pa.schema([field])))

    def test_fixed_bytes_of_no_size(self):
        found = presto.open(self.store(pa.table({"x": pa.array([b"", None, b""], pa.binary(0)), "y": [1, 2, 3]})))
        self.assertEqual([list(sample["x"]) for sample in found], [[b""], [], [b""]])

    def test_what_a_loader_loses_on_the_way_is_told_or_refused(self):
        source = self.store_rows({"flag": np.bool_(i % 2), "image": np.zeros((i + 1, 2, 3), np.uint8), "n": i} for i in range(5))
        for give in (lambda loader: loader, lambda loader: next(iter(loader))):
            with presto.Writer(self.out()) as writer:
                with self.assertRaisesRegex(presto.InputError, "column 'image': its rows have several dimensions .*add_all"):
                    writer.add_batch(give(presto.Loader(source, batch=2)))
                self.assertEqual(writer.samples, 0)
                with self.assertWarnsRegex(presto.NoteWarning, "column 'flag': bool of a loader, is stored as uint8: add_all"):
                    writer.add_batch(give(presto.Loader(source, batch=2, features=["flag", "n"])))

    def test_batches_and_loaders_go_back_in(self):
        folder = self.store(presto.Loader(self.stored, batch=7))
        for ours, theirs in zip(presto.open(folder), presto.open(self.stored)):
            self.assertEqual({k: plain(v) for k, v in ours.items()}, {k: plain(v) for k, v in theirs.items()})
        again = self.store(*presto.Loader(self.stored, batch=7))
        self.assertEqual(self.shards(again), self.shards(folder))
        batch = next(iter(presto.Loader(self.stored, batch=7)))
        record = pa.RecordBatch.from_struct_array(pa.array(batch))
        record.validate(full=True)
        self.assertEqual(record.schema.names, list(batch))
        self.assertTrue(np.array_equal(record.column("image").to_numpy_ndarray(), batch["image"]))
        batch["label"] = batch["label"] + 1
        with self.assertRaisesRegex(TypeError, "were changed"):
            pa.array(batch)
        with self.assertRaisesRegex(TypeError, "were changed"):
            presto.Batch(x=np.ones(2)).__arrow_c_array__()

    def test_the_stream_of_presto_load_goes_back_in(self):
        """Out by presto-load's own IPC writer, in by pyarrow's reader of it."""
        stream = cli.run("presto-load", "-q", "--format", "arrow", "--batch", "7", self.stored).stdout
        wanted = self.store(presto.Loader(self.stored, batch=7))
        self.assertEqual(self.shards(self.store(pa.ipc.open_stream(stream))), self.shards(wanted))

    def test_other_libraries(self):
        import pandas as pd
        frame = pd.DataFrame({"x": [1, 2, 3], "word": ["a", "bc", ""], "y": np.float32([0.5, 1, 2])})
        wanted = self.store_rows({"x": i, "word": w, "y": np.float32(y)} for i, w, y in ((1, "a", 0.5), (2, "bc", 1), (3, "", 2)))
        self.assertEqual(self.shards(self.store(frame)), self.shards(wanted))
        rows = pa.table(frame)
        for module, make in (("polars", lambda polars: polars.DataFrame(rows)), ("duckdb", lambda duckdb: duckdb.from_arrow(rows))):
            try:
                library = __import__(module)
            except ImportError:
                print(f"{module} is not there")
                continue
            self.assertEqual(self.shards(self.store(make(library))), self.shards(wanted), module)

    def test_a_large_batch_and_empty_ones(self):
        rows = 1 << 20
        table = pa.table({"x": np.arange(rows)})
        folder = self.store(table.slice(0, 0), pa.RecordBatch.from_pydict({"x": np.arange(0)}), table, table.slice(5, 0))
        dataset = presto.open(folder)
        self.assertEqual((len(dataset), int(dataset[rows - 1]["x"])), (rows, rows - 1))
        self.assertEqual(len(presto.open(self.store(table.slice(0, 0)))), 0)

    def test_streams_that_fail_or_were_read(self):
        batch = pa.record_batch({"x": [1, 2]})

        def fail():
            yield batch
            raise ValueError("the disk is on fire")

        class Once:
            def __init__(self, capsule):
                self.capsule = capsule

            def __arrow_c_stream__(self):
                return self.capsule

        with presto.Writer(self.out()) as writer:
            with self.assertRaisesRegex(presto.InputError, "the Arrow stream failed: .*the disk is on fire"):
                writer.add_batch(pa.RecordBatchReader.from_batches(batch.schema, fail()))
            self.assertEqual(writer.samples, 2)
            once = Once(pa.table([batch.column(0)], ["x"]).__arrow_c_stream__())
            writer.add_batch(once)
            with self.assertRaisesRegex(presto.ArgumentError, "read already"):
                writer.add_batch(once)
            with self.assertRaises(TypeError):
                writer.add_batch(Once("no capsule"))
            with self.assertRaises(TypeError):
                writer.add_batch(Once(batch.schema.__arrow_c_schema__()))
            self.assertEqual(writer.samples, 4)
        with self.assertRaises(presto.StoppedError):
            writer.add_batch(batch)

    def test_each_release_is_called_once(self):
        """Of arrays with a count in their release; tests/unit has the rest under ASan."""
        class Schema(ctypes.Structure):
            pass

        free = ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))
        Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
                           ("n_children", ctypes.c_int64), ("children", ctypes.c_void_p), ("dictionary", ctypes.c_void_p), ("release", free),
                           ("private_data", ctypes.c_void_p)]
        before = pa.total_allocated_bytes()
        for _ in range(3):
            self.store(pa.table({"x": np.arange(100_000), "word": ["long enough"] * 100_000}).to_reader(1000))
            gc.collect()
        self.assertEqual(pa.total_allocated_bytes(), before)
        counts = []
        address = ctypes.pythonapi.PyCapsule_GetPointer
        address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

        class Counted:
            def __arrow_c_array__(self):
                schema, array = pa.record_batch({"x": [1, 2]}).__arrow_c_array__()
                found = Schema.from_address(address(schema, b"arrow_schema"))
                theirs = ctypes.cast(found.release, ctypes.c_void_p).value

                def count(self):
                    counts.append(1)
                    self.contents.release = free(theirs)
                    self.contents.release(self)

                self.kept = found.release = free(count)
                return schema, array

        counted = Counted()
        self.store(counted)
        gc.collect()
        self.assertEqual(len(counts), 1)

    def test_threads_add_at_once(self):
        batch = pa.record_batch({"x": np.arange(1000), "word": ["w"] * 1000})
        folder = self.out()
        with presto.Writer(folder, threads=2, sync=False) as writer:
            threads = [threading.Thread(target=lambda: [writer.add_batch(batch) for _ in range(10)]) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            writer.add({"x": 5, "word": "by hand"})
        numbers = [int(sample["x"]) for sample in presto.open(folder)]
        self.assertEqual((len(numbers), sum(numbers)), (40001, 40 * 499500 + 5))

    def test_ctrl_c(self):
        batch = pa.record_batch({"x": np.arange(100)})
        seen = threading.Event()
        main_thread = threading.main_thread().ident

        def interrupt():
            seen.wait()
            signal.pthread_kill(main_thread, signal.SIGINT)

        def endless():
            yield batch
            seen.set()
            yield from itertools.repeat(batch)

        thread = threading.Thread(target=interrupt)
        thread.start()
        writer = presto.Writer(self.out(), sync=False)
        with self.assertRaises((KeyboardInterrupt, presto.InputError)) as raised:
            writer.add_batch(pa.RecordBatchReader.from_batches(batch.schema, endless()))
        thread.join()
        if isinstance(raised.exception, presto.InputError):  # the producer's Python got it
            self.assertIn("KeyboardInterrupt", str(raised.exception))
        writer.abort()


if __name__ == "__main__":
    main()
