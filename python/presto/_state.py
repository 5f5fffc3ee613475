# SPDX-License-Identifier: Apache-2.0
"""States of a loader: dicts that JSON can keep."""
from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from ._errors import ArgumentError
from ._options import natural

_MOST_EPOCHS = 1 << 62


class Position(NamedTuple):
    """Where a loop stands. `stream`: the library's state, or None at the start of epoch `first`."""

    first: int  # the epoch that the stream begins with
    until: int  # the one that this `for` ends before
    ended: bool  # this `for` has delivered all
    stream: bytes | None


def moved(state: bytes, epoch: int, position: int) -> bytes:
    """The library's state, at another position. Not that of a mix, which says more."""
    return json.dumps({**json.loads(state), "epoch": epoch, "next": position}).encode()


def saved(position: Position) -> dict[str, Any]:
    """The dict of a position."""
    return {
        "presto": 1,
        "stream": None if position.stream is None else json.loads(position.stream),
        "first_epoch": position.first,
        "until_epoch": position.until,
        "ended": position.ended,
    }


def is_behind(state: Mapping[str, Any]) -> bool:
    """Whether all of its `for` is before the position of this dict."""
    stream = state["stream"]
    return stream is not None and bool(stream["epoch"] >= state["until_epoch"])


def read(state: Mapping[str, Any], epochs: int, per_epoch: bool) -> Position:
    """The position of a dict, for a loader whose `for` delivers so many epochs, which may differ from the one that saved it."""
    if not isinstance(state, Mapping):
        raise TypeError(f"a state is a dict, as state_dict() gives it, not a {type(state).__name__}")
    if state.get("presto") != 1:
        raise ValueError("this is no state of a presto.Loader, or one of a later version")
    lacks = [name for name in ("stream", "first_epoch", "until_epoch", "ended") if name not in state]
    if lacks:
        raise ValueError(f"the state lacks {', '.join(lacks)}")
    first = natural(state["first_epoch"], "first_epoch of the state", 0, _MOST_EPOCHS)
    until = natural(state["until_epoch"], "until_epoch of the state", first, _MOST_EPOCHS)
    stream, ended = state["stream"], state["ended"]
    if not isinstance(ended, bool):
        raise ValueError(f"ended of the state is true or false, not {ended!r}")
    if stream is not None and not isinstance(stream, Mapping):
        raise ValueError(f"stream of the state is a dict, not {stream!r}")
    if not ended and until == first:
        raise ValueError(f"the state is inside of a loop of no epoch: until_epoch and first_epoch are {first}")
    epoch, offset = (first, 0) if stream is None else (stream.get("epoch", first), stream.get("next", 0))
    kept = None if stream is None else json.dumps(dict(stream)).encode()
    if not isinstance(epoch, int) or not isinstance(offset, int):
        return Position(first, until, ended, kept)  # the library says what is wrong
    if ended:
        if not per_epoch and until > first and until != first + epochs:  # its `for` was longer or shorter: a new one begins
            return Position(until, until, ended, kept if epoch == until else None)
        return Position(first, until, ended, kept)
    if (epoch, offset) > (until, 0):
        raise ValueError(f"the state is in epoch {epoch}, behind the end of its loop, which is before epoch {until}")
    end = first + epochs
    if (epoch, offset) > (end, 0):
        raise ArgumentError(
            f"the state is in epoch {epoch} of a loop that began with epoch {first}, and this loader has epochs={epochs}: "
            f"give it epochs={epoch - first + (offset > 0)} or more"
        )
    return Position(first, min(until, epoch + 1, end) if per_epoch else end, ended, kept)
