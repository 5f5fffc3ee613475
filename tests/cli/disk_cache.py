# SPDX-License-Identifier: Apache-2.0
"""What the tests of the disk cache share."""
import io
import json
import os
import random
import time

import numpy as np

from cli import Case

LIMIT = "64MiB"


def allocated(folder):
    """What the folder's files take, as du counts."""
    return sum(os.lstat(path).st_blocks * 512 for path in folder.iterdir())


def arrays(stream):
    """The arrays of an npy stream, without its messages: the stream of several runs, one behind the other."""
    at, found = io.BytesIO(stream), []
    while at.tell() < len(stream):
        array = np.lib.format.read_array(at)
        if array.dtype.kind != "S":
            found.append(f"{array.dtype} {array.shape} ".encode() + array.tobytes())
    return b"".join(found)


class CacheCase(Case):
    """Streams of 40 photos, with a folder of the cache for each test."""

    photo_count = 40

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.random = random.Random(int(os.environ.get("PRESTO_TEST_SEED", time.time_ns())))
        cls.make_photos()

    def setUp(self):
        self.cache = self.new("cache")

    def arguments(self, *more, epochs=2, shuffle="full", threads=2):
        return ["-q", "-j", threads, "-e", epochs, "--shuffle", shuffle, "--format", "npy", "-b", "5", "--features",
                "image,label,key", *more, "-p", self.pipeline, self.make_photos()]

    def stream(self, *more, limit=LIMIT, **order):
        """The stream through the cache, and its figures."""
        stats = self.new("stats")
        data = self.load("--cache", f"disk:{self.cache}:{limit}", "--stats", stats, *self.arguments(*more, **order))
        return data, json.loads(stats.read_text())

    def plain(self, *more, **order):
        return self.load(*self.arguments(*more, **order))

    def blocks(self):
        return sorted(path for path in self.cache.iterdir() if path.name.endswith(".block"))

    def assert_counts(self, stats, hits, misses, damaged=0):
        self.assertEqual((stats["cached_samples"], stats["missed_samples"], stats["cache_damaged_blocks"]),
                         (hits, misses, damaged))
