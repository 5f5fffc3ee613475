# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any

from ._errors import Error

version: str

def builtin_pipelines() -> list[str]: ...
def arrow_stream(next: Callable[[], Batch | None], /) -> Any: ...

_Spec = tuple[str, tuple[int | None, ...] | None]

class Stream:
    def __new__(
        cls,
        paths: tuple[bytes, ...],
        set: tuple[bytes, ...],
        pipeline: str | None,
        start: str | None,
        to: str | None,
        verify: str,
        map: bool,
        tolerate: bool,
        cached: bool,
    ) -> Stream: ...
    count: int
    bytes: int
    features: list[tuple[str, _Spec]]
    main: str | None
    labels: list[str]
    notes: list[str]
    pipeline: str | None
    output: _Spec | None
    explain: str

class Buffer:
    dtype: str
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __dlpack__(
        self,
        *,
        stream: object = ...,
        max_version: tuple[int, int] | None = ...,
        dl_device: tuple[int, int] | None = ...,
        copy: bool | None = ...,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

class Batch:
    features: tuple[tuple[str, str, Buffer, Buffer | None, Buffer | None, Buffer | None], ...]
    numbers: Buffer
    place: tuple[int, int, int, int]

class Loader:
    def __new__(cls, stream: Stream, options: dict[str, Any]) -> Loader: ...
    def next(self) -> Batch | None: ...
    def pick(self, numbers: bytes, /) -> Batch: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...
    def state(self) -> bytes: ...
    def stats(self) -> dict[str, Any]: ...
    def verdict(self) -> dict[str, Any]: ...
    held: tuple[int, int]
    epoch_samples: int
    is_current: bool
    warnings: list[str]

class Ring:
    def __new__(cls, path: bytes | None, fd: int, wait_s: float) -> Ring: ...
    def next(self) -> Batch | None: ...
    def close(self) -> None: ...
    held: tuple[int, int]

OnSkip = Callable[[int, int, Error], object]
