# SPDX-License-Identifier: Apache-2.0
"""Writer: samples from Python become a dataset."""
from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

from . import _native
from ._arrays import Batch
from ._end import alive
from ._errors import InputError
from ._guesses import advised
from ._loader import Loader
from ._notes import note
from ._options import natural, natural_or_none
from ._paths import Path, absolute, output_of
from ._process import cpu_count, size
from ._summary import Summary

FILE_COMPRESSIONS = {"none": 0, "gzip": 1, "zlib": 2}

_REFUSED = 0  # PRESTO_ARROW_REFUSED


def _pairs(options: Mapping[str, str] | None, name: str) -> tuple[str, ...]:
    if options is None:
        return ()
    if not isinstance(options, Mapping):
        raise TypeError(f"{name} is a dict from columns to types, not {options!r}")
    return tuple(f"{column}={kind}" for column, kind in options.items())


def file_compression(name: str) -> int:
    """The number of "none", "gzip" or "zlib"."""
    if name not in FILE_COMPRESSIONS:
        raise ValueError(f'file_compression is "none", "gzip" or "zlib", not {name!r}')
    return FILE_COMPRESSIONS[name]


class Writer:
    """Writes samples of any Python program into a dataset, as presto-write does: shards, indexes, dataset.json.

        with presto.Writer("digits", codec="zstd:1") as writer:
            for image, label in pairs:
                writer.add({"image": image, "label": label})
        print(writer.summary)

    A sample is a dict from names to values:

        value                        in the dataset                  read back as
        NumPy array, any shape       its dtype and shape             the same array
        int, NumPy's int64           int64                           int64
        float, NumPy's float32       float32 (a float loses digits)  float32
        other scalars of NumPy       their dtype                     the same scalar
        str; bytes, bytearray        UTF-8; the bytes                bytes
        list or tuple of int, float, int64, float32, strings,        one row; rows may differ in length
          str or bytes                 one dimension
        list of other NumPy scalars  their dtype, one dimension      likewise
        None, an empty list          nothing                         an empty row; see below

    Arrays of other libraries are taken if numpy.asarray() takes them. What would be stored as another value is refused: a float
    that is too large for float32, masked values, dates, lists of texts and numbers, arrays of more than 7 dimensions.
    The first sample fixes the names, and the first value of each its dtype and number of dimensions; sizes may differ. A sample
    that does not fit is refused with presto.InputError, which names it, and is not added; the writer goes on.

    A feature that has values in some samples and none in others is declared as rows that differ, its numbers and texts as lists
    of one: batches have it as presto.Ragged, or as lists in presto.Bytes, also where all of their rows are empty.

    add_batch() takes tables: record batches of pyarrow, frames of pandas and polars, anything that speaks Arrow.

    Samples stand in the order in which they were added: dataset[17] is the 18th. Compression and writing run in threads
    of the library without the GIL. Any number of Python threads may add; samples are copied before add() returns.

    Left by an exception, or dropped without finish(), the folder is that of an interrupted presto-write: no dataset.json,
    so that presto.open() refuses it. So it is if the process is killed. Whole shards stay: a writer with the same arguments
    and resume=True keeps them; `writer.samples` says how many samples they have, and with which one to go on.

    Args:
        dir:         the folder, which may be "s3://bucket/key" or "gs://bucket/key"; it must be empty, or not exist yet.
        codec:       compresses each record: "none", "zstd:1", "lz4", ...; TensorFlow reads "none", "gzip" and "zlib".
        shard_bytes: a shard ends before it would become larger: bytes, or text such as "64MiB". Default: 256 MiB.
        shards:      a number of shards instead; then `samples` must be given.
        samples:     how many samples will be added; another number is refused.
        threads:     that compress and write; "auto": the CPUs of this process; 0: add() does it itself.
        main:        the feature that the steps of a pipeline work on, if one goes on with this dataset.
        labels:      what the numbers of the feature "label" stand for.
        file_compression: compresses each file as a whole: "gzip" or "zlib", as TensorFlow's TFRecordOptions.
        resume:      go on with an interrupted run.
        prefetch:    memory for samples that wait.
        sync:        files are on the disk before they get their names; False is faster, and safe but for power cuts.

    Raises:
        presto.ArgumentError: the folder holds something, or arguments contradict each other.
        presto.BusyError:     another writer has the folder.
        presto.NotFoundError, presto.UnsupportedError: no such codec.
    """

    @advised
    def __init__(
        self,
        dir: Path,
        codec: str = "none",
        *,
        shard_bytes: int | str | None = None,
        shards: int | None = None,
        samples: int | None = None,
        threads: int | str = "auto",
        main: str | None = None,
        labels: Iterable[str] = (),
        file_compression: str = "none",
        resume: bool = False,
        prefetch: int | str | None = None,
        sync: bool = True,
    ) -> None:
        if isinstance(threads, str) and threads != "auto":
            raise ValueError(f'threads is a number or "auto", not {threads!r}')
        if isinstance(labels, str):
            raise TypeError("labels is a list of names")
        self.path = output_of(dir, may_be_bucket=True)
        self.summary: Summary | None = None
        options: dict[str, Any] = {
            "dir": os.fsencode(absolute(self.path)),  # each shard is a new file
            "codec": codec,
            "shard_bytes": None if shard_bytes is None else size(shard_bytes, "shard_bytes"),
            "shards": natural_or_none(shards, "shards"),
            "samples": natural_or_none(samples, "samples"),
            "threads": cpu_count() if isinstance(threads, str) else natural(threads, "threads"),
            "main_feature": main,
            "label_names": tuple(labels),
            "file_compression": _compression(file_compression),
            "resume": resume,
            "prefetch_bytes": None if prefetch is None else size(prefetch, "prefetch"),
            "sync": sync,
        }
        self._native = _native.Writer(options)
        alive.add(self)

    def add(self, sample: Mapping[str, Any]) -> None:
        """Add a sample: a mapping from names of features to values.

        Raises:
            presto.InputError:   it does not fit: the message names the sample and the feature. It is not added.
            presto.StorageError: writing has failed, now or for an earlier sample (a full disk, ...): all that can be
                                 done is to leave.
            presto.StoppedError: the writer is finished, aborted, or of before a fork.
        """
        self._native.add(sample if type(sample) is dict else dict(sample))

    def add_all(self, samples: Iterable[Mapping[str, Any]]) -> None:
        """Add each of them."""
        for sample in samples:
            self.add(sample)

    def add_batch(
        self,
        batch: Any,
        *,
        convert: Mapping[str, str] | None = None,
        tensors: Mapping[str, str] | None = None,
        nulls: str = "empty",
    ) -> None:
        """Add the rows of a table: anything with __arrow_c_array__ or __arrow_c_stream__, such as record batches, tables and readers of
        pyarrow, frames of pandas and polars, relations of DuckDB, a presto.Batch, a presto.Loader. Columns are features:

            table = pyarrow.parquet.read_table("points.parquet")
            writer.add_batch(table, convert={"when": "int64"}, tensors={"image": "uint8[28,28,1]"})

        column                               in the dataset
        int64, float32                       a number, as of add()
        other ints and floats, bool          a scalar of that dtype
        texts, binary, dictionaries of them  bytes
        lists of int64, float32, texts       one dimension; rows may differ in length
        lists of other numbers               their dtype, one dimension
        lists of lists of numbers            an array; the inner lists of a row are equally long
        fixed_shape_tensor                   an array of that shape
        struct                               its fields, as "name.field"
        a missing value                      nothing, as None in add()

        Of a presto.Loader and its batches, booleans are stored as uint8 and bfloat16 as uint16, with a warning; rows of several
        dimensions that differ in shape are refused. add_all(presto.open(path)) keeps them.

        Rows are read by the library, without the GIL; none becomes a Python object. Any number of threads may add.

        Args:
            convert: for columns that are refused otherwise: timestamps, dates, times and durations are "int64", in their unit;
                     decimals "string" or "float64".
            tensors: lists that are arrays: their dtype and shape, such as "float32[3,224,224]"; lists in lists end where its dimensions do.
            nulls:   "error" refuses missing values.

        Raises:
            presto.InputError:    columns that cannot be stored: all are named, and nothing is added. A row whose value cannot be
                                  stored, or the stream that is read fails: rows before are added, `samples` says how many there are.
            presto.RaggedError:   lists in a list that differ in length, or are not as long as their tensor.
            presto.ArgumentError: an option that names no column.
            presto.CorruptError:  arrays that contradict their schema.
            presto.StorageError, presto.StoppedError: as add().
        """
        if nulls not in ("empty", "error"):
            raise ValueError(f'nulls is "empty" or "error", not {nulls!r}')
        if hasattr(batch, "__arrow_c_array__"):
            schema, data = batch.__arrow_c_array__()
            if isinstance(batch, Batch) and batch._delivered is not None:
                self._see(batch._delivered)
        elif isinstance(batch, Loader):
            schema, data = None, batch._arrow_stream(self._see)
        elif hasattr(batch, "__arrow_c_stream__"):
            schema, data = None, batch.__arrow_c_stream__()
        else:
            raise TypeError(f"a {type(batch).__name__} is no table of Arrow's: it has neither __arrow_c_array__ nor __arrow_c_stream__")
        options = {"convert": _pairs(convert, "convert"), "tensors": _pairs(tensors, "tensors"), "refuses_nulls": nulls == "error"}
        notes: list[tuple[int, str, str]] = []
        try:
            self._native.add_arrow(schema, data, options, notes)
        except InputError as error:
            refused = [f"{column} ({text})" for kind, column, text in notes if kind == _REFUSED]
            if not refused:
                raise
            columns = "1 column" if len(refused) == 1 else f"{len(refused)} columns"
            raise InputError(f"{columns} cannot be stored: {', '.join(refused)}", status=error.status) from None
        finally:
            note(self.path, (f"column {column!r}: {text}" for kind, column, text in notes if kind != _REFUSED))

    def _see(self, native: _native.Batch) -> None:
        """A loader's batch as Arrow has it: what is lost on the way is told, or refused."""
        features = native.features
        for name, _, _, _, _, shapes in features:
            if shapes is not None:
                raise InputError(
                    f"column {name!r}: its rows have several dimensions and differ in shape, which Arrow's lists do not have: "
                    "pad it, or add the samples of presto.open() by add_all()",
                    status="PRESTO_ERR_TYPE",
                )
        for name, _, values, _, _, _ in features:
            if values.dtype in ("bool", "bfloat16"):
                stored = "uint8" if values.dtype == "bool" else "uint16, its bits"
                note(self.path, [f"column {name!r}: {values.dtype} of a loader, is stored as {stored}: add_all() of presto.open() keeps it"])

    @property
    def samples(self) -> int:
        """Samples added, with those that an interrupted run has kept."""
        return self._native.samples if self.summary is None else self.summary.samples

    def finish(self) -> Summary:
        """Complete the dataset. `with` does it. Until it returns, the dataset is not there.

        Raises:
            presto.StorageError:  writing has failed.
            presto.ArgumentError: fewer samples than `samples`.
        """
        if self.summary is None:
            self.summary = Summary(path=self.path, **self._native.finish())
            self._native.close()
        return self.summary

    def abort(self) -> None:
        """Give up: what is not in a whole shard is gone, and nothing looks whole. After finish(): nothing."""
        self._native.close()

    def _at_exit(self) -> None:
        self.abort()

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abort()
            return
        try:
            self.finish()
        finally:
            self.abort()

    def __repr__(self) -> str:
        return f"<presto.Writer {self.path!r}>" if self.summary is None else f"<presto.Writer, done: {self.summary!r}>"

    def __reduce__(self) -> Any:
        raise TypeError("a presto.Writer cannot be pickled: each process has its own folder")


_compression = file_compression
