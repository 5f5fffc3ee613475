# SPDX-License-Identifier: Apache-2.0
"""The machine's own limit: bytes of one file, back to back, copied into fresh memory by as many threads as the others have."""
import concurrent.futures
import itertools
import os

import numpy as np

from common import samples

NAME = "bare loop"


def versions():
    return {"numpy": np.__version__}


def supports(work):
    if work.kind not in ("raw", "tensor") or work.mode not in ("read", "write"):
        return "no loop that does the same work"
    return None


def write(work, folder, corpus):
    with open(folder / "data", "wb", buffering=1 << 20) as file:
        for one in samples(work, corpus):
            file.write(memoryview(one["record"] if work.kind == "raw" else one["x"]).cast("B"))


class Reader:
    """Each batch is one preadv into an array of its own; as many are under way as there are threads, and one more."""

    def __init__(self, work, folder, corpus, threads):
        self.work, self.threads = work, threads
        self.file = os.open(folder / "data", os.O_RDONLY)
        self.pool = concurrent.futures.ThreadPoolExecutor(threads)

    def read(self, first, rows):
        batch = np.empty((rows, self.work.size), np.uint8)
        os.preadv(self.file, [batch], first * self.work.size)
        return batch

    def begin(self):
        starts = range(0, self.work.count, self.work.batch)
        asked = (self.pool.submit(self.read, at, min(self.work.batch, self.work.count - at)) for at in starts)
        under_way = list(itertools.islice(asked, self.threads + 1))
        while under_way:
            yield under_way.pop(0).result()
            under_way += itertools.islice(asked, 1)

    def size_of(self, batch):
        return len(batch)

    def samples_of(self, batch):
        first = self.seen = getattr(self, "seen", 0)
        self.seen = (first + len(batch)) % self.work.count
        for at, row in enumerate(batch):
            yield {"record": row.tobytes()} if self.work.kind == "raw" else {"id": first + at, "x": row.view(np.float32)}
