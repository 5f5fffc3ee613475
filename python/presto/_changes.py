# SPDX-License-Identifier: Apache-2.0
"""Values of options of a pipeline, as `set` of presto.open(), presto.write() and presto.sweep() takes them."""
from __future__ import annotations

import json
import os
from typing import Any


def value_text(value: Any) -> str:
    """A value as it stands in YAML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return json.dumps([item if isinstance(item, (str, int, float)) else str(item) for item in value], ensure_ascii=False)
    if isinstance(value, os.PathLike):
        path: str | bytes = os.fspath(value)
        return os.fsdecode(path)
    labels = getattr(value, "labels", None)  # those of a Dataset, for source.classes
    return value_text(labels) if isinstance(labels, list) else str(value)
