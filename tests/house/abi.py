#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program that was compiled with other headers runs with this library.

Older headers are made from those of today: the last field of every options struct is taken away, so that the library's structs
have grown by it. Newer ones get a field more. tests/abi/layout.txt keeps the place of each field; fields may only be added behind
the others (write them down with --update, and count PRESTO_VERSION_MINOR up).

Usage: abi.py ROOT BUILD_DIR LIBRARY CC [--update]
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

STRUCT = re.compile(r"typedef struct (presto_\w+_options) \{\n(.*?)\n\} \1;", re.DOTALL)
NAMES = re.compile(r"(?:\(\*(\w+)\)\(.*\)|(\w+))\s*(?:,|$)")


def declarations(body):
    """The declarations of a struct's body, without comments."""
    return [" ".join(d.split()) for d in re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL).split(";") if d.strip()]


def structs(root):
    found = {}
    for header in sorted((root / "include" / "presto").glob("*.h")):
        for match in STRUCT.finditer(header.read_text()):
            found[match.group(1)] = declarations(match.group(2))
    return found


def fields(declaration):
    return [a or b for a, b in NAMES.findall(declaration.replace("*", " "))]


def change_headers(root, include, change):
    """Copies the headers to `include`, each options struct as `change` makes its declarations."""
    shutil.copytree(root / "include", include)
    for header in (include / "presto").glob("*.h"):
        text = STRUCT.sub(lambda m: f"typedef struct {m.group(1)} {{\n" + "".join(f"    {d};\n" for d in change(declarations(m.group(2))))
                          + f"}} {m.group(1)};", header.read_text())
        header.write_text(text)


def run(command, **more):
    return subprocess.run([str(part) for part in command], check=True, text=True, **more)


class Compiler:
    def __init__(self, cc, library, work):
        self.cc, self.library, self.work = cc, pathlib.Path(library), work

    def build(self, source, include, name, *flags):
        program = self.work / name
        run([self.cc, "-std=c11", "-Wall", "-Werror", "-I", include, *flags, source, "-o", program, "-L", self.library.parent,
             "-l:" + self.library.name, f"-Wl,-rpath,{self.library.parent}"])
        return program


def layout(compiler, root, found):
    lines = ["#include <presto/presto.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n"]
    for name, body in sorted(found.items()):
        for field in (f for declaration in body for f in fields(declaration)):
            lines.append(f'printf("{name} {field} %zu %zu\\n", offsetof({name}, {field}), sizeof((({name} *)0)->{field}));\n')
    source = compiler.work / "layout.c"
    source.write_text("".join(lines) + "return 0;\n}\n")
    return run([compiler.build(source, root / "include", "layout")], capture_output=True).stdout.splitlines()


def check_layout(now, kept):
    """What was there stands where it stood; what is new stands behind it."""
    faults = [f"{line}: moved, changed or gone" for line in kept if line not in now]
    last = {}
    for line in kept:
        last[line.split()[0]] = int(line.split()[2])
    for line in now:
        name, field, offset, _ = line.split()
        if line not in kept and int(offset) <= last.get(name, -1):
            faults.append(f"{name}.{field} is new and not behind the others")
        elif line not in kept:
            faults.append(f"{name}.{field} is new: write it down with --update")
    return faults


def main():
    root, build, library, cc = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), *sys.argv[3:5]
    kept = root / "tests" / "abi" / "layout.txt"
    found = structs(root)
    assert len(found) >= 12, found
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        compiler = Compiler(cc, library, work)
        now = layout(compiler, root, found)
        if "--update" in sys.argv:
            kept.write_text("\n".join(now) + "\n")
        faults = check_layout(now, kept.read_text().splitlines())
        # Two fields are left at least: struct_bytes and another one, or struct_bytes alone.
        change_headers(root, work / "old", lambda body: body[: max(1, len(body) - 1)])
        change_headers(root, work / "new", lambda body: [*body, "double made_up"])

        tools = build / "tools"
        run([tools / "presto-make-photos", "-q", "-n", "20", "-c", "2", "--width", "80", "--height", "60", "-o", work / "photos"])
        run([tools / "presto-write", "--quiet", "-p", "cv", "-o", work / "dataset", work / "photos"])
        said = {}
        for headers in ("old", "new"):
            example = compiler.build(root / "examples" / "stream.c", work / headers, "stream-" + headers)
            said[headers] = run([example, work / "dataset"], capture_output=True).stdout
        today = compiler.build(root / "examples" / "stream.c", root / "include", "stream")
        said["today"] = run([today, work / "dataset"], capture_output=True).stdout
        if len(said["today"].splitlines()) != 4 or len(set(said.values())) != 1:
            faults.append(f"the example says other things: {said}")
        program = root / "tests" / "abi" / "other_headers.c"
        for headers, flags in (("old", []), ("new", ["-DHAS_MADE_UP"])):
            made = compiler.build(program, work / headers, "check-" + headers, *flags)
            run([made, work / "dataset", work / ("copy-" + headers)], env={**os.environ, "MALLOC_PERTURB_": "165"})
    print("\n".join(faults) or f"{len(found)} structs, {len(now)} fields")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
