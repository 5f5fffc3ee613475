# SPDX-License-Identifier: Apache-2.0
"""What the loaders for other libraries share: one loader a process, its share of the work, a batch on its way, the position."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, Self

from ._arrays import Batch, Ragged
from ._dataset import Dataset, Path, dataset_of
from ._loader import Loader as _Loader
from ._options import settled
from ._process import generation


class _Moving(NamedTuple):
    """A batch on its way, and what its arrival waits for."""

    batch: Batch
    event: Any


class _Ahead:
    """Batches that were taken from the loader and not by the loop, the next one first."""

    def __init__(self) -> None:
        self.batches: list[Batch | _Moving] = []
        self.states: list[dict[str, Any] | None] = []  # before each of them; at the end also that of the end
        self.has_ended = False  # there are no more

    def take(self, batches: Iterator[Batch], loader: _Loader, has_state: bool) -> None:
        """One more. An exception, also Ctrl-C, leaves what is there."""
        if self.has_ended:
            return
        del self.states[len(self.batches) :]
        self.states.append(loader.state_dict() if has_state else None)
        before = len(self.batches)
        self.batches.extend(islice(batches, 1))  # one call: a batch that was taken is in the list
        self.has_ended = len(self.batches) == before

    def move(self, how: Callable[[Batch], tuple[Batch, Any]]) -> None:
        for i, batch in enumerate(self.batches):
            if isinstance(batch, Batch):
                self.batches[i] = _Moving(*how(batch))


class Adapter:
    """A presto.Loader that is made when a loop begins, because only then its rank is known.

    Subclasses say what batches are, which share is theirs, and how batches are moved.
    """

    _has_samples = True

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
        options = dict(options)
        part = {name: options.pop(name) for name in ("split", "part", "split_seed") if name in options}
        self.dataset = dataset_of(dataset, strategy=options.get("strategy"), **part)
        self.batch = batch
        self._share = None if rank is None or world is None else (rank, world)
        self._options = settled(options)
        self._inner: _Loader | None = None
        self._made_for: tuple[int, int, int] | None = None
        self._saved: Mapping[str, Any] | None = None
        self._ahead: _Ahead | None = None
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

    def _loader(self) -> _Loader:
        """The loader for this process and worker."""
        rank, world = self._default_share() if self._share is None else self._share
        divided = self._worker()
        worker, workers = divided or (0, 1)
        wanted = (generation(), worker * world + rank, workers * world)
        if self._inner is None or self._made_for != wanted:
            if divided is not None and worker == 0:
                self._tell_divided()
            before, self._inner = self._inner, self._new(*wanted[1:])
            if workers > 1 and not self._inner._drop_last:
                # A rank's workers have its samples in turn. If the last turn is not full, the others would repeat a sample.
                share = -(-self.dataset.epoch_samples // world)
                self._inner._has_surplus = 0 < share % workers <= worker
            self._made_for, self._ahead = wanted, None
            if not self._is_stateless():  # a child process, or another share, goes on
                position = self._saved if before is None else before.state_dict()
                if position is not None:
                    self._inner.load_state_dict(position)
            self._saved = None
        return self._inner

    def _is_stateless(self) -> bool:
        return self._options.get("order") == "completion"

    def __len__(self) -> int:
        """Batches that a whole `for` delivers."""
        return len(self._loader())

    def __iter__(self) -> Iterator[Batch]:
        loader = self._loader()
        return self._transferred(loader) if self._moves() else iter(loader)

    def _transferred(self, loader: _Loader) -> Iterator[Batch]:
        if self._ahead is None:
            self._ahead = _Ahead()
        ahead = self._ahead
        # After the last batch is taken, the loader's next `for` is the next one of this loader, too.
        batches: Iterator[Batch] = iter(()) if ahead.has_ended else iter(loader)
        while ahead is self._ahead:
            failure: Exception | None = None
            try:
                while len(ahead.batches) < 2 and not ahead.has_ended:
                    ahead.take(batches, loader, not self._is_stateless())
                    ahead.move(self._transfer)
            except Exception as error:  # it belongs behind the batch that is ready
                failure = error
            first = ahead.batches[0] if ahead.batches else None
            if isinstance(first, _Moving):
                now = self._arrived(*first)
                del ahead.batches[0], ahead.states[0]
                yield now
            if failure is not None:
                raise failure
            if first is None:
                self._ahead = None

    # ---- the position ----

    def state_dict(self) -> dict[str, Any]:
        """Where the loop stands, as presto.Loader.state_dict()."""
        loader = self._loader()
        state = self._ahead.states[0] if self._ahead is not None and self._ahead.states else None
        return loader.state_dict() if state is None else dict(state)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on where state_dict() was called, as presto.Loader.load_state_dict()."""
        loader = self._loader()
        self._ahead = None
        loader.load_state_dict(state_dict)

    # ---- figures ----

    def stats(self) -> dict[str, Any]:
        """As presto.Loader.stats()."""
        return self._loader().stats()

    @property
    def limit(self) -> str:
        """As presto.Loader.limit."""
        return self._loader().limit

    def close(self) -> None:
        """As presto.Loader.close()."""
        if self._inner is not None:
            self._inner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if self._inner is not None and self._made_for is not None:
            state["_saved"] = None if self._is_stateless() else self.state_dict()
        for name in ("_inner", "_made_for", "_ahead", "_stream"):
            state[name] = None
        return state


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
