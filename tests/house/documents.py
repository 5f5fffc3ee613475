#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What documents say twice, or after the code: links lead somewhere, documents are linked where they are named, and versions, libraries and
limits are those of the build and the code.

Usage: documents.py ROOT
"""
import pathlib
import re
import sys

LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
WHOLE_LINK = re.compile(r"\[[^\]]*\]\([^)]*\)")
NAMED = re.compile(r"[\w/-]+\.md\b")
LINKED = ("README.md", "docs/c-api.md")
LIBRARIES = {"yaml-0.1": "libyaml"}  # by pkg-config's name; else as it is


def dead_links(root):
    for page in (*root.glob("*.md"), *root.glob("docs/*.md")):
        for target in LINK.findall(page.read_text()):
            if not (page.parent / target).exists():
                yield f"{page.relative_to(root)} links {target}, which is not there"


def unlinked(root):
    for page in LINKED:
        for name in NAMED.findall(WHOLE_LINK.sub("", (root / page).read_text())):
            yield f"{page} names {name} without a link"


def differing(root):
    """(what, as the document has it, as it is)"""
    def find(path, pattern):
        found = re.search(pattern, (root / path).read_text())
        return found.group(1) if found else None

    yield "the lowest PyTorch", find("docs/python.md", r"PyTorch (\S+), the lowest version"), find("pyproject.toml", r'"torch>=([\d.]+)"')
    yield ("MiB of texts and profiles of a PNG", find("docs/pipelines.md", r"profiles of a PNG may take (\d+) MiB"),
           find("steps/image/png.c", r"MAX_CHUNK_BYTES \(\(size_t\)(\d+) << 20\)"))
    needed = find("README.md", r"Needed are ([^;]*);") or ""
    required = re.findall(r"presto_required\(\w+ (\S+) \S+\)", (root / "cmake" / "dependencies.cmake").read_text())
    yield "needed libraries", set(re.split(r", | and ", needed)), {LIBRARIES.get(name, name) for name in required}


def main():
    root = pathlib.Path(sys.argv[1])
    wrong = [*dead_links(root), *unlinked(root)]
    wrong += [f"{what}: {said}, but {is_so}" for what, said, is_so in differing(root) if said is None or said != is_so]
    print("\n".join(wrong) or "documents: right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
