# SPDX-License-Identifier: Apache-2.0
"""What the loaders for other libraries share: one loader a process, its share of the work, a batch on its way, the position."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ._arrays import Batch, Ragged
from ._dataset import Dataset, Path, dataset_of
from ._loader import Loader as _Loader
from ._process import generation


class _Ahead:
    """The batch that was taken from the loader and not by the loop: None at the end. `state` is that before it."""

    def __init__(self, state: dict[str, Any] | None) -> None:
        self.state = state
        self.batch: tuple[Batch, Any] | None = None


class Adapter:
    """A presto.Loader that is made when a loop begins, because only then its rank is known.

    Subclasses say what batches are, which share is theirs, and how batches are moved.
    """

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
        self._options = options
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
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead.batch is None:  # the loop was left at its last batch
            return
        batches = iter(loader)
        while True:
            if ahead is None or ahead.batch is None:
                try:
                    now = self._transfer(next(batches))
                except StopIteration:
                    return
            else:
                now = ahead.batch
            ahead = self._ahead = _Ahead(None if self._is_stateless() else loader.state_dict())
            failure: BaseException | None = None
            try:
                ahead.batch = self._transfer(next(batches))
            except StopIteration:
                pass
            except Exception as error:  # it belongs behind the batch that is ready
                failure = error
            yield self._arrived(*now)
            self._ahead = None
            if failure is not None:
                raise failure
            if ahead.batch is None:
                return

    # ---- the position ----

    def state_dict(self) -> dict[str, Any]:
        """Where the loop stands, as presto.Loader.state_dict()."""
        loader = self._loader()
        if self._ahead is not None and self._ahead.state is not None:
            return dict(self._ahead.state)
        return loader.state_dict()

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
