#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write TFRecords with TensorFlow, and what they hold, for the test that Presto reads them.

Usage: write_with_tensorflow.py OUT_DIR [SEED]

OUT_DIR gets one file per kind of compression and expected.json, which has the form of
tfrecord/manifest.json: for each file its records in order, each with offset, size, sha256 and the
Example's features; `tensor` describes the feature of that name (dtype, shape, bytes).
"""

import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    import gzip
    import json
    import zlib

    import numpy as np
    import tensorflow as tf

    import golden_payloads as golden
    from golden_tfrecords import Folder

    out = pathlib.Path(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) == 3 else 1
    out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    payloads = []
    for number in range(40):
        shape = rng.integers(1, 20, 3) if number % 4 else rng.integers(0, 50, 1)
        dtype = ("uint8", "float32", "int64", "int16")[number % 4]
        values = (rng.standard_normal(tuple(shape)) * 100).astype(dtype)
        payloads.append(golden.example(
            tensor=[tf.io.serialize_tensor(values).numpy()],
            label=[int(rng.integers(-5, 5))],
            key=[f"class-{number % 3}/{number:03}.jpg".encode()],
            scores=[float(v) for v in rng.standard_normal(5).astype("f4")],
        ))

    folder = Folder(out)
    for name, compression in (("plain.tfrecord", "none"), ("whole.tfrecord.gz", "gzip"),
                              ("whole.tfrecord.deflate", "zlib")):
        tf_name = "" if compression == "none" else compression.upper()
        folder.add(name, "Examples", "TensorFlow", folder.write(name, payloads, tf_name), payloads,
                   golden.tensor_example_json, compression)
    for codec, compress in (("zlib", zlib.compress), ("gzip", gzip.compress)):
        packed = [compress(p) for p in payloads]
        decoded, offset = {}, 0
        for p, original in zip(packed, payloads):
            decoded[offset] = original
            offset += golden.HEADER + len(p) + golden.FOOTER
        name = f"records-{codec}.tfrecord"
        folder.add(name, f"Examples, each record {codec}", "TensorFlow", folder.write(name, packed),
                   packed, golden.tensor_example_json, codec=(codec, decoded))
    (out / "expected.json").write_text(
        json.dumps({"schema": 1, "seed": seed, "files": folder.entries}, indent=1) + "\n")
    print(f"{len(folder.entries)} files, {len(payloads)} records each, seed {seed}")


if __name__ == "__main__":
    main()
