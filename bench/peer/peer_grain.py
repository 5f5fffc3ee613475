# SPDX-License-Identifier: Apache-2.0
"""Grain over ArrayRecord: group size 1, as its documentation says for random access; read by threads."""
import pickle

import array_record
import grain
import numpy as np
from array_record.python.array_record_data_source import ArrayRecordDataSource
from array_record.python.array_record_module import ArrayRecordWriter

from common import count_of, samples

NAME = "Grain, ArrayRecord"


def versions():
    import importlib.metadata as metadata

    return {name: metadata.version(name) for name in ("grain", "array-record")}


def supports(work):
    if work.kind in ("photo", "recipe", "speech", "text"):
        return "Grain has no decoders: those of torch's row would run in its workers"
    return None


def write(work, folder, corpus):
    writer = ArrayRecordWriter(str(folder / "data.array_record"), "group_size:1,uncompressed")
    for one in samples(work, corpus):
        if work.kind == "raw":
            writer.write(one["record"])
        elif work.kind == "tensor":
            writer.write(one["id"].to_bytes(8, "little") + one["x"].tobytes())
        elif work.kind == "resized":
            writer.write(one["id"].to_bytes(8, "little") + one["image"].tobytes())
        else:
            writer.write(pickle.dumps(one))
    writer.close()


class Reader:
    def __init__(self, work, folder, corpus, threads):
        self.work, self.count = work, count_of(work, corpus)
        self.source = ArrayRecordDataSource([str(folder / "data.array_record")])
        self.options = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=4)

    def parse(self, record):
        kind = self.work.kind
        if kind == "raw":
            return record
        if kind == "table":
            return pickle.loads(record)
        number = int.from_bytes(record[:8], "little")
        if kind == "tensor":
            return {"id": number, "x": np.frombuffer(record, np.float32, offset=8)}
        image = np.frombuffer(record, np.uint8, offset=8).reshape(256, 256, 3)[16:240, 16:240]
        return {"id": number, "x": image.astype(np.float32) / np.float32(127.5) - np.float32(1)}

    def begin(self):
        if self.work.mode == "access":
            return self.random_batches()
        # Batches of numbers, each read at once: a record by itself costs ArrayRecord many times as much.
        numbers = grain.MapDataset.range(self.count)
        if self.work.mode == "shuffle":
            numbers = numbers.shuffle(seed=1)
        return iter(numbers.batch(self.work.batch).map(self.read).to_iter_dataset(self.options))

    def read(self, numbers):
        rows = [self.parse(record) for record in self.source.__getitems__([int(number) for number in numbers])]
        if self.work.kind == "raw":
            return rows
        return {name: [row[name] for row in rows] if isinstance(rows[0][name], bytes) else np.stack([row[name] for row in rows])
                for name in rows[0]}

    def random_batches(self):
        for chosen in np.random.default_rng(5).permutation(self.work.count).reshape(-1, 100):
            yield self.read(chosen)

    def size_of(self, batch):
        return len(batch if isinstance(batch, list) else batch["id"])

    def samples_of(self, batch):
        if isinstance(batch, list):
            yield from ({"record": record} for record in batch)
            return
        for row in range(len(batch["id"])):
            yield {name: values[row] for name, values in batch.items()}
