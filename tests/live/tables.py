#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables of many features that TensorFlow wrote: presto-load delivers what tf.io.parse_example finds in them.

Records of a plain table are alike. In the other files lists differ in length, features are missing or empty, and names come
in another order. Runs in the tests' Python environment. Usage: tables.py TOOLS_DIR EXAMPLES_DIR
"""
import pathlib
import sys
import tempfile

import numpy as np
import tensorflow as tf

FLOATS, INT64S, RECORDS = 20, 9, 700


def floats(*values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def int64s(*values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def strings(*values):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def plain_row(rng):
    row = {f"float_{i:02}": floats(value) for i, value in enumerate(rng.standard_normal(FLOATS, dtype=np.float32))}
    for i in range(INT64S):
        row[f"int64_{i:02}"] = int64s(int(rng.integers(-(1 << 63), 1 << 63) >> rng.integers(0, 64)))
    return row | {"text": strings(rng.bytes(int(rng.integers(0, 200))))}


def ragged_row(rng):
    count = int(rng.integers(0, 5))
    return plain_row(rng) | {
        "boxes": floats(*rng.standard_normal(4 * count)),
        "classes": int64s(*map(int, rng.integers(0, 1 << 20, count))),
        "words": strings(*(rng.bytes(int(rng.integers(0, 30))) for _ in range(int(rng.integers(0, 4)))))}


def lacking_row(rng):
    row = plain_row(rng)
    if rng.random() < 0.2:
        del row["float_03"]
    if rng.random() < 0.1:
        row["int64_04"] = tf.train.Feature()
    names = list(row)
    if rng.random() < 0.3:
        rng.shuffle(names)
    return {name: row[name] for name in names}


def write(path, make_row, rng):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for _ in range(RECORDS):
            example = tf.train.Example()
            for name, feature in make_row(rng).items():
                example.features.feature[name].CopyFrom(feature)
            writer.write(example.SerializeToString())


def types(names):
    kinds = {"float": tf.float32, "int64": tf.int64, "text": tf.string, "boxes": tf.float32, "classes": tf.int64,
             "words": tf.string}
    return {name: kinds[name.split("_")[0]] for name in names}


def read_with_tensorflow(path, names):
    """The values of each row, as lists."""
    spec = {name: tf.io.RaggedFeature(kind) for name, kind in types(names).items()}
    whole = next(iter(tf.data.TFRecordDataset(str(path)).batch(RECORDS)))
    return {name: values.to_list() for name, values in tf.io.parse_example(whole, spec).items()}


def rows_of(values):
    """A feature of a batch, dense or not, as lists."""
    rows = []
    for i in range(len(values)):
        row = values[i]
        if isinstance(row, bytes):
            row = [row]
        rows.append(row if isinstance(row, list) else np.atleast_1d(row).tolist())
    return rows


def check(tools, load, path, arguments, theirs):
    ours = {name: [] for name in theirs}
    for batch in load(*arguments, path, program=tools / "presto-load"):
        count = len(next(iter(batch.values())))
        for name in theirs:
            ours[name] += rows_of(batch[name]) if name in batch else [[]] * count
        assert set(batch) <= set(theirs), set(batch) - set(theirs)
    for name, rows in theirs.items():
        assert ours[name] == rows, (path, arguments, name)


def main():
    tools, examples = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    sys.path.insert(0, str(examples))
    import npy_stream

    rng = np.random.default_rng(20)
    plain = set(plain_row(rng))
    for kind, make_row, names in (("plain", plain_row, plain), ("ragged", ragged_row, plain | {"boxes", "classes", "words"}),
                                  ("lacking", lacking_row, plain)):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / f"{kind}.tfrecord"
            write(path, make_row, rng)
            theirs = read_with_tensorflow(path, names)
            for arguments in (("-b", 64), ("-b", 1), ("-b", 7, "-j", 2), ("-b", 300, "-j", 0), ("-b", 5000, "-j", 2)):
                check(tools, npy_stream.load, path, ("--quiet", *arguments), theirs)
            some = sorted(names)[::4]
            check(tools, npy_stream.load, path, ("--quiet", "-b", 50, "--features", ",".join(some)),
                  {name: theirs[name] for name in some})
        print(f"{kind}: {RECORDS} rows of {len(names)} features are equal", flush=True)


if __name__ == "__main__":
    main()
