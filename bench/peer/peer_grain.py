# SPDX-License-Identifier: Apache-2.0
"""Grain over ArrayRecord: group size 1, as its documentation says for random access; read by threads."""
import pickle

import array_record
import grain
import numpy as np
from array_record.python.array_record_data_source import ArrayRecordDataSource
from array_record.python.array_record_module import ArrayRecordWriter

from common import PHOTO_SIDE, count_of, samples

NAME = "Grain, ArrayRecord"


def versions():
    import importlib.metadata as metadata

    return {name: metadata.version(name) for name in ("grain", "array-record")}


def supports(work):
    if work.kind in ("photo", "speech", "text"):
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
        self.work = work
        self.source = ArrayRecordDataSource([str(folder / "data.array_record")])
        self.options = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=max(16, 2 * work.batch))

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
        data = grain.MapDataset.source(self.source)
        if self.work.mode == "shuffle":
            data = data.shuffle(seed=1)
        data = data.map(self.parse).to_iter_dataset(self.options)
        return iter(data.batch(self.work.batch, batch_fn=list) if self.work.kind == "raw" else data.batch(self.work.batch))

    def random_batches(self):
        for chosen in np.random.default_rng(5).permutation(self.work.count).reshape(-1, 100):
            rows = [self.parse(record) for record in self.source.__getitems__(chosen.tolist())]
            yield {"id": np.array([row["id"] for row in rows]), "x": np.stack([row["x"] for row in rows])}

    def size_of(self, batch):
        return len(batch if isinstance(batch, list) else batch["id"])

    def samples_of(self, batch):
        if isinstance(batch, list):
            yield from ({"record": record} for record in batch)
            return
        for row in range(len(batch["id"])):
            yield {name: values[row] for name, values in batch.items()}
