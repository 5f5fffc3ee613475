# SPDX-License-Identifier: Apache-2.0
"""Trains a small classifier with PyTorch. The last epoch's accuracy is that of samples before they were trained on.

    python3 examples/python/train_torch.py photos-resized
"""
import sys

import torch
from torch import nn

import presto.torch

EPOCHS = 3

dataset = presto.open(sys.argv[1])
loader = presto.torch.Loader(dataset, batch=16, shuffle="full", seed=1, epochs=EPOCHS, per_epoch=True, channels_last=True)
torch.manual_seed(0)
model = nn.Sequential(nn.AvgPool2d(28), nn.Flatten(), nn.Linear(8 * 8 * 3, len(dataset.labels)))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(EPOCHS):
    right = 0
    for batch in loader:
        scores = model(batch["image"])
        right += int((scores.argmax(1) == batch["label"]).sum())
        loss = nn.functional.cross_entropy(scores, batch["label"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch + 1}: accuracy {right / len(dataset):.0%}, {loader.limit}")
