#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Without a library, a program or a compiler that the build needs, CMake says what to type, and scripts/setup installs the same.

Usage: missing.py ROOT CMAKE
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

LIBRARIES = ["libisal-dev", "zlib1g-dev", "libdeflate-dev", "libyaml-dev", "libjansson-dev"]


def said(root, cmake, options, environment):
    """The packages of the line that a configuration prints when it fails; the whole text beside them."""
    kept = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX")}
    with tempfile.TemporaryDirectory(prefix="presto-missing-") as folder:
        done = subprocess.run([cmake, "-S", root, "-B", folder, "-DPRESTO_TESTS=OFF", "-DPRESTO_BENCH=OFF", *options], capture_output=True,
                              text=True, check=False, stdin=subprocess.DEVNULL, env={**kept, **environment})
    text = done.stdout + done.stderr
    found = re.findall(r"^ +sudo apt-get install (.*)$", text, re.MULTILINE)
    assert done.returncode != 0 and len(found) == 1, text
    return found[0].split(), text


def main():
    root, cmake = pathlib.Path(sys.argv[1]), sys.argv[2]
    known = subprocess.run([root / "scripts" / "setup", "--list", "--test-packages"], capture_output=True, text=True, check=True).stdout.split()
    nowhere = {"PKG_CONFIG_LIBDIR": "/nonexistent", "PKG_CONFIG_PATH": ""}
    for options, environment, wanted in [
            ([], nowhere, LIBRARIES),
            (["-DPKG_CONFIG_EXECUTABLE=/nonexistent"], {}, ["pkg-config", *LIBRARIES]),
            (["-DPRESTO_PYTHON=ON", "-DPython3_INCLUDE_DIR=/nonexistent"], nowhere, [*LIBRARIES, "python3-dev"]),
            (["-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF"], {"PATH": "/nonexistent"}, ["gcc", "g++", "libc6-dev"])]:
        packages, text = said(root, cmake, options, environment)
        assert packages == wanted, (packages, wanted, text)
        assert set(packages) <= set(known), (packages, known)
        assert "scripts/setup" in text, text
    print("what is missing is told")


if __name__ == "__main__":
    main()
