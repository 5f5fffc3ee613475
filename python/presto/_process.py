# SPDX-License-Identifier: Apache-2.0
"""The process: forks, CPUs, sizes."""
from __future__ import annotations

import operator
import os
import re
from fractions import Fraction

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


_UNITS = {"b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}


def size(value: int | float | str, name: str) -> int:
    """Bytes: a number, or text such as "256MiB" or "100MB"."""
    wrong = f'{name} is a number of bytes, or a size such as "256MiB" or "100MB", not {value!r}'
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?b|b)?\s*", value, re.IGNORECASE)
        if found is None or ("." in found[1] and found[2] is None):
            raise ValueError(wrong)
        number = int(Fraction(found[1]) * _UNITS[(found[2] or "b").lower()])
    elif isinstance(value, bool):
        raise ValueError(wrong)
    elif isinstance(value, float):
        if not value.is_integer():
            raise ValueError(wrong)
        number = int(value)
    else:
        try:
            number = operator.index(value)
        except TypeError:
            raise ValueError(wrong) from None
    if number < 0:
        raise ValueError(wrong)
    if number >= 1 << 64:
        raise ValueError(f"{name} is too large: {value!r}")
    return number
