# SPDX-License-Identifier: Apache-2.0
"""Datasets: what the input is, and random access to it."""
from __future__ import annotations

import difflib
import multiprocessing
import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, SupportsIndex, overload

import numpy as np

from . import _native
from . import _notes
from ._arrays import Batch, array_of, Bytes, Ragged, sample_of, wrap
from ._changes import value_text
from ._checks import names_of, natural
from ._draws import draw_of_torch
from ._filesystem import Given, checked, given as given_place, in_child, stripped
from ._guesses import Advised, advised
from ._errors import ArgumentError, Error, ForeignError, NotFoundError
from ._html import html_table
from ._paths import Path as Path, absolute, paths_of
from ._process import generation
from ._strategy import UNPROCESSED, Strategy, strategy_of

_PICK_BYTES = 64 << 20  # what a picker keeps for its next call
_LOOKED_AT = 16  # samples, where nothing declares their features
_CHECKS = {"full": 0, "header": 1, "none": 2}  # presto_checks
_CODE_IF_NAMED, _CODE_NEVER = 0, 2  # presto_code


def printable(text: str) -> str:
    """A text from a file, so that it cannot steer a terminal."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def changes_of(given: Mapping[str, object] | Iterable[str]) -> tuple[str, ...]:
    """{"random-crop.height": 160} or ["random-crop.height=160"], as the latter."""
    if isinstance(given, Mapping):
        texts: tuple[Any, ...] = tuple(f"{name}={value_text(value)}" for name, value in given.items())
    elif isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise TypeError(f'set is a dict, or a list of "STEP.OPTION=VALUE", not {given!r}')
    else:
        texts = tuple(given)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f'set is a dict, or a list of "STEP.OPTION=VALUE", and {text!r} is none')
    return texts


def _from_of(from_: str | None, start: str | None) -> str | None:
    """from_=, also as it was called before."""
    if start is None:
        return from_
    if from_ is not None:
        raise ArgumentError("from_= and start= are one thing: leave out start=")
    _notes.note("presto.open", ["start= of presto.open is now called from_=; the old name will go"])
    return start


class Feature(NamedTuple):
    """What is known of a feature before any data.

    `dtype` is NumPy's name, "bfloat16", or "string" for bytes. `shape` is that of one sample, with None
    for dimensions that differ; None if not even their number is known.
    """

    dtype: str
    shape: tuple[int | None, ...] | None


def _empty_value(feature: Feature) -> Any:
    """No rows of the feature."""
    shape, none = feature.shape, np.zeros(1, np.int64)
    if feature.dtype == "string":
        return Bytes(np.empty(0, np.uint8), none, None if shape == () else none)
    known = () if shape is None else tuple(dim for dim in shape if dim is not None)
    is_dense = shape is not None and len(known) == len(shape)
    dtype = "uint16" if feature.dtype == "bfloat16" else feature.dtype
    values = array_of(np.empty((0, *known) if is_dense else 0, dtype), feature.dtype)
    return values if is_dense else Ragged(values, none)


def once(names: Iterable[str]) -> tuple[str, ...]:
    """The names of features that are asked for, each only once."""
    asked = tuple(names)
    if not asked:  # to the library, no names are all
        raise ArgumentError("features is an empty list: name one, or leave it out for all of them")
    for i, name in enumerate(asked):
        if name in asked[:i]:
            raise ArgumentError(f"feature {name!r} is asked for twice")
    return asked


def empty_batch(features: Mapping[str, Feature]) -> Batch:
    """A batch without samples, of what is known of the features."""
    batch = Batch.empty()
    batch.update((name, _empty_value(features[name])) for name in sorted(features))
    return batch


def shown_spec(dtype: str, shape: tuple[int | None, ...] | None) -> str:
    """float32[224,224,3], with ? for what differs."""
    dims = "..." if shape is None else ",".join("?" if dim is None else str(dim) for dim in shape)
    return dtype if shape == () else f"{dtype}[{dims}]"


def _encode(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


class Dataset(Advised):
    """An opened input: a numbered sequence of samples. Made by presto.open().

    `dataset[17]` is a dict with the features of sample 17: arrays, NumPy scalars, bytes; all are the caller's own. It is
    computed anew each time; random steps draw as in epoch 0 with seed 0. `dataset[[3, 1, 4]]`, `dataset[0:8]` and
    `dataset[mask]`, with a truth value for each sample, are a presto.Batch of these samples, in this order. All run in the
    calling thread; any number of threads may call. With torch's DataLoader they draw by torch's random numbers, anew in each
    epoch; set_epoch() chooses otherwise.
    A number below 0 counts from the end; one that there is not is an IndexError. For streams use presto.Loader.

    A Dataset can be pickled: the other process opens the paths again. The same happens after a fork. Relative paths are those
    of the working folder in which the dataset was opened.
    """

    _has_samples = True

    @advised
    def __init__(
        self,
        paths: Path | Iterable[Path],
        *,
        pipeline: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        from_: str | None = None,
        to: str | None = None,
        set: Mapping[str, object] | Iterable[str] = (),
        features: Iterable[str] | None = None,
        verify: str = "full",
        map: bool = False,
        strategy: Strategy | Path | None = None,
        split: str | None = None,
        part: str | int | None = None,
        split_seed: int = 0,
        plugins: Path | Iterable[Path] = (),
        tensors: str = "decoded",
        filesystem: Any = None,
        start: str | None = None,
    ) -> None:
        from_ = _from_of(from_, start)
        fs = None if filesystem is None else checked(filesystem)
        self._shown = paths_of(paths, of=fs)
        features = None if features is None else names_of(features, "features")
        if not isinstance(split_seed, SupportsIndex) or not 0 <= operator.index(split_seed) < 1 << 64:
            raise ValueError(f"split_seed is a whole number from 0 to 2^64 - 1, not {split_seed!r}")
        changes = changes_of(set)
        from ._pipeline import pipeline_name

        if not isinstance(verify, str) or verify not in _CHECKS:
            raise ValueError(f"verify is full, header or none, not {verify!r}")
        if tensors not in ("decoded", "raw"):
            raise ValueError(f'tensors is "decoded" or "raw", not {tensors!r}')
        if split is not None and not isinstance(split, str):
            raise TypeError(f'split is a ratio such as "90/10", not {split!r}')
        if split is not None and "/" not in split and part is None:
            raise ArgumentError(f'{split!r} is no ratio: a part is chosen by split="90/10", part="train"')
        for name, value in (("from_", from_), ("to", to)):
            if value is not None and not isinstance(value, str):
                raise TypeError(f"{name} is the name of a representation, not {value!r}")
        if part is not None and not isinstance(part, (str, SupportsIndex)):
            raise TypeError(f'part is a name such as "train", or a number, not {part!r}')
        if (split is None) != (part is None):
            given, lacks = ("split", "part") if part is None else ("part", "split")
            raise ArgumentError(f'{given}= needs {lacks}=, as in split="90/10", part="train"')
        self._arguments: dict[str, Any] = {
            # They are opened again, perhaps when the working folder is another one.
            "paths": tuple(absolute(path) for path in self._shown) if fs is None else stripped(self._shown, fs),
            "pipeline": None if pipeline is None else pipeline_name(pipeline),
            "from_": from_,
            "to": to,
            "set": changes,
            "features": None if features is None else once(features),
            "verify": verify,
            "map": bool(map),
            "strategy": None if strategy is None else strategy_of(strategy).settled(),
            "split": split,
            "part": None if part is None else str(part),
            "split_seed": operator.index(split_seed),
            "plugins": plugin_files(plugins),
            "tensors": tensors,
            "filesystem": fs,
        }
        self._place: Given | None = None  # where paths are, if it is no storage that the library knows
        self._draw = (0, 0)
        self._open_fresh()
        if strategy is not None:
            self.check_strategy(self._arguments["strategy"])
        self.check_names(self._arguments["features"] or ())

    def _open_fresh(self) -> None:
        self._generation = generation()
        fs = self._arguments["filesystem"]
        if fs is not None:
            if self._place is not None and not self._place.is_current:
                fs = self._arguments["filesystem"] = in_child(fs)
            self._place = given_place(fs)
        self._streams: dict[tuple[bool, bool], _native.Stream] = {}
        self._idle: list[_native.Loader] = []
        # Files of others without an index are counted when somebody asks.
        self._known = self.walked()
        if self._known.count is not None:
            self._streams[False, False] = self._known
        self._note()

    def stream(self, *, tolerate: bool = False, cached: bool = False) -> _native.Stream:
        """The native input of this process, its samples counted (not part of the public interface)."""
        if self._generation != generation():
            self._open_fresh()
        key = (tolerate, cached)
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = self._new_stream(tolerate=tolerate, cached=cached)
            if key == (False, False):
                self._known = stream
                self._note()
        return stream

    def _note(self) -> None:
        """Warn of what may not be what was meant, once, and not in the processes that open it again."""
        if self._generation == 0 and multiprocessing.parent_process() is None:
            _notes.note(self._arguments["paths"], self._known.cautions)

    def walked(self, *, tolerate: bool = False, cached: bool = False) -> _native.Stream:
        """An input for one loader in order, which may count on the way (not part of the public interface)."""
        return self._new_stream(tolerate=tolerate, cached=cached, count_later=True)

    def known(self) -> _native.Stream:
        """The input as far as it is known without counting."""
        if self._generation != generation():
            self._open_fresh()
        return self._known

    def _new_stream(self, *, tolerate: bool, cached: bool, count_later: bool = False) -> _native.Stream:
        given = self._arguments
        wanted: Strategy | None = given["strategy"]
        names = {name: given[name] for name in ("pipeline", "set", "plugins")}
        names["code"] = _CODE_IF_NAMED
        if wanted is not None and wanted.stored == UNPROCESSED and given["pipeline"] is None:
            # What is stored knows its pipeline; else the strategy names it, perhaps somebody else's.
            names["pipeline"], names["set"] = wanted.pipeline, wanted.set + given["set"]
            names["plugins"] = wanted.plugins + given["plugins"]
            names["code"] = _CODE_IF_NAMED if wanted.is_own else _CODE_NEVER
        options = {
            "pipeline": None if names["pipeline"] is None else os.fsencode(names["pipeline"]),
            "set": tuple(_encode(change) for change in names["set"]),
            "plugins": tuple(os.fsencode(file) for file in names["plugins"]),
            "code": names["code"],
            **{name: given[name] for name in ("from_", "to", "map", "split", "part", "split_seed")},
            "raw_tensors": given["tensors"] == "raw",
            "verify": _CHECKS[given["verify"]],
            "tolerate": tolerate,
            "cached": cached,
            "count_later": count_later,
            **self._mixing(),
        }
        try:
            place, paths = self._place, given["paths"]
            encoded = tuple(map(os.fsencode, paths)) if place is None else place.encoded(paths)
            return _native.Stream(encoded, options)
        except (ForeignError, NotFoundError) as error:
            is_there = all(map(os.path.exists, paths)) if place is None else isinstance(error, ForeignError)
            if names["pipeline"] is None and paths and is_there:
                error.add_note('files that are no TFRecords need a pipeline: presto.open(path, pipeline="cv"), or one of your own')
            raise

    def _mixing(self) -> dict[str, Any]:
        """What makes the paths the inputs of a mix."""
        return {}

    def check_names(self, names: Iterable[str]) -> None:
        """Refuse a feature that the input does not have, as far as its features are known (not public)."""
        wanted = list(names)
        known: Iterable[str] = self.features or (self._names_seen() if wanted else ())
        for name in wanted:
            if known and name not in known:
                alike = difflib.get_close_matches(str(name), known, 1)
                hint = f"; is it {alike[0]!r}?" if alike else ""
                raise ArgumentError(f"the samples have no feature {name!r}, only {', '.join(map(printable, sorted(known)))}{hint}")

    def _names_seen(self) -> Iterable[str]:
        """Of files that declare nothing: the features of the first samples."""
        looker = _native.Loader(self.walked(), {"threads": 0, "batch": _LOOKED_AT, "prefetch_bytes": _PICK_BYTES})
        try:
            first = looker.next()
            return frozenset(name for name, *_ in first.features) if first is not None else ()
        except Error:  # the loop tells what is damaged
            return ()
        finally:
            looker.close()

    def check_strategy(self, strategy: Strategy) -> None:
        """Refuse a strategy that is about another form, or another pipeline, than what is stored here (not public)."""
        self.known().check_strategy(os.fsencode(strategy.pipeline), strategy.stored, strategy.codec)

    # ---- parts ----

    def split(self, ratio: str, seed: int = 0) -> list[Dataset]:
        """The parts of the samples, as for training and evaluation: `train, test = dataset.split("90/10")`.

        Which part a sample is in depends on its name and `seed` alone (docs/loading.md): files that are added change the
        part of no other sample. So the sizes are nearly those of the ratio. Samples of a part are numbered from 0.

        Args:
            ratio: two to 16 whole numbers: "90/10", "80/10/10".
            seed:  for another split of the same ratio.

        Raises:
            presto.ArgumentError: no ratio, or the dataset is a part already.
            presto.NotFoundError: a part has no sample.
        """
        return [self._part(ratio, number, seed) for number in range(1, str(ratio).count("/") + 2)]

    def _part(self, split: str | None, part: str | int | None, seed: int) -> Dataset:
        if self._arguments["split"] is not None:
            raise ArgumentError("the dataset is a part already: split what it is a part of")
        made = self._with({**self._arguments, "split": split, "part": part, "split_seed": seed})
        made._shown = self._shown
        return made

    def _with(self, arguments: dict[str, Any]) -> Dataset:
        return Dataset(**arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self._arguments,), {"_shown": self._shown, "_draw": self._draw}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    # ---- what it is ----

    def __len__(self) -> int:
        count = self.stream().count
        assert count is not None
        return count

    @property
    def epoch_samples(self) -> int:
        """Samples that an epoch of a stream has, over all ranks: all of them, but for a mix."""
        return len(self)

    @property
    def features(self) -> dict[str, Feature]:
        """Name -> Feature(dtype, shape), as batches have them. Of TFRecords of other programs, empty, unless the first ones hold
        serialized tensors or feature lists."""
        stream = self.known()
        found = {name: Feature(*spec) for name, spec in stream.features}
        if stream.output is not None and stream.main is not None:
            found[stream.main] = Feature(*stream.output)
        return found

    @property
    def main(self) -> str | None:
        """The feature that the pipeline's steps work on."""
        return self.known().main

    @property
    def labels(self) -> list[str]:
        """What the numbers of the feature `label` stand for; empty if they have no names."""
        return self.known().labels

    @property
    def classes(self) -> list[str]:
        """As torchvision's ImageFolder: what the numbers of the feature `label` stand for. The same as `labels`."""
        return self.labels

    @property
    def class_to_idx(self) -> dict[str, int]:
        """As torchvision's ImageFolder: the number of each label, by its name."""
        return {name: number for number, name in enumerate(self.labels)}

    @property
    def nbytes(self) -> int:
        """Bytes on disk."""
        return self.stream().bytes

    @property
    def pipeline(self) -> str | None:
        """Name of the pipeline, or None."""
        return self.known().pipeline

    @property
    def notes(self) -> list[str]:
        """What should be known of how the input was found: files left out, and why."""
        return self.known().notes

    def explain(self) -> str:
        """The steps that run when a sample is loaded, a line each."""
        return self.known().explain

    def __repr__(self) -> str:
        given = self._arguments
        paths = ", ".join(repr(path) for path in self._shown)
        part = "" if given["split"] is None else f", {given['part']} of {given['split']}"
        names = ", ".join(map(printable, self.features)) or "unknown features"
        notes = "".join(f"; note: {printable(note)}" for note in self.known().cautions)
        return f"<presto.Dataset {paths}{part}: {len(self)} samples of {names}{notes}>"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        given = self._arguments
        rows = [("path", ", ".join(str(path) for path in self._shown)), ("samples", f"{len(self):,}")]
        if given["split"] is not None:
            rows.append(("part", f"{given['part']} of {given['split']}"))
        rows += [(name, shown_spec(feature.dtype, feature.shape)) for name, feature in sorted(self.features.items())]
        if self.labels:
            rows.append(("labels", f"{len(self.labels)}: {', '.join(self.labels[:8])}{', ...' if len(self.labels) > 8 else ''}"))
        if self.pipeline is not None:
            rows.append(("pipeline", self.pipeline))
        rows += [("note", note) for note in self.known().cautions]
        return html_table("presto.Dataset", rows)

    # ---- random access ----

    def set_epoch(self, epoch: int, seed: int = 0) -> None:
        """Random steps of samples by number draw as in this epoch of a presto.Loader with this seed, from now on, also in worker
        processes that are started after this. For programs that ask for samples themselves, epoch by epoch, as Grain does. (In a
        DataLoader of torch, and in its workers, they draw by torch's random numbers.)"""
        self._draw = natural(seed, "seed"), natural(epoch, "epoch")

    def _drawn(self) -> tuple[int, int]:
        """Seed and epoch that random steps draw by."""
        drawn = draw_of_torch()
        return self._draw if drawn is None else (drawn, 0)

    def _numbers_at(self, places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Numbers of samples, by their places in the dataset."""
        return places

    def _pick(self, numbers: Sequence[int] | np.ndarray[Any, Any], *, by_number: bool = False) -> Batch:
        count = Dataset.__len__(self) if by_number else len(self)
        if isinstance(numbers, np.ndarray) and numbers.dtype.kind == "u" and numbers.size > 0 and numbers.max() >= count:
            raise IndexError(f"there are {count} samples, and no number {numbers.max()}")  # as int64 it might be one below 0
        try:
            wanted = np.asarray(numbers, dtype=np.int64)
        except OverflowError:
            raise IndexError(f"there are {count} samples") from None
        if wanted.ndim != 1:
            raise IndexError("samples are asked for by a number, a slice or a list of numbers")
        if len(wanted) == 0:
            names = self._arguments["features"]
            return empty_batch({k: f for k, f in self.features.items() if names is None or k in names})
        if wanted.min() < -count or wanted.max() >= count:
            raise IndexError(f"there are {count} samples, and no number {wanted.max() if wanted.max() >= count else wanted.min()}")
        wanted = np.where(wanted < 0, wanted + count, wanted)
        if not by_number:
            wanted = self._numbers_at(wanted)
        stream = self.stream()
        try:
            picker = self._idle.pop()
        except IndexError:
            names = self._arguments["features"]
            options = {
                "threads": 0,
                "batch": 2,
                "prefetch_bytes": _PICK_BYTES,
                "features": None if names is None else tuple(_encode(name) for name in names),
            }
            picker = _native.Loader(stream, options)
        try:
            if stream.draws:
                picker.redraw(*self._drawn())
            found = picker.pick(wanted.astype(np.uint64).tobytes())
        except Error:
            self._idle.append(picker)
            raise
        except BaseException:  # from a signal handler: the picker has stopped
            picker.close()
            raise
        told = picker.notes()
        self._idle.append(picker)
        _notes.note_kinds(self._arguments["paths"], told)
        return wrap(found)

    @overload
    def __getitem__(self, key: SupportsIndex) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> Any: ...
    @overload
    def __getitem__(self, key: Sequence[int] | np.ndarray[Any, Any]) -> Any: ...
    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int):
            return sample_of(self._pick([key]))
        if isinstance(key, slice):
            return self._pick(range(*key.indices(len(self))))
        if isinstance(key, (str, bytes)) or key is None:
            hint = f"; a feature of sample i is dataset[i][{key!r}]" if key in self.features else ""
            raise TypeError(f"samples are numbered, {key!r} is no number{hint}")
        if np.ndim(key) == 0:
            return sample_of(self._pick([operator.index(key)]))
        array = np.asarray(key)
        if array.dtype.kind == "f":  # perhaps of whole numbers that no other dtype holds
            array = np.array(key, object)
        return self._pick(self._numbers_of(array))

    def _numbers_of(self, key: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Sample numbers, or which of all samples are wanted."""
        if key.dtype.kind == "b":
            if key.shape != (len(self),):
                raise IndexError(f"there are {len(self)} samples, and {key.size} truth values say which are wanted")
            return np.flatnonzero(key)
        are_whole = key.dtype.kind in "iu" or (key.dtype.kind == "O" and all(isinstance(one, (int, np.integer)) for one in key.flat))
        if key.size > 0 and not are_whole:
            raise TypeError("samples are asked for by whole numbers")
        return key

    def __getitems__(self, numbers: list[int]) -> list[dict[str, Any]]:
        """What torch's DataLoader asks for: one dict a sample."""
        batch = self._pick(numbers)
        if batch.rows != len(numbers):
            return [self[number] for number in numbers]
        return [sample_of(batch, row) for row in range(batch.rows)]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[number] for number in range(len(self)))

    def to_iterable_dataset(self, batch: int = 256, **options: Any) -> Any:
        """A Hugging Face datasets.IterableDataset of the samples; see presto.huggingface.to_iterable_dataset()."""
        from .huggingface import to_iterable_dataset

        return to_iterable_dataset(self, batch, **options)


def _reopen(arguments: dict[str, Any]) -> Dataset:
    return Dataset(**arguments)


def plugin_files(plugins: Path | Iterable[Path]) -> tuple[str, ...]:
    """Absolute paths: a name without a slash would be looked for where the system has its libraries."""
    if not isinstance(plugins, (str, bytes, os.PathLike, Iterable)):
        raise TypeError(f"plugins are paths of files, not {plugins!r}")
    several = (plugins,) if isinstance(plugins, (str, bytes, os.PathLike)) else tuple(plugins)
    for one in several:
        if not isinstance(one, (str, bytes, os.PathLike)):
            raise TypeError(f"plugins are paths of files, and {one!r} is none")
    return tuple(os.path.abspath(os.fsdecode(file)) for file in several)


def dataset_of(
    given: Dataset | Path | Iterable[Path],
    *,
    strategy: Strategy | Path | None = None,
    split: str | None = None,
    part: str | int | None = None,
    split_seed: int = 0,
    filesystem: Any = None,
) -> Dataset:
    """The dataset itself, or what the paths are; of it a part."""
    if not isinstance(given, Dataset):
        return Dataset(given, strategy=strategy, split=split, part=part, split_seed=split_seed, filesystem=filesystem)
    if filesystem is not None:
        raise ArgumentError("filesystem= says where paths are, and a presto.Dataset is open already: give it to presto.open()")
    if strategy is not None:
        given.check_strategy(strategy_of(strategy))
    return given if split is None and part is None else given._part(split, part, split_seed)


@advised
def open(
    paths: Path | Iterable[Path],
    *,
    pipeline: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    from_: str | None = None,
    to: str | None = None,
    set: Mapping[str, object] | Iterable[str] = (),
    features: Iterable[str] | None = None,
    verify: str = "full",
    map: bool = False,
    strategy: Strategy | Path | None = None,
    split: str | None = None,
    part: str | int | None = None,
    split_seed: int = 0,
    plugins: Path | Iterable[Path] = (),
    tensors: str = "decoded",
    filesystem: Any = None,
    start: str | None = None,
) -> Dataset:
    """Open a dataset of presto-write, TFRecord files, or with `pipeline` any files.

    TFRecord files without an index are counted when their number of samples is needed: by len(), for samples by number, and by a
    presto.Loader with ranks, a cache on disk, or the shuffle "full" or "blocks:N". Any other loader begins at once.

    Args:
        paths:    a path, or several. A dataset of presto-write is one folder.
        pipeline: name of a built-in pipeline, path of a YAML file, a presto.Pipeline, or a dict that a file would hold. A
                  dataset of presto-write knows its own.
        from_:    the representation that the files hold; the steps after it run (TFRecords of other programs).
        to:       the representation to stop at. Default: the end of the pipeline.
        set:      changes to the pipeline: {"random-crop.height": 160}, or a list of "STEP.OPTION=VALUE".
                  {"source.classes": [...]} gives the classes, so that their numbers do not depend on the files: a list, a path, or
                  a presto.Dataset, whose labels they are.
        features: names of the features wanted; others are not parsed. Default: all.
        verify:   which checksums are checked: "full", "header" or "none".
        map:      read shards through mmap.
        strategy: of presto.sweep(), or a path of strategy.yaml: if it stores nothing, it names the pipeline. Else the dataset
                  must be what the strategy stores.
        split:    with `part`, only one part of the samples: "90/10", "80/10/10" (whole numbers). Which part a sample is in
                  depends on its name and split_seed alone. Numbers and len() are those of the part. Dataset.split() gives
                  all parts.
        part:     "train" or "eval"; of three, "train", "validation" or "test"; or its number, from 1.
        split_seed: for another split of the same ratio.
        plugins:  files of plugins, shared objects with steps of your own (docs/own-steps.md). That runs their code.
        tensors:  "decoded": where the first records of other programs hold serialized tensors (tf.io.serialize_tensor), samples
                  have the tensors. "raw": their bytes.
        filesystem: an fsspec file system that has the paths, such as fsspec.filesystem("sftp", host="example.org"), a zip file, or
                  one of your own. It is called by the library's threads, and slower than what the library reads itself: this
                  machine's files, s3://, gs://, hf://datasets/, https:// (docs/object-storage.md).
        start:    what `from_` was called before. It is still taken, with a note.

    Raises:
        presto.ArgumentError: contradictions: a feature that there is not, a strategy of another dataset, a part of no ratio.
        presto.NotFoundError: a path or pipeline that is not there.
        presto.PipelineError: the pipeline's text is wrong.
        presto.CorruptError:  dataset.json or a shard is damaged.
        presto.BusyError:     the dataset is still being written.
    """
    return Dataset(**locals())  # the same parameters
