#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto.torch: tensors on the loader's memory, shares of workers and ranks, positions. Skipped where torch is not installed."""
import gc
import json
import pickle
import sys
import unittest
import warnings

from case import PythonCase, main, np, presto

try:
    import torch
    from torch.utils.data import DataLoader

    import presto.torch
except ImportError:
    print("torch is not installed: nothing tested")
    sys.exit(77)


def numbers(batches):
    return [int(n) for batch in batches for n in batch.numbers]


def labels(batches):
    return [int(n) for batch in batches for n in batch["label"]]


def key_numbers(batches):
    """Which samples they are, where the attributes of batches are lost."""
    return [key for batch in batches for key in batch["key"]]


class Torch(PythonCase):
    def test_a_part_of_the_samples(self):
        train, held_out = presto.open(self.stored).split("2/1", seed=4)
        for part, dataset in (("train", train), ("eval", held_out)):
            loader = presto.torch.Loader(self.stored, batch=5, split="2/1", part=part, split_seed=4)
            self.assertEqual((len(loader.dataset), len(loader)), (len(dataset), -(-len(dataset) // 5)))
            self.assertEqual([key for batch in loader for key in batch["key"]], [sample["key"] for sample in dataset])

    def test_tensors_are_the_loaders_memory(self):
        kept = []
        for batch, arrays in zip(presto.torch.Loader(self.stored, batch=7), presto.Loader(self.stored, batch=7)):
            self.assertEqual(batch["image"].dtype, torch.float32)
            self.assertEqual(batch["image"].data_ptr() % 64, 0)
            self.assertTrue(np.array_equal(batch["image"].numpy(), arrays["image"]))
            self.assertTrue(np.array_equal(batch["label"].numpy(), arrays["label"]))
            self.assertEqual(list(batch["key"]), list(arrays["key"]))
            self.assertEqual(batch.numbers.tolist(), arrays.numbers.tolist())
            kept.append((batch["image"], arrays["image"].copy()))
        del batch, arrays
        gc.collect()
        for tensor, copy in kept:
            self.assertTrue(np.array_equal(tensor.numpy(), copy))

    def test_every_dtype_of_numbers(self):
        """Through a stored dataset of tensors made with the step cast."""
        pipeline = self.new("cast.yaml")
        for dtype in ("uint8", "float32", "float64", "int16", "int32", "int64", "float16", "bfloat16"):
            pipeline.write_text("name: cast\nsource: {type: files, match: ['*.jpg']}\nsteps:\n  - {step: read-file}\n"
                                "  - {step: decode-image, channels: 3}\n  - {step: resize-image, height: 8, width: 8}\n"
                                f"  - {{step: cast, dtype: {dtype}}}\n")
            dataset = presto.open(self.make_photos(), pipeline=pipeline)
            batch = next(iter(presto.torch.Loader(dataset, batch=4)))
            arrays = next(iter(presto.Loader(dataset, batch=4)))
            self.assertEqual(str(batch["image"].dtype), f"torch.{dtype}")
            bits = batch["image"].view(torch.uint8) if dtype != "bfloat16" else batch["image"].view(torch.int16)
            self.assertEqual(bits.numpy().tobytes(), arrays["image"].tobytes())

    def test_channels_last_is_a_view(self):
        for chosen in (True, ["image"]):
            batch = next(iter(presto.torch.Loader(self.stored, batch=7, channels_last=chosen)))
            plain = next(iter(presto.torch.Loader(self.stored, batch=7)))
            image = batch["image"]
            self.assertEqual(tuple(image.shape), (7, 3, 32, 40))
            self.assertTrue(image.is_contiguous(memory_format=torch.channels_last))
            self.assertTrue(torch.equal(image.permute(0, 2, 3, 1), plain["image"]))
        batch = next(iter(presto.torch.Loader(self.stored, batch=7, channels_last=["label"])))
        self.assertEqual(tuple(batch["image"].shape), (7, 32, 40, 3))

    def test_workers_of_a_dataloader_share_the_work(self):
        everything = sorted(key_numbers(presto.torch.Loader(self.stored, batch=5)))
        for context in ("fork", "spawn"):
            loader = presto.torch.Loader(self.stored, batch=5, shuffle="full", epochs=2)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = key_numbers(DataLoader(loader, batch_size=None, num_workers=2, multiprocessing_context=context))
            self.assertEqual(sorted(found), sorted(everything * 2), context)
        self.assertEqual(len(everything), 24)
        self.assertEqual(labels(DataLoader(presto.torch.Loader(self.stored, batch=5), batch_size=None)),
                         labels(presto.torch.Loader(self.stored, batch=5)))

    def test_shares_that_are_not_equal_repeat_nothing(self):
        everything = sorted(key_numbers(presto.torch.Loader(self.stored, batch=5)))
        ranks = [sorted(key_numbers(presto.torch.Loader(self.stored, batch=5, rank=r, world=2))) for r in range(2)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for workers in (3, 5, 7):
                loader = presto.torch.Loader(self.stored, batch=2, shuffle="full", epochs=2)
                found = key_numbers(DataLoader(loader, batch_size=None, num_workers=workers))
                self.assertEqual(sorted(found), sorted(everything * 2), workers)
            for rank in range(2):
                loader = presto.torch.Loader(self.stored, batch=4, rank=rank, world=2)
                found = key_numbers(DataLoader(loader, batch_size=None, num_workers=5))
                self.assertEqual(sorted(found), ranks[rank])

    def test_torchdata_saves_and_restores_the_position(self):
        """torchdata's StatefulDataLoader, with and without workers, after any batch."""
        try:
            from torchdata.stateful_dataloader import StatefulDataLoader
        except ImportError:
            self.skipTest("torchdata is not installed")
        options = {"batch": 5, "shuffle": "full", "seed": 3, "epochs": 2}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for workers in (0, 2):
                make = lambda: StatefulDataLoader(presto.torch.Loader(self.stored, **options), batch_size=None,
                                                  num_workers=workers)  # noqa: B023, E731
                whole = key_numbers(make())
                self.assertEqual(len(whole), 48)
                for stop in range(1, len(list(make()))):
                    first, taken = make(), []
                    for at, batch in enumerate(first, 1):
                        taken += key_numbers([batch])
                        if at == stop:
                            state = first.state_dict()
                            break
                    again = make()
                    again.load_state_dict(pickle.loads(pickle.dumps(state)))
                    self.assertEqual(taken + key_numbers(again), whole, (workers, stop))

    def test_workers_are_said_not_to_be_needed(self):
        code = """
import sys, torch
import presto.torch
loader = presto.torch.Loader(sys.argv[1], batch=5)
print(sum(len(b["label"]) for b in torch.utils.data.DataLoader(loader, batch_size=None, num_workers=2)))
"""
        done = self.python(code, self.stored, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "24\n"), done.stderr)
        self.assertEqual(done.stderr.count("faster without a DataLoader's workers"), 1, done.stderr)

    def test_a_dataset_is_a_map_style_dataset(self):
        dataset = presto.open(self.stored, features=["image", "label"])
        loader = DataLoader(dataset, batch_size=4, num_workers=2, sampler=range(23, -1, -1))
        found = [int(n) for batch in loader for n in batch["label"]]
        self.assertEqual(found, labels(presto.torch.Loader(self.stored))[::-1])

    def test_the_position_counts_what_the_loop_has_taken(self):
        """Also with a transfer one batch ahead."""
        for _ in range(30):
            work = {"device": self.random.choice([None, "cpu"]), "per_epoch": self.random.random() < 0.5,
                    "threads": self.random.choice([0, 2])}
            options = {"batch": self.random.randint(1, 9), "shuffle": "full", "seed": 3, "epochs": 2}
            whole = numbers(presto.Loader(self.stored, **options))
            loader = presto.torch.Loader(self.stored, **options, **work)
            taken, stop = [], self.random.randint(1, -(-48 // options["batch"]))
            while stop > 0 and len(taken) < len(whole):
                for batch in loader:
                    taken += numbers([batch])
                    stop -= 1
                    if stop == 0:
                        break
            state = json.loads(json.dumps(loader.state_dict()))
            again = presto.torch.Loader(self.stored, **options, **{**work, "device": self.random.choice([None, "cpu"])})
            again.load_state_dict(state)
            copied = pickle.loads(pickle.dumps(loader))
            for other in (again, loader, copied):
                rest = numbers(other)
                while work["per_epoch"] and len(taken + rest) < len(whole):
                    rest += numbers(other)
                self.assertEqual(taken + rest, whole, (options, work, len(taken)))

    def test_damage_comes_behind_the_batches_before_it(self):
        shard = sorted(self.stored.glob("*.tfrecord"))[1]
        data = bytearray(shard.read_bytes())
        data[20] ^= 1
        before = shard.read_bytes()
        shard.write_bytes(data)
        self.addCleanup(shard.write_bytes, before)
        for device in (None, "cpu"):
            taken = []
            with self.assertRaises(presto.CorruptError):
                for batch in presto.torch.Loader(self.stored, batch=4, device=device):
                    taken += numbers([batch])
            self.assertEqual(taken, list(range(8)))

    def test_ranks_are_given_or_those_of_the_job(self):
        found = [numbers(presto.torch.Loader(self.stored, batch=5, rank=r, world=2)) for r in range(2)]
        self.assertEqual(sorted(sum(found, [])), list(range(24)))
        with self.assertWarnsRegex(UserWarning, "not pinned") if not torch.cuda.is_available() else self.subTest():
            loader = presto.torch.Loader(self.stored, pin_memory=True)
        self.assertEqual(next(iter(loader))["image"].is_pinned() if torch.cuda.is_available() else True, True)
        with self.assertRaises(ValueError):
            presto.torch.Loader(self.stored, rank=1)
        with self.assertRaises(ValueError):
            presto.torch.Loader(self.stored, batch=0)
        self.assertEqual(len(presto.torch.Loader(self.stored, batch=5, epochs=2)), 10)


if __name__ == "__main__":
    main()
