# SPDX-License-Identifier: Apache-2.0
"""What batches hold: arrays on the loader's memory, rows of differing length, bytes."""
from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._html import html_table

Array = NDArray[Any]

try:  # NumPy has no bfloat16 of its own
    from ml_dtypes import bfloat16 as _bfloat16
except ImportError:
    _bfloat16 = None


def _row(row: Any, rows: int) -> int:
    """The number of a row, from 0."""
    try:
        number = operator.index(row)
    except TypeError:
        raise TypeError(f"rows are taken one by one, by a number, not by {row!r}: [rows[r] for r in range(2)]") from None
    if not -rows <= number < rows:
        raise IndexError(f"there are {rows} rows, and no row {number}")
    return number % rows


class Ragged:
    """Rows of differing length: row r is `values[offsets[r]:offsets[r + 1]]`.

    Attributes:
        values:  [n], the values of all rows back to back.
        offsets: int64 [rows + 1], the first one 0.
        shapes:  int64 [rows, rank] if a row has two dimensions or more: its shape, then -1. Else None.

    `ragged[r]` is row r in its own shape. Nothing is copied; all arrays are read-only.
    """

    __slots__ = ("values", "offsets", "shapes")

    # Arrays of NumPy, or of the library whose loader made them.
    def __init__(self, values: Any, offsets: Any, shapes: Any = None) -> None:
        self.values = values
        self.offsets = offsets
        self.shapes = shapes

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> Any:
        row = _row(row, len(self))
        found = self.values[self.offsets[row] : self.offsets[row + 1]]
        if self.shapes is None:
            return found
        return found.reshape([n for n in self.shapes[row].tolist() if n >= 0])

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(len(self)))

    @property
    def lengths(self) -> Any:
        """int64 [rows]: how many values each row has; an array as the offsets are one."""
        return self.offsets[1:] - self.offsets[:-1]

    def __repr__(self) -> str:
        return f"presto.Ragged({len(self)} rows, {len(self.values)} values of {self.values.dtype})"


class Bytes:
    """Strings and other bytes, with their lengths.

    Attributes:
        values:  uint8 [n], all strings back to back.
        offsets: int64 [strings + 1]; string s is `values[offsets[s]:offsets[s + 1]]`.
        rows:    int64 [rows + 1] if a row may have any number of strings: row r has the strings
                 rows[r] to rows[r + 1]. None: string r is row r.

    `column[r]` copies row r into a bytes object (or a list of them); `text(r)` decodes it.
    """

    __slots__ = ("values", "offsets", "rows")

    def __init__(self, values: Array, offsets: Array, rows: Array | None = None) -> None:
        self.values = values
        self.offsets = offsets
        self.rows = rows

    def __len__(self) -> int:
        return len(self.offsets if self.rows is None else self.rows) - 1

    def _string(self, i: int) -> bytes:
        found: bytes = self.values[self.offsets[i] : self.offsets[i + 1]].tobytes()
        return found

    def __getitem__(self, row: int) -> Any:
        row = _row(row, len(self))
        if self.rows is None:
            return self._string(row)
        return [self._string(i) for i in range(self.rows[row], self.rows[row + 1])]

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(len(self)))

    def view(self, string: int) -> memoryview:
        """String number `string` without a copy."""
        string = range(len(self.offsets) - 1)[string]
        return self.values.data[int(self.offsets[string]) : int(self.offsets[string + 1])]

    def text(self, row: int, encoding: str = "utf-8") -> Any:
        """Row `row` as a str, or a list of them."""
        found = self[row]
        return found.decode(encoding) if isinstance(found, bytes) else [one.decode(encoding) for one in found]

    def texts(self, encoding: str = "utf-8") -> list[Any]:
        """All rows as by text()."""
        return [self.text(row, encoding) for row in range(len(self))]

    def __repr__(self) -> str:
        return f"presto.Bytes({len(self)} rows, {len(self.values)} bytes)"


def described(value: Any) -> str:
    """A feature's values, in a few words."""
    if isinstance(value, (Ragged, Bytes)):
        return repr(value).removeprefix("presto.")
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        where = getattr(value, "device", None)
        shown = "" if where is None or str(where) == "cpu" else f" on {where}"
        return f"{str(value.dtype).removeprefix('torch.')}[{','.join(map(str, value.shape))}]{shown}"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _each(value: Any, how: Callable[[Any], Any]) -> Any:
    if isinstance(value, Ragged):
        return Ragged(how(value.values), how(value.offsets), None if value.shapes is None else how(value.shapes))
    return value if isinstance(value, Bytes) else how(value)


class Batch(dict[str, Any]):
    """A dict from the name of a feature to its values.

    Values are read-only NumPy arrays [rows, ...] on the loader's memory, which lives as long as
    somebody holds one of them; `Ragged` where rows differ; `Bytes` for strings.

    Attributes:
        rows:    number of samples.
        epoch:   number of the epoch, from 0.
        first:   position of the first row in this rank's sequence of the epoch.
        skipped: samples left out of this batch, because of errors or by a step.
    """

    # A batch that another library makes anew from the dict, such as torch's DataLoader, knows no place: -1.
    epoch: int = -1
    first: int = -1
    rows: int = -1
    skipped: int = -1
    _numbers: Any = None  # the array, or the native one that it is made from when it is asked for
    _delivered: _native.Batch | None = None  # of a batch as a loader delivers it
    _given: tuple[Any, ...] = ()  # its values as they were then

    @classmethod
    def empty(cls) -> Batch:
        """A batch without samples."""
        batch = cls()
        batch.epoch = batch.first = batch.rows = batch.skipped = 0
        batch._numbers = np.empty(0, np.int64)
        return batch

    @property
    def numbers(self) -> Any:
        """int64 [rows]: which sample of the dataset each row is. None: another library has made the batch anew from the dict."""
        if isinstance(self._numbers, _native.Buffer):
            self._numbers = np.asarray(self._numbers)
        return self._numbers

    def __repr__(self) -> str:
        epoch = "" if self.epoch < 0 else f", epoch {self.epoch}"
        skipped = f", {self.skipped} left out" if self.skipped > 0 else ""
        values = "".join(f"\n  {name}: {described(value)}" for name, value in self.items())
        return f"<presto.Batch: {self._count()} rows{epoch}{skipped}{values}>"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        rows = [("rows", str(self._count()))]
        if self.epoch >= 0:
            rows.append(("epoch", str(self.epoch)))
        return html_table("presto.Batch", [*rows, *((name, described(value)) for name, value in self.items())])

    def __missing__(self, name: object) -> Any:
        way = '. A loop gets tuples by presto.Loader(..., as_tuple=("image", "label"))' if isinstance(name, int) else ""
        raise KeyError(f"{name!r} is no feature of this batch: it has {', '.join(self) or 'none'}{way}")

    def _count(self) -> int:
        return self.rows if self.rows >= 0 or not self else max(len(value) for value in self.values())

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        """The batch as Arrow's capsules of schema and array, for pyarrow, polars, presto.Writer.add_batch:

            pyarrow.RecordBatch.from_struct_array(pyarrow.array(batch))   # pyarrow.record_batch() sees the dict alone

        Columns are on the loader's memory, not moved, as those of presto.Loader.__arrow_c_stream__().

        Raises:
            TypeError:         it is no batch as a loader of NumPy arrays delivered it: values were changed or moved.
            presto.InputError: a feature of complex numbers, which Arrow lacks.
        """
        native = self._delivered
        names = () if native is None else tuple(feature[0] for feature in native.features)
        same = names == tuple(self) and all(map(operator.is_, self._given, self.values()))
        if native is None or not same:
            raise TypeError("a batch whose values were changed, moved or copied has no Arrow form: it is that of the loader's memory")
        return native.arrow_array()

    def _moved(self, how: Callable[[Any], Any]) -> Batch:
        """What `how` makes of each array that has this method; the place, and what is no such array, stay."""
        made = Batch((name, _each(value, how)) for name, value in self.items())
        made.epoch, made.first, made.rows, made.skipped = self.epoch, self.first, self.rows, self.skipped
        made._numbers = self._numbers
        return made

    def to(self, *where: Any, **how: Any) -> Batch:
        """The batch with its tensors moved: each one's own to(). What moves batches, as Lightning and Accelerate do, calls this, so
        that `numbers` and the rest stay. Arrays of NumPy stay as they are."""
        return self._moved(lambda array: array.to(*where, **how) if hasattr(array, "to") else array)

    def pin_memory(self, *device: Any) -> Batch:
        """The batch with its tensors in page-locked memory."""
        return self._moved(lambda array: array.pin_memory(*device) if hasattr(array, "pin_memory") else array)

    def __copy__(self) -> Batch:
        return self._moved(lambda array: array)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (dict(self), (self.epoch, self.first, self.rows, self.skipped), self.numbers)


def _rebuild(values: dict[str, Any], place: tuple[int, int, int, int], numbers: Any) -> Batch:
    batch = Batch(values)
    batch.epoch, batch.first, batch.rows, batch.skipped = place
    batch._numbers = numbers
    return batch


def array_of(array: Array, dtype: str) -> Array:
    """The array with its dtype of that name, which NumPy may lack."""
    return array.view("V2" if _bfloat16 is None else _bfloat16) if dtype == "bfloat16" else array


@overload
def _optional(values: None) -> None: ...
@overload
def _optional(values: _native.Buffer) -> Array: ...
def _optional(values: _native.Buffer | None) -> Array | None:
    return None if values is None else np.asarray(values)


def wrap(native: _native.Batch) -> Batch:
    """The native batch as a dict of arrays."""
    batch = Batch()
    for name, layout, values, offsets, rows, shapes in native.features:
        array = array_of(np.asarray(values), values.dtype)
        if layout == "dense" or offsets is None:
            batch[name] = array
        elif layout == "ragged":
            batch[name] = Ragged(array, np.asarray(offsets), _optional(shapes))
        else:
            batch[name] = Bytes(array, np.asarray(offsets), _optional(rows))
    batch.epoch, batch.first, batch.rows, batch.skipped = native.place
    batch._numbers = native.numbers
    batch._delivered, batch._given = native, tuple(batch.values())
    return batch


def _head(value: Any, rows: int) -> Any:
    if isinstance(value, Ragged):
        offsets = value.offsets[: rows + 1]
        shapes = None if value.shapes is None else value.shapes[:rows]
        return Ragged(value.values[: int(offsets[-1])], offsets, shapes)
    if isinstance(value, Bytes):
        strings = rows if value.rows is None else int(value.rows[rows])
        offsets = value.offsets[: strings + 1]
        return Bytes(value.values[: int(offsets[-1])], offsets, None if value.rows is None else value.rows[: rows + 1])
    return value[:rows]


def head_of(batch: Batch, rows: int) -> Batch:
    """The first rows of a batch, without a copy."""
    head = Batch((name, _head(value, rows)) for name, value in batch.items())
    head.epoch, head.first, head.rows, head.skipped = batch.epoch, batch.first, rows, batch.skipped
    head._numbers = batch.numbers[:rows]
    return head


def sample_of(batch: Batch, row: int = 0) -> dict[str, Any]:
    """One row of a batch, copied: arrays, NumPy scalars, bytes."""
    sample = {}
    for name, values in batch.items():
        value = values[row]
        sample[name] = value.copy() if isinstance(value, np.ndarray) else value
    return sample
