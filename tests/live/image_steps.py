#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The image steps for training give what TensorFlow and NumPy give.

Runs in the tests' Python environment. Usage: image_steps.py TOOLS_DIR EXAMPLES_DIR MAKE_PHOTOS
"""
import io
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import tensorflow as tf
from PIL import Image, ImageOps

SIZES = [(1, 1), (2, 5), (31, 17), (64, 48), (225, 224)]
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def load(tools, folder, steps, *options, decode="{step: decode-image}", pictures="pictures"):
    """{name of the picture: what comes out of the steps behind decode-image}"""
    pipeline = folder / "p.yaml"
    pipeline.write_text(f"name: p\nsource: {{type: files}}\nsteps:\n  - {{step: read-file}}\n  - {decode}\n"
                        + "".join(f"  - {step}\n" for step in steps))
    done = subprocess.run([tools / "presto-load", "-q", "-p", pipeline, "-b", "1", "--format", "npy", *options,
                           folder / pictures], stdin=subprocess.DEVNULL, capture_output=True)
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


def check_orientations(tools, folder, random):
    """Each orientation, of JPEG and PNG, equals Pillow's exif_transpose."""
    (folder / "turned").mkdir()
    upright = {}
    for orientation in range(1, 9):
        for ending in ("jpg", "png"):
            picture = Image.fromarray(random.integers(0, 256, (31, 50, 3), dtype=np.uint8))
            exif = Image.Exif()
            exif[0x0112] = orientation
            path = folder / "turned" / f"{orientation}.{ending}"
            picture.save(path, exif=exif.tobytes())
            stored = Image.fromarray(tf.io.decode_image(path.read_bytes(), channels=3).numpy())
            stored.getexif()[0x0112] = orientation
            upright[path.name] = np.asarray(ImageOps.exif_transpose(stored))
    expect("orient: exif", load(tools, folder, [], decode="{step: decode-image, orient: exif}", pictures="turned"), upright,
           lambda p: p)


def check_reduced(tools, folder, random):
    """JPEGs in reduced size equal tf.io.decode_jpeg(ratio=...)."""
    (folder / "large").mkdir()
    kinds = {"444": {"subsampling": 0}, "422": {"subsampling": 1}, "420": {"subsampling": 2},
             "progressive": {"progressive": True}, "restart": {"restart_marker_blocks": 5}}
    for kind, options in kinds.items():
        for height, width in ((317, 203), (160, 256)):
            y, x = np.mgrid[0:height, 0:width]
            waves = np.stack([np.sin(x / (7 + 5 * c)) + np.cos(y / (11 - 2 * c)) for c in range(3)], axis=2)
            picture = np.clip(127 + 60 * waves + random.normal(0, 12, waves.shape), 0, 255).astype(np.uint8)
            Image.fromarray(picture).save(folder / "large" / f"{kind}-{height}.jpg", quality=85, **options)
    for ratio in (2, 4, 8):
        # 203 or 160 pixels are reduced to no fewer than this, and half of that would be.
        decode = f"{{step: decode-image, scale: auto, least-side: {160 // ratio}}}"
        pictures = {path.name: tf.io.decode_jpeg(path.read_bytes(), channels=3, ratio=ratio).numpy()
                    for path in (folder / "large").iterdir()}
        expect(f"reduced by {ratio}", load(tools, folder, [], decode=decode, pictures="large"), pictures, lambda p: p)


def psnr(a, b):
    return 10 * np.log10(255.0**2 / np.mean((a.astype(np.float64) - b) ** 2))


def check_quality(tools, folder, make_photos):
    """What reduced decoding changes, after resizing: docs/pipelines.md says the decibels."""
    subprocess.run([make_photos, "-q", "-n", "4", "-c", "1", "--width", "2592", "--height", "1728", "--quality", "25",
                    "-o", folder / "photos"], check=True)
    whole = load(tools, folder, [], pictures="photos")
    for name, step, least in (("resize-image", "{step: resize-image, min-side: 256}", 20),
                              ("random-resized-crop", "{step: random-resized-crop, size: 224, scale: [1, 1], ratio: [1.5, 1.5]}", 35)):
        full, reduced = (load(tools, folder, [step], decode=f"{{step: decode-image, scale: {scale}}}", pictures="photos")
                         for scale in ("full", "auto"))
        found = []
        for key, picture in whole.items():
            height, width = full[key].shape[:2]
            ideal = np.asarray(Image.fromarray(picture).resize((width, height), Image.Resampling.LANCZOS))
            found.append((psnr(reduced[key], full[key]), psnr(full[key], ideal), psnr(reduced[key], ideal)))
            assert found[-1][0] >= least and (reduced[key] != full[key]).any(), (name, found)
        apart, full_ideal, reduced_ideal = np.mean(found, axis=0)
        print(f"scale: auto, then {name}: {apart:.1f} dB from full decoding; "
              f"from a Lanczos filter: full {full_ideal:.1f} dB, reduced {reduced_ideal:.1f} dB")


def main():
    tools, examples, make_photos = map(pathlib.Path, sys.argv[1:])
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
        check_orientations(tools, folder, random)
        check_reduced(tools, folder, random)
        check_quality(tools, folder, make_photos)


if __name__ == "__main__":
    main()
