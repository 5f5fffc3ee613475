#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The image steps for training give what TensorFlow and NumPy give.

Runs in the tests' Python environment. Usage: image_steps.py TOOLS_DIR EXAMPLES_DIR
"""
import io
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import tensorflow as tf
from PIL import Image

SIZES = [(1, 1), (2, 5), (31, 17), (64, 48), (225, 224)]
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def load(tools, folder, steps, *options):
    """{name of the picture: what comes out of the steps behind decode-image}"""
    pipeline = folder / "p.yaml"
    pipeline.write_text("name: p\nsource: {type: files}\nsteps:\n  - {step: read-file}\n  - {step: decode-image}\n"
                        + "".join(f"  - {step}\n" for step in steps))
    done = subprocess.run([tools / "presto-load", "-q", "-p", pipeline, "-b", "1", "--format", "npy", *options,
                           folder / "pictures"], stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{steps}: exit {done.returncode}: {done.stderr.decode()}")
    return {batch["key"][0].decode(): batch["image"][0] for batch in npy_stream.batches(io.BufferedReader(io.BytesIO(done.stdout)))}


def expect(name, got, pictures, function):
    assert set(got) == set(pictures), name
    for key, picture in pictures.items():
        want = np.asarray(function(picture))
        assert got[key].dtype.itemsize == want.dtype.itemsize and got[key].shape == want.shape, (name, key, got[key].dtype)
        assert got[key].tobytes() == want.tobytes(), (name, key)
    print(f"{name}: equal to the bit")


def normalized(picture):
    values = picture.astype(np.float32)
    if picture.dtype == np.uint8:
        values = values / np.float32(255)
    return (values - np.array(MEAN, np.float32)) / np.array(STD, np.float32)


def check_casts(tools, folder, pictures):
    for dtype in ("int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"):
        expect(f"cast to {dtype}", load(tools, folder, [f"{{step: cast, dtype: {dtype}}}"]), pictures,
               lambda p: tf.cast(p, dtype).numpy())
        expect(f"cast of float32 to {dtype}",
               load(tools, folder, ["{step: center-pixels}", f"{{step: cast, dtype: {dtype}}}"]), pictures,
               lambda p: tf.cast(p.astype(np.float32) / np.float32(127.5) - np.float32(1), dtype).numpy())
    for half in ("float16", "bfloat16"):
        expect(f"cast of {half} to float32",
               load(tools, folder, ["{step: center-pixels}", f"{{step: cast, dtype: {half}}}", "{step: cast, dtype: float32}"]),
               pictures, lambda p: tf.cast(tf.cast(p.astype(np.float32) / np.float32(127.5) - np.float32(1), half),
                                           tf.float32).numpy())


def check_flips(tools, folder, pictures):
    expect("horizontal-flip, always", load(tools, folder, ["{step: horizontal-flip, probability: 1}"]), pictures,
           lambda p: tf.image.flip_left_right(p).numpy())
    expect("horizontal-flip, never", load(tools, folder, ["{step: horizontal-flip, probability: 0}"]), pictures, lambda p: p)
    wide = max(pictures, key=lambda key: pictures[key].shape[1])
    flipped = 0
    for seed in range(40):
        got = load(tools, folder, ["{step: horizontal-flip}"], "--seed", str(seed), "--features", "image,key")[wide]
        flipped += np.array_equal(got, pictures[wide][:, ::-1])
        assert np.array_equal(got, pictures[wide]) or np.array_equal(got, pictures[wide][:, ::-1])
    assert 8 <= flipped <= 32, flipped
    print(f"horizontal-flip: {flipped} of 40 seeds")


def main():
    tools, examples = map(pathlib.Path, sys.argv[1:])
    sys.path.insert(0, str(examples))
    global npy_stream
    import npy_stream

    random = np.random.default_rng(7)
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        (folder / "pictures").mkdir()
        pictures = {}
        for height, width in SIZES:
            picture = random.integers(0, 256, (height, width, 3), dtype=np.uint8)
            pictures[f"{height}x{width}.png"] = picture
            Image.fromarray(picture).save(folder / "pictures" / f"{height}x{width}.png")
        normalize = f"{{step: normalize, mean: {MEAN}, std: {STD}}}"
        expect("normalize", load(tools, folder, [normalize]), pictures, normalized)
        expect("normalize of float32", load(tools, folder, ["{step: cast, dtype: float32}", normalize]), pictures,
               lambda p: normalized(p.astype(np.float32)))
        expect("to-layout", load(tools, folder, ["{step: to-layout}"]), pictures,
               lambda p: np.ascontiguousarray(p.transpose(2, 0, 1)))
        expect("to-layout and back", load(tools, folder, [normalize, "{step: to-layout}", "{step: to-layout, layout: hwc}"]),
               pictures, normalized)
        for height, width in ((32, 32), (3, 300), (64, 48), (1, 1)):
            expect(f"crop-or-pad to {height} x {width}",
                   load(tools, folder, [f"{{step: crop-or-pad, height: {height}, width: {width}}}"]), pictures,
                   lambda p: tf.image.resize_with_crop_or_pad(p, height, width).numpy())
        expect("pad", load(tools, folder, ["{step: pad, top: 1, bottom: 2, left: 3, right: 4, fill: 7}"]), pictures,
               lambda p: tf.pad(p, [[1, 2], [3, 4], [0, 0]], constant_values=7).numpy())
        check_casts(tools, folder, pictures)
        check_flips(tools, folder, pictures)


if __name__ == "__main__":
    main()
