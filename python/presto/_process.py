# SPDX-License-Identifier: Apache-2.0
"""The process: forks, CPUs, sizes."""
from __future__ import annotations

import os
import re

from . import _native

_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


def generation() -> int:
    """Changes in a child process: what was opened before a fork is not used there."""
    return _forks


cpu_count = _native.processor_count
auto_threads = _native.auto_threads


_UNITS = {"": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}


def size(value: int | str, name: str) -> int:
    """Bytes: a number, or text such as "256MiB"."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64:
        return value
    found = re.fullmatch(r"\s*(\d+)\s*([kmgt]i?b)?\s*", str(value), re.IGNORECASE)
    unit = (found[2] or "").lower() if found else "?"
    if found is None or unit not in _UNITS:
        raise ValueError(f'{name} is a number of bytes or a size such as "256MiB", not {value!r}')
    if (number := int(found[1]) * _UNITS[unit]) >= 1 << 64:
        raise ValueError(f"{name} is too large: {value!r}")
    return number
