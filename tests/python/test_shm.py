#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto.shm_stream: batches through shared memory are the loader's, whoever dies first, and nothing is left behind."""
import contextlib
import gc
import io
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import test_reading
from case import TIMEOUT_S, PythonCase, cli, main, np, plain, presto

TOOL = cli.TOOLS / "presto-load"
READER = """
import os, sys, presto
stream = presto.shm_stream(sys.argv[1])
for batch in stream:
    print(stream.batches, flush=True)
"""


def rings():
    """Shared memory of rings that this process maps."""
    return pathlib.Path("/proc/self/maps").read_text().count("memfd:presto-ring")


def made(path):
    """When the file was made, or None."""
    try:
        return path.stat().st_ctime_ns
    except FileNotFoundError:
        return None


def descriptors():
    return len(os.listdir("/proc/self/fd"))


class Shm(PythonCase):
    foreign = test_reading.Reading.foreign

    def command(self, *arguments):
        return [TOOL, "-q", "--format", "shm", *map(str, arguments)]

    def writer(self, *arguments, **options):
        """A writer at a path of its own."""
        path = self.new("ring")
        process = subprocess.Popen([TOOL, "-q", "--format", f"shm:{path}", *map(str, arguments)], **options)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return path, process

    def endless(self):
        return ["-e", 1_000_000, "-b", 4, self.stored]

    def assert_same(self, stream, loader):
        for ours, theirs in zip(stream, loader, strict=True):
            self.assertEqual((ours.rows, ours.epoch, ours.first, ours.skipped), (theirs.rows, theirs.epoch, theirs.first, theirs.skipped))
            self.assertEqual(ours.numbers.tolist(), theirs.numbers.tolist())
            self.assertEqual({k: plain(v) for k, v in ours.items()}, {k: plain(v) for k, v in theirs.items()})
        self.assertTrue(stream.ended)

    # ---- what comes ----

    def test_batches_are_the_loaders(self):
        before = rings(), descriptors()
        for options, keywords in ((["--shuffle", "full", "-e", "3"], {"shuffle": "full", "epochs": 3}), (["--drop-last"], {"drop_last": True}),
                                  (["--rank", "1", "--world", "2"], {"rank": 1, "world": 2})):
            self.assert_same(presto.shm_stream(self.command("-b", 7, *options, self.stored)), presto.Loader(self.stored, batch=7, **keywords))
        file, _ = self.foreign()
        self.assert_same(presto.shm_stream(self.command("-b", 9, file)), presto.Loader(file, batch=9))
        stream = presto.shm_stream(self.command("-b", 9, "--pad", "tokens=0", file))
        self.assert_same(stream, presto.Loader(file, batch=9, pad={"tokens": 0}))
        del stream
        gc.collect()
        self.assertEqual((rings(), descriptors()), before)

    def test_features_are_in_the_order_asked_for(self):
        batch = next(presto.shm_stream(self.command("--features", "label,key", self.stored)))
        self.assertEqual(list(batch), ["label", "key"])
        self.assertEqual(batch.rows, 24)

    def test_arrays_are_read_only_aligned_and_outlive_the_stream(self):
        with presto.shm_stream(self.command("-b", 7, self.stored)) as stream:
            kept = [batch["image"] for batch in stream]
        wanted = [batch["image"] for batch in presto.Loader(self.stored, batch=7)]
        self.assertFalse(kept[0].flags.writeable)
        self.assertEqual([a.ctypes.data % 64 for a in kept], [0] * 4)
        self.assertTrue(all(np.array_equal(a, b) for a, b in zip(kept, wanted, strict=True)))
        self.assertEqual(stream.held[0], 4)
        del kept
        gc.collect()
        self.assertEqual(stream.held, (0, 0))

    def test_an_empty_stream(self):
        self.assertEqual(list(presto.shm_stream(self.command("--skip", 24, self.stored))), [])

    # ---- room ----

    def test_who_holds_too_much_is_told(self):
        size = 4 * 32 * 40 * 3 * 4
        stream = presto.shm_stream([*self.command(), "--ring-bytes", str(4 * size), *map(str, self.endless())])
        held = []
        with self.assertRaisesRegex(presto.HeldError, "held"):
            for batch in stream:
                held.append(batch)  # noqa: PERF402
        self.assertGreaterEqual(len(held), 2)
        copies = [b["image"].copy() for b in held]
        held.clear()
        del batch
        for _ in range(20):  # goes on
            next(stream)
        self.assertEqual(len({c.tobytes() for c in copies}), len(copies))
        stream.close()

    def test_a_slow_reader_makes_the_writer_wait(self):
        size = 4 * 32 * 40 * 3 * 4
        stream = presto.shm_stream([*self.command("--ring-bytes", 3 * size), "-e", "20", "-b", "4", self.stored])
        numbers = []
        for batch in stream:
            numbers.append(batch.numbers.tolist())
            if stream.batches % 40 == 3:
                time.sleep(0.05)
        self.assertEqual(len(numbers), 120)
        self.assertEqual(numbers, [b.numbers.tolist() for b in presto.Loader(self.stored, batch=4, epochs=20)])

    def test_a_batch_larger_than_the_ring(self):
        with self.quiet(), self.assertRaisesRegex(presto.LimitError, "the ring"):
            list(presto.shm_stream(self.command("--ring-bytes", 4096, "-b", 7, self.stored)))

    # ---- failures ----

    @contextlib.contextmanager
    def quiet(self):
        with contextlib.redirect_stderr(io.StringIO()):
            yield

    def test_failures_are_told_by_kind_and_place(self):
        file, _ = self.foreign()
        damaged = self.new("damaged").with_suffix(".tfrecord")
        data = bytearray(pathlib.Path(file).read_bytes())
        data[len(data) * 7 // 8] ^= 1
        damaged.write_bytes(data)
        with self.quiet(), self.assertRaises(presto.CorruptError) as caught:
            list(presto.shm_stream([*self.command("-b", 1), damaged]))
        self.assertEqual(caught.exception.file, str(damaged))
        self.assertIsNotNone(caught.exception.record)
        path, process = self.writer("-b", 1, damaged, stderr=subprocess.DEVNULL)
        with self.assertRaises(presto.CorruptError):
            list(presto.shm_stream(path))
        self.assertEqual(process.wait(TIMEOUT_S), 3)
        with self.quiet(), self.assertRaisesRegex(presto.Error, "no-such-folder"):
            presto.shm_stream(self.command("no-such-folder"))
        with self.quiet(), self.assertRaisesRegex(presto.ArgumentError, "--batch"):
            presto.shm_stream(self.command("-b", 0, self.stored))
        with self.assertRaises(presto.NotFoundError):
            presto.shm_stream(["no-such-program"])
        with self.assertRaises(presto.NotFoundError):
            presto.shm_stream(self.folder / "no-such-socket", wait=0)
        with self.assertRaises(presto.BusyError):
            presto.shm_stream(["true"])
        with self.assertRaises(TypeError):
            presto.shm_stream(5)

    def test_usage(self):
        case = cli.Case()
        for arguments, part in ((["--format", "shm"], "shm:SOCKET"), (["--format", "shm:"], "socket"), (["--format", "shmem"], "shmem"),
                                (["--format", "npy", "--ring-bytes", "1MiB"], "--ring-bytes")):
            case.assert_usage(cli.run("presto-load", *arguments, self.stored), part)
        taken = self.new("file")
        taken.write_text("mine")
        case.assert_fails(cli.run("presto-load", "--format", f"shm:{taken}", self.stored), 2, "no socket")
        self.assertEqual(taken.read_text(), "mine")

    def test_who_is_no_reader_at_stdout_is_an_error(self):
        ours, theirs = socket.socketpair()
        with ours, subprocess.Popen(self.command(self.stored), stdout=theirs, stderr=subprocess.PIPE) as process:
            theirs.close()
            ours.sendall(b"GET / HTTP/1.0\r\n\r\n")
            self.assertIn(b"the other side is no reader of a ring", process.communicate(timeout=TIMEOUT_S)[1])
            self.assertEqual(process.returncode, 1)

    # ---- who dies ----

    def test_a_writer_that_is_killed_at_any_moment(self):
        for _ in range(6):
            path, process = self.writer(*self.endless())
            stream = presto.shm_stream(path, wait=TIMEOUT_S)
            self.assertFalse(path.exists())
            for _ in range(self.random.randrange(1, 60)):
                batch = next(stream)
            copy = plain(batch["image"])
            process.kill()
            with self.assertRaisesRegex(presto.TruncatedError, "gone"):
                for _ in stream:
                    pass
            self.assertEqual(plain(batch["image"]), copy)  # what is held stays
            self.assertEqual(list(stream), [])
            process.wait()
            del stream, batch, _
        gc.collect()
        self.assertEqual(rings(), 0)

    def test_a_writer_that_a_signal_stops_says_so(self):
        stream = presto.shm_stream(self.command(*self.endless()))
        next(stream)
        with self.quiet():
            stream._program.process.send_signal(signal.SIGTERM)
            with self.assertRaises(presto.StoppedError):
                for _ in stream:
                    pass

    def test_a_reader_that_is_killed_at_any_moment(self):
        for _ in range(4):
            path, process = self.writer(*self.endless())
            with subprocess.Popen([sys.executable, "-B", "-c", READER, path], stdout=subprocess.PIPE) as reader:
                for _ in range(self.random.randrange(1, 60)):
                    reader.stdout.readline()
                reader.kill()
            self.assertEqual(process.wait(TIMEOUT_S), 0)  # as when a pipe is closed
            self.assertFalse(path.exists())

    def test_a_writer_killed_before_its_reader_came_leaves_a_path_that_is_replaced(self):
        path = self.new("ring")
        for _ in range(2):
            process = subprocess.Popen([TOOL, "-q", "--format", f"shm:{path}", self.stored])
            while not path.exists():
                self.assertIsNone(process.poll())
                time.sleep(0.01)
            self.assertEqual(path.stat().st_mode & 0o777, 0o600)
            process.kill()
            process.wait()
        with self.assertRaises(presto.NotFoundError):
            presto.shm_stream(path, wait=0)
        left = made(path)
        process = subprocess.Popen([TOOL, "-q", "--format", f"shm:{path}", self.stored])
        while made(path) in (None, left):
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        process.terminate()  # one that is asked to end leaves nothing
        self.assertEqual(process.wait(TIMEOUT_S), -signal.SIGTERM)
        self.assertFalse(path.exists())
        process = subprocess.Popen([TOOL, "-q", "--format", f"shm:{path}", self.stored])
        self.assertEqual(sum(b.rows for b in presto.shm_stream(path, wait=TIMEOUT_S)), 24)
        self.assertEqual(process.wait(TIMEOUT_S), 0)
        self.assertFalse(path.exists())

    def test_one_reader_only(self):
        path, process = self.writer(*self.endless())
        first = presto.shm_stream(path, wait=TIMEOUT_S)
        next(first)
        with self.assertRaises(presto.NotFoundError):
            presto.shm_stream(path, wait=0)
        next(first)
        self.assertIn("another writer", self.second_writer(first))
        first.close()
        self.assertEqual(process.wait(TIMEOUT_S), 0)

    def second_writer(self, first):
        """What a writer says to a path that one has which waits for its reader."""
        path, process = self.writer(*self.endless())
        while not path.exists():
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        done = cli.run("presto-load", "--format", f"shm:{path}", self.stored)
        self.assertEqual(done.returncode, 1)
        stream = presto.shm_stream(path, wait=TIMEOUT_S)  # the first one is still there
        next(stream)
        stream.close()
        return done.stderr

    def test_streams_may_be_dropped_closed_and_interrupted(self):
        before = descriptors()
        for leave in ("close", "drop", "thread"):
            stream = presto.shm_stream(self.command(*self.endless()))
            process = stream._program.process
            batch = next(stream)
            if leave == "thread":
                found = []
                waiter = threading.Thread(target=self.read_until_closed, args=(stream, found))
                waiter.start()
                while not found:
                    time.sleep(0.001)
                stream.close()
                waiter.join(TIMEOUT_S)
                self.assertEqual(found[-1], "ended")
            elif leave == "close":
                stream.close()
            del stream
            gc.collect()
            self.assertEqual(process.returncode, 0)
            self.assertEqual(batch["image"].shape[1:], (32, 40, 3))
        del batch
        gc.collect()
        self.assertEqual((rings(), descriptors()), (0, before))

    def read_until_closed(self, stream, found):
        with contextlib.suppress(presto.StoppedError):
            for batch in stream:
                found.append(batch.rows)
        found.append("ended")

    def test_ctrl_c_ends_a_wait(self):
        code = """
import signal, sys, threading, presto
stream = presto.shm_stream([sys.argv[1], "-q", "--format", "shm", "-b", "4", "--ring-bytes", "1MiB", "-e", "1000000", sys.argv[2]])
batches = [next(stream)]
listening = presto.shm_stream  # a path where nobody is
timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
timer.start()
try:
    listening("no-such-socket", wait=600)
except KeyboardInterrupt:
    print("interrupted", next(stream).rows)
stream.close()
"""
        self.assertEqual(self.python(code, TOOL, self.stored), "interrupted 4\n")

    def test_a_handler_and_a_child_process_may_close_what_is_read(self):
        """The writer stands still: whoever reads on waits."""
        code = """
import os, signal, sys, threading, presto
def stream():
    made = presto.shm_stream([sys.argv[1], "-q", "--format", "shm", "-b", "4", "-e", "1000000", sys.argv[2]])
    next(made)
    os.kill(made._program.process.pid, signal.SIGSTOP)
    return made
def read(one):
    try:
        for batch in one:
            pass
    except presto.StoppedError:
        pass
one = stream()
def close(*_):
    os.kill(one._program.process.pid, signal.SIGCONT)
    one.close()
signal.signal(signal.SIGALRM, close)
signal.setitimer(signal.ITIMER_REAL, 0.3)
read(one)
print("over", one._program.process.returncode is not None)
two = stream()
reader = threading.Thread(target=read, args=(two,))
reader.start()
while two._lock.acquire(blocking=False):
    two._lock.release()
child = os.fork()
if child == 0:
    two.close()
    try:
        next(two)
    except presto.StoppedError:
        os._exit(3)
    os._exit(1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os.kill(two._program.process.pid, signal.SIGCONT)
two.close()
reader.join()
"""
        self.assertEqual(self.python(code, TOOL, self.stored, timeout=30), "over True\n3\n")

    def test_state_counts_what_is_in_the_ring(self):
        state = self.new("state")
        arguments = ["--state", state, "-b", 5, "--shuffle", "full"]
        first = [b.numbers.tolist() for b in presto.shm_stream(self.command(*arguments, "--limit", 10, self.stored))]
        rest = [b.numbers.tolist() for b in presto.shm_stream(self.command(*arguments, self.stored))]
        self.assertEqual(first + rest, [b.numbers.tolist() for b in presto.Loader(self.stored, batch=5, shuffle="full")])


if __name__ == "__main__":
    main()
