# SPDX-License-Identifier: Apache-2.0
"""Progress of long calls: a line in a terminal, a text in a notebook, else nothing."""
from __future__ import annotations

import sys
import time
from typing import Any

_INTERVAL_S = 0.2


def _notebook() -> Any:
    """IPython's display of a notebook; None in a terminal, and where there is no IPython."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or type(shell).__name__ != "ZMQInteractiveShell":
        return None
    from IPython.display import display

    return display


class Line:
    """One line that changes. show() may be called as often as one likes."""

    def __init__(self, shown: bool | None) -> None:
        """`shown` None: only where somebody sees it."""
        self._display = None if shown is False else _notebook()
        self._handle: Any = None
        self._terminal = shown is not False and self._display is None and (bool(shown) or sys.stderr.isatty())
        self._last_s = 0.0
        self._width = 0

    def show(self, text: str, *, now: bool = False) -> None:
        """Show the text, if the last one has been seen for a moment."""
        time_s = time.monotonic()
        if not now and time_s - self._last_s < _INTERVAL_S:
            return
        self._last_s = time_s
        if self._display is not None:
            data = {"text/plain": text}
            if self._handle is None:
                self._handle = self._display(data, raw=True, display_id=True)
            else:
                self._handle.update(data, raw=True)
        elif self._terminal:
            print("\r" + text.ljust(self._width), end="", file=sys.stderr, flush=True)
            self._width = len(text)

    def end(self) -> None:
        """The line is not needed any more."""
        if self._terminal and self._width:
            print("\r" + " " * self._width + "\r", end="", file=sys.stderr, flush=True)
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)


def number(count: float, units: tuple[str, ...] = ("", "k", "M", "G", "T", "P")) -> str:
    """1234567 as "1.23 M"."""
    for unit in units[:-1]:
        if count < 999.5:
            return f"{count:.3g} {unit}".rstrip()
        count /= 1000
    return f"{count:.3g} {units[-1]}"


def size(count: float) -> str:
    """Bytes: "1.23 MB"."""
    return number(count, ("B", "kB", "MB", "GB", "TB", "PB"))
