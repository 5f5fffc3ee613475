#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does threads="auto" find the number of threads that is worth it, on a storage whose reads wait?

    bench/waiting.py                    # about four minutes on two idle cores
    bench/waiting.py --seconds 2        # sooner, and noisier

A preloaded library (slow_reads.c) makes each read of a dataset sleep: the loader knows of no played storage, and sees threads that
wait, as on any storage that is far away. Shuffled records of 64 kB cost next to nothing beside their reads; photos are decoded,
which two processors do only so fast. Each number of threads runs for a while, then "auto", in two rounds: its rate is that after its first three
seconds. Printed are the best fixed number, its rate, what auto chose, its rate, and auto over the best. Needs a build with the
Python extension; PYTHON names an interpreter with NumPy.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# name, what is read, microseconds a read, reads at once (0: any number)
CASES = [
    ("records, 20 ms", "records", 20000, 0),
    ("records, 20 ms, 8 at once", "records", 20000, 8),
    ("records, 2 ms", "records", 2000, 0),
    ("photos, 20 ms", "photos", 20000, 0),
    ("photos, 5 ms, 16 at once", "photos", 5000, 16),
    ("photos, at once", "photos", 0, 0),
]
THREADS = (1, 2, 4, 8, 16, 32, 64)
WAITS_S = 3  # auto has so long to find its number

LOOP = """
import json, sys, time
import presto
kind, path, threads, skipped_s, seconds = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), float(sys.argv[5])
dataset = presto.open(path, pipeline="cv") if kind == "photos" else presto.open(path, to="generated")
loader = presto.Loader(dataset, batch=16, epochs=None, shuffle="full", threads=threads if threads == "auto" else int(threads))
names = ["image" if kind == "photos" else "signal"]
start, samples = time.monotonic(), 0
begin = before = None
for batch in loader:
    samples += len(batch[names[0]])
    now = time.monotonic()
    if begin is None and now - start >= skipped_s:
        begin, before = now, samples
    if begin is not None and now - begin >= seconds:
        break
print(json.dumps({"rate": (samples - before) / (now - begin), "threads": loader.stats()["threads"]}))
"""


def build_slow_reads(folder):
    library = pathlib.Path(folder) / "slow_reads.so"
    subprocess.run([os.environ.get("CC") or "cc", "-std=c11", "-O2", "-shared", "-fPIC", "-o", library,
                    pathlib.Path(__file__).with_name("slow_reads.c"), "-ldl", "-pthread"], check=True)
    return library


def run(args, case, path, threads):
    _, kind, slow_us, most = case
    python = os.environ.get("PYTHON", ROOT / "build" / "venv" / "bin" / "python")
    environment = {**os.environ, "PYTHONPATH": str(args.build / "python"), "LD_PRELOAD": str(args.library),
                   "PRESTO_SLOW_UNDER": str(path), "PRESTO_SLOW_US": str(slow_us), "PRESTO_SLOW_MOST": str(most)}
    waits = WAITS_S if threads == "auto" else args.seconds / 4
    done = subprocess.run([python, "-B", "-c", LOOP, kind, path, str(threads), str(waits), str(args.seconds)], env=environment,
                          check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def measure(args, case, path):
    rates = {threads: [] for threads in (*THREADS, "auto")}
    chosen = []
    for turn in range(args.rounds):
        for threads in rates if turn % 2 == 0 else reversed(rates):
            seen = run(args, case, path, threads)
            rates[threads].append(seen["rate"])
            if threads == "auto":
                chosen.append(seen["threads"])
    middle = {threads: statistics.median(found) for threads, found in rates.items()}
    best = max(THREADS, key=middle.get)
    auto = [a / b for a, b in zip(rates["auto"], rates[best])]
    print(f"| {case[0]} | {best} | {middle[best]:,.0f} | {', '.join(map(str, chosen))} | {middle['auto']:,.0f} | "
          f"{statistics.median(auto):.2f} |", flush=True)
    if args.all:
        print("  ", ", ".join(f"{threads}: {rate:,.0f}" for threads, rate in middle.items()), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--seconds", type=float, default=3, help="that each number of threads is measured")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--all", action="store_true", help="print the rate of each number of threads")
    args = parser.parse_args()
    args.build = args.build.resolve()
    with tempfile.TemporaryDirectory() as folder:
        args.library = build_slow_reads(folder)
        paths = {"records": pathlib.Path(folder) / "records", "photos": pathlib.Path(folder) / "photos"}
        subprocess.run([args.build / "tools" / "presto-write", "-q", "-p", "synthetic", "--set", "source.count=4000", "--set",
                        "source.size=64000", "-u", "generated", "-s", "8", "-o", paths["records"]], check=True)
        subprocess.run([args.build / "tools" / "presto-make-photos", "-n", "400", "-o", paths["photos"]], check=True,
                       stdout=subprocess.DEVNULL)
        print("| storage | best number | samples/s | auto | samples/s | auto / best |\n| --- | ---: | ---: | ---: | ---: | ---: |")
        for case in CASES:
            measure(args, case, paths[case[1]])


if __name__ == "__main__":
    main()
