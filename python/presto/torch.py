# SPDX-License-Identifier: Apache-2.0
"""Presto for PyTorch: batches as tensors, without a copy.

    import presto.torch

    loader = presto.torch.Loader("photos-resized", batch=256, shuffle="full", epochs=90, per_epoch=True)
    for epoch in range(90):
        for batch in loader:
            step(batch["image"], batch["label"])
"""
from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

from . import _native
from ._adapter import Adapter, each_array, placed_as
from ._arrays import Batch, Bytes, Ragged
from ._dataset import Dataset, Path
from ._errors import UnsupportedError
from ._notes import note
from ._options import names_of
from ._workers import Epochs, WorkerLoader

__all__ = ["Loader", "tensor_of"]


def tensor_of(values: _native.Buffer) -> torch.Tensor:
    """A native array as a tensor on the same memory. It must not be written to."""
    try:
        # A plain capsule: not every version of torch takes one that is marked as read-only.
        return torch.from_dlpack(values.__dlpack__())  # type: ignore[no-any-return, attr-defined]
    except (RuntimeError, TypeError, BufferError):  # a dtype that this version knows no DLPack of
        dtype, host = getattr(torch, values.dtype, None), np.asarray(values)
        if dtype is None:
            since = " (2.3 and later have)" if values.dtype in ("uint16", "uint32", "uint64") else ""
            raise UnsupportedError(
                f"PyTorch {torch.__version__} has no dtype {values.dtype}{since}: choose other features, or cast it (step cast)",
                status="PRESTO_ERR_UNSUPPORTED",
            ) from None
        if host.size == 0:
            return torch.empty(host.shape, dtype=dtype)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "not writable"
            return torch.frombuffer(host.reshape(-1).view(np.uint8), dtype=dtype).reshape(host.shape)


def _named(name: str, values: _native.Buffer) -> torch.Tensor:
    """As tensor_of(). What fails says of which feature."""
    try:
        return tensor_of(values)
    except UnsupportedError as error:
        raise UnsupportedError(f"feature {name!r}: {error}", status=error.status) from None


def _check_device(device: torch.device) -> None:
    """Without its initialization, which a fork does not survive."""
    mps = getattr(torch.backends, "mps", None)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device {str(device)!r}: there is no CUDA device that PyTorch {torch.__version__} can use")
    if device.type == "cuda" and device.index is not None and device.index >= torch.cuda.device_count():
        raise ValueError(f"device {str(device)!r}: there are {torch.cuda.device_count()} CUDA devices, numbered from 0")
    if device.type == "mps" and not (mps is not None and mps.is_available()):
        raise ValueError(f"device {str(device)!r}: there is no MPS device that PyTorch {torch.__version__} can use")


class _TensorLoader(WorkerLoader):
    """As presto.Loader, with tensors. `layout` says which images are shown channels first."""

    _channels_last: bool | tuple[str, ...] = False

    def _wrap(self, found: _native.Batch) -> Batch:
        batch = Batch()
        for name, layout, values, offsets, rows, shapes in found.features:
            if layout == "dense" or offsets is None:
                batch[name] = self._shaped(name, _named(name, values))
            elif layout == "ragged":
                batch[name] = Ragged(
                    _named(name, values), tensor_of(offsets), None if shapes is None else tensor_of(shapes)
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
    if "TORCHELASTIC_RUN_ID" in os.environ and os.environ.get("WORLD_SIZE", "1") != "1" and os.environ.get("RANK") == "0":
        note(
            "torchrun",
            [f"torchrun has started {os.environ['WORLD_SIZE']} processes, and torch.distributed is not initialized: each of them "
             "gets all samples. Call init_process_group() before the loop, or say rank= and world="],
        )  # fmt: skip
    return 0, 1


def _move(batch: Batch, how: Callable[[torch.Tensor], torch.Tensor]) -> Batch:
    return placed_as(batch, ((name, each_array(value, how, torch.Tensor)) for name, value in batch.items()))


class Loader(Adapter, IterableDataset[Any]):
    """presto.Loader for PyTorch: each batch is a dict of tensors on the loader's memory.

    Iterate over it. No DataLoader is needed, and no worker processes: the work is done by threads of the C library.
    Inside a torch.utils.data.DataLoader(loader, batch_size=None, num_workers=N) each worker takes its share, so that
    nothing comes twice; this is slower, and a warning says so.

    The tensors share memory that the loader uses again once they are dropped: do not write into them. Ragged
    features are presto.Ragged of tensors, strings are presto.Bytes. bool, uint8, int8 to int64, float16 to float64, bfloat16
    and complex numbers keep their dtype; uint16, uint32 and uint64 need PyTorch 2.3, else they are a presto.UnsupportedError.

    Args:
        dataset, batch, and all others: as presto.Loader.
        rank, world:   default: those of torch.distributed, if it is initialized when the loop begins; else 0 of 1.
        device:        copy batches there, one batch ahead of the loop. "cpu" copies nothing: batches are only taken one ahead.
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
        self._channels_last = channels_last if isinstance(channels_last, bool) else names_of(channels_last, "channels_last")
        self._device = None if device is None else torch.device(device)
        if self._device is not None:
            _check_device(self._device)
        self._pins = self._device is not None and self._device.type == "cuda" if pin_memory is None else pin_memory
        if self._pins and not torch.cuda.is_available():
            warnings.warn("pin_memory: there is no CUDA device, so memory is not pinned", stacklevel=2)
            self._pins = False
        self._epochs = Epochs()
        self._iterator: int | None = None  # of the DataLoader, in its worker
        super().__init__(dataset, batch, rank, world, options)
        if not isinstance(self._channels_last, bool):
            self.dataset.check_names(self._channels_last)

    def __iter__(self) -> Iterator[Any]:
        loader = self._loader()
        if self._iterator is None and (begin := self._epochs.leave()) is not None:
            self._ahead = None
            loader._begin_with(begin)
        if self._iterator is not None and loader._taken > 0:
            # A worker that stays. If the iterator before this one was left, what was fetched for it is lost: it is not gone on with.
            self._ahead = None
            if not loader._ended:
                loader._begin_with(loader._end())
        batches = super().__iter__()
        if self._iterator is not None:
            self._epochs.reach(self._iterator, loader._end())
        return batches

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on where state_dict() was called, as presto.Loader.load_state_dict()."""
        super().load_state_dict(state_dict)
        if self._iterator is None:
            self._epochs.leave()

    def _loader(self) -> WorkerLoader:
        loader = super()._loader()
        assert isinstance(loader, WorkerLoader)
        worker = get_worker_info()
        if worker is not None and self._iterator is None:
            self._iterator = worker.seed - worker.id
            begin = self._epochs.join(self._iterator, worker.id, loader._end(), loader._step())
            if begin is not None:
                loader._begin_with(begin)
        return loader

    def _default_share(self) -> tuple[int, int]:
        return _distributed()

    def _worker(self) -> tuple[int, int] | None:
        worker = get_worker_info()
        return None if worker is None else (worker.id, worker.num_workers)

    def _tell_divided(self) -> None:
        warnings.warn(
            "presto.torch.Loader has threads of its own: it is faster without a DataLoader's workers", stacklevel=4
        )

    def _new(self, rank: int, world: int) -> WorkerLoader:
        inner = _TensorLoader(self.dataset, self.batch, rank=rank, world=world, **self._options)
        inner._channels_last = self._channels_last
        if (worker := self._worker()) is not None and not inner._drop_last:
            # A rank's workers have its samples in turn. If the last turn is not full, the others would repeat a sample.
            number, workers = worker
            share = -(-self.dataset.epoch_samples * workers // world)
            inner._has_surplus = 0 < share % workers <= number
        return inner

    # ---- transfer, one batch ahead ----

    def _moves(self) -> bool:
        return self._device is not None or self._pins

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
