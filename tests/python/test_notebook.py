#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What people type into a notebook: it does what Python's own sequences and loops do, or says clearly why not."""
import multiprocessing
import pathlib

import test_reading
from case import TIMEOUT_S, PythonCase, frozen, main, np, plain, presto


def lengths(dataset, numbers, out):
    """In a process of its own."""
    out.put((len(dataset), dataset[numbers]["label"].tolist(), sum(b.rows for b in presto.Loader(dataset, 5))))


class Loops(PythonCase):
    def batches(self, batch=5, **options):
        return [frozen(b) for b in presto.Loader(self.stored, batch, **options)]

    def test_lengths_are_what_comes(self):
        for options in ({}, {"epochs": 3}, {"drop_last": True}, {"world": 5}, {"world": 5, "drop_last": True, "epochs": 2},
                        {"batch": 24}, {"batch": 25}, {"batch": 10**9}, {"batch": 25, "drop_last": True}):
            options = {"batch": 5, **options}
            loader = presto.Loader(self.stored, **options)
            self.assertEqual(len(loader), len(list(loader)), options)
            self.assertEqual(len(loader), len(list(loader)), options)
        self.assertEqual([b.rows for b in presto.Loader(self.stored, batch=25)], [24])
        with self.assertRaises(TypeError):
            len(presto.Loader(self.stored, epochs=None))

    def test_a_second_for_is_the_next_epoch(self):
        loader = presto.Loader(self.stored, 5, shuffle=True)
        self.assertTrue([frozen(b) for b in loader] + [frozen(b) for b in loader] == self.batches(shuffle="full", epochs=2))

    def test_next_and_break_go_on(self):
        whole = self.batches(epochs=2)
        loader = presto.Loader(self.stored, 5, epochs=2)
        taken = [frozen(next(iter(loader))), frozen(next(iter(loader)))]
        for number, batch in enumerate(loader):
            taken.append(frozen(batch))
            if number == 2:
                break
        taken += [frozen(b) for b in loader]
        self.assertTrue(taken == whole)
        with self.assertRaises(TypeError):
            next(loader)  # as with any iterable that is no iterator
        with self.assertRaises(TypeError):
            loader[0]

    def test_loaders_in_pairs(self):
        left, right = presto.Loader(self.stored, 5), presto.Loader(self.stored, 8, shuffle="full")
        pairs = [(frozen(a), frozen(b)) for a, b in zip(left, right)]
        self.assertTrue(pairs == list(zip(self.batches(), self.batches(8, shuffle="full"))))
        self.assertEqual(len(pairs), 3)
        self.assertEqual([b.rows for b in left], [4])  # zip() had taken the fourth one
        loader = presto.Loader(self.stored, 4)
        self.assertTrue([frozen(b) for pair in zip(loader, loader) for b in pair] == self.batches(4))
        loader, seen = presto.Loader(self.stored, 4), []
        for outer in loader:
            seen.append(frozen(outer))
            seen += [frozen(inner) for inner in loader]
        self.assertTrue(seen == self.batches(4))

    def test_a_closed_loader_says_so(self):
        loader = presto.Loader(self.stored, 5)
        batch = next(iter(loader))
        wanted = batch["image"].copy()
        loader.close()
        loader.close()
        with self.assertRaisesRegex(presto.StoppedError, "the loader is closed"):
            next(iter(loader))
        self.assertTrue(np.array_equal(batch["image"], wanted))
        self.assertEqual(len(loader), 5)
        self.assertGreater(loader.stats()["batches"], 0)
        again = presto.Loader(self.stored, 5)
        again.load_state_dict(loader.state_dict())
        self.assertTrue([frozen(b) for b in again] == self.batches()[1:])

    def test_numbers_of_all_kinds(self):
        options = {"seed": np.int64(7), "epochs": np.uint8(2), "rank": np.int32(1), "world": np.int64(2), "threads": np.int64(1)}
        found = [frozen(b) for b in presto.Loader(self.stored, np.int64(4), shuffle="full", **options)]
        self.assertTrue(found == self.batches(4, shuffle="full", seed=7, epochs=2, rank=1, world=2))
        for wrong in ({"batch": 0}, {"batch": -1}, {"epochs": 0}, {"seed": -1}, {"seed": 1 << 64}, {"rank": 2, "world": 2},
                      {"rank": -1}, {"world": 0}, {"threads": -1}, {"threads": "two"}, {"shuffle": "some"}, {"shuffle": 5},
                      {"order": "any"}, {"prefetch": "much"}, {"hold": -1}, {"cache": "memory"}, {"on_error": "ignore"},
                      {"verify": "some"}):
            opens = presto.open if "verify" in wrong else presto.Loader
            with self.assertRaisesRegex(ValueError, next(iter(wrong))):
                opens(self.stored, **wrong)
        for wrong in ({"batch": 32.0}, {"batch": "32"}, {"seed": None}, {"threads": 1.5}, {"features": "image"},
                      {"batch_size": 32}):
            with self.assertRaisesRegex(TypeError, next(iter(wrong))):
                presto.Loader(self.stored, **wrong)

    def test_an_endless_stream_of_nothing_ends(self):
        loader = presto.Loader(self.stored, batch=25, drop_last=True, epochs=None)
        with self.assertRaisesRegex(presto.ArgumentError, "no batch"):
            next(iter(loader))


class Samples(PythonCase):
    def test_numbers_slices_and_masks(self):
        dataset = presto.open(pathlib.Path(self.stored))
        labels = [int(sample["label"]) for sample in dataset]
        self.assertEqual(len(labels), len(dataset))
        for key in (slice(2, 9), slice(None, None, -1), slice(-3, None), slice(20, 99), slice(5, 5), slice(9, 2)):
            self.assertEqual(dataset[key]["label"].tolist(), labels[key])
            self.assertEqual(dataset[key].rows, len(labels[key]))
        for number in (-1, -24, True, np.int64(-2), np.uint8(3), np.array(4)):
            self.assertEqual(dataset[number]["label"], labels[number])
        mask = np.array(labels) == labels[0]
        self.assertEqual(dataset[mask]["label"].tolist(), [labels[0]] * mask.sum())
        self.assertEqual(dataset[list(mask)].numbers.tolist(), np.flatnonzero(mask).tolist())
        for wrong in (24, -25, 2**70, -2**70, [0, 2**70], [True], mask[:-1], [[1]]):
            with self.assertRaises(IndexError):
                dataset[wrong]
        with self.assertRaisesRegex(IndexError, "24 samples, and no number 99"):
            dataset[[1, 99]]
        for wrong in (None, 1.0, [1.0], {}, slice(1.0, 2)):
            with self.assertRaises(TypeError):
                dataset[wrong]
        with self.assertRaisesRegex(TypeError, r"dataset\[i\]\['label'\]"):
            dataset["label"]

    def test_no_samples_have_features_all_the_same(self):
        table = self.new("table")
        with presto.Writer(table) as writer:
            for i in range(3):
                writer.add({"x": np.zeros((2, i), np.float32), "y": np.zeros((2, 3), np.int16), "word": f"{i}", "words": ["a"] * i})
        for dataset in (presto.open(self.stored), presto.open(table), presto.open(table, features=["word", "y"])):
            none, some = dataset[:0], dataset[:2]
            self.assertEqual((none.rows, none.numbers.tolist(), list(none)), (0, [], list(some)))
            for name, value in some.items():
                self.assertIs(type(none[name]), type(value))
                self.assertEqual(len(none[name]), 0)
                if isinstance(value, np.ndarray):
                    self.assertEqual((none[name].dtype, none[name].shape[1:]), (value.dtype, value.shape[1:]))
                else:
                    self.assertEqual((list(none[name]), none[name].values.dtype), ([], value.values.dtype))

    def test_a_name_that_is_misspelt(self):
        for opens in (lambda: presto.open(self.stored, features=["imgae"]), lambda: presto.Loader(self.stored, features=["imgae"]),
                      lambda: presto.Loader(self.stored, pad={"imgae": 0})):
            with self.assertRaisesRegex(presto.ArgumentError, "no feature 'imgae', only image, key, label; is it 'image'?"):
                opens()
        file, _ = test_reading.Reading.foreign(self)  # declares nothing: the first samples tell
        for opens in (lambda: presto.open(file, features=["tokns"]), lambda: presto.Loader(file, features=["tokns"]),
                      lambda: presto.Loader(presto.open(file), pad={"tokns": 0})):
            with self.assertRaisesRegex(presto.ArgumentError, "no feature 'tokns', only id, text, tokens; is it 'tokens'?"):
                opens()
        self.assertEqual(presto.open(file, features=["tokens"])[3].keys(), {"tokens"})
        with self.assertRaises(presto.NotFoundError) as raised:
            presto.open(self.stored / "nothing")
        self.assertFalse(hasattr(raised.exception, "__notes__"))
        with self.assertRaises(presto.NotFoundError) as raised:
            presto.Loader(self.make_photos(), 4)
        self.assertIn("pipeline=", raised.exception.__notes__[0])

    def test_a_dataset_goes_to_other_processes(self):
        for how in ("spawn", "fork", "forkserver"):
            context = multiprocessing.get_context(how)
            for dataset in (presto.open(self.stored), presto.open(self.stored).split("1/1")[0]):
                queue = context.Queue()
                child = context.Process(target=lengths, args=(dataset, [1, 0], queue))
                child.start()
                self.assertEqual(queue.get(timeout=TIMEOUT_S), (len(dataset), dataset[[1, 0]]["label"].tolist(), len(dataset)))
                child.join(TIMEOUT_S)
                self.assertEqual(child.exitcode, 0)

    def test_samples_are_the_callers_own(self):
        dataset = presto.open(self.stored)
        sample = dataset[3]
        before = plain(dataset[3]["image"])
        sample["image"][:] = 0
        self.assertEqual(plain(dataset[3]["image"]), before)


if __name__ == "__main__":
    main()
