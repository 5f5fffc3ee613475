# SPDX-License-Identifier: Apache-2.0
"""The data that the lines of docs/data.md work on. A line for other data: a function here, listed at the end."""
import gzip
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "corpora"))
from records import framed, serialized  # noqa: E402

PIPELINE = """\
name: mine
source: {type: tfrecord, feature: image/encoded, label: image/class/label, features: [image/filename]}
steps:
  - {step: decode-image, yields: decoded, channels: 3}
  - {step: resize-image, yields: resized, min-side: 256}
  - {step: random-crop,  height: 224, width: 224}
"""


def tfrecords(folder):
    """`imagenet` and `imagenet-gz`: JPEGs with labels and boxes; `mine.yaml`, as the page has it."""
    photos = sorted((folder / "photos").rglob("*.jpg"))[:24]
    classes = sorted({path.parent.name for path in photos})
    records = [framed(serialized({"image/encoded": path.read_bytes(), "image/filename": path.name.encode(),
                                  "image/class/label": classes.index(path.parent.name) + 1,
                                  "image/object/bbox/xmin": [0.25] * (number % 3)}))
               for number, path in enumerate(photos)]
    for name, ending, pack in (("imagenet", "", bytes), ("imagenet-gz", ".gz", gzip.compress)):
        (folder / name).mkdir()
        for shard in range(2):
            (folder / name / f"train-{shard:05}-of-00002{ending}").write_bytes(pack(b"".join(records[shard::2])))
    (folder / "mine.yaml").write_text(PIPELINE)


def texts(folder):
    """`lines.txt`, `reviews.jsonl` and `reviews.csv`; `texts.yaml`, as the page has it, and its tokenizer."""
    words = [f"review {number}, of something" for number in range(100)]
    (folder / "lines.txt").write_text("".join(f"{text}\n" for text in words))
    (folder / "reviews.jsonl").write_text("".join(json.dumps({"body": text, "stars": i % 5}) + "\n" for i, text in enumerate(words)))
    (folder / "reviews.csv").write_text("body,stars\n" + "".join(f'"{text}",{i % 5}\n' for i, text in enumerate(words)))
    (folder / "texts.yaml").write_text("{name: texts, source: {type: lines}, steps: [{step: bpe-encode, yields: tokens, "
                                       "model: tokenizer.json}]}\n")
    (folder / "tokenizer.json").symlink_to(folder / "tests" / "golden" / "tokenizers" / "roberta.json")


SAMPLES = [tfrecords, texts]


def make(folder):
    """Make all data in `folder`, which has a folder `photos`."""
    for sample in SAMPLES:
        sample(folder)
