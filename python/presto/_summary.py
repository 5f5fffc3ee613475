# SPDX-License-Identifier: Apache-2.0
"""What was written."""
from __future__ import annotations

from dataclasses import dataclass, field

from ._progress import number, size


@dataclass(frozen=True)
class Summary:
    """A dataset that was written, by presto.write() or a presto.Writer.

    Attributes:
        path:         its folder, for presto.open().
        samples:      samples in it.
        skipped:      samples that were left out, because of errors or by a step; `dropped` are those of steps.
        shards:       files, beside their indexes.
        stored_bytes: their size; `raw_bytes` is that of the serialized samples before compression, `source_bytes` what
                      was read.
        threads:      that worked.
        wall_s, cpu_s: time that it took; CPU time of the process meanwhile.
        packed_documents, packed_tokens, dropped_tokens, padded_tokens: of a last step `pack`.
        sent_requests, sent_retries, sent_bytes: to a bucket, by this process meanwhile; 0 for a folder.
        notes:        what should be known of how the input was found.
    """

    path: str
    samples: int
    skipped: int
    dropped: int
    shards: int
    stored_bytes: int
    raw_bytes: int
    source_bytes: int
    threads: int
    wall_s: float
    cpu_s: float
    packed_documents: int = 0
    packed_tokens: int = 0
    dropped_tokens: int = 0
    padded_tokens: int = 0
    sent_requests: int = 0
    sent_retries: int = 0
    sent_bytes: int = 0
    notes: tuple[str, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        left_out = f", {self.skipped} left out" if self.skipped else ""
        rate = number(self.samples / self.wall_s) if self.wall_s > 0 else "?"
        notes = "".join(f"; note: {note}" for note in self.notes)
        return (
            f"<presto.Summary {self.path!r}: {self.samples} samples{left_out}, {self.shards} shards, "
            f"{size(self.stored_bytes)} in {self.wall_s:.3g} s, {rate} samples/s{notes}>"
        )
