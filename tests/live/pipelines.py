#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow reads every representation of every built-in pipeline that is stored, with the dtypes and shapes that dataset.json
tells, and the bytes that presto-load delivers.

Runs in the tests' Python environment. Usage: pipelines.py TOOLS_DIR PHOTOS_PROGRAM
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import tensorflow as tf

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "corpora"))
from pipelines import Pipeline, built_in  # noqa: E402


def run(*command):
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nexit {done.returncode}: {done.stderr.decode()}")
    return done


def parsing_spec(feature):
    """How tf.io.parse_single_example reads it."""
    if feature["encoding"] == "tensor":
        return tf.io.FixedLenFeature([], tf.string)
    kind = {"int64": tf.int64, "float": tf.float32, "bytes": tf.string}[feature["encoding"]]
    return tf.io.VarLenFeature(kind) if feature["shape"] is None or -1 in feature["shape"] else tf.io.FixedLenFeature(feature["shape"], kind)


def check_feature(where, feature, value):
    if feature["encoding"] == "tensor":
        value = tf.io.parse_tensor(value, feature["dtype"])
    if isinstance(value, tf.sparse.SparseTensor):
        value = tf.sparse.to_dense(value)
    assert value.dtype.name == feature["dtype"], (where, value.dtype, feature)
    shape = feature["shape"]
    if shape is not None and feature["encoding"] == "tensor":
        assert len(value.shape) == len(shape), (where, value.shape, feature)
        assert all(want in (-1, got) for want, got in zip(shape, value.shape)), (where, value.shape, feature)
    return value.numpy()


def check_dataset(folder, split, delivered):
    """How many records TensorFlow reads; `delivered` holds the Examples as presto-load sends them."""
    info = json.loads((folder / "dataset.json").read_text())
    assert info["stored"] == split, info["stored"]
    spec = {feature["name"]: parsing_spec(feature) for feature in info["features"]}
    main, count = info["main_feature"], 0
    stream = iter(delivered)
    for record in tf.data.TFRecordDataset([str(folder / shard["file"]) for shard in info["shards"]]):
        values = tf.io.parse_single_example(record, spec)
        sent = tf.io.parse_single_example(next(stream), spec)
        for feature in info["features"]:
            where = f"{split}, record {count}, {feature['name']}"
            stored = check_feature(where, feature, values[feature["name"]])
            assert np.array_equal(stored, check_feature(where, feature, sent[feature["name"]])), where
            if feature["name"] == main:
                assert np.size(stored) > 0, where
        count += 1
    assert next(stream, None) is None and count == info["totals"]["records"] > 3, count
    return count


def main():
    tools, photos = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    checked = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in built_in(tools / "presto-load"):
            folder = pathlib.Path(scratch) / name
            folder.mkdir()
            pipeline = Pipeline(name, folder, photos)
            for split in pipeline.representations:
                out, stream = folder / f"dataset-{split}", folder / "stream.tfrecord"
                run(tools / "presto-write", *pipeline.arguments("--up-to", split, "--tensorflow-readable", "-s", 2, "-o", out))
                stream.write_bytes(run(tools / "presto-load", *pipeline.arguments("--to", split)).stdout)
                count = check_dataset(out, split, tf.data.TFRecordDataset(str(stream)))
                print(f"{name}, {split}: {count} records", flush=True)
                checked += 1
    assert checked >= 10, checked


if __name__ == "__main__":
    main()
