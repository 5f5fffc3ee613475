#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Batches to another process: the npy pipe, the Arrow pipe and shared memory, beside the loader in process.

    bench/streams.py                   # after a build with the extension module; PYTHON names an interpreter with NumPy

Stored samples of several sizes, page cache warm, batches of about 4 MB. The readers take turns. A reader takes each batch and drops
it; it does not look at the values, or with --sum it adds them up. The table has the medians of the rounds in GB/s with the least and the
most beside them, and the processor seconds of both sides for a GB, starting included. "in process" is presto.Loader in the reader's own process: no second process, no copy.
"""
import argparse
import os
import resource
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCH_BYTES = 4_000_000
WAYS = ("npy", "arrow", "shm", "in process")

LOOP = """
import subprocess, sys, time
import presto
way, program, dataset, batch, epochs, threads, adds = sys.argv[1:8]
process = None
command = [program, "-q", "-j", threads, "-b", batch, "-e", epochs, "--to", "generated", "--features", "signal"]
if way == "npy":
    batches = presto.npy_stream([*command, "--format", "npy", dataset])
elif way == "shm":
    batches = presto.shm_stream([*command, "--format", "shm", dataset])
elif way == "arrow":
    import pyarrow
    process = subprocess.Popen([*command, "--format", "arrow", dataset], stdout=subprocess.PIPE)
    batches = ({"signal": found.column("signal").to_numpy_ndarray()} for found in pyarrow.ipc.open_stream(process.stdout))
else:
    dataset = presto.open(dataset, to="generated", features=["signal"])
    batches = presto.Loader(dataset, batch=int(batch), epochs=int(epochs), threads=int(threads))
size = 0
start = None
for taken in batches:
    size += taken["signal"].nbytes
    if adds == "1":
        taken["signal"].reshape(-1).view("u8").sum()
    if start is None:  # the program's start is not what is measured
        start, size = time.monotonic(), 0
print(size / (time.monotonic() - start))
if process is not None:  # only then its processor time is known; the package's readers wait for theirs
    process.wait()
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--work", default=None, help="folder for the datasets")
    parser.add_argument("--megabytes", type=int, default=400, help="size of each dataset")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sum", action="store_true", help="the reader adds up all values")
    parser.add_argument("--sizes", default="10000,100000,1000000", help="bytes a sample")
    options = parser.parse_args()
    python = os.environ.get("PYTHON", ROOT / "build" / "venv" / "bin" / "python")
    environment = {**os.environ, "PYTHONPATH": str(options.build / "python")}
    tools = options.build / "tools"
    print("| bytes a sample | batch |" + "".join(f" {way} GB/s | CPU s/GB |" for way in WAYS) + " shm / npy |")
    print("| ---: | ---: |" + " ---: |" * (2 * len(WAYS) + 1))
    for size in map(int, options.sizes.split(",")):
        with tempfile.TemporaryDirectory(dir=options.work) as folder:
            dataset = f"{folder}/dataset"
            count = max(1, options.megabytes * 1_000_000 // size)
            subprocess.run([tools / "presto-write", "--quiet", "-p", "synthetic", "--set", f"source.size={size}", "--set",
                            f"source.count={count}", "-u", "generated", "-o", dataset], check=True)
            batch = max(1, BATCH_BYTES // size)
            rates, costs = {way: [] for way in WAYS}, {way: [] for way in WAYS}
            total = count * size * options.epochs / 1e9
            for _ in range(options.rounds):
                for way in WAYS:
                    before = resource.getrusage(resource.RUSAGE_CHILDREN)
                    shown = subprocess.run([python, "-c", LOOP, way, tools / "presto-load", dataset, str(batch), str(options.epochs),
                                            str(options.threads), str(int(options.sum))],
                                           check=True, capture_output=True, text=True, env=environment).stdout
                    rates[way].append(float(shown) / 1e9)
                    after = resource.getrusage(resource.RUSAGE_CHILDREN)
                    costs[way].append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / total)
        cells = [f"{statistics.median(r):.2f} ({min(r):.2f} to {max(r):.2f}) | {statistics.median(costs[way]):.2f}"
                 for way, r in rates.items()]
        ratio = statistics.median(a / b for a, b in zip(rates["shm"], rates["npy"], strict=True))
        print(f"| {size} | {batch} | {' | '.join(cells)} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
