# SPDX-License-Identifier: Apache-2.0
"""What the loaders for other libraries share: one loader a process, its share of the work, a batch on its way, the position."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from threading import RLock
from typing import Any, NamedTuple, Self

from ._arrays import Batch, Ragged
from ._dataset import Dataset, Path, dataset_of
from ._errors import StoppedError
from ._guesses import Advised
from ._loader import Loader as _Loader, loader_table, shown_as
from ._notes import NoteWarning, warn
from ._options import settled, share_of
from ._process import generation
from ._state import is_behind


class _Moving(NamedTuple):
    """A batch on its way, and what its arrival waits for."""

    batch: Batch
    event: Any


class _Ahead:
    """Batches of a range of epochs that were taken from the loader and not by the loop, the next one first."""

    def __init__(self, loader: _Loader) -> None:
        self.loader = loader
        self.batches: list[Batch | _Moving] = []
        self.states: list[dict[str, Any] | None] = []  # before each of them; at the end also that of the end
        self.given = 0  # batches that loops got
        self.has_ended = False  # there are no more
        self._source = iter(loader)

    def fill(self, how: Callable[[Batch], tuple[Batch, Any]], has_state: bool) -> None:
        """Two batches on their way, if there are so many. An exception, also Ctrl-C, leaves what is there."""
        self._move(how)  # a copy that failed is tried again
        while len(self.batches) < 2 and not self.has_ended:
            self._take(has_state)
            self._move(how)

    def _take(self, has_state: bool) -> None:
        del self.states[len(self.batches) :]
        self.states.append(self.loader.state_dict() if has_state else None)
        before = len(self.batches)
        self.batches.extend(islice(self._source, 1))  # one call: a batch that was taken is in the list
        self.has_ended = len(self.batches) == before

    def _move(self, how: Callable[[Batch], tuple[Batch, Any]]) -> None:
        for i, batch in enumerate(self.batches):
            if isinstance(batch, Batch):
                self.batches[i] = _Moving(*how(batch))

    def give(self) -> _Moving | None:
        """The next batch, if it is on its way. The caller deletes it."""
        return self.batches[0] if self.batches and isinstance(self.batches[0], _Moving) else None

    def forget(self) -> None:
        del self.batches[0], self.states[0]
        self.given += 1


class _Transfer(Iterator[Any]):
    """One `for` over batches that are copied one ahead of it. Threads may share it."""

    def __init__(self, adapter: Adapter, loader: _Loader) -> None:
        self._adapter = adapter
        self._ahead = adapter._ahead_of(loader)
        self._before = self._ahead.given  # the loop goes on behind them
        self._failure: Exception | None = None  # it belongs behind the batch that was ready

    def __next__(self) -> Any:
        adapter = self._adapter
        with adapter._enter():
            while True:
                ahead = self._ahead
                if ahead is not adapter._ahead:
                    raise StopIteration
                if self._failure is None:
                    try:
                        ahead.fill(adapter._transfer, not adapter._is_stateless())
                    except Exception as error:
                        self._failure = error
                if ahead.loader._is_closed or isinstance(self._failure, StoppedError):
                    self._failure = None
                    raise StoppedError("the loader is closed", status="PRESTO_ERR_STOPPED")
                first = ahead.give()
                if first is not None:
                    batch = adapter._shown(adapter._arrived(*first))
                    ahead.forget()
                    return batch
                if self._failure is not None:
                    failure, self._failure = self._failure, None
                    raise failure
                adapter._ahead = None
                if ahead.given == 0 or ahead.given != self._before:
                    raise StopIteration
                # All of it was delivered before this `for` began: it delivers the next range.
                self._ahead, self._before = adapter._ahead_of(ahead.loader), 0


class Adapter(Advised):
    """A presto.Loader that is made when a loop begins, because only then its rank is known.

    Subclasses say what batches are, which share is theirs, and how batches are moved.
    """

    _has_samples = True
    _has_told = False

    def __init__(
        self,
        dataset: Dataset | Path | Iterable[Path],
        batch: int,
        rank: int | None,
        world: int | None,
        options: dict[str, Any],
    ) -> None:
        super().__init__()
        if (rank is None) != (world is None):
            raise ValueError("rank and world go together")
        share = None if rank is None else share_of(rank, world)
        options = dict(options)
        part = {name: options.pop(name) for name in ("split", "part", "split_seed", "filesystem") if name in options}
        self.dataset = dataset_of(dataset, strategy=options.get("strategy"), **part)
        self.batch = batch
        self._share = share
        self._options = settled(options)
        self._inner: _Loader | None = None
        self._made_for: tuple[int, int, int] | None = None
        self._saved: Mapping[str, Any] | None = None
        self._ahead: _Ahead | None = None
        self._is_closed = False
        self._begin()
        # Wrong options are told here, not when the loop begins.
        self._new(0, 1)

    # ---- what subclasses say ----

    def _default_share(self) -> tuple[int, int]:
        """Rank and world of this process's job."""
        raise NotImplementedError

    def _worker(self) -> tuple[int, int] | None:
        """Which one this is of how many processes that divide this rank's share among them. None: they do not."""
        return None

    def _moves(self) -> bool:
        """Whether batches are copied elsewhere, one ahead of the loop."""
        return False

    def _transfer(self, batch: Batch) -> tuple[Batch, Any]:
        """The batch on its way, and what _arrived() waits for."""
        return batch, None

    def _arrived(self, batch: Batch, event: Any) -> Batch:
        return batch

    def _tell_divided(self) -> None:
        """Called in the first of the processes that divide the work."""

    def _new(self, rank: int, world: int) -> _Loader:
        return _Loader(self.dataset, self.batch, rank=rank, world=world, **self._options)

    # ---- the loader ----

    def _job(self) -> tuple[int, int]:
        return self._default_share() if self._share is None else self._share

    def _tell_share(self, rank: int, world: int) -> None:
        """Nobody has asked for a share in so many words: say once that this is one."""
        if self._share is None and rank == 0 and world > 1 and not Adapter._has_told:
            Adapter._has_told = True
            warn(
                f"this is rank 0 of {world}: the loader delivers {-(-self.dataset.epoch_samples // world):,} of "
                f"{self.dataset.epoch_samples:,} samples of an epoch, the other ranks the others. For all of them on each rank, "
                "as for an evaluation, say rank=0, world=1",
                NoteWarning,
            )

    def _loader(self) -> _Loader:
        """The loader for this process and worker."""
        rank, world = self._job()
        divided = self._worker()
        worker, workers = divided or (0, 1)
        wanted = (generation(), worker * world + rank, workers * world)
        if self._inner is None or self._made_for != wanted:
            self._tell_share(rank, world)
            if divided is not None and worker == 0:
                self._tell_divided()
            before = self._inner
            position = self._saved if before is None else self._handed(before)
            self._inner = self._new(*wanted[1:])
            self._show = self._inner._as_tuple, self._inner._collate
            if self._moves():  # they are shown when they have arrived
                self._inner._as_tuple = self._inner._collate = None
            self._made_for, self._ahead = wanted, None
            if position is not None:  # a child process, or another share, goes on
                self._inner.load_state_dict(position)
            self._saved = None
            if self._is_closed:
                self._inner.close()
        return self._inner

    def _is_stateless(self) -> bool:
        return self._options.get("order") == "completion"

    def __len__(self) -> int:
        """Batches that a whole `for` delivers."""
        return len(self._loader())

    def _shown(self, batch: Batch) -> Any:
        """What the loop gets of a batch that was moved."""
        return shown_as(batch, *self._show)

    def __iter__(self) -> Iterator[Any]:
        loader = self._loader()
        return _Transfer(self, loader) if self._moves() else iter(loader)

    def _begin(self) -> None:
        self._generation = generation()
        self._lock = RLock()  # of _ahead

    def _enter(self) -> RLock:
        """In a child process, a thread that is not there may have held the lock."""
        if self._generation != generation():
            self._begin()
        return self._lock

    def _ahead_of(self, loader: _Loader) -> _Ahead:
        with self._enter():
            if self._ahead is None:
                self._ahead = _Ahead(loader)
            return self._ahead

    # ---- the position ----

    def state_dict(self) -> dict[str, Any]:
        """Where the loop stands, as presto.Loader.state_dict()."""
        return self._position(self._loader())

    def _position(self, loader: _Loader) -> dict[str, Any]:
        with self._enter():
            state = self._ahead.states[0] if self._ahead is not None and self._ahead.states else None
            return loader.state_dict() if state is None else dict(state)

    def _handed(self, loader: _Loader) -> dict[str, Any] | None:
        """The position for a loader that goes on where this one is; None: the order has none. A range of which a loop has got
        the last batch is at its end, whatever the share."""
        if self._is_stateless():
            return None
        position = self._position(loader)
        return {**position, "ended": True} if loader._taken > 0 and is_behind(position) else position

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on where state_dict() was called, as presto.Loader.load_state_dict()."""
        loader = self._loader()
        with self._enter():
            loader.load_state_dict(state_dict)
            self._ahead = None

    # ---- figures ----

    def stats(self) -> dict[str, Any]:
        """As presto.Loader.stats()."""
        return self._loader().stats()

    @property
    def limit(self) -> str:
        """As presto.Loader.limit."""
        return self._loader().limit

    @property
    def epoch(self) -> int:
        """As presto.Loader.epoch."""
        loader = self._loader()
        with self._enter():
            state = self._ahead.states[0] if self._ahead is not None and self._ahead.states else None
            return loader.epoch if state is None or state["stream"] is None else int(state["stream"]["epoch"])

    @property
    def held(self) -> tuple[int, int]:
        """As presto.Loader.held."""
        return self._loader().held

    @property
    def rank(self) -> int:
        """This process's share of each epoch, before workers divide it."""
        return self._job()[0]

    @property
    def world(self) -> int:
        """Of how many shares it is one."""
        return self._job()[1]

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """As presto.Loader.__arrow_c_stream__(): the loader's memory, not moved."""
        if self._moves():
            raise TypeError("batches that are copied to a device are no Arrow stream: take a presto.Loader")
        return self._loader().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.Loader of {self.dataset!r}, batch {self.batch}, epoch {self.epoch}>"

    def _repr_html_(self) -> str:
        """As presto.Loader, for notebooks."""
        return loader_table(self, f"{type(self).__module__}.Loader", self._loader()._options) + self.dataset._repr_html_()

    def close(self) -> None:
        """As presto.Loader.close()."""
        self._is_closed = True  # also one that is made later, as for a child process
        if self._inner is not None:
            self._inner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if self._inner is not None and self._made_for is not None:
            state["_saved"] = self._handed(self._loader())
        for name in ("_inner", "_made_for", "_ahead", "_lock", "_stream"):
            state[name] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._is_closed = False
        self._begin()


def placed_as(batch: Batch, values: Iterable[tuple[str, Any]]) -> Batch:
    """A batch with other values of the same samples."""
    made = Batch(values)
    made.epoch, made.first, made.rows, made.skipped = batch.epoch, batch.first, batch.rows, batch.skipped
    made._numbers = batch.numbers
    return made


def each_array(value: Any, how: Callable[[Any], Any], kind: type) -> Any:
    """`how` of the arrays of type `kind` that a feature has: itself, or those of a Ragged. Others stay as they are."""
    if isinstance(value, kind):
        return how(value)
    if isinstance(value, Ragged) and isinstance(value.values, kind):
        return Ragged(how(value.values), how(value.offsets), None if value.shapes is None else how(value.shapes))
    return value
