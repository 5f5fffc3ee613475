# SPDX-License-Identifier: Apache-2.0
"""tf.data: TFRecords by TensorFlow's writer; its performance guide: parallel interleave of shards, vectorized parsing, prefetch."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from common import FLOATS, INTS, MEL, PHOTO_SIDE, RECIPE, count_of, files_of, samples

NAME = "tf.data"
SHARDS = 4


def versions():
    return {"tensorflow-cpu": tf.__version__}


def supports(work):
    if work.mode == "access":
        return "tf.data has no random access"
    if work.kind == "text":
        return "a SentencePiece model needs tensorflow-text"
    if work.kind == "speech":
        return "TensorFlow decodes no FLAC"
    return None


def _bytes(value):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def _example(one):
    features = {}
    for name, value in one.items():
        if isinstance(value, bytes):
            features[name] = _bytes(value)
        elif isinstance(value, np.ndarray):
            features[name] = _bytes(value.tobytes())  # as the guide advises for tensors; tf.io.decode_raw reads them
        elif isinstance(value, (float, np.floating)):
            features[name] = tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
        else:
            features[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def write(work, folder, corpus):
    if work.kind in ("photo", "recipe"):
        return
    shards = 1 if work.mode == "write" else SHARDS
    writers = [tf.io.TFRecordWriter(str(folder / f"data-{i}.tfrecord")) for i in range(shards)]
    for number, one in enumerate(samples(work, corpus)):
        writers[number % shards].write(one["record"] if work.kind == "raw" else _example(one))
    for writer in writers:
        writer.close()


def _spec(work):
    number, text = tf.io.FixedLenFeature([], tf.int64), tf.io.FixedLenFeature([], tf.string)
    if work.kind == "table":
        floats = {f"float_{i:02}": tf.io.FixedLenFeature([], tf.float32) for i in range(FLOATS)}
        return {"id": number, "text": text, **floats, **{f"int_{i:02}": number for i in range(INTS)}}
    return {"id": number, {"tensor": "x", "resized": "image"}[work.kind]: text}


class Reader:
    def __init__(self, work, folder, corpus, threads):
        self.work, self.threads = work, threads
        self.dataset = self.photos(corpus) if work.kind in ("photo", "recipe") else self.records(folder)
        options = tf.data.Options()
        options.threading.private_threadpool_size = threads
        options.deterministic = False
        self.dataset = self.dataset.with_options(options)

    def records(self, folder):
        work, auto = self.work, tf.data.AUTOTUNE
        files = tf.data.Dataset.list_files(str(folder / "*.tfrecord"), shuffle=False)
        # A buffer that holds several records, as the reader's documentation says for remote or large files.
        records = files.interleave(lambda f: tf.data.TFRecordDataset(f, buffer_size=8 << 20), cycle_length=SHARDS,
                                   num_parallel_calls=auto)
        if work.mode == "shuffle":
            records = records.shuffle(work.count, reshuffle_each_iteration=True)
        records = records.batch(work.batch, num_parallel_calls=auto)
        if work.kind == "raw":
            return records
        spec = _spec(work)

        def parse(batch):
            parsed = tf.io.parse_example(batch, spec)
            if work.kind == "tensor":
                parsed["x"] = tf.io.decode_raw(parsed["x"], tf.float32, fixed_length=None)
            if work.kind == "resized":
                images = tf.reshape(tf.io.decode_raw(parsed["image"], tf.uint8), [-1, 256, 256, 3])
                images = images[:, 16:240, 16:240]
                parsed["image"] = tf.cast(images, tf.float32) / 127.5 - 1
            return parsed

        return records.map(parse, num_parallel_calls=auto)

    def photos(self, corpus):
        paths = [str(path) for path in files_of(corpus, "*.jpg")[: count_of(self.work, corpus)]]

        def crop(number, path):
            """Only the window is decoded, as the guide for images advises."""
            encoded = tf.io.read_file(path)
            shape = tf.io.extract_jpeg_shape(encoded)
            whole = tf.constant([[[0.0, 0.0, 1.0, 1.0]]])
            start, size, _ = tf.image.sample_distorted_bounding_box(
                shape, whole, min_object_covered=0.0, area_range=RECIPE["area"], aspect_ratio_range=RECIPE["ratio"],
                use_image_if_no_bounding_boxes=True)
            window = tf.stack([start[0], start[1], size[0], size[1]])
            image = tf.image.resize(tf.io.decode_and_crop_jpeg(encoded, window, channels=3), [PHOTO_SIDE, PHOTO_SIDE], antialias=True)
            image = tf.image.random_flip_left_right(image)
            return {"id": number, "image": (image / 255.0 - RECIPE["mean"]) / RECIPE["std"]}

        def load(number, path):
            image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
            image = tf.image.resize(image, [PHOTO_SIDE, PHOTO_SIDE])
            return {"id": number, "image": image / 127.5 - 1}

        numbered = tf.data.Dataset.from_tensor_slices((np.arange(len(paths)), paths))
        return numbered.map(crop if self.work.random else load, num_parallel_calls=tf.data.AUTOTUNE).batch(self.work.batch)

    def begin(self):
        return iter(self.dataset.prefetch(tf.data.AUTOTUNE))

    def begin_endless(self):
        """To end an iterator and begin the next one can take half a second: epochs are repeated within one, as the guide does."""
        return iter(self.dataset.repeat().prefetch(tf.data.AUTOTUNE))

    def size_of(self, batch):
        return int((batch if self.work.kind == "raw" else batch["id"]).shape[0])

    def samples_of(self, batch):
        if self.work.kind == "raw":
            yield from ({"record": record} for record in batch.numpy())
            return
        arrays = {name: values.numpy() for name, values in batch.items()}
        for row in range(len(arrays["id"])):
            one = {name: values[row] for name, values in arrays.items()}
            yield {"id": one["id"], "x": one["image"]} if "image" in one else one
