#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Failures are exceptions by kind, with file, record and byte; samples may be left out instead."""
import copy
import errno
import pickle
import shutil
import warnings

from case import PythonCase, cli, frozen, main, np, presto


class TwoWords(presto.ArgumentError):
    """As a user may derive one, with other arguments."""

    def __init__(self, what, where):
        super().__init__(f"{what} in {where}", message=what)


class Errors(PythonCase):
    def damaged(self, record=3):
        """A copy of the dataset with one bit of a record of the second shard changed; the shard's path."""
        folder = self.new("damaged")
        shutil.copytree(self.stored, folder)
        shard = sorted(folder.glob("*.tfrecord"))[1]
        data = bytearray(shard.read_bytes())
        at = 0
        for _ in range(record):
            at += 16 + int.from_bytes(data[at : at + 8], "little")
        data[at + 20] ^= 1
        shard.write_bytes(data)
        return folder, shard, at

    def test_damage_has_a_place(self):
        folder, shard, at = self.damaged()
        loader = presto.Loader(folder, batch=4)
        taken = []
        with self.assertRaises(presto.CorruptError) as raised:
            for batch in loader:
                taken.append(frozen(batch))
        self.assertTrue(taken[:2] == [frozen(b) for b in presto.Loader(self.stored, batch=4)][:2])
        self.assertEqual(sum(len(b[3]) for b in taken), 8 + 3)
        error = raised.exception
        self.assertEqual((error.file, error.record, error.status), (str(shard), 3, "PRESTO_ERR_CORRUPT"))
        self.assertTrue(at <= error.offset < at + 30, (error.offset, at))
        self.assertIn(str(shard), str(error))
        self.assertNotIn(str(shard), error.message)
        self.assertIsInstance(error, ValueError)
        for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
            self.assertEqual((str(again), again.file, again.offset, type(again)),
                             (str(error), error.file, error.offset, type(error)))
        with self.assertRaises(presto.CorruptError):  # the same failure at the same place
            list(loader)
        dataset = presto.open(folder)
        with self.assertRaises(presto.CorruptError) as raised:
            dataset[11]
        self.assertEqual(raised.exception.record, 3)
        self.assertEqual(dataset[12]["label"], presto.open(self.stored)[12]["label"])

    def test_samples_are_left_out_and_told(self):
        folder, shard, _ = self.damaged()
        told = []
        loader = presto.Loader(folder, batch=4, epochs=2, on_error="skip:2", on_skip=lambda *what: told.append(what))
        batches = list(loader)
        self.assertEqual(sum(b.rows for b in batches), 46)
        self.assertEqual(sum(b.skipped for b in batches), 2)
        self.assertEqual([(epoch, sample) for epoch, sample, _ in told], [(0, 11), (1, 11)])
        self.assertEqual({(type(e), e.file, e.record) for _, _, e in told}, {(presto.CorruptError, str(shard), 3)})
        self.assertEqual(loader.stats()["skipped"], 2)
        for policy in ("skip:0", "skip:1%"):
            with self.assertRaises(presto.CorruptError):
                list(presto.Loader(folder, batch=4, on_error=policy))
        self.assertEqual(sum(b.rows for b in presto.Loader(folder, batch=4, on_error="skip:50%")), 23)

    def test_what_on_skip_raises_ends_the_loop_and_loses_nothing(self):
        folder, _, _ = self.damaged()
        calls = []

        def refuse(epoch, sample, error):
            calls.append(sample)
            if len(calls) == 1:
                raise KeyError("not this one")

        loader = presto.Loader(folder, batch=4, on_error="skip", on_skip=refuse)
        taken = []
        with self.assertRaises(KeyError):
            for batch in loader:
                taken += batch.numbers.tolist()
        for batch in loader:
            taken += batch.numbers.tolist()
        self.assertEqual(taken, [n for n in range(24) if n != 11])
        self.assertEqual(calls, [11, 11])

    def test_kinds(self):
        with self.assertRaises(presto.NotFoundError) as raised:
            presto.open(self.folder / "nothing-here")
        self.assertIsInstance(raised.exception, FileNotFoundError)
        self.assertIn("nothing-here", str(raised.exception))
        with self.assertRaises(presto.NotFoundError):
            presto.open(self.make_photos(), pipeline="no-such-pipeline")
        broken = self.new("broken.yaml")
        broken.write_text("name: broken\nsource: {type: files}\nsteps: [{step: nothing}]\n")
        with self.assertRaisesRegex(presto.PipelineError, "line 3"):
            presto.open(self.make_photos(), pipeline=broken)
        text = self.new("a.txt")
        text.write_text("text, not records\n" * 100)
        with self.assertRaises(presto.ForeignError):
            presto.open(text)
        folder = self.new("cut")
        shutil.copytree(self.stored, folder)
        shard = sorted(folder.glob("*.tfrecord"))[0]
        shard.write_bytes(shard.read_bytes()[:-30])
        with self.assertRaises(presto.CorruptError):
            list(presto.Loader(folder))
        (folder / "dataset.json").unlink()
        with self.assertRaises(presto.TruncatedError):
            list(presto.Loader(folder))
        with self.assertRaises(presto.ArgumentError):
            list(presto.Loader(self.stored, shuffle="buffer:0"))

    def test_pickled_and_copied_they_are_what_they_were(self):
        kinds = [kind for kind in vars(presto).values() if isinstance(kind, type) and issubclass(kind, presto.Error)]
        self.assertGreater(len(kinds), 15)
        for kind in (*kinds, TwoWords):
            error = kind("what", "where") if kind is TwoWords else kind("no", message="m", file="f", record=3, offset=4)
            self.assertEqual(error.status != "", kind is not presto.Error)
            error.add_note("noted")
            if isinstance(error, OSError):
                error.errno = errno.EACCES
            for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
                self.assertIs(type(again), kind)
                self.assertEqual((str(again), vars(again)), (str(error), vars(error)))
                self.assertEqual(getattr(again, "errno", None), getattr(error, "errno", None))
        for wrong in (lambda: presto.open(self.stored, features=["nothing"]), lambda: presto.open(self.stored, split="90/10"),
                      lambda: presto.mix([(self.stored, 1), (presto.mix({self.stored: 1}), 1)]), lambda: presto.step(lambda x: x)):
            with self.assertRaises(presto.ArgumentError) as raised:
                wrong()
            self.assertEqual(raised.exception.status, "PRESTO_ERR_ARGUMENT")
            self.assertIsInstance(pickle.loads(pickle.dumps(raised.exception)), ValueError)

    def test_wrong_arguments_are_told_at_once(self):
        for wrong in ({"batch": 0}, {"epochs": 0}, {"rank": 2, "world": 2}, {"shuffle": "some"}, {"order": "any"},
                      {"threads": -1}, {"threads": "many"}, {"cache": "memory"}, {"cache": "disk:8GiB"},
                      {"on_error": "ignore"}, {"prefetch": "lots"}, {"hold": "1XB"},
                      {"order": "completion", "per_epoch": True}):
            with self.assertRaises(ValueError, msg=wrong):
                presto.Loader(self.stored, **wrong)
        with self.assertRaises(TypeError):
            presto.Loader(self.stored, features="image")
        for opens in (presto.open, presto.Loader):
            with self.assertRaisesRegex(presto.ArgumentError, "^feature 'label' is asked for twice$"):
                opens(self.stored, features=["label", "image", "label"])
        with self.assertRaises(ValueError):
            presto.open(self.stored, verify="some")
        with self.assertRaisesRegex(ValueError, "seed is -1"):
            list(presto.Loader(self.stored, seed=-1))
        beyond = 1 << 64
        for name, value in (("shuffle", f"buffer:{beyond}"), ("shuffle", f"blocks:{beyond}"), ("on_error", f"skip:{beyond}")):
            with self.assertRaisesRegex(ValueError, f"N of {name} is too large: {beyond}"):
                presto.Loader(self.stored, **{name: value})
        for opens in (presto.open, presto.Loader):
            with self.assertRaisesRegex(presto.ArgumentError, "features is an empty list"):
                opens(self.stored, features=[])
        with self.assertRaisesRegex(ValueError, "limit is 0"):
            presto.write(self.stored, self.new("written"), limit=0)

    def test_whole_numbers_of_numpy_are_taken(self):
        wanted = [part[:].numbers.tolist() for part in presto.open(self.stored).split("50/50", seed=3)]
        found = presto.open(self.stored).split("50/50", seed=np.int64(3))
        self.assertEqual([part[:].numbers.tolist() for part in found], wanted)
        part = presto.open(self.stored, split="50/50", part="train", split_seed=np.uint8(3))
        self.assertEqual(len(part), len(wanted[0]))
        numbers = {"batch": np.int64(5), "seed": np.uint64(3), "epochs": np.int8(1), "threads": np.int32(0)}
        self.assertEqual(len(list(presto.Loader(self.stored, **numbers))), 5)

    def test_what_does_no_harm_is_a_warning(self):
        folder = self.new("index")
        shutil.copytree(self.stored, folder)
        index = sorted(folder.glob("*.index"))[0]
        data = bytearray(index.read_bytes())
        data[-1] ^= 1
        index.write_bytes(data)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.assertEqual(sum(b.rows for b in presto.Loader(folder, batch=5)), 24)
        self.assertEqual([w.category for w in caught], [presto.Warning])
        self.assertIn(str(index.name), str(caught[0].message))

    def test_arguments_of_a_wrong_kind_are_named(self):
        def loader(**options):
            return lambda: presto.Loader(self.stored, **options)

        def sweep(**options):
            return lambda: presto.sweep(self.stored, "cv", **options)

        def write(**options):
            return lambda: presto.write(self.stored, self.new("written"), **options)

        def writer(**options):
            return lambda: presto.Writer(self.new("written"), **options)

        def step(**options):
            return lambda: presto.step("def f(x): return x", output="string", **options)

        for call, says in (
            (loader(on_skip=5), "on_skip is a function"), (write(on_skip="tell"), "on_skip is a function"),
            (loader(on_error=None), "on_error is"), (write(on_error=None), "on_error is"), (loader(cache=5), "cache is"),
            (loader(pad=["label"]), "pad is a dict"), (loader(pad={"label": "x"}), "pad of 'label'"),
            (loader(pad={"label": (0, 1, 2)}), "pad of 'label'"), (loader(pad={"label": (0, 7.9)}), "the length of pad 'label'"),
            (loader(features="label"), "features is a list of names"), (loader(features=[5]), "features is a list of names"),
            (lambda: presto.open(self.stored, features="label"), "features is a list"),
            (lambda: presto.open(self.stored, set="a.b=1"), "set is a dict"), (write(set="a.b=1"), "set is a dict"),
            (step(features="label"), "features is a list of names"), (step(sets="a"), "sets is a dict"),
            (sweep(stored="resized"), "stored is a list of names"), (sweep(codecs="none"), "codecs is a list of names"),
            (sweep(threads=2), "threads is a list of numbers"), (sweep(threads="2"), "threads is a list of numbers"),
        ):
            with self.assertRaisesRegex(TypeError, says):
                call()
        for call, says in (
            (loader(pad={"label": (0, -1)}), "the length of pad 'label'"), (loader(pad={"label": (0, 1 << 64)}), "the length of pad 'label'"),
            (loader(seed=-1), "seed"), (loader(threads=-1), "threads"), (loader(prefetch=-1), "prefetch"), (loader(prefetch=1 << 64), "prefetch"),
            (loader(hold="99999999999TiB"), "hold"), (write(seed=1 << 64), "seed"), (write(threads=-1), "threads"), (write(limit=-5), "limit"),
            (write(prefetch=1 << 70), "prefetch"), (writer(threads=-1), "threads"), (writer(samples=1 << 64), "samples"),
            (writer(prefetch=-1), "prefetch"), (sweep(seed=-1), "seed"), (sweep(threads=[-1]), "threads"), (sweep(samples=-1), "samples"),
            (lambda: presto.open(self.stored, split="50/50", part="train", split_seed=-1), "split_seed"),
            *((call(threads=10**9), "^1000000000 threads, at most 4096 are possible$") for call in (write, writer)),
            (lambda: next(iter(loader(threads=10**9)())), "^1000000000 threads, at most 4096 are possible$"),
            (sweep(threads=[10**9]), "^1000000000 threads, at most 4096 are possible$"),
            *((call, f"^threads: {1 << 40} is too large$") for call in
              (write(threads=1 << 40), lambda: next(iter(loader(threads=1 << 40)())), sweep(threads=[1 << 40]))),
        ):
            with self.assertRaisesRegex(ValueError, says):
                call()

    def test_rows_are_taken_by_number(self):
        batch = next(iter(presto.Loader(self.stored, batch=4)))
        ragged = presto.Ragged(np.arange(4), np.array([0, 1, 4]))
        for rows, count in ((batch["key"], 4), (ragged, 2)):
            self.assertEqual(np.asarray(rows[np.int64(-1)]).tolist(), np.asarray(rows[count - 1]).tolist())
            for wrong in (slice(0, 2), 1.5, "1", None):
                with self.assertRaisesRegex(TypeError, "rows are taken one by one, by a number"):
                    rows[wrong]
            for wrong in (count, -count - 1, 1 << 70):
                with self.assertRaisesRegex(IndexError, f"there are {count} rows, and no row"):
                    rows[wrong]


if __name__ == "__main__":
    main()
