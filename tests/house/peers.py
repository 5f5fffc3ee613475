#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""README's table of other loaders names, for each workload, the one that comes nearest to Presto in docs/performance.md, and its ratio there.

Usage: peers.py ROOT
"""
import pathlib
import re
import sys

FIGURE = re.compile(r"[\d.]+")


def rows_of(text, head):
    """The table whose first row begins so: its head and its rows, as lists of cells."""
    lines = text[text.index(f"| {head} |"):].split("\n\n")[0].splitlines()
    cells = [[cell.strip() for cell in line[1:].rstrip().removesuffix("|").split("|")] for line in lines if line.startswith("|")]
    return cells[0], cells[2:]


def main():
    root = pathlib.Path(sys.argv[1])
    names, found = rows_of((root / "docs" / "performance.md").read_text(), "Presto's advantage over")
    ratios = {row[0]: {name: float(FIGURE.match(cell)[0]) for name, cell in zip(names[1:], row[1:]) if cell and name != "bare loop"}
              for row in found}
    wrong = []
    _, shown = rows_of((root / "README.md").read_text(), "workload")
    for what, _, best, ratio, _ in shown:
        nearest = min(ratios[what], key=ratios[what].get)
        if best.rpartition(", ")[0] != nearest or abs(float(ratio) - ratios[what][nearest]) > .0551:
            wrong.append(f"{what}: {best}, {ratio}, but {nearest} has {ratios[what][nearest]}")
    print("\n".join(wrong) or f"{len(shown)} workloads: right")
    return 1 if wrong or len(shown) != sum(map(bool, ratios.values())) else 0


if __name__ == "__main__":
    sys.exit(main())
