#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto.mix: the stream of presto-load --mix, byte for byte, with ranks, states, parts and random access."""
import json
import pathlib
import pickle

from case import PythonCase, cli, frozen, main, np, plain, presto, rows_of

WEIGHTS = (0.7, 0.3)
EPOCHS = ("longest", "shortest", "weights")


class Mix(PythonCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.few = cls.write("-u", "resized", "-c", "none", "--limit", "7")
        cls.pairs = [(cls.stored, WEIGHTS[0]), (cls.few, WEIGHTS[1])]
        cls.counts = [len(presto.open(path)) for path, _ in cls.pairs]

    def mix(self, **options):
        return presto.mix(self.pairs, **options)

    def command(self, *arguments, epoch="longest"):
        mixes = [word for path, weight in self.pairs for word in ("--mix", f"{path}={weight}")]
        return ["presto-load", "-q", *mixes, "--mix-epoch", epoch, *map(str, arguments)]

    def test_the_bytes_are_those_of_presto_load(self):
        for epoch in EPOCHS:
            seed, world = self.random.randrange(1 << 40), self.random.choice([1, 2, 3])
            shuffle = self.random.choice(["full", "blocks:5", "none"])
            for rank in range(world):
                options = ["-e", 3, "--seed", seed, "--shuffle", shuffle, "--rank", rank, "--world", world, "-b", 5]
                loader = presto.Loader(self.mix(epoch=epoch), batch=5, epochs=3, seed=seed, shuffle=shuffle, rank=rank, world=world,
                                       threads=self.random.choice([0, 2]))
                batches = list(loader)
                self.assertEqual(len(batches), len(loader))
                raw = self.load(*self.command(*options, "--format", "raw", "--features", "image", epoch=epoch)[1:])
                self.assertTrue(b"".join(batch["image"].tobytes() for batch in batches) == raw, options)
                command = self.command(*options, "--format", "npy", epoch=epoch)
                command[0] = str(cli.TOOLS / command[0])
                with presto.npy_stream(command) as stream:
                    told = [{name: plain(value) for name, value in batch.items()} for batch in stream]
                self.assertTrue([frozen(batch)[-1] for batch in batches] == told, options)

    def test_every_input_has_its_share_and_its_own_order(self):
        for epoch, shares in (("longest", (24, 10)), ("shortest", (16, 7)), ("weights", (17, 2))):
            mix = self.mix(epoch=epoch)
            self.assertEqual([part.epoch_samples for part in mix.inputs], list(shares))
            self.assertEqual(mix.inputs, [presto.MixInput(str(self.stored), 0.7, 0, 24, shares[0]),
                                          presto.MixInput(str(self.few), 0.3, 24, 7, shares[1])])
            self.assertEqual((mix.epoch_samples, len(mix)), (sum(shares), sum(shares)))
            self.assertEqual(len(presto.Loader(mix)), sum(shares))
            mine = {0: [], 1: []}
            for batch in presto.Loader(mix, batch=4, shuffle="full", seed=9, epochs=3):
                for at, part in enumerate(mix.input_of(batch.numbers).tolist()):
                    mine[part].append(bytes(batch["key"][at]))
            for part, (path, _) in enumerate(self.pairs):
                alone = [bytes(batch["key"][0]) for batch in presto.Loader(path, shuffle="full", seed=9, epochs=6)]
                self.assertEqual(len(mine[part]), 3 * shares[part])
                self.assertEqual(mine[part], alone[:len(mine[part])])

    def test_a_state_goes_on_exactly(self):
        for _ in range(20):
            options = {"batch": self.random.randint(1, 9), "shuffle": self.random.choice(["none", "full", "blocks:3"]),
                       "epochs": self.random.randint(1, 4), "seed": self.random.randrange(1 << 40), "per_epoch": False}
            mix = self.mix(epoch=self.random.choice(EPOCHS))
            whole = [frozen(batch) for batch in presto.Loader(mix, **options, threads=2)]
            loader = presto.Loader(mix, **options, cache=self.random.choice([None, "memory:8MiB"]))
            stop, taken = self.random.randint(1, len(whole)), []
            for batch in loader:
                taken.append(frozen(batch))
                if len(taken) == stop:
                    break
            text = json.dumps(loader.state_dict())
            again = presto.Loader(mix, **options, threads=0)
            again.load_state_dict(json.loads(text))
            self.assertTrue(taken + [frozen(batch) for batch in again] == whole, options)
        other = presto.Loader(presto.mix([(self.stored, 0.6), (self.few, 0.4)], epoch=mix._epoch), **options)
        with self.assertRaises(presto.ArgumentError) as caught:
            other.load_state_dict(json.loads(text))
        self.assertIn("weights", str(caught.exception))

    def test_samples_by_number(self):
        mix, alone = self.mix(), [presto.open(path) for path, _ in self.pairs]
        for number in (0, 23, 24, 30, -1):
            at = number % 31
            found = mix.pick([number])
            self.assertEqual({k: plain(v[0]) for k, v in found.items() if k != "image"},
                             {k: plain(v) for k, v in alone[at >= 24][at % 24].items() if k != "image"})
        some = mix.pick([30, 0, 24])
        self.assertEqual(some.numbers.tolist(), [30, 0, 24])
        self.assertEqual(mix.input_of(some.numbers).tolist(), [1, 0, 1])
        with self.assertRaises(IndexError):
            mix.pick([31])

    def test_places_are_those_of_an_epoch(self):
        """mix[i] for each i below len(mix): as many of each input as an epoch of a stream has."""
        for epoch in EPOCHS:
            for pairs in (self.pairs, self.pairs[::-1]):
                mix = presto.mix(pairs, epoch=epoch)
                whole = mix[:]
                self.assertEqual(whole.rows, len(mix))
                self.assertEqual(np.bincount(mix.input_of(whole.numbers)).tolist(), [part.epoch_samples for part in mix.inputs])
                streamed = np.concatenate([batch.numbers for batch in presto.Loader(mix, 5)])
                self.assertEqual(sorted(whole.numbers.tolist()), sorted(streamed.tolist()))
                self.assertEqual([bytes(mix[n]["key"]) for n in (0, len(mix) - 1, -1)], [bytes(whole["key"][n]) for n in (0, -1, -1)])
                for beyond in (len(mix), -len(mix) - 1):
                    with self.assertRaises(IndexError):
                        mix[beyond]

    def test_parts_pickles_and_names_of_features(self):
        mix = presto.mix({presto.open(path): weight for path, weight in self.pairs}, features=["label"])
        self.assertEqual(next(iter(presto.Loader(mix, batch=3))).keys(), {"label"})
        train, held_out = self.mix().split("70/30", seed=3)
        self.assertEqual(sum(part.samples for half in (train, held_out) for part in half.inputs), 31)
        for part, name in ((train, "train"), (held_out, "eval")):
            raw = self.load(*self.command("--split", "70/30", "--split-seed", 3, "--part", name, "--format", "raw",
                                          "--features", "image", "--shuffle", "full")[1:])
            again = pickle.loads(pickle.dumps(part))
            self.assertTrue(b"".join(b["image"].tobytes() for b in presto.Loader(again, 8, shuffle="full")) == raw)
            opened = [(presto.open(path, split="70/30", part=name, split_seed=3), weight) for path, weight in self.pairs]
            mixed = presto.Loader(presto.mix(opened), 8, shuffle="full")
            self.assertTrue(b"".join(b["image"].tobytes() for b in mixed) == raw)

    def test_workers_of_a_share_divide_it(self):
        """What torch's DataLoader does with its workers: each has the rank's samples in turn."""
        mix = self.mix()
        rows = {w: [row for r in range(w) for b in presto.Loader(mix, 3, rank=r, world=w, shuffle="full") for row in rows_of(b)]
                for w in (1, 5)}
        for row in rows[1]:
            self.assertIn(row, rows[5])
        self.assertEqual((len(rows[1]), len(rows[5])), (34, 35))

    def test_what_cannot_be_mixed_is_refused(self):
        stored = presto.open(self.stored)
        for wrong, text in (([], "1 to 64 inputs"), ([(self.stored, 0)], "weight"), ([(self.stored, float("nan"))], "weight"),
                            ({stored: 1, presto.open(self.few, verify="none"): 1}, "verify is 'full'"),
                            ([(presto.open(sorted(pathlib.Path(self.stored).glob("*.tfrecord"))), 1)], "one path"),
                            ([(self.mix(), 1)], "cannot be mixed again"),
                            ([(self.stored, 1), (presto.open(self.few, to="resized"), 1)], "to is None")):
            with self.assertRaises(presto.ArgumentError) as caught:
                presto.mix(wrong)
            self.assertIn(text, str(caught.exception))
        labels = self.new("other")
        with presto.Writer(labels) as writer:
            writer.add({"image": np.zeros(3, np.float32)})
        with self.assertRaises(presto.ArgumentError) as caught:
            presto.mix({str(self.stored): 1, str(labels): 1})
        self.assertIn(str(labels), str(caught.exception))
        with self.assertRaises(ValueError):
            self.mix(epoch="first")
        with self.assertRaises(presto.NotFoundError):
            presto.mix({"nowhere": 1.0})
        with self.assertRaises(presto.ArgumentError) as caught:
            next(iter(presto.Loader(self.mix(), 4, shuffle="buffer:8")))
        self.assertIn("buffer", str(caught.exception))


if __name__ == "__main__":
    main()
