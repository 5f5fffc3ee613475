# SPDX-License-Identifier: Apache-2.0
"""Mosaic Streaming: MDS shards by MDSWriter, uncompressed and local; StreamingDataLoader with persistent workers."""
import numpy as np
import torch
import torchvision
from streaming import MDSWriter, StreamingDataLoader, StreamingDataset
from streaming.base.util import clean_stale_shared_memory
from torchvision.transforms.v2.functional import resize

from common import FLOATS, INTS, PHOTO_SIDE, samples

NAME = "MDS"


def versions():
    import importlib.metadata as metadata

    return {"mosaicml-streaming": metadata.version("mosaicml-streaming")}


def supports(work):
    return "as torch's row" if work.kind in ("recipe", "speech") else None


def columns(work):
    if work.kind == "raw":
        return {"record": "bytes"}
    if work.kind == "tensor":
        return {"id": "int", "x": f"ndarray:float32:{work.size // 4}"}
    if work.kind == "photo":
        return {"id": "int", "bytes": "bytes"}
    if work.kind == "resized":
        return {"id": "int", "image": "ndarray:uint8:256,256,3"}
    if work.kind == "text":
        return {"id": "int", "text": "bytes"}
    row = {f"float_{i:02}": "float32" for i in range(FLOATS)} | {f"int_{i:02}": "int" for i in range(INTS)}
    return {"id": "int", **row, "text": "bytes"}


def write(work, folder, corpus):
    kinds = columns(work)
    with MDSWriter(out=str(folder / "mds"), columns=kinds, size_limit=1 << 26) as sink:
        for one in samples(work, corpus):
            sink.write({name: np.asarray(one[name]) if kind.startswith("ndarray") else one[name] for name, kind in kinds.items()})


class Decoded(StreamingDataset):
    def __init__(self, kind, corpus, **options):
        super().__init__(**options)
        self.kind, self.corpus_folder, self.model = kind, corpus, None

    def __getitem__(self, at):
        one = super().__getitem__(at)
        if self.kind == "raw":
            return one["record"]
        if self.kind == "photo":
            image = torchvision.io.decode_image(torch.frombuffer(bytearray(one["bytes"]), dtype=torch.uint8), mode="RGB")
            image = resize(image, [PHOTO_SIDE, PHOTO_SIDE], antialias=False)
            return {"id": one["id"], "x": image.float().div_(127.5).sub_(1)}
        if self.kind == "resized":
            return {"id": one["id"], "x": torch.from_numpy(one["image"][16:240, 16:240]).float().div_(127.5).sub_(1)}
        if self.kind == "text":
            if self.model is None:
                import sentencepiece

                self.model = sentencepiece.SentencePieceProcessor(model_file=str(self.corpus_folder / "bpe.model"))
            return {"id": one["id"], "ids": np.array(self.model.encode(one["text"].decode()), np.int64)}
        return one


def listed(rows):
    return rows


class Reader:
    def __init__(self, work, folder, corpus, threads):
        clean_stale_shared_memory()
        torch.set_num_threads(1)
        self.work = work
        self.data = Decoded(work.kind, corpus, local=str(folder / "mds"), batch_size=work.batch, shuffle=work.mode == "shuffle")
        options = {"collate_fn": listed} if work.kind in ("raw", "text") else {}
        self.loader = StreamingDataLoader(self.data, batch_size=work.batch, num_workers=threads, persistent_workers=True, **options)

    def begin(self):
        return self.random_batches() if self.work.mode == "access" else iter(self.loader)

    def random_batches(self):
        for chosen in np.random.default_rng(5).permutation(self.work.count).reshape(-1, 100).tolist():
            rows = [self.data[at] for at in chosen]
            yield {"id": torch.tensor([row["id"] for row in rows]), "x": torch.from_numpy(np.stack([row["x"] for row in rows]))}

    def size_of(self, batch):
        return len(batch if isinstance(batch, list) else batch["id"])

    def samples_of(self, batch):
        if isinstance(batch, list):
            yield from ({"record": one} if self.work.kind == "raw" else one for one in batch)
            return
        for row in range(len(batch["id"])):
            one = {name: values[row] for name, values in batch.items()}
            if self.work.kind == "photo":
                one["x"] = one["x"].permute(1, 2, 0)
            yield {name: value if isinstance(value, bytes) else value.numpy() for name, value in one.items()}
