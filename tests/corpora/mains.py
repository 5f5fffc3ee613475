# SPDX-License-Identifier: Apache-2.0
"""Recordings of mains electricity as HDF5: voltage and current at 6.4 kHz, float64, compressed. The paper's (CREAM) take
0.1477 MB a window of 10 s."""
import numpy as np

from corpus import MissingTool, for_each

RATE = 6400
PERIOD = 128  # samples of 50 Hz
WINDOW = 64000
HARMONICS = (1, 3, 5, 7)
# A converter of 16 bits: what it resolves, in volts and amperes.
VOLT, AMPERE = 1 / 32, 1 / 512


def voltage(rng, first, count, phase):
    """325 V at the peak with a little of the odd harmonics, wandering by one per cent over minutes."""
    t = np.arange(first, first + count)
    level = 325 * (1 + 0.01 * np.sin(2 * np.pi * t / (RATE * 97.0) + phase))
    angle = 2 * np.pi * t / PERIOD + phase
    clean = level * (np.sin(angle) + 0.02 * np.sin(3 * angle + 1) + 0.015 * np.sin(5 * angle) + 0.006 * np.sin(7 * angle))
    return np.round((clean + rng.normal(0, 0.06, count)) / VOLT) * VOLT


def appliances(rng, count):
    """(start, end, amplitude of each harmonic, phase): what is switched on, and when."""
    for _ in range(3 + 2 * count // WINDOW):
        start = int(rng.integers(-WINDOW, count))
        length = int(rng.exponential(3 * WINDOW)) + PERIOD
        amplitude = rng.exponential(1.5) * np.array([1, *rng.uniform(0, 0.4, 3) * (1, 0.6, 0.3)])
        yield max(0, start), min(count, start + length), amplitude, rng.uniform(-0.6, 0.6)


def current(rng, count, phase):
    angle = 2 * np.pi * np.arange(count) / PERIOD + phase
    total = np.zeros(count)
    for start, end, amplitude, lag in appliances(rng, count):
        part = slice(start, max(start, end))
        inrush = 1 + 1.5 * np.exp(-np.arange(part.stop - part.start) / (4.0 * PERIOD))
        total[part] += inrush * sum(a * np.sin(h * (angle[part] - lag)) for h, a in zip(HARMONICS, amplitude))
    return np.round((total + rng.normal(0, 0.006, count)) / AMPERE) * AMPERE


def write_file(path, number, windows):
    import h5py

    rng = np.random.Generator(np.random.PCG64(1000 + number))
    count = windows * WINDOW + WINDOW // 2  # half a window is left over
    phase = rng.uniform(0, 2 * np.pi)
    with h5py.File(path, "w") as file:
        file.attrs["frequency"] = float(RATE)
        for name, values in (("voltage", voltage(rng, 0, count, phase)), ("current", current(rng, count, phase))):
            file.create_dataset(name, data=values, dtype="<f8", chunks=(WINDOW // 2,), compression="gzip", compression_opts=4,
                                shuffle=True)


def make(folder, size):
    """Hours of at most 120 windows, so that there are several files."""
    try:
        import h5py  # noqa: F401: only whether it is there
    except ImportError:
        raise MissingTool("the Python module h5py is missing; Debian has it in the package python3-h5py") from None
    most = 3 if size.tiny else 120
    hours = [min(most, size.count - first) for first in range(0, size.count, most)]
    day = folder / "2018-08-23"
    day.mkdir()
    for_each(write_file, [(str(day / f"mains-2018-08-23T{number:02}.h5"), number, windows)
                          for number, windows in enumerate(hours)])
