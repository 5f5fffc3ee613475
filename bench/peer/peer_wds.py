# SPDX-License-Identifier: Apache-2.0
"""WebDataset: shards by ShardWriter, batches made in the workers, WebLoader with persistent workers."""
import json

import numpy as np
import torch
import webdataset as wds
from torchvision.transforms.v2.functional import resize

from common import PHOTO_SIDE, count_of, samples

NAME = "WebDataset"
SHARDS = 4


def versions():
    return {"webdataset": wds.__version__}


def supports(work):
    if work.mode == "access":
        return "tar files have no random access"
    if work.mode == "shuffle":
        return "WebDataset shuffles shards and a buffer only"
    if work.kind in ("recipe", "speech"):
        return "as torch's row"
    return None


def write(work, folder, corpus):
    per_shard = -(-count_of(work, corpus) // SHARDS)
    with wds.ShardWriter(str(folder / "data-%05d.tar"), maxcount=per_shard, maxsize=1e12, verbose=0) as sink:
        for number, one in enumerate(samples(work, corpus)):
            stored = {"__key__": f"{number:08d}"}
            if work.kind == "raw":
                stored["bin"] = one["record"]
            elif work.kind == "tensor":
                stored["npy"] = one["x"]
            elif work.kind == "photo":
                stored["jpg"] = one["bytes"]
            elif work.kind == "resized":
                stored["npy"] = one["image"]
            elif work.kind == "text":
                stored["txt"] = one["text"]
            else:
                stored["json"] = json.dumps({**{k: v.item() if hasattr(v, "item") else v for k, v in one.items()},
                                             "text": one["text"].decode()}).encode()
            sink.write(stored)


class Decode:
    def __init__(self, kind, corpus):
        self.kind, self.corpus, self.model = kind, corpus, None

    def __call__(self, one):
        number = int(one["__key__"])
        if self.kind == "raw":
            return {"bin": one["bin"]}
        if self.kind == "tensor":
            return {"id": number, "x": one["npy"]}
        if self.kind == "photo":
            image = resize(one["jpg"], [PHOTO_SIDE, PHOTO_SIDE], antialias=False)
            return {"id": number, "x": image.float().div_(127.5).sub_(1)}
        if self.kind == "resized":
            return {"id": number, "x": torch.from_numpy(one["npy"][16:240, 16:240]).float().div_(127.5).sub_(1)}
        if self.kind == "text":
            if self.model is None:
                import sentencepiece

                self.model = sentencepiece.SentencePieceProcessor(model_file=str(self.corpus / "bpe.model"))
            return {"id": number, "ids": np.array(self.model.encode(one["txt"]), np.int64)}
        return {**one["json"], "text": one["json"]["text"].encode()}


def listed(rows):
    return rows


class Reader:
    def __init__(self, work, folder, corpus, threads):
        torch.set_num_threads(1)
        self.work = work
        shards = sorted(str(path) for path in folder.glob("*.tar"))
        decoders = ["torchrgb8"] if work.kind == "photo" else []
        data = wds.WebDataset(shards, shardshuffle=False)
        if work.kind != "raw":
            data = data.decode(*decoders)
        ragged = work.kind in ("raw", "text")
        collate = listed if ragged else torch.utils.data.default_collate
        data = data.map(Decode(work.kind, corpus)).batched(work.batch, collation_fn=collate)
        self.loader = wds.WebLoader(data, batch_size=None, num_workers=min(threads, len(shards)), persistent_workers=True)

    def begin(self):
        return iter(self.loader)

    def size_of(self, batch):
        return len(batch if isinstance(batch, list) else batch["id"])

    def samples_of(self, batch):
        if isinstance(batch, list):
            for one in batch:
                yield {"record": one["bin"]} if self.work.kind == "raw" else {"id": one["id"], "ids": one["ids"]}
            return
        for row in range(len(batch["id"])):
            one = {name: values[row] for name, values in batch.items() if not name.startswith("__")}
            if self.work.kind == "photo":
                one["x"] = one["x"].permute(1, 2, 0)
            yield {name: value if isinstance(value, (bytes, str)) else value.numpy() for name, value in one.items()}
