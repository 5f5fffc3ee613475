#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""random-resized-crop, color-jitter, horizontal-flip and normalize give what torchvision gives for the same draws.

The draws are made here a second time, by NumPy's Philox, and handed to torchvision's own code where it would draw.
Runs in the Python that has torchvision. Usage: torchvision_steps.py TOOLS_DIR EXAMPLES_DIR
"""
import io
import itertools
import math
import pathlib
import subprocess
import sys
import tempfile
import types
import warnings

import numpy as np
import torch
import torchvision
from PIL import Image
from torchvision.transforms import functional as F

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
from draws import Draws  # noqa: E402

# Large and small, both shapes, and some whose windows often do not fit.
SIZES = [(1, 1), (2, 5), (30, 300), (300, 30), (61, 47), (225, 224), (410, 330)]
SEEDS = range(3)
STREAM = 2  # position of the step in its pipeline: behind read-file and decode-image
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def torch_that_draws(draws):
    """A stand-in for the module torch in torchvision's get_params: its numbers are doubles, and come from `draws`."""
    def item(value):
        return types.SimpleNamespace(item=lambda: value)
    return types.SimpleNamespace(
        tensor=lambda values: values,
        log=lambda values: [math.log(v) for v in values],
        exp=lambda value: item(math.exp(value.item())),
        empty=lambda _: types.SimpleNamespace(uniform_=lambda low, high: item(draws.uniform(low, high))),
        randint=lambda low, high, size: item(low + draws.below(high - low)))


def window(draws, image, scale, ratio):
    """The window that torchvision's own code chooses with these draws: top, left, height, width."""
    module = torchvision.transforms.transforms
    real, module.torch = module.torch, torch_that_draws(draws)
    try:
        return torchvision.transforms.RandomResizedCrop.get_params(image, scale, ratio)
    finally:
        module.torch = real


def load(tools, folder, steps, seed, *options):
    """{number of the sample: what comes out of the steps behind decode-image}"""
    pipeline = folder / "p.yaml"
    pipeline.write_text("name: p\nsource: {type: files}\nsteps:\n  - {step: read-file}\n  - {step: decode-image}\n"
                        + "".join(f"  - {step}\n" for step in steps))
    done = subprocess.run([tools / "presto-load", "-q", "-p", pipeline, "-b", "1", "--format", "npy", "--seed", str(seed),
                           *options, folder / "pictures"], stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{steps}: exit {done.returncode}: {done.stderr.decode()}")
    names = sorted(path.name for path in (folder / "pictures").iterdir())
    batches = npy_stream.batches(io.BufferedReader(io.BytesIO(done.stdout)))
    return {names.index(batch["key"][0].decode()): batch["image"][0] for batch in batches}


def chw(picture):
    return torch.from_numpy(np.ascontiguousarray(picture.transpose(2, 0, 1)))


def hwc(tensor):
    return tensor.numpy().transpose(1, 2, 0)


def check_crops(tools, folder, pictures):
    units = "{step: normalize, mean: [0, 0, 0], std: [1, 1, 1]}"
    cases = [((224, 224), (0.08, 1.0), (3 / 4, 4 / 3), "size: 224"),
             ((64, 97), (0.08, 1.0), (3 / 4, 4 / 3), "height: 64, width: 97"),
             ((33, 20), (0.3, 0.4), (0.5, 3.0), "height: 33, width: 20, scale: [0.3, 0.4], ratio: [0.5, 3]")]
    worst = 0
    for (size, scale, ratio, options), seed in itertools.product(cases, SEEDS):
        bytes_out = load(tools, folder, [f"{{step: random-resized-crop, {options}}}"], seed)
        floats_out = load(tools, folder, [units, f"{{step: random-resized-crop, {options}}}"], seed)
        for number, picture in enumerate(pictures):
            photo = Image.fromarray(picture)
            for stream, got in ((STREAM, bytes_out[number]), (STREAM + 1, floats_out[number])):
                top, left, height, width = window(Draws(seed, number, stream), photo, scale, ratio)
                if stream == STREAM:
                    want = np.asarray(F.resized_crop(photo, top, left, height, width, list(size)))
                    assert got.dtype == np.uint8 and np.array_equal(got, want), (options, seed, picture.shape)
                else:
                    want = hwc(F.resized_crop(chw(picture).float() / 255, top, left, height, width, list(size), antialias=True))
                    assert got.shape == want.shape and got.dtype == np.float32
                    worst = max(worst, float(np.abs(got - want).max()))
    assert worst <= 1e-6, worst
    print(f"random-resized-crop: uint8 equal to the bit, float32 within {worst:.1e}")


def adjust_hue(image, factor):
    """As torchvision does it since 0.15: uint8 becomes float32 and comes back by convert_image_dtype."""
    return F.convert_image_dtype(F.adjust_hue(F.convert_image_dtype(image, torch.float32), factor), image.dtype)


ADJUST = [F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, adjust_hue]


def jittered(draws, image, amounts):
    order = list(range(4))
    for i in (3, 2, 1):
        j = draws.below(i + 1)
        order[i], order[j] = order[j], order[i]
    ranges = [(max(0.0, 1 - a), 1 + a) for a in amounts[:3]] + [(-amounts[3], amounts[3])]
    factors = [draws.uniform(*r) for r in ranges]
    for change in order:
        if amounts[change] > 0:
            image = ADJUST[change](image, factors[change])
    return image


def check_jitter(tools, folder, pictures):
    units = "{step: normalize, mean: [0, 0, 0], std: [1, 1, 1]}"
    names = ("brightness", "contrast", "saturation", "hue")
    cases = [(0.4, 0.4, 0.4, 0.1), (0.4, 0, 0, 0), (0, 0.8, 0, 0), (0, 0, 1.5, 0), (0, 0, 0, 0.5)]
    for amounts in cases:
        worst_byte, worst_float, values, unequal = 0, 0, 0, 0
        step = "{step: color-jitter, " + ", ".join(f"{n}: {a}" for n, a in zip(names, amounts)) + "}"
        for seed in SEEDS:
            bytes_out = load(tools, folder, [step], seed)
            floats_out = load(tools, folder, [units, step], seed)
            for number, picture in enumerate(pictures):
                want = hwc(jittered(Draws(seed, number, STREAM), chw(picture), amounts))
                apart = np.abs(bytes_out[number].astype(int) - want)
                worst_byte, values, unequal = max(worst_byte, apart.max()), values + apart.size, unequal + (apart > 0).sum()
                want = hwc(jittered(Draws(seed, number, STREAM + 1), chw(picture).float() / 255, amounts))
                worst_float = max(worst_float, float(np.abs(floats_out[number] - want).max()))
        assert worst_byte <= 1 and worst_float <= 1 / 255, (amounts, worst_byte, worst_float)
        assert unequal <= values / 1000, (amounts, unequal)
        print(f"color-jitter {amounts}: {unequal} of {values} bytes differ, by {worst_byte} at most; float32 within {worst_float:.1e}")


def check_normalize(tools, folder, pictures):
    got = load(tools, folder, [f"{{step: normalize, mean: {MEAN}, std: {STD}}}", "{step: to-layout}"], 0)
    worst = max(float(np.abs(got[i] - F.normalize(chw(p).float() / 255, MEAN, STD).numpy()).max()) for i, p in enumerate(pictures))
    assert worst <= 1e-6, worst
    got = load(tools, folder, ["{step: horizontal-flip, probability: 1}"], 0)
    assert all(np.array_equal(got[i], hwc(F.hflip(chw(p)))) for i, p in enumerate(pictures))
    print(f"normalize: within {worst:.1e}; horizontal-flip: equal")


def main():
    tools, examples = map(pathlib.Path, sys.argv[1:])
    sys.path.insert(0, str(examples))
    global npy_stream
    import npy_stream

    warnings.simplefilter("ignore")  # deprecations within torchvision
    torch.set_num_threads(1)
    random = np.random.default_rng(11)
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        (folder / "pictures").mkdir()
        pictures = []
        for i, (height, width) in enumerate(SIZES):
            # Waves under noise: neither flat nor all noise.
            y, x = np.mgrid[0:height, 0:width]
            waves = np.stack([np.sin(x / (7 + 5 * c)) + np.cos(y / (11 - 2 * c)) for c in range(3)], axis=2)
            picture = np.clip(127 + 60 * waves + random.normal(0, 12, waves.shape), 0, 255).astype(np.uint8)
            pictures.append(picture)
            Image.fromarray(picture).save(folder / "pictures" / f"{i}.png")
        check_crops(tools, folder, pictures)
        check_jitter(tools, folder, pictures)
        check_normalize(tools, folder, pictures)


if __name__ == "__main__":
    main()
