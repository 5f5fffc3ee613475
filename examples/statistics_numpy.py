#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mean and standard deviation of the numbers that presto-load streams, as a model's input is normalized with.

    presto-load -b 32 --format npy DATASET | python3 statistics_numpy.py

Each numeric feature gives a line. Rows may differ in length. Texts are counted. A stream that is not whole raises
IncompleteStream.
"""
import sys

import numpy as np

from npy_stream import Bytes, Ragged, batches


class Statistics:
    """Sums over all values of a feature."""

    def __init__(self):
        self.rows = self.values = 0
        self.sum = self.squares = 0.0
        self.least, self.most = np.inf, -np.inf

    def add(self, rows, values):
        self.rows += rows
        self.values += values.size
        if values.size == 0:
            return
        self.sum += float(np.sum(values, dtype=np.float64))
        # values times values, in pieces: no second array of the batch's size
        flat = values.reshape(-1)
        for first in range(0, flat.size, 1 << 16):
            piece = flat[first:first + (1 << 16)].astype(np.float64)
            self.squares += float(piece @ piece)
        self.least, self.most = min(self.least, values.min()), max(self.most, values.max())

    def line(self):
        if self.values == 0:
            return f"{self.rows} rows, no values"
        mean = self.sum / self.values
        deviation = max(0.0, self.squares / self.values - mean * mean) ** 0.5
        return (f"{self.rows} rows, {self.values} values from {self.least:g} to {self.most:g}, "
                f"mean {mean:.6g}, standard deviation {deviation:.6g}")


def main():
    found, texts = {}, {}
    for batch in batches(sys.stdin.buffer):
        for name, feature in batch.items():
            if isinstance(feature, Bytes):
                texts[name] = texts.get(name, 0) + len(feature)
                continue
            values = feature.values if isinstance(feature, Ragged) else feature
            found.setdefault(name, Statistics()).add(len(feature), values)
    for name, statistics in found.items():
        print(f"{name}: {statistics.line()}")
    for name, rows in texts.items():
        print(f"{name}: {rows} rows of text")
    if not found and not texts:
        sys.exit("statistics_numpy.py: no data on stdin")


if __name__ == "__main__":
    main()
