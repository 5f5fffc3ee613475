#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shared library shows the symbols of tests/abi/exports.txt and no others, each is declared in a public header, and somebody outside
the library needs it.

Who needs a function: a program, the Python package, an example, a document, or an inline function of a public header (its
twin, marked so in the list). What nobody needs is private: presto__x, in the header that its folder shares (records_internal.h,
pipelines_internal.h, loader_internal.h) or that of its room. KEPT has what is public all the same.

Usage: symbols.py ROOT LIBRARY [--update]
"""
import pathlib
import re
import subprocess
import sys

USERS = ["tools", "python", "examples", "docs"]
# What a step in a plugin calls: all of presto/step.h.
PLUGIN_HEADERS = ["step.h"]
KEPT = {
    "presto_arena_alloc": "arenas are for callers of presto_example_parse and for steps",
    "presto_arena_init": "arenas are for callers of presto_example_parse and for steps",
    "presto_buffer_append": "the caller's buffers, which functions append to",
    "presto_buffer_reserve": "room for what the caller appends",
    "presto_crc32c": "the checksum of frames, with presto_crc32c_mask",
    "presto_dtype_numpy": "programs that write arrays name their types",
    "presto_error_set_errno": "steps of plugins report failed calls of the system",
    "presto_rng_below": "random steps of plugins draw with it",
    "presto_rng_next": "random steps of plugins draw with it",
    "presto_rng_uniform": "random steps of plugins draw with it",
    "presto_shard_file_bytes": "a TFRecord file is read record by record",
    "presto_shard_free": "a TFRecord file is read record by record",
    "presto_shard_index": "a TFRecord file is read record by record",
    "presto_shard_open": "a TFRecord file is read record by record",
    "presto_shard_records": "a TFRecord file is read record by record",
    "presto_spec_equal": "whether features of batches are alike",
    "presto_sweep_bound_name": "the names in results.json",
    "presto_sweep_get_confidence": "how sure a recommendation is, in figures",
    "presto_sweep_score": "the same results with other weights",
    "presto_text_decode": "the inverse of presto_text_encode",
    "presto_utf8_bytes": "whether a text is one",
}
# Sanitizers add their own symbols.
TOOLCHAIN = re.compile(r"_(init|fini)$|__(a|t|ub)san_|___asan|__odr_asan")


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def shown_by(library):
    out = subprocess.run(["nm", "--dynamic", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    # Upper case is global.
    names = {line.split()[-1].split("@")[0] for line in out.splitlines() if line.split()[-2].isupper()}
    return {name for name in names if not TOOLCHAIN.match(name)}


def used_by(root, folders):
    words = set()
    for folder in folders:
        for path in (root / folder).rglob("*"):
            if path.suffix in (".c", ".h", ".md", ".cc") and path.is_file():
                text = path.read_text(errors="replace")
                words |= set(re.findall(r"\bpresto_[a-z0-9_]+", text if path.suffix == ".md" else without_comments(text)))
    return words


def main():
    root, library = pathlib.Path(sys.argv[1]), sys.argv[2]
    shown = shown_by(library)
    headers = {path.name: without_comments(path.read_text()) for path in sorted((root / "include" / "presto").glob("*.h"))}
    declared = set(re.findall(r"\b(presto_[a-z0-9_]+)\s*\(", "".join(headers.values())))
    inlines = "".join(re.findall(r"^static inline .*?^}", "".join(headers.values()), re.MULTILINE | re.DOTALL))
    twins = {name for name in shown if re.search(rf"\b{name}\(", inlines) and re.search(r"_(sized|init)$", name)}
    used = used_by(root, USERS) | set(re.findall(r"\bpresto_[a-z0-9_]+", inlines))
    used |= {name for header in PLUGIN_HEADERS for name in re.findall(r"\bpresto_[a-z0-9_]+", headers[header])}

    listed_in = root / "tests" / "abi" / "exports.txt"
    if "--update" in sys.argv[3:]:
        listed_in.write_text("".join(f"{name}{' twin' if name in twins else ''}\n" for name in sorted(shown)))
    listed = {line.split()[0] for line in listed_in.read_text().splitlines()}

    faults = [f"{name}: not a name of this library" for name in sorted(shown) if not re.match(r"presto_[a-z0-9]", name)]
    faults += [f"{name}: in no public header" for name in sorted(shown - declared)]
    faults += [f"{name}: exported, but not in tests/abi/exports.txt (--update writes it)" for name in sorted(shown - listed)]
    faults += [f"{name}: in tests/abi/exports.txt, but not exported" for name in sorted(listed - shown)]
    faults += [f"{name}: nobody outside the library needs it" for name in sorted(shown - used - set(KEPT))]
    faults += [f"{name}: in KEPT without need" for name in sorted(set(KEPT) & used | set(KEPT) - shown)]
    print("\n".join(faults) or f"{len(shown)} symbols: {len(shown - twins)} to call, {len(twins)} twins of inline functions")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
