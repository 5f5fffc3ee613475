#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""state_dict: after any number of batches, through JSON, the rest is byte-equal; loops that are left lose nothing."""
import json
import pickle

from case import PythonCase, frozen, main, presto, rows_of

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
        for broken in ({}, {"presto": 2}, {**state, "stream": {"presto_state": 1}}, {**state, "stream": {}}):
            with self.assertRaises((ValueError, KeyError)):
                loader.load_state_dict(broken)
        loader.load_state_dict(state)
        self.assertTrue([frozen(b) for b in loader] == rest)
        any_order = presto.Loader(self.stored, order="completion")
        with self.assertRaises(presto.ArgumentError):
            any_order.state_dict()
        self.assertEqual(sorted(int(b.numbers[0]) for b in any_order), list(range(24)))


if __name__ == "__main__":
    main()
