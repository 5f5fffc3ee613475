# SPDX-License-Identifier: Apache-2.0
"""Strategies: how far a dataset is prepared before it is stored, in which codec, read by how many threads."""
from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any

from . import _native
from ._notes import note
from ._paths import Path, absolute

UNPROCESSED = "unprocessed"


def is_path(pipeline: str) -> bool:
    """Is it a path of a pipeline, and not the name of a built-in one?"""
    return "/" in pipeline or pipeline.endswith((".yaml", ".yml"))


@dataclass(frozen=True)
class Strategy:
    """One strategy: of presto.sweep(), or read from strategy.yaml. presto.write(), presto.open() and presto.Loader take it.

    Attributes:
        stored:   the representation that is stored; "unprocessed": nothing is, the source is read as it is.
        codec:    of the records; None with "unprocessed".
        shards:   files; 0 with "unprocessed".
        threads:  of the loader.
        batch:    samples a batch, as measured.
        seed:     of shuffling and random steps.
        pipeline: name or path of the pipeline, and `set`, the changes to it.
        plugins:  files of plugins with steps of the pipeline, as presto.sweep() was given them. A file names none.
        figures:  what was measured, as in results.json; empty if it is read from a file.
    """

    stored: str
    codec: str | None
    shards: int
    threads: int
    batch: int
    seed: int
    pipeline: str
    set: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    figures: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    is_own: bool = field(default=False, repr=False, compare=False)  # made in this process: its pipeline may run programs

    def settled(self) -> Strategy:
        """With the path of the pipeline whatever the working folder will be (not public)."""
        return replace(self, pipeline=absolute(self.pipeline) if is_path(self.pipeline) else self.pipeline)

    @property
    def split(self) -> str:
        """What `stored` was called before; it will go."""
        note("presto.Strategy", ["Strategy.split is now called Strategy.stored; the old name will go"])
        return self.stored

    @property
    def failed(self) -> bool:
        """It could not be measured; figures["failure"] says why."""
        return bool(self.figures.get("status", "ok") != "ok")


def load_strategy(path: Path) -> Strategy:
    """Read strategy.yaml. Its pipeline starts no program: name that one yourself for it.

    Raises:
        presto.PipelineError, presto.StorageError: it is none, or cannot be read.
    """
    found = _native.load_strategy(os.fsencode(path))
    if found.pop("has_old_names"):
        note(os.fspath(path), [f"{os.fsdecode(path)} says 'split', which is now called 'stored'; the old name will go"])
    return Strategy(**found)


def strategy_of(given: Strategy | Path) -> Strategy:
    """The strategy, or that of the file."""
    return given if isinstance(given, Strategy) else load_strategy(given)
