# SPDX-License-Identifier: Apache-2.0
"""Trains a small classifier with JAX. The last epoch's accuracy is that of samples before they were trained on.

    python3 examples/python/train_jax.py photos-resized
"""
import sys

import jax
import jax.numpy as jnp

import presto.jax

EPOCHS = 3

dataset = presto.open(sys.argv[1], features=["image", "label"])
loader = presto.jax.Loader(dataset, batch=16, shuffle="full", seed=1, epochs=EPOCHS, per_epoch=True)
classes = len(dataset.labels)


def loss_of(weights, x, labels):
    scores = x @ weights
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(scores) * jax.nn.one_hot(labels, classes), axis=1)), scores


@jax.jit
def step(weights, images, labels):
    x = images.reshape(-1, 8, 28, 8, 28, 3).mean(axis=(2, 4)).reshape(len(images), -1)
    (_, scores), gradient = jax.value_and_grad(loss_of, has_aux=True)(weights, x, labels)
    return weights - 0.3 * gradient, jnp.sum(scores.argmax(1) == labels)


weights = jnp.zeros((8 * 8 * 3, classes))
for epoch in range(EPOCHS):
    right = 0
    for batch in loader:
        weights, found = step(weights, batch["image"], batch["label"])
        right += int(found)
    print(f"epoch {epoch + 1}: accuracy {right / len(dataset):.0%}, {loader.limit}")
