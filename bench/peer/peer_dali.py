# SPDX-License-Identifier: Apache-2.0
"""NVIDIA DALI on the CPU: its readers and operators in one pipeline, prefetched."""
import numpy as np
import nvidia.dali as dali
import nvidia.dali.fn as fn
import nvidia.dali.types as types

from common import MEL, PHOTO_SIDE, RECIPE, count_of, files_of, samples

NAME = "DALI on the CPU"


def versions():
    return {"nvidia-dali": dali.__version__}


def supports(work):
    if work.mode in ("access", "write"):
        return "DALI neither writes nor reads at random"
    if work.kind in ("raw", "table", "text"):
        return "DALI has no reader for it"
    return None


def write(work, folder, corpus):
    """DALI has no writer; its numpy reader wants a file a sample."""
    if work.kind in ("tensor", "resized"):
        for one in samples(work, corpus):
            np.save(folder / f"{one['id']:06}.npy", one["x" if work.kind == "tensor" else "image"])


class Reader:
    def __init__(self, work, folder, corpus, threads):
        self.work, self.count, self.seen = work, count_of(work, corpus), 0
        self.pipe = dali.Pipeline(batch_size=work.batch, num_threads=threads, device_id=None, prefetch_queue_depth=2)
        with self.pipe:
            self.pipe.set_outputs(*self.graph(folder, corpus))
        self.pipe.build()

    def graph(self, folder, corpus):
        kind = self.work.kind
        if kind in ("tensor", "resized"):
            value = fn.readers.numpy(file_root=str(folder), file_filter="*.npy", random_shuffle=self.work.mode == "shuffle",
                                     initial_fill=1024, name="reader", dont_use_mmap=False, pad_last_batch=True)
            if kind == "tensor":
                return (value,)
            value = fn.crop_mirror_normalize(value, crop=(224, 224), mean=[127.5] * 3, std=[127.5] * 3, output_layout="HWC",
                                             dtype=types.FLOAT)
            return (value,)
        pattern = "*.flac" if kind == "speech" else "*.jpg"
        files = [str(path) for path in files_of(corpus, pattern)[: self.count]]
        encoded, number = fn.readers.file(files=files, labels=list(range(len(files))), name="reader", pad_last_batch=True)
        if kind == "recipe":
            image = fn.decoders.image_random_crop(encoded, device="cpu", output_type=types.RGB, random_area=RECIPE["area"],
                                                  random_aspect_ratio=RECIPE["ratio"])
            image = fn.resize(image, size=[PHOTO_SIDE, PHOTO_SIDE], antialias=True)
            return number, fn.crop_mirror_normalize(image, mirror=fn.random.coin_flip(), mean=[255 * one for one in RECIPE["mean"]],
                                                    std=[255 * one for one in RECIPE["std"]], output_layout="HWC", dtype=types.FLOAT)
        if kind == "photo":
            image = fn.decoders.image(encoded, device="cpu", output_type=types.RGB)
            image = fn.resize(image, size=[PHOTO_SIDE, PHOTO_SIDE], antialias=False)
            return number, fn.crop_mirror_normalize(image, mean=[127.5] * 3, std=[127.5] * 3, output_layout="HWC",
                                                    dtype=types.FLOAT)
        sound, _ = fn.decoders.audio(encoded, dtype=types.FLOAT, downmix=True)
        power = fn.spectrogram(sound, nfft=MEL["fft"], window_length=MEL["window"], window_step=MEL["stride"],
                               center_windows=False, power=1)
        mel = fn.mel_filter_bank(power, sample_rate=MEL["rate"], nfilter=MEL["bands"], mel_formula="htk", normalize=False,
                                 freq_low=MEL["low"], freq_high=MEL["high"])
        return number, fn.transpose(dali.math.log(mel + MEL["offset"]), perm=[1, 0])

    def begin(self):
        left = self.count
        self.pipe.reset()
        while left > 0:
            yield self.pipe.run(), min(left, self.work.batch)
            left -= self.work.batch

    def size_of(self, batch):
        return batch[1]

    def samples_of(self, batch):
        values, rows = batch
        for row in range(rows):
            if len(values) == 2:
                yield {"id": int(np.asarray(values[0][row])[0]), "x": np.array(values[1][row])}
            else:
                number, self.seen = self.seen, self.seen + 1
                yield {"id": number, "x": np.array(values[0][row])}
