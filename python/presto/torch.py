# SPDX-License-Identifier: Apache-2.0
"""Presto for PyTorch: batches as tensors, without a copy.

    import presto.torch

    loader = presto.torch.Loader("photos-resized", batch=256, shuffle="full", epochs=90, per_epoch=True)
    for epoch in range(90):
        for batch in loader:
            step(batch["image"], batch["label"])
"""
from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

from . import _native
from ._arrays import Batch, Bytes, Ragged
from ._dataset import Dataset, Path
from ._loader import Loader as _Loader
from ._process import generation

__all__ = ["Loader", "tensor_of"]


def tensor_of(values: _native.Buffer) -> torch.Tensor:
    """A native array as a tensor on the same memory. It must not be written to."""
    try:
        # A plain capsule: not every version of torch takes one that is marked as read-only.
        return torch.from_dlpack(values.__dlpack__())  # type: ignore[no-any-return, attr-defined]
    except (RuntimeError, TypeError, BufferError):  # a dtype that this version knows no DLPack of
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "not writable"
            if values.dtype == "bool":
                return torch.frombuffer(memoryview(values).cast("B"), dtype=torch.bool).reshape(
                    memoryview(values).shape
                )
            raise


class _TensorLoader(_Loader):
    """As presto.Loader, with tensors. `layout` says which images are shown channels first."""

    _channels_last: bool | tuple[str, ...] = False

    def _wrap(self, found: _native.Batch) -> Batch:
        batch = Batch()
        for name, layout, values, offsets, rows, shapes in found.features:
            if layout == "dense" or offsets is None:
                batch[name] = self._shaped(name, tensor_of(values))
            elif layout == "ragged":
                batch[name] = Ragged(
                    tensor_of(values), tensor_of(offsets), None if shapes is None else tensor_of(shapes)
                )
            else:  # strings are no tensors
                batch[name] = Bytes(np.asarray(values), np.asarray(offsets), None if rows is None else np.asarray(rows))
        batch.epoch, batch.first, batch.rows, batch.skipped = found.place
        batch._numbers = tensor_of(found.numbers)
        return batch

    def _shaped(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        chosen = self._channels_last
        if chosen is False or tensor.dim() != 4:
            return tensor
        if (chosen is True and tensor.shape[3] in (1, 3, 4)) or (chosen is not True and name in chosen):
            return tensor.permute(0, 3, 1, 2)
        return tensor


def _distributed() -> tuple[int, int]:
    import torch.distributed as distributed

    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def _moved(value: Any, how: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return how(value)
    if isinstance(value, Ragged):
        return Ragged(how(value.values), how(value.offsets), None if value.shapes is None else how(value.shapes))
    return value


def _move(batch: Batch, how: Any) -> Batch:
    moved = Batch((name, _moved(value, how)) for name, value in batch.items())
    moved.epoch, moved.first, moved.rows, moved.skipped = batch.epoch, batch.first, batch.rows, batch.skipped
    moved._numbers = batch.numbers
    return moved


class _Ahead:
    """The batch that was taken from the loader and not by the loop: None at the end. `state` is that before it."""

    def __init__(self, state: dict[str, Any] | None) -> None:
        self.state = state
        self.batch: tuple[Batch, Any] | None = None


class Loader(IterableDataset[Any]):
    """presto.Loader for PyTorch: each batch is a dict of tensors on the loader's memory.

    Iterate over it. No DataLoader is needed, and no worker processes: the work is done by threads of the C library.
    Inside a torch.utils.data.DataLoader(loader, batch_size=None, num_workers=N) each worker takes its share, so that
    nothing comes twice; this is slower, and a warning says so.

    The tensors share memory that the loader uses again once they are dropped: do not write into them. Ragged
    features are presto.Ragged of tensors, strings are presto.Bytes.

    Args:
        dataset, batch, and all others: as presto.Loader.
        rank, world:   default: those of torch.distributed, if it is initialized when the loop begins; else 0 of 1.
        device:        copy batches there, one batch ahead of the loop.
        pin_memory:    copy batches into page-locked memory. With a CUDA device this is the default.
        channels_last: show dense images [N, H, W, C] as [N, C, H, W] in memory format channels_last, without a copy.
                       True: all with 1, 3 or 4 channels; or names of features.

    state_dict() and load_state_dict() follow torchdata's StatefulDataLoader, and count what the loop has taken.
    """

    def __init__(
        self,
        dataset: Dataset | Path | Iterable[Path],
        batch: int = 1,
        *,
        rank: int | None = None,
        world: int | None = None,
        device: torch.device | str | None = None,
        pin_memory: bool | None = None,
        channels_last: bool | Iterable[str] = False,
        **options: Any,
    ) -> None:
        super().__init__()
        if (rank is None) != (world is None):
            raise ValueError("rank and world go together")
        self.dataset = dataset if isinstance(dataset, Dataset) else Dataset(dataset)
        self.batch = batch
        self._share = None if rank is None or world is None else (rank, world)
        self._options = options
        self._device = None if device is None else torch.device(device)
        self._pins = self._device is not None and self._device.type == "cuda" if pin_memory is None else pin_memory
        self._channels_last = channels_last if isinstance(channels_last, bool) else tuple(channels_last)
        self._inner: _TensorLoader | None = None
        self._made_for: tuple[int, int, int] | None = None
        self._saved: Mapping[str, Any] | None = None
        self._ahead: _Ahead | None = None
        # Wrong options are told here, not when the loop begins.
        self._new(0, 1)

    def _new(self, rank: int, world: int) -> _TensorLoader:
        inner = _TensorLoader(self.dataset, self.batch, rank=rank, world=world, **self._options)
        inner._channels_last = self._channels_last
        return inner

    def _loader(self) -> _TensorLoader:
        """The loader for this process and worker."""
        rank, world = _distributed() if self._share is None else self._share
        worker = get_worker_info()
        if worker is not None and worker.num_workers > 0:
            rank, world = rank * worker.num_workers + worker.id, world * worker.num_workers
        wanted = (generation(), rank, world)
        if self._inner is None or self._made_for != wanted:
            if worker is not None and worker.id == 0:
                warnings.warn(
                    "presto.torch.Loader has threads of its own: it is faster without a DataLoader's workers",
                    stacklevel=3,
                )
            before, self._inner = self._inner, self._new(rank, world)
            self._made_for, self._ahead = wanted, None
            if not self._is_stateless():  # a child process, or another share, goes on
                position = self._saved if before is None else before.state_dict()
                if position is not None:
                    self._inner.load_state_dict(position)
            self._saved = None
        return self._inner

    def __len__(self) -> int:
        """Batches that a whole `for` delivers."""
        return len(self._loader())

    def __iter__(self) -> Iterator[Batch]:
        loader = self._loader()
        if self._device is not None or self._pins:
            return self._transferred(loader)
        return iter(loader)

    # ---- transfer, one batch ahead ----

    def _transfer(self, batch: Batch) -> tuple[Batch, Any]:
        """The batch on its way to the device, and what to wait for."""
        if self._pins:
            batch = _move(batch, lambda tensor: tensor.pin_memory())
        if self._device is None or self._device.type != "cuda":
            device = self._device
            return (batch if device is None else _move(batch, lambda tensor: tensor.to(device))), None
        if getattr(self, "_stream", None) is None:
            self._stream = torch.cuda.Stream(self._device)
        with torch.cuda.stream(self._stream):
            moved = _move(batch, lambda tensor: tensor.to(self._device, non_blocking=True))
        event = torch.cuda.Event()
        event.record(self._stream)
        return moved, event

    def _arrived(self, batch: Batch, event: Any) -> Batch:
        if event is not None:
            current = torch.cuda.current_stream(self._device)
            current.wait_event(event)
            _move(batch, lambda tensor: tensor.record_stream(current) or tensor)
        return batch

    def _transferred(self, loader: _TensorLoader) -> Iterator[Batch]:
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

    def _is_stateless(self) -> bool:
        return self._options.get("order") == "completion"

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
