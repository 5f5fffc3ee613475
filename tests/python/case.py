# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share: small datasets, and batches as comparable values.

PYTHONPATH names the folder of the package; see tests/cli/cli.py for the rest.
"""
import os
import pathlib
import random
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import cli  # noqa: E402
import numpy as np  # noqa: E402

import presto  # noqa: E402

main = cli.main
TIMEOUT_S = 120


def plain(value):
    """A feature's values as something that == compares."""
    if isinstance(value, presto.Ragged):
        shapes = None if value.shapes is None else value.shapes.tolist()
        return "ragged", plain(value.values), value.offsets.tolist(), shapes
    if isinstance(value, presto.Bytes):
        rows = None if value.rows is None else value.rows.tolist()
        return "bytes", value.values.tobytes(), value.offsets.tolist(), rows
    if isinstance(value, bytes):
        return value
    array = np.asarray(value)
    return array.dtype.str, array.shape, array.tobytes()


def frozen(batch):
    """Everything of a batch, copied."""
    return batch.epoch, batch.first, batch.skipped, batch.numbers.tolist(), {k: plain(v) for k, v in batch.items()}


def rows_of(batch):
    """Each row of a batch of dense features and bytes by itself, for streams that are cut in another way."""
    return [(batch.epoch, int(batch.numbers[r]), {k: plain(v[r]) for k, v in batch.items()}) for r in range(batch.rows)]


class PythonCase(cli.Case):
    """A folder with datasets of 24 photos: `self.stored` (resized, three shards) and the photos themselves."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.stored = cls.write("-u", "resized", "-c", "zstd:1", "-s", "3")
        cls.seed = int(os.environ.get("PRESTO_TEST_SEED", time.time_ns() % 1000000))
        print(f"{cls.__name__}: PRESTO_TEST_SEED={cls.seed}", flush=True)
        cls.random = random.Random(cls.seed)

    def python(self, code, *arguments, check=True, **options):
        """Run a script in a process of its own; stdout."""
        options.setdefault("timeout", TIMEOUT_S)
        done = subprocess.run([sys.executable, "-B", "-c", code, *map(str, arguments)], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, **options)
        if check:
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout
        return done


__all__ = ["PythonCase", "TIMEOUT_S", "cli", "frozen", "main", "np", "plain", "presto", "rows_of", "unittest"]
