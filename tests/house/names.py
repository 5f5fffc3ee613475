#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files and programs that documents and comments name exist.

A name of a file is a path that starts with a folder of the repository, or in the documents a name with the ending of a source file.
A program is presto-*, bench_*, replay-* or fuzz-* (which clang builds from the same sources as replay-*).

Usage: names.py ROOT BUILD_DIR
"""
import pathlib
import re
import subprocess
import sys
import tomllib

ENDING = r"(?:c|h|py|sh|md|cmake|yaml|txt|html|in|png)"
# A sentence's full stop, a placeholder or a list of alternatives is no part of a name.
NAME = r"[A-Za-z0-9_.-]+"
COMMENT = {
    ".c": r"/\*.*?\*/", ".h": r"/\*.*?\*/", ".py": r"\"\"\".*?\"\"\"|#[^\n]*", ".sh": r"#[^\n]*",
    ".txt": r"#[^\n]*", ".cmake": r"#[^\n]*", ".in": r"#[^\n]*", ".yaml": r"#[^\n]*",
}
# Made by running something, or names in examples.
MADE = re.compile(r"build/|.*/NAME\.")
EXAMPLES = {"classes.txt", "lines.txt", "mine.yaml", "reviews.yaml", "texts.yaml", "seg.png", "smaller.py", "strategy.yaml", "report.html"}
FORMATS = {"presto-dataset"}  # what dataset.json calls itself


def tracked(root):
    out = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True)
    if out.returncode == 0:
        return [name for name in out.stdout.decode().split("\0") if name and (root / name).is_file()]
    skipped = {"build", ".git"}
    return [str(p.relative_to(root)) for p in root.rglob("*")
            if p.is_file() and p.relative_to(root).parts[0] not in skipped]


def targets(build):
    """Programs that the build makes."""
    if (build / "build.ninja").is_file():
        rules = re.findall(r"^build ([^:]*):", (build / "build.ninja").read_text(), re.MULTILINE)
        return {pathlib.PurePath(word).name for rule in rules for word in rule.split()}
    return {path.name for path in build.rglob("*") if path.is_file()}


def words_of(name, text):
    """What is written for people in a file, with line numbers."""
    if name.endswith(".md"):
        yield 1, text
        return
    pattern = COMMENT.get(pathlib.PurePath(name).suffix)
    if pattern is not None:
        for comment in re.finditer(pattern, text, re.DOTALL):
            yield text.count("\n", 0, comment.start()) + 1, comment.group()


def paths_in(words, folders):
    """Paths from the root of the repository: not what follows a longer path, an address or a variable."""
    first = "|".join(sorted(map(re.escape, folders)))
    for found in re.finditer(rf"(?<![\w./<>${{}}*-])(?:{first})/(?:{NAME}/)*{NAME}", words):
        path = found.group().rstrip(".-")
        after = words[found.start() + len(path):][:1]
        if after not in ("*", "<", "{", "$", "["):
            yield found.start(), path


def main():
    root, build = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    names = tracked(root)
    folders = {name.split("/")[0] for name in names if "/" in name}
    bases = {pathlib.PurePath(name).name for name in names}
    programs = targets(build)
    programs.add(tomllib.loads((root / "pyproject.toml").read_text())["project"]["name"])  # what pip installs
    programs |= {name.replace("replay-", "fuzz-") for name in programs if name.startswith("replay-")}
    faults, checked = [], 0
    for name in names:
        if not name.endswith((".md", *COMMENT)):
            continue
        text = (root / name).read_text(errors="replace")
        for line, words in words_of(name, text):
            where = lambda at: f"{name}:{line + words.count(chr(10), 0, at)}"
            for at, path in paths_in(words, folders):
                checked += 1
                if not (root / path).exists() and not MADE.match(path):
                    faults.append(f"{where(at)}: {path} does not exist")
            if not name.endswith(".md"):
                continue
            for found in re.finditer(rf"(?<![\w./<*-])({NAME}\.{ENDING})\b(?![\w/*<])", words):
                checked += 1
                if found.group(1) not in bases | EXAMPLES:
                    faults.append(f"{where(found.start())}: no file is called {found.group(1)}")
            for found in re.finditer(r"(?<![\w.-])((?:presto-|bench_|replay-|fuzz[-_])[a-z]+(?:[-_][a-z]+)*)(?![\w.*-])", words):
                checked += 1
                if found.group(1) not in programs | FORMATS:
                    faults.append(f"{where(found.start())}: no program is called {found.group(1)}")
    print("\n".join(faults) or f"{checked} names are right")
    return 1 if faults or checked < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
