#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Batches into NumPy against the same loop in C, and what Python itself costs a batch.

    bench/python.py                    # after a build with the extension module; PYTHON names an interpreter with NumPy

Stored samples of several sizes, batches of about 4 MB, page cache warm. Python and C take turns; the table has medians of
the rounds: the rate of C, that of Python, their ratio in each round, and the processor time of the consuming thread a batch.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCH_BYTES = 4_000_000

LOOP = """
import sys, time
import presto
dataset, batch, epochs, threads = sys.argv[1], *map(int, sys.argv[2:5])
loader = presto.Loader(presto.open(dataset, to="generated"), batch=batch, epochs=epochs, threads=threads)
samples = batches = 0
start, own = time.monotonic(), time.thread_time()
for taken in loader:
    samples += len(taken["signal"])
    batches += 1
print(samples, batches, time.monotonic() - start, time.thread_time() - own)
"""


def run(command, **options):
    shown = subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True, **options).stdout
    samples, batches, wall, own = shown.split()
    return int(samples) / float(wall), float(own) / int(batches) * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--work", default=None, help="folder for the datasets")
    parser.add_argument("--megabytes", type=int, default=400, help="size of each dataset")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="a run takes about so long")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--sizes", default="10000,100000,1000000,4000000,20000000", help="bytes a sample")
    options = parser.parse_args()
    python = os.environ.get("PYTHON", ROOT / "build" / "venv" / "bin" / "python")
    environment = {**os.environ, "PYTHONPATH": str(options.build / "python")}
    print("| bytes a sample | batch | C samples/s | Python samples/s | Python / C | C us a batch | Python us a batch |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for size in map(int, options.sizes.split(",")):
        with tempfile.TemporaryDirectory(dir=options.work) as folder:
            dataset = f"{folder}/dataset"
            count = max(1, options.megabytes * 1_000_000 // size)
            subprocess.run([options.build / "tools" / "presto-write", "--quiet", "-p", "synthetic", "--set", f"source.size={size}",
                            "--set", f"source.count={count}", "-u", "generated", "-o", dataset], check=True)
            batch = max(1, BATCH_BYTES // size)
            c_loop = [options.build / "bench" / "bench_batches", dataset, batch]
            py_loop = [python, "-B", "-c", LOOP, dataset, batch]
            rate, _ = run([*c_loop, 1, options.threads])
            epochs = max(1, int(options.seconds * rate / count))
            rounds = []
            for _ in range(options.rounds):
                rounds.append((run([*c_loop, epochs, options.threads]),
                               run([*py_loop, epochs, options.threads], env=environment)))
            median = lambda values: statistics.median(list(values))
            ratios = [ours[0] / theirs[0] for theirs, ours in rounds]
            print(f"| {size} | {batch} | {median(r[0][0] for r in rounds):,.0f} | {median(r[1][0] for r in rounds):,.0f} | "
                  f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) | {median(r[0][1] for r in rounds):.1f} | "
                  f"{median(r[1][1] for r in rounds):.1f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
