# SPDX-License-Identifier: Apache-2.0
"""What an argument may be."""
from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any


def names_of(value: Iterable[str], name: str) -> tuple[str, ...]:
    """A list of names. A text by itself would be a list of its letters."""
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{name} is a list of names, not {value!r}: [{value!r}]")
    try:
        found = tuple(value)
    except TypeError:
        raise TypeError(f"{name} is a list of names, not {value!r}") from None
    for one in found:
        if not isinstance(one, str):
            raise TypeError(f"{name} is a list of names, and {one!r} is none")
    return found


def called(function: Any, name: str) -> Any:
    """A function, or None."""
    if function is not None and not callable(function):
        raise TypeError(f"{name} is a function, not {function!r}")
    return function


def natural_or_none(value: Any, name: str, least: int = 0) -> int | None:
    return None if value is None else natural(value, name, least)


def natural(value: Any, name: str, least: int = 0, most: int = (1 << 64) - 1) -> int:
    """A whole number, as any type of one."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is a whole number, not {value!r}") from None
    if not least <= number <= most:
        raise ValueError(f"{name} is {number}, and must be {least} or more" if number < least else f"{name} is too large: {number}")
    return number
