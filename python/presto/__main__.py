# SPDX-License-Identifier: Apache-2.0
"""python -m presto PROGRAM ...: the programs, where the commands of this environment are not on the PATH."""
import sys

USAGE = """\
Usage: python -m presto PROGRAM [OPTIONS] ...
Run a program of Presto: write, load, sweep, inspect or make-photos, as presto-write
and so on. python -m presto PROGRAM --help says more; --version is the package's.
"""


def main() -> int:
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    if word in ("--help", "-h"):
        sys.stdout.write(USAGE)
        return 0
    if word in ("--version", "-V"):
        from . import __version__
        print(f"presto (Presto) {__version__}")
        return 0
    try:
        import presto_programs
    except ModuleNotFoundError:
        print("presto: this installation has no programs; a wheel of presto-loader has them", file=sys.stderr)
        return 1
    name = word if word.startswith("presto-") else f"presto-{word}"
    if name not in presto_programs.NAMES:
        said = f"'{word}' is no program" if word else "the program is missing"
        names = ", ".join(known.removeprefix("presto-") for known in presto_programs.NAMES)
        print(f"presto: {said} ({names})\nTry 'python -m presto --help'.", file=sys.stderr)
        return 2
    presto_programs.become(name, sys.argv[2:])


sys.exit(main())
