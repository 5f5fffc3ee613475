#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program of docs/c-api.md compiles, as C11 with warnings as errors, and prints what the page says.

Its blocks marked `c` are one file; `yaml` is mine.yaml; `text` is the output. Usage: snippets.py ROOT BUILD_DIR LIBRARY CC
"""
import pathlib
import re
import subprocess
import sys
import tempfile


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def main():
    root, build, library = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
    page = (root / "docs" / "c-api.md").read_text()
    (pipeline,), (wanted,) = blocks(page, "yaml"), blocks(page, "text")
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        (work / "mine.c").write_text("\n".join(blocks(page, "c")))
        (work / "mine.yaml").write_text(pipeline)
        subprocess.run([sys.argv[4], "-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-I", root / "include", "mine.c", "-o", "mine",
                        "-L", library.parent, "-l:" + library.name, f"-Wl,-rpath,{library.parent}"], cwd=work, check=True)
        tools = build / "tools"
        subprocess.run([tools / "presto-make-photos", "-q", "-n", "20", "-c", "2", "-o", "photos"], cwd=work, check=True)
        subprocess.run([tools / "presto-write", "--quiet", "-p", "cv", "-o", "dataset", "photos"], cwd=work, check=True)
        said = subprocess.run(["./mine", "dataset", "photos"], cwd=work, check=True, capture_output=True, text=True).stdout
    if said != wanted:
        print(f"docs/c-api.md says\n{wanted}\nbut its program says\n{said}")
        return 1
    print(f"{len(blocks(page, 'c'))} pieces of a program")
    return 0


if __name__ == "__main__":
    sys.exit(main())
