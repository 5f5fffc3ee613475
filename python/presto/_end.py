# SPDX-License-Identifier: Apache-2.0
"""The end of the interpreter: threads of the library must not run while the libraries that they use are taken down."""
from __future__ import annotations

import atexit
import weakref
from typing import Protocol

from . import _native

_WAIT_S = 30.0  # for other threads that are inside of the library, as within one sample


class Ending(Protocol):
    """What has threads of the library."""

    def _at_exit(self) -> None: ...


alive: weakref.WeakSet[Ending] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    """From here on only this thread may call the library. Daemon threads that are inside end by SystemExit."""
    if _native.end(_WAIT_S):  # else a thread that hangs has what would have to be closed
        for one in list(alive):
            one._at_exit()
