#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the seeds of the fuzz target hdf5 with h5py: tests/fuzz/corpus/hdf5/. They are small: one window of a few values."""
from pathlib import Path

import h5py
import numpy as np

FOLDER = Path(__file__).resolve().parent / "corpus" / "hdf5"
VALUES = 24
KINDS = {
    "contiguous": {},
    "gzip": {"chunks": (10,), "compression": "gzip"},
    "all": {"chunks": (10,), "compression": "gzip", "shuffle": True, "fletcher32": True},
    "plain": {"chunks": (24,)},
    "int16": {"dtype": ">i2", "chunks": (7,), "shuffle": True},
    "growing": {"maxshape": (None,), "chunks": (12,), "compression": "gzip"},
    "column": {"shape": (VALUES, 1), "dtype": "<f4"},
}


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, how in KINDS.items():
        for version in ("earliest", "latest"):
            with h5py.File(FOLDER / f"{name}-{version}", "w", libver=version, track_order=False) as file:
                for row, dataset in enumerate(("voltage", "current")):
                    how = {"shape": (VALUES,), "dtype": "<f8", "track_times": False, **how}
                    values = (np.arange(VALUES) * (row + 3) % 19).reshape(how["shape"])
                    file.create_dataset(dataset, data=values.astype(how["dtype"]), **{k: v for k, v in how.items() if k != "shape"})
    with h5py.File(FOLDER / "links", "w", libver="latest") as file:
        file["voltage"] = h5py.ExternalLink("/etc/passwd", "voltage")
        file["current"] = h5py.SoftLink("/current")


if __name__ == "__main__":
    main()
