# SPDX-License-Identifier: Apache-2.0
"""Looking into datasets and TFRecord files, whoever wrote them."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from . import _native
from ._filesystem import checked, given
from ._guesses import advised
from ._options import natural
from ._paths import Path
from ._progress import size
from ._write import encoded_paths

_MOST_DAMAGE = 1000


@dataclass(frozen=True)
class File:
    """One file: `records` in it, `lost_ranges` (of bytes that are no record: damage), is an index beside it?"""

    path: str
    bytes: int
    records: int
    compression: str
    indexed: bool
    lost_ranges: int
    name_disagrees: bool

    def __repr__(self) -> str:
        lost = f", DAMAGED in {self.lost_ranges} places" if self.lost_ranges else ""
        return f"<presto.File {self.path!r}: {self.records} records, {size(self.bytes)}{lost}>"


@dataclass(frozen=True)
class SeenFeature:
    """What the sampled records have in common in a feature: dtype and shape (None: differs), how it is encoded ("bytes",
    "int64", "float", "tensor"), what its bytes are ("jpeg", "text", ... or None), in how many records it was seen."""

    name: str
    dtype: str
    shape: tuple[int | None, ...] | None
    encoding: str
    content: str | None
    seen: int
    least_bytes: int
    most_bytes: int

    def __repr__(self) -> str:
        shape = "?" if self.shape is None else "x".join("?" if n is None else str(n) for n in self.shape) or "scalar"
        content = f", {self.content}" if self.content else ""
        return f"<presto.SeenFeature {self.name!r}: {self.dtype} {shape}{content}, seen {self.seen} times>"


@dataclass(frozen=True)
class Damage:
    """One fault: `kind`, where, and how many bytes belong to no whole record."""

    kind: str
    file: str
    record: int | None
    offset: int | None
    lost_bytes: int
    message: str


@dataclass(frozen=True)
class Info:
    """What presto-inspect knows of a dataset or of TFRecord files.

    Attributes:
        files:        a presto.File each.
        records, stored_bytes, raw_bytes: in all. `raw_bytes`, before compression, is extrapolated unless raw_bytes_exact.
        codec:        of the records; guessed from their first bytes if codec_guessed.
        record_kind:  "Example", "SequenceExample", "bytes" or "empty".
        features:     name -> presto.SeenFeature, from `sampled` records.
        least_bytes, median_bytes, most_bytes: of a record as stored.
        damage:       with verify=True: a list of presto.Damage, the first 1000 of `faults`. Else None.
    """

    files: list[File] = field(repr=False)
    records: int
    stored_bytes: int
    raw_bytes: int
    raw_bytes_exact: bool
    payload_bytes: int
    least_bytes: int
    median_bytes: int
    most_bytes: int
    codec: str
    codec_guessed: bool
    record_kind: str
    features: dict[str, SeenFeature]
    sampled: int
    faults: int | None = None
    damage: list[Damage] | None = None

    def __repr__(self) -> str:
        guessed = " (guessed)" if self.codec_guessed else ""
        lost = sum(file.lost_ranges for file in self.files)
        state = f"{lost} damaged places" if self.faults is None and lost else ""
        if self.faults is not None:
            state = f"{self.faults} faults" if self.faults else "no fault"
        lines = [
            f"<presto.Info: {self.records} records ({self.record_kind}) in {len(self.files)} files, "
            f"{size(self.stored_bytes)}, codec {self.codec}{guessed}{', ' if state else ''}{state}"
        ]
        lines += [f"  {feature!r}"[:200] for feature in self.features.values()]
        return "\n".join(lines) + ">"


def _feature(found: dict[str, Any]) -> SeenFeature:
    dtype, shape = found.pop("spec")
    return SeenFeature(dtype=dtype, shape=shape, **found)


@advised
def inspect(paths: Path | Iterable[Path], *, samples: int = 100, verify: bool = False, filesystem: Any = None) -> Info:
    """Look into a dataset, or TFRecord files of any program: shards, records, codec, features, damage.

    Args:
        paths:   a path, or several.
        samples: how many records are looked into for the features.
        verify:  read everything, check every checksum, record and index, and against dataset.json: `damage` has the faults.
        filesystem: an fsspec file system that has the paths, as in presto.open().

    Damage is no exception here. Ctrl-C ends it.

    Raises:
        presto.NotFoundError: a path that is not there.
        presto.ForeignError:  a file that holds no TFRecords.
    """
    place = None if filesystem is None else given(checked(filesystem))  # until the calls are over
    encoded = encoded_paths(paths, place)
    found = _native.inspect(encoded, natural(samples, "samples", 0, (1 << 63) - 1))
    files = [File(**file) for file in found.pop("files")]
    features = {feature["name"]: _feature(feature) for feature in found.pop("features")}
    if verify:
        verified = _native.verify(encoded, True, _MOST_DAMAGE)
        found["faults"] = verified["faults"]
        found["damage"] = [Damage(**fault) for fault in verified["damage"]]
    return Info(files=files, features=features, **found)
