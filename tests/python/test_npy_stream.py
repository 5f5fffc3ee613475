#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto.npy_stream: batches of the pipe are those of the loader, and what is not whole is an error of the right kind."""
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time

import test_reading
from case import PythonCase, cli, main, np, plain, presto

TOOL = cli.TOOLS / "presto-load"


class Slow(io.RawIOBase):
    """A raw stream that gives a few bytes at a time."""

    def __init__(self, data, draw):
        self.data, self.draw = memoryview(data), draw

    def readable(self):
        return True

    def readinto(self, room):
        count = min(len(room), len(self.data), self.draw.randrange(1, 50))
        room[:count] = self.data[:count]
        self.data = self.data[count:]
        return count


class Plain:
    """Nothing but read()."""

    def __init__(self, data):
        self.read = io.BytesIO(data).read


class NpyStream(PythonCase):
    foreign = test_reading.Reading.foreign

    def command(self, *arguments):
        return [TOOL, "-q", "--format", "npy", *map(str, arguments)]

    def data(self, *arguments):
        return self.load("-q", "--format", "npy", *arguments)

    def assert_same(self, stream, loader):
        count = 0
        for ours, theirs in zip(stream, loader, strict=True):
            self.assertEqual((ours.rows, set(ours)), (theirs.rows, set(theirs)))
            for name, value in theirs.items():
                self.assertEqual(plain(ours[name]), plain(value), name)
            count += 1
        self.assertGreater(count, 0)

    def test_batches_are_the_loaders(self):
        for options, keywords in ((["--shuffle", "full", "-e", "2"], {"shuffle": "full", "epochs": 2}), (["--drop-last"], {"drop_last": True})):
            stream = presto.npy_stream(self.command("-b", 7, *options, self.stored))
            self.assert_same(stream, presto.Loader(self.stored, batch=7, **keywords))
            self.assertTrue(stream.ended)
        file, _ = self.foreign()
        self.assert_same(presto.npy_stream(self.command("-b", 9, file)), presto.Loader(file, batch=9))
        self.assert_same(presto.npy_stream(self.command(file)), presto.Loader(file, batch=1))

    def test_pipes_files_and_raw_streams(self):
        data = self.data("-b", "7", self.stored)
        path = self.new("stream")
        path.write_bytes(data)
        for source in (path, str(path), io.BytesIO(data), Slow(data, self.random), Plain(data), open(path, "rb", buffering=0)):  # noqa: SIM115
            with contextlib.closing(presto.npy_stream(source)) as stream:
                self.assert_same(stream, presto.Loader(self.stored, batch=7))
                self.assertEqual((stream.samples, stream.batches), (24, 4))
            if hasattr(source, "close"):
                source.close()
        code = "import sys, presto; print(sum(b.rows for b in presto.npy_stream(sys.stdin.buffer)))"
        with open(path, "rb") as stdin:
            done = subprocess.run([sys.executable, "-B", "-c", code], stdin=stdin, capture_output=True, text=True)
        self.assertEqual(done.stdout.strip(), "24", done.stderr)

    def test_arrays_may_be_written_to(self):
        for batch in presto.npy_stream(self.command("-b", 7, self.stored)):
            batch["image"] *= 2
            self.assertEqual(batch["image"].flags.writeable, True)

    def test_an_empty_stream_has_no_batches(self):
        self.assertEqual(list(presto.npy_stream(self.command("--limit", 5, "--skip", 24, self.stored))), [])

    # ---- what is not whole ----

    def test_a_stream_cut_anywhere_is_an_error(self):
        data = self.data("-b", "9", "--features", "label,key", self.stored)
        self.assertEqual(sum(b.rows for b in presto.npy_stream(io.BytesIO(data))), 24)
        for cut in range(len(data)):
            with self.assertRaises(presto.TruncatedError, msg=f"cut at {cut} of {len(data)}"):
                list(presto.npy_stream(io.BytesIO(data[:cut])))

    def test_bytes_that_are_changed_are_an_error_or_other_values(self):
        """Never another exception, whatever is in the stream."""
        data = self.data("-b", "9", "--features", "label,key", self.stored)
        for _ in range(2000):
            changed = bytearray(data)
            for _ in range(self.random.choice((1, 1, 1, 8))):
                changed[self.random.randrange(len(data))] = self.random.randrange(256)
            with contextlib.suppress(presto.Error):
                for batch in presto.npy_stream(io.BytesIO(changed)):
                    self.assertLessEqual(batch.rows, len(data))

    def message(self, **values):
        text = json.dumps(values).encode()
        out = io.BytesIO()
        array = np.array(text, f"S{len(text) + -len(text) % 64}")
        np.lib.format.write_array(out, array, version=(1, 0))
        return out.getvalue()

    def test_what_is_no_stream(self):
        array = io.BytesIO()
        np.save(array, np.arange(3))
        feature = {"name": "x", "layout": "dense", "dtype": "int64", "arrays": ["values"]}
        begin = self.message(presto="npy", version=1, features=[feature])
        for data, kind in (
            (b"hello, world", presto.CorruptError),
            (array.getvalue(), presto.CorruptError),
            (self.message(presto="other"), presto.CorruptError),
            (self.message(presto="npy", version=2, features=[feature]), presto.UnsupportedError),
            (self.message(presto="npy", version=1, features=[{**feature, "layout": "round"}]), presto.CorruptError),
            (self.message(presto="npy", version=1, features=[{**feature, "arrays": []}]), presto.CorruptError),
            (self.message(presto="npy", version=1, features=[{**feature, "layout": "ragged"}]), presto.CorruptError),
            (begin + array.getvalue() + self.message(presto="npy", end=True, batches=2, samples=3), presto.CorruptError),
            (begin + array.getvalue() + self.message(presto="npy", end=True, batches=1, samples=4), presto.CorruptError),
            (begin.replace(b"'descr': '|S", b"'descr': '|O"), presto.CorruptError),
        ):
            with self.assertRaises(kind, msg=data):
                list(presto.npy_stream(io.BytesIO(data)))
        whole = begin + array.getvalue() + self.message(presto="npy", end=True, batches=1, samples=3)
        self.assertEqual([b["x"].tolist() for b in presto.npy_stream(io.BytesIO(whole))], [[0, 1, 2]])

    def stream_of(self, features, arrays, samples):
        out = io.BytesIO()
        for array in arrays:
            array = np.asarray(array)
            dims = "".join(f"{dim}, " for dim in array.shape)
            header = f"{{'descr': '{array.dtype.str}', 'fortran_order': False, 'shape': ({dims}), }}\n".encode()
            out.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + array.tobytes())
        return self.message(presto="npy", version=1, features=features) + out.getvalue() + self.message(presto="npy", end=True, batches=1, samples=samples)

    def test_arrays_go_together(self):
        """What is taken can be shown, row by row."""
        x = np.arange(4, dtype=np.float32)
        ragged = {"name": "x", "layout": "ragged", "dtype": "float32", "arrays": ["values", "offsets"]}
        shaped, text = {**ragged, "arrays": ["values", "offsets", "shapes"]}, {**ragged, "layout": "bytes", "dtype": "string"}
        lists, u = {**text, "arrays": ["values", "offsets", "rows"]}, x.astype(np.uint8)
        dense = {"name": "x", "layout": "dense", "dtype": "float32", "arrays": ["values"]}
        for feature, arrays in (
            (ragged, [x, [0, 2, 4]]), (shaped, [x, [0, 4, 4], [[2, 2], [0, -1]]]), (text, [u, [0, 1, 4]]),
            (lists, [u, [0, 1, 4], [0, 0, 2]]), (shaped, [x, [0, 3, 4], [[3, -1], [1, -1]]]),
        ):
            (batch,) = presto.npy_stream(io.BytesIO(self.stream_of([feature], arrays, 2)))
            self.assertEqual(len(list(batch["x"])), 2)
        for feature, arrays in (
            (ragged, [x, [0, 100, 5]]), (ragged, [x, [-3, -1, 4]]), (ragged, [x, [0, 3, 2, 4]]), (ragged, [x, [0, 2, 3]]),
            (ragged, [x, [1, 2, 4]]), (ragged, [x.reshape(2, 2), [0, 1, 2]]), (text, [x, [0, 2, 4]]), (text, [u, [0, 1 << 60, -5]]),
            (lists, [u, [0, 1, 4], [0, 9]]), (lists, [u, [0, 1, 4], [0, 2, 1, 2]]), (shaped, [x, [0, 2, 4], [[7, 7], [1, 2]]]),
            (shaped, [x, [0, 2, 4], [[1, 2]]]), (shaped, [x, [0, 2, 4], [[-1, 2], [1, 2]]]), (shaped, [x, [0, 4], [[1 << 33, 1 << 33]]]),
            (shaped, [x, [0, 0, 4], [[1 << 32, 1 << 32], [2, 2]]]), (shaped, [x, [0, 2, 4], [[-2, -1], [1, 2]]]),
        ):
            with self.assertRaises(presto.CorruptError, msg=(feature, arrays)):
                list(presto.npy_stream(io.BytesIO(self.stream_of([feature], arrays, len(arrays[1]) - 1))))
        for features in ([dense, dense], [{**ragged, "arrays": ["values", "offsets", "offsets"]}], [{**dense, "dtype": 5}]):
            with self.assertRaises(presto.CorruptError):
                list(presto.npy_stream(io.BytesIO(self.stream_of(features, [x, x, x], 4))))

    # ---- programs ----

    def test_failures_are_told_by_kind(self):
        damaged = self.new("damaged")
        damaged.write_bytes(b"")
        shard = sorted(self.stored.glob("*.tfrecord"))[0]
        data = bytearray(shard.read_bytes())
        data[len(data) // 2] ^= 1
        damaged.write_bytes(data)
        with self.quiet(), self.assertRaisesRegex(presto.CorruptError, "record"):
            list(presto.npy_stream([*self.command(), damaged]))
        with self.quiet(), self.assertRaisesRegex(presto.Error, "no-such-folder"):
            list(presto.npy_stream(self.command("no-such-folder")))
        with self.quiet(), self.assertRaisesRegex(presto.ArgumentError, "--batch"):
            list(presto.npy_stream(self.command("-b", "0", self.stored)))
        with self.assertRaisesRegex(presto.NotFoundError, "no-such-program"):
            presto.npy_stream(["no-such-program"])
        with self.assertRaises(FileNotFoundError):
            presto.npy_stream(self.folder / "no-such-file")
        with self.assertRaises(presto.StorageError):
            presto.npy_stream(self.folder)
        with self.assertRaises(TypeError):
            presto.npy_stream(5)
        with self.assertRaises(presto.ArgumentError):
            presto.npy_stream([])
        # What does not fail but writes no stream.
        with self.assertRaises(presto.TruncatedError):
            list(presto.npy_stream(["true"]))
        # A program that fails after the end.
        with self.assertRaisesRegex(presto.Error, "ended with 1"):
            list(presto.npy_stream(["sh", "-c", f"{TOOL} -q --format npy {self.stored}; exit 1"]))

    @contextlib.contextmanager
    def quiet(self):
        """The program's messages are passed on: they are looked at, not shown."""
        with contextlib.redirect_stderr(io.StringIO()) as said:
            yield
        self.assertNotEqual(said.getvalue(), "")

    def test_a_signal_ends_the_program(self):
        stream = presto.npy_stream(self.command("-e", 1000000, "-b", 4, self.stored))
        next(stream)
        os.kill(stream._program.process.pid, signal.SIGKILL)
        with self.assertRaisesRegex(presto.StoppedError, "signal 9"):
            for _ in stream:
                pass
        self.assertEqual(list(stream), [])

    def test_a_loop_that_is_left_ends_the_program(self):
        for leave in ("close", "with", "drop"):
            stream = presto.npy_stream(self.command("-e", 1000000, "-b", 4, self.stored))
            process = stream._program.process
            next(stream)
            if leave == "close":
                stream.close()
            elif leave == "with":
                with stream:
                    next(stream)
            else:
                del stream
            self.assertEqual(process.returncode, 0)

    def test_a_program_that_does_not_end_is_ended(self):
        deaf = [sys.executable, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"]
        for command, most_s in ((["sleep", "60"], 8), (deaf, 12), (["sh", "-c", "sleep 60 & exec sleep 60"], 8)):
            begin = time.monotonic()
            stream = presto.npy_stream(command)
            if command is deaf:
                stream._program.process.stdout.readline()
            stream.close()
            self.assertLess(time.monotonic() - begin, most_s)
            self.assertLess(stream._program.process.returncode, 0)
        code = """
import signal, sys, time, presto
signal.signal(signal.SIGALRM, signal.default_int_handler)
for read in (presto.npy_stream, presto.shm_stream):
    begin = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        next(read(["sleep", "60"]))
    except KeyboardInterrupt:
        print(time.monotonic() - begin < 10)
"""
        self.assertEqual(self.python(code), "True\nTrue\n")
        with self.assertRaises(presto.CorruptError):  # not of the signal by which its pipe ended it
            list(presto.npy_stream(["yes"]))

    def test_what_is_being_read_can_be_closed(self):
        """By a signal handler, and by another thread: the program writes nothing, so the read waits."""
        code = """
import os, signal, sys, threading, presto
def read(stream):
    try:
        next(stream)
    except presto.StoppedError as error:
        print(error)
def wait(stream):
    while not stream._is_reading:
        pass
def close(*_):
    stream.close()
signal.signal(signal.SIGALRM, close)
for by in ("handler", "thread"):
    stream = presto.npy_stream(["sleep", "1000"])
    if by == "handler":
        ready = threading.Thread(target=lambda: (wait(stream), signal.setitimer(signal.ITIMER_REAL, 0.1)))
        ready.start()
        read(stream)
    else:
        ready = threading.Thread(target=read, args=(stream,))
        ready.start()
        wait(stream)
        stream.close()
    ready.join()
    print(stream._program.process.returncode, stream._program.process.stdout.closed, list(stream))
os.mkfifo(sys.argv[1])
writer = os.open(sys.argv[1], os.O_RDWR)
stream = presto.npy_stream(sys.argv[1])
ready = threading.Thread(target=read, args=(stream,))
ready.start()
wait(stream)
stream.close()
os.write(writer, b"x" * 100)
ready.join()
print(stream._arrays.stream.closed)
"""
        fifo = self.new("fifo")
        found = self.python(code, fifo, timeout=30)
        self.assertEqual(found, "the stream was closed\n-15 True []\n" * 2 + f"{fifo}: the stream was closed\nTrue\n")

    def test_a_child_process_leaves_the_program_alone(self):
        code = """
import os, sys, presto
stream = presto.npy_stream(sys.argv[1:])
next(stream)
child = os.fork()
if child == 0:
    sys.exit(5)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), next(stream).rows)
stream.close()
"""
        self.assertEqual(self.python(code, *self.command("-e", 100000, "-b", 4, self.stored), timeout=30), "5 4\n")

    def test_skip_is_passed_on_and_checked(self):
        whole = [key for b in presto.npy_stream(self.command("--shuffle", "full", "-b", 5, self.stored)) for key in b["key"]]
        stream = presto.npy_stream(self.command("--shuffle", "full", "-b", 5, self.stored))
        taken = [*next(stream)["key"], *next(stream)["key"]]
        stream.close()
        rest = presto.npy_stream(self.command("--shuffle", "full", "-b", 5, self.stored), skip=stream.samples)
        self.assertEqual(taken + [key for b in rest for key in b["key"]], whole)
        data = self.data("--skip", "10", self.stored)
        self.assertEqual(sum(b.rows for b in presto.npy_stream(io.BytesIO(data), skip=10)), 14)
        for other in (self.data(self.stored), self.data("--skip", "9", self.stored), self.data("--skip", "24", self.stored)):
            with self.assertRaisesRegex(presto.ArgumentError, "not at 10"):
                list(presto.npy_stream(io.BytesIO(other), skip=10))
        with self.assertRaises(presto.ArgumentError):
            presto.npy_stream(["presto-load"], skip=-1)


if __name__ == "__main__":
    main()
