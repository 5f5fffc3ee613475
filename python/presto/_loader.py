# SPDX-License-Identifier: Apache-2.0
"""The loader: batches from the C library's threads, and where the loop stands."""
from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from . import _native
from ._arrays import Batch, wrap
from ._dataset import Dataset, Path, _encode, dataset_of, once
from ._end import alive
from ._errors import ArgumentError, Error, HeldError, StoppedError
from ._guesses import Advised, advised
from ._html import html_table
from ._loop import Batches, Place, Taking
from ._notes import Warning as Warning
from ._notes import note_kinds
from ._options import SHUFFLES, cache_of, called, names_of, natural, on_error_of, pads_of, share_of, shuffle_of
from ._process import auto_threads, generation, size
from ._step import forget_traces
from ._state import Position, moved, read, saved
from ._strategy import Strategy, strategy_of

OnSkip = Callable[[int, int, Error], object]

_ENDLESS = 1 << 40


def shown_as(batch: Batch, names: tuple[str, ...] | None, collate: Callable[..., Any] | None) -> Any:
    """What a loop gets: the batch, a tuple of some of its values, or what a function makes of it."""
    if names is None:
        return batch if collate is None else collate(batch)
    values = tuple(batch[name] for name in names)
    return values if collate is None else collate(*values)


def loader_table(loader: Any, title: str, options: Mapping[str, Any]) -> str:
    """For notebooks."""
    kind = {number: name for name, number in SHUFFLES.items()}[options["shuffle"]]
    shuffle = f"{kind}:{options['window']}" if options["window"] else kind
    rows = [("batch", str(loader.batch)), ("shuffle", shuffle), ("epoch", str(loader.epoch))]
    if loader.world != 1:
        rows.append(("share", f"rank {loader.rank} of {loader.world}"))
    return html_table(title, [*rows, ("limit", loader.limit)])


class Loader(Advised):
    """Streams a dataset in batches, with threads of the C library, to a `for` loop.

        loader = presto.Loader(dataset, batch=256, shuffle="full", seed=1, epochs=90)
        for batch in loader:
            step(batch["image"], batch["label"])

    Each batch is a presto.Batch: a dict of read-only arrays on the loader's memory, aligned to 64 bytes. The
    memory is used again when the batch and all its arrays are dropped.

    A `for` delivers `epochs` epochs (one, with `per_epoch`). Left by break, an exception or Ctrl-C, the next `for` goes on
    with the batch after the last one that the loop's variable got. (With `batch = next(batches)` or enumerate(), Ctrl-C
    between the return of a batch and its assignment loses that batch.) After the end, the next `for` begins the epochs
    behind it, in another order; also if the last batch was taken, and not the end.

    Args:
        dataset:   a presto.Dataset, or what presto.open() takes.
        batch:     samples a batch.
        shuffle:   "none"; "full" (an exact permutation, a new one each epoch); "blocks:N" (blocks of N samples,
                   shuffled, each shuffled inside: for disks); "buffer:N" (a random one of the next N).
        seed:      of the shuffle and of random steps. The stream is the same for any number of threads.
        epochs:    epochs that a `for` delivers; None: it never ends.
        per_epoch: a `for` delivers one epoch; the workers go on with the next one meanwhile, up to `epochs`.
        threads:   worker threads; "auto": as many as are worth it, more than the CPUs of this process only while they
                   wait for storage; 0: none, the work is done when a batch is asked for.
        rank, world: this process's share of each epoch. The shares are disjoint, complete, and equally long: the last
                   round is filled up from the epoch's start, or left out with drop_last.
        drop_last: leave out a last batch with fewer samples.
        order:     "strict", or "completion": whatever is ready first; such a stream has no state.
        features:  names of the features wanted. Default: those of the dataset.
        as_tuple:  ("image", "label"): the loop gets tuples of the values of these features, in place of batches, as in
                   `for images, labels in loader`.
        collate:   called with each batch (or with the values of `as_tuple`); the loop gets what it returns.
        pad:       {"tokens": 0} pads rows with 0 to the longest of the batch; {"tokens": (0, 512)} to 512.
        cache:     "memory:8GiB" or "disk:FOLDER:200GiB" keeps what the steps before the first random one make.
        on_error:  "fail", "skip", "skip:N" (at most N in an epoch) or "skip:P%" (of an epoch).
        on_skip:   called with (epoch, sample, error) for each sample left out.
        prefetch:  memory for data in flight.
        hold:      most bytes, such as "100MB", of batches held at a time; one more is a presto.HeldError.
        strategy:  of presto.sweep(), or a path of strategy.yaml: batch, threads and seed, where they are not given. It must be
                   about what the dataset holds.
        split, part, split_seed: only one part of the samples, as in presto.open(): split="90/10", part="train".
        filesystem: an fsspec file system that has the paths, as in presto.open().

    Raises:
        presto.ArgumentError: a feature that there is not; a strategy of another dataset; a part of no ratio.
        ValueError, TypeError: an argument that cannot be. And what presto.open() raises.
        From the loop: presto.CorruptError, presto.InputError, presto.StorageError: a sample that is damaged, does not fit a
        step, or cannot be read; presto.HeldError; presto.StoppedError: the loader was closed.

    Threads: any number may take batches of one loader; each batch goes to one of them.
    """

    _has_samples = True

    @advised
    def __init__(
        self,
        dataset: Dataset | Path | Iterable[Path],
        batch: int = 1,
        *,
        shuffle: str | bool | None = "none",
        seed: int = 0,
        epochs: int | None = 1,
        per_epoch: bool = False,
        threads: int | str = "auto",
        rank: int = 0,
        world: int = 1,
        drop_last: bool = False,
        order: str = "strict",
        features: Iterable[str] | None = None,
        as_tuple: Iterable[str] | None = None,
        collate: Callable[..., Any] | None = None,
        pad: Mapping[str, Any] | None = None,
        cache: str | None = None,
        on_error: str = "fail",
        on_skip: OnSkip | None = None,
        prefetch: int | str = "256MiB",
        hold: int | str = "4GiB",
        strategy: Strategy | Path | None = None,
        split: str | None = None,
        part: str | int | None = None,
        split_seed: int = 0,
        filesystem: Any = None,
    ) -> None:
        wanted = None if strategy is None else strategy_of(strategy)
        self.dataset = dataset_of(
            dataset, strategy=wanted, split=split, part=part, split_seed=split_seed, filesystem=filesystem
        )
        if wanted is not None:
            batch = wanted.batch if batch == 1 and wanted.batch > 0 else batch
            threads = wanted.threads if threads == "auto" else threads
            seed = seed or wanted.seed
        batch = natural(batch, "batch", 1)
        seed = natural(seed, "seed")
        epochs = None if epochs is None else natural(epochs, "epochs", 1, _ENDLESS)
        rank, world = share_of(rank, world)
        if not isinstance(order, str) or order not in ("strict", "completion"):
            raise ValueError(f'order is "strict" or "completion", not {order!r}')
        if isinstance(threads, str) and threads != "auto":
            raise ValueError(f'threads is a number or "auto", not {threads!r}')
        workers = auto_threads() if isinstance(threads, str) else natural(threads, "threads")
        if pad is not None and not isinstance(pad, Mapping):
            raise TypeError(f'pad is a dict such as {{"tokens": 0}}, not {pad!r}')
        if order == "completion" and per_epoch:
            raise ValueError("in order of completion, epochs cannot be told apart")
        kind, window = shuffle_of(shuffle)
        self._as_tuple = None if as_tuple is None else once(names_of(as_tuple, "as_tuple"))
        self._collate = called(collate, "collate")
        names = self.dataset._arguments["features"] if features is None else once(names_of(features, "features"))
        if features is None and self._as_tuple is not None and collate is None:
            names = self._as_tuple
        self.dataset.check_names([*(names or ()), *(pad or ()), *(self._as_tuple or ())])
        for name in self._as_tuple or ():
            if names is not None and name not in names:
                raise ArgumentError(f"as_tuple asks for {name!r}, which is not among features={list(names)}")
        self.batch = batch
        self.rank, self.world = rank, world
        self._epochs = _ENDLESS if epochs is None else epochs
        self._per_epoch = per_epoch
        self._drop_last = drop_last
        self._options: dict[str, Any] = {
            "batch": batch,
            "shuffle": kind,
            "window": window,
            "seed": seed,
            "threads": workers,
            "auto_threads": threads == "auto",
            "rank": rank,
            "world": world,
            "drop_last": drop_last,
            "completion": order == "completion",
            "features": None if names is None else tuple(_encode(name) for name in names),
            "pads": pads_of(pad or {}),
            "prefetch_bytes": size(prefetch, "prefetch"),
            "hold_bytes": size(hold, "hold"),
            "on_skip": called(on_skip, "on_skip"),
            **cache_of(cache),
            **on_error_of(on_error),
        }
        self._first = 0  # the epoch that the stream begins with
        self._until = 0  # the one that this `for` ends before
        self._ended = True  # this `for` has delivered all
        self._state: bytes | None = None  # where a stream to be opened begins; None: at _first
        self._is_closed = False
        self._is_last = False  # the batch taken last ends this `for`
        self._token = object()  # changes with each range of epochs that a `for` delivers
        self._taken = 0  # batches of that range that this loader gave to loops
        self._begin()

    def _begin(self) -> None:
        """What belongs to this process, and not to the position."""
        self._generation = generation()
        self._lock = threading.RLock()
        self._native: _native.Loader | None = None
        self._walked: _native.Stream | None = None
        self._pending: list[_native.Batch] = []  # taken from the stream, and not by the loop; they come first
        self._figures: tuple[dict[str, Any], dict[str, Any]] | None = None
        self._notes: list[tuple[str, str]] = []  # of steps, of the stream that was open last
        self._is_inside = False
        alive.add(self)

    # ---- the stream ----

    def _enter(self) -> threading.RLock:
        """In a child process: forget the parent's threads, keep its position."""
        if self._generation != generation():
            if self._native is not None:
                self._state = self._native_state()
            self._begin()
        return self._lock

    def _opened(self) -> _native.Loader:
        if self._is_closed:
            raise StoppedError("the loader is closed", status="PRESTO_ERR_STOPPED")
        if self._native is None:
            if self._epochs == _ENDLESS and self._epoch_batches() == 0:
                more = f"{self.batch} samples are more than an epoch has, with drop_last"
                raise ArgumentError(f"no batch would ever come: {more if self._drop_last else 'an epoch has no samples'}")
            stream = self._input()
            options = {**self._options, "epochs": self._epochs, "first_epoch": self._first, "state": self._state}
            self._native = _native.Loader(stream, options)
        return self._native

    def _input(self) -> _native.Stream:
        """In order or through a buffer, the first samples of files without an index come at once: the loader counts on the way."""
        kind = {"tolerate": "skip" in self._options, "cached": "cache_bytes" in self._options}
        if self._is_counted():
            return self.dataset.stream(**kind)
        if self._walked is None:
            self._walked = self.dataset.walked(**kind)
        return self._walked

    def _is_counted(self) -> bool:
        options = self._options
        begins = options["shuffle"] in (SHUFFLES["none"], SHUFFLES["buffer"])
        return not begins or options["world"] != 1 or "cache_dir" in options or self.dataset.known().count is not None

    def _native_state(self) -> bytes | None:
        """Where the loop stands, of an open stream. None: the order has no state."""
        if self._native is None or self._options["completion"]:
            return None
        if not self._pending:
            return self._native.state()
        epoch, first, *_ = self._pending[0].place
        state = self._native.state()
        return self._state_at(epoch, first) if b'"mix"' in state else moved(state, epoch, first * self.world)

    def _state_at(self, epoch: int, sample: int) -> bytes:
        """The library's state before this one of the share's samples."""
        options = {"threads": 0, "first_epoch": epoch, "first_sample": sample, **self._order()}
        looker = _native.Loader(self.dataset.stream() if self._is_counted() else self.dataset.walked(), options)
        try:
            return looker.state()
        finally:
            looker.close()

    def _order(self) -> dict[str, Any]:
        """What decides which sample is where."""
        return {key: self._options[key] for key in ("batch", "shuffle", "window", "seed", "rank", "world")}

    def _park(self) -> None:
        """Close the stream, and keep its position and figures."""
        native, self._native = self._native, None
        if native is None:
            return
        self._native = native
        self._state = self._native_state()
        self._native = None
        self._pending = []
        self._notes = native.notes()
        self._figures = self._figures_of(native)
        native.close()

    def _next(self, native: _native.Loader, taken: list[_native.Batch]) -> None:
        if self._is_inside:  # a signal handler, called while this thread waits
            raise RuntimeError("the loader is in use")
        self._is_inside = True
        try:
            native.take(taken)
        except HeldError:
            raise
        except BaseException:  # also what a signal handler raises: the stream has stopped, the position is kept
            if not taken:
                self._park()
            raise
        finally:
            self._is_inside = False

    def _start_for(self) -> Place:
        with self._enter():
            if self._ended:
                self._begin_range()
            return Place(self._token, self._taken)

    def _begin_range(self) -> None:
        begin = self._until
        if begin >= self._first + self._epochs:
            self._park()
            self._first, self._state = begin, None
        self._until = begin + 1 if self._per_epoch else self._first + self._epochs
        self._ended = self._is_last = False
        self._token, self._taken = object(), 0

    def _end_range(self, place: Place) -> None:
        """All is delivered. If that was before this `for` began, it delivers the next range."""
        self._ended = True
        if self._until >= self._first + self._epochs:
            self._park()
        if self._taken == 0 or self._taken != place.before:
            raise StopIteration
        self._begin_range()
        place.token, place.before = self._token, 0

    def _take(self, place: Place, taken: list[_native.Batch]) -> None:
        """Append the next batch. After an exception, the caller puts back what is in the list."""
        with self._enter():
            if place.token is not self._token or self._ended:
                raise StopIteration
            while not self._find(place, taken):
                self._end_range(place)
            self._taken += 1

    def _find(self, place: Place, taken: list[_native.Batch]) -> bool:
        """Append the next batch of the range, if there is one."""
        native = self._opened()
        if self._is_last:
            self._note(native.notes())
            return False
        if self._pending:
            taken.append(self._pending[0])
            del self._pending[0]
        else:
            self._next(native, taken)
        for line in native.warnings:
            warnings.warn(line, Warning, stacklevel=4)
        if not taken:
            self._note(native.notes())
            return False
        epoch, first, rows, skipped = taken[0].place
        if epoch >= self._until and not self._options["completion"]:
            self._put_back(place, taken)
            self._note(native.notes())
            return False
        self._is_last = self._per_epoch and epoch + 1 >= self._until and first + rows + skipped >= native.epoch_samples
        return True

    def _put_back(self, place: Place, taken: list[_native.Batch]) -> None:
        """The loop did not get this batch: it is the next one again."""
        with self._enter():
            if taken and place.token is self._token and self._generation == generation():
                self._is_last = False
                if not any(one is taken[0] for one in self._pending):
                    self._pending.append(taken[0])
                    self._pending.sort(key=lambda one: one.place[:2])  # of several threads
                if self._native is None and not self._options["completion"]:  # another thread has come to the end
                    self._state, self._ended = self._state_at(*self._pending[0].place[:2]), False
                    self._pending = []
            taken.clear()

    def _wrap(self, found: _native.Batch) -> Any:
        return wrap(found)

    def _wrap_taken(self, found: _native.Batch) -> Any:
        """The batch as this loader shows it; None: nothing of it is for the loop."""
        return self._wrap(found)

    def _shown(self, batch: Batch) -> Any:
        """What the loop gets of a batch."""
        return shown_as(batch, self._as_tuple, self._collate)

    def __iter__(self) -> Iterator[Any]:
        """Batches up to the end of the epoch(s); a loop that was left goes on."""
        return Batches(self, self._start_for())

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """What a `for` would deliver as an Arrow C stream, for pyarrow, polars, DuckDB and pandas.

            reader = pyarrow.RecordBatchReader.from_stream(loader)

        Arrays are the loader's memory. Dense features of more than one dimension are fixed-shape tensors (Arrow's canonical
        extension type), ragged ones large lists of their values, bytes are large binary. Booleans are uint8, bfloat16 is
        uint16. All batches must have the schema of the first one; a stream without batches has that of dataset.features.
        A consumer that keeps all batches, such as read_all(), is bounded by `hold`.

        An exception becomes the consumer's own error: for pyarrow an OSError whose text has its class. What is no error, such as
        the KeyboardInterrupt of Ctrl-C, is raised again besides, when the program goes on after that.
        """
        return self._arrow_stream(lambda native: None)

    def _arrow_stream(self, see: Callable[[_native.Batch], None]) -> Any:
        """The stream; `see` gets each batch, and may raise, which ends the stream."""
        taking = Taking(self, self._start_for())

        def take() -> _native.Batch | None:
            native = taking.native()
            if native is not None:
                see(native)
            return native

        return _native.arrow_stream(take, self._declared())

    def _declared(self) -> tuple[tuple[bytes, int, bool, str, tuple[int, ...]], ...]:
        """Features as they are in batches, if that is known before there is one; else none."""
        rows = {row[0]: row for row in self.dataset.known().schema(self._options)}
        chosen = rows if self._options["features"] is None else self._options["features"]
        if any(name not in rows or rows[name][3] == "unknown" for name in chosen):
            return ()
        return tuple(rows[name] for name in sorted(chosen))

    def __len__(self) -> int:
        """Batches that a whole `for` delivers, if no sample is left out."""
        if self._epochs == _ENDLESS and not self._per_epoch:
            raise TypeError("a stream without end has no length")
        batches = self._epoch_batches()
        return batches if self._per_epoch else batches * self._epochs

    def _epoch_batches(self) -> int:
        count, world = self.dataset.epoch_samples, self.world
        samples = count // world if self._drop_last else -(-count // world)
        return samples // self.batch if self._drop_last else -(-samples // self.batch)

    # ---- the position ----

    @property
    def epoch(self) -> int:
        """Number of the epoch of the next batch."""
        with self._enter():
            state = self._native_state() or self._state
            return self._first if state is None else int(json.loads(state)["epoch"])

    def state_dict(self) -> dict[str, Any]:
        """Where the loop stands: after the last batch that it took, whatever is prefetched. JSON can keep it.

        A loader with the same dataset, shuffle and seed that loads it delivers the rest, byte for byte. Batch size,
        threads and cache may change; `world` may change between epochs.
        """
        with self._enter():
            if self._options["completion"]:
                raise ArgumentError("a stream in order of completion has no position to come back to")
            state = self._native_state() or self._state
            if state is None:
                state = self._state = self._state_at(self._first, 0)
            return saved(Position(self._first, self._until, self._ended, state))

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on where state_dict() was called. Loops under way end.

        `epochs` may differ: the loop under way ends where one of this loader would.

        Raises:
            presto.ArgumentError: the state is of another dataset, seed or shuffle, or behind the last of `epochs`.
            presto.CorruptError, ValueError, TypeError, KeyError: it is no state.
        """
        with self._enter():
            found = read(state_dict, self._epochs, self._per_epoch)
            if found.stream is not None:  # a state that does not fit is refused here, not in the loop
                options = {"threads": 0, "epochs": self._epochs, "first_epoch": found.first, "state": found.stream}
                _native.Loader(self.dataset.stream(), {**options, **self._order()}).close()
            self._park()
            self._first, self._until, self._ended, self._state = found
            self._is_last = False
            self._token, self._taken = object(), 0

    # ---- figures ----

    @staticmethod
    def _figures_of(native: _native.Loader) -> tuple[dict[str, Any], dict[str, Any]]:
        return {**native.stats(), "notes": [text for _, text in native.notes()]}, native.verdict()

    def _note(self, notes: list[tuple[str, str]]) -> None:
        note_kinds(self.dataset._arguments["paths"], notes)

    def _report(self) -> tuple[dict[str, Any], dict[str, Any]]:
        native = self._native
        if native is not None and native.is_current:
            try:
                return self._figures_of(native)
            except StoppedError:  # closed meanwhile
                pass
        return self._figures or ({}, {})

    def stats(self) -> dict[str, Any]:
        """Figures since the stream was opened, as presto-load --stats has them (docs/loading.md). `notes` are those of steps; those
        of the input are `dataset.notes`. Any thread."""
        figures, verdict = self._report()
        return {**figures, "limit": verdict} if figures else {}

    @property
    def limit(self) -> str:
        """What limits the stream: "limited by step decode-image (78 % of the work)"."""
        verdict = self._report()[1]
        return f"limited by {verdict['text']}" if verdict else "nothing has been loaded"

    @property
    def held(self) -> tuple[int, int]:
        """(batches, bytes) of this stream that somebody holds."""
        native = self._native
        return (0, 0) if native is None else native.held

    # ---- the end ----

    def close(self) -> None:
        """Stop the threads. Arrays that are held stay valid. A loop under way, in any thread, ends with
        presto.StoppedError. Without close() the same happens when the loader is dropped."""
        native = self._native
        if native is not None and native.is_current:
            native.stop()
        with self._enter():
            if self._native is not None and not self._is_closed:
                self._park()
                forget_traces()
            was_open, self._is_closed = not self._is_closed, True
        if was_open:
            self._note(self._notes)

    def _at_exit(self) -> None:
        self.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<presto.Loader of {self.dataset!r}, batch {self.batch}, epoch {self.epoch}>"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        return loader_table(self, "presto.Loader", self._options) + self.dataset._repr_html_()

    def __getstate__(self) -> dict[str, Any]:
        with self._enter():
            kept = ("dataset", "batch", "rank", "world", "_epochs", "_per_epoch", "_drop_last", "_options", "_as_tuple", "_collate",
                    "_first", "_until", "_ended", "_taken")  # fmt: skip
            return {**{name: getattr(self, name) for name in kept}, "_state": self._native_state() or self._state}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._is_closed = False
        self._is_last = False  # the batch taken last ends this `for`
        self._token = object()
        self._begin()
