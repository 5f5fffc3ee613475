# SPDX-License-Identifier: Apache-2.0
"""Tables for notebooks."""
from __future__ import annotations

import html
from collections.abc import Iterable


def html_table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """Names and values, as HTML."""
    lines = "".join(
        f'<tr><th style="text-align:left">{html.escape(name)}</th><td style="text-align:left">{html.escape(value)}</td></tr>'
        for name, value in rows
    )
    return f"<table><caption>{html.escape(title)}</caption>{lines}</table>"
