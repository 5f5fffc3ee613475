#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto.Writer: what Python adds is read back equal, by Presto and by TensorFlow; what does not fit, or is interrupted,
leaves nothing that looks whole."""
import gc
import os
import pathlib
import pickle
import random
import shutil
import subprocess
import sys
import threading
import time
import tracemalloc

from case import TIMEOUT_S, PythonCase, cli, main, np, presto

DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
          "complex64", "complex128")


def rss_bytes():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


class Writing(PythonCase):
    @classmethod
    def setUpClass(cls):
        cli.Case.setUpClass.__func__(cls)  # no datasets
        cls.seed = int(os.environ.get("PRESTO_TEST_SEED", time.time_ns() % 1000000))
        print(f"{cls.__name__}: PRESTO_TEST_SEED={cls.seed}", flush=True)
        cls.random = random.Random(cls.seed)
        cls.generator = np.random.default_rng(cls.seed)

    def array(self, dtype, shape):
        bits = self.generator.integers(0, 256, int(np.prod(shape)) * np.dtype(dtype).itemsize, np.uint8)
        return (bits > 127).reshape(shape) if dtype == "bool" else bits.view(dtype).reshape(shape)

    def sample(self, i):
        """Dense, ragged, texts, bytes."""
        return {"image": self.array("uint8", (5 + i % 3, 4, 3)), "label": i, "weight": i / 4, "name": f"näme {i}",
                "raw": bytes(range(i % 7)), "ids": list(range(i % 4 + 1)), "texts": ["a", f"b{i}"], "flat": self.array("float32", (6,))}

    def same(self, got, wanted):
        self.assertEqual(sorted(got), sorted(wanted))
        for name, value in wanted.items():
            if isinstance(value, np.ndarray):
                self.assertEqual((got[name].dtype, got[name].shape, got[name].tobytes()),
                                 (value.dtype, value.shape, value.tobytes()), name)
            elif isinstance(value, (str, bytes)):
                self.assertEqual(got[name], value.encode() if isinstance(value, str) else value)
            elif name == "texts":
                self.assertEqual(got[name], [text.encode() for text in value])
            elif isinstance(value, list):
                self.assertEqual(got[name].tolist() if len(value) > 1 else [int(got[name].item())], value)
            else:
                self.assertEqual(got[name], value)

    def test_seven_dimensions_come_back_and_more_are_refused(self):
        folder = self.new("deep")
        with presto.Writer(folder, sync=False) as writer:
            with self.assertRaisesRegex(presto.InputError, "sample 0: feature 'x' has 8 dimensions, more than 7"):
                writer.add({"x": np.ones((1,) * 8, np.float32)})
            writer.add({"x": np.ones((1,) * 7, np.float32)})
        self.assertEqual(presto.open(folder)[0]["x"].shape, (1,) * 7)

    def test_every_dtype_and_shape_comes_back(self):
        for dtype in DTYPES:
            folder = self.new(f"dtype-{dtype}")
            shapes = [(), (3,), (0,), (2, 0, 4), (2, 3), (1, 1, 2, 1, 2, 1, 2)]
            values = {f"s{len(shape)}-{i}": self.array(dtype, shape) for i, shape in enumerate(shapes)}
            strided = self.array(dtype, (6, 4))
            values |= {"strided": strided[::2, ::-1], "column": np.asfortranarray(strided),
                       "other-end": strided.astype(np.dtype(dtype).newbyteorder(">"))}
            with presto.Writer(folder, "lz4", sync=False) as writer:
                writer.add(values)
            got = presto.open(folder)[0]
            for name, value in values.items():
                self.assertEqual(got[name].dtype, np.dtype(dtype), name)
                self.assertEqual(got[name].tobytes(), value.astype(dtype).tobytes(), (dtype, name))
                self.assertEqual(got[name].shape, value.shape)

    def test_what_was_added_comes_back_in_order(self):
        for arguments in ({}, {"threads": 0}, {"codec": "zstd:1", "shard_bytes": 4000}, {"codec": "blosc-lz4", "threads": 3},
                          {"codec": "gzip", "shards": 4, "samples": 50}, {"file_compression": "gzip"}):
            folder = self.new("in-order")
            wanted = [self.sample(i) for i in range(50)]
            classes = [f"class {i}" for i in range(50)]
            with presto.Writer(folder, sync=False, labels=classes, main="image", **arguments) as writer:
                writer.add_all(wanted)
                self.assertEqual(writer.samples, 50)
            summary = writer.summary
            self.assertEqual((summary.samples, summary.skipped, summary.path), (50, 0, str(folder)))
            self.assertIn("50 samples", repr(summary))
            dataset = presto.open(folder)
            self.assertEqual((len(dataset), dataset.labels, dataset.main), (50, classes, "image"))
            self.assertEqual(dataset.features["image"], presto.Feature("uint8", (None, 4, 3)))
            batches = list(presto.Loader(dataset))  # files that are compressed as a whole are read from their start
            for i, sample in enumerate(wanted):
                self.same(presto._arrays.sample_of(batches[i]), sample)
            info = presto.inspect(folder, verify=True)
            self.assertEqual((info.records, info.faults, len(info.files)), (50, 0, summary.shards))
            shutil.rmtree(folder)

    def test_tensorflow_reads_it(self):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        import tensorflow as tf

        wanted = [self.sample(i) for i in range(20)]
        for codec, compression in (("none", ""), ("gzip", "GZIP"), ("zlib:1", "ZLIB")):
            folder = self.new("for-tf")
            with presto.Writer(folder, codec, shard_bytes=3000, sync=False) as writer:
                writer.add_all(wanted)
            spec = {"image": tf.io.FixedLenFeature([], tf.string), "flat": tf.io.FixedLenFeature([], tf.string),
                    "label": tf.io.FixedLenFeature([], tf.int64), "weight": tf.io.FixedLenFeature([], tf.float32),
                    "name": tf.io.FixedLenFeature([], tf.string), "raw": tf.io.FixedLenFeature([], tf.string),
                    "ids": tf.io.VarLenFeature(tf.int64), "texts": tf.io.FixedLenFeature([2], tf.string)}
            files = sorted(str(path) for path in folder.glob("*.tfrecord"))
            self.assertGreater(len(files), 1)
            records = list(tf.data.TFRecordDataset(files))
            self.assertEqual(len(records), 20)
            for record, sample in zip(records, wanted):
                raw = tf.io.decode_compressed(record, compression) if compression else record
                got = tf.io.parse_single_example(raw, spec)
                self.assertEqual(tf.io.parse_tensor(got["image"], tf.uint8).numpy().tobytes(), sample["image"].tobytes())
                self.assertEqual(tf.io.parse_tensor(got["flat"], tf.float32).numpy().tobytes(), sample["flat"].tobytes())
                self.assertEqual((got["label"].numpy(), got["weight"].numpy(), got["name"].numpy().decode(),
                                  got["raw"].numpy(), got["ids"].values.numpy().tolist(),
                                  [text.decode() for text in got["texts"].numpy()]),
                                 tuple(sample[name] for name in ("label", "weight", "name", "raw", "ids", "texts")))

    def test_values_that_are_none(self):
        folder = self.new("none")
        with presto.Writer(folder, sync=False) as writer:
            for i in range(6):
                writer.add({"n": None if i % 2 else i, "ids": [i] * (i % 3)})
        dataset = presto.open(folder)
        batch = dataset[0:6]
        self.assertEqual([row.tolist() for row in batch["n"]], [[0], [], [2], [], [4], []])
        self.assertEqual([row.tolist() for row in batch["ids"]], [[], [1], [2, 2], [], [4], [5, 5]])
        self.assertEqual((dataset[1]["n"].tolist(), dataset[2]["n"].tolist()), ([], [2]))
        info = presto.inspect(folder)
        self.assertEqual((info.features["n"].dtype, info.features["n"].shape, info.features["ids"].dtype),
                         ("int64", (), "int64"))

    def test_values_that_some_samples_lack_are_lists_in_every_batch(self):
        """Whichever samples lack them, also the first or the last one, and in whichever run."""
        kinds = {"n": lambda i: i, "half": lambda i: np.float16(i), "text": lambda i: f"{i}", "pair": lambda i: np.full((2, 3), i)}
        wanted = {"n": ("int64", (None,)), "half": ("float16", (None,)), "text": ("string", (None,)), "pair": ("int64", (None, 3))}
        for lacking in ({0, 1}, {3}, {2, 3, 5}):
            folder = self.new("some")
            arguments = {"shard_bytes": 1, "threads": 0, "sync": False}
            with self.assertRaises(KeyError), presto.Writer(folder, **arguments) as writer:
                for i in range(4):
                    writer.add({"y": i, **{k: None if i in lacking else v(i) for k, v in kinds.items()}})
                raise KeyError
            with presto.Writer(folder, resume=True, **arguments) as writer:
                for i in range(writer.samples, 6):
                    writer.add({"y": i, **{k: None if i in lacking else v(i) for k, v in kinds.items()}})
                with self.assertRaisesRegex(presto.InputError, "'pair' is int64\\[2\\]"):
                    writer.add({"y": 6, "n": 1, "half": np.float16(1), "text": "", "pair": np.ones(2, np.int64)})
            dataset = presto.open(folder)
            self.assertEqual(dataset.features, {"y": ("int64", ()), **wanted})
            for size in (1, 2, 3):
                batches = list(presto.Loader(dataset, size))
                self.assertEqual({tuple(sorted(batch)) for batch in batches}, {("half", "n", "pair", "text", "y")})
                for name, value in (("n", lambda i: [i]), ("text", lambda i: [b"%d" % i]), ("pair", lambda i: [[i] * 3] * 2)):
                    rows = [row.tolist() if isinstance(row, np.ndarray) else list(row) for batch in batches for row in batch[name]]
                    self.assertEqual(rows, [[] if i in lacking else value(i) for i in range(6)])

    def test_scalars_that_some_samples_lack_are_no_lists(self):
        with presto.Writer(self.new("scalars"), sync=False) as writer:
            for value in (None, 3, None, 4):
                writer.add({"n": value})
            with self.assertRaisesRegex(presto.InputError, r"'n' is int64\[2\] .*before it is int64 "):
                writer.add({"n": [1, 2]})
        with presto.Writer(self.new("lists"), sync=False) as writer:
            for value in ([1], [], [1, 2]):
                writer.add({"n": value})
            with self.assertRaisesRegex(presto.InputError, r"'n' is int64 .*before it is int64\[\?\]"):
                writer.add({"n": 3})

    def test_what_does_not_fit_is_named_and_not_added(self):
        folder = self.new("strict")
        first = {"a": 1, "b": np.zeros((2, 2), np.float32)}
        wrong = [({"a": 1.5}, "'a'|'b'"), ({"a": 1, "b": np.zeros((2, 2))}, "'b' is float64.*in samples before it is float32"),
                 ({"a": 1, "b": np.zeros(2, np.float32)}, "'b' is float32\\[2\\]"), ({"a": 1}, "'b' is missing"),
                 ({**first, "c": 1}, "'c' is new"), ({"a": "text", "b": first["b"]}, "'a' is string"),
                 ({"a": 1 << 64, "b": first["b"]}, "'a'"), ({"a": object(), "b": first["b"]}, "'a'.*cannot be stored"),
                 ({"a": [[1], [2, 3]], "b": 1}, "'a'"), ({"a": {"deep": 1}, "b": 1}, "'a'.*dict"),
                 ({"a": np.array(["2020-01-01"], "M8[D]"), "b": 1}, "'a'.*datetime64"), ({"a": "\udc80", "b": 1}, "'a'"),
                 ({"a": np.zeros((1,) * 9), "b": 1}, "'a'"), ({"a": 1, "b": np.zeros((1,) * 8)}, "'b' has 8 dimensions, more than 7")]
        with presto.Writer(folder, sync=False) as writer:
            writer.add(first)
            for sample, message in wrong:
                with self.assertRaisesRegex(presto.InputError, f"sample 1: feature {'.*' if message[0] != chr(39) else ''}({message})",
                                            msg=sample):
                    writer.add(sample)
            for sample in (3, [("a", 1)], None):
                with self.assertRaises((TypeError, ValueError)):
                    writer.add(sample)
            with self.assertRaises(TypeError):
                writer.add({1: 2})
            writer.add({"b": np.ones((3, 5), np.float32), "a": True})
        self.assertEqual(writer.summary.samples, 2)
        self.assertEqual(presto.open(folder)[1]["b"].shape, (3, 5))
        with self.assertRaises(presto.StoppedError):
            writer.add(first)

    def test_arguments_are_checked(self):
        folder = self.new("arguments")
        for wrong in ({"codec": "none:x"}, {"codec": "nothing"}, {"codec": "zstd+dict"}, {"threads": "many"}, {"shards": 3},
                      {"shards": 3, "samples": 9, "shard_bytes": 10}, {"file_compression": "rar"}, {"shard_bytes": "1XB"},
                      {"threads": -1}):
            with self.assertRaises((ValueError, presto.Error, OverflowError), msg=wrong):
                presto.Writer(folder, **wrong)
            self.assertFalse(folder.exists(), wrong)
        with self.assertRaises(TypeError):
            presto.Writer(folder, labels="ab")
        with self.assertRaises(TypeError):
            pickle.dumps(presto.Writer(folder))
        gc.collect()
        folder.mkdir(exist_ok=True)
        (folder / "mine.txt").write_text("keep")
        with self.assertRaisesRegex(presto.ArgumentError, "mine.txt"):
            presto.Writer(folder)

    # ---- what is left when it goes wrong ----

    def unfinished(self, folder):
        self.assertFalse((folder / "dataset.json").exists())
        if folder.exists():
            with self.assertRaises(presto.Error):
                presto.open(folder)

    def test_an_exception_leaves_nothing_that_looks_whole(self):
        folder = self.new("exception")
        with self.assertRaises(KeyError):
            with presto.Writer(folder, sync=False) as writer:
                writer.add({"a": 1})
                raise KeyError("no")
        self.assertFalse(folder.exists())
        with self.assertRaises(KeyError):
            with presto.Writer(folder, shard_bytes=100, sync=False) as writer:
                for i in range(20000):
                    writer.add({"a": i})
                until = time.monotonic() + TIMEOUT_S
                while not any(folder.glob("*.tfrecord")) and time.monotonic() < until:  # a shard is whole
                    time.sleep(0.01)
                raise KeyError("no")
        self.unfinished(folder)
        self.assertIsNone(writer.summary)
        with self.assertRaisesRegex(presto.ArgumentError, "unfinished"):
            presto.Writer(folder, shard_bytes=100)
        with presto.Writer(folder, shard_bytes=100, resume=True, sync=False) as writer:
            self.assertGreater(writer.samples, 0)
            for i in range(writer.samples, 20000):
                writer.add({"a": i})
        self.assertEqual(presto.open(folder)[[0, 777, 19999]]["a"].tolist(), [0, 777, 19999])
        with presto.Writer(folder, shard_bytes=100, resume=True) as again:
            self.assertEqual(again.samples, 20000)  # it is whole: there is nothing to add

    def test_fewer_samples_than_announced(self):
        folder = self.new("fewer")
        with self.assertRaisesRegex(presto.ArgumentError, "3 samples came, but 4"):
            with presto.Writer(folder, samples=4, shards=2, sync=False) as writer:
                for i in range(3):
                    writer.add({"a": i})
        self.unfinished(folder)

    def test_killed_at_any_time(self):
        code = """if True:
            import presto, sys
            writer = presto.Writer(sys.argv[1], shard_bytes=2000, resume=True, sync=False, threads=2)
            for i in range(writer.samples, 200000):
                writer.add({"n": i})
                if i % 1000 == 0: print(i, flush=True)
            """
        folder = self.new("killed")
        for _ in range(4):
            process = subprocess.Popen([sys.executable, "-B", "-c", code, folder], stdout=subprocess.PIPE)
            for _ in range(self.random.randrange(1, 6)):
                process.stdout.readline()
            process.kill()
            process.wait(TIMEOUT_S)
            process.stdout.close()
            self.unfinished(folder)
        with presto.Writer(folder, shard_bytes=2000, resume=True, sync=False) as writer:
            self.assertLess(writer.samples, 200000)
            for i in range(writer.samples, 30000):
                writer.add({"n": i})
        for at in (0, 5000, 29999):
            self.assertEqual(presto.open(folder)[at]["n"], at)

    def test_a_full_disk(self):
        code = """if True:
            import presto, resource, signal, sys, numpy as np
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
            try:
                with presto.Writer(sys.argv[1], sync=False) as writer:
                    for i in range(1000):
                        writer.add({"x": np.zeros(100000, np.uint8)})
            except presto.StorageError as error:
                print(error.errno, ".tfrecord" in str(error.file))
            """
        folder = self.new("full")
        self.assertEqual(self.python(code, folder).split(), [str(27), "True"])
        self.assertFalse(folder.exists())

    def test_dropped_and_forgotten(self):
        folder = self.new("dropped")
        writer = presto.Writer(folder, sync=False)
        writer.add({"a": 1})
        del writer
        gc.collect()
        self.assertFalse(folder.exists())
        for code in ("writer = presto.Writer(sys.argv[1])\nwriter.add({'a': 1})",
                     "writer = presto.Writer(sys.argv[1])\nwriter.add({'a': 1})\nsys.exit(0)",
                     "w = presto.Writer(sys.argv[1])\n"
                     "def run():\n  while True: w.add({'a': bytes(100000)})\n"
                     "threading.Thread(target=run, daemon=True).start()\ntime.sleep(0.1)"):
            self.python(f"import presto, sys, threading, time\n{code}", folder)
            self.unfinished(folder)
            shutil.rmtree(folder, ignore_errors=True)

    def test_ctrl_c_while_it_waits(self):
        code = """if True:
            import os, presto, signal, sys, threading
            os.mkfifo  # a slow codec, and no room: add() waits most of the time
            threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
            import numpy as np
            data = np.random.default_rng(0).integers(0, 255, 3000000, np.uint8)
            try:
                with presto.Writer(sys.argv[1], "zstd:19", threads=1, prefetch=1000, sync=False) as writer:
                    while True:
                        writer.add({"x": data})
            except KeyboardInterrupt:
                print("interrupted")
            """
        folder = self.new("signal")
        self.assertEqual(self.python(code.replace("os.mkfifo  #", "#"), folder).strip(), "interrupted")
        self.unfinished(folder)

    def test_two_writers_of_one_folder(self):
        folder = self.new("two")
        with presto.Writer(folder, sync=False) as writer:
            with self.assertRaises(presto.BusyError):
                presto.Writer(folder)
            with self.assertRaises(presto.BusyError):
                presto.Writer(folder, resume=True)
            self.assertIn("PRESTO_ERR_BUSY", self.python(
                "import presto, sys\ntry: presto.Writer(sys.argv[1])\nexcept presto.BusyError as e: print(e.status)", folder))
            writer.add({"a": 1})
        self.assertEqual(len(presto.open(folder)), 1)

    def test_a_fork_leaves_the_parents_writer_alone(self):
        folder = self.new("fork")
        with presto.Writer(folder, sync=False, threads=2) as writer:
            writer.add({"a": 0})
            child = os.fork()
            if child == 0:
                try:
                    writer.add({"a": 1})
                except presto.StoppedError:
                    del writer
                    os._exit(7)
                os._exit(1)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)
            writer.add({"a": 2})
        self.assertEqual([s["a"] for s in presto.open(folder)], [0, 2])

    def test_threads_add(self):
        folder = self.new("threads")
        with presto.Writer(folder, "zstd:1", shard_bytes=20000, prefetch=10000, sync=False) as writer:
            def run(first):
                for i in range(first, first + 500):
                    writer.add({"n": i, "x": np.full(50, i)})
            threads = [threading.Thread(target=run, args=(k * 500,)) for k in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(TIMEOUT_S)
        found = presto.open(folder)[0:2000]
        self.assertEqual(sorted(found["n"].tolist()), list(range(2000)))
        self.assertTrue((found["x"] == found["n"][:, None]).all())
        for k in range(4):  # each thread's samples are in its order
            mine = [n for n in found["n"].tolist() if n // 500 == k]
            self.assertEqual(mine, sorted(mine))

    def test_another_thread_aborts(self):
        folder = self.new("abort")
        writer = presto.Writer(folder, "zstd:15", prefetch=1000, sync=False)
        data = self.array("uint8", (1000000,))

        def run():
            with self.assertRaises(presto.StoppedError):
                while True:
                    writer.add({"x": data})
        thread = threading.Thread(target=run)
        thread.start()
        while writer.samples == 0:
            time.sleep(0.001)
        writer.abort()
        thread.join(TIMEOUT_S)
        self.assertFalse(thread.is_alive())
        self.unfinished(folder)

    def test_a_thousand_writers_leave_nothing(self):
        data = np.zeros(1000, np.float32)

        def one_round(i):
            folder = self.folder / "again"
            writer = presto.Writer(folder, "zstd:1", threads=i % 3, sync=False)
            for k in range(i % 4):
                writer.add({"x": data, "n": k, "names": ["a", "b"], "text": "t"})
            try:
                writer.add({"x": "wrong", "n": 0})
            except presto.InputError:
                pass
            if i % 3 == 0:
                writer.finish()
            elif i % 3 == 1:
                writer.abort()
            del writer
            shutil.rmtree(folder, ignore_errors=True)

        for i in range(60):
            one_round(i)
        gc.collect()
        tracemalloc.start()
        before, rss, files = tracemalloc.take_snapshot(), rss_bytes(), len(os.listdir("/proc/self/fd"))
        for i in range(1000):
            one_round(i)
        gc.collect()
        grown = sum(d.size_diff for d in tracemalloc.take_snapshot().compare_to(before, "filename") if "presto" in str(d.traceback))
        tracemalloc.stop()
        self.assertLess(grown, 100000)
        self.assertLess(rss_bytes() - rss, 24 << 20)
        self.assertEqual(len(os.listdir("/proc/self/fd")), files)
        self.assertEqual(len(list(pathlib.Path("/proc/self/task").iterdir())), threading.active_count())

    def one(self, value):
        folder = self.new("one")
        with presto.Writer(folder, threads=0, sync=False) as writer:
            writer.add({"v": value})
        return presto.open(folder)[0]["v"]

    def test_no_value_is_stored_as_another_one(self):
        masked = np.ma.array([1, 2, 3], mask=[0, 1, 0])
        for value, says in (
            (masked, "masked"), (np.ma.masked, "masked"), ([masked, masked], "masked|cannot be stored"),
            (np.datetime64("2020-01-01"), "datetime64"), (np.timedelta64(5, "s"), "timedelta64"), (np.void(b"abc"), "void"),
            (np.zeros(1, "i4,f4")[0], "void"), (np.datetime64("NaT"), "datetime64"), ([np.datetime64("2020-01-01")], "cannot be stored"),
            (1e300, "too large for float32"), ([1.0, -1e39], "too large for float32"), ([np.int64(1), 1e300], "too large for float32"),
            (["a", 1], "mixes texts"), (["a\0", 1], "mixes texts"), ([1, 2, "3"], "mixes texts"), ([b"a", 1.5], "mixes texts"),
        ):
            with self.assertRaisesRegex(presto.InputError, says, msg=repr(value)):
                self.one(value)
        for value, wanted in (
            (np.ma.array([1, 2, 3]), np.array([1, 2, 3])), (float("inf"), np.float32("inf")), (3.4e38, np.float32(3.4e38)),
            ([float("-inf"), 1.0], np.array(["-inf", 1], np.float32)), (np.float64(1e300), np.float64(1e300)),
            ([np.float64(1.1), np.float64(1e300)], np.array([1.1, 1e300])), ([np.uint8(1), np.uint8(2)], np.array([1, 2], np.uint8)),
            ([np.float64(1.1), 2], np.array([1.1, 2])), ([np.uint8(1), 300], np.array([1, 300])), ([np.float16(1), 1e30], np.array([1, 1e30], np.float32)),
            ([np.float32(1), 2.0], np.array([1, 2], np.float32)),
            ([np.int64(1), 2.5], np.array([1, 2.5], np.float32)), ((np.int64(1), 2), np.array([1, 2])),
            (np.arange(4.0)[::2].view(np.recarray), np.array([0.0, 2.0])),
        ):
            found = self.one(value)
            self.assertEqual((found.dtype, found.tolist()), (wanted.dtype, wanted.tolist()), repr(value))
        self.assertEqual(self.one([bytearray(b"ab"), bytearray(b"c")]), [b"ab", b"c"])
        self.assertEqual(self.one([np.str_("a"), "b"]), [b"a", b"b"])


if __name__ == "__main__":
    main()
