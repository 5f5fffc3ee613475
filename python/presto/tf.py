# SPDX-License-Identifier: Apache-2.0
"""Presto for TensorFlow: a tf.data.Dataset of batches.

    import presto.tf

    batches = presto.tf.dataset("photos-resized", batch=256, shuffle="full")
    model.fit(batches.map(lambda batch: (batch["image"], batch["label"])), epochs=90)
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from . import _native
from ._arrays import Array
from ._dataset import Dataset, Feature, Path
from ._errors import RaggedError
from ._loader import Loader
from ._options import names_of

__all__ = ["dataset"]

Spec = Any  # tf.TensorSpec or tf.RaggedTensorSpec
_RaggedTensor: Any = tf.RaggedTensor  # checkers of types do not see what it is made of


def _tensor(values: _native.Buffer, shares: bool) -> tf.Tensor:
    """A native array as a tensor: on the same memory, if TensorFlow takes it."""
    if shares:
        try:
            return tf.experimental.dlpack.from_dlpack(values.__dlpack__())
        except (tf.errors.OpError, RuntimeError, TypeError):  # a dtype that this version knows no DLPack of, or nothing in it
            pass
    host = np.asarray(values)
    return tf.bitcast(host, tf.bfloat16) if values.dtype == "bfloat16" else tf.constant(host)


# ---- the specification ----


def _dtype(feature: Feature) -> Any:
    return tf.string if feature.dtype == "string" else tf.as_dtype(feature.dtype)


def _padded(feature: Feature, pad: Any, rows: int | None) -> Spec:
    length = pad[1] if isinstance(pad, tuple) else None
    if feature.dtype == "string":
        return tf.TensorSpec([rows, length], tf.uint8)
    return tf.TensorSpec([rows, length, *(feature.shape or (None,))[1:]], _dtype(feature))


def _spec(name: str, feature: Feature, pads: Mapping[str, Any], rows: int | None) -> Spec:
    """What the feature is in every batch; docs/streams.md says which layout a feature has."""
    if name in pads:
        return _padded(feature, pads[name], rows)
    if feature.shape is None:
        raise ValueError(f"the number of dimensions of feature {name!r} is not known: choose other features, or pad it")
    unknown = [i for i, dim in enumerate(feature.shape) if dim is None]
    if feature.dtype == "string":
        if feature.shape == ():
            return tf.TensorSpec([rows], tf.string)
        return tf.RaggedTensorSpec([rows, None], tf.string, 1, tf.int64)
    if not unknown:
        return tf.TensorSpec([rows, *feature.shape], _dtype(feature))
    ragged = unknown[-1] + 1
    return tf.RaggedTensorSpec([rows, *[None] * ragged, *feature.shape[ragged:]], _dtype(feature), ragged, tf.int64)


def _found(dataset: Dataset, rows: int) -> dict[str, Feature]:
    """The features of files that declare none: as they are in the first samples."""
    features: dict[str, Feature] = {}
    first = dataset[: min(rows, len(dataset))]
    for name, value in first.items():
        if not hasattr(value, "values"):
            features[name] = Feature(str(value.dtype), tuple(value.shape[1:]))
        elif hasattr(value, "text"):
            features[name] = Feature("string", () if value.rows is None else (None,))
        else:
            rank = 1 if value.shapes is None else value.shapes.shape[1]
            features[name] = Feature(str(value.values.dtype), (None,) * rank)
    return features


def _as_ragged(feature: Feature) -> Feature:
    return feature if feature.shape is None else Feature(feature.dtype, (None,) * max(1, len(feature.shape)))


# ---- the values ----


def _strings(values: Array, offsets: Array) -> Array:
    """TensorFlow's strings are objects of its own: each one is copied."""
    text, ends = values.tobytes(), offsets.tolist()
    return np.array([text[a:b] for a, b in zip(ends, ends[1:])] or np.empty(0, object), dtype=object)


def _bytes(native: tuple[Any, ...], spec: Spec) -> Any:
    name, _, values, offsets, rows, _ = native
    strings = tf.constant(_strings(np.asarray(values), np.asarray(offsets)), tf.string)
    if isinstance(spec, tf.TensorSpec):
        if rows is not None:
            raise RaggedError(f"feature {name!r} has not one string in each row: presto.tf.dataset(..., ragged=[{name!r}])")
        return strings
    count = len(np.asarray(offsets)) - 1
    return _RaggedTensor.from_row_splits(strings, np.arange(count + 1) if rows is None else np.asarray(rows), validate=False)


def _row_splits(shapes: Array, ragged: int) -> list[Array]:
    """The splits of each ragged dimension, of the shapes of rows: [rows, rank]."""
    splits, repeats = [], np.ones(len(shapes), np.int64)
    for dim in range(ragged):
        lengths = np.repeat(shapes[:, dim], repeats)
        splits.append(np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))
        repeats = repeats * shapes[:, dim]
    return splits


def _ragged(native: tuple[Any, ...], spec: Any, shares: bool) -> Any:
    _, layout, values, offsets, _, shapes = native
    inner = spec.shape[1 + spec.ragged_rank :]
    flat = tf.reshape(_tensor(values, shares), [-1, *inner])
    if layout == "dense":  # rows that agree by chance
        shape = np.asarray(values).shape
        shapes = np.tile(np.array(shape[1:] or (1,), np.int64), (shape[0], 1))
    elif spec.ragged_rank == 1:
        ends = np.asarray(offsets) // int(np.prod(inner, dtype=np.int64))
        return _RaggedTensor.from_row_splits(flat, ends, validate=False)
    elif shapes is None:
        shapes = np.diff(np.asarray(offsets))[:, None]
    lacking = spec.ragged_rank - np.asarray(shapes).shape[1]
    if lacking > 0:  # rows without values have one dimension
        shapes = np.pad(np.asarray(shapes), ((0, 0), (0, lacking)))
    return _RaggedTensor.from_nested_row_splits(flat, _row_splits(np.asarray(shapes), spec.ragged_rank), validate=False)


def _lists(specs: Mapping[str, Spec]) -> dict[str, str]:
    """Feature lists whose steps have different numbers of values, and where these numbers stand."""
    found = {name: name + "/row_lengths" for name in specs}
    return {name: lengths for name, lengths in found.items()
            if all(isinstance(specs.get(k), tf.RaggedTensorSpec) and specs[k].ragged_rank == 1 for k in (name, lengths))}


def _nested(values: Any, lengths: Any) -> Any:
    """[rows, steps, values] of the values of each row, and the length of each of its steps."""
    steps = _RaggedTensor.from_row_lengths(values.flat_values, lengths.flat_values, validate=False)
    return _RaggedTensor.from_row_splits(steps, lengths.row_splits, validate=False)


def _element(batch: _native.Batch, specs: Mapping[str, Spec], shares: bool) -> dict[str, Any]:
    element = {}
    for native in batch.features:
        name, layout = native[:2]
        spec = specs[name]
        if layout == "bytes":
            element[name] = _bytes(native, spec)
        elif isinstance(spec, tf.RaggedTensorSpec):
            element[name] = _ragged(native, spec, shares)
        elif layout == "ragged":
            raise RaggedError(f"rows of feature {name!r} differ: presto.tf.dataset(..., ragged=[{name!r}]), or pad it")
        else:
            element[name] = _tensor(native[2], shares)
    return element


def dataset(
    source: Loader | Dataset | Path | Iterable[Path],
    batch: int = 1,
    *,
    ragged: Iterable[str] = (),
    **options: Any,
) -> tf.data.Dataset:
    """A tf.data.Dataset whose elements are batches: dicts of tensors, tf.RaggedTensor where rows differ, strings as tf.string.

    A feature list of SequenceExamples is ragged as in tf.io.parse_sequence_example: [batch, steps, ...]. Where its steps have
    different numbers of values it is [batch, steps, values], and there is no feature NAME/row_lengths.

    Copies: none for numbers, dense or ragged. TensorFlow gets the loader's memory by DLPack, and gives it back. TensorFlow may
    write into it when it computes in place; so with `cache`, or a dataset opened with map=True, where batches can show memory
    that is read again, numbers are copied once. Strings are copied once (as Python's bytes) and once more into TensorFlow's own.

    Each iteration is a `for` over a presto.Loader: the next epoch, in another order, and an iteration that was left goes on.
    Batches come ready-made, so tf.data needs no .shuffle(), .batch() or .shard(); .map() and .prefetch() work as ever.

    Args:
        source:  a presto.Dataset, what presto.open() takes, or a presto.Loader. The position is the loader's (state_dict());
                 what tf.data has prefetched counts as taken.
        batch, and others: as presto.Loader. With drop_last=True, the first dimension is `batch` in element_spec.
        ragged:  features that are to be ragged in each dimension. Default: those that the dataset declares so; of files
                 that declare nothing (TFRecords of other programs), those whose rows differ in the first batch.

    Raises:
        presto.RaggedError: in the loop: rows of a feature differ, and its specification says that they do not.
    """
    if isinstance(source, Loader):
        if batch != 1 or options:
            raise TypeError("a presto.Loader has its options already")
        loader = source
    else:
        loader = Loader(source, batch, **options)
    if loader._as_tuple is not None or loader._collate is not None:
        raise TypeError("elements are dicts of tensors: .map() of tf.data makes tuples of them, not as_tuple or collate")
    taken = loader._options
    chosen = None if taken["features"] is None else {name.decode("utf-8", "surrogateescape") for name in taken["features"]}
    names = frozenset(names_of(ragged, "ragged"))
    features = loader.dataset.features or _found(loader.dataset, loader.batch)
    features = {name: _as_ragged(feature) if name in names else feature for name, feature in features.items()}
    pads = {name.decode("utf-8", "surrogateescape"): (value, length or None) for name, value, length in taken["pads"]}
    rows = loader.batch if taken["drop_last"] else None
    specs = {k: _spec(k, f, pads, rows) for k, f in features.items() if chosen is None or k in chosen}
    lists = _lists(specs)
    shown = {name: tf.RaggedTensorSpec([rows, None, None], spec.dtype, 2, tf.int64) if name in lists else spec
             for name, spec in specs.items() if name not in lists.values()}
    shares = "cache_bytes" not in taken and not loader.dataset._arguments["map"]

    def batches() -> Iterator[dict[str, Any]]:
        place = loader._start_for()
        while True:
            found: list[_native.Batch] = []
            try:
                loader._take(place, found)
                element = _element(found[0], specs, shares)
            except StopIteration:
                return
            except BaseException:
                loader._put_back(place, found)
                raise
            for name, lengths in lists.items():
                element[name] = _nested(element[name], element.pop(lengths))
            yield element

    return tf.data.Dataset.from_generator(batches, output_signature=shown)
