#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One name, one meaning, in the C files of the library, the programs and the Python module.

No two types of the project have one name, none differs from another one by an underscore only (presto_x, presto__x), and no two
headers are called alike. A header that only continues another one is part of it. What is printed and fails nothing: how many static
functions have one caller, and how many of those are short. Usage: one_name.py ROOT
"""
import collections
import pathlib
import re
import sys

FOLDERS = ["include", "base", "storage", "records", "steps", "loader", "profile", "tools", "python"]
SHORT = 12  # lines; a shorter function that is called once needs a reason
TYPE = re.compile(r"^\}\s*(\w+);|^(?:typedef )?(?:struct|enum|union) (\w+) \{|^typedef [^{;]*?\(\*(\w+)\)\(", re.MULTILINE)
STATIC = re.compile(r"^static (?!inline)[^;={}()]*?\b(\w+)\([^;{}]*\) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.DOTALL)


def types(texts):
    """Each type of ours with the files that define it."""
    found = collections.defaultdict(set)
    for path, text in texts.items():
        for names in TYPE.findall(text):
            name = "".join(names)
            if name.startswith("presto_"):
                found[name].add(str(path))
    return found


def doubled(found):
    for name, paths in sorted(found.items()):
        if len(paths) > 1:
            yield f"{name} is defined in {' and in '.join(sorted(paths))}"
        twin = name.replace("presto__", "presto_", 1)
        if twin != name and twin in found:
            yield f"{name} in {min(paths)} differs from {twin} in {min(found[twin])} by an underscore"


def headers(texts):
    """Headers with one name, and headers that others include at their ends."""
    by_name = collections.defaultdict(list)
    for path, text in texts.items():
        if path.suffix == ".h":
            by_name[path.name].append(str(path))
            if re.search(r'#include "[^"]+"\s*#endif\s*$', text) and re.search(r"^(typedef|struct|static inline)", text, re.MULTILINE):
                yield f"{path} ends with an include: what continues a header is part of it"
    for name, paths in sorted(by_name.items()):
        if len(paths) > 1:
            yield f"{name} is the name of {' and of '.join(paths)}"


def called_once(texts):
    """How many static functions there are, have one caller, and are short beside that."""
    count = once = short = 0
    for path, text in texts.items():
        if path.suffix != ".c":
            continue
        for name, body in STATIC.findall(text):
            count += 1
            if len(re.findall(rf"\b{name}\b", text)) == 2:
                once += 1
                short += body.count("\n") + 2 < SHORT
    return count, once, short


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    paths = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*.[ch]"))]
    texts = {path.relative_to(root): without_comments(path.read_text()) for path in paths}
    found = types(texts)
    faults = [*doubled(found), *headers(texts)]
    if len(found) < 300:
        faults.append(f"only {len(found)} types found: is this test still reading them?")
    count, once, short = called_once(texts)
    internal = sum(path.name.endswith("_internal.h") for path in texts)
    print(f"{count} static functions, {100 * once / count:.0f} % have one caller, {short} of these are shorter than {SHORT} lines; "
          f"{internal} internal headers")
    print("\n".join(faults) or f"{len(found)} types, each with a name of its own")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
