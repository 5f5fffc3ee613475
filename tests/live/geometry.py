#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Masks, boxes and keypoints move with the image, as torchvision's transforms v2 move them with the same draws.

Expected values are those of tests/golden/golden_geometry.py. Usage: geometry.py GOLDEN_DIR
"""
import io
import json
import pathlib
import sys
import tempfile

import numpy as np
import presto
from PIL import Image

GOLDEN = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(GOLDEN))
import golden_geometry as golden  # noqa: E402

KEEPS = {"also-missing": "keep"}


def pipeline(steps, feature="image"):
    return {"name": "g", "source": {"type": "tfrecord", "feature": feature, "yields": "image"}, "steps": steps}


def write(folder, samples):
    with presto.Writer(folder) as writer:
        for sample in samples:
            writer.add(sample)


def first(folder, steps, sample, feature="image"):
    """What the steps make of one sample."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        write(f"{made}/d", [sample])
        return presto.open(f"{made}/d", pipeline=pipeline(steps, feature))[0]


def all_of(path, steps, seed=golden.SEED):
    """What the steps make of each sample."""
    loader = presto.Loader(presto.open(str(path), pipeline=pipeline(steps)), batch=1, seed=seed)
    return [{name: batch[name][0] for name in batch} for batch in loader]


def refused(folder, steps, sample, *texts):
    try:
        first(folder, steps, sample)
    except presto.Error as error:
        for text in texts:
            assert text in str(error), (text, str(error))
        return
    raise AssertionError(f"{steps} must be refused")


def assert_near(got, want, what):
    assert got.shape == want.shape, (what, got.shape, want.shape)
    assert np.allclose(got, want, rtol=3e-7, atol=1e-5), (what, got, want)


def check_golden(folder):
    want = np.load(GOLDEN / "expected" / "geometry.npz")
    samples = [golden.sample(i) for i in range(golden.SAMPLES)]
    write(folder / "plain", [{**s, "kept": s["xyxy"]} for s in samples])
    compared = 0
    for chain, steps in golden.CHAINS.items():
        runs = {name: {"boxes": name, "box-format": name} for name in golden.FORMATS}
        runs["whole"] = {"boxes": "whole", "box-outside": "clip"}
        runs["kept"] = {"boxes": "kept", "box-outside": "drop", "box-features": ["label"]}
        for run, boxes in runs.items():
            moved = {"also": ["mask", "ids", "stack"], "keypoints": "points", **boxes}
            dataset = all_of(folder / "plain", [{"step": s, **o, **moved} for s, o in steps])
            plain = all_of(folder / "plain", [{"step": s, **o} for s, o in steps])
            for number, got in enumerate(dataset):
                assert np.array_equal(got["image"], plain[number]["image"]), "the image is the same with and without also"
                if run == "kept" and chain not in ("crop", "resized-crop", "enlarged-crop", "pad", "crop-or-pad"):
                    continue  # Presto drops boxes where a step cuts, torchvision at the end
                for name in (run, *(("label",) if run == "kept" else ()), "points", *golden.PICTURES):
                    expected, value = want[f"{chain}/{number}/{name}"], got[name]
                    what = (chain, number, name)
                    if name in golden.PICTURES:
                        assert np.array_equal(golden.digest(value), expected), what
                    elif value.dtype == np.float32 and name != "xyxy":
                        assert_near(value, expected, what)
                    else:
                        assert value.dtype == expected.dtype and np.array_equal(value, expected), (what, value, expected)
                    compared += 1
    assert compared > 1000, compared


def check_units(folder):
    """Normalized boxes, y first, in four features, in lists: all say the same as corners in pixels."""
    s = golden.sample(0)
    height, width = golden.SIZES[0]
    corners = np.clip(s["xyxy"], 0, [width, height, width, height]).astype(np.float32)
    scale = np.array([width, height, width, height], np.float32)
    steps = [("random-resized-crop", {"size": 24}), ("horizontal-flip", {"probability": 1})]

    def run(sample, options):
        return first(folder, [{"step": n, **o, **options} for n, o in steps], {"image": s["image"], **sample})

    wanted = run({"b": corners}, {"boxes": "b"})["b"] / 24
    assert_near(run({"b": corners / scale}, {"boxes": "b", "box-units": "normalized"})["b"], wanted, "normalized")
    assert_near(run({"b": (corners / scale)[:, [1, 0, 3, 2]]}, {"boxes": "b", "box-format": "yxyx"})["b"][:, [1, 0, 3, 2]], wanted, "yxyx")
    apart = run({f"o/bbox/{n}": (corners / scale)[:, k].copy() for k, n in enumerate(("xmin", "ymin", "xmax", "ymax"))}, {"boxes": "o/bbox/*"})
    assert_near(np.stack([apart[f"o/bbox/{n}"] for n in ("xmin", "ymin", "xmax", "ymax")], 1), wanted, "apart")
    flat = run({"b": corners.reshape(-1)}, {"boxes": "b"})["b"]
    assert_near(flat.reshape(-1, 4) / 24, wanted, "flat")
    doubles = run({"b": corners.astype(np.float64)}, {"boxes": "b"})["b"]
    assert doubles.dtype == np.float64
    assert_near(doubles / 24, wanted.astype(np.float64), "float64")
    points = run({"p": corners.reshape(-1, 2, 2)}, {"keypoints": "p"})["p"]
    away = run({"k/x": (corners[:, 0] / width).astype(np.float32), "k/y": (corners[:, 1] / height).astype(np.float32)}, {"keypoints": "k/*"})
    # A normalized point mirrors at 1, one in pixels at the last pixel.
    assert_near(24 * away["k/x"], points[:, 0, 0] + 1, "points apart, x")
    assert_near(24 * away["k/y"], points[:, 0, 1], "points apart, y")
    none = run({"b": np.zeros((0, 4), np.float32)}, {"boxes": "b", "box-outside": "drop", "box-features": ["none"]})["b"]
    assert none.shape == (0, 4), none.shape
    one = run({"b": corners[:1].reshape(-1)}, {"boxes": "b"})["b"]
    assert_near(one / 24, wanted[0], "one box")


def check_dropped_rows(folder):
    """All features of an object go with its box."""
    image = np.zeros((20, 20, 3), np.uint8)
    boxes = np.array([[-9, 2, 0.4, 8], [3, 3, 9, 9], [30, 30, 40, 40]], np.float32)
    objects = {"o/label": np.array([5, 6, 7]), "o/text": [b"a", b"bb", b""], "o/mask": np.arange(12, dtype=np.uint8).reshape(3, 4),
               "o/pair": np.arange(6, dtype=np.float32), "image_id": np.array(3)}
    drop = {"step": "pad", "top": 1, "boxes": "o/bbox", "box-outside": "drop", "box-features": ["o/*"]}
    got = first(folder, [drop], {"image": image, "o/bbox": boxes, **objects})
    assert got["o/bbox"].tolist() == [[3, 4, 9, 10]] and got["o/label"].tolist() == [6] and list(got["o/text"]) == [b"bb"]
    assert got["o/mask"].tolist() == [[4, 5, 6, 7]] and got["o/pair"].tolist() == [2, 3] and int(got["image_id"]) == 3
    refused(folder, [drop], {"image": image, "o/bbox": boxes, "o/label": np.array([1, 2])}, "o/label", "3 boxes")
    refused(folder, [{**drop, "box-features": ["o/label"], "boxes": "p"}], {"image": image, "o/label": np.array([1, 2])}, 'no feature "p"', "also-missing")
    kept = first(folder, [{**drop, **KEEPS, "boxes": "p"}], {"image": image, "o/label": np.array([1, 2])})
    assert kept["image"].shape == (21, 20, 3) and kept["o/label"].tolist() == [1, 2]
    lax = first(folder, [{"step": "pad", "top": 1, "boxes": "o/bbox", "box-outside": "keep"}],
                {"image": image, "o/bbox": boxes})
    assert_near(lax["o/bbox"], boxes + np.array([0, 1, 0, 1], np.float32), "keep")


def check_points(folder):
    """COCO's points: those that are not given stay, those that leave are hidden, left and right change places."""
    image = np.zeros((10, 20, 3), np.uint8)
    points = np.array([[[1, 2, 2], [18, 3, 1], [0, 0, 0]]], np.float32)
    flip = {"step": "horizontal-flip", "probability": 1, "keypoints": "k", "keypoint-format": "xyv", "keypoint-swap": [0, 1]}
    got = first(folder, [flip], {"image": image, "k": points})["k"]
    assert got.tolist() == [[[1, 3, 1], [18, 2, 2], [0, 0, 0]]], got
    crop = {"step": "random-crop", "height": 10, "width": 5, "keypoints": "k", "keypoint-format": "xyv", "keypoint-outside": "hide"}
    for seed in range(20):
        with tempfile.TemporaryDirectory(dir=folder) as made:
            write(f"{made}/d", [{"image": image, "k": points}])
            got = all_of(f"{made}/d", [crop], seed)[0]["k"][0]
        assert all((0 <= x < 5) if v else (x == y == 0) for x, y, v in got.tolist()), got
        assert not (got[0, 2] and got[1, 2])  # they are too far apart
    refused(folder, [{**flip, "keypoint-format": "xy"}], {"image": image, "k": points}, "points [..., 2]", "xyv")
    refused(folder, [{**flip, "keypoint-swap": [0, 3]}], {"image": image, "k": points}, "3 points", "number 3")


def check_refusals(folder):
    s = golden.sample(0)
    image, boxes = s["image"], s["xyxy"]
    height, width = golden.SIZES[0]
    flip = {"step": "horizontal-flip", "probability": 1}
    refused(folder, [{**flip, "also": ["mask"]}], {"image": image, "mask": s["mask"][1:]}, '"mask"', "uint8[60,47,1]", "61 x 47")
    refused(folder, [{**flip, "also": ["mask"]}], {"image": image, "mask": b"\x89PNG"}, "encoded bytes", "decode-image")
    refused(folder, [{**flip, "also": ["mask"]}], {"image": image}, 'no feature "mask"')
    refused(folder, [{**flip, "boxes": "b"}], {"image": image, "b": (np.abs(boxes) / 200).astype(np.float32)}, "from 0 to 1", "box-units")
    refused(folder, [{**flip, "boxes": "b", "box-format": "yxyx"}], {"image": image, "b": boxes}, "normalized", "box-units: pixels")
    refused(folder, [{**flip, "boxes": "b"}], {"image": image, "b": boxes[:, :3].copy()}, "boxes [n, 4]")
    refused(folder, [{**flip, "boxes": "b"}], {"image": image, "b": [b"x"]}, "needs numbers")
    refused(folder, [{"step": "pad", "top": 1, "also": ["mask"], "also-fill": [300]}], {"image": image, "mask": s["mask"]}, "300", "uint8")
    # A small box in pixels may come out of an earlier step.
    crops = [{"step": "random-crop", "height": 2, "width": 2, "boxes": "b"}, {**flip, "boxes": "b"}]
    first(folder, crops, {"image": image, "b": np.array([[0, 0, width, height]], np.float32) + np.float32(0.25)})


def check_fill_and_methods(folder):
    s = golden.sample(0)
    sample = {"image": s["image"], "mask": s["mask"], "twin": s["image"]}
    got = first(folder, [{"step": "pad", "left": 2, "also": ["mask", "twin"], "also-fill": [255, 7], "fill": 9}], sample)
    assert (got["mask"][:, :2] == 255).all() and (got["twin"][:, :2] == 7).all() and (got["image"][:, :2] == 9).all()
    assert (got["mask"][:, 2:] == s["mask"]).all()
    for step in ({"step": "resize-image", "height": 30, "width": 90}, {"step": "random-resized-crop", "size": 33}):
        got = first(folder, [{**step, "also": ["mask", "twin"], "also-method": ["nearest", "bilinear"]}], sample)
        assert np.array_equal(got["twin"], got["image"]), step
        assert set(np.unique(got["mask"])) <= set(np.unique(s["mask"]))
    exact = first(folder, [{"step": "resize-image", "height": 31, "width": 23, "also": ["mask"], "also-method": ["nearest-exact"]}], sample)["mask"]
    rows = np.floor((np.arange(31, dtype=np.float32) + np.float32(0.5)) * np.float32(61 / 31)).astype(int)
    columns = np.floor((np.arange(23, dtype=np.float32) + np.float32(0.5)) * np.float32(47 / 23)).astype(int)
    assert np.array_equal(exact, s["mask"][rows][:, columns])


def encoded(array, kind="PNG", **options):
    out = io.BytesIO()
    image = array if isinstance(array, Image.Image) else Image.fromarray(array)
    image.save(out, kind, **options)
    return out.getvalue()


def check_decoding(folder):
    """Masks that are files: grey, palettes, 16 bits, colours; with each EXIF orientation, boxes and all."""
    rng = np.random.default_rng(1)
    image = rng.integers(0, 256, (24, 36, 3), np.uint8)
    ids = rng.integers(0, 4, (24, 36), np.uint8)
    decode = {"step": "decode-image", "also": ["mask"]}

    def run(mask, **options):
        return first(folder, [{**decode, **options}], {"image": encoded(image), "mask": mask})["mask"]

    palette = Image.fromarray(ids, "P")
    palette.putpalette([200, 10, 10, 0, 128, 0, 128, 0, 0, 255, 255, 255])
    assert np.array_equal(run(encoded(ids)), ids[..., None])
    for bits in (2, 4, 8):
        assert np.array_equal(run(encoded(palette, bits=bits)), ids[..., None]), bits
    assert np.array_equal(run(encoded(palette), **{"also-bits": "16"}), ids[..., None].astype(np.uint16))
    wide = rng.integers(0, 65536, (24, 36), np.uint16)
    got = run(encoded(wide), **{"also-bits": "16"})
    assert got.dtype == np.uint16 and np.array_equal(got, wide[..., None])
    assert np.array_equal(run(encoded(image), **{"also-channels": 3}), image)
    files = {"image": encoded(image)}
    refused(folder, [decode], {**files, "mask": encoded(image)}, "colours", "also-channels: 3")
    refused(folder, [decode], {**files, "mask": encoded(wide)}, "16 bits", "also-bits: 16")
    refused(folder, [decode], {**files, "mask": encoded(ids[1:])}, "23 x 36", "24 x 36")
    refused(folder, [decode], {**files, "mask": encoded(ids)[:-30]}, '"mask"')
    refused(folder, [decode], {**files, "mask": ids}, "no encoded picture")

    turns = {2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM, 5: Image.Transpose.TRANSPOSE,
             6: Image.Transpose.ROTATE_270, 7: Image.Transpose.TRANSVERSE, 8: Image.Transpose.ROTATE_90}
    thing = np.zeros((24, 36), np.uint8)
    thing[3:9, 5:20] = 200
    for orientation, turn in turns.items():
        exif = Image.Exif()
        exif[0x0112] = orientation
        sample = {"image": encoded(np.repeat(thing[..., None], 3, 2), exif=exif), "mask": encoded(thing), "box": np.array([[5, 3, 20, 9]], np.float32),
                  "point": np.array([[5, 3]], np.float32)}
        got = first(folder, [{**decode, "orient": "exif", "boxes": "box", "keypoints": "point"}], sample)
        upright = np.asarray(Image.fromarray(thing).transpose(turn))
        ys, xs = np.nonzero(upright)
        assert np.array_equal(got["mask"][..., 0], upright) and np.array_equal(got["image"][..., 0], upright), orientation
        assert got["box"].tolist() == [[xs.min(), ys.min(), xs.max() + 1, ys.max() + 1]], orientation
        dot = np.zeros_like(thing)
        dot[3, 5] = 1
        y, x = np.argwhere(np.asarray(Image.fromarray(dot).transpose(turn)))[0]
        assert got["point"].tolist() == [[x, y]], orientation
        stays = first(folder, [{**decode, "orient": "exif", "also-orient": "stored"}], {**sample, "mask": encoded(upright)})
        assert np.array_equal(stays["mask"][..., 0], upright), orientation


def check_spec(folder):
    """Features are declared as they come out, and batches are dense where they are."""
    rng = np.random.default_rng(2)
    write(folder / "sizes", [{"image": rng.integers(0, 9, (40 + i, 50, 3), np.uint8), "mask": rng.integers(0, 9, (40 + i, 50, 1), np.uint8),
                              "b": np.zeros((i % 3, 4), np.float32)} for i in range(8)])
    crop = {"step": "random-crop", "height": 32, "width": 24, "also": ["mask"], "boxes": "b"}
    dataset = presto.open(str(folder / "sizes"), pipeline=pipeline([crop]))
    assert dataset.features["mask"].shape == (32, 24, 1), dataset.features
    batch = next(iter(presto.Loader(dataset, batch=8, features=["image", "mask"])))
    assert batch["mask"].shape == (8, 32, 24, 1) and batch["image"].shape == (8, 32, 24, 3)
    # A mask that is moved, and not asked for, is read all the same.
    assert next(iter(presto.Loader(dataset, batch=8, features=["image"])))["image"].shape == (8, 32, 24, 3)


def check_notes(folder):
    """What is left behind is said, once, however the data are opened; what is named, or no part of the image, is not."""
    image = np.zeros((12, 10, 3), np.uint8)
    flip, crop = {"step": "horizontal-flip"}, {"step": "random-crop", "height": 4, "width": 4}
    resize = {"step": "resize-image", "height": 6, "width": 6}
    number = 0

    def notes(sample, steps, feature="image"):
        nonlocal number
        number += 1
        write(folder / f"n{number}", [sample] * 3)
        return presto.open(str(folder / f"n{number}"), pipeline=pipeline(steps, feature)).notes

    boxes = np.zeros((2, 4), np.float32)
    said = notes({"image": image, "boxes": boxes, "seg_mask": image[..., :1], "label": np.array(1), "mask_count": np.array(3)}, [crop, flip])
    assert len(said) == 1 and "random-crop" in said[0] and "boxes" in said[0] and "seg_mask" in said[0], said
    assert "mask_count" not in said[0] and "also" in said[0], said
    assert notes({"image": image, "b": boxes}, [{**crop, "boxes": "b"}, {**flip, "boxes": "b"}]) == []
    assert len(notes({"image": image, "bbox": boxes}, [{**crop, "boxes": "bbox"}, flip])) == 1, "one of two steps moves them"
    assert notes({"image": image, "bbox": boxes}, [resize, {**flip, "boxes": "bbox", "box-units": "normalized"}]) == []
    assert len(notes({"image": image, "bbox": boxes}, [resize, {**flip, "boxes": "bbox"}])) == 1
    assert len(notes({"image": image, "target": image[..., 0].copy()}, [flip])) == 1, "as high and wide as the image"
    assert notes({"image": image, "mask": image[..., 0].copy()}, [{"step": "center-pixels"}]) == []
    apart = {f"o/bbox/{n}": boxes[0] for n in ("xmin", "ymin", "xmax", "ymax")}
    said = notes({"image": image, **apart}, [flip])
    assert len(said) == 1 and "not o/bbox/*:" in said[0], said
    said = notes({"image": np.zeros((3, 40, 50), np.uint8)}, [flip])
    assert len(said) == 1 and "[channels, height, width]" in said[0] and "to-layout" in said[0], said
    assert notes({"image": np.zeros((3, 40, 50), np.uint8)}, [{"step": "to-layout", "layout": "hwc"}, flip]) == []

    # Records of other programs, and a mask that is a file.
    write(folder / "foreign", [{"image": encoded(image), "mask": encoded(image)}] * 3)
    (folder / "foreign" / "dataset.json").unlink()
    chain = [{"step": "decode-image", "yields": "decoded"}, {**resize, "yields": "resized"}, flip]
    said = presto.open(str(folder / "foreign"), pipeline=pipeline(chain)).notes
    assert len(said) == 1 and "resize-image" in said[0] and "mask" in said[0], said
    (folder / "p.yaml").write_text(json.dumps(pipeline(chain)))
    summary = presto.write(str(folder / "foreign"), str(folder / "stored"), pipeline=str(folder / "p.yaml"), up_to="resized")
    assert sum("mask" in note for note in summary.notes) == 1, summary.notes


with tempfile.TemporaryDirectory() as made:
    for check in (check_golden, check_units, check_dropped_rows, check_points, check_refusals, check_fill_and_methods, check_decoding, check_spec, check_notes):
        check(pathlib.Path(made))
