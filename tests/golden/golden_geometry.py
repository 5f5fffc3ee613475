#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Masks, boxes and keypoints that torchvision's transforms v2 move with an image: expected/geometry.npz.

The windows and flips are drawn here as Presto draws them, by NumPy's Philox, and handed to the functions of
torchvision.transforms.v2 on tv_tensors. Needs torchvision 0.24 or later (made with 0.29.2); the test that compares,
tests/live/geometry.py, needs only NumPy. Usage: golden_geometry.py OUTPUT.npz
"""
import math
import sys
import zlib

import numpy as np
from draws import Draws

SEED, SAMPLES = 5, 6
SIZES = [(61, 47), (30, 40), (48, 48), (33, 90), (17, 23), (100, 64)]  # of the samples, height and width
FORMATS = ("xyxy", "xywh", "cxcywh")

# name: steps, with their options of Presto
CHAINS = {
    "crop": [("random-crop", {"height": 15, "width": 20})],
    "resized-crop": [("random-resized-crop", {"size": 24})],
    "enlarged-crop": [("random-resized-crop", {"height": 71, "width": 130, "scale": [0.05, 0.3]})],
    "flip": [("horizontal-flip", {"probability": 1})],
    "half-flip": [("horizontal-flip", {"probability": 0.5})],
    "pad": [("pad", {"top": 3, "bottom": 1, "left": 5, "right": 2})],
    "crop-or-pad": [("crop-or-pad", {"height": 40, "width": 45})],
    "resize": [("resize-image", {"height": 45, "width": 33})],
    "enlarge": [("resize-image", {"height": 150, "width": 111})],
    "min-side": [("resize-image", {"min-side": 25})],
    "chain": [("resize-image", {"min-side": 50}), ("horizontal-flip", {"probability": 0.5}), ("pad", {"left": 4, "top": 2}),
              ("random-crop", {"height": 30, "width": 41}), ("random-resized-crop", {"size": 28}),
              ("crop-or-pad", {"height": 31, "width": 22})],
}


PICTURES = ("mask", "ids", "stack")  # kept as their digest


def digest(picture):
    return np.array([*picture.shape, zlib.crc32(np.ascontiguousarray(picture).tobytes())], np.int64)


def sample(number):
    """The features of a sample before any step."""
    height, width = SIZES[number]
    rng = np.random.default_rng(number)
    corners = rng.uniform(-5, [width + 5, height + 5], (7, 2)).astype(np.float32)
    boxes = np.concatenate([corners, corners + rng.uniform(0.5, 40, (7, 2)).astype(np.float32)], 1)
    size = boxes[:, 2:] - boxes[:, :2]
    whole = np.array([[3, 4, 12, 15], [0, 0, width, height], [8, 1, 15, 16]], np.int64)
    return {
        "image": rng.integers(0, 256, (height, width, 3), np.uint8),
        "mask": rng.integers(0, 30, (height, width, 1), np.uint8),
        "ids": rng.integers(-5, 70000, (height, width), np.int32),
        "stack": rng.integers(0, 2, (3, height, width), np.uint8),
        "xyxy": boxes,
        "xywh": np.concatenate([boxes[:, :2], size], 1),
        "cxcywh": np.concatenate([boxes[:, :2] + size / 2, size], 1).astype(np.float32),
        "whole": whole,
        "label": np.arange(7, dtype=np.int64) + 100 * number,
        "points": rng.uniform(-3, [width + 3, height + 3], (2, 5, 2)).astype(np.float32),
    }


def resized_window(draws, height, width, scale, ratio):
    area = height * width
    low, high = math.log(ratio[0]), math.log(ratio[1])
    for _ in range(10):
        wanted = area * draws.uniform(*scale)
        aspect = math.exp(draws.uniform(low, high))
        h, w = round(math.sqrt(wanted / aspect)), round(math.sqrt(wanted * aspect))
        if 0 < h <= height and 0 < w <= width:
            return draws.below(height - h + 1), draws.below(width - w + 1), h, w
    shape = width / height
    h = round(width / ratio[0]) if shape < ratio[0] else height
    w = round(height * ratio[1]) if shape > ratio[1] else width
    return (height - h) // 2, (width - w) // 2, h, w


def apply(F, step, options, values, size, draws):
    """What torchvision makes of tv_tensors; and the new size."""
    height, width = size
    if step == "random-crop":
        h, w = options["height"], options["width"]
        top, left = draws.below(height - h + 1), draws.below(width - w + 1)
        return [F.crop(v, top, left, h, w) for v in values], (h, w)
    if step == "random-resized-crop":
        out = (options.get("size") or options["height"], options.get("size") or options["width"])
        window = resized_window(draws, height, width, options.get("scale", (0.08, 1)), (0.75, 4 / 3))
        return [F.resized_crop(v, *window, list(out)) for v in values], out
    if step == "horizontal-flip":
        flips = draws.uniform() < options["probability"]
        return [F.horizontal_flip(v) if flips else v for v in values], size
    if step == "pad":
        left, top, right, bottom = (options.get(k, 0) for k in ("left", "top", "right", "bottom"))
        return [F.pad(v, [left, top, right, bottom]) for v in values], (height + top + bottom, width + left + right)
    if step == "resize-image":
        side = options.get("min-side")
        shorter = min(height, width)
        out = (height * side // shorter, width * side // shorter) if side else (options["height"], options["width"])
        return [F.resize(v, list(out)) for v in values], out
    # crop-or-pad: as tf.image.resize_with_crop_or_pad, whose smaller half comes first
    h, w = options["height"], options["width"]
    top, left = ((n - m) // 2 if n > m else -((m - n) // 2) for n, m in ((height, h), (width, w)))
    return [F.crop(v, top, left, h, w) for v in values], (h, w)


def main(path):
    import torch
    from torchvision import tv_tensors
    from torchvision.transforms.v2 import SanitizeBoundingBoxes
    from torchvision.transforms.v2 import functional as F
    found = {}
    for chain, steps in CHAINS.items():
        for number in range(SAMPLES):
            s = sample(number)
            size = SIZES[number]
            values = [tv_tensors.Mask(torch.from_numpy(s["mask"]).permute(2, 0, 1)), tv_tensors.Mask(torch.from_numpy(s["ids"])),
                      tv_tensors.Mask(torch.from_numpy(s["stack"])),
                      *(tv_tensors.BoundingBoxes(torch.from_numpy(s[f]), format=f.upper(), canvas_size=size) for f in FORMATS),
                      tv_tensors.BoundingBoxes(torch.from_numpy(s["whole"]), format="XYXY", canvas_size=size),
                      tv_tensors.KeyPoints(torch.from_numpy(s["points"]), canvas_size=size)]
            for place, (step, options) in enumerate(steps):
                values, size = apply(F, step, options, values, size, Draws(SEED, number, place))
            kept = SanitizeBoundingBoxes(min_size=1, labels_getter=lambda x: x[1])((values[3], torch.from_numpy(s["label"])))
            out = {"mask": values[0].permute(1, 2, 0), "ids": values[1], "stack": values[2], "whole": values[6], "points": values[7],
                   "kept": kept[0], "label": kept[1], **dict(zip(FORMATS, values[3:6]))}
            for name, value in out.items():
                value = value.contiguous().numpy()
                found[f"{chain}/{number}/{name}"] = digest(value) if name in PICTURES else value
    np.savez_compressed(path, **found)


if __name__ == "__main__":
    main(sys.argv[1])
