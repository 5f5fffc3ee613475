#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a sweep that predicts costs, and how good its choice is beside an exhaustive sweep.

    bench/choice.py cost                      # 5 splits x 12 codecs x 8 numbers of threads on 2,000 photos
    bench/choice.py best -p cv,mp3            # is the recommended strategy as fast as the best one?
    bench/choice.py whole --gigabytes 2       # sweeps with their defaults beside epochs of whole datasets; an hour
    bench/choice.py whole -p cv --gigabytes 0.5 --minutes 1                 # the short form: about five minutes
    bench/choice.py whole -p cv --storage object-store --stored resized --threads 1,8 --gigabytes 0.5
    bench/choice.py best --work DIR           # keeps corpora and sweeps there; takes those that bench/predict.py --work DIR measured

best: one sweep recommends, as presto-sweep does by default; another one measures all strategies. The best of many that were measured
once is partly luck. So the recommended one and the best three of the exhaustive sweep are measured again, by turns in one more
sweep. Round by round, their rates have a ratio: printed are its median, between which values half of the rounds are, and whether the first sweep
had called its choice decided.

whole: the corpus is copied until its largest stored form has --gigabytes. Each representation is stored as a whole, for one thread and for all
processors, and loaded by turns, one cold epoch each a round, until the time is over, three rounds at least. Beside it, a sweep with
presto-sweep's defaults on the same corpus says what such an epoch would be. Printed are, for each strategy, the median rate of the whole
dataset, the half of the rounds, and sweep / whole; more threads over one, both ways; the recommended over the best. At the end, over all
strategies: the median and the worst error of the sweep; and a table, as docs/sweep.md has it. --storage plays a storage for both. It is the
same each time, so that three rounds do; they are runs of a sweep whose sample is the whole.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
from predict import CODECS, PIPELINES, SCALES, THREADS, make_corpus, sweep  # noqa: E402

COST_CODECS = "none,zstd:1,zstd:3,zstd:9,lz4,snappy,gzip,zlib:1,zlib:6,blosc-lz4,blosc-zstd:1,blosc-lz4+bitshuffle"
RIVALS, ROUNDS, WHOLE_ROUNDS = 3, 31, 3


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
    return strategy["stored"], strategy["codec"], strategy["threads"]


def text(strategy):
    return f"{strategy[0]}, {strategy[1] or '-'}, {strategy[2]} thr"


def again(options, name, corpus, work, strategies):
    """Rates of these strategies in each round, measured by turns. The sweep has more, where these don't make a rectangle."""
    splits, codecs, threads = (sorted({s[i] for s in strategies if s[i] is not None}) for i in range(3))
    results = presto_sweep(options, name, work / f"{name}-again", "--measure", "--stored", ",".join(splits), "--codecs",
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


# ---- whole datasets ----


def drop(folder):
    """Its files leave the page cache, as far as they are written."""
    for path in (p for p in pathlib.Path(folder).rglob("*") if p.is_file()):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def bytes_of(folder):
    return sum(p.stat().st_size for p in pathlib.Path(folder).rglob("*") if p.is_file())


def program(options, name, *arguments):
    command = [str(options.tools / name), *map(str, arguments)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nexit {done.returncode}: {done.stderr}")


def epoch(options, name, settings, strategy, path, work):
    """Samples a second of one cold epoch."""
    stats = work / "stats.json"
    which = ["-p", name, *settings] if strategy[0] == "unprocessed" else []
    drop(path)
    program(options, "presto-load", "-q", "--format", "null", "-b", "32", "-j", strategy[2], "--stats", stats, *which, path)
    return json.loads(stats.read_text())["samples_per_s"]


def played(options, name, corpus, work, stored):
    """Samples a second of cold epochs of the whole, on a storage that is played: files are opened in each, indexes were read before."""
    results = presto_sweep(options, name, work / f"{name}-played", "--measure", *stored, "--storage", options.storage, "--codecs", "none",
                           "--threads", options.threads, "--samples", "0", "--runs", str(WHOLE_ROUNDS), "--decide-time", "0", corpus)
    return {key(r): [run["samples_per_s"] for run in r["cold"]["runs"]] for r in results["results"] if r["status"] == "ok"}


def loaded(options, name, settings, corpus, work, strategies):
    """The same, by presto-load and on the storage that is there, until the time is over."""
    paths = {s: store(options, name, settings, corpus, s, work) for s in strategies}
    rates = {s: [] for s in strategies}
    until = time.monotonic() + 60 * options.minutes
    while min(map(len, rates.values())) < WHOLE_ROUNDS or time.monotonic() < until:
        for s in strategies if len(rates[strategies[0]]) % 2 == 0 else strategies[::-1]:
            rates[s].append(epoch(options, name, settings, s, paths[s], work))
    return rates


def store(options, name, settings, corpus, strategy, work):
    if strategy[0] == "unprocessed":
        return corpus
    target = work / f"{name}-{strategy[0]}-{strategy[2]}"
    if not target.exists():
        program(options, "presto-write", "-q", "-p", name, *settings, "-u", strategy[0], "-c", "none", "-s", strategy[2], "-o", target, corpus)
    return target


def enlarge(corpus, bytes_wanted, largest, work):
    """Copies of the corpus beside each other: as many as its largest stored form needs."""
    times = max(round(bytes_wanted / max(largest, 1)), 1)
    target = work / f"{corpus.name}-x{times}"
    for i in range(times if not target.exists() else 0):
        shutil.copytree(corpus, target / f"copy-{i}")
    return target


def print_whole(name, results, rates):
    """Returns sweep / whole - 1 of each strategy, and the row of the table."""
    swept = {key(r): r["cold"]["samples_per_s"]["median"] for r in results["results"] if r["status"] == "ok"}
    middle = {s: statistics.median(found) for s, found in rates.items()}
    for strategy, found in rates.items():
        low, _, high = statistics.quantiles(found, n=4)
        print(f"{name:9}  {text(strategy):34}  {middle[strategy]:9.1f} ({low:.1f} to {high:.1f})  sweep / whole "
              f"{swept[strategy] / middle[strategy]:.3f}", flush=True)
    gains = []
    for strategy in [s for s in rates if s[2] > 1]:
        one = (*strategy[:2], 1)
        if one in rates:
            found, said = middle[strategy] / middle[one], swept[strategy] / swept[one]
            gains.append(said / found - 1)
            print(f"{name:9}  {text(strategy):34}  over one thread: whole {found:.2f}, sweep {said:.2f}", flush=True)
    chosen, best_of = key(results["recommendation"]), max(middle, key=middle.get)
    sure = "decided" if results["confidence"]["is_decided"] else "undecided"
    ratio = f"{middle[chosen] / middle[best_of]:.3f}" if chosen in middle else "was not loaded as a whole"
    print(f"{name:9}  recommended {text(chosen)}, best {text(best_of)}: {ratio}, {sure}; load {os.getloadavg()[0]:.1f}", flush=True)
    errors = [swept[strategy] / middle[strategy] - 1 for strategy in rates]
    gain = f"{max(gains, key=abs):+.1%}" if gains else "-"
    row = f"| {name} | {len(errors)} | {statistics.median(map(abs, errors)):.1%} | {max(errors, key=abs):+.1%} | {gain} | {ratio}, {sure} |"
    return errors, row


def whole(options, work):
    errors, rows = [], []
    stored = ["--stored", options.stored] if options.stored else []
    plays = ["--storage", options.storage] if options.storage else []
    for name in options.pipelines.split(","):
        settings = [part for setting in PIPELINES[name][1] for part in ("--set", setting)]
        small = presto_sweep(options, name, work / f"{name}-small", *stored, "--codecs", "none", "--threads", "1", "--runs", "1",
                             "--run-time", "0", "--decide-time", "0", "--confirm", "0", make_corpus(name, work))
        largest = max(r["total_stored_bytes"] for r in small["results"] if r["status"] == "ok")
        corpus = enlarge(make_corpus(name, work), options.gigabytes * 1e9, largest, work)
        results = presto_sweep(options, name, work / f"{name}-whole", *stored, *plays, "--codecs", "none", "--threads", options.threads,
                               corpus)
        strategies = [key(r) for r in results["results"] if r["status"] == "ok"]
        rates = (played(options, name, corpus, work, stored) if options.storage
                 else loaded(options, name, settings, corpus, work, strategies))
        found, row = print_whole(name, results, rates)
        errors += found
        rows.append(row)
    print("\n| pipeline | strategies | median error | worst | threads over one, worst | recommended / best |\n"
          "| --- | ---: | ---: | ---: | ---: | --- |", *rows, "", sep="\n")
    print(f"{len(errors)} strategies: the median error is {statistics.median(map(abs, errors)):.1%}, the worst {max(errors, key=abs):+.1%}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("cost", "best", "whole"))
    parser.add_argument("-p", "--pipelines", default=",".join(SCALES), help="for best and whole")
    parser.set_defaults(codecs=CODECS, runs="3")  # for sweep of predict.py
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build" / "release" / "tools", help="folder of the programs")
    parser.add_argument("--work", type=pathlib.Path, help="folder for corpora and sweeps, kept [default: a temporary one]")
    parser.add_argument("--gigabytes", type=float, default=2, help="of the largest stored form, for whole")
    parser.add_argument("--threads", default=THREADS, help="for whole")
    parser.add_argument("--stored", help="representations, for whole [default: all]")
    parser.add_argument("--storage", help="played in whole, as presto-sweep does")
    parser.add_argument("--minutes", type=float, default=5, help="of epochs of whole datasets, for each pipeline")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or pathlib.Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        {"cost": cost, "best": best, "whole": whole}[options.what](options, work)


if __name__ == "__main__":
    main()
