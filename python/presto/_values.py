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


def prepare(value: Any) -> tuple[str | None, object]:
    """(dtype or None, what the module knows). TypeError or ValueError: it cannot be stored."""
    shown = f"a {type(value).__name__}"
    if isinstance(value, (dict, set, frozenset)) or callable(value):
        raise TypeError(f"{shown} cannot be stored")
    array = np.asarray(value)
    if array.dtype.kind == "O":
        raise TypeError(f"{shown} cannot be stored: it is no number, text, bytes, array, or list of one of them")
    if isinstance(value, (list, tuple)) and array.ndim == 1 and array.dtype.kind in "biufU":
        return None, array.tolist()  # NumPy's scalars, or numbers of more than one kind
    return _plain(array, shown)
