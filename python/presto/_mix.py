# SPDX-License-Identifier: Apache-2.0
"""Mixes: several datasets in one stream, in given proportions."""
from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ._arrays import Batch
from ._dataset import Dataset, Path, _encode
from ._errors import ArgumentError
from ._guesses import advised
from ._notes import noted
from ._options import names_of
from ._strategy import Strategy

_EPOCHS = {"longest": 0, "shortest": 1, "weights": 2}  # presto_mix_epoch

_Input = TypeVar("_Input", bound="Dataset | str | os.PathLike[str]")


class MixInput(NamedTuple):
    """One input of a mix. `epoch_samples` of its `samples` are in each epoch of the mix, which may be more than it has;
    its samples have the numbers of the mix from `first` on."""

    path: str
    weight: float
    first: int
    samples: int
    epoch_samples: int


class Mix(Dataset):
    """Several datasets as one; made by presto.mix(). What a presto.Dataset does, it does, but for strategies.

    An epoch has len(mix) samples, over all ranks: as many of each input as `inputs` says. mix[i] is one of them: those of the
    first input, then those of the second one, and so on. A short input's come again; of one that is not taken whole it is the first ones.

    Samples have numbers of their own, batch.numbers: all samples of the first input, then those of the second one, and so on.
    mix.pick(numbers) are those.
    """

    def __init__(self, arguments: Mapping[str, Any], weights: tuple[float, ...], epoch: str) -> None:
        self._weights = weights
        self._epoch = epoch
        super().__init__(**arguments)

    def _mixing(self) -> dict[str, Any]:
        names = self._arguments["features"]
        return {
            "weights": self._weights,
            "mix_epoch": _EPOCHS[self._epoch],
            "features": None if names is None else tuple(_encode(name) for name in names),
        }

    @property
    def inputs(self) -> list[MixInput]:
        """The inputs, in the order in which they were given."""
        return [MixInput(os.fsdecode(shown), *part[1:]) for shown, part in zip(self._shown, self.stream().parts, strict=True)]

    def __len__(self) -> int:
        """Samples that an epoch has, over all ranks."""
        return sum(part.epoch_samples for part in self.inputs)

    def _numbers_at(self, places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The numbers of the samples at these places of an epoch, as mix[places] counts them."""
        parts = self.inputs
        ends = np.cumsum([part.epoch_samples for part in parts])
        which = np.searchsorted(ends, places, side="right")
        begins = ends - [part.epoch_samples for part in parts]
        firsts, samples = (np.array([part[i] for part in parts], np.int64) for i in (2, 3))
        found: np.ndarray[Any, Any] = firsts[which] + (places - begins[which]) % samples[which]
        return found

    def pick(self, numbers: Any) -> Batch:
        """The samples with these numbers, as batch.numbers has them, in this order."""
        return self._pick(numbers, by_number=True)

    def input_of(self, numbers: Any) -> np.ndarray[Any, np.dtype[np.intp]]:
        """Which of the inputs each sample is of, by the numbers of the samples: `mix.input_of(batch.numbers)`."""
        firsts = np.array([part.first for part in self.inputs[1:]], np.uint64)
        return np.searchsorted(firsts, np.asarray(numbers, np.uint64), side="right")

    def check_strategy(self, strategy: Strategy) -> None:
        """A strategy is of one dataset (not public)."""
        raise ArgumentError("a strategy is of one dataset, and this is a mix")

    def _with(self, arguments: Mapping[str, Any]) -> Dataset:
        return Mix(arguments, self._weights, self._epoch)

    def __reduce__(self) -> tuple[Any, ...]:
        return Mix, (self._arguments, self._weights, self._epoch), {"_shown": self._shown, "_draw": self._draw}


@advised
def mix(
    inputs: Mapping[_Input, float] | Iterable[tuple[Dataset | Path, float]],
    *,
    epoch: str = "longest",
    features: Iterable[str] | None = None,
) -> Mix:
    """Several datasets as one, in given proportions, for a presto.Loader:

        mix = presto.mix({"photos-all": 0.7, "photos-few": 0.3})
        for batch in presto.Loader(mix, batch=32, shuffle="full", epochs=3):
            weights = np.where(mix.input_of(batch.numbers) == 1, 0.5, 1)

    An epoch has a fixed number of samples of each input, spread evenly: in each 64 positions every input has its share, to
    within a sample or two, in random order. The samples of an input come in the order in which a loader of it alone would
    deliver them, with the same seed and shuffle, and in epochs of their own. The stream is that of `presto-load --mix`
    (docs/loading.md), byte for byte. Positions, ranks, caches and threads are those of any loader.

    Args:
        inputs:   {dataset: weight}, or pairs: presto.Datasets of one path, or paths. All datasets are opened in the same way:
                  pipeline, from_, to, set, verify, split, ... Paths are opened as they are. The same steps must remain for all,
                  and their features must agree in dtype, encoding and number of dimensions.
        epoch:    what a weight is, and where an epoch ends. "longest": weights are shares of the stream, and each input has
                  come once, shorter ones again and again; "shortest": likewise, and the first input has come once; "weights":
                  they are epochs of the inputs: 0.5 takes half of it, 2 takes it twice.
        features: names of the features wanted, the only ones in which inputs must agree. Default: those of the datasets.

    Raises:
        presto.ArgumentError: no input or more than 64; a weight that is no number above 0; an input without samples;
                              inputs that do not agree (the message names what differs).
        And what presto.open() raises. From the loader: presto.ArgumentError for shuffle="buffer:N".
    """
    if not isinstance(epoch, str) or epoch not in _EPOCHS:
        raise ValueError(f'epoch is "longest", "shortest" or "weights", not {epoch!r}')
    pairs: list[tuple[Dataset | Path, float]]
    try:
        pairs = list(inputs.items() if isinstance(inputs, Mapping) else ((given, weight) for given, weight in inputs))
        weights = tuple(float(weight) for _, weight in pairs)
    except (TypeError, ValueError):
        raise TypeError(f"inputs are {{dataset: weight}}, or pairs of a dataset and a number, not {inputs!r}") from None
    datasets = [given if isinstance(given, Dataset) else Dataset(given) for given, _ in pairs]
    for dataset in datasets:
        _check(dataset, datasets[0], features is not None)
    arguments = dict(datasets[0]._arguments) if datasets else {}
    arguments["paths"] = tuple(dataset._arguments["paths"][0] for dataset in datasets)
    if features is not None:
        arguments["features"] = names_of(features, "features")
    for dataset in datasets:
        noted(arguments["paths"], dataset.notes)
    made = Mix(arguments, weights, epoch)
    made._shown = tuple(dataset._shown[0] for dataset in datasets)
    return made


def _check(dataset: Dataset, first: Dataset, features_are_given: bool) -> None:
    """Can it be mixed with the first one?"""
    one, other = first._arguments, dataset._arguments
    if isinstance(dataset, Mix):
        raise ArgumentError("a mix cannot be mixed again: give all its inputs")
    if len(other["paths"]) != 1:
        raise ArgumentError(f"each dataset of a mix has one path, and not {len(other['paths'])}: {', '.join(dataset._shown)}")
    if other["strategy"] is not None:
        raise ArgumentError(f"a strategy is of one dataset: open {dataset._shown[0]} without it")
    for name in one:
        if name != "paths" and one[name] != other[name] and not (name == "features" and features_are_given):
            raise ArgumentError(
                f"datasets of a mix are opened in the same way: {name} is {one[name]!r} of {first._shown[0]} and "
                f"{other[name]!r} of {dataset._shown[0]}"
            )
