# SPDX-License-Identifier: Apache-2.0
"""Trains a small classifier with Keras. The last epoch's accuracy is the mean while it trained.

    python3 examples/python/train_tensorflow.py photos-resized
"""
import sys

import tensorflow as tf

import presto.tf

EPOCHS = 3

dataset = presto.open(sys.argv[1], features=["image", "label"])
batches = presto.tf.dataset(dataset, batch=16, shuffle="full", seed=1)
print(batches.element_spec)
tf.keras.utils.set_random_seed(0)
model = tf.keras.Sequential(
    [tf.keras.layers.AveragePooling2D(28), tf.keras.layers.Flatten(), tf.keras.layers.Dense(len(dataset.labels))]
)
model.compile(
    tf.keras.optimizers.Adam(0.01), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"]
)
pairs = batches.map(lambda batch: (batch["image"], batch["label"])).prefetch(1)
pairs = pairs.apply(tf.data.experimental.assert_cardinality(-(-len(dataset) // 16)))  # else Keras warns where an epoch ends
history = model.fit(pairs, epochs=EPOCHS, shuffle=False, verbose=0).history  # Presto shuffles: each epoch has another order
for epoch, accuracy in enumerate(history["accuracy"]):
    print(f"epoch {epoch + 1}: accuracy {accuracy:.0%}")
