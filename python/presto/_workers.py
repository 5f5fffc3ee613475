# SPDX-License-Identifier: Apache-2.0
"""What copies of a loader in the workers of a DataLoader agree on: which epochs are theirs, and who has the last sample."""
from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.context import get_spawning_popen
from multiprocessing.reduction import DupFd
from typing import Any

import numpy as np

from . import _native
from ._arrays import head_of
from ._loader import _ENDLESS, Loader
from ._state import Position, saved

_MOST_ITERATORS, _MOST_OWNERS = 8, 256  # that are remembered
_FAR = 1 << 20  # epochs that a loop without end may have delivered


class Epochs:
    """Which range of epochs each iterator of a DataLoader delivers.

    Workers that live as long as one iterator are copies of a loader that itself never moves. So they ask here: the first worker
    of an iterator takes the epochs behind those of the iterator before it, and the others get the same ones. An iterator is
    known by its seed, which is new for each one and common to its workers, and by the process that owns the DataLoader.

    All copies share a file without a name. It is inherited by fork, and handed over when a process is spawned; another pickle
    has a new one. The lock is one of the kernel's, which ends with its process, since workers are killed at any moment. Threads
    of one process do not exclude each other by it: the caller does.
    """

    def __init__(self, file: int | None = None) -> None:
        self._file = os.memfd_create("presto-epochs") if file is None else file

    def __reduce__(self) -> tuple[Any, ...]:
        return (Epochs, ()) if get_spawning_popen() is None else (_handed, (DupFd(self._file),))

    # At the end of the interpreter the names of modules are gone before the last objects are.
    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        if (file := getattr(self, "_file", None)) is not None:
            close(file)

    @contextmanager
    def _iterators(self, owner: int) -> Iterator[list[dict[str, Any]]]:
        """Those of a process, the latest one last, to be changed."""
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        try:
            before = os.pread(self._file, os.fstat(self._file).st_size, 0).partition(b"\n")[0]
            owners = json.loads(before or b"{}")
            found = owners.pop(str(owner), [])
            yield found
            owners[str(owner)] = found[-_MOST_ITERATORS:]
            after = json.dumps(dict(list(owners.items())[-_MOST_OWNERS:])).encode()
            if after != before:
                os.pwrite(self._file, after + b"\n", 0)
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)

    def join(self, seed: int, worker: int, until: int, step: int) -> int | None:
        """In a new worker: the epoch that it begins with; None: it goes on where the loader was that it is a copy of.

        Args:
            until: where the range of that loader ends.
            step:  epochs of a range.
        """
        with self._iterators(_owner()) as found:
            for one in reversed(found):
                if one["seed"] == seed and worker not in one["workers"]:  # else the program has set the same seed again
                    one["workers"].append(worker)
                    break
            else:
                first = found[-1]["until"] if found else None
                until = until if first is None else first + step
                found.append(one := {"seed": seed, "workers": [worker], "first": first, "until": until})
            begin: int | None = one["first"]
            return begin

    def reach(self, seed: int, until: int) -> None:
        """In a worker: its iterator delivers the epochs before this one, because it was given a state, or goes on."""
        with self._iterators(_owner()) as found:
            for one in reversed(found):
                if one["seed"] == seed:
                    one["until"] = max(one["until"], until) if one.get("is_known") else until
                    one["is_known"] = True
                    return

    def leave(self) -> int | None:
        """In the process that owns the loader, which moves by itself: the epoch behind those that workers have had. None: the
        loader moved after them."""
        with self._iterators(os.getpid()) as found:
            until: int | None = found[-1]["until"] if found else None
            if until is not None:
                found.append({"seed": None, "workers": [], "first": None, "until": None})
            return until


def _handed(file: Any) -> Epochs:
    return Epochs(file.detach())


def _owner() -> int:
    """The process whose DataLoader this worker is of."""
    parent = multiprocessing.parent_process()
    return os.getppid() if parent is None or parent.pid is None else parent.pid


class WorkerLoader(Loader):
    """A loader that may be a worker's: it begins with any epoch, and repeats no other worker's sample."""

    _has_surplus = False  # the last sample of an epoch is another share's: it is left out

    def _step(self) -> int:
        return 1 if self._per_epoch else _FAR if self._epochs == _ENDLESS else self._epochs

    def _end(self) -> int:
        """The epoch before which the next `for` ends."""
        return self._until + self._step() if self._ended else min(self._until, self._first + max(self._epochs, _FAR))

    def _begin_with(self, epoch: int) -> None:
        self.load_state_dict(saved(Position(epoch, epoch, True, None)))

    def _wrap_taken(self, found: _native.Batch) -> Any:
        """The batch as this loader shows it; None if nothing of it is this share's."""
        batch = self._wrap(found)
        count = -(-self.dataset.epoch_samples // self.world)
        if not self._has_surplus or batch.first + batch.rows + batch.skipped < count:
            return batch
        if batch.skipped > 0 and self._number(batch.epoch, count - 1) != int(batch.numbers[-1]):  # it is left out already
            return batch
        if batch.rows > 1:
            return head_of(batch, batch.rows - 1)
        with self._enter():
            self._taken -= 1
        return None

    def _number(self, epoch: int, position: int) -> int | None:
        """Which sample is there in the share; None if it is one that is left out."""
        place = {"threads": 0, "batch": 1, "skip": True, "epochs": 1, "first_epoch": epoch, "first_sample": position}
        keeps = {key: self._options[key] for key in ("prefetch_bytes", "features", "pads")}
        looker = _native.Loader(self.dataset.stream(tolerate=True), {**self._order(), **keeps, **place})
        try:
            taken: list[_native.Batch] = []
            looker.take(taken)
            return int(np.asarray(taken[0].numbers)[0]) if taken else None
        finally:
            looker.close()
