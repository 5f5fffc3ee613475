# SPDX-License-Identifier: Apache-2.0
"""Trains a small classifier in NumPy on a Hugging Face datasets.IterableDataset, and continues it from a saved position.

    python3 examples/python/train_huggingface.py photos-resized
"""
import json
import sys

import numpy as np

import presto

EPOCHS = 3

dataset = presto.open(sys.argv[1], features=["image", "label"])
examples = dataset.to_iterable_dataset(shuffle="full", seed=1, epochs=EPOCHS)
print(examples.features)
weights = np.zeros((8 * 8 * 3, examples.features["label"].num_classes), np.float32)
right, seen = 0, 0
while seen < EPOCHS * len(dataset):
    for batch in examples.iter(batch_size=16):
        images = np.stack(batch["image"])
        x = images.reshape(-1, 8, 28, 8, 28, 3).mean(axis=(2, 4)).reshape(len(images), -1)
        scores = np.exp(x @ weights)
        error = scores / scores.sum(axis=1, keepdims=True) - np.eye(weights.shape[1])[batch["label"]]
        weights -= 0.3 * x.T @ error / len(x)
        seen += len(x)
        if seen > (EPOCHS - 1) * len(dataset):
            right += int((scores.argmax(1) == batch["label"]).sum())
        if seen == 16 * 10:  # a job that was stopped: the next one goes on with sample 160
            saved = json.dumps(examples.state_dict())
            break
    else:
        break
    examples.load_state_dict(json.loads(saved))
print(f"{seen} samples, accuracy of the last epoch {right / len(dataset):.0%}")
