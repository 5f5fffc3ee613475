#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TFRecords that TensorFlow wrote go through presto-write, presto-load and presto-sweep, with the values that TensorFlow reads.

Photos under image/encoded, int64 labels, texts, and lists of boxes of any length. Runs in the tests' Python environment.
Usage: tfrecord_source.py TOOLS_DIR PHOTOS_PROGRAM
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

COUNT, SHARDS = 30, 3
BOXES = ["image/object/bbox/xmin", "image/object/bbox/ymax"]
SPEC = {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.FixedLenFeature([], tf.int64),
        "image/filename": tf.io.FixedLenFeature([], tf.string), "image/object/class/text": tf.io.VarLenFeature(tf.string),
        **{name: tf.io.VarLenFeature(tf.float32) for name in BOXES}}
FROM = ["-p", "cv", "--from", "concatenated", "--feature", "image/encoded", "--set", "source.label=image/class/label"]


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nexit {done.returncode}: {done.stderr.decode()}")
    return done.stdout


def write(folder, files, compression):
    folder.mkdir()
    random = np.random.default_rng(5)
    classes = sorted({file.parent.name for file in files})
    ending = {"": "", "GZIP": ".gz", "ZLIB": ".deflate"}[compression]
    for shard in range(SHARDS):
        path = folder / f"train-{shard:05}-of-{SHARDS:05}.tfrecord{ending}"
        with tf.io.TFRecordWriter(str(path), tf.io.TFRecordOptions(compression_type=compression)) as writer:
            for number in range(shard * COUNT // SHARDS, (shard + 1) * COUNT // SHARDS):
                file = files[number]
                feature = {
                    "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[file.read_bytes()])),
                    "image/class/label": tf.train.Feature(
                        int64_list=tf.train.Int64List(value=[classes.index(file.parent.name) - 1])),
                    "image/filename": tf.train.Feature(bytes_list=tf.train.BytesList(value=[file.name.encode()])),
                }
                boxes = number % 4
                if boxes > 0 or number % 8 == 0:  # no boxes: an empty list, or none
                    for name in BOXES:
                        values = random.random(boxes).astype(np.float32)
                        feature[name] = tf.train.Feature(float_list=tf.train.FloatList(value=values))
                    feature["image/object/class/text"] = tf.train.Feature(
                        bytes_list=tf.train.BytesList(value=[b"cat %d" % k for k in range(boxes)]))
                writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def read(folder, compression):
    """What TensorFlow reads: the truth."""
    paths = sorted(str(path) for path in folder.iterdir())
    return [tf.io.parse_single_example(record, SPEC) for record in tf.data.TFRecordDataset(paths, compression_type=compression)]


def same_passengers(where, got, wanted):
    assert got["label"].numpy() == wanted["image/class/label"].numpy(), where
    assert got["image/filename"].numpy() == wanted["image/filename"].numpy(), where
    for name in [*BOXES, "image/object/class/text"]:
        assert np.array_equal(tf.sparse.to_dense(got[name]).numpy(), tf.sparse.to_dense(wanted[name]).numpy()), (where, name)


def check_stream(where, stream, wanted, image_of):
    """Examples as Presto sends them, read by TensorFlow; `image_of` computes the image with TensorFlow."""
    spec = {**{name: kind for name, kind in SPEC.items() if name != "image/class/label"},
            "label": tf.io.FixedLenFeature([], tf.int64)}
    count = 0
    for record, truth in zip(stream, wanted, strict=True):
        got = tf.io.parse_single_example(record, spec)
        same_passengers(f"{where}, record {count}", got, truth)
        image, expected = image_of(got["image/encoded"], truth["image/encoded"])
        assert image.shape == expected.shape, (where, count, image.shape, expected.shape)
        assert np.array_equal(image, expected), (where, count, np.abs(image.astype(int) - expected).max())
        count += 1
    assert count == COUNT, (where, count)


def decoded(ours, theirs):
    return tf.io.parse_tensor(ours, tf.uint8).numpy(), tf.io.decode_image(theirs, channels=3).numpy()


def resized(ours, theirs):
    image = tf.io.decode_image(theirs, channels=3)
    smaller = min(image.shape[:2])
    size = [side * 256 // smaller for side in image.shape[:2]]
    return tf.io.parse_tensor(ours, tf.uint8).numpy(), tf.cast(tf.image.resize(image, size, method="bilinear"), tf.uint8).numpy()


def as_stored(ours, theirs):
    return np.frombuffer(ours.numpy(), np.uint8), np.frombuffer(theirs.numpy(), np.uint8)


def stream_of(scratch, tools, *arguments):
    path = scratch / "stream.tfrecord"
    path.write_bytes(run(tools / "presto-load", "-q", *arguments))
    return tf.data.TFRecordDataset(str(path))


def check_npy(tools, source, wanted):
    """Boxes as values and offsets, through all steps, shuffled: the sets are those that TensorFlow reads."""
    script = pathlib.Path(__file__).resolve().parents[2] / "examples"
    sys.path.insert(0, str(script))
    from npy_stream import batches

    process = subprocess.Popen([tools / "presto-load", "-q", *FROM, "--format", "npy", "-b", "7", "--shuffle", "full", source],
                               stdout=subprocess.PIPE)
    found = {}
    for batch in batches(process.stdout):
        names = batch["image/filename"]
        boxes = batch[BOXES[0]]
        for i in range(len(batch["label"])):
            name = bytes(names[i]) if not isinstance(names[i], str) else names[i].encode()
            found[name] = (int(batch["label"][i]), np.asarray(boxes[i]).tolist())
            assert batch["image/encoded"][i].shape == (224, 224, 3)
    assert process.wait() == 0
    assert len(found) == COUNT
    for truth in wanted:
        label, boxes = found[truth["image/filename"].numpy()]
        assert label == truth["image/class/label"].numpy()
        assert boxes == tf.sparse.to_dense(truth[BOXES[0]]).numpy().tolist(), (boxes, truth)


def check_sweep(tools, folder, source):
    out = folder / "plan"
    text = run(tools / "presto-sweep", *FROM, "--codecs", "none,zlib:1", "--stored", "unprocessed,concatenated,resized", "--threads",
               2, "--samples", 10, "--runs", 1, "--run-time", 0, "--decide-time", 0, "-o", out, source, cwd=folder).decode()
    commands = re.findall(r"^  (presto-.*)$", text.partition("\nNext:\n")[2], re.MULTILINE)
    assert commands, text
    for command in commands:
        words = shlex.split(command)
        run(tools / words[0], *words[1:], cwd=folder)
    return json.loads((out / "results.json").read_text())


def main():
    tools, photos = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        run(photos, "-q", "-n", COUNT, "-c", 4, "--width", 330, "--height", 300, "-o", scratch / "photos")
        files = sorted((scratch / "photos").rglob("*.jpg"))
        for compression in ("", "GZIP", "ZLIB"):
            source = scratch / f"theirs{compression}"
            write(source, files, compression)
            wanted = read(source, compression)
            for split, image_of in (("concatenated", as_stored), ("decoded", decoded), ("resized", resized)):
                check_stream(f"online, {split}", stream_of(scratch, tools, *FROM, "--to", split, source), wanted, image_of)
                out = scratch / f"out-{split}{compression}"
                run(tools / "presto-write", "-q", *FROM, "-u", split, "--tensorflow-readable", "-s", 2, "-o", out, source)
                shards = sorted(map(str, out.glob("*.tfrecord")))
                check_stream(f"stored, {split}", tf.data.TFRecordDataset(shards), wanted, image_of)
            print(f"TFRecords {compression or 'plain'}: {COUNT} records equal in three representations, online and stored", flush=True)
        source = scratch / "theirs"
        check_npy(tools, source, read(source, ""))
        check_sweep(tools, scratch, source)
        print("batches and sweep: equal")


if __name__ == "__main__":
    main()
