# SPDX-License-Identifier: Apache-2.0
"""The programs of Presto, as a wheel brings them: presto-write and the others.

The commands that pip puts on the PATH start here. They become the program, which needs nothing of Python. That is no part of the
package presto, so that none of its imports are waited for.
"""
import os
import sys
from typing import NoReturn

NAMES = ("presto-write", "presto-load", "presto-sweep", "presto-inspect", "presto-make-photos")


def path(name: str) -> str:
    """Where the program is, if this installation has it. An editable installation has two folders of this package: this file is in
    the one, the programs are in the other."""
    places = [os.path.join(os.path.abspath(folder), "bin", name) for folder in __path__]
    return next((place for place in places if os.path.exists(place)), places[0])


def become(name: str, arguments: list[str]) -> NoReturn:
    """Run the program in the place of this one."""
    try:
        os.execv(path(name), [name, *arguments])
    except OSError as error:
        print(f"{name}: cannot start {path(name)}: {error.strerror}"
              + ("; this installation was built without it" if isinstance(error, FileNotFoundError) else ""), file=sys.stderr)
        sys.exit(1)


def write() -> NoReturn:
    become("presto-write", sys.argv[1:])


def load() -> NoReturn:
    become("presto-load", sys.argv[1:])


def sweep() -> NoReturn:
    become("presto-sweep", sys.argv[1:])


def inspect() -> NoReturn:
    become("presto-inspect", sys.argv[1:])


def make_photos() -> NoReturn:
    become("presto-make-photos", sys.argv[1:])
