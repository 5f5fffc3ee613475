# SPDX-License-Identifier: Apache-2.0
"""Presto for Hugging Face: a datasets.IterableDataset of samples.

    examples = presto.open("photos-resized").to_iterable_dataset(shuffle="full", epochs=3)
    for example in examples.with_format("torch"):
        ...
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import Any

import datasets
import numpy as np
from datasets.iterable_dataset import _BaseExamplesIterable

from ._arrays import sample_of
from ._dataset import Dataset, Feature, dataset_of
from ._loader import Loader
from ._options import names_of, settled
from ._workers import WorkerLoader

__all__ = ["to_iterable_dataset"]

_ARRAYS = {2: "Array2D", 3: "Array3D", 4: "Array4D", 5: "Array5D"}


def _feature(name: str, feature: Feature, labels: list[str], text: frozenset[str]) -> Any:
    if feature.dtype == "string":
        one = datasets.Value("string" if name in text else "binary")
        return one if feature.shape == () else datasets.List(one)
    if name == "label" and labels and feature.shape == ():
        return datasets.ClassLabel(names=labels)
    value = datasets.Value(feature.dtype)
    shape = feature.shape
    if shape is None:
        raise ValueError(f"the number of dimensions of feature {name!r} is not known: choose other features")
    if len(shape) in _ARRAYS and None not in shape[1:]:
        return getattr(datasets, _ARRAYS[len(shape)])(shape=shape, dtype=feature.dtype)
    for dim in reversed(shape):
        value = datasets.List(value, length=-1 if dim is None else dim)
    return value


def _features(dataset: Dataset, chosen: Iterable[str] | None, text: frozenset[str]) -> Any:
    """What is declared. None: files that declare nothing; `datasets` finds out by itself."""
    names = set(dataset.features if chosen is None else chosen)
    found = {k: _feature(k, f, dataset.labels, text) for k, f in dataset.features.items() if k in names}
    return datasets.Features(found) if found else None


def _decoded(value: Any) -> Any:
    return value.decode("utf-8") if isinstance(value, bytes) else [one.decode("utf-8") for one in value]


class _Examples(_BaseExamplesIterable):
    """One sample after the other. Shards are ranks of one order; the position is that of the batch, and the row in it."""

    def __init__(self, dataset: Dataset, options: dict[str, Any], made: tuple[Any, frozenset[str]], shards: list[int], of: int):
        super().__init__()
        self._dataset, self._options, self._made, self._shards, self._of = dataset, options, made, shards, of

    @property
    def is_typed(self) -> bool:
        return self._made[0] is not None

    @property
    def features(self) -> Any:
        return self._made[0]

    @property
    def num_shards(self) -> int:
        return len(self._shards)

    @property
    def sleep_on_threads_shutdown(self) -> bool:
        return False

    def _init_state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {"shard": 0, "batch": None, "row": 0, "type": type(self).__name__}
        self._state_dict = state
        return state

    def _loader(self, shard: int) -> WorkerLoader:
        loader = WorkerLoader(self._dataset, rank=shard, world=self._of, **self._options)
        # The shards that are a sample shorter would repeat one.
        loader._has_surplus = not loader._drop_last and 0 < self._dataset.epoch_samples % self._of <= shard
        return loader

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        kept: Any = self._state_dict
        state: dict[str, Any] = kept or self._init_state_dict()
        text = self._made[1]
        for at in range(state["shard"], len(self._shards)):
            with self._loader(self._shards[at]) as loader:
                if state["batch"] is not None:
                    loader.load_state_dict(state["batch"])
                position, begin = loader.state_dict(), state["row"]
                for batch in loader:
                    for row in range(begin, batch.rows):
                        state["batch"], state["row"] = position, row + 1
                        sample = sample_of(batch, row)
                        for name in text:
                            sample[name] = _decoded(sample[name])
                        yield f"{batch.epoch}_{batch.numbers[row]}", sample
                    position, begin = loader.state_dict(), 0
            state["shard"], state["batch"], state["row"] = at + 1, None, 0

    def _with(self, options: dict[str, Any], shards: list[int]) -> _Examples:
        return _Examples(self._dataset, options, self._made, shards, self._of)

    def shuffle_data_sources(self, generator: np.random.Generator) -> _Examples:
        """.shuffle(): Presto's exact shuffle, with a seed of that generator."""
        seed = int(deepcopy(generator).integers(1 << 31))
        return self._with({**self._options, "shuffle": "full", "seed": seed}, self._shards)

    def shard_data_sources(self, num_shards: int, index: int, contiguous: bool = True) -> _Examples:
        mine = self.split_shard_indices_by_worker(num_shards, index, contiguous=contiguous)
        return self._with(self._options, [self._shards[i] for i in mine])

    def reshard_data_sources(self) -> _Examples:
        return self


def to_iterable_dataset(
    dataset: Dataset, batch: int = 256, *, shards: int = 1, text: Iterable[str] = (), **options: Any
) -> datasets.IterableDataset:
    """A datasets.IterableDataset of the samples, with its features; values are NumPy arrays and scalars, and bytes.

    It has a position: state_dict() and load_state_dict() go on with the next sample without reading those before it.
    .shuffle(seed) replaces the order by Presto's exact shuffle (give it buffer_size=1: no buffer is needed).

    Args:
        dataset: a presto.Dataset.
        batch:   samples that Presto makes at a time.
        shards:  what `datasets` divides among a DataLoader's workers and among nodes (split_dataset_by_node).
        text:    features that are decoded to str, as UTF-8. Others of strings are bytes.
        options: as presto.Loader; not rank and world.
    """
    if "rank" in options or "world" in options:
        raise TypeError("a share is chosen with shards and datasets.distributed.split_dataset_by_node")
    if options.get("order") == "completion":
        raise ValueError("a stream in order of completion has no position")
    for name in ("as_tuple", "collate"):
        if options.pop(name, None) is not None:
            raise TypeError(f"examples are dicts: {name} is of presto.Loader; .map() of the dataset changes them")
    if shards < 1:
        raise ValueError("there is at least one shard")
    part = {name: options.pop(name) for name in ("split", "part", "split_seed", "filesystem") if name in options}
    dataset = dataset_of(dataset, **part)
    chosen = options.get("features")
    chosen = dataset._arguments["features"] if chosen is None else names_of(chosen, "features")
    words = frozenset(names_of(text, "text"))
    options = settled({**options, "batch": batch, "features": chosen})
    Loader(dataset, **options)  # wrong options are told here
    made = _features(dataset, chosen, words), words
    examples = _Examples(dataset, options, made, list(range(shards)), shards)
    return datasets.IterableDataset(examples, info=datasets.DatasetInfo(features=made[0]))
