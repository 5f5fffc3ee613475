#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each public header compiles alone, as C11 and as C++17, without a warning. What a comment promises has a line of its own.

Usage: headers.py ROOT CC CXX
"""
import pathlib
import re
import subprocess
import sys
import tempfile

# "Returns: ..." within a line is overlooked.
MIDLINE = re.compile(r"^ *\*.*\w.* (?:Returns|Errors|Threads|Owner|Limit|Source):(?: |$)|^ *\*.* Returns PRESTO_", re.MULTILINE)
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]


def main():
    root, cc, cxx = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    headers = sorted((root / "include" / "presto").glob("*.h"))
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for header in headers:
            for found in MIDLINE.finditer(header.read_text()):
                failed += 1
                print(f"{header.name}: on a line of its own: {found[0].strip()}")
            for compiler, standard, suffix in ((cc, "-std=c11", "c"), (cxx, "-std=c++17", "cc")):
                source = pathlib.Path(folder, "alone." + suffix)
                source.write_text(f"#include <presto/{header.name}>\nint presto_alone;\n")
                command = [compiler, standard, *STRICT, "-I", str(root / "include"), str(source)]
                result = subprocess.run(command, capture_output=True, text=True)
                if result.returncode != 0:
                    failed += 1
                    print(f"{header.name} as {standard}:\n{result.stderr}")
    print(f"{len(headers)} headers, {failed} failures")
    return 1 if failed or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
