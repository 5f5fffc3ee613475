# SPDX-License-Identifier: Apache-2.0
"""The random numbers of steps a second time, by NumPy."""
import numpy as np


class Draws:
    """The random numbers of one step and sample: docs of include/presto/rng.h."""

    def __init__(self, seed, sample, stream):
        counter = ((stream << 128) + (sample << 64) - 1) % (1 << 256)  # NumPy counts up before each block
        self.bits = np.random.Philox(key=np.array([seed, 0], np.uint64), counter=counter)

    def next(self):
        return int(self.bits.random_raw())

    def uniform(self, low=0.0, high=1.0):
        return low + (high - low) * ((self.next() >> 11) * 2.0**-53)

    def below(self, bound):
        while True:
            product = self.next() * bound
            if product % 2**64 >= 2**64 % bound:
                return product >> 64
