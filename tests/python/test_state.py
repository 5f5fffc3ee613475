#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""state_dict: after any number of batches, through JSON, the rest is byte-equal; loops that are left lose nothing."""
import json
import pickle
import signal
import threading
import warnings

from case import PythonCase, TIMEOUT_S, frozen, main, presto, rows_of

SHUFFLES = ("none", "full", "buffer:7", "blocks:5")


class Stop(Exception):
    pass


class State(PythonCase):
    def options(self):
        world = self.random.choice([1, 1, 2, 3, 5])
        return {"batch": self.random.randint(1, 9), "shuffle": self.random.choice(SHUFFLES),
                "seed": self.random.randint(0, 1 << 60), "epochs": self.random.randint(1, 4), "world": world,
                "rank": self.random.randrange(world), "drop_last": self.random.random() < 0.3}

    def work(self):
        """Options that change no byte."""
        return {"threads": self.random.choice([0, 1, 3, "auto"]), "prefetch": self.random.choice([1, 1 << 18, "256MiB"]),
                "per_epoch": self.random.random() < 0.4, "cache": self.random.choice([None, None, "memory:8MiB"])}

    def drain(self, loader):
        """All that is left of the epochs, whether one `for` delivers one of them or all."""
        found = [frozen(batch) for batch in loader]
        if loader._per_epoch:
            while loader._until < loader._first + loader._epochs:
                found += [frozen(batch) for batch in loader]
        return found

    def test_the_rest_is_byte_equal_after_any_number_of_batches(self):
        for _ in range(60):
            options = self.options()
            whole = self.drain(presto.Loader(self.stored, **options, **self.work()))
            work = self.work()
            loader = presto.Loader(self.stored, **options, **work)
            taken, left = [], self.random.randint(0, len(whole))
            stop = left
            while stop > 0:
                for batch in loader:
                    taken.append(frozen(batch))
                    stop -= 1
                    if stop == 0:
                        break
            text = json.dumps(loader.state_dict())
            more = self.work()
            more["per_epoch"] = work["per_epoch"]
            again = presto.Loader(self.stored, **options, **more)
            again.load_state_dict(json.loads(text))
            self.assertEqual(json.dumps(again.state_dict()), text)
            rest = self.drain(again) if left < len(whole) else [frozen(batch) for batch in again]
            if left == len(whole) and left > 0:
                self.assertEqual(rest, [])
            self.assertTrue(taken + rest == whole, (options, work, more, left, len(whole)))

    def test_a_loop_that_is_left_goes_on_behind_what_it_took(self):
        for _ in range(25):
            options, work = self.options(), self.work()
            whole = self.drain(presto.Loader(self.stored, **options))
            loader = presto.Loader(self.stored, **options, **work)
            taken = []
            while len(taken) < len(whole):
                stop = self.random.randint(1, 5)
                try:
                    for batch in loader:
                        taken.append(frozen(batch))
                        stop -= 1
                        if stop == 0 and self.random.random() < 0.5:
                            break
                        if stop <= 0:
                            raise Stop
                except Stop:
                    pass
            self.assertTrue(taken == whole, (options, work))

    def test_signals_cost_no_batch(self):
        """Whatever line of the package they come in."""
        loader = presto.Loader(self.stored, batch=1, epochs=None, threads=1, features=["label"])
        position, batch, interrupted = 0, next(iter(loader)), 0

        def interrupt(*_):
            raise Stop

        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            for _ in range(200):
                try:
                    signal.setitimer(signal.ITIMER_REAL, self.random.uniform(0.001, 0.004))
                    for batch in loader:
                        self.assertEqual(batch.epoch * 24 + batch.first, position := position + 1)
                except Stop:
                    interrupted += 1
                position = batch.epoch * 24 + batch.first
                stream = loader.state_dict()["stream"]
                self.assertEqual(stream["epoch"] * 24 + stream["next"], position + 1)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        self.assertEqual(interrupted, 200)

    def test_a_batch_that_could_not_be_shown_comes_again(self):
        mix = presto.mix({self.stored: 0.5, self.write("-u", "resized", "-s", "1"): 0.5})
        for dataset in (self.stored, mix):
            for work in ({}, {"order": "completion", "threads": 1}, {"per_epoch": True}):
                loader = presto.Loader(dataset, batch=5, epochs=2, **work)
                whole = self.drain(presto.Loader(dataset, batch=5, epochs=2))
                taken = [frozen(next(iter(loader)))]
                shown = loader._wrap
                while len(taken) < len(whole):
                    loader._wrap = lambda found: 1 / 0
                    with self.assertRaises(ZeroDivisionError):
                        list(loader)
                    loader._wrap = shown
                    if "order" not in work:
                        again = presto.Loader(dataset, batch=5, epochs=2, **work)
                        again.load_state_dict(loader.state_dict())
                        self.assertEqual(len(taken) + len(self.drain(again)), len(whole))
                    taken.append(frozen(next(iter(loader))))
                self.assertTrue(taken == whole, work)

    def test_threads_lose_no_batch_by_failures(self):
        loader = presto.Loader(self.stored, batch=1, epochs=3, threads=2, features=["label"])
        shown, found, lock = loader._wrap, [], threading.Lock()

        def fail(native):
            if self.random.random() < 0.2:
                raise Stop
            return shown(native)

        loader._wrap = fail
        batches = iter(loader)

        def work():
            while True:
                try:
                    batch = next(batches)
                except Stop:
                    continue
                except StopIteration:
                    return
                with lock:
                    found.append((batch.epoch, int(batch.numbers[0])))

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(TIMEOUT_S)
        loader._wrap = shown
        found += [(batch.epoch, int(batch.numbers[0])) for batch in loader] if len(found) < 72 else []
        self.assertEqual(sorted(found), [(epoch, number) for epoch in range(3) for number in range(24)])

    def test_a_warning_as_an_error_costs_no_batch(self):
        folder = self.write("-u", "resized", "-s", "2")
        path = sorted(folder.glob("*.index"))[0]
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0xFF
        path.write_bytes(data)
        loader, found = presto.Loader(folder, batch=5), []
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with self.assertRaises(presto.Warning):
                for batch in loader:
                    found.append(batch.first)
            found += [batch.first for batch in loader]
        self.assertEqual(found, [0, 5, 10, 15, 20])

    def test_one_epoch_a_loop_is_the_same_stream(self):
        options = {"batch": 5, "shuffle": "full", "seed": 3, "threads": 2}
        whole = [frozen(b) for b in presto.Loader(self.stored, epochs=4, **options)]
        loader = presto.Loader(self.stored, epochs=4, per_epoch=True, **options)
        loops = [[frozen(b) for b in loader] for _ in range(4)]
        self.assertEqual([len(loop) for loop in loops], [5] * 4)
        self.assertEqual(len(loader), 5)
        self.assertTrue(sum(loops, []) == whole)
        short = presto.Loader(self.stored, epochs=1, **options)  # opened anew each time
        self.assertTrue(sum(([frozen(b) for b in short] for _ in range(4)), []) == whole)
        endless = presto.Loader(self.stored, epochs=None, per_epoch=True, **options)
        self.assertTrue(sum(([frozen(b) for b in endless] for _ in range(4)), []) == whole)

    def test_a_state_between_loops_begins_the_next_one(self):
        options = {"batch": 7, "shuffle": "full", "epochs": 3}
        for per_epoch in (False, True):
            loader = presto.Loader(self.stored, per_epoch=per_epoch, **options)
            first = [frozen(b) for b in loader]
            state = loader.state_dict()
            second = [frozen(b) for b in loader]
            self.assertNotEqual(first, second)
            again = presto.Loader(self.stored, per_epoch=per_epoch, **options)
            again.load_state_dict(state)
            self.assertTrue([frozen(b) for b in again] == second)
            inside = presto.Loader(self.stored, per_epoch=per_epoch, **options)
            batches = iter(inside)
            for _ in first:
                next(batches)
            state = inside.state_dict()  # within the loop, behind its last batch
            again.load_state_dict(state)
            self.assertEqual(list(again), [])
            self.assertTrue([frozen(b) for b in again] == second)

    def test_a_loop_that_took_the_last_batch_and_not_the_end_is_done(self):
        for _ in range(20):
            options, work = self.options(), self.work()
            if work["per_epoch"] and options["shuffle"] == "none" and self.random.random() < 0.5:
                work = {"order": "completion"}
            loader, loops = presto.Loader(self.stored, **options, **work), []
            for loop in range(4):
                batches = []
                if loop % 2 == 0:
                    batches = [frozen(batch) for _, batch in zip(range(len(loader)), loader)]
                else:
                    for batch in loader:
                        batches.append(frozen(batch))
                        if len(batches) == len(loader):
                            break
                self.assertEqual(len(batches), len(loader), (options, work, loop))
                loops += batches
                if loop == 1 and "order" not in work:
                    loader = pickle.loads(pickle.dumps(loader))
            whole = presto.Loader(self.stored, **options, threads=0)
            rounds = 4 if "per_epoch" not in work or not work["per_epoch"] else -(-4 // options["epochs"])
            wanted = [frozen(batch) for _ in range(rounds) for batch in whole][: len(loops)]
            if "order" in work:
                loops, wanted = sorted(row[0] for row in loops), sorted(row[0] for row in wanted)
            self.assertTrue(loops == wanted, (options, work))

    def test_a_loop_that_took_the_last_batch_is_done_also_if_samples_behind_it_are_left_out(self):
        folder = self.write("-u", "resized", "-s", "1")
        path = next(folder.glob("*.tfrecord"))
        data = bytearray(path.read_bytes())
        data[-100] ^= 1
        path.write_bytes(data)
        for work in ({}, {"per_epoch": True, "epochs": 2}, {"threads": 0}):
            loader, loops = presto.Loader(folder, batch=1, on_error="skip", **work), []
            for _ in range(3):
                loops.append([int(batch.numbers[0]) for _, batch in zip(range(23), loader)])
            self.assertEqual(loops, [list(range(23))] * 3, work)

    def test_loops_of_nothing_end(self):
        loader = presto.Loader(self.stored, batch=25, drop_last=True)
        for _ in range(3):
            self.assertEqual([batch.rows for _, batch in zip(range(2), loader)], [])
        loader = presto.Loader(self.stored, batch=12)
        state = [loader.state_dict() for _ in loader][-1]
        for _ in range(2):
            loader.load_state_dict(state)
            self.assertEqual(list(loader), [])  # the loop that took the last batch ends, also in another program
            self.assertEqual([batch.epoch for batch in loader], [1, 1])

    def test_batch_size_and_world_may_change(self):
        loader = presto.Loader(self.stored, batch=4, shuffle="full", seed=5)
        whole = [row for batch in loader for row in rows_of(batch)]
        taken = []
        loader = presto.Loader(self.stored, batch=4, shuffle="full", seed=5)
        for batch in loader:
            taken += rows_of(batch)
            if len(taken) == 12:
                break
        state = loader.state_dict()
        ranks = []
        for rank in range(2):
            again = presto.Loader(self.stored, batch=1, shuffle="full", seed=5, rank=rank, world=2)
            again.load_state_dict(state)
            ranks.append([row for batch in again for row in rows_of(batch)])
        mixed = [row for pair in zip(*ranks) for row in pair]
        self.assertTrue(taken + mixed == whole)

    def test_loaders_are_pickled_with_their_position(self):
        loader = presto.Loader(self.stored, batch=5, shuffle="full", epochs=2)
        whole = [frozen(b) for b in presto.Loader(self.stored, batch=5, shuffle="full", epochs=2)]
        taken = []
        for batch in loader:
            taken.append(frozen(batch))
            if len(taken) == 3:
                break
        again = pickle.loads(pickle.dumps(loader))
        self.assertTrue(taken + [frozen(b) for b in again] == whole)
        self.assertTrue([frozen(b) for b in loader] == whole[3:])

    def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(self):
        loader = presto.Loader(self.stored, batch=5, shuffle="full", seed=1)
        next(iter(loader))
        state = loader.state_dict()
        rest = [frozen(b) for b in loader]
        for other in ({"seed": 2}, {"shuffle": "none"}):
            wrong = presto.Loader(self.stored, **{"batch": 5, "shuffle": "full", "seed": 1, **other})
            taken = [frozen(next(iter(wrong)))]
            with self.assertRaises(presto.ArgumentError):
                wrong.load_state_dict(state)
            self.assertEqual(len(taken + [frozen(b) for b in wrong]), 5)
        for broken in (None, [], "{}", 7):
            with self.assertRaisesRegex(TypeError, "a state is a dict"):
                loader.load_state_dict(broken)
        with self.assertRaisesRegex(ValueError, "lacks stream, first_epoch"):
            loader.load_state_dict({"presto": 1})
        for broken in ({}, {"presto": 2}, {**state, "stream": {"presto_state": 1}}, {**state, "stream": {}}):
            with self.assertRaises((ValueError, KeyError)):
                loader.load_state_dict(broken)
        loader.load_state_dict(state)
        self.assertTrue([frozen(b) for b in loader] == rest)
        for broken in ({"until_epoch": -1}, {"until_epoch": 0}, {"first_epoch": 5, "stream": None}, {"first_epoch": -1},
                       {"first_epoch": "0"}, {"ended": 1}, {"stream": []}, {"until_epoch": 1 << 70},
                       {"stream": {**state["stream"], "epoch": 3}}):
            before = loader.state_dict()
            with self.assertRaises((ValueError, TypeError), msg=broken):
                loader.load_state_dict({**state, **broken})
            self.assertEqual(loader.state_dict(), before)
        any_order = presto.Loader(self.stored, order="completion")
        with self.assertRaises(presto.ArgumentError):
            any_order.state_dict()
        self.assertEqual(sorted(int(b.numbers[0]) for b in any_order), list(range(24)))

    def test_a_state_before_the_first_batch_names_its_stream(self):
        options = {"batch": 5, "shuffle": "full", "seed": 1}
        other = self.write("-u", "resized", "-s", "1", "--limit", "9")
        for begun in (False, True):
            for work in ({}, {"cache": "memory:8MiB", "on_error": "skip"}):
                loader = presto.Loader(self.stored, **options, **work)
                if begun:
                    iter(loader)
                state = json.loads(json.dumps(loader.state_dict()))
                whole = [frozen(b) for b in loader]
                again = presto.Loader(self.stored, **options)
                again.load_state_dict(state)
                self.assertTrue([frozen(b) for b in again] == whole)
                for wrong in ({"seed": 2}, {"shuffle": "none"}, {"dataset": other}):
                    with self.assertRaises(presto.ArgumentError, msg=wrong):
                        presto.Loader(**{"dataset": self.stored, **options, **wrong}).load_state_dict(state)
        # One that says nothing of the stream is of its beginning.
        loader.load_state_dict({"presto": 1, "stream": None, "first_epoch": 0, "until_epoch": 1, "ended": False})
        self.assertTrue([frozen(b) for b in loader] == whole)
        mix = presto.Loader(presto.mix({self.stored: 0.5, other: 0.5}), batch=5)
        state = mix.state_dict()
        whole = [frozen(b) for b in mix]
        mix.load_state_dict(state)
        self.assertTrue([frozen(b) for b in mix] == whole)

    def test_a_state_goes_on_to_the_last_of_other_epochs(self):
        options = {"batch": 12, "shuffle": "full", "seed": 1}
        places = [(epoch, first) for epoch in range(9) for first in (0, 12)]
        for left in range(1, 5):  # batches that a loader of two epochs took; with the end of its `for`, 5
            for ended in (False, True):
                if ended and left < 4:
                    continue
                loader = presto.Loader(self.stored, epochs=2, **options)
                batches = iter(loader)
                for _ in range(left):
                    next(batches)
                if ended:
                    self.assertEqual(list(batches), [])
                for epochs in (1, 2, 5, None):
                    again = presto.Loader(self.stored, epochs=epochs, **options)
                    end = 18 if epochs is None else 2 * epochs if not ended else 2 * epochs + left
                    if epochs == 1 and left > 2 and not ended:
                        with self.assertRaisesRegex(presto.ArgumentError, "epochs=2 or more"):
                            again.load_state_dict(loader.state_dict())
                        continue
                    again.load_state_dict(loader.state_dict())
                    found = [(b.epoch, b.first) for b, _ in zip(again, range(18 - left))]
                    self.assertEqual(found, places[left:end], (left, ended, epochs))
                    if epochs is not None:
                        self.assertEqual(len([*again]), len(again))  # the next `for` is a whole one
                again = presto.Loader(self.stored, epochs=5, per_epoch=True, **options)
                again.load_state_dict(loader.state_dict())
                found = [(b.epoch, b.first) for _ in range(6) for b in again]
                self.assertEqual(found[: 10 - left], places[left:10], (left, ended))


if __name__ == "__main__":
    main()
