# SPDX-License-Identifier: Apache-2.0
"""Values of samples that the native module does not know as they are: it asks prepare() once."""
from __future__ import annotations

import sys
from typing import Any

import numpy as np

_SWAPPED = ">" if sys.byteorder == "little" else "<"


def _plain(array: np.ndarray[Any, Any], shown: str) -> tuple[str | None, object]:
    """A numeric array in this machine's order, row-major; texts as str."""
    if array.dtype.name == "bfloat16":
        return "bfloat16", np.array(array, order="C").view(np.uint16)
    if array.dtype.kind == "U" and array.ndim <= 1:
        return None, array.tolist()
    if array.dtype.kind not in "biufc" or array.dtype.itemsize > 16 or array.dtype.char in "gG":
        raise TypeError(f"{shown} of dtype {array.dtype} cannot be stored")
    if array.dtype.byteorder == _SWAPPED:
        array = array.astype(array.dtype.newbyteorder("="))
    return array.dtype.name, np.array(array, order="C", copy=True)


def _list(values: Any, array: np.ndarray[Any, Any]) -> tuple[str | None, object]:
    """Texts; or numbers. Those of NumPy keep their dtype. With Python's among them, the list is as one of Python's, except for
    float64, which would lose digits."""
    numbers = [item for item in values if isinstance(item, np.generic)]
    keeps = len(numbers) == len(values) or any(isinstance(item, np.float64) for item in numbers)
    if array.dtype.kind == "U" or not keeps or array.dtype in (np.int64, np.float32):  # what Examples have lists for
        return None, array.tolist()
    return _plain(array, "a list")


def prepare(value: Any) -> tuple[str | None, object]:
    """(dtype or None, what the module knows). TypeError or ValueError: it cannot be stored."""
    shown = f"a {type(value).__name__}"
    if isinstance(value, (dict, set, frozenset)) or callable(value):
        raise TypeError(f"{shown} cannot be stored")
    items = value if isinstance(value, (list, tuple)) else (value,)
    if any(isinstance(item, np.ma.MaskedArray) and np.ma.is_masked(item) for item in items):
        raise TypeError(f"{shown} with masked values cannot be stored: say what they are, with filled()")
    if isinstance(value, (list, tuple)):
        if all(isinstance(item, bytearray) for item in value):
            return None, [bytes(item) for item in value]
        texts = sum(isinstance(item, (str, bytes, bytearray)) for item in value)
        if 0 < texts < len(value):
            raise TypeError(f"{shown} that mixes texts with other values cannot be stored")
    array = np.asarray(value)
    if array.dtype.kind == "O":
        raise TypeError(f"{shown} cannot be stored: it is no number, text, bytes, array, or list of one of them")
    if isinstance(value, (list, tuple)) and array.ndim == 1 and array.dtype.kind in "biufU":
        return _list(value, array)
    return _plain(array, shown)
