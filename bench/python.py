#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Batches into NumPy, and into torch, against the same loop in C, and what Python itself costs a batch.

    bench/python.py                    # after a build with the extension module; PYTHON names an interpreter with NumPy

Stored samples of several sizes, batches of about 4 MB, page cache warm. Python and C take turns; the table has medians of
the rounds: the rate of C, the ratio of Python's to it in each round, and the processor time of the consuming thread a batch.
With an interpreter that has torch, presto.torch.Loader takes turns, too.
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
if sys.argv[5] == "torch":
    import presto.torch
kind = presto.torch.Loader if sys.argv[5] == "torch" else presto.Loader
loader = kind(presto.open(dataset, to="generated"), batch=batch, epochs=epochs, threads=threads)
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


def median_of(runs, place):
    return statistics.median(figures[place] for figures in runs)


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
    has_torch = subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0
    kinds = ["NumPy", "torch"] if has_torch else ["NumPy"]
    titles = ["bytes a sample", "batch", "C samples/s", "C us a batch"]
    titles += [title for kind in kinds for title in (f"{kind} / C", f"{kind} us a batch")]
    print("|", " | ".join(titles), "|")
    print("|", " | ".join("---:" for _ in titles), "|", flush=True)
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
            in_c, in_python = [], {kind: [] for kind in kinds}
            for _ in range(options.rounds):
                in_c.append(run([*c_loop, epochs, options.threads]))
                for kind in kinds:
                    in_python[kind].append(run([*py_loop, epochs, options.threads, kind], env=environment))
            cells = [size, batch, f"{median_of(in_c, 0):,.0f}", f"{median_of(in_c, 1):.1f}"]
            for kind in kinds:
                ratios = [ours[0] / theirs[0] for theirs, ours in zip(in_c, in_python[kind])]
                cells.append(f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
                cells.append(f"{median_of(in_python[kind], 1):.1f}")
            print("|", " | ".join(map(str, cells)), "|", flush=True)


if __name__ == "__main__":
    sys.exit(main())
