# SPDX-License-Identifier: Apache-2.0
"""File systems of fsspec as places to read from: filesystem= of presto.open() and others.

The library knows such a file system by a name, "memory+1a2b3c4d", and its files by "memory+1a2b3c4d:///photos/1.jpg". The name is
made of what the file system was made with, so that it is the same in another process: caches and states know it by that.
"""
from __future__ import annotations

import contextlib
import datetime
import hashlib
import io
import itertools
import json
import os
import pickle
import re
import threading
import weakref
from collections.abc import Iterable, Mapping
from typing import Any

from . import _native
from ._errors import ArgumentError, BusyError
from ._paths import Path, paths_of

_FILE, _FOLDER, _OTHER = 0, 1, 2  # presto_filesystem_type
_MEMORY, _IO, _NOT_FOUND, _UNSUPPORTED, _STOPPED = -1, -2, -5, -6, -12  # presto_status
_VERSION_BYTES = 63  # PRESTO_FILESYSTEM_VERSION_BYTES, without the 0
_NEEDED = ("info", "ls", "open", "invalidate_cache", "to_json", "_parent", "_strip_protocol")
_MOST_HANDLES = 4  # that stay open, of a file
_SECRET = re.compile("pass|secret|token|key|credential|sas|auth|signature", re.IGNORECASE)
_UNKNOWN = f"process={os.urandom(16).hex()}"  # in place of a version: what another process has kept is of another content

# What tells one content of a file from another, in the words of many file systems.
_VERSIONS = ("generation", "ETag", "etag", "md5Hash", "content_md5", "md5", "sha256", "sha", "blob_id", "checksum", "CRC", "chksum", "ino")
_TIMES = ("mtime", "LastModified", "last_modified", "Last-Modified", "updated", "modified", "timeModified", "created")


# ---- what is known of a file ----


def _time_ns(value: Any) -> int:
    """A time as file systems give it: a number of seconds, a datetime, a text. 0: none of these."""
    with contextlib.suppress(ValueError, OverflowError, TypeError):
        if isinstance(value, str):
            value = datetime.datetime.fromisoformat(value)
        if isinstance(value, datetime.datetime):
            aware = value if value.tzinfo is not None else value.replace(tzinfo=datetime.timezone.utc)
            value = aware.timestamp()
        if isinstance(value, (int, float)) and abs(value) < 9e9:
            return int(value * 1e9)
    return 0


def _version(info: Mapping[str, Any]) -> str:
    for key in _VERSIONS:
        value = info.get(key)
        if isinstance(value, (str, bytes, int)) and value != "" and value != b"":
            text = f"{key}={value!r}"
            return text if len(text) <= _VERSION_BYTES and text.isascii() else hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:40]
    return ""


def _facts(info: Mapping[str, Any]) -> tuple[int, int, int, str]:
    kind = {"file": _FILE, "directory": _FOLDER}.get(str(info.get("type")), _OTHER)
    if kind != _FILE:
        return kind, 0, 0, ""
    size = info.get("size")
    if size is None or int(size) < 0:
        raise OSError("the file system does not say how large it is")
    time_ns = next((ns for key in _TIMES if (ns := _time_ns(info.get(key)))), 0)
    return kind, int(size), time_ns, _version(info) or ("" if time_ns else _UNKNOWN)


def failure(error: BaseException) -> tuple[int, int, bytes]:
    """A presto_status, an errno, and what happened, in the words of the file system."""
    number = error.errno if isinstance(error, OSError) and isinstance(error.errno, int) else 0
    words = " ".join(str(error).split())
    text = f"{type(error).__name__}: {words}" if words else type(error).__name__
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):  # what is below a file is not there
        status, text = _NOT_FOUND, "no such file or folder" + (f" ({words})" if words else "")
    elif isinstance(error, MemoryError):
        status = _MEMORY
    elif isinstance(error, NotImplementedError):
        status = _UNSUPPORTED
    else:
        status = _STOPPED if isinstance(error, KeyboardInterrupt) else _IO
    return status, number, text.replace("\0", " ").encode("utf-8", "replace")


# ---- what the library calls ----


class _File:
    """An open file. Its handles are opened when somebody reads: one thread reads with a handle at a time."""

    def __init__(self, name: str, facts: tuple[int, int, int, str]) -> None:
        self.name, self.facts = name, facts
        self.idle: list[Any] = []  # handles; list.pop() and append() are of one step


class _Calls:
    """Called by any thread of the library, several at once."""

    def __init__(self, fs: Any) -> None:
        self._fs = fs
        self._is_pinned = _is_pinned(fs)
        self._lock: contextlib.AbstractContextManager[Any] = contextlib.nullcontext() if _is_shared(fs) else threading.RLock()

    def _name(self, path: str) -> str:
        return str(self._fs.root_marker) + path.lstrip("/")

    def _info(self, name: str) -> Mapping[str, Any]:
        """What it is now: a list that the file system keeps may be old."""
        fs = self._fs
        if fs._parent(name) in getattr(fs, "dircache", ()):
            fs.invalidate_cache(name)
        info: Mapping[str, Any] = fs.info(name)
        return info

    def find(self, path: str) -> tuple[int, int, int, str]:
        with self._lock:
            return _facts(self._info(self._name(path)))

    def open(self, path: str) -> tuple[_File, tuple[int, int, int, str]]:
        file = _File(self._name(path), self.find(path))
        return file, file.facts

    def _handle(self, file: _File) -> Any:
        """Another handle of the file. It must be of the content that was opened."""
        try:
            handle = self._fs.open(file.name, "rb", cache_type="none")  # what is read ahead would be read twice
        except TypeError:  # an argument that this one does not know
            handle = self._fs.open(file.name, "rb")
        try:
            self._check(file)
        except BaseException:
            _close(handle)
            raise
        return handle

    def _check(self, file: _File) -> None:
        if _facts(self._info(file.name)) != file.facts:
            raise OSError("has changed since it was opened")

    def read(self, file: _File, offset: int, count: int) -> bytes:
        with self._lock:
            try:
                handle = file.idle.pop()
            except IndexError:
                handle = self._handle(file)
            try:
                data = _read(handle, offset, count)
                if not self._is_pinned and not isinstance(handle, io.BytesIO):
                    self._check(file)
            except BaseException:
                _close(handle)
                raise
            if len(file.idle) >= _MOST_HANDLES:
                _close(handle)
            else:
                file.idle.append(handle)
        return data

    def close(self, file: _File) -> None:
        with self._lock:
            while file.idle:
                _close(file.idle.pop())

    def list(self, path: str) -> list[tuple[bytes, tuple[int, int, int, str]]]:
        folder = self._name(path)
        with self._lock:
            if folder in getattr(self._fs, "dircache", ()):
                self._fs.invalidate_cache(folder)
            return [pair for entry in self._fs.ls(folder, detail=True) for pair in self._listed(folder, entry)]

    def _listed(self, folder: str, entry: Mapping[str, Any]) -> Iterable[tuple[bytes, tuple[int, int, int, str]]]:
        name = str(entry["name"]).rstrip("/")
        if name.strip("/") == folder.strip("/"):
            if entry.get("type") == "directory" or str(entry["name"]).endswith("/") or not folder.strip("/"):
                return  # the folder itself, or an object that marks it
            raise NotADirectoryError(f"{folder} is no folder")
        if name.rpartition("/")[0].strip("/") != folder.strip("/"):
            return  # a page of a web server may point anywhere
        is_known = entry.get("type") == "directory" or (entry.get("type") == "file" and entry.get("size") is not None)
        facts: tuple[int, int, int, str] = (_OTHER, 0, 0, "")
        with contextlib.suppress(FileNotFoundError):  # a link to nothing
            facts = _facts(entry if is_known and not entry.get("islink") else self._fs.info(name))
        yield name.rsplit("/", 1)[-1].encode("utf-8", "surrogateescape"), facts


def _read(handle: Any, offset: int, count: int) -> bytes:
    if isinstance(handle, io.BytesIO):  # may be that of all who have the file open: its position is nobody's
        return bytes(handle.getbuffer()[offset : offset + count])
    handle.seek(offset)
    data = handle.read(count)
    if len(data) == count:
        return bytes(data)
    pieces = [data]
    left = count - len(data)
    while left > 0 and (data := handle.read(left)):
        pieces.append(data)
        left -= len(data)
    return b"".join(pieces)


def _close(handle: Any) -> None:
    if not isinstance(handle, io.BytesIO):
        with contextlib.suppress(Exception):  # what was read of it is right
            handle.close()


def _is_shared(fs: Any) -> bool:
    """May several threads call it at once? Those that fsspec runs in a loop of its own, files of this machine, and memory."""
    known = ("fsspec.implementations.local.LocalFileSystem", "fsspec.implementations.memory.MemoryFileSystem")
    return bool(getattr(fs, "async_impl", False)) or f"{type(fs).__module__}.{type(fs).__qualname__}" in known


def _is_pinned(fs: Any) -> bool:
    """Does a handle stay with the file that it was opened with, whatever gets its name meanwhile?"""
    kinds = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(fs).__mro__}
    is_archive = "fsspec.archive.AbstractArchiveFileSystem" in kinds
    return is_archive or f"{type(fs).__module__}.{type(fs).__qualname__}" == "fsspec.implementations.local.LocalFileSystem"


# ---- names ----


def _public(made_with: Any) -> Any:
    """Without what may be a secret, of which not even a digest is shown; so keys may be renewed."""
    if isinstance(made_with, dict):
        return {name: _public(value) for name, value in made_with.items() if not _SECRET.search(name)}
    if isinstance(made_with, list):
        return [_public(value) for value in made_with]
    return re.sub(r"//[^/@]*@", "//", made_with) if isinstance(made_with, str) else made_with


class Given:
    """A file system under a name that the library knows, as long as this lives."""

    def __init__(self, fs: Any, name: str) -> None:
        self.fs, self.name = fs, name
        self._native: _native.Filesystem | None = _native.Filesystem(name, _Calls(fs))

    @property
    def is_current(self) -> bool:
        """False in a child of fork, where each file system must be one of the child's own."""
        return self._native is not None

    def drop(self) -> None:
        self._native = None

    def encoded(self, paths: Iterable[Any]) -> tuple[bytes, ...]:
        """Stripped paths, as the library takes them."""
        return tuple(os.fsencode(f"{self.name}:///{path.lstrip('/')}") for path in paths)


_given: weakref.WeakValueDictionary[str, Given] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def _forget_parent() -> None:
    """In a child of fork."""
    global _lock
    _lock = threading.Lock()
    for one in list(_given.values()):
        one.drop()
    _given.clear()


os.register_at_fork(after_in_child=_forget_parent)


def _stem(fs: Any) -> str:
    protocol = fs.protocol if isinstance(fs.protocol, str) else next(iter(fs.protocol), "")
    scheme = re.sub(r"[^a-z0-9.-]", "-", protocol.lower()).strip("-.")[:32]
    try:
        made_with = json.dumps(_public(json.loads(fs.to_json())), sort_keys=True).encode("utf-8", "surrogateescape")
    except Exception:  # of objects that have no text: what is kept of its files is of nobody else
        made_with = os.urandom(16)
    return f"{scheme if scheme[:1].isalpha() else 'fs'}+{hashlib.sha256(made_with).hexdigest()[:8]}"


def checked(fs: Any) -> Any:
    """What `filesystem` may be."""
    if isinstance(fs, str):
        raise TypeError(f"filesystem is an fsspec file system: fsspec.filesystem({fs!r})")
    if not all(callable(getattr(fs, name, None)) for name in _NEEDED) or not hasattr(fs, "root_marker") or not hasattr(fs, "protocol"):
        hint = ": fsspec.implementations.arrow.ArrowFSWrapper makes one of it" if type(fs).__module__.startswith("pyarrow") else ""
        raise TypeError(f"filesystem is an fsspec file system, not {fs!r}{hint}")
    return fs


def given(fs: Any) -> Given:
    """The name of a file system, in this process."""
    stem = _stem(fs)
    with _lock:
        known = list(_given.values())
        for one in known:
            if one.fs is fs:
                return one
        for number in itertools.count(1):
            name = stem if number == 1 else f"{stem}.{number}"
            if all(one.name != name for one in known):
                with contextlib.suppress(BusyError):  # one that is being dropped, or that has open files
                    one = _given[name] = Given(fs, name)
                    return one
    raise AssertionError("numbers end")


def in_child(fs: Any) -> Any:
    """The file system in a child of fork: one of its own, for the parent reads from the same open files."""
    try:
        return pickle.loads(pickle.dumps(fs))
    except Exception as error:
        raise ArgumentError(
            f"a file system that cannot be pickled ({error}) cannot be used in a child process: make it of paths, not of open files"
        ) from error


def stripped(paths: Path | Iterable[Path], fs: Any) -> tuple[str, ...]:
    """Paths as the file system itself writes them."""
    return tuple(str(fs._strip_protocol(os.fsdecode(path))) for path in paths_of(paths, of=fs))
