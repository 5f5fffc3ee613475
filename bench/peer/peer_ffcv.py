# SPDX-License-Identifier: Apache-2.0
"""FFCV: one .beton file by its own writer, which encodes photos anew, as JPEGs of quality 90; compiled decoders and transforms in threads.

pip builds it from source, with the headers of OpenCV and libturbojpeg (Debian: libopencv-dev, libturbojpeg0-dev).
"""
import importlib.metadata as metadata
import io

import numpy as np
import PIL.Image
from ffcv.fields import IntField, NDArrayField, RGBImageField
from ffcv.fields.decoders import CenterCropRGBImageDecoder, IntDecoder, NDArrayDecoder, RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor
from ffcv.writer import DatasetWriter

from common import PHOTO_SIDE, RECIPE, count_of, sample

NAME = "FFCV"


def versions():
    return {"ffcv": metadata.version("ffcv")}


def supports(work):
    if work.kind == "photo":
        return "FFCV's decoders crop photos before they resize them; none resizes a whole one"
    if work.kind in ("raw", "table", "text", "speech"):
        return "FFCV has no such samples"
    if work.mode == "access":
        return "FFCV does not read at random"
    return None


class Samples:
    """What the writer asks for: rows of (id, value)."""

    def __init__(self, work, corpus):
        self.work, self.corpus, self.count = work, corpus, count_of(work, corpus)

    def __len__(self):
        return self.count

    def __getitem__(self, number):
        one = sample(self.work, number, self.corpus)
        if self.work.kind == "recipe":
            return number, PIL.Image.open(io.BytesIO(one["bytes"]))
        return number, np.ascontiguousarray(one["x" if self.work.kind == "tensor" else "image"])


def write(work, folder, corpus):
    value = {
        "recipe": lambda: RGBImageField(write_mode="jpg", jpeg_quality=90),
        "resized": lambda: RGBImageField(write_mode="raw"),
        "tensor": lambda: NDArrayField(np.dtype(np.float32), (work.size // 4,)),
    }[work.kind]()
    DatasetWriter(str(folder / "samples.beton"), {"id": IntField(), "x": value}, num_workers=2).from_indexed_dataset(
        Samples(work, corpus))


class Reader:
    def __init__(self, work, folder, corpus, threads):
        self.work = work
        side = (PHOTO_SIDE, PHOTO_SIDE)
        full = np.full(3, 127.5, np.float32)
        mean, std = (255 * np.array(RECIPE[name], np.float32) for name in ("mean", "std"))
        steps = {
            "recipe": lambda: [RandomResizedCropRGBImageDecoder(side, scale=RECIPE["area"], ratio=RECIPE["ratio"]),
                               RandomHorizontalFlip(), NormalizeImage(mean, std, np.float32), ToTensor()],
            "resized": lambda: [CenterCropRGBImageDecoder(side, ratio=PHOTO_SIDE / 256), NormalizeImage(full, full, np.float32),
                                ToTensor()],
            "tensor": lambda: [NDArrayDecoder(), ToTensor()],
        }[work.kind]()
        order = OrderOption.RANDOM if work.mode == "shuffle" else OrderOption.SEQUENTIAL
        self.loader = Loader(str(folder / "samples.beton"), batch_size=work.batch, num_workers=threads, order=order, seed=5,
                             drop_last=False, os_cache=True, pipelines={"id": [IntDecoder(), ToTensor()], "x": steps})

    def begin(self):
        return iter(self.loader)

    def size_of(self, batch):
        return len(batch[0])

    def samples_of(self, batch):
        numbers, values = batch
        for row in range(len(numbers)):
            yield {"id": int(numbers[row]), "x": np.array(values[row])}
