#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The inner walls as a test: the order of the rooms in records/, steps/ and loader/, parameters, and no circles.

A room's files see the header ROOM_internal.h of the rooms before it, and nothing else of them; further headers of a room are
its own. No two files of the library need each other's functions, not even by way of others. The largest files and functions
are printed; no size fails. Usage: rooms.py ROOT BUILD_DIR
"""
import collections
import json
import pathlib
import re
import statistics
import subprocess
import sys

# Each room, and the rooms that it may see.
ROOMS = {
    "storage/credentials": [],
    "records/frame": [],
    "records/codec": ["records/frame"],
    "records/example": ["records/frame"],
    "records/shard": ["records/frame", "records/codec"],
    "records/dataset": ["records/frame", "records/codec", "records/example", "records/shard"],
    "records/inspect": ["records/frame", "records/codec", "records/example", "records/shard", "records/dataset"],
    "steps/pipeline": [],
    "steps/plan": ["steps/pipeline"],
    "steps/audio": [],
    "steps/own": [],
    "loader/order": [],
    "loader/source/core": [],
    "loader/source/table": ["loader/source/core"],
    "loader/source/dataset": ["loader/source/core"],
    "loader/source/files": ["loader/source/core", "loader/source/table"],
    "loader/source/tar": ["loader/source/core", "loader/source/files"],
    "loader/source/hdf5": ["loader/source/core", "loader/source/files"],
    "loader/source/lines": ["loader/source/core", "loader/source/table", "loader/source/files"],
    "loader/source/mix": ["loader/source/core"],
    "loader/cache": ["loader/source/core"],
    "loader/packet": ["loader/source/core", "loader/cache"],
    "loader/engine": ["loader/order", "loader/source/core", "loader/cache", "loader/packet"],
    "loader/ring": [],
    "loader/input": ["loader/order", "loader/source/core", "loader/source/mix", "loader/cache", "loader/packet", "loader/engine"],
    "loader/out": ["loader/order", "loader/source/core", "loader/cache", "loader/packet", "loader/engine", "loader/ring"],
    "loader/arrow": [],
    "loader/convert": ["loader/order", "loader/source/core", "loader/cache", "loader/packet", "loader/engine", "loader/input", "loader/arrow"],
    "profile/stats": ["profile/trial", "profile/choice"],
    "profile/trial": ["profile/stats"],
    "profile/predict": ["profile/choice", "profile/report"],
    "profile/choice": ["profile/predict"],
    "profile/answer": ["profile/choice"],
    "profile/report": ["profile/predict"],
    "tools/load": ["tools/cli"],
    "tools/write": ["tools/cli"],
    "tools/sweep": ["tools/cli"],
    "tools/inspect": ["tools/cli"],
    "tools/photos": ["tools/cli"],
}
# What other rooms see of a room, if that is not NAME_internal.h alone. The first one says what the room may see.
HEADERS = {
    "loader/source/core": ["source_internal.h"],
    "loader/source/table": ["source_tables_internal.h"],
    "loader/source/dataset": ["source_dataset_internal.h"],
    "loader/source/files": ["source_files_internal.h"],
    "loader/source/tar": ["source_tar_internal.h"],
    "loader/source/lines": ["source_lines_internal.h"],
    "profile/stats": ["estimate_internal.h", "tails_internal.h"],
    "profile/trial": ["trial_internal.h", "journal_internal.h"],
    "profile/choice": ["choice_internal.h", "sure_internal.h"],
    "profile/report": ["json_internal.h"],
}
# Rooms without a header of their own: nothing but the folder's top sees them.
CLOSED = ["profile/answer"]
FOLDERS = ["base", "storage", "records", "steps", "loader", "profile", "tools", "python"]
# Of what is in files of these kinds here, only lines are counted.
MORE_FOLDERS = ["bench", "scripts", "tests", "examples"]
KINDS = [".c", ".h", ".cc", ".py", ".sh", ""]
LARGEST = 10  # this many files and functions are printed
MOST_PARAMETERS = 5
MOST_PARAMETERS_OF_STATIC = 7
# Those that may have more: callbacks of other libraries.
MORE_PARAMETERS = {
    "loader/source/hdf5/hdf5_driver.c driver_read": 6,
    "loader/source/hdf5/hdf5_driver.c driver_write": 6,
    "steps/image/jpeg_coefficients.c request": 6,
    "storage/crypto.c hmac": 7,
}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def headers_of(room):
    return HEADERS.get(room, [f"{room.rpartition('/')[2]}_internal.h"])


def head_of_room(root, room):
    """What is wrong with the header that opens a room. Programs have none: nobody sees into them."""
    if room in CLOSED or room.startswith("tools/"):
        return
    header = root / room / headers_of(room)[0]
    if not header.exists():
        yield f"{room} has no {header.name}"
    elif "May see:" not in header.read_text():
        yield f"{header.relative_to(root)} does not say what the room may see"


def walls(root):
    """What is wrong with the includes between rooms."""
    for room, seen in ROOMS.items():
        yield from head_of_room(root, room)
        for path in sorted((root / room).glob("*.[ch]")):
            for include in INCLUDE.findall(path.read_text()):
                target = (path.parent / include).resolve()
                if target.parent == path.parent.resolve() or not target.exists():
                    continue
                inside = target.relative_to(root)
                other = str(inside.parent)
                if inside.parts[0] != room.split("/")[0] or len(inside.parts) < 3:
                    continue
                if other not in seen or not (other.startswith("tools/") or inside.name in headers_of(other)):
                    yield f"{path.relative_to(root)} includes {inside}, which its room may not see"


def functions(text):
    """Lines of each function, by clang-format's layout: it ends at the next brace in the first column."""
    lines = text.splitlines()
    start = None
    for number, line in enumerate(lines):
        if line == "}" and start is not None:
            yield number - start + 1, lines[start]
            start = None
        elif start is None and line.endswith("{") and "(" in "".join(lines[max(0, number - 6) : number + 1]):
            if not line.startswith((" ", "}", "#", "/", "typedef", "struct", "union", "enum", "static const", "const presto")):
                start = number
        elif start is None and line.endswith("{") and line.startswith(" ") and line.rstrip().endswith(") {"):
            head = number
            while head > 0 and lines[head].startswith(" "):
                head -= 1
            if re.match(r"[a-z]", lines[head]) and "(" in lines[head]:
                start = head


def without_comments(text):
    """The text with comments and strings blanked, lines kept."""
    keep_lines = lambda found: re.sub(r"[^\n]", " ", found[0])
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", keep_lines, text, flags=re.DOTALL)


def parameters(text):
    """Name, number of parameters and the limit for it, of each function defined in the text and of each hook: a member that points
    to a function."""
    text = without_comments(text)
    definition = r"^[a-zA-Z_][\w \*]*?[\s\*](\w+)\("
    hook = r"^    [a-zA-Z_][\w \*]*?\(\*(\w+)\)\("
    for found in re.finditer(f"{definition}|{hook}", text, re.MULTILINE):
        end, depth, commas = found.end(), 1, 0
        while depth > 0:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            commas += text[end] == "," and depth == 1
            end += 1
        follows = text[end:].lstrip()[:1]
        if follows == ("{" if found[1] else ";"):
            most = MOST_PARAMETERS_OF_STATIC if found[0].startswith("static ") else MOST_PARAMETERS
            yield found[1] or found[2], commas + 1, most


def is_written(path):
    """Is it source: of a kind that we write, or a script without a suffix?"""
    if path.suffix not in KINDS or not path.is_file():
        return False
    return path.suffix != "" or path.read_bytes()[:2] == b"#!"


def long_files(root):
    """Prints the longest files; a fault if few are found."""
    files = [path for folder in FOLDERS + MORE_FOLDERS for path in filter(is_written, sorted((root / folder).rglob("*")))]
    lines = {path: path.read_bytes().count(b"\n") for path in files}
    longest = sorted(lines, key=lines.get, reverse=True)[:LARGEST]
    print("longest files: " + ", ".join(f"{path.relative_to(root)} {lines[path]}" for path in longest))
    if len(files) < 500:
        yield f"only {len(files)} files found: is this test still reading them?"


def sizes(root):
    """Functions and hooks with too many parameters. Prints the longest functions."""
    lengths = []
    counted = 0
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.[ch]")):
            text = path.read_text()
            place = path.relative_to(root)
            for name, count, limit in parameters(text):
                counted += 1
                most = MORE_PARAMETERS.get(name, MORE_PARAMETERS.get(f"{place} {name}", limit))
                if count > most:
                    yield f"{place}: {name} has {count} parameters, {most} are enough"
            lengths += ((length, f"{place}: {first.strip()}") for length, first in functions(text))
    if len(lengths) < 1000 or counted < 1000:
        yield f"only {len(lengths)} functions found, {counted} with parameters: is this test still reading them?"
    only = [length for length, _ in lengths]
    p90 = statistics.quantiles(only, n=10)[-1]
    print(f"{len(lengths)} functions, median {statistics.median(only):.0f} lines, p90 {p90:.0f}")
    for length, place in sorted(lengths, reverse=True)[:LARGEST]:
        print(f"    {length} lines: {place}")


def calls(build):
    """Which object file of the library needs which other, and for what."""
    defined, needed = {}, collections.defaultdict(set)
    for command in json.loads((build / "compile_commands.json").read_text()):
        output = re.search(r" -o (\S+)", command["command"])[1]
        library = re.match(rf"({'|'.join(FOLDERS)})/CMakeFiles/presto_\1\.dir/(.*)\.o$", output)
        if library is None:
            continue
        path = build / output
        name = f"{library[1]}/{library[2]}"
        symbols = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
        for line in symbols.splitlines():
            kind, symbol = line.split()[-2:]
            if kind in "TDRBC":
                defined[symbol] = name
            elif kind == "U":
                needed[name].add(symbol)
    return {name: {defined[s]: s for s in wanted if defined.get(s, name) != name} for name, wanted in needed.items()}


def circles(graph):
    """Each group of files that need each other: Tarjan's strongly connected components of more than one."""
    sys.setrecursionlimit(10000)
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                found.append(sorted(group))

    for node in list(graph):
        if node not in number:
            visit(node)
    for group in found:
        links = [f"{a} -> {b} ({graph[a][b]})" for a in group for b in group if b in graph.get(a, {})]
        yield "files that need each other: " + ", ".join(links)


def main():
    root, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    graph = calls(build)
    faults = [*walls(root), *long_files(root), *sizes(root), *circles(graph)]
    if len(graph) < 80:
        faults.append(f"only {len(graph)} object files found in {build}")
    print("\n".join(faults) or f"{len(graph)} files of the library, no circle")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
