# SPDX-License-Identifier: Apache-2.0
"""LitData: chunks of 64 MB by optimize(), local and uncompressed; StreamingDataLoader with persistent workers."""
import functools
import importlib.metadata as metadata

import litdata
import numpy as np
import torch
import torchvision
from torchvision.transforms.v2.functional import resize

import common
from common import PHOTO_SIDE

NAME = "LitData"


def versions():
    return {"litdata": metadata.version("litdata")}


def supports(work):
    return "as torch's row" if work.kind in ("recipe", "speech") else None


def stored(work, corpus, number):
    one = common.sample(work, number, corpus)
    if work.kind == "raw":
        return one["record"]
    if work.kind == "tensor":
        return {"id": number, "x": np.array(one["x"])}
    if work.kind == "photo":
        return {"id": number, "bytes": one["bytes"]}
    if work.kind == "resized":
        return {"id": number, "image": np.array(one["image"])}
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in one.items()}


def write(work, folder, corpus):
    litdata.optimize(functools.partial(stored, work, corpus), list(range(common.count_of(work, corpus))),
                     str(folder / "chunks"), chunk_bytes="64MB", num_workers=2)


class Decoded(litdata.StreamingDataset):
    def __init__(self, kind, corpus, *arguments, **options):
        super().__init__(*arguments, **options)
        self.kind, self.corpus_folder, self.model = kind, corpus, None

    def __getitem__(self, at):
        one = super().__getitem__(at)
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
            return {"id": one["id"], "ids": np.array(self.model.encode(bytes(one["text"]).decode()), np.int64)}
        return one


def listed(rows):
    """A worker can send bytes to the loader, but not the views that the dataset gives."""
    return [bytes(row) if isinstance(row, memoryview) else row for row in rows]


class Reader:
    def __init__(self, work, folder, corpus, threads):
        torch.set_num_threads(1)
        self.work = work
        self.data = Decoded(work.kind, corpus, str(folder / "chunks"), shuffle=work.mode == "shuffle", drop_last=False)
        options = {"collate_fn": listed} if work.kind in ("raw", "text") else {}
        self.loader = litdata.StreamingDataLoader(self.data, batch_size=work.batch, num_workers=threads, persistent_workers=True,
                                                  **options)

    def begin(self):
        return self.random_batches() if self.work.mode == "access" else iter(self.loader)

    def random_batches(self):
        for chosen in np.random.default_rng(5).permutation(self.work.count).reshape(-1, 100).tolist():
            rows = [self.data[at] for at in chosen]
            yield {"id": torch.tensor([int(row["id"]) for row in rows]),
                   "x": torch.from_numpy(np.stack([row["x"] for row in rows]))}

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
            yield {name: value if isinstance(value, bytes) else np.asarray(value) for name, value in one.items()}
