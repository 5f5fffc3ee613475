# SPDX-License-Identifier: Apache-2.0
"""The processes of a presto.step(): requests on stdin, replies on stdout (docs/own-steps.md)."""
from __future__ import annotations

import os
import struct
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _native

_HEAD = struct.Struct("<QQ")  # bytes of the Example, number of the request
TRACES = "PRESTO_STEP_TRACES"  # the folder where a traceback goes


class BadSample(Exception):
    """Raised in a step: this sample cannot be processed; `on_error` decides. Other exceptions end the run."""


def _read(file: int, size: int) -> bytearray | None:
    """`size` bytes; None at the end of the file."""
    data = bytearray(size)
    view, used = memoryview(data), 0
    while used < size:
        got = os.readv(file, [view[used:]])
        if got == 0:
            return None
        used += got
    return data


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _value(found: Any) -> Any:
    """(dtype, shape, bytes) as an array; bytes stay."""
    if not isinstance(found, tuple):
        return found
    dtype, shape, data = found
    if dtype == "bfloat16":
        from ml_dtypes import bfloat16

        return np.frombuffer(data, bfloat16).reshape(shape)
    return np.frombuffer(data, dtype).reshape(shape)


def _keep_trace() -> None:
    """The traceback, for the process that started this one; stderr has its end."""
    folder = os.environ.get(TRACES)
    if folder and os.path.isdir(folder):
        with open(os.path.join(folder, f"{time.time_ns()}-{os.getpid()}"), "w", encoding="utf-8") as file:
            traceback.print_exc(file=file)


def _answer(function: Callable[..., Any], request: dict[str, Any], takes: str, sets: bool, draws: bool) -> bytes:
    value = request.pop("value")
    if takes == "str":
        value = value.decode()
    if draws:
        request["seed"] = int(request.pop("random"))
    try:
        result = function(value, **request)
    except BadSample as error:
        return _native.make_example({"error": str(error) or "bad sample"})
    if result is None:
        return b""
    others: dict[str, Any] = {}
    if sets and isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict):
        result, others = result
    if not isinstance(result, (str, bytes, bytearray)):
        result = np.asarray(result)
        if result.ndim == 0:  # as a tensor, whatever its dtype
            result = np.array(result)
    return _native.make_example({**others, "value": result})


def serve(
    function: Callable[..., Any], *, takes: str, features: tuple[str, ...], sets: bool, draws: bool
) -> None:
    """Answer requests until stdin ends. For the function, stdin is empty."""
    function = getattr(function, "function", None) or function  # a presto.Step of the module
    requests, replies = os.dup(0), os.dup(1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)  # programs that the function starts must not read requests
    os.dup2(2, 1)  # print() must not get between the frames
    sys.stdout = sys.stderr
    while (head := _read(requests, _HEAD.size)) is not None:
        size, number = _HEAD.unpack(head)
        payload = _read(requests, size)
        if payload is None:
            return
        try:
            found = _native.parse_example(payload, takes != "array")
            request = {name: _value(value) for name, value in found.items()}
            reply = _answer(function, request, takes, sets, draws)
        except Exception:
            _keep_trace()
            raise
        _write(replies, _HEAD.pack(len(reply), number) + reply)
