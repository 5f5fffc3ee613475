#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto-sweep --check finds what SciPy finds in the sizes of the same records.

Usage: drift.py TOOLS_DIR
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy
import scipy.stats

TOOLS = pathlib.Path(sys.argv[1])


def run(program, *arguments, codes=(0,)):
    done = subprocess.run([TOOLS / program, *map(str, arguments)], capture_output=True)
    if done.returncode not in codes:
        sys.exit(f"{program} {arguments}: exit {done.returncode}: {done.stderr.decode()}")
    return done.stdout


def sizes(dataset):
    """Of the records with their frames, by hopping their headers."""
    found = []
    for shard in sorted(dataset.glob("data-*.tfrecord")):
        content, at = shard.read_bytes(), 0
        while at < len(content):
            (length,) = struct.unpack_from("<Q", content, at)
            found.append(length + 16)
            at += length + 16
    return numpy.array(found)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shapes = {"old": (60, 200, 150, 1), "new": (45, 200, 150, 2), "wide": (45, 230, 140, 3)}
        for photos, (count, width, height, seed) in shapes.items():
            run("presto-make-photos", "-q", "-n", count, "-c", 1, "--width", width, "--height", height, "--seed", seed, "-o",
                folder / photos)
        for photos in shapes:
            run("presto-write", "-q", "-p", "cv", "-u", "concatenated", "-o", folder / f"{photos}-stored", folder / photos)
        old = sizes(folder / "old-stored")
        for photos in shapes:
            new = sizes(folder / f"{photos}-stored")
            found = json.loads(run("presto-sweep", "--check", folder / "old-stored", "--samples", 0, "--json", folder / photos,
                                   codes=(0, 4)))
            figure = found["figures"][0]
            theirs = scipy.stats.ks_2samp(old, new, method="exact")
            assert figure["name"] == "stored bytes"
            assert abs(figure["distance"] - theirs.statistic) < 1e-8, (photos, figure, theirs)
            # Ours is the limit for many with a correction; it must not be far from the exact one where that matters.
            ratio = figure["chance"] / theirs.pvalue
            assert 0.4 < ratio < 2.5 or max(figure["chance"], theirs.pvalue) < 1e-6, (photos, figure, theirs)
            for part, value in ((50, "median"), (95, "p95")):
                assert abs(figure[f"stored_{value}"] - numpy.percentile(old, part)) < 1e-3, (photos, figure)
                assert abs(figure[f"new_{value}"] - numpy.percentile(new, part)) < 1e-3, (photos, figure)
            assert abs(figure["new_mean"] / new.mean() - 1) < 1e-8
        assert figure["differs"], figure


if __name__ == "__main__":
    main()
