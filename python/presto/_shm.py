# SPDX-License-Identifier: Apache-2.0
"""Batches of another process through shared memory: the reader of `presto-load --format shm`."""
from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

from . import _native
from ._arrays import Batch, wrap
from ._errors import BusyError, Error, HeldError, StoppedError
from ._process import generation
from ._program import Program, close_at_exit, fail, words


class ShmStream(Iterator[Batch]):
    """Batches of a ring, to a whole end or an error. Made by shm_stream().

    Attributes:
        samples: samples that the loop has taken.
        batches: batches that it has taken.
        ended:   whether the writer has said that this was all.
    """

    def __init__(self, ring: _native.Ring, program: Program | None) -> None:
        self.samples = 0
        self.batches = 0
        self.ended = False
        self._ring = ring
        self._program = program
        self._generation = self._locks_generation = generation()
        self._lock = threading.RLock()  # a signal handler may close the stream while it is read
        self._is_closed = False
        close_at_exit(self)

    def _enter(self) -> threading.RLock:
        """In a child process, a thread that is not there may have held the lock."""
        if self._locks_generation != generation():
            self._locks_generation, self._lock = generation(), threading.RLock()
        return self._lock

    def _next(self) -> Batch | None:
        native = self._ring.next()
        if self._is_closed:  # by a signal handler, which ran within this call
            raise fail("PRESTO_ERR_STOPPED", "the stream was closed")
        if native is None:
            return None
        batch = wrap(native)
        self.samples += batch.rows
        self.batches += 1
        return batch

    def __next__(self) -> Batch:
        with self._enter():
            if self._is_closed:
                raise StopIteration
            try:
                batch = self._next()
            except BusyError as error:
                raise HeldError(error.args[0], status="held") from None
            except StoppedError:
                self._close()
                raise
            except Error as error:
                failed = self._close(is_done=error.status == "PRESTO_ERR_TRUNCATED")
                if failed is not None and error.status == "PRESTO_ERR_TRUNCATED":
                    raise failed from error
                raise
            if batch is not None:
                return batch
            self.ended = True
            failed = self._close(is_done=True)
            if failed is not None:
                raise failed
            raise StopIteration

    @property
    def held(self) -> tuple[int, int]:
        """(batches, bytes) in the ring that somebody holds."""
        return self._ring.held

    def _close(self, *, is_done: bool = False) -> Error | None:
        """Why the program failed, if it did."""
        if self._is_closed or self._generation != generation():
            return None
        self._is_closed = True
        self._ring.close()
        if self._program is None:
            return None
        return self._program.end(is_done=is_done)

    def close(self) -> None:
        """Hang up; the program that writes ends, after a second by a signal. Arrays that are held stay valid."""
        self._ring.close()  # also ends the wait of another thread
        with self._enter():
            self._close()

    def __enter__(self) -> ShmStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not getattr(self, "_is_closed", True) and not is_finalizing():
            self._close()


def _started(command: list[str]) -> ShmStream:
    """A program whose stdout is a socket that nobody else can find."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours:
        with theirs:
            program = Program(command, theirs.fileno())
        try:
            ring = _native.Ring(None, ours.fileno(), 0.0)
        except Error as error:
            ours.close()
            raise (program.end(is_done=error.status == "PRESTO_ERR_TRUNCATED") or error) from None
        except BaseException:
            ours.close()
            program.end(is_done=False)
            raise
    return ShmStream(ring, program)


def shm_stream(source: Any, *, wait: float = 10.0) -> ShmStream:
    """Read batches that `presto-load --format shm` puts into shared memory, to a whole end or an error.

        for batch in presto.shm_stream(["presto-load", "-b", "32", "--format", "shm", "photos-resized"]): ...
        for batch in presto.shm_stream("/run/user/1000/photos.socket"): ...     # presto-load --format shm:SOCKET

    Args:
        source: a command as a list, which is started with a socket as its stdout; or the path of the socket.
        wait: seconds to wait for a writer at the path.

    Batches are presto.Batch. Their arrays are read-only, on the shared memory, and aligned to 64 bytes. The writer gets the memory
    back when they are dropped, in any order. Rows and offsets are copies, so that nothing the writer does can make them wrong.

    Raises:
        presto.NotFoundError: there is no such program, or nobody writes to this socket.
        presto.BusyError: the writer has another reader.
        presto.ArgumentError: the writer is of another user; or the program ended with 2.
    Raises, from the loop:
        presto.HeldError: no room is left for the next batch, as the loop holds too many. Drop some, and go on.
        presto.TruncatedError: the writer is gone, and has not said that this was all.
        presto.CorruptError: the writer read corrupt data, or does not keep to the protocol.
        presto.StoppedError: the stream was closed while the loop was reading; or a signal ended the program.
        presto.Error: any other failure of the writer, as it would be raised by a Loader.
    """
    if isinstance(source, (list, tuple)):
        return _started(words(source))
    if isinstance(source, (str, os.PathLike)):
        path = os.fsencode(source)
        if b"\0" in path:
            raise fail("PRESTO_ERR_NOT_FOUND", "a path has no NUL")
        return ShmStream(_native.Ring(path, -1, float(wait)), None)
    raise TypeError(f"a ring is read by the path of a socket or a command, not by {type(source).__name__}")
