#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a version of Presto stores, for later versions to read: tests/cli/test_versions.py.

Made once a release, with the programs of that release, and never again. Usage: make_version.py TOOLS OUT
"""
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

PIPELINE = """\
name: small
source: {type: files, match: ["*.jpg"], label: parent-folder}
steps:
  - {step: read-file,     yields: concatenated}
  - {step: decode-image,  yields: decoded, channels: 3}
  - {step: resize-image,  yields: resized, min-side: 24}
  - {step: center-pixels, yields: pixel-centered}
  - {step: random-crop,   height: 16, width: 20}
"""
# How each dataset is written: name -> options of presto-write.
DATASETS = {
    "none": ["-u", "resized", "-c", "none", "-s", "2"],
    "zstd": ["-u", "pixel-centered", "-c", "zstd:1", "-s", "3"],
    "gzip-files": ["-u", "resized", "-c", "none", "-s", "2", "--file-compression", "gzip"],
    "encoded": ["-u", "concatenated", "-c", "none", "-s", "1"],
}
# How each stream is read: name -> dataset, options of presto-load.
STREAMS = {
    "none": ("none", ["--format", "npy", "-b", "4"]),
    "none-shuffled": ("none", ["--format", "npy", "-b", "5", "--shuffle", "full", "--seed", "3", "-e", "2"]),
    "zstd": ("zstd", ["--format", "npy", "-b", "3", "--features", "image,label,key"]),
    "zstd-records": ("zstd", ["--shuffle", "blocks:4", "--seed", "9"]),
    "gzip-files": ("gzip-files", ["--format", "npy", "-b", "4"]),
    "encoded": ("encoded", ["--format", "npy", "-b", "4", "--shuffle", "buffer:3"]),
}
STATE = ["-q", "-e", "3", "--shuffle", "full", "--seed", "7"]


def main():
    tools, out = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])

    def run(program, *arguments, cwd=None):
        return subprocess.run([tools / program, *map(str, arguments)], check=True, stdout=subprocess.PIPE, cwd=cwd).stdout

    version = run("presto-load", "--version").decode().split()[-1]
    out.mkdir(parents=True)
    (out / "small.yaml").write_text(PIPELINE)
    expected = {"version": version, "streams": {}}
    with tempfile.TemporaryDirectory() as scratch:
        photos = pathlib.Path(scratch) / "photos"
        run("presto-make-photos", "-n", "12", "-c", "3", "--width", "96", "--height", "72", "-o", photos)
        for name, options in DATASETS.items():
            run("presto-write", "-q", "-p", out / "small.yaml", *options, "-o", out / name, photos)
        # From the folder of the photos: no path of this machine is stored.
        run("presto-sweep", "-q", "-p", "cv", "--set", "resize-image.min-side=24", "--set", "random-crop.height=16", "--set",
            "random-crop.width=20", "--codecs", "none,zstd:1", "--threads", "1", "--samples", "6", "--runs", "1", "-o", "sweep",
            "photos", cwd=scratch)
        (out / "sweep").mkdir()
        shutil.copy(pathlib.Path(scratch) / "sweep" / "strategy.yaml", out / "sweep")
        results = json.loads((pathlib.Path(scratch) / "sweep" / "results.json").read_text())
        results["machine"]["kernel"] = "Linux"
        (out / "sweep" / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (out / "foreign").mkdir()
    (out / "foreign" / "records.tfrecord").write_bytes(run("presto-load", "-q", out / "none"))
    run("presto-load", "-q", "--index", "keep", "--format", "null", out / "foreign")
    for name, (dataset, options) in STREAMS.items():
        expected["streams"][name] = hashlib.sha256(run("presto-load", "-q", *options, out / dataset)).hexdigest()
    state = out / "state"
    first = run("presto-load", *STATE, "--state", state, "--limit", "17", out / "zstd")
    whole = run("presto-load", *STATE, out / "zstd")
    assert whole.startswith(first)
    expected["rest"] = hashlib.sha256(whole[len(first):]).hexdigest()
    (out / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
