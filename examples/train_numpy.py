#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train a small classifier on what presto-load streams, with nothing but NumPy.

    presto-load -e 2 -b 32 --shuffle full --format npy --features image,label,key DATASET |
        python3 train_numpy.py

Each batch has image [n, h, w, 3], label [n] and n keys as bytes. One sample in five, chosen by its key, is never
trained on; at the end the accuracy on those is printed. A stream that is not whole raises IncompleteStream.
"""
import argparse
import sys
import zlib

import numpy as np

from npy_stream import batches

GRID = 8  # images are averaged down to GRID x GRID x 3


def features_of(images):
    """[n, h, w, 3] of uint8 or of float32 in [-1, 1] -> [n, GRID * GRID * 3 + 1], about zero-centered."""
    scale = 127.5 if images.dtype == np.uint8 else 1.0
    shift = 1.0 if images.dtype == np.uint8 else 0.0
    n, h, w, c = images.shape
    h, w = h - h % GRID, w - w % GRID
    cells = images[:, :h, :w].reshape(n, GRID, h // GRID, GRID, w // GRID, c)
    pooled = cells.mean(axis=(2, 4), dtype=np.float32).reshape(n, -1) / scale - shift
    return np.concatenate([pooled, np.ones((n, 1), np.float32)], axis=1)


def softmax(scores):
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--rate", type=float, default=0.05, help="learning rate")
    parser.add_argument("--least-accuracy", type=float, default=0.0,
                        help="exit with 1 when the accuracy stays below this")
    arguments = parser.parse_args()

    weights = np.zeros((GRID * GRID * 3 + 1, arguments.classes), np.float32)
    held_out = {}  # key -> (features, label)
    seen = 0
    for batch in batches(sys.stdin.buffer):
        images, labels, keys = batch["image"], batch["label"], batch["key"]
        inputs = features_of(images)
        is_test = np.array([zlib.crc32(key) % 5 == 0 for key in keys])
        for row in np.flatnonzero(is_test):
            held_out[keys[row]] = (inputs[row], labels[row])
        inputs, labels = inputs[~is_test], labels[~is_test]
        if len(labels) > 0:
            error = softmax(inputs @ weights)
            error[np.arange(len(labels)), labels] -= 1
            weights -= arguments.rate * inputs.T @ error / len(labels)
        seen += len(images)

    if seen == 0:
        sys.exit("train_numpy.py: no data on stdin")
    if not held_out:
        print(f"{seen} samples seen, none of them held out: too few to tell the accuracy")
        return 0 if arguments.least_accuracy <= 0 else 1
    inputs = np.stack([x for x, _ in held_out.values()])
    labels = np.array([label for _, label in held_out.values()])
    accuracy = float((np.argmax(inputs @ weights, axis=1) == labels).mean())
    print(f"{seen} samples seen, accuracy on {len(labels)} held-out images: {accuracy:.0%} "
          f"(chance: {1 / arguments.classes:.0%})")
    return 0 if accuracy >= arguments.least_accuracy else 1


if __name__ == "__main__":
    sys.exit(main())
