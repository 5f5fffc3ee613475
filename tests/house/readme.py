#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run every command of README.md and compare what it promises.

A fenced block marked `console` is a session: lines that start with "$ " are commands (a trailing backslash goes on), the lines after a
command are its output. In them a number stands for any number, " ... " for anything within the line and a line "..." for any
lines. All blocks run in one folder, in order, with the built programs on the PATH. Blocks marked otherwise are not run.

Usage: readme.py README ROOT BUILD_DIR
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

NUMBER = r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"


def sessions(text):
    """Yield (line number, command, expected output lines)."""
    block = None
    command, expected, start = None, [], 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            if command is not None:
                yield start, command, expected
                command = None
            block = line[3:].strip() if block is None else None
            continue
        if block != "console":
            continue
        if command is not None and command.endswith("\\"):
            command = command[:-1] + line.strip()
        elif line.startswith("$ "):
            if command is not None:
                yield start, command, expected
            command, expected, start = line[2:], [], number
        elif command is not None:
            expected.append(line)


def line_pattern(line):
    parts = re.split(rf"(\.\.\.|{NUMBER}|\s+)", line)
    out = ""
    for part in parts:
        if part == "...":
            out += ".*"
        elif re.fullmatch(NUMBER, part or ""):
            out += NUMBER
        elif part and part.isspace():
            out += r"\s+"
        else:
            out += re.escape(part or "")
    return out


def matches(expected, got):
    pattern = ""
    for line in expected:
        pattern += r"(?:.*\n)*" if line.strip() == "..." else line_pattern(line.rstrip()) + r"[ \t]*\n"
    return re.fullmatch(pattern, got) is not None


def main():
    readme, root, build = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
    environment = dict(os.environ, COLUMNS="80")
    environment["PATH"] = f"{build / 'tools'}:{environment['PATH']}"
    ran = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        bin_folder = pathlib.Path(folder, "bin")
        bin_folder.mkdir()
        os.symlink(sys.executable, bin_folder / "python3")
        environment["PATH"] = f"{bin_folder}:{environment['PATH']}"
        for name in ("examples", "tools", "tests"):
            os.symlink(root / name, pathlib.Path(folder, name))
        for number, command, expected in sessions(readme.read_text()):
            ran += 1
            result = subprocess.run(["bash", "-eo", "pipefail", "-c", command], cwd=folder, text=True, errors="replace",
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    stdin=subprocess.DEVNULL, env=environment)
            wanted = "\n".join(expected)
            # The exit code that a command promises may be shown as "$ ...; echo $?".
            if result.returncode != 0 or (expected and not matches(expected, result.stdout)):
                failed += 1
                print(f"README.md:{number}: {command}\n-- exit {result.returncode}, printed:\n"
                      f"{result.stdout}-- promised:\n{wanted}\n")
    print(f"{ran} commands, {failed} failures")
    return 1 if failed or ran < 5 else 0


if __name__ == "__main__":
    sys.exit(main())
