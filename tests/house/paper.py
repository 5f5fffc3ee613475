#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A page of bench/paper is complete: all seven pipelines, theirs beside ours, errors. No figure is looked at.

Usage: paper.py FIGURES PAGE
"""
import json
import pathlib
import re
import sys

FIGURE = re.compile(r"[<~> ]*-?[\d,.]+x?")
ERROR = re.compile(r"[+-]\d+ %")


def tables(page):
    """By heading, the first table below it with more than a few columns: a list of {column: cell}."""
    found = {}
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        lines = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in section.splitlines() if line.startswith("| ")]
        if lines:
            found[section.splitlines()[0]] = [dict(zip(lines[0], line)) for line in lines[2:]]
    return found


def check_representations(rows, pipelines):
    wanted = [(name, split) for name, theirs in pipelines.items() for split in theirs["representations"]]
    assert [(row["pipeline"], row["representation"]) for row in rows] == wanted, rows
    for row in rows:
        for column in ("theirs, MB", "ours, MB", "theirs, samples/s", "ours, samples/s", "2 threads: by the model", "2 threads: played"):
            assert FIGURE.fullmatch(row[column]), (column, row)
        assert ERROR.fullmatch(row["2 threads: error"]), row
    assert any(ERROR.fullmatch(row["8 threads: error"]) for row in rows), "8 threads were never played"


def main():
    pipelines = json.loads(pathlib.Path(sys.argv[1]).read_text())["pipelines"]
    page = pathlib.Path(sys.argv[2]).read_text()
    assert "Not measured yet" not in page and "Not all of it" not in page and "{{" not in page, page
    assert "These figures mean nothing" in page, "--quick is not told"
    found = tables(page)
    check_representations(found["Representations (Figure 6)"], pipelines)
    for heading, column in (("The best ones", "our best"), ("Scores", "1,0,1: ours"), ("Threads", "8 / 1: ours"), ("Caches", "ours"),
                            ("What a step costs", "ours, ms")):
        names = [row["pipeline"] for row in found[heading]]
        assert list(dict.fromkeys(names)) == list(pipelines), (heading, names)
        assert all(row[column] != "-" for row in found[heading]), (heading, found[heading])
    for heading, theirs in (("Scores", "0,0,1: theirs"), ("Threads", "8 / 1: theirs"), ("Size of a sample", "8 threads / 1: theirs"),
                            ("Caches", "page cache / none: theirs"), ("Codecs", "with / without: theirs"),
                            ("Where to shuffle", "a buffer costs a sample: theirs"), ("What a step costs", "theirs, ms a sample and thread")):
        assert any(row[theirs] != "-" for row in found[heading]), (heading, found[heading])
    assert [row["without, samples/s"] for row in found["Greyscale"]][0] == "1,513", found["Greyscale"]


if __name__ == "__main__":
    main()
