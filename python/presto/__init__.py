# SPDX-License-Identifier: Apache-2.0
"""Presto: training data, stored once and streamed into training.

    import presto

    dataset = presto.open("photos-resized")
    loader = presto.Loader(dataset, batch=256, shuffle="full", seed=1, epochs=90)
    for batch in loader:
        step(batch["image"], batch["label"])   # read-only NumPy arrays on the loader's memory

presto.open() opens a dataset, TFRecord files, or with a pipeline any files. presto.Loader streams it.
Failures are presto.Error, by kind: presto.CorruptError has the file, the record and the byte.
"""
from . import _native
from ._arrays import Batch, Bytes, Ragged
from ._dataset import Dataset, Feature, open
from ._errors import (
    ArgumentError,
    BusyError,
    CorruptError,
    DroppedError,
    Error,
    ForeignError,
    HeldError,
    InputError,
    LimitError,
    NotFoundError,
    OutOfMemoryError,
    PipelineError,
    RaggedError,
    StoppedError,
    StorageError,
    TruncatedError,
    UnsupportedError,
)
from ._loader import Loader, Warning
from ._npy import NpyStream, npy_stream
from ._shm import ShmStream, shm_stream

__version__: str = _native.version
builtin_pipelines = _native.builtin_pipelines

__all__ = [
    "ArgumentError",
    "Batch",
    "BusyError",
    "Bytes",
    "CorruptError",
    "Dataset",
    "DroppedError",
    "Error",
    "Feature",
    "ForeignError",
    "HeldError",
    "InputError",
    "LimitError",
    "Loader",
    "NotFoundError",
    "NpyStream",
    "OutOfMemoryError",
    "PipelineError",
    "Ragged",
    "RaggedError",
    "ShmStream",
    "StoppedError",
    "StorageError",
    "TruncatedError",
    "UnsupportedError",
    "Warning",
    "__version__",
    "builtin_pipelines",
    "npy_stream",
    "open",
    "shm_stream",
]
