#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto.tf: element_spec, ragged tensors, memory, epochs, beside presto.Loader and tf.data. Skipped where TensorFlow is not installed."""
import gc
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from case import PythonCase, main, np, presto

try:
    import tensorflow as tf

    import presto.tf
except ImportError:
    print("TensorFlow is not installed: nothing tested")
    sys.exit(77)

CAST = """\
name: cast
source: {type: files, match: ['*.jpg']}
steps:
  - {step: read-file}
  - {step: decode-image, channels: 3}
  - {step: resize-image, height: 8, width: 8}
"""


def pointer(tensor):
    return tensor._numpy().__array_interface__["data"][0]


class TensorFlow(PythonCase):
    def write_records(self, rows):
        """A TFRecord file by TensorFlow: lists of int64 and float32, and bytes."""
        path = self.new("rows.tfrecord")
        with tf.io.TFRecordWriter(str(path)) as writer:
            for row in rows:
                features = {"tokens": tf.train.Feature(int64_list=tf.train.Int64List(value=row["tokens"])),
                            "score": tf.train.Feature(float_list=tf.train.FloatList(value=[row["score"]])),
                            "names": tf.train.Feature(bytes_list=tf.train.BytesList(value=row["names"]))}
                writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
        return path

    def test_elements_are_the_loaders_batches(self):
        batches = presto.tf.dataset(self.stored, batch=7)
        spec = batches.element_spec
        self.assertEqual(spec["image"], tf.TensorSpec([None, 32, 40, 3], tf.float32))
        self.assertEqual(spec["label"], tf.TensorSpec([None], tf.int64))
        self.assertEqual(spec["key"], tf.TensorSpec([None], tf.string))
        count = 0
        for found, wanted in zip(batches, presto.Loader(self.stored, batch=7), strict=True):
            for name in ("image", "label"):
                self.assertEqual(found[name].dtype.as_numpy_dtype, wanted[name].dtype)
                self.assertTrue(np.array_equal(found[name].numpy(), wanted[name]))
            self.assertEqual(found["key"].numpy().tolist(), list(wanted["key"]))
            count += wanted.rows
        self.assertEqual(count, 24)

    def test_numbers_are_the_loaders_memory(self):
        loader = presto.Loader(self.stored, batch=6, features=["image", "label"])
        held = next(iter(presto.tf.dataset(loader)))
        self.assertEqual(pointer(held["image"]) % 64, 0)
        self.assertGreaterEqual(loader.held[0], 1)
        copy = held["image"].numpy()
        for _ in presto.tf.dataset(self.stored, batch=6):
            pass
        self.assertTrue(np.array_equal(held["image"].numpy(), copy))
        before = loader.held[0]
        del held
        gc.collect()
        self.assertLess(loader.held[0], before)

    def test_memory_that_is_read_again_is_copied(self):
        """TensorFlow may compute in place; the cache must not see it."""
        loader = presto.Loader(self.stored, batch=1, features=["image"], cache="memory:64MiB", epochs=3, shuffle="none")
        wanted = [batch["image"].copy() for batch in presto.Loader(self.stored, batch=1, features=["image"], epochs=3)]
        batches = presto.tf.dataset(loader).map(lambda batch: (batch["image"], tf.nn.relu(batch["image"]) * 3 + 1))
        for (image, _), one in zip(batches, wanted, strict=True):
            self.assertTrue(np.array_equal(image.numpy(), one))

    def test_every_dtype(self):
        pipeline = self.new("cast.yaml")
        for dtype in ("uint8", "float32", "float64", "int16", "int32", "int64", "float16", "bfloat16"):
            pipeline.write_text(CAST + f"  - {{step: cast, dtype: {dtype}}}\n")
            dataset = presto.open(self.make_photos(), pipeline=pipeline, features=["image"])
            found = next(iter(presto.tf.dataset(dataset, batch=4)))["image"]
            wanted = next(iter(presto.Loader(dataset, batch=4)))["image"]
            self.assertEqual(found.dtype.name, dtype)
            self.assertEqual(found.numpy().tobytes(), wanted.tobytes())

    def test_images_of_differing_size_are_ragged(self):
        dataset = presto.open(self.make_photos(), pipeline="cv", to="decoded", features=["image"])
        batches = presto.tf.dataset(dataset, batch=5)
        spec = batches.element_spec["image"]
        self.assertEqual((spec.shape.as_list(), spec.ragged_rank), ([None, None, None, 3], 2))
        for found, wanted in zip(batches, presto.Loader(dataset, batch=5), strict=True):
            for row in range(wanted.rows):
                self.assertTrue(np.array_equal(found["image"][row].to_tensor().numpy(), wanted["image"][row]))

    def test_lists_of_other_programs(self):
        """Beside tf.io.parse_example on the same records."""
        rows = [{"tokens": list(range(i % 4)), "score": i / 2, "names": [b"a"] * (1 + i % 2)} for i in range(11)]
        path = self.write_records(rows)
        spec = {"tokens": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64), "score": tf.io.FixedLenFeature([], tf.float32),
                "names": tf.io.RaggedFeature(tf.string, row_splits_dtype=tf.int64)}
        theirs = tf.data.TFRecordDataset(str(path)).batch(4).map(lambda batch: tf.io.parse_example(batch, spec))
        ours = presto.tf.dataset(path, batch=4, ragged=["tokens", "names"])
        self.assertEqual(ours.element_spec["tokens"], theirs.element_spec["tokens"])
        for mine, wanted in zip(ours, theirs, strict=True):
            for name in ("tokens", "names"):
                self.assertEqual(mine[name].to_list(), wanted[name].to_list())
            self.assertEqual(mine["score"].numpy().tolist(), wanted["score"].numpy().tolist())

    def test_rows_that_differ_later_are_an_error_that_says_what_to_do(self):
        rows = [{"tokens": [1, 2] if i < 6 else [3, 4, 5], "score": 1.0, "names": [b"a"]} for i in range(8)]
        path = self.write_records(rows)
        with self.assertRaisesRegex(Exception, r"rows of feature 'tokens' differ: .*ragged="):
            for _ in presto.tf.dataset(path, batch=5):
                pass

    def test_values_that_some_rows_lack_are_ragged(self):
        """Also where all rows of a batch lack them."""
        def made(i, lacks=()):
            return {"n": i, "text": f"{i}", "grid": np.full((2 + i % 2, 1 + i % 3, 2), i)} if i not in lacks else {"n": None, "text": None, "grid": []}

        folder = self.new("lacking")
        with presto.Writer(folder, sync=False) as writer:
            for i in range(8):
                writer.add({"y": i, **made(i, (2, 3, 5))})
        for size in (1, 2, 8):
            rows = {"n": [], "text": [], "grid": [], "y": []}
            for batch in presto.tf.dataset(folder, size):
                for name, values in batch.items():
                    rows[name] += values.to_list() if isinstance(values, tf.RaggedTensor) else values.numpy().tolist()
            self.assertEqual(rows["y"], list(range(8)))
            for name, how in (("n", lambda v: [v]), ("text", lambda v: [v.encode()]), ("grid", lambda v: v.tolist())):
                self.assertEqual(rows[name], [[] if i in (2, 3, 5) else how(made(i)[name]) for i in range(8)])

    def test_declared_features_are_ragged_if_asked_for(self):
        batches = presto.tf.dataset(self.stored, 7, features=["label", "key", "image"], ragged=["label", "key"])
        spec = batches.element_spec
        self.assertEqual((spec["label"], spec["key"]), (tf.RaggedTensorSpec([None, None], tf.int64, 1, tf.int64),
                                                        tf.RaggedTensorSpec([None, None], tf.string, 1, tf.int64)))
        self.assertIsInstance(spec["image"], tf.TensorSpec)
        for found, wanted in zip(batches, presto.Loader(self.stored, 7), strict=True):
            self.assertEqual(found["label"].to_list(), [[label] for label in wanted["label"].tolist()])
            self.assertEqual(found["key"].to_list(), [[key] for key in wanted["key"]])

    def test_padding_and_whole_batches(self):
        rows = [{"tokens": list(range(1 + i % 4)), "score": 1.0, "names": [b"a"]} for i in range(11)]
        path = self.write_records(rows)
        batches = presto.tf.dataset(path, batch=4, pad={"tokens": (-1, 6)}, features=["tokens"], drop_last=True)
        self.assertEqual(batches.element_spec, {"tokens": tf.TensorSpec([4, 6], tf.int64)})
        found = np.concatenate([batch["tokens"].numpy() for batch in batches])
        self.assertEqual(found.tolist(), [list(range(1 + i % 4)) + [-1] * (5 - i % 4) for i in range(8)])

    def test_each_iteration_is_an_epoch_and_the_position_is_the_loaders(self):
        loader = presto.Loader(self.stored, batch=5, shuffle="full", seed=2, features=["label"])
        batches = presto.tf.dataset(loader)
        epochs = [[batch["label"].numpy().tolist() for batch in batches] for _ in range(2)]
        self.assertNotEqual(epochs[0], epochs[1])
        self.assertEqual(sorted(sum(epochs[0], [])), sorted(sum(epochs[1], [])))
        for at, batch in enumerate(batches):
            if at == 1:
                break
        state = loader.state_dict()
        rest = [batch["label"].tolist() for batch in loader]
        again = presto.Loader(self.stored, batch=5, shuffle="full", seed=2, features=["label"])
        again.load_state_dict(state)
        self.assertEqual([batch["label"].numpy().tolist() for batch in presto.tf.dataset(again)], rest)
        with self.assertRaises(TypeError):
            presto.tf.dataset(loader, shuffle="full")

    def test_an_iteration_that_took_the_last_batch_is_done(self):
        batches = presto.tf.dataset(self.stored, batch=5, features=["label"])
        for _ in range(3):
            self.assertEqual(sum(len(batch["label"]) for _, batch in zip(range(5), batches)), 24)

    def test_damage_is_an_error_of_the_iteration(self):
        shard = sorted(self.stored.glob("*.tfrecord"))[1]
        before = shard.read_bytes()
        shard.write_bytes(before[:20] + bytes([before[20] ^ 1]) + before[21:])
        self.addCleanup(shard.write_bytes, before)
        with self.assertRaisesRegex(Exception, "CorruptError"):
            for _ in presto.tf.dataset(self.stored, batch=4):
                pass


if __name__ == "__main__":
    main()
