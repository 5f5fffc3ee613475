# SPDX-License-Identifier: Apache-2.0
"""What arguments of presto.Loader, presto.write() and presto.sweep() mean to the C library."""
from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._checks import called as called, names_of as names_of, natural as natural, natural_or_none as natural_or_none
from ._dataset import _encode
from ._guesses import of_shuffle
from ._paths import absolute
from ._process import size
from ._strategy import strategy_of

_LONGEST = (1 << 63) - 1
SHUFFLES = {"none": 0, "buffer": 1, "full": 2, "blocks": 3}


def share_of(rank: Any, world: Any) -> tuple[int, int]:
    """Rank and world, which fit each other."""
    rank, world = natural(rank, "rank"), natural(world, "world", 1)
    if rank >= world:
        raise ValueError(f"rank {rank} of {world}: ranks are 0 to {world - 1}")
    return rank, world


def shuffle_of(value: str | bool | None) -> tuple[int, int]:
    """Kind and window."""
    if value is None or isinstance(value, (bool, np.bool_)):
        return SHUFFLES["full" if value else "none"], 0
    found = re.fullmatch(r"(none|full)|(buffer|blocks):(\d+)", value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f'shuffle is "none", "full", "buffer:N" or "blocks:N", not {value!r}{of_shuffle(value)}')
    return SHUFFLES[found[1] or found[2]], natural(int(found[3] or 0), "N of shuffle")


def cache_of(value: str | None) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, str):
        raise TypeError(f'cache is "memory:SIZE" or "disk:FOLDER:SIZE", not {value!r}')
    kind, _, rest = value.partition(":")
    if kind == "memory" and rest:
        return {"cache_bytes": size(rest, "cache")}
    if kind == "disk" and ":" in rest:
        folder, _, limit = rest.rpartition(":")
        return {"cache_bytes": size(limit, "cache"), "cache_dir": os.fsencode(absolute(folder))}
    raise ValueError(f'cache is "memory:SIZE" or "disk:FOLDER:SIZE", not {value!r}')


def settled(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a presto.Loader that is made later: paths are those of now."""
    found = dict(options)
    cache, strategy = found.get("cache"), found.get("strategy")
    if isinstance(cache, str) and cache.startswith("disk:"):
        found["cache"] = f"disk:{absolute(cache[len('disk:'):])}"
    if strategy is not None:
        found["strategy"] = strategy_of(strategy).settled()
    return found


def on_error_of(value: str) -> dict[str, Any]:
    if not isinstance(value, str):
        raise TypeError(f'on_error is "fail", "skip", "skip:N" or "skip:P%", not {value!r}')
    if value == "fail":
        return {}
    found = re.fullmatch(r"skip(?::(\d+)|:(\d+(?:\.\d+)?)%)?", value)
    if found is None:
        raise ValueError(f'on_error is "fail", "skip", "skip:N" or "skip:P%", not {value!r}')
    limits: dict[str, Any] = {"skip": True}
    if found[1] is not None:
        limits["skip_limit"] = natural(int(found[1]), "N of on_error")
    if found[2] is not None:
        limits["skip_fraction"] = float(found[2]) / 100
    return limits


def pads_of(pad: Mapping[str, Any]) -> tuple[tuple[bytes, float, int], ...]:
    """{"tokens": 0} or {"tokens": (0, 512)}."""
    found = []
    for name, given in pad.items():
        value, length = given if isinstance(given, tuple) and len(given) == 2 else (given, 0)
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise TypeError(f"pad of {name!r} is a number, or a number and a length, not {given!r}") from None
        found.append((_encode(name), number, natural(length, f"the length of pad {name!r}", 0, _LONGEST)))
    return tuple(found)
