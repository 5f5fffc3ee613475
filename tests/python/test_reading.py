#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reading: the same values as presto-load's npy stream, random access, layouts, memory, figures."""
import copy
import gc
import io
import json
import os
import pydoc
import pickle
import struct

from case import PythonCase, cli, frozen, main, np, plain, presto, rows_of

sys_path = cli.ROOT / "examples"


def npy_batches(data):
    """Batches of an npy stream by the reader in examples/."""
    import sys

    sys.path.insert(0, str(sys_path))
    import npy_stream

    return list(npy_stream.batches(io.BufferedReader(io.BytesIO(data))))


def as_plain(value):
    """A value of npy_stream's, as plain() gives it for those of the package."""
    if hasattr(value, "rows"):
        return plain(presto.Bytes(value.values, value.offsets, value.rows))
    if hasattr(value, "shapes"):
        return plain(presto.Ragged(value.values, value.offsets, value.shapes))
    return plain(value)


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def example(features):
    """A tf.train.Example of int lists and byte strings."""
    entries = b""
    for name, value in features.items():
        if isinstance(value, bytes):
            feature = field(1, field(1, value))
        else:
            feature = field(3, field(1, b"".join(varint(v) for v in value)))
        entries += field(1, field(1, name.encode()) + field(2, feature))
    return field(1, entries)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def frame(payload):
    length = struct.pack("<Q", len(payload))
    return length + struct.pack("<I", crc32c(length)) + payload + struct.pack("<I", crc32c(payload))


class Reading(PythonCase):
    def assert_as_npy(self, dataset, arguments, **options):
        wanted = npy_batches(self.load("--format", "npy", *arguments))
        found = list(presto.Loader(dataset, **options))
        self.assertEqual(len(found), len(wanted))
        for ours, theirs in zip(found, wanted):
            self.assertEqual({k: plain(v) for k, v in ours.items()}, {k: as_plain(v) for k, v in theirs.items()})

    def test_batches_are_those_of_the_npy_stream(self):
        dataset = presto.open(self.stored)
        self.assert_as_npy(dataset, ["-b", "5", "-e", "2", self.stored], batch=5, epochs=2)
        self.assert_as_npy(dataset, ["-b", "7", "--shuffle", "full", "--seed", "9", self.stored],
                           batch=7, shuffle="full", seed=9, threads=3)
        self.assert_as_npy(dataset, ["-b", "4", "--shuffle", "blocks:5", "--rank", "1", "--world", "3", self.stored],
                           batch=4, shuffle="blocks:5", rank=1, world=3)
        self.assert_as_npy(dataset, ["-b", "4", "--shuffle", "buffer:6", "--drop-last", self.stored],
                           batch=4, shuffle="buffer:6", drop_last=True, threads=0)
        self.assert_as_npy(dataset, ["-b", "6", "-e", "3", "--cache", "memory:64MiB", self.stored],
                           batch=6, epochs=3, cache="memory:64MiB")

    def test_raw_files_go_through_a_pipeline(self):
        photos = self.make_photos()
        dataset = presto.open(photos, pipeline=self.pipeline, set={"random-crop.height": 30})
        self.assertEqual(len(dataset), self.photo_count)
        self.assertEqual(dataset.features["image"], presto.Feature("float32", (30, 40, 3)))
        self.assertEqual(len(dataset.labels), self.classes)
        self.assertIn("random-crop", dataset.explain())
        self.assert_as_npy(dataset, ["-p", self.pipeline, "--set", "random-crop.height=30", "-b", "8", photos], batch=8)
        self.assert_as_npy(presto.open(photos, pipeline=str(self.pipeline), to="decoded", features=["image"]),
                           ["-p", self.pipeline, "--to", "decoded", "-b", "8", "--features", "image", photos], batch=8)

    def test_samples_are_had_by_number(self):
        dataset = presto.open(self.stored)
        stream = [row for batch in presto.Loader(dataset, batch=5) for row in rows_of(batch)]
        for number in (0, 17, len(dataset) - 1, -1, np.int64(3)):
            sample = dataset[number]
            self.assertEqual({k: plain(v) for k, v in sample.items()}, stream[number][2])
            self.assertIsInstance(sample["key"], bytes)
        picked = dataset[[3, 1, 4, 1, -9]]
        self.assertEqual(picked.numbers.tolist(), [3, 1, 4, 1, len(dataset) - 9])
        self.assertEqual(rows_of(picked), [stream[i] for i in (3, 1, 4, 1, -9)])
        self.assertEqual(rows_of(dataset[2:9:3]), stream[2:9:3])
        self.assertEqual(rows_of(dataset[np.array([5, 0])]), [stream[5], stream[0]])
        self.assertEqual(dataset[[]].rows, 0)
        self.assertEqual([plain(s["label"]) for s in dataset], [row[2]["label"] for row in stream])
        self.assertEqual([plain(s["image"]) for s in dataset.__getitems__([7, 7, 2])],
                         [stream[i][2]["image"] for i in (7, 7, 2)])
        self.assertEqual(dataset[np.array([2, np.int64(-1)], object)].numbers.tolist(), [2, len(dataset) - 1])
        self.assertEqual(dataset[np.array([2, 1], np.uint64)].numbers.tolist(), [2, 1])
        beyond = 2**64 - 1  # as int64: -1
        for wrong in (len(dataset), -len(dataset) - 1, [0, len(dataset)], beyond, [beyond], [0, beyond], np.uint64(beyond),
                      np.array([0, beyond], np.uint64), np.array([0, beyond], object), np.array([0, 255], np.uint8)):
            with self.subTest(wrong=wrong), self.assertRaises(IndexError):
                dataset[wrong]
        with self.assertRaises(IndexError):
            dataset.__getitems__(np.array([beyond], np.uint64))
        for wrong in ("3", 1.5, [0.5], None, [[1, 2]], np.array([1, 0.5], object)):
            with self.assertRaises((TypeError, IndexError)):
                dataset[wrong]

    def test_a_dataset_can_be_pickled(self):
        dataset = presto.open(self.stored, features=["label"])
        again = pickle.loads(pickle.dumps(dataset))
        self.assertEqual(again[[1, 2]].keys(), {"label"})
        self.assertEqual(len(again), len(dataset))

    def test_batches_can_be_pickled_and_copied(self):
        for batch in (next(iter(presto.Loader(self.stored, batch=5))), presto.open(self.stored)[[2, 1]]):
            for again in (pickle.loads(pickle.dumps(batch)), copy.copy(batch)):
                self.assertEqual(frozen(again), frozen(batch))
                self.assertEqual(again.rows, batch.rows)

    def test_what_is_known_of_a_dataset(self):
        dataset = presto.open(self.stored)
        self.assertEqual(dataset.features, {"image": presto.Feature("float32", (32, 40, 3)),
                                            "key": presto.Feature("string", ()), "label": presto.Feature("int64", ())})
        self.assertEqual((dataset.main, dataset.pipeline, len(dataset)), ("image", "small", self.photo_count))
        self.assertGreater(dataset.nbytes, 1000)
        self.assertIn("24 samples of image, key, label", repr(dataset))

    # ---- layouts ----

    def foreign(self, count=40):
        """TFRecords with rows of differing length, made here."""
        file = self.new("foreign.tfrecord")
        samples = [{"id": [i], "tokens": list(range(i % 7)), "text": b"t" * (i % 5) + b"\0"} for i in range(count)]
        file.write_bytes(b"".join(frame(example(sample)) for sample in samples))
        return file, samples

    def test_rows_of_differing_length_are_ragged_and_bytes_keep_theirs(self):
        file, samples = self.foreign()
        rows = []
        for batch in presto.Loader(file, batch=9):
            tokens, text = batch["tokens"], batch["text"]
            self.assertIsInstance(tokens, presto.Ragged)
            self.assertEqual(tokens.offsets[0], 0)
            self.assertEqual(tokens.lengths.tolist(), [len(row) for row in tokens])
            self.assertEqual(bytes(text.view(1)), text[1])
            self.assertEqual(text.text(0), text[0].decode())
            for r in range(batch.rows):
                rows.append({"id": [int(batch["id"][r])], "tokens": tokens[r].tolist(), "text": text[r]})
            with self.assertRaises(IndexError):
                tokens[batch.rows]
        self.assertEqual(rows, samples)

    def test_files_without_an_index_are_counted_when_somebody_asks(self):
        file, samples = self.foreign()
        dataset = presto.open(file)
        loader = presto.Loader(dataset, batch=9, epochs=2, shuffle="none")
        seen, states = [], []
        for batch in loader:
            seen += batch["id"].tolist()
            states.append((len(seen), json.loads(json.dumps(loader.state_dict()))))
        self.assertEqual(seen, list(range(len(samples))) * 2)
        for one, other in zip(presto.Loader(dataset, batch=6), presto.Loader(dataset, batch=6)):
            self.assertEqual(one["id"].tolist(), other["id"].tolist())
        for taken, state in states:
            again = presto.Loader(file, batch=7, epochs=2)
            again.load_state_dict(state)
            self.assertEqual([number for batch in again for number in batch["id"].tolist()], seen[taken:])
        self.assertEqual((len(dataset), len(loader), int(dataset[-1]["id"])), (40, 10, 39))
        # Nobody has looked at the end of a file before its first batch.
        whole = file.read_bytes()
        file.write_bytes(whole[:-5])
        cut = presto.open(file, features=["id"])
        batches = iter(presto.Loader(cut, batch=4, threads=1))
        self.assertEqual(next(batches)["id"].tolist(), [0, 1, 2, 3])
        with self.assertRaises(presto.TruncatedError):
            list(batches)
        with self.assertRaises(presto.TruncatedError):
            len(cut)

    def test_padding_makes_them_dense(self):
        file, samples = self.foreign()
        for batch in presto.Loader(file, batch=10, pad={"tokens": -1}):
            longest = max(len(samples[n]["tokens"]) for n in batch.numbers.tolist())
            wanted = [(samples[n]["tokens"] + [-1] * longest)[:longest] for n in batch.numbers.tolist()]
            self.assertEqual(batch["tokens"].tolist(), wanted)
        (batch,) = presto.Loader(file, batch=40, pad={"tokens": (0, 11)})
        self.assertEqual(batch["tokens"].shape, (40, 11))
        with self.assertRaises(presto.LimitError):
            list(presto.Loader(file, batch=40, pad={"tokens": (0, 3)}))

    def test_features_are_chosen(self):
        (batch,) = presto.Loader(self.stored, batch=64, features=["label", "key"])
        self.assertEqual(list(batch), ["key", "label"])
        with self.assertRaisesRegex(ValueError, "no feature 'lable', only image, key, label"):
            presto.open(self.stored, features=["lable"])
        with self.assertRaisesRegex(ValueError, "no feature 'x'"):
            presto.Loader(self.stored, features=["x"])
        with self.assertRaisesRegex(ValueError, "no feature 'y'"):
            presto.Loader(self.stored, pad={"y": 0})

    # ---- memory ----

    def test_arrays_are_the_loaders_memory(self):
        loader = presto.Loader(self.stored, batch=8)
        kept = []
        for batch in loader:
            for value in batch.values():
                array = value.values if isinstance(value, presto.Bytes) else value
                self.assertFalse(array.flags.writeable)
                self.assertFalse(array.flags.owndata)
                self.assertEqual(array.ctypes.data % 64, 0)
                with self.assertRaises(ValueError):
                    array[...] = 0
            kept.append((batch["image"], batch["image"].copy()))
        self.assertEqual(len(kept), 3)
        del batch, array, value
        loader.close()
        del loader
        gc.collect()
        for array, copy in kept:  # they outlive everything else
            self.assertTrue(np.array_equal(array, copy))

    def test_rows_are_whole_where_batches_held_are_larger_than_caches(self):
        """Such rows are copied past the processor's caches."""
        path, rows = self.new("large"), np.random.default_rng(self.seed).integers(0, 1 << 31, (90, 50001), np.int32)
        with presto.Writer(path) as writer:
            for number, row in enumerate(rows):
                writer.add({"x": row, "label": number})
        for threads in (0, 2):
            held = list(presto.Loader(path, batch=7, threads=threads, epochs=2))
            for batch in held:
                self.assertTrue(np.array_equal(batch["x"], rows[batch["label"]]))
            self.assertEqual(sum(batch.rows for batch in held), 180)

    def test_dlpack_and_the_buffer_protocol(self):
        (batch,) = presto.Loader(self.stored, batch=64)
        image = batch["image"]
        self.assertEqual(memoryview(image).readonly, True)
        buffer = image.base.obj if isinstance(image.base, memoryview) else image.base
        self.assertEqual(buffer.__dlpack_device__(), (1, 0))
        for version in (None, (1, 0)):
            capsule = buffer.__dlpack__(max_version=version)
            self.assertIn("versioned" if version else "dltensor", repr(capsule))
            del capsule  # not taken: freed

        class Shown:
            """What np.from_dlpack is given: the package's own capsule."""

            def __dlpack__(self, **options):
                options.pop("max_version", None)
                return buffer.__dlpack__(**options)

            def __dlpack_device__(self):
                return buffer.__dlpack_device__()

        array = np.from_dlpack(Shown())
        self.assertEqual(array.ctypes.data, image.ctypes.data)
        self.assertTrue(np.array_equal(array, image))
        with self.assertRaises(BufferError):
            buffer.__dlpack__(copy=True)
        for wrong in ({"max_version": [1, 0]}, {"dl_device": [1, 0]}, {"max_version": (1,)}, {"max_version": 1}):
            with self.assertRaises(TypeError):
                buffer.__dlpack__(**wrong)
        wanted = image.copy()
        del batch, image, buffer
        gc.collect()
        self.assertTrue(np.array_equal(array, wanted))

    def test_holding_too_much_is_an_error_and_holding_less_goes_on(self):
        loader = presto.Loader(self.stored, batch=1, epochs=3, hold=200_000)
        held, wanted = [], [frozen(b) for b in presto.Loader(self.stored, batch=1, epochs=3)]
        with self.assertRaisesRegex(presto.HeldError, "batches with [0-9.]+ [kM]B are held"):
            for batch in loader:
                held.append(batch)
        self.assertGreater(len(held), 5)
        self.assertEqual(loader.held[0], len(held))
        count = len(held)
        del batch
        held.clear()
        self.assertEqual([frozen(b) for b in loader], wanted[count:])

    # ---- figures, documentation ----

    def test_figures_and_what_limits(self):
        loader = presto.Loader(self.stored, batch=5, epochs=2)
        self.assertEqual((loader.stats(), loader.limit), ({}, "nothing has been loaded"))
        self.assertEqual(len(loader), 10)
        self.assertEqual(len(presto.Loader(self.stored, batch=5, epochs=2, world=5, drop_last=True)), 0)
        self.assertEqual(sum(b.rows for b in loader), 48)
        stats = loader.stats()
        self.assertEqual((stats["samples"], stats["batches"], stats["skipped"]), (48, 10, 0))
        self.assertEqual([step["name"] for step in stats["steps"]], ["center-pixels", "random-crop"])
        self.assertGreater(stats["times"]["steps_s"], 0)
        self.assertRegex(loader.limit, r"^limited by .*\d+ %")

    def test_help_describes_everything(self):
        for name in presto.__all__:
            thing = getattr(presto, name)
            if isinstance(thing, str):
                continue
            self.assertTrue(thing.__doc__, name)
            text = pydoc.render_doc(thing, renderer=pydoc.plaintext)
            self.assertIn(name, text)
        for thing in (presto.Loader, presto.Dataset, presto.Batch, presto.Ragged, presto.Bytes):
            for name, member in vars(thing).items():
                if not name.startswith("_") and callable(member):
                    self.assertTrue(member.__doc__, f"{thing.__name__}.{name}")

    def test_relative_paths_are_those_of_the_folder_then(self):
        code = """
import os, pathlib, pickle, sys
import presto
base = pathlib.Path(sys.argv[1])
for name, value in (("a", 0), ("b", 1000)):
    (base / name).mkdir()
    os.chdir(base / name)
    with presto.Writer("set", shard_bytes=1000) as writer:
        for i in range(10):
            writer.add({"y": i + value, "name": bytes(500)})
            os.chdir(base / name if i % 2 else base)
os.chdir(base / "a")
data, mix = presto.open("set"), presto.mix({"set": 1.0})
loader = presto.Loader("set", on_error="skip", cache="disk:kept:64MiB")
kept = pickle.dumps([data, mix, loader])
os.chdir(base / "b")
assert repr(data).startswith("<presto.Dataset 'set': 10 samples"), data
assert mix.inputs[0].path == "set", mix.inputs
for data, mix, loader in ((data, mix, loader), pickle.loads(kept)):
    assert repr(data).startswith("<presto.Dataset 'set'"), data
    found = [data[0]["y"], mix[0]["y"], *[next(iter(one))["y"][0] for one in
             (loader, presto.Loader(data, on_error="skip"), presto.Loader(mix, cache="memory:1MiB"))]]
    assert [int(y) for y in found] == [0] * 5, found
    loader.close()
    parts = data.split("50/50")
    assert sum(map(len, parts)) == 10 and "'set'" in repr(parts[0])
assert (base / "a" / "kept").exists() and not (base / "b" / "kept").exists()
child = os.fork()
if child == 0:
    os._exit(int(data[0]["y"]))
assert os.waitpid(child, 0)[1] == 0
print("done")
"""
        folder = self.new("folders")
        folder.mkdir()
        self.assertEqual(self.python(code, folder), "done\n")

    def test_what_is_no_path_is_said(self):
        with self.assertRaisesRegex(TypeError, "list of paths, is expected here, not None"):
            presto.Loader(None)
        with self.assertRaisesRegex(TypeError, "list of paths, is expected here: a list has a dict"):
            presto.open([self.stored, {}])
        with self.assertRaisesRegex(TypeError, "features is a list of names, not 3"):
            presto.Loader(self.stored, features=3)

    def test_a_stream_without_samples_says_so(self):
        empty = self.new("empty")
        with presto.Writer(empty):
            pass
        self.assertEqual([list(presto.Loader(empty)) for _ in range(2)], [[], []])
        with self.assertRaisesRegex(presto.ArgumentError, "no batch would ever come: an epoch has no samples"):
            next(iter(presto.Loader(empty, epochs=None)))
        with self.assertRaisesRegex(presto.ArgumentError, "25 samples are more than an epoch has, with drop_last"):
            next(iter(presto.Loader(self.stored, batch=25, epochs=None, drop_last=True)))

    def test_datasets_are_no_paths(self):
        dataset = presto.open(self.stored)
        calls = (lambda: presto.open(dataset), lambda: presto.write(dataset, self.new("written")), lambda: presto.inspect(dataset),
                 lambda: presto.sweep(dataset, "cv"), lambda: presto.Loader(presto.Loader(dataset)),
                 lambda: presto.write(presto.Loader(dataset), self.new("written")))
        for call in calls:
            with self.assertRaisesRegex(TypeError, "not a presto.(Dataset|Loader): give the paths"):
                call()
        self.assertEqual(presto.inspect(os.fsencode(self.stored)).records, 24)


if __name__ == "__main__":
    main()
