# SPDX-License-Identifier: Apache-2.0
"""A program that is started to write batches: its messages, its end, what its exit code says."""
from __future__ import annotations

import atexit
import collections
import contextlib
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from typing import Any, Protocol

from ._errors import ArgumentError, Error, make
from ._process import generation

BUFFER_BYTES = 1 << 16
_PATIENCE_S = 1.0  # for a program to end when its pipe is closed; and as long again when it is told to
_STATUS_OF_EXIT = {2: "PRESTO_ERR_ARGUMENT", 3: "PRESTO_ERR_CORRUPT"}


class _Closing(Protocol):
    _program: Program | None
    _generation: int

    def close(self) -> None: ...


_alive: weakref.WeakSet[Any] = weakref.WeakSet()


def close_at_exit(stream: _Closing) -> None:
    """Close the stream when the interpreter ends, before its threads are gone."""
    _alive.add(stream)


@atexit.register
def _close_all() -> None:
    for stream in list(_alive):
        if stream._generation != generation():  # the program is that of the parent process
            continue
        if stream._program is not None:
            stream._program.process.terminate()  # a thread may wait for what it writes
        stream.close()


def fail(status: str, text: str, file: str | None = None) -> Error:
    """The exception of that kind."""
    return make(status, f"{file}: {text}" if file else text, text, file, None, None, 0)


def words(source: Sequence[Any]) -> list[str]:
    """A command as text."""
    command = [os.fspath(word) if isinstance(word, os.PathLike) else str(word) for word in source]
    if not command:
        raise ArgumentError("the command is empty")
    return command


class Program:
    """A program that writes to `stdout`. Its messages are passed on to stderr; the last ones are kept."""

    def __init__(self, command: Sequence[str], stdout: int = subprocess.PIPE) -> None:
        self.name = os.path.basename(command[0])
        self.lines: collections.deque[str] = collections.deque(maxlen=20)
        self.was_ended = False  # it did not end by itself
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, bufsize=BUFFER_BYTES
            )
        except FileNotFoundError:
            raise fail("PRESTO_ERR_NOT_FOUND", f"there is no program {command[0]!r}") from None
        self._listener = threading.Thread(target=self._listen, name="presto-program-stderr", daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            text = line.decode(errors="backslashreplace").rstrip("\n")
            self.lines.append(text)
            with contextlib.suppress(OSError, ValueError, AttributeError):  # no stderr: the line is kept all the same
                print(text, file=sys.stderr, flush=True)

    def close_pipe(self) -> None:
        if self.process.stdout is not None:
            self.process.stdout.close()

    def end(self, *, is_done: bool, is_read: bool = False) -> Error | None:
        """Close the pipe, and wait for the end of the program. If it is not done, it is told to end when closing the pipe does
        not do it. Why it failed, if it did by itself.

        `is_read`: while the pipe is read, closing it would wait for the read, which the end of the program ends. So the program
        is told at once, and the reader closes the pipe."""
        if is_read:
            self.was_ended = True
            self.process.terminate()
        else:
            self.close_pipe()
        code = self._wait(None if is_done else _PATIENCE_S)
        self._listener.join(_PATIENCE_S)
        if not self._listener.is_alive():  # else programs that it has started still have its stderr
            assert self.process.stderr is not None
            self.process.stderr.close()
        is_ours = self.was_ended or (code == -signal.SIGPIPE and not is_done)
        return None if code == 0 or is_ours else self._failure(code)

    def _wait(self, patience_s: float | None) -> int:
        try:
            return self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.was_ended = True
            self.process.terminate()
        except BaseException:  # Ctrl-C
            self.was_ended = True
            self.process.kill()
            self.process.wait()
            raise
        try:
            return self.process.wait(_PATIENCE_S)
        except BaseException as error:
            self.process.kill()
            code = self.process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            return code

    def _failure(self, code: int) -> Error:
        """What the exit code and the last messages say."""
        if code < 0:
            return fail("PRESTO_ERR_STOPPED", f"{self.name} was ended by signal {-code}")
        prefix = f"{self.name}: "
        said = [line.removeprefix(prefix) for line in self.lines if line.startswith(prefix)][-2:]
        text = prefix + "; ".join(said) if said else f"{self.name} ended with {code}"
        return fail(_STATUS_OF_EXIT.get(code, ""), text)
