# SPDX-License-Identifier: Apache-2.0
"""Paths as arguments: one or several; absolute where they are opened again later."""
from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from ._errors import ArgumentError, NotFoundError
from ._guesses import is_url, of_path

Path = str | os.PathLike[str]


def _is_one(path: Any) -> Any:
    """The path; what another library would make one of is refused with the way here."""
    found = os.fspath(path)
    if is_url(found):
        return found
    if (way := of_path(found)) is not None:
        raise NotFoundError(f"{os.fsdecode(found)}: no such path: {way}", file=os.fsdecode(found))
    return found


def output_of(path: Path, *, may_be_bucket: bool = False) -> str:
    """A path to write to. `may_be_bucket`: s3://BUCKET/KEY will do; what else is a URL is for the library to refuse."""
    found = os.fsdecode(os.fspath(path))
    if may_be_bucket and is_url(found):
        return found
    if "://" in found or found.startswith("~/"):
        raise ArgumentError(f"{found}: nothing can be written there: {of_path(found) or 'it is no path of a file system'}")
    return found


def paths_of(given: Path | Iterable[Path], *, of: object = None) -> tuple[Any, ...]:
    """A path or several, each a str, or bytes. `of`: the file system of the program's own that they are of; None: this machine's."""
    is_one = _is_one if of is None else os.fspath
    if isinstance(given, (str, bytes, os.PathLike)):
        return (is_one(given),)
    if getattr(given, "_has_samples", False):  # else it would be read as a whole, as a list of paths
        kind = type(given)
        name = f"presto.{kind.__name__}" if kind.__module__.startswith("presto._") else f"{kind.__module__}.{kind.__name__}"
        raise TypeError(f"a path, or a list of paths, is expected here, not a {name}: give the paths that it was opened with")
    if not isinstance(given, Iterable):
        raise TypeError(f"a path, or a list of paths, is expected here, not {given!r}")
    found = []
    for path in given:
        if not isinstance(path, (str, bytes, os.PathLike)):
            raise TypeError(f"a path, or a list of paths, is expected here: a {type(given).__name__} has a {type(path).__name__}")
        found.append(is_one(path))
    return tuple(found)


def absolute(path: Any) -> Any:
    """The path whatever the working folder will be. `..` stays: what it means behind a link is the system's to say."""
    if is_url(path):
        return path
    if isinstance(path, bytes):
        return os.path.join(os.getcwdb(), path) if path and not os.path.isabs(path) else path
    return os.path.join(os.getcwd(), path) if path and not os.path.isabs(path) else path
