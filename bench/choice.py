#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a sweep that predicts costs, and how good its choice is beside an exhaustive sweep.

    bench/choice.py cost                      # 5 splits x 12 codecs x 8 numbers of threads on 2,000 photos
    bench/choice.py best -p cv,mp3            # is the recommended strategy as fast as the best one?
    bench/choice.py best --work DIR           # keeps corpora and sweeps there; takes those that bench/predict.py --work DIR measured

best: one sweep recommends, as presto-sweep does by default; another one measures all strategies. The best of many that were measured
once is partly luck. So the recommended one and the best three of the exhaustive sweep are measured again, by turns in one more
sweep. Round by round, their rates have a ratio: printed are its median, between which values half of the rounds are, and whether the first sweep
had called its choice decided.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
from predict import CODECS, PIPELINES, SCALES, THREADS, make_corpus, sweep  # noqa: E402

COST_CODECS = "none,zstd:1,zstd:3,zstd:9,lz4,snappy,gzip,zlib:1,zlib:6,blosc-lz4,blosc-zstd:1,blosc-lz4+bitshuffle"
RIVALS, ROUNDS = 3, 31


def presto_sweep(options, name, out, *arguments):
    settings = [part for setting in PIPELINES[name][1] for part in ("--set", setting)]
    command = [options.tools / "presto-sweep", "-q", "-p", name, *settings, "--force", "-o", out, *arguments]
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nexit {done.returncode}: {done.stderr}")
    return json.loads((out / "results.json").read_text())


def cost(options, work):
    photos = work / "photos-2000"
    if not photos.exists():
        subprocess.run([options.tools / "presto-make-photos", "-n", "2000", "-o", photos], check=True, stdout=subprocess.DEVNULL)
    start = time.monotonic()
    results = presto_sweep(options, "cv", work / "cost", "--codecs", COST_CODECS, "--threads", "1,2,3,4,5,6,7,8", photos)
    measured = sum(result["measured"] for result in results["results"])
    print(f"{len(results['results'])} strategies of {results['source']['samples']} photos in {time.monotonic() - start:.0f} s, "
          f"{measured} of them measured")
    print(results["recommendation"]["reason"])


def key(strategy):
    return strategy["split"], strategy["codec"], strategy["threads"]


def text(strategy):
    return f"{strategy[0]}, {strategy[1] or '-'}, {strategy[2]} thr"


def again(options, name, corpus, work, strategies):
    """Rates of these strategies in each round, measured by turns. The sweep has more, where these don't make a rectangle."""
    splits, codecs, threads = (sorted({s[i] for s in strategies if s[i] is not None}) for i in range(3))
    results = presto_sweep(options, name, work / f"{name}-again", "--measure", "--splits", ",".join(splits), "--codecs",
                           ",".join(codecs) or "none", "--threads", ",".join(map(str, threads)), "--runs", str(ROUNDS), "--decide-time", "0",
                           "--samples", "0", corpus)
    return {key(r): [run["samples_per_s"] for run in r["cold"]["runs"]] for r in results["results"] if r["status"] == "ok"}


def best(options, work):
    print(f"{'':9}  {'recommended':34}  {'best of the exhaustive sweep':34}  ratio")
    for name in options.pipelines.split(","):
        corpus = make_corpus(name, work)
        default = presto_sweep(options, name, work / f"{name}-default", "--codecs", CODECS, "--threads", THREADS, "--samples", "0",
                               corpus)
        exhaustive = sweep(options, name, corpus, work / f"{name}-measured-0", "--measure")
        chosen = key(default["recommendation"])
        ok = [r for r in exhaustive["results"] if r["status"] == "ok"]
        first = [key(r) for r in sorted(ok, key=lambda r: -r["cold_samples_per_s"])[:RIVALS]]
        rates = again(options, name, corpus, work, {chosen, *first})
        winner = max(first, key=lambda strategy: statistics.median(rates[strategy]))
        low, middle, high = statistics.quantiles([a / b for a, b in zip(rates[chosen], rates[winner])], n=4)
        sure = "decided" if default["confidence"]["is_decided"] else "undecided"
        print(f"{name:9}  {text(chosen):34}  {text(winner):34}  {middle:.3f} ({low:.2f} to {high:.2f})  {sure}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("cost", "best"))
    parser.add_argument("-p", "--pipelines", default=",".join(SCALES), help="for best")
    parser.set_defaults(codecs=CODECS, threads=THREADS, runs="3", storage=None)  # for sweep of predict.py
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build" / "release" / "tools", help="folder of the programs")
    parser.add_argument("--work", type=pathlib.Path, help="folder for corpora and sweeps, kept [default: a temporary one]")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or pathlib.Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        (cost if options.what == "cost" else best)(options, work)


if __name__ == "__main__":
    main()
