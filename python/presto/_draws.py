# SPDX-License-Identifier: Apache-2.0
"""By which random numbers a sample's random steps draw, where torch's DataLoader asks for it."""
from __future__ import annotations

import sys
from types import FrameType

_FETCH = "torch.utils.data._utils.fetch"  # the module by which a DataLoader without workers asks for samples


def _is_asked_by_loader() -> bool:
    """In the process that iterates over a DataLoader without workers."""
    if _FETCH not in sys.modules:
        return False
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != _FETCH:
        frame = frame.f_back
    return frame is not None


def draw_of_torch() -> int | None:
    """A seed of torch's random numbers, if a DataLoader of torch asks: they differ from worker to worker and from epoch to epoch,
    also in workers that persist, and follow from torch.manual_seed(). None: nobody of torch asks."""
    torch = sys.modules.get("torch")
    data = sys.modules.get("torch.utils.data")
    if torch is None or data is None or not (data.get_worker_info() is not None or _is_asked_by_loader()):
        return None
    return int(torch.empty((), dtype=torch.int64).random_())
