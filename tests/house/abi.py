#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program that was compiled with other headers runs with this library.

Older headers are made from those of today: the last field of every struct with struct_bytes (options, results) is taken away, so
that the library's structs have grown by it. Newer ones get a field more. In a struct with reserved room (groups of options, elements of
arrays), which must not change its size, the room gets what the last field had, or gives a word to the new one. tests/abi/layout.txt
keeps the place of each field and the values of constants; fields may only be added behind the others, in reserved room at its start (write them down with --update,
and count PRESTO_VERSION_MINOR up). All other structs of the public headers stay as they are.

Usage: abi.py ROOT BUILD_DIR LIBRARY CC [--update]
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

STRUCT = re.compile(r"typedef struct (presto_\w+) \{\n(.*?)\n\} \1;", re.DOTALL)
NAMES = re.compile(r"(\w+)(?:\[\w+\])*\s*(?:,|$)")
ROOM = re.compile(r"uint64_t reserved\[(\d+)\]")
# Enumerators, and what programs size their buffers by.
CONSTANT = re.compile(r"^(?: +(?:X\()?|#define )(PRESTO_\w+)(?= = |, -?\d+,|(?<=_BYTES) \d)", re.MULTILINE)
WORD = 8
# The library makes them, one at a time, and programs get a pointer: they may grow at their end.
HANDED_OUT = {"presto_batch", "presto_fault", "presto_out_format", "presto_output_request", "presto_progress", "presto_source_type",
              "presto_strategy_result", "presto_sweep_facts"}


def declarations(body):
    """The declarations of a struct's body, without comments."""
    return [" ".join(d.split()) for d in re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL).split(";") if d.strip()]


def is_sized(body):
    return body[0] == "size_t struct_bytes"


def is_group(body):
    return bool(ROOM.fullmatch(body[-1]))


def may_grow(name, body):
    return is_sized(body) or is_group(body) or name in HANDED_OUT


def structs(root):
    return {match.group(1): declarations(match.group(2)) for header in sorted((root / "include" / "presto").glob("*.h"))
            for match in STRUCT.finditer(header.read_text())}


def fields(declaration):
    if "(*" in declaration:
        return re.findall(r"\(\*(\w+)\)", declaration)[:1]
    return NAMES.findall(declaration)


def older(name, body, places):
    if is_sized(body):  # two fields are left at least: struct_bytes and another one, or struct_bytes alone
        return body[: max(1, len(body) - 1)]
    kept = body[:-2]
    end = max((sum(places[name, field]) for declaration in kept for field in fields(declaration)), default=0)
    room = sum(places[name, "reserved"]) - -(-end // WORD) * WORD
    return [*kept, f"uint64_t reserved[{room // WORD}]"]


def newer(_, body, __):
    if is_sized(body):
        return [*body, "double made_up"]
    return [*body[:-1], "double made_up", f"uint64_t reserved[{int(ROOM.fullmatch(body[-1]).group(1)) - 1}]"]


def change_headers(root, include, change, places):
    """Copies the headers to `include`, each struct that may grow as `change` makes its declarations."""

    def changed(match):
        name, body = match.group(1), declarations(match.group(2))
        if not is_sized(body) and not is_group(body):
            return match.group(0)
        return f"typedef struct {name} {{\n" + "".join(f"    {d};\n" for d in change(name, body, places)) + f"}} {name};"

    shutil.copytree(root / "include", include)
    for header in (include / "presto").glob("*.h"):
        header.write_text(STRUCT.sub(changed, header.read_text()))


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
    headers = sorted((root / "include" / "presto").glob("*.h"))
    lines = [f"#include <presto/{header.name}>\n" for header in headers] + ["#include <stdio.h>\nint main(void) {\n"]
    for name in sorted({name for header in headers for name in CONSTANT.findall(header.read_text())}):
        lines.append(f'printf("constant {name} 0 %lld\\n", (long long){name});\n')
    for name, body in sorted(found.items()):
        for field in (f for declaration in body for f in fields(declaration)):
            lines.append(f'printf("{name} {field} %zu %zu\\n", offsetof({name}, {field}), sizeof((({name} *)0)->{field}));\n')
        if not may_grow(name, body):
            lines.append(f'printf("{name} sizeof 0 %zu\\n", sizeof({name}));\n')
    source = compiler.work / "layout.c"
    source.write_text("".join(lines) + "return 0;\n}\n")
    return run([compiler.build(source, root / "include", "layout")], capture_output=True).stdout.splitlines()


def places_of(lines):
    """(struct, field) -> (offset, bytes)"""
    return {(name, field): (int(offset), int(size)) for name, field, offset, size in (line.split() for line in lines)}


def check_layout(now, kept):
    """What was there stands where it stood. What is new stands behind it, shares its place, or uses the room of a group, which
    ends where it ended."""
    faults = []
    for (name, field), place in kept.items():
        is_room_used = field == "reserved" and sum(now.get((name, field), (0, 0))) == sum(place) and now[name, field] > place
        if now.get((name, field)) != place and not is_room_used:
            faults.append(f"{name}.{field}: moved, changed or gone")
    for (name, field), (offset, _) in now.items():
        if name == "constant":  # new ones harm nobody
            continue
        first_free = kept.get((name, "reserved"), (max((p[0] + 1 for (n, _), p in kept.items() if n == name), default=0), 0))[0]
        is_shared = now[name, field] in [p for (n, _), p in kept.items() if n == name]  # a union with what was there
        if (name, field) not in kept and offset < first_free and not is_shared:
            faults.append(f"{name}.{field} is new and not behind the others")
        elif (name, field) not in kept and (name, "sizeof") in kept and not is_shared:
            faults.append(f"{name}.{field} is new: this struct cannot grow")
        elif now[name, field] != kept.get((name, field)):
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
        places = places_of(now)
        faults = check_layout(places, places_of(kept.read_text().splitlines()))
        if faults:
            print("\n".join(faults))
            return 1
        change_headers(root, work / "old", older, places)
        change_headers(root, work / "new", newer, places)

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
