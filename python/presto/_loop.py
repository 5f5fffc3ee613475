# SPDX-License-Identifier: Apache-2.0
"""A `for` over a loader: what it takes, and what it does not get after all."""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _native
from ._arrays import Batch

if TYPE_CHECKING:
    from ._loader import Loader


class Place:
    """Where a `for` is."""

    __slots__ = ("token", "before")

    def __init__(self, token: object, before: int) -> None:
        self.token = token  # of the range of epochs that it delivers
        self.before = before  # batches of that range that were taken before it began


class Taking:
    """One `for` over a loader. Threads may share it."""

    def __init__(self, loader: Loader, place: Place) -> None:
        self._loader = loader
        self._place = place

    def native(self) -> _native.Batch | None:
        """The next batch of the library; None at the end."""
        taken: list[_native.Batch] = []
        try:
            self._loader._take(self._place, taken)
            return taken[0]
        except StopIteration:
            return None
        except BaseException:
            self._loader._put_back(self._place, taken)
            raise


class Batches(Taking, Iterator[Any]):
    """The batches of a `for`."""

    def __next__(self) -> Any:
        loader = self._loader
        taken: list[_native.Batch] = []
        try:
            while True:
                loader._take(self._place, taken)
                batch: Batch | None = loader._wrap_taken(taken[0])
                if batch is not None:
                    return loader._shown(batch)
                taken.clear()
        except BaseException:  # also Ctrl-C, wherever it comes
            loader._put_back(self._place, taken)
            raise
