#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto.torch: tensors on the loader's memory, shares of workers and ranks, positions. Skipped where torch is not installed."""
import abc
import gc
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import unittest
import warnings

from case import TIMEOUT_S, PythonCase, main, np, presto

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

    def written(self, samples):
        folder = self.new("written")
        with presto.Writer(folder) as writer:
            for sample in samples:
                writer.add(sample)
        return folder

    def test_every_dtype_of_a_writer(self):
        """Dense, ragged and without any value; those that this version lacks are named."""
        for dtype in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
                      "complex64", "complex128"):
            array = np.arange(12).reshape(3, 4).astype(dtype)
            stored = self.written({"dense": array, "ragged": array[: i % 2 * i], "none": array[:0, 0]} for i in range(4))
            for batch in (1, 3):
                for name in ("dense", "ragged", "none"):
                    wanted = list(presto.Loader(stored, batch=batch, features=[name]))
                    loader = presto.torch.Loader(stored, batch=batch, features=[name])
                    if not hasattr(torch, dtype):
                        with self.assertRaisesRegex(presto.UnsupportedError, f"^feature '{name}'.* no dtype {dtype} .2.3 and later"):
                            list(loader)
                        continue
                    for found, arrays in zip(loader, wanted, strict=True):
                        found, arrays = found[name], arrays[name]
                        if isinstance(arrays, presto.Ragged):
                            self.assertIsInstance(found.lengths, torch.Tensor)
                            self.assertEqual(found.lengths.tolist(), arrays.lengths.tolist())
                            found, arrays = found.values, arrays.values
                        self.assertEqual((found.dtype, tuple(found.shape)), (getattr(torch, dtype), arrays.shape))
                        self.assertEqual(found.numpy().tobytes(), arrays.tobytes())

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

    def divided(self, loader, workers=2, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return DataLoader(loader, batch_size=None, num_workers=workers, **options)

    def loops(self, loader, count):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [sorted(key_numbers([batch])[0] for batch in loader) for _ in range(count)]

    def test_new_workers_go_on_with_the_next_epoch(self):
        """The first sample of each batch tells epochs apart; the order of workers does not matter."""
        for context, epochs, per_epoch, loops in (("fork", 1, False, 4), ("fork", 2, False, 3), ("fork", 3, True, 4),
                                                  ("spawn", 1, False, 2), ("forkserver", 1, True, 2)):
            options = {"batch": 3, "shuffle": "full", "seed": 5, "epochs": epochs, "per_epoch": per_epoch}
            # Persistent workers always went on.
            wanted = self.loops(self.divided(presto.torch.Loader(self.stored, **options), persistent_workers=True), loops)
            self.assertEqual(len({tuple(loop) for loop in wanted}), loops)
            loader = presto.torch.Loader(self.stored, **options)
            found = self.loops(self.divided(loader, multiprocessing_context=context), loops)
            self.assertEqual(found, wanted, (context, options))
            self.assertEqual(numbers(loader), numbers(self.after(loops, options)), (context, options))  # one position

    def after(self, loops, options):
        loader = presto.torch.Loader(self.stored, **options)
        for _ in range(loops):
            numbers(loader)
        return loader

    def test_new_workers_begin_with_a_position_that_was_given(self):
        options = {"batch": 3, "shuffle": "full", "seed": 5}
        wanted = self.loops(self.divided(presto.torch.Loader(self.stored, **options), persistent_workers=True), 6)
        loader = presto.torch.Loader(self.stored, **options)
        divided, other = self.divided(loader), self.divided(loader)
        self.assertEqual(self.loops(divided, 2) + self.loops(other, 1), wanted[:3])
        loader.load_state_dict(self.after(1, options).state_dict())
        self.assertEqual(self.loops(divided, 2), wanted[1:3])
        self.assertEqual(numbers(loader), numbers(self.after(3, options)))
        self.assertEqual(self.loops(divided, 1) + self.loops(other, 1), wanted[4:])
        copied = pickle.loads(pickle.dumps(loader))
        copied.load_state_dict(self.after(0, options).state_dict())
        self.assertEqual(self.loops(self.divided(copied), 2), wanted[:2])

    def test_iterators_with_the_same_seed_are_told_apart(self):
        found = []
        divided = self.divided(presto.torch.Loader(self.stored, batch=3, shuffle="full", seed=5))
        for _ in range(3):
            torch.manual_seed(0)
            found += self.loops(divided, 1)
        self.assertEqual(len({tuple(loop) for loop in found}), 3)

    def test_persistent_workers_lose_nothing_of_the_next_epochs(self):
        """An iterator that was left is followed by a whole one, with the epochs that new workers would deliver."""
        for options in ({}, {"epochs": 2}, {"epochs": 3, "per_epoch": True}, {"device": "cpu"}):
            options = {"batch": 3, "shuffle": "full", "seed": 5, "features": ["key"], **options}
            found = []
            for stays in (False, True):
                divided = self.divided(presto.torch.Loader(self.stored, **options), persistent_workers=stays)
                next(iter(divided))
                found.append(self.loops(divided, 1))
                for _ in range(2):
                    next(iter(divided))
                found[-1] += self.loops(divided, 2)
            self.assertEqual(found[1], found[0], options)
            wanted = self.loops(self.divided(presto.torch.Loader(self.stored, **options)), 6)
            self.assertEqual(found[0], [wanted[i] for i in (1, 4, 5)], options)

    def test_an_iterator_that_was_left_is_followed_by_the_next_epoch(self):
        for epochs, stays in ((1, False), (None, False), (1, True), (None, True)):
            loader = presto.torch.Loader(self.stored, batch=3, shuffle="full", seed=5, epochs=epochs)
            divided = self.divided(loader, persistent_workers=stays)
            found = []
            for _ in range(3):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found.append(tuple(sorted(key_numbers(batch for _, batch in zip(range(2), divided)))))
            self.assertEqual(len(set(found)), 3)

    def test_processes_with_workers_of_their_own_count_for_themselves(self):
        """As the processes of a node, which torch.multiprocessing starts with one loader."""
        loader = presto.torch.Loader(self.stored, batch=3, shuffle="full", seed=5)
        context = multiprocessing.get_context("fork")
        results = context.SimpleQueue()
        ranks = [context.Process(target=lambda: results.put(self.loops(self.divided(loader), 2))) for _ in range(2)]
        for rank in ranks:
            rank.start()
        first, second = results.get(), results.get()
        for rank in ranks:
            rank.join()
        self.assertEqual(first, second)
        self.assertNotEqual(first[0], first[1])

    def test_a_sample_that_is_left_out_repeats_no_other_one(self):
        folder = self.write("-u", "resized", "-s", "1")
        path = next(folder.glob("*.tfrecord"))
        whole, size = path.read_bytes(), path.stat().st_size // 24
        for bad in (0, 12, 22, 23):
            data = bytearray(whole)
            data[bad * size + size // 2] ^= 1
            path.write_bytes(data)
            wanted = sorted(key_numbers(presto.torch.Loader(folder, on_error="skip")))
            self.assertEqual(len(wanted), 23)
            for workers in (5, 7):
                for batch in (1, 2, 4):
                    for shuffle in ("none", "full"):
                        loader = presto.torch.Loader(folder, batch=batch, shuffle=shuffle, on_error="skip")
                        self.assertEqual(sorted(key_numbers(self.divided(loader, workers))), wanted, (bad, workers, batch, shuffle))

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
            loops, states = [], []
            loader = make()
            for _ in range(4):
                loops.append(key_numbers(loader))
                states.append(loader.state_dict())
            self.assertEqual(len({tuple(loop) for loop in loops}), 4)
            for at in range(3):  # whatever loader goes on with a state, also in new workers
                again = make()
                again.load_state_dict(states[at])
                self.assertEqual([key_numbers(again) for _ in range(at, 3)], loops[at + 1 :], at)

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
                rest = numbers(other) if len(taken) < len(whole) or other is again else []
                while work["per_epoch"] and len(taken + rest) < len(whole):
                    rest += numbers(other)
                self.assertEqual(taken + rest, whole, (options, work, len(taken)))

    def test_a_loop_that_took_the_last_batch_and_not_the_end_is_done(self):
        for device in (None, "cpu"):
            for work in ({}, {"epochs": 3, "per_epoch": True}, {"epochs": 2}, {"drop_last": True}):
                loader = presto.torch.Loader(self.stored, batch=5, shuffle="full", device=device, **work)
                wanted = presto.torch.Loader(self.stored, batch=5, shuffle="full", **work)
                for loop in range(4):
                    taken = []
                    for batch in loader:
                        taken.append(batch)
                        if len(taken) == len(loader):
                            break
                    self.assertEqual(numbers(taken), numbers(wanted), (device, work, loop))
                    del taken, batch
                    if loop == 1:
                        loader = pickle.loads(pickle.dumps(loader))
            empty = presto.torch.Loader(self.stored, batch=25, drop_last=True, device=device)
            self.assertEqual([numbers(batch for _, batch in zip(range(3), empty)) for _ in range(2)], [[], []])

    def test_a_transfer_that_failed_twice_is_tried_again(self):
        """As where the memory of a device is full for a while."""
        loader = presto.torch.Loader(self.stored, batch=5, device="cpu")
        transfer, calls, taken = loader._transfer, [], []

        def fail(batch):
            calls.append(batch)
            if len(calls) <= 2:
                raise RuntimeError("out of memory")
            return transfer(batch)

        loader._transfer = fail
        for _ in range(2):
            with self.assertRaisesRegex(RuntimeError, "out of memory"):
                taken += numbers(loader)
        self.assertEqual(numbers(loader), list(range(24)))
        self.assertEqual(taken, [])

    def test_a_child_process_and_another_share_go_on_behind_what_the_loop_took(self):
        """Also where a batch is on its way."""
        whole = numbers(presto.torch.Loader(self.stored, batch=5, shuffle="full"))
        for device in (None, "cpu"):
            for stop in (1, 3, 5):
                loader = presto.torch.Loader(self.stored, batch=5, shuffle="full", device=device)
                taken = numbers(batch for _, batch in zip(range(stop), loader))
                read, write = os.pipe()
                child = os.fork()
                if child == 0:
                    try:
                        os.write(write, json.dumps(numbers(loader)).encode())
                    finally:
                        os._exit(0)
                os.close(write)
                with open(read, encoding="ascii") as file:
                    rest = json.loads(file.read())
                os.waitpid(child, 0)
                self.assertEqual(rest, numbers(loader), (device, stop))
                self.assertEqual(taken + rest if stop < 5 else taken, whole, (device, stop))
                loader, rest = presto.torch.Loader(self.stored, batch=4, shuffle="full", device=device), []
                taken = numbers(batch for _, batch in zip(range(3), loader))
                for rank, other in enumerate([pickle.loads(pickle.dumps(loader)), loader]):
                    other._default_share = lambda rank=rank: (rank, 2)
                    rest.append(numbers(other))
                self.assertEqual(taken + [one for pair in zip(*rest, strict=True) for one in pair], whole)

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

    def test_threads_share_a_loop_with_a_device(self):
        for device in (None, "cpu"):
            batches, found = iter(presto.torch.Loader(self.stored, batch=1, device=device, epochs=3)), []
            interval = sys.getswitchinterval()
            sys.setswitchinterval(1e-5)
            self.addCleanup(sys.setswitchinterval, interval)

            def work(batches=batches, found=found):
                for batch in batches:
                    found += numbers([batch])

            workers = [threading.Thread(target=work) for _ in range(4)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join(TIMEOUT_S)
            self.assertEqual(sorted(found), sorted(list(range(24)) * 3))

    def test_closing_ends_a_loop_with_a_device_at_once(self):
        for device in (None, "cpu"):
            loader = presto.torch.Loader(self.stored, batch=5, device=device)
            batches = iter(loader)
            next(batches)
            loader.close()
            for _ in range(2):
                with self.assertRaises(presto.StoppedError):
                    next(batches)

    def test_closing_before_the_first_loop_is_for_good(self):
        """Also in a child process, which has a loader of its own."""
        for device in (None, "cpu"):
            loader = presto.torch.Loader(self.stored, batch=5, device=device)
            loader.close()
            with self.assertRaises(presto.StoppedError):
                next(iter(loader))
            child = os.fork()
            if child == 0:
                try:
                    next(iter(loader))
                except presto.StoppedError:
                    os._exit(3)
                finally:
                    os._exit(1)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 3)

    def test_a_device_that_is_not_there_is_told_at_once(self):
        missing = ["cuda:99"] if torch.cuda.is_available() else ["cuda", "cuda:0", torch.device("cuda", 1)]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for device in [*missing, *([] if getattr(torch.backends, "mps", None) and torch.backends.mps.is_available() else ["mps"])]:
                with self.assertRaisesRegex(ValueError, f"device '{device}': there "):
                    presto.torch.Loader(self.stored, device=device)

    def test_wrong_options_are_told_at_once(self):
        for error, options in ((ValueError, {"rank": 2, "world": 2}), (ValueError, {"rank": 0, "world": 0}),
                               (TypeError, {"rank": "0", "world": 1}), (ValueError, {"rank": -1, "world": 2}),
                               (presto.ArgumentError, {"channels_last": ["nope"]}), (TypeError, {"channels_last": "image"})):
            with self.assertRaises(error, msg=options):
                presto.torch.Loader(self.stored, **options)
        with self.assertRaisesRegex(TypeError, "channels_last is a list of names, not None"):
            presto.torch.Loader(self.stored, channels_last=None)

    def test_it_has_what_a_loader_has(self):
        for device in (None, "cpu"):
            loader = presto.torch.Loader(self.stored, batch=12, rank=1, world=2, epochs=2, device=device)
            plain = presto.Loader(self.stored, batch=12, rank=1, world=2, epochs=2)
            self.assertEqual((loader.rank, loader.world, loader.epoch, loader.held), (1, 2, 0, (0, 0)))
            for batch, _ in zip(loader, plain):
                self.assertEqual(loader.epoch, plain.epoch)
                self.assertTrue(loader.held[0] > 0 or batch.epoch == 1)  # behind the last batch, the stream is closed
            self.assertRegex(repr(loader), "^<presto.torch.Loader of <presto.Dataset .*, batch 12, epoch 2>$")
            for name in dir(presto.Loader):
                self.assertTrue(name.startswith("_") or hasattr(loader, name), name)
            if device is None:
                self.assertTrue(hasattr(loader.__arrow_c_stream__(), "__class__"))
            else:
                with self.assertRaisesRegex(TypeError, "presto.Loader"):
                    loader.__arrow_c_stream__()

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

    # ---- samples by number in torch's DataLoader ----

    def epochs(self, dataset, count=3, **options):
        """What each epoch delivers: sample -> its image."""
        loader = DataLoader(dataset, batch_size=5, collate_fn=list, **options)
        return [{sample["key"]: sample["image"].tobytes() for batch in loader for sample in batch} for _ in range(count)]

    def test_a_map_style_dataset_is_augmented_anew_in_each_epoch(self):
        dataset = presto.open(self.stored)
        first = {sample["key"]: sample["image"].tobytes() for sample in dataset}
        ways = [{"num_workers": 0}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True},
                {"num_workers": 1, "persistent_workers": True, "shuffle": True}, {"num_workers": 0, "shuffle": True},
                {"num_workers": 2, "multiprocessing_context": "spawn"}]
        for given in (dataset, torch.utils.data.Subset(dataset, range(24)), torch.utils.data.ConcatDataset([dataset, dataset])):
            for options in ways if given is dataset else ways[:1]:
                with self.subTest(options=options, given=type(given).__name__):
                    torch.manual_seed(self.seed)
                    one = self.epochs(given, **options)
                    torch.manual_seed(self.seed)
                    again = self.epochs(given, **options)
                    self.assertEqual(len(one[0]), 24)
                    self.assertEqual(one, again)  # it follows from the seed
                    for a, b in ((0, 1), (1, 2), (0, 2)):
                        same = sum(one[a][key] == one[b][key] for key in one[a])
                        self.assertLess(same, 8)  # of 24: a crop has 17 x 9 places
                    torch.manual_seed(self.seed + 1)
                    self.assertNotEqual(self.epochs(given, 1, **options)[0], one[0])
        self.assertEqual({sample["key"]: sample["image"].tobytes() for sample in dataset}, first)  # outside of a DataLoader as ever
        self.assertEqual([batch["label"].tolist() for batch in DataLoader(presto.open(self.stored, to="resized"), batch_size=24)],
                         [[int(sample["label"]) for sample in dataset]])

    def test_two_workers_do_not_draw_alike(self):
        dataset = presto.open(self.stored)
        twice = torch.utils.data.Subset(dataset, [7] * 40)  # the same sample again and again, by both workers
        images = [sample["image"].tobytes() for batch in DataLoader(twice, batch_size=1, num_workers=2, collate_fn=list) for sample in batch]
        self.assertGreater(len(set(images)), 20)

    # ---- what moves batches ----

    def test_numbers_stay_where_batches_are_moved(self):
        batch = next(iter(presto.torch.Loader(self.stored, 4)))
        moved = batch.to("cpu", non_blocking=True)
        self.assertEqual(moved.to(torch.float64)["image"].dtype, torch.float64)
        self.assertEqual((moved.numbers.tolist(), moved.rows, moved.epoch), ([0, 1, 2, 3], 4, 0))
        try:
            from lightning_utilities.core.apply_func import apply_to_collection  # what Lightning's transfer calls
        except ImportError:
            return
        class Movable(abc.ABC):  # as lightning.fabric.utilities.apply_func
            @classmethod
            def __subclasshook__(cls, subclass):
                return callable(getattr(subclass, "to", None))
        moved = apply_to_collection(batch, dtype=Movable, function=lambda data: data.to("cpu"))
        self.assertEqual(moved.numbers.tolist(), [0, 1, 2, 3])

    def test_tuples_of_tensors(self):
        for options in ({}, {"device": "cpu"}):
            loader = presto.torch.Loader(self.stored, 7, as_tuple=("image", "label"), **options)
            pairs = list(loader)
            self.assertEqual(sum(len(labels) for _, labels in pairs), 24)
            self.assertTrue(all(isinstance(image, torch.Tensor) for image, _ in pairs))
            self.assertEqual([total.item() for total in presto.torch.Loader(self.stored, 7, collate=lambda b: b["label"].sum(), **options)],
                             [labels.sum().item() for _, labels in pairs])
        self.assertIn("image: float32[4,", repr(next(iter(presto.torch.Loader(self.stored, 4)))))
        self.assertIn("<table>", presto.torch.Loader(self.stored, 4)._repr_html_())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loader = DataLoader(presto.torch.Loader(self.stored, 7, as_tuple=("image", "label")), batch_size=None, num_workers=2)
            self.assertEqual(sorted(int(n) for _, labels in loader for n in labels),
                             sorted(int(n) for _, labels in pairs for n in labels))

    def test_a_share_that_nobody_asked_for_is_told_once(self):
        code = """if True:
            import sys, warnings, torch, presto, presto.torch
            rank = int(sys.argv[2])
            torch.distributed.init_process_group("gloo", init_method=f"file://{sys.argv[3]}", rank=rank, world_size=2)
            for options in ({}, {}, {"rank": 0, "world": 1}):
                print(sum(batch.rows for batch in presto.torch.Loader(sys.argv[1], 4, **options)))
        """
        meeting = self.new("meeting")
        running = [subprocess.Popen([sys.executable, "-B", "-W", "always", "-c", code, self.stored, str(rank), meeting], text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE) for rank in range(2)]
        for rank, one in enumerate(running):
            out, told = one.communicate(timeout=TIMEOUT_S)
            self.assertEqual(out, "12\n12\n24\n", told)
            self.assertEqual(told.count("NoteWarning"), 1 - rank, told)
            if rank == 0:
                self.assertIn("12 of 24 samples of an epoch", told)
                self.assertIn("rank=0, world=1", told)


if __name__ == "__main__":
    main()
