#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Booleans that exclude each other are an enum, in the C files of the library, the programs and the Python module.

A machine sees it where two booleans of one struct get their values from one comparison with two constants, or one from the negation
of the other; where one question is asked of them in a row (a ? X : b ? Y : Z); and where three of a struct begin with one noun,
which is then what has the state. KEPT has those that are no states of one thing, each with its reason. Usage: exclusive.py ROOT
"""
import collections
import pathlib
import re
import sys

FOLDERS = ["include", "base", "records", "steps", "loader", "profile", "tools", "python"]
STRUCT = re.compile(r"^(?:typedef )?struct (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
BOOLEANS = re.compile(r"^\s+(?:atomic_)?bool ([\w,\s]+);", re.MULTILINE)
NO_NOUNS = {"is", "are", "has", "had", "can", "takes", "wants", "needs", "knows", "as", "by", "no"}
OF = r"(\w+(?:->|\.))"  # the object
SIGNS = [
    (re.compile(r"\.(\w+) = ([\w>.()-]+) == \w+,\s*\.(\w+) = \2 == \w+"), (1, 3)),
    (re.compile(OF + r"(\w+) = ([\w>.()-]+) == \w+;\s*\1(\w+) = \3 == \w+;"), (2, 4)),
    (re.compile(OF + r"(\w+) = !\1(\w+);"), (2, 3)),
    (re.compile(OF + r"(\w+)\s*\? [^:;?]+ : \1(\w+)\s*\?"), (2, 3)),
]
KEPT = {
    ("allows_code", "is_indirect"): "a user may allow the code of a pipeline that a file names; the first one then counts",
    ("points_are_normalized", "points_begin_with_y", "points_have_visibility"): "three answers about points; each stands alone",
}


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.DOTALL)


def structs(texts):
    """The booleans of each struct."""
    for path, text in texts.items():
        for name, body in STRUCT.findall(text):
            fields = {field for line in BOOLEANS.findall(body) for field in re.split(r"[,\s]+", line) if field}
            if fields:
                yield path, name, fields


def alike(fields):
    """Three or more that begin with one noun."""
    by_noun = collections.defaultdict(list)
    for field in sorted(fields):
        noun, _, rest = field.partition("_")
        if rest and noun not in NO_NOUNS:
            by_noun[noun].append(field)
    return [tuple(names) for names in by_noun.values() if len(names) >= 3]


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    paths = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*.[ch]"))]
    texts = {path.relative_to(root): without_comments(path.read_text()) for path in paths}
    found = list(structs(texts))
    booleans = set().union(*(fields for _, _, fields in found))
    faults, used = [], set()
    for path, name, fields in found:
        for names in alike(fields):
            used.add(names)
            if names not in KEPT:
                faults.append(f"{path}: {', '.join(names)} of {name} are states of one thing: an enum")
    for path, text in texts.items():
        for sign, (a, b) in SIGNS:
            for match in sign.finditer(text):
                names = tuple(sorted({match[a], match[b]}))
                used.add(names)
                if len(names) == 2 and booleans.issuperset(names) and names not in KEPT:
                    line = text.count("\n", 0, match.start()) + 1
                    faults.append(f"{path}:{line}: {names[0]} and {names[1]} exclude each other: an enum")
    faults += [f"{', '.join(names)}: in KEPT without need" for names in KEPT.keys() - used]
    if len(booleans) < 200:
        faults.append(f"only {len(booleans)} booleans found: is this test still reading them?")
    print("\n".join(faults) or f"{len(booleans)} booleans in {len(found)} structs, none that is seen to exclude another")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
