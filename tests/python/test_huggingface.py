#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dataset.to_iterable_dataset(): features, examples, shards, positions. Skipped where Hugging Face's `datasets` is not installed."""
import json
import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from case import PythonCase, main, np, presto

try:
    import datasets
    from datasets.distributed import split_dataset_by_node
except ImportError:
    print("datasets is not installed: nothing tested")
    sys.exit(77)


def keys(examples):
    return [example["key"] for example in examples]


class HuggingFace(PythonCase):
    def test_examples_are_the_samples(self):
        dataset = presto.open(self.stored)
        examples = dataset.to_iterable_dataset(batch=7, text=["key"])
        self.assertIsInstance(examples, datasets.IterableDataset)
        self.assertEqual(examples.features["image"], datasets.Array3D(shape=(32, 40, 3), dtype="float32"))
        self.assertEqual(examples.features["label"], datasets.ClassLabel(names=dataset.labels))
        self.assertEqual(examples.features["key"], datasets.Value("string"))
        wanted = [(batch["image"][row], batch["label"][row], batch["key"][row]) for batch in presto.Loader(dataset, batch=7)
                  for row in range(batch.rows)]
        for found, (image, label, key) in zip(examples, wanted, strict=True):
            self.assertTrue(np.array_equal(found["image"], image))
            self.assertEqual((found["label"], found["key"]), (label, key.decode()))

    def test_what_datasets_does_with_them(self):
        examples = presto.open(self.stored).to_iterable_dataset(batch=5, features=["label", "key"])
        mapped = examples.map(lambda example: {"double": 2 * example["label"]}).filter(lambda example: example["label"] > 1)
        labels = [int(label) for batch in presto.Loader(self.stored, batch=5) for label in batch["label"]]
        self.assertEqual([example["double"] for example in mapped], [2 * label for label in labels if label > 1])
        self.assertEqual(keys(examples.skip(3).take(4)), keys(examples)[3:7])
        batches = list(examples.iter(batch_size=10))
        self.assertEqual([len(batch["key"]) for batch in batches], [10, 10, 4])
        arrays = examples.with_format("numpy")
        self.assertEqual([int(example["label"]) for example in arrays], labels)

    def test_positions_go_on_with_the_next_example(self):
        options = {"batch": 5, "shuffle": "full", "seed": 3, "epochs": 2, "features": ["key"]}
        dataset = presto.open(self.stored)
        for shards in (1, 3):
            examples = dataset.to_iterable_dataset(**options, shards=shards)
            whole = keys(examples)
            self.assertEqual(len(whole), 48)
            for stop in (0, 1, 4, 5, 6, 15, 16, 17, 24, 25, 47, 48):
                first = dataset.to_iterable_dataset(**options, shards=shards)
                taken = []
                for example in first:
                    if len(taken) == stop:
                        break
                    taken.append(example["key"])
                    state = json.dumps(first.state_dict())
                again = dataset.to_iterable_dataset(**options, shards=shards)
                if stop > 0:
                    again.load_state_dict(json.loads(state))
                self.assertEqual(taken + keys(again), whole, (shards, stop))

    def test_shards_and_nodes_have_each_example_once(self):
        dataset = presto.open(self.stored)
        wanted = sorted(keys(dataset.to_iterable_dataset(features=["key"])))
        for shards in (1, 2, 5, 7, 24, 30):
            examples = dataset.to_iterable_dataset(batch=4, features=["key"], shards=shards, shuffle="full")
            self.assertEqual(examples.num_shards, shards)
            self.assertEqual(sorted(keys(examples)), wanted, shards)
        examples = dataset.to_iterable_dataset(batch=4, features=["key"], shards=6)
        found = [keys(split_dataset_by_node(examples, rank=rank, world_size=3)) for rank in range(3)]
        self.assertEqual([len(one) for one in found], [8, 8, 8])
        self.assertEqual(sorted(sum(found, [])), wanted)

    def test_shuffle_is_exact_and_changes_with_the_epoch(self):
        examples = presto.open(self.stored).to_iterable_dataset(batch=4, features=["key"])
        shuffled = examples.shuffle(seed=5, buffer_size=1)
        epochs = []
        for epoch in range(2):
            shuffled.set_epoch(epoch)
            epochs.append(keys(shuffled))
        self.assertEqual(sorted(epochs[0]), sorted(keys(examples)))
        self.assertEqual(len({tuple(epochs[0]), tuple(epochs[1]), tuple(keys(examples))}), 3)

    def test_features_of_differing_length(self):
        dataset = presto.open(self.make_photos(), pipeline="cv", to="decoded", features=["image"])
        examples = dataset.to_iterable_dataset(batch=5)
        self.assertEqual(examples.features["image"], datasets.List(datasets.List(datasets.List(datasets.Value("uint8"), length=3))))
        for found, batch in zip(examples, presto.Loader(dataset), strict=True):
            self.assertTrue(np.array_equal(found["image"], batch["image"][0]))

    def test_wrong_arguments(self):
        dataset = presto.open(self.stored)
        for wrong in ({"rank": 0}, {"shards": 0}, {"order": "completion"}, {"batch": 0}, {"nonsense": 1}):
            with self.assertRaises((TypeError, ValueError)):
                dataset.to_iterable_dataset(**wrong)


if __name__ == "__main__":
    main()
