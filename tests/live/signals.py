#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sources and steps of signals give what h5py and NumPy give, and TensorFlow reads what is stored.

Runs in the tests' Python environment. Usage: signals.py TOOLS_DIR
"""
import io
import os
import pathlib
import subprocess
import sys
import tempfile

import h5py
import numpy as np

WINDOW = 64000
PERIOD = 128
WINDOWS = 3
# What h5py is told of a dataset. Numbers that are no float64 must become the float64 that NumPy makes of them.
STORAGE = {
    "contiguous": {},
    "chunks": {"chunks": (4097,)},
    "gzip": {"chunks": (100_000,), "compression": "gzip"},
    "shuffle": {"chunks": (10_000,), "compression": "gzip", "compression_opts": 9, "shuffle": True},
    "checksum": {"chunks": (5_001,), "compression": "gzip", "shuffle": True, "fletcher32": True},
    "float32": {"dtype": ">f4", "chunks": (9_000,), "shuffle": True, "compression": "gzip"},
    "int16": {"dtype": "<i2", "chunks": (64_000,), "compression": "gzip"},
    "sparse": {"chunks": (1_000,), "fillvalue": -3.25},
}


def run(*command):
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nexit {done.returncode}: {done.stderr.decode()}")
    return done.stdout


def arrays(stream, dimensions):
    """The arrays of an npy stream that have so many dimensions."""
    data = io.BytesIO(stream)
    found = []
    while data.tell() < len(stream):
        array = np.lib.format.read_array(data)
        if array.ndim == dimensions:
            found.append(array)
    return found


def mains(random, number):
    """Voltage and current of a house, with things that are switched, and not all of it finite."""
    time = np.arange(WINDOWS * WINDOW + 999) / 6400
    voltage = 325 * np.sin(100 * np.pi * time) + random.normal(0, 0.5, time.size)
    current = (1 + 4 * (time > 7)) * np.sin(100 * np.pi * time + 0.3) + random.normal(0, 0.02, time.size)
    if number == 0:
        current[[5, 70_000, 130_000]] = np.nan, np.inf, -np.inf
        voltage[64_500] = np.nan
    return voltage, current


def aggregated(window):
    voltage, current = window.reshape(2, -1, PERIOD)
    power = np.mean(voltage * current, axis=1)
    rms = np.sqrt(np.mean(current ** 2, axis=1))
    return np.stack([power, rms, np.cumsum(rms - np.mean(rms))])


def synthetic(number, dtype, size, seed):
    """A sample of the source `synthetic`, as its description says."""
    start = np.random.Philox(counter=((number << 64) - 1) % (1 << 256), key=seed).random_raw(16)
    lanes = start.view("<u4").copy()
    lanes[lanes == 0] = 1
    rounds = []
    while len(rounds) * 128 < size:
        lanes ^= lanes << np.uint32(13)
        lanes ^= lanes >> np.uint32(17)
        lanes ^= lanes << np.uint32(5)
        rounds.append(lanes.copy())
    words = np.concatenate(rounds)
    if dtype == "uint8":
        return words.view("u1")[:size]
    return ((words >> np.uint32(8)) * np.float32(2.0 ** -24)).astype("f4")[:size // 4]


def write_file(path, storage, signals, libver):
    with h5py.File(path, "w", libver=libver) as file:
        for name, signal in zip(("voltage", "current"), signals):
            dataset = file.create_dataset(name, shape=signal.shape, **{"dtype": "f8", **storage})
            if "fillvalue" in storage:
                dataset[5_000:90_000] = signal[5_000:90_000]
            else:
                with np.errstate(invalid="ignore"):
                    dataset[...] = (signal * 20).astype(storage["dtype"]) if "dtype" in storage else signal


def read_with_h5py(path):
    with h5py.File(path) as file:
        signals = np.stack([file[name][...].astype("f8") for name in ("voltage", "current")])
    return [signals[:, i * WINDOW:(i + 1) * WINDOW] for i in range(WINDOWS)]


def check_nilm(tools, folder):
    """Windows bit-equal to h5py's. Aggregates equal to NumPy's: by promise to 1e-12, measured to the bit."""
    random = np.random.default_rng(12)
    same = total = 0
    for number, (name, storage) in enumerate(STORAGE.items()):
        for libver in ("earliest", "latest"):
            path = folder / f"{name}-{libver}.h5"
            write_file(path, storage, mains(random, number), libver)
            wanted = read_with_h5py(path)
            load = [tools / "presto-load", "-q", "-p", "nilm", "-b", 1, "--format", "npy"]
            got = arrays(run(*load, "--to", "decoded", path), 3)
            assert len(got) == WINDOWS, (path, len(got))
            for window, array in zip(wanted, got):
                assert array.dtype == np.float64 and window.tobytes() == array[0].tobytes(), path
            for window, array in zip(wanted, arrays(run(*load, path), 3)):
                with np.errstate(invalid="ignore"):
                    reference = aggregated(window)
                np.testing.assert_allclose(array[0], reference, rtol=1e-12, atol=1e-12, err_msg=str(path))
                same += reference.tobytes() == array[0].tobytes()
                total += 1
    print(f"nilm: {total} windows equal h5py's; aggregates equal NumPy's, {same} of them to the bit", flush=True)


def check_synthetic(tools, folder):
    """Samples as described, rms as NumPy has it, and both as TensorFlow reads them when they are stored."""
    for dtype, size in (("uint8", 500), ("uint8", 30_000), ("float32", 2_000), ("float32", 500_000)):
        options = ["-p", "synthetic"]
        for name, value in (("dtype", dtype), ("size", size), ("count", 5), ("seed", 77)):
            options += ["--set", f"source.{name}={value}"]
        samples = [synthetic(i, dtype, size, 77) for i in range(5)]
        squares = [np.square(s.reshape(-1, 500), dtype="f8") for s in samples]
        wanted = {"generated": samples, "rms": [np.sqrt(np.mean(s, axis=1)).astype("f4") for s in squares]}
        for split, arrays_wanted in wanted.items():
            out = folder / f"{split}-{dtype}-{size}"
            got = arrays(run(tools / "presto-load", "-q", *options, "--to", split, "-b", 1, "--format", "npy"), 2)
            run(tools / "presto-write", "-q", *options, "-u", split, "-s", 1, "-o", out)
            stored = list(tensorflow_reads(out, "signal", dtype if split == "generated" else "float32"))
            assert len(got) == len(stored) == 5, (split, len(got), len(stored))
            for array, tensor, reference in zip(got, stored, arrays_wanted):
                assert array.dtype == tensor.dtype == reference.dtype, (split, array.dtype)
                assert array.tobytes() == tensor.tobytes() == reference.tobytes(), (split, dtype, size)
    print("synthetic: samples and rms equal NumPy's to the bit, stored ones too", flush=True)


def tensorflow_reads(dataset, feature, dtype):
    """The tensors of one feature, as TensorFlow gets them out of stored records."""
    import tensorflow as tf

    description = {feature: tf.io.FixedLenFeature([], tf.string)}
    for record in tf.data.TFRecordDataset(sorted(map(str, dataset.glob("*.tfrecord")))):
        yield tf.io.parse_tensor(tf.io.parse_single_example(record, description)[feature], dtype).numpy()


def check_stored(tools, folder):
    path = folder / "shuffle-latest.h5"
    windows = read_with_h5py(path)
    for split, wanted in (("decoded", windows), ("aggregated", [aggregated(w) for w in windows])):
        out = folder / split
        run(tools / "presto-write", "-q", "-p", "nilm", "-u", split, "-s", 1, "--tensorflow-readable", "-o", out, path)
        got = list(tensorflow_reads(out, "signal", "float64"))
        assert len(got) == len(wanted), (split, len(got))
        for array, reference in zip(got, wanted):
            assert array.shape == reference.shape
            np.testing.assert_allclose(array, reference, rtol=1e-12, atol=1e-12)
        print(f"{split}: TensorFlow reads {len(got)} records", flush=True)


def main():
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    tools = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_nilm(tools, folder)
        check_stored(tools, folder)
        check_synthetic(tools, folder)


if __name__ == "__main__":
    main()
