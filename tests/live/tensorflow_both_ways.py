#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow reads what presto-write wrote, and presto-load what TensorFlow wrote.

Runs in the tests' Python environment. Usage: tensorflow_both_ways.py TOOLS_DIR PHOTOS_PROGRAM GOLDEN_DIR
"""
import hashlib
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

SPLITS = ("concatenated", "decoded", "resized", "pixel-centered")
PHOTOS = 12


def run(*command):
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nexit {done.returncode}: {done.stderr.decode()}"
                 f"{done.stdout[-2000:].decode(errors='replace')}")
    return done.stdout


def payloads(stream):
    at = 0
    while at < len(stream):
        (length,) = struct.unpack_from("<Q", stream, at)
        yield stream[at + 12:at + 12 + length]
        at += 16 + length


def check_ours(tools, photos, golden, folder):
    """Every split in every codec that --tensorflow-readable allows, and whole-file compression."""
    sys.path.insert(0, str(golden))
    import check_with_tensorflow as checker  # starting TensorFlow once is enough

    source = folder / "photos"
    run(photos, "-n", PHOTOS, "-c", 3, "--width", 300, "--height", 290, "-o", source)
    variants = [(split, ["--codec", codec]) for split in SPLITS for codec in ("none", "zlib", "gzip")]
    variants += [("resized", ["--file-compression", kind]) for kind in ("gzip", "zlib")]
    for number, (split, options) in enumerate(variants):
        out = folder / f"ours-{number}"
        run(tools / "presto-write", "--quiet", "-p", "cv", "-u", split, "--tensorflow-readable", *options, "-s", 3,
            "-o", out, source)
        count, worst = checker.check(out, [str(source)], None)
        print(f"{split} {' '.join(options)}: {count} records equal (max difference {worst:g})", flush=True)
        assert count == PHOTOS, count


def decode_with_tensorflow(dataset, kind):
    """How many records of an undecoded dataset tf.io.decode_compressed turns into Examples with an image."""
    import tensorflow as tf

    count = 0
    for record in tf.data.TFRecordDataset(sorted(map(str, dataset.glob("*.tfrecord")))):
        example = tf.io.decode_compressed(record, kind)
        features = tf.io.parse_single_example(example, {"image": tf.io.FixedLenFeature([], tf.string)})
        if tf.io.parse_tensor(features["image"], tf.uint8).shape.rank == 3:
            count += 1
    return count


def check_other_codecs(tools, folder):
    """What --tensorflow-readable refuses, TensorFlow does not read, but for zstd, which some versions do."""
    source = folder / "photos"
    for number, (codec, some_read_it) in enumerate([("zstd:1", True), ("zstd:1+delta", False), ("lz4", False),
                                                    ("snappy", False), ("blosc-lz4", False), ("blosc-zstd", False)]):
        out = folder / f"other-{number}"
        command = [tools / "presto-write", "--quiet", "-p", "cv", "-u", "resized", "-c", codec, "-o", out, source]
        refused = subprocess.run([*command, "--tensorflow-readable"], capture_output=True, text=True)
        assert refused.returncode == 2 and "none, zlib, gzip" in refused.stderr, refused
        run(*command)
        read = {}
        for kind in ("", "ZLIB", "GZIP", "ZSTD"):
            try:
                read[kind] = decode_with_tensorflow(out, kind)
            except Exception as error:  # TensorFlow's errors have no other common ancestor; undecoded bytes are no names
                read[kind] = type(error).__name__
        readers = [kind for kind, count in read.items() if count == PHOTOS]
        assert readers == [] or (some_read_it and readers == ["ZSTD"]), (codec, read)
        print(f"{codec}: TensorFlow reads it as {readers or 'nothing'}", flush=True)


def check_theirs(tools, golden, folder):
    out = folder / "theirs"
    run(sys.executable, golden / "write_with_tensorflow.py", out)
    expected = json.loads((out / "expected.json").read_text())
    for entry in expected["files"]:
        wanted = [record["sha256"] for record in entry["records"]]
        stream = run(tools / "presto-load", "--quiet", "--raw-records", out / entry["file"])
        got = [hashlib.sha256(p).hexdigest() for p in payloads(stream)]
        assert got == wanted, f"{entry['file']}: {len(got)} records, {len(wanted)} wanted"
        run(tools / "presto-inspect", "verify", out / entry["file"])
        if entry["record_codec"] == "none":
            # Through the parser and back: the same features, whatever the order in the map.
            lines = run(tools / "presto-inspect", "cat", "--json", out / entry["file"]).decode().splitlines()
            assert len(lines) == len(wanted), entry["file"]
            for line, record in zip(lines, entry["records"]):
                text = json.dumps(json.loads(line))
                key = bytes.fromhex(record["example"]["key"]["values"][0]["hex"]).decode()
                assert key in text, (key, text)
        print(f"{entry['file']}: {len(got)} records equal", flush=True)


def main():
    tools, photos, golden = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
    with tempfile.TemporaryDirectory() as folder:
        check_theirs(tools, golden, pathlib.Path(folder))
        check_ours(tools, photos, golden, pathlib.Path(folder))
        check_other_codecs(tools, pathlib.Path(folder))


if __name__ == "__main__":
    main()
