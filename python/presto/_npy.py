# SPDX-License-Identifier: Apache-2.0
"""The stream of `presto-load --format npy`: a file, a pipe, or a program that is started."""
from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import IO, Any

import numpy as np

from ._arrays import Array, Batch, Bytes, Ragged, array_of
from ._errors import ArgumentError, Error, make
from ._process import generation
from ._program import BUFFER_BYTES, Program, close_at_exit, fail, words

_MAGIC = b"\x93NUMPY\x01\x00"
# As presto-load writes it; nothing else is read.
_HEADER = re.compile(
    rb"\{'descr': '([<|][fiubcVS]\d{1,9})', 'fortran_order': False, 'shape': \(((?:\d{1,18}, ?)*)\), \} *\n"
)
_MOST_HEADERS = 256
_ARRAYS = {"dense": ("values",), "ragged": ("values", "offsets", "shapes"), "bytes": ("values", "offsets", "rows")}


def _foreign(text: str) -> Error:
    return fail("PRESTO_ERR_CORRUPT", f"this is no npy stream of presto-load: {text}")


class _Arrays:
    """Arrays off a binary stream. `taken` counts bytes."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.taken = 0
        self._headers: dict[bytes, tuple[np.dtype[Any], tuple[int, ...]]] = {}
        self._reads_into = hasattr(stream, "readinto")

    def _read(self, size: int, *, may_end: bool = False) -> bytes:
        found = self.stream.read(size) or b""
        while 0 < len(found) < size:  # a raw stream gives what there is
            more = self.stream.read(size - len(found))
            if not more:
                break
            found += more
        self.taken += len(found)
        if len(found) < size and (found or not may_end):
            raise fail("PRESTO_ERR_TRUNCATED", f"the stream ends within an array, after {self.taken} bytes")
        return bytes(found)

    def _parse(self, header: bytes) -> tuple[np.dtype[Any], tuple[int, ...]]:
        known = self._headers.get(header)
        if known is not None:
            return known
        found = _HEADER.fullmatch(header)
        if found is None:
            raise _foreign(f"an array's header is {header[:100]!r}")
        try:
            dtype = np.dtype(found[1].decode())
        except (TypeError, ValueError):
            raise _foreign(f"an array has the type {found[1]!r}") from None
        shape = tuple(int(dim) for dim in found[2].replace(b" ", b"").split(b",")[:-1])
        if dtype.hasobject or len(shape) > 32:
            raise _foreign(f"an array's header is {header[:100]!r}")
        if len(self._headers) >= _MOST_HEADERS:
            self._headers.clear()
        self._headers[header] = dtype, shape
        return dtype, shape

    def _fill(self, array: Array) -> None:
        if array.nbytes == 0:
            return
        room = array.reshape(-1).view(np.uint8).data
        while len(room) > 0:
            if self._reads_into:
                count = self.stream.readinto(room) or 0
            else:
                part = self.stream.read(len(room)) or b""
                count = len(part)
                room[:count] = part
            self.taken += count
            if count == 0:
                raise fail("PRESTO_ERR_TRUNCATED", f"the stream ends within an array, after {self.taken} bytes")
            room = room[count:]

    def next(self) -> Array | None:
        """The next array; None at the end of the stream."""
        start = self._read(len(_MAGIC) + 2, may_end=True)
        if not start:
            return None
        if start[: len(_MAGIC)] != _MAGIC:
            raise _foreign(f"there is {start!r} where an array should begin")
        dtype, shape = self._parse(self._read(start[-2] | start[-1] << 8))
        try:
            array = np.empty(shape, dtype)
        except (ValueError, MemoryError):
            raise fail("PRESTO_ERR_MEMORY", f"cannot allocate an array {dtype} {shape}") from None
        self._fill(array)
        return array


class NpyStream(Iterator[Batch]):
    """Batches of a stream, to a whole end or an error. Made by npy_stream().

    Attributes:
        samples: samples that the loop has taken. A new stream with `skip=first + samples` is the rest.
        batches: batches that it has taken.
        ended:   whether the stream has said that it was whole.
    """

    def __init__(self, stream: Any, program: Program | None, skip: int | None, name: str | None) -> None:
        self.samples = 0
        self.batches = 0
        self.ended = False
        self._arrays = _Arrays(stream)
        self._program = program
        self._skip = skip
        self._name = name
        self._features: list[dict[str, Any]] | None = None
        self._generation = generation()
        # Without a lock, since a signal handler may close it: who reads sets one and then looks at the other, who closes likewise.
        self._is_reading = False
        self._is_closed = False
        close_at_exit(self)

    # ---- messages ----

    def _check_start(self, message: dict[str, Any]) -> None:
        if self._skip is not None and message.get("skip", 0) != self._skip:
            raise fail(
                "PRESTO_ERR_ARGUMENT", f"the stream begins at sample {message.get('skip', 0)!r}, not at {self._skip}", self._name
            )

    def _check_end(self, message: dict[str, Any]) -> None:
        said = message.get("batches"), message.get("samples")
        if said != (self.batches, self.samples):
            raise _foreign(f"{self.batches} batches of {self.samples} samples came, and the end says {said[0]!r} of {said[1]!r}")

    def _take_message(self, array: Array) -> None:
        try:
            message = json.loads(array.item())
        except (ValueError, RecursionError):
            raise _foreign("a message is no JSON") from None
        if not isinstance(message, dict) or message.get("presto") != "npy":
            raise _foreign("a message is not presto-load's")
        if message.get("end"):
            if self.batches == 0:
                self._check_start(message)
            self._check_end(message)
            self.ended = True
            return
        if message.get("version") != 1:
            raise fail("PRESTO_ERR_UNSUPPORTED", f"an npy stream of version {message.get('version')!r}, not 1", self._name)
        if self.batches == 0:
            self._check_start(message)
        self._features = _checked(message.get("features"))

    # ---- batches ----

    def _feature(self, feature: dict[str, Any], first: Array | None) -> Any:
        arrays: dict[str, Array] = {}
        for name in feature["arrays"]:
            array = self._arrays.next() if first is None else first
            first = None
            if array is None or array.dtype.kind == "S":
                raise fail("PRESTO_ERR_TRUNCATED", f"the stream ends within feature {feature['name']!r}", self._name)
            arrays[name] = array
        _check_arrays(feature, arrays)
        values = array_of(arrays["values"], feature["dtype"])
        if feature["layout"] == "dense":
            return values
        if feature["layout"] == "ragged":
            return Ragged(values, arrays["offsets"], arrays.get("shapes"))
        return Bytes(values, arrays["offsets"], arrays.get("rows"))

    def _batch(self, first: Array) -> Batch:
        batch = Batch()
        lengths = set()
        unread: Array | None = first
        for feature in self._features or ():
            value = self._feature(feature, unread)
            unread = None
            batch[feature["name"]] = value
            lengths.add(len(value))
        if len(lengths) != 1:
            raise _foreign(f"the features of a batch have {sorted(lengths)} rows")
        batch.rows = lengths.pop()
        self.batches += 1
        self.samples += batch.rows
        return batch

    def _next(self) -> Batch | None:
        while not self.ended:
            array = self._arrays.next()
            if array is None:
                text = f"the stream ended after {self.batches} batches without its end: presto-load failed or was stopped"
                raise fail("PRESTO_ERR_TRUNCATED", text, self._name)
            if array.dtype.kind != "S":
                if not self._features:
                    raise _foreign("it does not begin with a description")
                return self._batch(array)
            self._take_message(array)
        return None

    def _read(self) -> Batch | None:
        """As _next(). A stream that is closed meanwhile, by another thread or a signal handler, is a StoppedError."""
        taken = self.batches, self.samples
        self._is_reading = True
        try:
            batch = None if self._is_closed else self._next()
        except Error:
            if not self._is_closed:
                raise
        finally:
            self._is_reading = False
            if self._is_closed:
                self._close_source()
        if not self._is_closed:
            return batch
        self.batches, self.samples = taken
        raise fail("PRESTO_ERR_STOPPED", "the stream was closed", self._name)

    def __next__(self) -> Batch:
        if self._is_closed:
            raise StopIteration
        try:
            batch = self._read()
        except Error as error:
            failed = self._close(is_done=error.status == "PRESTO_ERR_TRUNCATED")
            if failed is not None and error.status in ("PRESTO_ERR_TRUNCATED", "PRESTO_ERR_CORRUPT"):
                raise failed from error
            raise
        except BaseException:
            self._close()
            raise
        if batch is None:
            failed = self._close(is_done=True)
            if failed is not None:
                raise failed
            raise StopIteration
        return batch

    # ---- the end ----

    def _close(self, *, is_done: bool = False) -> Error | None:
        """Why the program failed, if it did. In a child process the program is the parent's, and so is its end."""
        if self._is_closed or self._generation != generation():
            return None
        self._is_closed = True
        if self._program is not None:
            return self._program.end(is_done=is_done, is_read=self._is_reading)
        if not self._is_reading:
            self._close_source()
        return None

    def _close_source(self) -> None:
        """What was opened here: the pipe of a program, or a file by its path."""
        if self._program is not None:
            self._program.close_pipe()
        elif self._name is not None:
            self._arrays.stream.close()

    def close(self) -> None:
        """Stop reading. A program that was started ends: if closing its pipe does not do it within a second, by a signal. A read
        under way, in another thread or below a signal handler, ends with presto.StoppedError: of a program at once, as that gets
        the signal then; of a file or pipe when that has bytes or ends.
        """
        self._close()

    def __enter__(self) -> NpyStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        # While the interpreter ends, the thread that reads stderr is gone, with the lock of the pipe's buffer.
        if not getattr(self, "_is_closed", True) and not is_finalizing():
            self._close()


def _are_offsets(offsets: Array, count: int) -> bool:
    """Do they cut `count` items into parts, one behind the other?"""
    good = offsets.ndim == 1 and offsets.dtype == np.int64 and len(offsets) > 0
    return bool(good and offsets[0] == 0 and offsets[-1] == count and (offsets[1:] >= offsets[:-1]).all())


def _are_shapes(shapes: Array, offsets: Array) -> bool:
    """Does each row have the shape that is said: dimensions, then -1?"""
    if shapes.ndim != 2 or shapes.dtype != np.int64 or len(shapes) != len(offsets) - 1 or shapes.shape[1] > 32:
        return False
    known = shapes >= 0
    if (shapes < -1).any() or (known[:, 1:] & ~known[:, :-1]).any():
        return False
    dims = np.where(known, shapes, 1)
    sizes = np.prod(dims, axis=1)
    fits = np.prod(dims.astype(np.float64), axis=1) < 1 << 62  # else the product of whole numbers is another one
    return bool(fits.all() and (sizes == np.diff(offsets)).all())


def _check_arrays(feature: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Dtypes, ranks and sizes, so that each row of a batch can be shown."""
    values, layout = arrays["values"], feature["layout"]
    good = values.ndim >= 1 and (feature["dtype"] != "bfloat16" or values.itemsize == 2)
    if layout != "dense":
        good = good and values.ndim == 1 and _are_offsets(arrays["offsets"], len(values))
    if layout == "bytes":
        good = good and values.dtype == np.uint8
        good = good and ("rows" not in arrays or _are_offsets(arrays["rows"], len(arrays["offsets"]) - 1))
    elif "shapes" in arrays:
        good = good and _are_shapes(arrays["shapes"], arrays["offsets"])
    if not good:
        raise _foreign(f"feature {feature['name']!r} has arrays that do not go together")


def _checked(features: Any) -> list[dict[str, Any]]:
    """The features of a description, as far as the reader relies on them."""
    if not isinstance(features, list):
        raise _foreign("a description lacks its features")
    names: set[str] = set()
    for feature in features:
        layout = feature.get("layout") if isinstance(feature, dict) else None
        known = _ARRAYS.get(layout) if isinstance(layout, str) else None
        arrays = feature.get("arrays") if known is not None else None
        if known is None or not isinstance(arrays, list) or not isinstance(feature.get("name"), str):
            raise _foreign(f"a description has {str(feature)[:100]}")
        if arrays[: 1 if layout == "dense" else 2] != list(known[:2]) or not all(name in known for name in arrays):
            raise _foreign(f"feature {feature['name']!r} has the arrays {str(arrays)[:100]}")
        if len(set(arrays)) != len(arrays) or feature["name"] in names:
            raise _foreign(f"a description has feature {feature['name']!r}, or one of its arrays, twice")
        names.add(feature["name"])
        if not isinstance(feature.setdefault("dtype", ""), str):
            raise _foreign(f"feature {feature['name']!r} has the dtype {str(feature['dtype'])[:100]}")
    return features


def npy_stream(source: Any, *, skip: int | None = None) -> NpyStream:
    """Read what `presto-load --format npy` prints, to a whole end or an error.

        for batch in presto.npy_stream(sys.stdin.buffer): ...
        for batch in presto.npy_stream(["presto-load", "-b", "32", "--format", "npy", "photos-resized"]): ...

    Args:
        source: a binary file or pipe; the path of one; or a command as a list, which is started. The command is stopped when
            the loop is left.
        skip: the sample of the stream that it is to begin with, as in --skip: added to a command, and checked.

    Batches are presto.Batch; arrays are new ones, which may be written to. `epoch`, `first`, `skipped` are -1: a stream
    does not tell them. The program's messages go to stderr.

    Raises, from the loop:
        presto.TruncatedError: the stream ends without saying that it was whole.
        presto.CorruptError: what is read is no npy stream; or the program ended with 3, as its data is corrupt.
        presto.ArgumentError: the program ended with 2; or the stream begins at another sample than `skip`.
        presto.StoppedError: a signal ended the program; or the stream was closed while the loop was reading.
        presto.Error: it failed otherwise. The text is its last messages.
        presto.NotFoundError: there is no such program or file.
    """
    if skip is not None and skip < 0:
        raise ArgumentError(f"skip is the number of a sample, not {skip}")
    if isinstance(source, (list, tuple)):
        command = words(source)
        program = Program(command if skip is None else [*command, "--skip", str(skip)])
        return NpyStream(program.process.stdout, program, skip, None)
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        try:
            stream: IO[bytes] = open(path, "rb", buffering=BUFFER_BYTES)  # noqa: SIM115
        except FileNotFoundError:
            raise fail("PRESTO_ERR_NOT_FOUND", "there is no such file", str(path)) from None
        except OSError as error:
            raise make("PRESTO_ERR_IO", f"{path}: {error.strerror}", str(error.strerror), str(path), None, None, error.errno or 0) from None
        return NpyStream(stream, None, skip, str(path))
    if not hasattr(source, "read"):
        raise TypeError(f"an npy stream is read from a file, a path or a command, not from {type(source).__name__}")
    return NpyStream(source, None, skip, None)
