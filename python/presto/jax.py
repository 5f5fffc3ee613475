# SPDX-License-Identifier: Apache-2.0
"""Presto for JAX: batches as jax.Array, on the loader's memory where the device is the CPU.

    import presto.jax

    loader = presto.jax.Loader("photos-resized", batch=256, shuffle="full", epochs=90, drop_last=True)
    for batch in loader:
        state = step(state, batch["image"], batch["label"])
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jax
import numpy as np

from . import _native
from ._adapter import Adapter, each_array, placed_as
from ._arrays import Batch, Bytes, Ragged
from ._dataset import Dataset, Path
from ._loader import Loader as _Loader

__all__ = ["Loader", "array_of"]

# JAX makes 32 bits of them, unless jax_enable_x64 is set: then there is a copy.
_WIDE = frozenset({"int64", "uint64", "float64", "complex128"})


def array_of(values: _native.Buffer) -> Any:
    """A native array as a jax.Array on the CPU: on the same memory, except for numbers of 64 bits that JAX makes narrower."""
    if values.dtype in _WIDE and not getattr(jax.config, "jax_enable_x64"):  # noqa: B009
        host = np.asarray(values)
        return jax.device_put(host.astype(jax.dtypes.canonicalize_dtype(host.dtype)), jax.local_devices(backend="cpu")[0])
    return jax.dlpack.from_dlpack(values)


class _ArrayLoader(_Loader):
    """As presto.Loader, with jax.Array."""

    def _wrap(self, found: _native.Batch) -> Batch:
        batch = Batch()
        for name, layout, values, offsets, rows, shapes in found.features:
            if layout == "dense" or offsets is None:
                batch[name] = array_of(values)
            elif layout == "ragged":
                batch[name] = Ragged(array_of(values), array_of(offsets), None if shapes is None else array_of(shapes))
            else:  # strings are no arrays of JAX
                batch[name] = Bytes(np.asarray(values), np.asarray(offsets), None if rows is None else np.asarray(rows))
        batch.epoch, batch.first, batch.rows, batch.skipped = found.place
        batch._numbers = found.numbers
        return batch


class Loader(Adapter):
    """presto.Loader for JAX: each batch is a dict of jax.Array.

    On the CPU they are the loader's memory (DLPack); arrays of JAX cannot be written to, so nothing can go wrong. Only int64
    and float64 are copied, to 32 bits, unless jax_enable_x64 is set. Ragged features are presto.Ragged of jax.Array, strings
    are presto.Bytes. `drop_last=True` keeps one shape for all batches, so that a jitted function is compiled once.

    Args:
        dataset, batch, and all others: as presto.Loader.
        rank, world:   default: jax.process_index() and jax.process_count(), when the loop begins.
        device:        a jax.Device: copy batches there, one batch ahead of the loop.
        sharding:      a jax.sharding.Sharding of global arrays: dense features become jax.Array of all processes' rows
                       (jax.make_array_from_process_local_data), one batch ahead. `batch` is the rows of one process.

    state_dict() and load_state_dict() count what the loop has taken.
    """

    def __init__(
        self,
        dataset: Dataset | Path | Iterable[Path],
        batch: int = 1,
        *,
        rank: int | None = None,
        world: int | None = None,
        device: Any = None,
        sharding: jax.sharding.Sharding | None = None,
        **options: Any,
    ) -> None:
        if device is not None and sharding is not None:
            raise ValueError("arrays go to a device or are sharded, not both")
        self._device = device
        self._sharding = sharding
        super().__init__(dataset, batch, rank, world, options)

    def _default_share(self) -> tuple[int, int]:
        return jax.process_index(), jax.process_count()

    def _new(self, rank: int, world: int) -> _Loader:
        return _ArrayLoader(self.dataset, self.batch, rank=rank, world=world, **self._options)

    def _moves(self) -> bool:
        return self._device is not None or self._sharding is not None

    def _transfer(self, batch: Batch) -> tuple[Batch, Any]:
        """Both begin the copy and return: what uses the arrays waits for them."""
        move: Callable[[Any], Any]
        if self._sharding is None:
            device = self._device
            return placed_as(batch, ((k, each_array(v, lambda a: jax.device_put(a, device), jax.Array))
                                     for k, v in batch.items())), None  # fmt: skip
        sharding = self._sharding
        move = lambda a: jax.make_array_from_process_local_data(sharding, a)  # noqa: E731
        return placed_as(batch, ((k, move(v) if isinstance(v, jax.Array) else v) for k, v in batch.items())), None
