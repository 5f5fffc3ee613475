#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto.jax: arrays on the loader's memory, devices, shardings, processes, positions. Skipped where JAX is not installed."""
import gc
import json
import os
import pickle
import socket
import subprocess
import sys

from case import TIMEOUT_S, PythonCase, main, np, presto

try:
    import jax
    import jax.numpy as jnp

    import presto.jax
except ImportError:
    print("JAX is not installed: nothing tested")
    sys.exit(77)


def numbers(batches):
    return [int(n) for batch in batches for n in batch.numbers]


class Jax(PythonCase):
    def test_arrays_are_the_loaders_memory(self):
        kept = []
        loader = presto.jax.Loader(self.stored, batch=7)
        for batch, arrays in zip(loader, presto.Loader(self.stored, batch=7)):
            image = batch["image"]
            self.assertIsInstance(image, jax.Array)
            self.assertEqual(image.dtype, jnp.float32)
            self.assertTrue(np.array_equal(np.asarray(image), arrays["image"]))
            self.assertEqual(batch["label"].dtype, jnp.int32)
            self.assertTrue(np.array_equal(np.asarray(batch["label"]), arrays["label"]))
            self.assertEqual(list(batch["key"]), list(arrays["key"]))
            kept.append((image, arrays["image"].copy()))
        inner = loader._inner
        del batch, arrays, image
        gc.collect()
        batches = iter(inner)
        held = next(batches)["image"]
        self.assertEqual(inner.held[0], 1)  # the array holds the batch: it is no copy
        del held
        gc.collect()
        self.assertEqual(inner.held[0], 0)
        for array, copy in kept:
            self.assertTrue(np.array_equal(np.asarray(jax.jit(lambda x: x + 0)(array)), copy))

    def test_numbers_of_64_bits_stay_with_x64(self):
        code = """
import sys, jax
jax.config.update("jax_enable_x64", True)
import presto.jax
print(next(iter(presto.jax.Loader(sys.argv[1], batch=3)))["label"].dtype)
"""
        self.assertEqual(self.python(code, self.stored), "int64\n")

    def test_ragged_features(self):
        dataset = presto.open(self.make_photos(), pipeline="cv", to="decoded")
        for batch, arrays in zip(presto.jax.Loader(dataset, batch=5), presto.Loader(dataset, batch=5), strict=True):
            self.assertIsInstance(batch["image"].values, jax.Array)
            for row in range(batch.rows):
                self.assertTrue(np.array_equal(np.asarray(batch["image"][row]), arrays["image"][row]))

    def test_the_position_counts_what_the_loop_has_taken(self):
        """Also with a transfer one batch ahead."""
        for _ in range(12):
            device = self.random.choice([None, jax.devices()[0]])
            options = {"batch": self.random.randint(1, 9), "shuffle": "full", "seed": 3, "epochs": 2}
            whole = numbers(presto.Loader(self.stored, **options))
            loader = presto.jax.Loader(self.stored, **options, device=device)
            taken, stop = [], self.random.randint(1, 48 // options["batch"] - 1)
            for batch in loader:
                taken += numbers([batch])
                stop -= 1
                if stop == 0:
                    break
            state = json.loads(json.dumps(loader.state_dict()))
            again = presto.jax.Loader(self.stored, **options)
            again.load_state_dict(state)
            for other in (again, loader):
                self.assertEqual(taken + numbers(other), whole)

    def test_a_transfer_that_fails_costs_no_batch(self):
        """Nor does Ctrl-C in it."""
        options = {"batch": 5, "shuffle": "full", "seed": 3}
        whole = numbers(presto.Loader(self.stored, **options))
        for failure in (ZeroDivisionError, KeyboardInterrupt):
            for fails in range(1, 6):
                loader, calls, taken = presto.jax.Loader(self.stored, **options, device=jax.devices()[0]), [], []
                transfer = loader._transfer

                def fail(batch, calls=calls, transfer=transfer, fails=fails, failure=failure):
                    calls.append(batch)
                    if len(calls) == fails:
                        raise failure
                    return transfer(batch)

                loader._transfer = fail
                with self.assertRaises(failure):
                    for batch in loader:
                        taken += numbers([batch])
                again = presto.jax.Loader(self.stored, **options)
                again.load_state_dict(loader.state_dict())
                for other in (again, loader):
                    self.assertEqual(taken + numbers(other), whole, (failure, fails))
                self.assertEqual(len(numbers(loader)), 24)

    def test_transfers_that_fail_again_and_again(self):
        """Each loop ends with the failure, and none costs a batch."""
        loader = presto.jax.Loader(self.stored, batch=5, device=jax.devices()[0])
        transfer, failing, taken = loader._transfer, [], []

        def fail(batch):
            if self.random.random() < 0.7 and len(failing) < 20:
                failing.append(batch)
                raise ZeroDivisionError
            return transfer(batch)

        loader._transfer = fail
        for _ in range(30):
            before = len(failing)
            try:
                for batch in loader:
                    taken += numbers([batch])
            except ZeroDivisionError:
                self.assertEqual(len(failing), before + 1)
                continue
            break
        self.assertEqual(taken, list(range(24)))

    def test_a_loop_that_took_the_last_batch_and_not_the_end_is_done(self):
        for device in (None, jax.devices()[0]):
            loader = presto.jax.Loader(self.stored, batch=5, device=device)
            for _ in range(3):
                self.assertEqual(len(numbers(batch for _, batch in zip(range(len(loader)), loader))), 24)

    def test_arrays_of_all_devices(self):
        code = """
import sys, jax, numpy as np
import presto.jax
mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
sharded = presto.jax.Loader(sys.argv[1], batch=8, sharding=sharding, features=["image", "label"])
for batch, plain in zip(sharded, presto.Loader(sys.argv[1], batch=8), strict=True):
    assert len(batch["image"].addressable_shards) == 4 and batch["image"].sharding == sharding
    assert np.array_equal(np.asarray(batch["image"]), plain["image"])
print(len(jax.devices()), "devices")
"""
        environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
        self.assertEqual(self.python(code, self.stored, env=environment), "4 devices\n")

    def test_processes_have_shares_of_their_own(self):
        """jax.distributed, two processes."""
        code = """
import sys, jax
stored, address, process = sys.argv[1:]
jax.distributed.initialize(address, 2, int(process))
import presto.jax
loader = presto.jax.Loader(stored, batch=5, shuffle="full", seed=4)
print([int(n) for batch in loader for n in batch.numbers], flush=True)
jax.distributed.shutdown()
"""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        started = [subprocess.Popen([sys.executable, "-B", "-c", code, self.stored, address, str(i)], stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True) for i in range(2)]
        shown = [process.communicate(timeout=TIMEOUT_S) for process in started]
        self.assertEqual([process.returncode for process in started], [0, 0], shown)
        first, second = (json.loads(out.splitlines()[-1]) for out, _ in shown)
        self.assertEqual(sorted(first + second), list(range(24)))
        whole = numbers(presto.Loader(self.stored, shuffle="full", seed=4))
        self.assertEqual([whole[0::2], whole[1::2]], [first, second])

    def test_with_closes_the_loader(self):
        with presto.jax.Loader(self.stored, batch=5) as loader:
            next(iter(loader))
        with self.assertRaises(presto.StoppedError):
            next(iter(loader))

    def test_a_loader_that_is_closed_before_the_first_loop_stays_so(self):
        for device in (None, jax.devices()[0]):
            loader = presto.jax.Loader(self.stored, batch=5, device=device)
            loader.close()
            with self.assertRaises(presto.StoppedError):
                next(iter(loader))
            self.assertEqual(len(loader), 5)

    def test_wrong_arguments(self):
        with self.assertRaises(ValueError):
            presto.jax.Loader(self.stored, rank=1)
        with self.assertRaises(ValueError):
            presto.jax.Loader(self.stored, batch=0)
        with self.assertRaises(ValueError):
            presto.jax.Loader(self.stored, device=jax.devices()[0],
                              sharding=jax.sharding.SingleDeviceSharding(jax.devices()[0]))

    def test_a_loader_can_be_pickled(self):
        loader = presto.jax.Loader(self.stored, batch=5)
        first = numbers([next(iter(loader))])
        self.assertEqual(first + numbers(pickle.loads(pickle.dumps(loader))), list(range(24)))


if __name__ == "__main__":
    main()
