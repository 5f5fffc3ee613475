# SPDX-License-Identifier: Apache-2.0
"""Trains a small classifier in several processes: each rank gets its share of every epoch.

    torchrun --nproc_per_node 2 examples/python/train_ddp.py photos-resized
"""
import sys

import torch
import torch.distributed as distributed
from torch import nn

import presto.torch

EPOCHS = 2

distributed.init_process_group("gloo")
dataset = presto.open(sys.argv[1])
loader = presto.torch.Loader(dataset, batch=16, shuffle="full", seed=1, epochs=EPOCHS, per_epoch=True, channels_last=True)
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(
    nn.Sequential(nn.AvgPool2d(16), nn.Flatten(), nn.Linear(14 * 14 * 3, len(dataset.labels)))
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
seen = torch.zeros(1)
for epoch in range(EPOCHS):
    for batch in loader:
        loss = nn.functional.cross_entropy(model(batch["image"]), batch["label"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += len(batch["label"])
distributed.all_reduce(seen)
if distributed.get_rank() == 0:
    print(f"{int(seen)} samples on {distributed.get_world_size()} ranks, loss {loss.item():.2f}")
distributed.destroy_process_group()
