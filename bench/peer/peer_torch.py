# SPDX-License-Identifier: Apache-2.0
"""torch DataLoader over a map-style dataset: files as ImageFolder has them, arrays in one memory-mapped .npy; persistent workers."""
import pickle

import numpy as np
import torch
import torchvision
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2
from torchvision.transforms.v2.functional import resize

from common import MEL, PHOTO_SIDE, RECIPE, count_of, files_of, mel_weights, samples

NAME = "torch DataLoader"
AUGMENT = v2.Compose([
    v2.RandomResizedCrop(PHOTO_SIDE, scale=RECIPE["area"], ratio=RECIPE["ratio"], antialias=True),
    v2.RandomHorizontalFlip(),
    v2.ToDtype(torch.float32, scale=True),
    v2.Normalize(RECIPE["mean"], RECIPE["std"]),
])


def versions():
    return {"torch": torch.__version__, "torchvision": torchvision.__version__}


def supports(work):
    return "torch has no format of its own" if work.mode == "write" else None


def write(work, folder, corpus):
    if work.kind in ("photo", "recipe", "speech", "resized"):
        return
    if work.kind == "tensor":
        stored = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, (work.count, work.size // 4))
        for one in samples(work, corpus):
            stored[one["id"]] = one["x"]
        stored.flush()
        return
    rows = [one["record"] if work.kind == "raw" else one["text"] if work.kind == "text" else pickle.dumps(one)
            for one in samples(work, corpus)]
    np.save(folder / "ends.npy", np.cumsum([len(row) for row in rows]))
    (folder / "rows").write_bytes(b"".join(rows))


class Samples(Dataset):
    def __init__(self, work, folder, corpus):
        self.work, self.folder, self.corpus = work, folder, corpus
        self.count = count_of(work, corpus)
        self.stored = self.weights = None

    def __len__(self):
        return self.count

    def open(self):
        """In the worker: a map of the file, or the paths."""
        kind = self.work.kind
        if kind == "tensor":
            self.stored = np.load(self.folder / "x.npy", mmap_mode="r")
        elif kind == "resized":
            self.stored = np.load(self.corpus / "resized.npy", mmap_mode="r")
        elif kind in ("photo", "recipe", "speech"):
            self.stored = files_of(self.corpus, "*.flac" if kind == "speech" else "*.jpg")
        else:
            self.ends = np.load(self.folder / "ends.npy")
            self.stored = np.memmap(self.folder / "rows", np.uint8, "r")
            if kind == "text":
                import sentencepiece

                self.model = sentencepiece.SentencePieceProcessor(model_file=str(self.corpus / "bpe.model"))

    def row(self, number):
        start = 0 if number == 0 else self.ends[number - 1]
        return self.stored[start : self.ends[number]].tobytes()

    def __getitem__(self, number):
        if self.stored is None:
            self.open()
        kind = self.work.kind
        if kind == "tensor":
            return {"id": number, "x": torch.from_numpy(np.array(self.stored[number]))}
        if kind == "resized":
            image = torch.from_numpy(np.array(self.stored[number, 16:240, 16:240]))
            return {"id": number, "x": image.float().div_(127.5).sub_(1)}
        if kind == "photo":
            image = torchvision.io.decode_image(str(self.stored[number]), mode="RGB")
            image = resize(image, [PHOTO_SIDE, PHOTO_SIDE], antialias=False)
            return {"id": number, "x": image.float().div_(127.5).sub_(1)}
        if kind == "recipe":
            return {"id": number, "x": AUGMENT(torchvision.io.decode_image(str(self.stored[number]), mode="RGB"))}
        if kind == "table":
            return pickle.loads(self.row(number))
        if kind == "text":
            return {"id": number, "ids": np.array(self.model.encode(self.row(number).decode()), np.int64)}
        if kind == "speech":
            return {"id": number, "x": self.spectrogram(str(self.stored[number]))}
        return self.row(number)

    def spectrogram(self, path):
        import soundfile

        if self.weights is None:
            self.weights, self.hann = torch.from_numpy(mel_weights()), torch.hann_window(MEL["window"])
        sound = torch.from_numpy(soundfile.read(path, dtype="float32")[0])
        frames = sound.unfold(0, MEL["window"], MEL["stride"]) * self.hann
        return torch.log(torch.fft.rfft(frames, n=MEL["fft"]).abs() @ self.weights + MEL["offset"])


def listed(rows):
    return rows


class Reader:
    def __init__(self, work, folder, corpus, threads):
        torch.set_num_threads(1)
        self.work = work
        self.data = Samples(work, folder, corpus)
        ragged = work.kind in ("raw", "text", "speech")
        self.loader = DataLoader(self.data, batch_size=work.batch, num_workers=threads, persistent_workers=True,
                                 prefetch_factor=4, shuffle=work.mode == "shuffle", collate_fn=listed if ragged else None)

    def begin(self):
        if self.work.mode != "access":
            return iter(self.loader)
        order = np.random.default_rng(5).permutation(self.work.count).tolist()
        return iter(DataLoader(self.data, batch_size=100, sampler=order, num_workers=0))

    def size_of(self, batch):
        return len(batch if isinstance(batch, list) else batch["id"])

    def samples_of(self, batch):
        if isinstance(batch, list):
            for one in batch:
                yield {"record": one} if self.work.kind == "raw" else {k: np.asarray(v) for k, v in one.items()}
            return
        for row in range(len(batch["id"])):
            one = {name: values[row] for name, values in batch.items()}
            if self.work.kind in ("photo", "recipe"):
                one["x"] = one["x"].permute(1, 2, 0)
            yield {name: value if isinstance(value, bytes) else value.numpy() for name, value in one.items()}
