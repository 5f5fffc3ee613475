# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class for each kind of failure, with the place where it happened."""
from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from ._progress import size


class Error(Exception):
    """Base of all exceptions of this package. str() is one line with everything that is known.

    Attributes:
        status:  name of the C status, such as "PRESTO_ERR_CORRUPT"; that of the class if none is given.
        message: what failed, without the place.
        file:    path of the file, or None.
        record:  number of the record in the file, from 0, or None.
        offset:  bytes from the start of the file, or None.
    """

    status: str
    message: str
    file: str | None
    record: int | None
    offset: int | None

    def __init__(
        self,
        text: str,
        *,
        status: str = "",
        message: str | None = None,
        file: str | None = None,
        record: int | None = None,
        offset: int | None = None,
    ) -> None:
        super().__init__(text)
        self.status = status or next((_STATUSES[kind] for kind in type(self).__mro__ if kind in _STATUSES), "")
        self.message = text if message is None else message
        self.file = file
        self.record = record
        self.offset = offset

    def __reduce__(self) -> tuple[object, ...]:
        number = getattr(self, "errno", None)  # no entry of __dict__
        state = self.__dict__ if number is None else {**self.__dict__, "errno": number}
        return _again, (type(self), self.args[0]), state


def _again(kind: type[Error], text: str) -> Error:
    """An exception that was pickled, also of a class whose arguments are others. Its attributes come as its state."""
    # Not kind.__new__: of an exception with two bases of C it may be that of the other one.
    error: Error = OSError.__new__(kind) if issubclass(kind, OSError) else Exception.__new__(kind)
    Error.__init__(error, text)
    return error


class CorruptError(Error, ValueError):
    """Stored data is damaged: a checksum differs, or a record cannot be decoded."""


class TruncatedError(CorruptError):
    """Stored data ends too early."""


class InputError(Error, ValueError):
    """A value does not fit the step that gets it: another dtype or shape."""


class ForeignError(Error, ValueError):
    """A file that holds no TFRecords."""


class ArgumentError(Error, ValueError):
    """An argument is wrong, contradicts another one, or does not fit the input."""


class PipelineError(Error, ValueError):
    """A pipeline's text is wrong. The message has the line."""


class LimitError(Error, ValueError):
    """Larger than allowed."""


class RaggedError(Error, ValueError):
    """Samples that do not go together in one batch: a feature has two dtypes, or cannot be padded."""


class NotFoundError(Error, FileNotFoundError):
    """A path, a pipeline, a representation or a feature that is not there."""


class StorageError(Error, OSError):
    """A file cannot be read or written. `errno` says why."""


class BusyError(Error):
    """The dataset is being written, or its writing was not finished."""


class UnsupportedError(Error, NotImplementedError):
    """This build lacks a library, or the input cannot be used in this way."""


class OutOfMemoryError(Error, MemoryError):
    """Memory could not be allocated."""


class StoppedError(Error):
    """The loader was closed, by this thread or another one."""


class DroppedError(Error, LookupError):
    """All samples that were asked for were left out by a step."""


class HeldError(Error, RuntimeError):
    """More batches are held than `hold` allows. Copy what is kept: numpy.array(batch["image"])."""


_KINDS: dict[str, type[Error]] = {
    "PRESTO_DROP": DroppedError,
    "PRESTO_ERR_MEMORY": OutOfMemoryError,
    "PRESTO_ERR_IO": StorageError,
    "PRESTO_ERR_ARGUMENT": ArgumentError,
    "PRESTO_ERR_SYNTAX": PipelineError,
    "PRESTO_ERR_NOT_FOUND": NotFoundError,
    "PRESTO_ERR_UNSUPPORTED": UnsupportedError,
    "PRESTO_ERR_TYPE": InputError,
    "PRESTO_ERR_LIMIT": LimitError,
    "PRESTO_ERR_TRUNCATED": TruncatedError,
    "PRESTO_ERR_CORRUPT": CorruptError,
    "PRESTO_ERR_RAGGED": RaggedError,
    "PRESTO_ERR_STOPPED": StoppedError,
    "PRESTO_ERR_BUSY": BusyError,
    "PRESTO_ERR_FOREIGN": ForeignError,
    "held": HeldError,
}
_STATUSES: dict[type, str] = {kind: status for status, kind in _KINDS.items()}


on_make: list[Callable[[Error], None]] = []  # may add to an exception that make() has made


def make(
    status: str, text: str, message: str, file: str | None, record: int | None, offset: int | None, errno: int
) -> Error:
    """The exception for a failure of the library."""
    error = _KINDS.get(status, Error)(
        text, status=status, message=message, file=file, record=record, offset=offset
    )
    if errno and isinstance(error, OSError):
        error.errno = errno
    for add in on_make:
        add(error)
    return error


def raise_held(batches: int, held_bytes: int) -> NoReturn:
    """Too many batches are held."""
    text = (
        f"{batches} batches with {size(held_bytes)} are held, more than `hold` allows: "
        "copy what is kept (numpy.array), drop the rest, or give the loader a larger `hold`"
    )
    raise make("held", text, text, None, None, None, 0)
