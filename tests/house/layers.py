#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The architecture as a test: which folder may include which header.

base <- storage <- records, storage <- steps, records + steps <- loader <- profile <- tools. Public headers count as the
folder that implements them. Usage: layers.py ROOT
"""
import pathlib
import re
import subprocess
import sys

# Which folder each public header belongs to; a header that is not listed fails the test.
OWNERS = {
    "base": "api crc32c file numbers processors rng span status tensor text version",
    "storage": "storage filesystem",
    "records": "codec dataset example frame inspect shard",
    "steps": "pipeline step",
    "loader": "arrow convert loader mix out ring source stream writer",
    "profile": "drift presto sweep",
}
MAY_SEE = {
    "base": {"base"},
    "storage": {"base", "storage"},
    "records": {"base", "storage", "records"},
    "steps": {"base", "storage", "steps"},
    "loader": {"base", "storage", "records", "steps", "loader"},
    "profile": {"base", "storage", "records", "steps", "loader", "profile"},
    "tools": {"base", "storage", "records", "steps", "loader", "profile", "tools"},
    "python": {"base", "storage", "records", "steps", "loader", "profile", "python"},
}
# What else lies in the top folder.
OTHERS = {"proto", "scripts", "include", "pipelines", "examples", "bench", "tests", "docs", "cmake"}
# A folder's concern, told by the libraries it must not touch.
FORBIDDEN = {
    "records": r"jpeglib|spng|png\.h|yaml",
    "steps": r"isa-l|zlib|zstd|lz4|snappy|blosc|libdeflate|protobuf|fcntl\.h|dirent\.h",
    "loader": r"jpeglib|spng|png\.h|isa-l|zlib|zstd|lz4|snappy|blosc|libdeflate|protobuf|yaml",
    "profile": r"jpeglib|spng|png\.h|isa-l|zlib|zstd|lz4|snappy|blosc|libdeflate|protobuf",
    "tools": r"jpeglib|spng|png\.h|isa-l|zlib|zstd|lz4|snappy|blosc|libdeflate",
}
# (file, header): the one program that makes images instead of reading them through steps/; a file format that is inflated;
# converters that the C library loads.
EXEMPT = {("tools/photos/photo_encode.c", "jpeglib.h"), ("tools/photos/photo_encode.c", "spng.h"), ("steps/image/png_fast.c", "isa-l/crc.h"),
          ("steps/image/png_fast.c", "isa-l/igzip_lib.h"), ("steps/text/page/extract_text_charset.c", "pthread.h")}
# (room, header): steps of other programs speak in Examples, and their processes serve threads. records/example/ needs base only.
EXEMPT_ROOMS = {("steps/own", "presto/example.h"), ("steps/own", "pthread.h")}
HEADER_OWNER = {name: folder for folder, names in OWNERS.items() for name in names.split()}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def owner_of(quote, header, path, root):
    """Folder that an included header belongs to, found by its path; None for the system's and other libraries'."""
    if header.startswith("presto/"):
        name = header[len("presto/"):].removesuffix(".h")
        return HEADER_OWNER.get(name, f"nobody ({header} is not listed in layers.py)")
    if header.endswith(".pb-c.h"):
        return "proto"
    if quote == "<":
        return None
    target = (path.parent / header).resolve()
    if not target.is_file() or not target.is_relative_to(root):
        return "nobody (no such file; headers are named by their paths from the file that includes them)"
    return target.relative_to(root).parts[0]


def faults_in(path, folder, root):
    text = path.read_text()
    room = str(path.relative_to(root).parent)
    for quote, header in INCLUDE.findall(text):
        owner = owner_of(quote, header, path, root)
        if owner is not None and owner not in MAY_SEE[folder] and (room, header) not in EXEMPT_ROOMS:
            yield f"{path.relative_to(root)} includes {header}, which belongs to {owner}"
        if re.search(FORBIDDEN.get(folder, r"$^"), header) and (str(path.relative_to(root)), header) not in EXEMPT:
            yield f"{path.relative_to(root)} includes {header}, which is not {folder}'s concern"
    may_lock = path.parent.name == "plan" or (room, "pthread.h") in EXEMPT_ROOMS or (str(path.relative_to(root)), "pthread.h") in EXEMPT
    if folder == "steps" and "<pthread.h>" in text and not may_lock:
        yield f"{path.relative_to(root)} knows of threads: steps take turns through their plan"
    if folder == "tools" and "_internal.h" in text:
        yield f"{path.relative_to(root)} uses an internal header"


def strange_folders(root):
    """Committed ones that have no place here. A source archive has no list of what is committed."""
    listed = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True, check=False).stdout
    folders = {line.split("/")[0] for line in listed.splitlines() if "/" in line and not line.startswith(".")}
    return [f"{name}/ has no place in this project" for name in sorted(folders - MAY_SEE.keys() - OTHERS)]


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    faults, checked = strange_folders(root), 0
    for folder in MAY_SEE:
        for path in sorted((root / folder).rglob("*.[ch]")):
            checked += 1
            faults += faults_in(path, folder, root)
    for path in sorted((root / "include" / "presto").glob("*.h")):
        checked += 1
        folder = HEADER_OWNER.get(path.stem)
        if folder is None:
            faults.append(f"{path.relative_to(root)} is not listed in layers.py")
        else:
            faults += faults_in(path, folder, root)
    print("\n".join(faults) or f"{checked} files keep to the layers")
    return 1 if faults or checked < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
