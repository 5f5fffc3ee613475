# SPDX-License-Identifier: Apache-2.0
"""What should be known and is no error: warnings, at the line of the program that they are about."""
from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable


class Warning(UserWarning):
    """Something went wrong that does not harm the stream, such as a damaged index file."""


class NoteWarning(Warning):
    """Something may not be what was meant: files are left out, labels are odd, a rank gets a share of the samples, a page names a charset that nobody knows. Each such note
    comes once in a process."""


_told: set[tuple[object, str]] = set()


def warn(text: str, kind: type[Warning]) -> None:
    """A warning about the line that called the package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "presto":
        frame, level = frame.f_back, level + 1
    warnings.warn(text, kind, stacklevel=level)


def note(about: object, texts: Iterable[str]) -> None:
    """Warn of what has not been told yet."""
    note_kinds(about, ((text, text) for text in texts))


def note_kinds(about: object, notes: Iterable[tuple[str, str]]) -> None:
    """The same of (kind, text): a text that counts differs from time to time, its kind does not."""
    for kind, text in notes:
        if (about, kind) not in _told:
            _told.add((about, kind))
            warn(text, NoteWarning)


def noted(about: object, texts: Iterable[str]) -> None:
    """These need no warning any more: somebody has told them."""
    _told.update((about, text) for text in texts)
