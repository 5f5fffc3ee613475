#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two threads beside one, for each of the seven pipelines and each of its representations.

    bench/threads.py                            # about eight minutes on two idle cores
    bench/threads.py --pipeline mp3 --pipeline nlp
    bench/threads.py --rounds 3 --seconds 0.3   # sooner, and noisier

The samples of tests/corpora/make are stored at each representation. Then presto-load streams them to nowhere with one thread and with
two, warm, by the clock and with its start, in turn with two bare loops: SHA-256 of a few KiB in the cache, and memcpy of much
more than the cache holds. A loop's figure is what two threads get done, over what one does: what the machine gives. The last
column is the processor time that two threads take for a sample, over that of one: it does not depend on what else runs.
Needs what tests/corpora/make needs; pipelines whose corpus cannot be made are named and left out.
"""
import argparse
import ctypes
import hashlib
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Samples of each corpus, as a share of the whole one.
SCALES = {"cv": 0.2, "cv2-jpg": 0.2, "cv2-png": 0.5, "nlp": 0.1, "nilm": 0.1, "mp3": 0.2, "flac": 0.4}
OPTIONS = {"nlp": ["--set", f"bpe-encode.model={ROOT}/tests/golden/tokenizers/bpe.model", "--set", "embed.rows=8000"]}
HASHED_BYTES, HASHED_TIMES = 16 << 10, 4000
COPIED_BYTES, COPIED_TIMES = 48 << 20, 6


# ---- bare loops ----

def hash_much(data):
    for _ in range(HASHED_TIMES):
        hashlib.sha256(data).digest()  # without Python's lock


def copy_much(buffers):
    for _ in range(COPIED_TIMES):
        ctypes.memmove(*buffers, COPIED_BYTES)  # without Python's lock


def seconds_of(work, arguments):
    """All of them at once, a thread each."""
    threads = [threading.Thread(target=work, args=(a,)) for a in arguments]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start


class BareLoops:
    def __init__(self):
        self.hashed = [bytes([i]) * HASHED_BYTES for i in range(2)]
        self.copied = [tuple(ctypes.create_string_buffer(COPIED_BYTES) for _ in range(2)) for _ in range(2)]
        for pair in self.copied:
            copy_much(pair)  # the first touch

    def gains(self):
        """What two threads get done over what one does: hashing, copying."""
        return [2 * seconds_of(work, data[:1]) / seconds_of(work, data)
                for work, data in ((hash_much, self.hashed), (copy_much, self.copied))]


# ---- presto ----

def representations(pipeline):
    """Those that can be stored, in their order."""
    return re.findall(r"yields: *([\w-]+)", (ROOT / "pipelines" / f"{pipeline}.yaml").read_text())


def make_corpus(pipeline, tools, folder, quick):
    """Its folder, or None and why not."""
    how = ["--tiny"] if quick else ["--scale", str(SCALES[pipeline])]
    done = subprocess.run([sys.executable, ROOT / "tests/corpora/make", pipeline, *how, "--photos", tools / "presto-make-photos",
                           "-o", folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return (folder, "") if done.returncode == 0 else (None, done.stderr.strip().rpartition("\n")[2])


def store(pipeline, split, tools, corpus, folder):
    subprocess.run([tools / "presto-write", "-q", "-p", pipeline, *OPTIONS.get(pipeline, []), "-u", split, "-s", "2", "-o", folder,
                    corpus], check=True)
    return [folder]


def stream(load, threads, epochs, stats):
    """(seconds, processor seconds, samples)"""
    subprocess.run([*load, "-j", str(threads), "-e", str(epochs), "--stats", stats], check=True)
    told = json.loads(pathlib.Path(stats).read_text())
    return told["wall_s"], told["cpu_s"], told["samples"]


def measure(load, loops, args, stats):
    """{column: one value a round}"""
    seconds = stream(load, 1, 1, stats)[0]
    epochs = 1 if args.quick else max(2, round(args.seconds / seconds))
    epochs = epochs if args.quick else max(2, round(args.seconds * epochs / stream(load, 1, epochs, stats)[0]))
    found = {name: [] for name in ("samples/s, 1 thread", "2 threads / 1", "hashing, 2 / 1", "copying, 2 / 1", "processor time, 2 / 1")}
    for turn in range(args.rounds):
        order = (1, 2) if turn % 2 == 0 else (2, 1)
        run = {threads: stream(load, threads, epochs, stats) for threads in order}
        hashing, copying = loops.gains()
        values = (run[1][2] / run[1][0], run[1][0] / run[2][0], hashing, copying, run[2][1] / max(run[1][1], 1e-3))
        for name, value in zip(found, values):
            found[name].append(value)
    return found


def spread_of(values):
    median = statistics.median(values)
    if len(values) < 4:
        return (max(values) - min(values)) / 2 / median
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / 2 / median


def report(row, found, out):
    print(f"{row:34}" + "".join(f"{statistics.median(values):10,.2f}" for values in found.values()), flush=True)
    for column, values in found.items() if out else ():
        figure = {"table": "threads.splits", "row": row, "column": column, "median": statistics.median(values), "spread": spread_of(values)}
        out.write(json.dumps(figure) + "\n")


def run_pipeline(pipeline, loops, args, work):
    tools = args.build.resolve() / "tools"
    corpus, why = make_corpus(pipeline, tools, work / "corpus", args.quick)
    if corpus is None:
        print(f"{pipeline}: left out: {why}", flush=True)
        return
    for split in ["unprocessed", *representations(pipeline)]:
        load = [tools / "presto-load", "-q", "--format", "null"]
        if split == "unprocessed":
            load += ["-p", pipeline, *OPTIONS.get(pipeline, []), corpus]
        else:
            load += store(pipeline, split, tools, corpus, work / split)
        report(f"{pipeline}, {split}", measure(load, loops, args, work / "stats.json"), args.output)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="where the programs are built")
    parser.add_argument("--pipeline", action="append", choices=list(SCALES), help="only this one; may be given several times")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.6, help="of a run with one thread")
    parser.add_argument("--work", default=None, help="folder for the corpora and datasets")
    parser.add_argument("--quick", action="store_true", help="see that all works")
    parser.add_argument("-o", "--output", type=argparse.FileType("a"), help="append the figures, a line of JSON each")
    args = parser.parse_args()
    if args.quick:
        args.rounds = 1
    loops = BareLoops()
    print(f"{'pipeline, stored':34}{'1 thread':>10}{'2 / 1':>10}{'hashing':>10}{'copying':>10}{'cpu 2 / 1':>10}")
    for pipeline in args.pipeline or SCALES:
        with tempfile.TemporaryDirectory(prefix="threads-", dir=args.work) as work:
            run_pipeline(pipeline, loops, args, pathlib.Path(work))


if __name__ == "__main__":
    main()
