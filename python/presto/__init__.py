# SPDX-License-Identifier: Apache-2.0
"""Presto: training data, stored once and streamed into training.

    import presto

    dataset = presto.open("photos-resized")
    loader = presto.Loader(dataset, batch=256, shuffle="full", seed=1, epochs=90)
    for batch in loader:
        step(batch["image"], batch["label"])   # read-only NumPy arrays on the loader's memory

presto.open() opens a dataset, TFRecord files, or with a pipeline any files. presto.Loader streams it, presto.mix() several. presto.write() and
presto.Writer make datasets, of files and of Python's values, presto.join() one of parts that several machines have written; presto.sweep() finds the best way to store one; presto.step()
makes a Python function a step; presto.inspect() looks into files.
Failures are presto.Error, by kind: presto.CorruptError has the file, the record and the byte.
"""
from typing import TYPE_CHECKING

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
from ._guesses import of_module as _of_module
from ._inspect import Damage, File, Info, SeenFeature, inspect
from ._loader import Loader
from ._mix import Mix, MixInput, mix
from ._notes import NoteWarning, Warning
from ._npy import NpyStream, npy_stream
from ._pipeline import Pipeline
from ._shm import ShmStream, shm_stream
from ._step import Step, StepError, step
from ._strategy import Strategy, load_strategy
from ._summary import Summary
from ._sweep import SweepResult, Trial, sweep
from ._worker import BadSample
from ._write import Progress, join, write
from ._writer import Writer

__version__: str = _native.version
builtin_pipelines = _native.builtin_pipelines



if not TYPE_CHECKING:

    def __getattr__(name):
        raise _of_module(__name__, name)


__all__ = [
    "ArgumentError",
    "BadSample",
    "Batch",
    "BusyError",
    "Bytes",
    "CorruptError",
    "Damage",
    "Dataset",
    "DroppedError",
    "Error",
    "Feature",
    "File",
    "ForeignError",
    "HeldError",
    "Info",
    "InputError",
    "LimitError",
    "Loader",
    "Mix",
    "MixInput",
    "NotFoundError",
    "NoteWarning",
    "NpyStream",
    "OutOfMemoryError",
    "Pipeline",
    "PipelineError",
    "Progress",
    "Ragged",
    "RaggedError",
    "SeenFeature",
    "ShmStream",
    "Step",
    "StepError",
    "StoppedError",
    "StorageError",
    "Strategy",
    "Summary",
    "SweepResult",
    "Trial",
    "TruncatedError",
    "UnsupportedError",
    "Warning",
    "Writer",
    "__version__",
    "builtin_pipelines",
    "inspect",
    "join",
    "load_strategy",
    "mix",
    "npy_stream",
    "open",
    "shm_stream",
    "step",
    "sweep",
    "write",
]
