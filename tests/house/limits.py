#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The limits that docs/security.md promises are those of the code.

Usage: limits.py ROOT
"""
import pathlib
import re
import sys

UNITS = {"": 1, "bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
ROW = re.compile(r"^\| .+ \| ([\d,]+) ?(\w*) \| `(\w+)` in (\S+) \|$", re.MULTILINE)


def constant(text, name):
    """Value of a macro or an enumerator that is a number, or a product or shift of numbers."""
    found = re.search(rf"(?:#define {name}|\b{name} =)\s+([^,}}\n/]+)", text)
    if found is None:
        return None
    plain = re.sub(r"\((?:uint64_t|size_t)\)|(?<=\d)(?:ULL|UL|LL|u|U|L)\b|UINT64_C", "", found.group(1))
    plain = plain.replace("INT32_MAX", str(2**31 - 1))
    return eval(plain, {"__builtins__": {}}) if re.fullmatch(r"[\d\s()<*+-]+", plain) else None


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    text = (root / "docs" / "security.md").read_text()
    rows = ROW.findall(text)
    table = re.findall(r"^\|.*", text[text.index("\n## Limits\n") :].split("\n## ")[1], re.MULTILINE)[2:]
    faults = [f"docs/security.md: no number, constant and file: {row}" for row in table if not ROW.match(row)]
    for figure, unit, name, file in rows:
        path = root / file
        value = constant(path.read_text(), name) if path.is_file() else None
        promised = int(figure.replace(",", "")) * UNITS.get(unit, 0)
        if value != promised:
            faults.append(f"docs/security.md: {name} in {file} is {value}, not {promised}")
    print("\n".join(faults) or f"{len(rows)} limits hold")
    return 1 if faults or len(rows) < 15 else 0


if __name__ == "__main__":
    sys.exit(main())
