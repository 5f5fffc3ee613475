# SPDX-License-Identifier: Apache-2.0
"""Pipelines as Python values."""
from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from . import _native
from ._dataset import plugin_files
from ._errors import ArgumentError
from ._step import Step, keep
from ._strategy import is_path

PipelineLike: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any] | Pipeline"


class Pipeline:
    """A pipeline as a Python value, for presto.open(), presto.write() and presto.sweep().

        presto.Pipeline("cv")                                        # a built-in one, or a path of a YAML file
        presto.Pipeline("cv").after("decoded", step)                 # with one more step
        presto.Pipeline({"name": "mine", "source": {...}, "steps": [{"step": "read-file"}, step]})

        presto.Pipeline("cv", plugins="invert.so").append({"step": "invert"})

    It does not change; after(), until() and append() make another one.

    Args:
        definition: name of a built-in pipeline, path of a YAML file, or what such a file holds.
        plugins:    files of plugins, shared objects with steps of your own (docs/own-steps.md). That runs their code.

    Attributes:
        definition: the whole pipeline, as a YAML file says it.
        path:       a file that holds it, for the programs too: presto-write -p PATH.
    """

    def __init__(
        self,
        definition: str | os.PathLike[str] | Mapping[str, Any],
        plugins: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
    ) -> None:
        files = plugin_files(plugins)
        if isinstance(definition, Mapping):
            found = dict(definition)
            found["steps"] = [one.definition if isinstance(one, Step) else dict(one) for one in found.get("steps", ())]
        else:
            encoded = tuple(os.fsencode(file) for file in files)
            text = _native.pipeline_json({"pipeline": os.fspath(definition), "plugins": encoded})
            found = json.loads(text or "{}")
        if files:
            named = found.get("plugin", [])
            named = named if isinstance(named, list) else [named]
            have = [one["file"] if isinstance(one, Mapping) else one for one in named]
            found["plugin"] = [*named, *(file for file in files if file not in have)]
        self.definition: dict[str, Any] = found
        name = str(found.get("name", "pipeline"))
        safe = "".join(c if c.isalnum() or c in "-_" else "-" for c in name) or "pipeline"
        self.path = keep(safe, ".yaml", json.dumps(found, indent=1) + "\n")
        _native.pipeline_json({"pipeline": self.path})  # what is wrong is told here

    @property
    def representations(self) -> list[str]:
        """Names of what steps yield, in order."""
        return [one["yields"] for one in self.definition["steps"] if "yields" in one]

    def after(self, representation: str, *steps: Step | Mapping[str, Any]) -> Pipeline:
        """With these steps behind the one that yields the representation."""
        have = self.definition["steps"]
        places = [i for i, one in enumerate(have) if one.get("yields") == representation]
        if not places:
            raise ArgumentError(f"no step yields {representation!r}; there are {', '.join(self.representations)}")
        at = places[-1] + 1
        return self._with([*have[:at], *steps, *have[at:]])

    def until(self, representation: str) -> Pipeline:
        """Without the steps behind the one that yields the representation."""
        have = self.definition["steps"]
        places = [i for i, one in enumerate(have) if one.get("yields") == representation]
        if not places:
            raise ArgumentError(f"no step yields {representation!r}; there are {', '.join(self.representations)}")
        return self._with(have[: places[-1] + 1])

    def append(self, *steps: Step | Mapping[str, Any]) -> Pipeline:
        """With these steps at the end."""
        return self._with([*self.definition["steps"], *steps])

    def _with(self, steps: list[Any]) -> Pipeline:
        return Pipeline({**self.definition, "steps": steps})

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        names = [one.get("yields") or one["step"] for one in self.definition["steps"]]
        return f"<presto.Pipeline {self.definition.get('name')}: {' -> '.join(names)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pipeline) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)

    def __reduce__(self) -> Any:
        return Pipeline, (self.definition,)


def pipeline_name(given: Any) -> str:
    """Name or absolute path."""
    if isinstance(given, Mapping):
        given = Pipeline(given)
    name = os.fspath(given)
    if not isinstance(name, str):
        name = os.fsdecode(name)
    return os.path.abspath(name) if is_path(name) else name
