#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over every source file of a build that is ours: generated ones are in the build.

The verdict depends on the preprocessed text, the flags, the files .clang-tidy and the version only. So a text that several targets
share is analyzed once, and one that has passed before is not analyzed again: the folder build/clang-tidy remembers it
(PRESTO_TIDY_CACHE names another folder). Usage: tidy.py BUILD_DIR JOBS
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

TIDY, COMPILER = "clang-tidy-14", "clang-14"
# How far the analyzer of paths follows each function: a ninth of its default, for a quarter of the time. Functions here are short.
PATHS = ("-Xclang", "-analyzer-config", "-Xclang", "max-nodes=25000")
UNUSED_S = 30 * 24 * 3600  # what was not asked for in this time is forgotten
ROOT = pathlib.Path(__file__).resolve().parents[2]


def arguments(command):
    """The compiler's arguments without its name, the files and what only names outputs."""
    words, kept = shlex.split(command), []
    while not words[0].startswith("-"):  # ccache, cc
        words.pop(0)
    skip = 0
    for word in words:
        if skip:
            skip -= 1
        elif word in ("-o", "-c", "-MT", "-MF"):
            skip = 1
        elif word not in ("-MD", "-MMD"):
            kept.append(word)
    return kept


class Unit:
    """One text to be analyzed, and how."""

    def __init__(self, entry, salt):
        self.file = os.path.join(entry["directory"], entry["file"])
        self.folder, self.flags = entry["directory"], arguments(entry["command"])
        # As clang-tidy sees it, with the comments: they may hold NOLINT.
        text = subprocess.run([COMPILER, "-E", "-CC", "-w", "-D__clang_analyzer__=1", *self.flags, self.file],
                              cwd=self.folder, capture_output=True, check=True).stdout
        flags = sorted(f for f in self.flags if f.startswith(("-f", "-m", "-std", "-O")))  # -I and -D show in the text
        key = hashlib.sha256(salt + "\0".join(flags).encode() + text.replace(os.fsencode(ROOT), b"."))
        self.key = key.hexdigest()

    def analyze(self):
        done = subprocess.run([TIDY, "--quiet", self.file, "--", *self.flags, *PATHS], cwd=self.folder, text=True,
                              capture_output=True, check=False)
        # stderr counts the warnings in other people's headers, unless clang-tidy itself fails.
        return done.returncode == 0, done.stdout + (done.stderr if done.returncode != 0 else "")


def main():
    build, jobs = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2])
    passed = pathlib.Path(os.environ.get("PRESTO_TIDY_CACHE") or ROOT / "build" / "clang-tidy")
    passed.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    salt = version + " ".join(PATHS).encode() + b"".join((ROOT / folder / ".clang-tidy").read_bytes() for folder in (".", "tests", "bench"))
    entries = [e for e in json.loads((build / "compile_commands.json").read_text())
               if build not in pathlib.Path(os.path.join(e["directory"], e["file"])).parents]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        units = {unit.key: unit for unit in pool.map(lambda entry: Unit(entry, salt), entries)}
        fresh = sorted((u for u in units.values() if not (passed / u.key).exists()), key=lambda u: u.file)
        failed = 0
        for unit, (is_clean, said) in zip(fresh, pool.map(Unit.analyze, fresh)):
            if is_clean:
                (passed / unit.key).touch()
            else:
                failed += 1
                print(said, end="", flush=True)
    for key in units.keys() - {unit.key for unit in fresh}:
        (passed / key).touch()
    for old in passed.iterdir():
        if time.time() - old.stat().st_mtime > UNUSED_S:
            old.unlink()
    print(f"{len(units)} texts, {len(fresh)} of them analyzed, {failed} with faults")
    return 1 if failed or len(units) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
