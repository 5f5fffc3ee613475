#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A day's worth of abuse: loaders dropped in every state, threads, forks, spawns, signals, exits. No leak, no hang."""
import gc
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
import weakref

from case import TIMEOUT_S, PythonCase, frozen, main, presto

# A batch of 16,384 samples, 16 MB each before the step: it takes long, and little memory.
SLOW = """\
name: slow
source: {type: synthetic, size: 16000000, count: 1000000000, yields: generated}
steps:
  - {step: rms, yields: rms, period: 16000000}
"""


def rss_bytes():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def threads_of_process():
    return len(list(pathlib.Path("/proc/self/task").iterdir()))


def numbers_of(loader, queue):
    queue.put([batch.numbers.tolist() for batch in loader])


class Abuse(PythonCase):
    def one_round(self, i):
        """A loader in one of its states, dropped."""
        loader = presto.Loader(self.stored, batch=1 + i % 7, shuffle="full", epochs=1 + i % 3, threads=i % 4,
                               per_epoch=i % 5 == 0, cache="memory:1MiB" if i % 6 == 0 else None)
        state = i % 9
        if state == 0:
            return None
        batches = iter(loader)
        if state == 1:
            return None
        batch = next(batches)
        if state == 2:
            return batch["image"]
        if state == 3:
            loader.close()
            return batch["label"]
        if state == 4:
            return batches  # the iterator keeps the loader
        if state == 5:
            loader.load_state_dict(loader.state_dict())
            return batch
        if state == 6:
            list(loader)
            return loader
        if state == 7:
            next(batches, None)
            loader.close()
            loader.close()
            return None
        return [batch, next(batches, None)]

    def test_a_thousand_loaders_dropped_in_every_state(self):
        held = []
        for i in range(100):  # pools, caches of the interpreter
            held = [*held[-8:], self.one_round(i)]
        held = []
        gc.collect()
        tracemalloc.start()
        before, memory, threads = tracemalloc.get_traced_memory()[0], rss_bytes(), threads_of_process()
        for i in range(1000):
            held = [*held[-8:], self.one_round(i)]
        held = []
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        self.assertLess(grown, 200_000)
        self.assertLess(rss_bytes() - memory, 64 << 20)
        self.assertEqual(threads_of_process(), threads)

    def test_a_loader_whose_owner_is_told_of_skips_is_collected(self):
        class Owner:
            def __init__(self, stored):
                self.loader = presto.Loader(stored, batch=2, epochs=None, threads=3, on_error="skip", on_skip=self.tell)

            def tell(self, *_):
                pass

        before, owners = threads_of_process(), []
        for _ in range(10):
            owner = Owner(self.stored)
            next(iter(owner.loader))
            owners.append(weakref.ref(owner))
            del owner
            gc.collect()
        self.assertEqual([owner() for owner in owners], [None] * 10)
        self.assertEqual(threads_of_process(), before)

    def test_threads_share_a_loader(self):
        loader = presto.Loader(self.stored, batch=1, shuffle="full", epochs=5, threads=2)
        wanted = sorted((b.epoch, int(b.numbers[0])) for b in presto.Loader(self.stored, batch=1, epochs=5))
        batches, found, lock = iter(loader), [], threading.Lock()

        def work():
            for batch in batches:
                with lock:
                    found.append((batch.epoch, int(batch.numbers[0])))
                loader.state_dict(), loader.stats(), loader.limit, loader.held

        workers = [threading.Thread(target=work) for _ in range(6)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(TIMEOUT_S)
        self.assertEqual(sorted(found), wanted)

    def test_threads_share_a_dataset(self):
        dataset = presto.open(self.stored)
        wanted, faults = [int(s["label"]) for s in dataset], []

        def work(first):
            for i in range(60):
                number = (first * 7 + i) % len(dataset)
                if int(dataset[number]["label"]) != wanted[number]:
                    faults.append(number)

        workers = [threading.Thread(target=work, args=(i,)) for i in range(5)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(TIMEOUT_S)
        self.assertEqual(faults, [])

    # ---- waiting ----

    def slow(self):
        pipeline = self.new("slow.yaml")
        pipeline.write_text(SLOW)
        return presto.Loader(presto.open((), pipeline=pipeline), batch=1 << 14)

    def test_close_ends_a_wait_in_another_thread(self):
        loader, raised = self.slow(), []

        def work():
            try:
                list(loader)
            except presto.StoppedError as error:
                raised.append(error)

        worker = threading.Thread(target=work)
        worker.start()
        while loader._native is None or not loader._is_inside:
            time.sleep(0.01)
        loader.close()
        worker.join(TIMEOUT_S)
        self.assertEqual(len(raised), 1)
        with self.assertRaises(presto.StoppedError):
            list(loader)

    def test_ctrl_c_ends_a_wait_and_the_loop_goes_on_later(self):
        code = """
import presto, signal, sys, threading, os, time
pipeline, stored = sys.argv[1:]
slow = presto.Loader(presto.open((), pipeline=pipeline), batch=1 << 14)
def interrupt():
    while not slow._is_inside:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    next(iter(slow))
except KeyboardInterrupt:
    print("interrupted", slow.state_dict()["stream"]["next"])
loader = presto.Loader(stored, batch=5)
taken = []
def handler(signum, frame):
    print("state", loader.state_dict()["stream"]["next"])
    raise InterruptedError("mine")
signal.signal(signal.SIGUSR1, handler)
for batch in loader:
    taken.append(batch.numbers.tolist())
    if len(taken) == 2:
        try:
            os.kill(os.getpid(), signal.SIGUSR1)
        except InterruptedError:
            break
for batch in loader:
    taken.append(batch.numbers.tolist())
print(sum(taken, []) == list(range(24)))
"""
        pipeline = self.new("slow.yaml")
        pipeline.write_text(SLOW)
        shown = self.python(code, pipeline, self.stored)
        self.assertEqual(shown.split("\n"), ["interrupted 0", "state 10", "True", ""])

    def test_a_handler_may_ask_for_the_state_while_the_loop_waits(self):
        code = """
import presto, signal, sys, os, threading, time, json
pipeline = sys.argv[1]
slow = presto.Loader(presto.open((), pipeline=pipeline), batch=1 << 14)
def handler(signum, frame):
    print(json.dumps(slow.state_dict()["stream"]["next"]))
    try:
        next(iter(slow))
    except RuntimeError as error:
        print(error)
    raise SystemExit(7)
signal.signal(signal.SIGTERM, handler)
def interrupt():
    while not slow._is_inside:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=interrupt).start()
next(iter(slow))
"""
        pipeline = self.new("slow.yaml")
        pipeline.write_text(SLOW)
        done = self.python(code, pipeline, check=False)
        self.assertEqual((done.returncode, done.stdout), (7, "0\nthe loader is in use\n"), done.stderr)

    # ---- processes ----

    def test_a_child_process_goes_on_where_the_parent_was(self):
        whole = [b.numbers.tolist() for b in presto.Loader(self.stored, batch=5, shuffle="full", epochs=2)]
        for method in ("fork", "spawn"):
            context = multiprocessing.get_context(method)
            loader = presto.Loader(self.stored, batch=5, shuffle="full", epochs=2, threads=2)
            first = next(iter(loader))
            held = first["image"].copy()
            queue = context.Queue()
            child = context.Process(target=numbers_of, args=(loader, queue))
            child.start()
            self.assertEqual(queue.get(timeout=TIMEOUT_S), whole[1:])
            child.join(TIMEOUT_S)
            self.assertEqual(child.exitcode, 0)
            self.assertEqual([b.numbers.tolist() for b in loader], whole[1:])
            self.assertEqual(first["image"].tobytes(), held.tobytes())

    def test_forks_in_the_middle_of_everything(self):
        dataset = presto.open(self.stored)
        loader = presto.Loader(dataset, batch=3, epochs=50, threads=3)
        batches = iter(loader)
        children = []
        for i in range(12):
            held = next(batches)
            sample = dataset[i]
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    ok = int(dataset[i]["label"]) == int(sample["label"]) and held["image"].sum() != 1.5
                    after = next(batches).numbers.tolist()
                    ok = ok and after == [n % 24 for n in range(3 * i + 3, 3 * i + 6)]
                    del held
                    loader.close()
                    code = 0 if ok else 2
                finally:
                    os._exit(code)
            children.append(child)
        for child in children:
            self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(next(batches).numbers.tolist(), [n % 24 for n in range(36, 39)])

    def test_the_interpreter_may_end_at_any_moment(self):
        code = """
import presto, sys, threading, time
stored, pipeline, how = sys.argv[1:]
loader = presto.Loader(stored, batch=1, shuffle="full", epochs=None, threads=3)
batches = iter(loader)
kept = [next(batches) for _ in range(5)]
slow = presto.Loader(presto.open((), pipeline=pipeline), batch=1 << 14)
def wait():
    next(iter(slow))
def spin():
    for batch in batches:
        pass
for target in (wait, spin):
    threading.Thread(target=target, daemon=True).start()
while not slow._is_inside:
    time.sleep(0.01)
if how == "raise":
    raise KeyError("over")
if how == "exit":
    sys.exit(3)
if how == "global":
    presto.kept = [kept, loader, slow, presto.open(stored)[3]]
"""
        pipeline = self.new("slow.yaml")
        pipeline.write_text(SLOW)
        for how, wanted in (("end", 0), ("raise", 1), ("exit", 3), ("global", 0)):
            done = self.python(code, self.stored, pipeline, how, check=False)
            self.assertEqual(done.returncode, wanted, (how, done.stderr))
            self.assertNotIn("Fatal", done.stderr)

    def test_killed_in_the_middle(self):
        code = "import presto, sys\nfor b in presto.Loader(sys.argv[1], epochs=None): print(1, flush=True)"
        child = subprocess.Popen([sys.executable, "-B", "-c", code, self.stored], stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL)
        child.stdout.readline()
        child.send_signal(signal.SIGTERM)
        child.stdout.close()
        self.assertEqual(child.wait(TIMEOUT_S), -signal.SIGTERM)

    def test_subinterpreters_are_refused(self):
        code = """
import sys
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    print("none")
    sys.exit()
one = interpreters.create()
interpreters.run_string(one, '''
import sys
sys.path[:] = %r
try:
    import presto
except ImportError as error:
    print(type(error).__name__, error, flush=True)
''' % sys.path)
"""
        shown = self.python(code)
        if shown.strip() != "none" and "numpy" not in shown:  # NumPy may refuse first
            self.assertIn("subinterpreter", shown)


if __name__ == "__main__":
    main()
