# SPDX-License-Identifier: Apache-2.0
"""Presto: the loader in process, all options at their defaults but the number of threads."""
import numpy as np

import presto
from common import MEL, PHOTO_SIDE, RECIPE, samples

NAME = "Presto"
ONLINE = f"""\
name: online
source: {{type: files, match: ["*.jpg"]}}
steps:
  - {{step: read-file}}
  - {{step: decode-image, channels: 3}}
  - {{step: resize-image, height: {PHOTO_SIDE}, width: {PHOTO_SIDE}}}
  - {{step: center-pixels}}
"""
RANDOM = f"""\
name: recipe
source: {{type: files, match: ["*.jpg"]}}
steps:
  - {{step: read-file}}
  - {{step: decode-image, channels: 3}}
  - {{step: random-resized-crop, size: {PHOTO_SIDE}, scale: {list(RECIPE["area"])}, ratio: {list(RECIPE["ratio"])}}}
  - {{step: horizontal-flip}}
  - {{step: normalize, mean: {list(RECIPE["mean"])}, std: {list(RECIPE["std"])}}}
"""
STORED = f"""\
name: stored
source: {{type: tfrecord, feature: image}}
steps:
  - {{step: crop-or-pad, height: {PHOTO_SIDE}, width: {PHOTO_SIDE}}}
  - {{step: center-pixels}}
"""
SPEECH = f"""\
name: speech
source: {{type: files, match: ["*.flac"], feature: audio}}
steps:
  - {{step: read-file}}
  - {{step: decode-audio}}
  - {{step: mel-spectrogram, window: 20, stride: 10, fft-length: {MEL["fft"]}, bands: {MEL["bands"]}}}
"""
WORDS = """\
name: words
source: {type: tfrecord, feature: text}
steps:
  - {step: bpe-encode, model: "MODEL"}
"""
PIPELINES = {"photo": ONLINE, "recipe": RANDOM, "resized": STORED, "speech": SPEECH, "text": WORDS}


def versions():
    return {"presto-loader": presto.__version__}


def supports(work):
    return None


def write(work, folder, corpus):
    if work.kind in ("photo", "recipe", "speech"):
        return
    with presto.Writer(folder / "data") as writer:
        for one in samples(work, corpus):
            writer.add(one)


def opened(work, folder, corpus):
    stored = corpus if work.kind in ("photo", "recipe", "speech") else folder / "data"
    text = PIPELINES.get(work.kind)
    if text is None:
        return presto.open(stored)
    pipeline = folder / f"{work.kind}.yaml"
    pipeline.parent.mkdir(parents=True, exist_ok=True)
    pipeline.write_text(text.replace("MODEL", str(corpus / "bpe.model")))
    return presto.open(stored, pipeline=pipeline)


class Reader:
    def __init__(self, work, folder, corpus, threads):
        self.work = work
        self.dataset = opened(work, folder, corpus)
        shuffle = "full" if work.mode == "shuffle" else "none"
        self.options = {"batch": work.batch, "threads": threads, "shuffle": shuffle}

    def begin(self):
        if self.work.mode == "access":
            return self.random_batches()
        if self.work.random:  # a loader that begins anew draws as the one before
            self.options["seed"] = self.options.get("seed", 0) + 1
        return iter(presto.Loader(self.dataset, **self.options))

    def random_batches(self):
        for chosen in np.random.default_rng(5).permutation(self.work.count).reshape(-1, 100):
            yield self.dataset[chosen]

    def size_of(self, batch):
        return batch.rows

    def samples_of(self, batch):
        main = {"photo": "image", "recipe": "image", "resized": "image", "speech": "audio"}.get(self.work.kind)
        for row in range(batch.rows):
            if self.work.kind == "text":
                yield {"id": batch["id"][row], "ids": batch["text"][row].astype(np.int64)}
            elif main is None:
                yield {name: values[row] for name, values in batch.items()}
            else:
                yield {"id": batch.numbers[row], "x": batch[main][row]}
