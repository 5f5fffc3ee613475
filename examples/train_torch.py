#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The loop of train_numpy.py with PyTorch: an IterableDataset over presto-load's stream.

    python3 train_torch.py --load presto-load DATASET

The dataset starts presto-load itself, so that the training loop is an ordinary one; presto-load does the reading, the
remaining steps, the shuffling and the batching in its own threads. DataLoader workers are not needed. With
`--workers N` each of them starts a presto-load of its own, which must deliver its share only: all of them together
would else deliver every sample N times.
"""
import argparse
import sys
import zlib

import torch
from torch import nn

from npy_stream import load


class PrestoDataset(torch.utils.data.IterableDataset):
    """One epoch of ready-made batches: (image, label, keys). `rank` of `world`: the share of this process."""

    def __init__(self, program, dataset, batch, epoch_seed, rank=0, world=1):
        self.program, self.rank, self.world = program, rank, world
        self.arguments = ["--features", "image,label,key", "--batch", batch, "--shuffle", "full", "--seed", epoch_seed,
                          "--quiet", dataset]

    def share(self):
        """This process's share of the epoch, divided among its DataLoader workers. --drop-last keeps shares
        disjoint: to be equally long without it, they repeat a few samples."""
        worker = torch.utils.data.get_worker_info()
        id, count = (0, 1) if worker is None else (worker.id, worker.num_workers)
        world = self.world * count
        return [] if world == 1 else ["--rank", self.rank * count + id, "--world", world]

    def __iter__(self):
        for batch in load(*self.share(), *self.arguments, program=self.program):
            keys = [batch["key"][row] for row in range(len(batch["key"]))]
            yield torch.from_numpy(batch["image"]), torch.from_numpy(batch["label"]), keys


def channels_first(images):
    """[n, h, w, c] of uint8 or of float32 in [-1, 1] -> float32 [n, c, h, w] in [-1, 1]."""
    if images.dtype == torch.uint8:
        images = images.float() / 127.5 - 1
    return images.permute(0, 3, 1, 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("dataset")
    parser.add_argument("--load", default="presto-load", help="the presto-load program")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--workers", type=int, default=0, help="DataLoader workers; presto-load has threads of its own")
    parser.add_argument("--least-accuracy", type=float, default=0.0)
    arguments = parser.parse_args()

    torch.manual_seed(0)
    model = nn.Sequential(nn.AdaptiveAvgPool2d(8), nn.Flatten(), nn.Linear(8 * 8 * 3, arguments.classes))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    accuracy = 0.0
    for epoch in range(arguments.epochs):
        right = total = 0
        data = PrestoDataset(arguments.load, arguments.dataset, arguments.batch, epoch)
        for images, labels, keys in torch.utils.data.DataLoader(data, batch_size=None, num_workers=arguments.workers):
            scores = model(channels_first(images))
            # One image in five, by its key, is only ever looked at.
            held_out = torch.tensor([zlib.crc32(key) % 5 == 0 for key in keys])
            right += int((scores[held_out].argmax(1) == labels[held_out]).sum())
            total += int(held_out.sum())
            if not held_out.all():
                loss = nn.functional.cross_entropy(scores[~held_out], labels[~held_out])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        accuracy = right / max(total, 1)
        print(f"epoch {epoch + 1}: accuracy on {total} held-out images: {accuracy:.0%} "
              f"(chance: {1 / arguments.classes:.0%})")
    return 0 if accuracy >= arguments.least_accuracy else 1


if __name__ == "__main__":
    sys.exit(main())
