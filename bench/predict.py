#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far presto-sweep's predictions are from what is measured: over the seven pipelines of the paper, each swept twice.

    bench/predict.py                          # corpora of tests/corpora/make; about half an hour on idle processors
    bench/predict.py -p cv,nlp --codecs none,zstd:1,gzip --runs 5
    bench/predict.py --json errors.json

For each pipeline, one sweep predicts; it runs the anchors and a few strategies, as it does by default. Another sweep of the same
samples measures all strategies. Compared are the predictions that the first one publishes with the figures of the second one: storage, time
of preparation, and the rates of cold and cached epochs, but for those of the anchors, which are measured by both. The last columns have no
predictions: "run again" compares the rates of those that were run in both sweeps, the anchors among them, which is how well the machine
repeats a measurement. --rounds R makes R pairs of sweeps, the pipelines in turns, and compares the median prediction with the median of all
runs, so that a slow phase of the machine does not count as an error of the model; then "measured again" compares the rates of all
strategies in the last sweep that measures with those of the sweeps before.
With --work DIR what was swept before is kept, and more rounds are added to it.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "corpora"))
from pipelines import PIPELINES  # noqa: E402

# About as many samples as presto-sweep takes by default, or fewer where they are large.
SCALES = {"cv": 0.34, "cv2-jpg": 0.35, "cv2-png": 0.75, "nlp": 0.34, "nilm": 0.85, "mp3": 0.67, "flac": 2}
CODECS, THREADS = "none,zstd:1,lz4,snappy,gzip", "1,2"


def rates(result, state):
    """Of all runs."""
    return [run["samples_per_s"] for run in result[state]["runs"]]


def foretold(result, state):
    """Nothing of an anchor: its rates are what the model rests on."""
    is_anchor = result["measured"] and result["error"] is None
    return None if is_anchor else result[f"predicted_{state}_samples_per_s"]


FIGURES = {
    "cold": (lambda r: foretold(r, "cold"), lambda r: rates(r, "cold")),
    "cached": (lambda r: foretold(r, "cached"), lambda r: rates(r, "cached")),
    "storage": (lambda r: r["predicted_storage_bytes"], lambda r: r["total_stored_bytes"]),
    "preparation": (lambda r: r["predicted_preparation_s"], lambda r: r["total_preparation_s"]),
}
REPEATED = {
    f"{state} again": (lambda r, state=state: rates(r, state) if r["measured"] else None,
                       lambda r, state=state: rates(r, state)) for state in ("cold", "cached")
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-p", "--pipelines", default=",".join(SCALES), help="which of them")
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build" / "release" / "tools", help="folder of the programs")
    parser.add_argument("--work", type=pathlib.Path, help="folder for corpora and sweeps, kept [default: a temporary one]")
    parser.add_argument("--codecs", default=CODECS)
    parser.add_argument("--threads", default=THREADS)
    parser.add_argument("--runs", default="3", help="of each strategy")
    parser.add_argument("--rounds", type=int, default=1, help="pairs of sweeps")
    parser.add_argument("--storage", help="play it, as presto-sweep does")
    parser.add_argument("--json", type=pathlib.Path, help="write all errors into this file")
    return parser.parse_args()


def make_corpus(name, folder):
    target = folder / name
    if not target.exists():
        subprocess.run([ROOT / "tests" / "corpora" / "make", name, "--scale", str(SCALES[name]), "-o", target], check=True,
                       stdout=subprocess.DEVNULL)
    return target


def sweep(options, name, corpus, out, *mode):
    if (out / "results.json").exists():
        return json.loads((out / "results.json").read_text())
    settings = [part for setting in PIPELINES[name][1] for part in ("--set", setting)]
    storage = ["--storage", options.storage] if options.storage else []
    command = [options.tools / "presto-sweep", "-q", "-p", name, *settings, "--samples", "0", "--codecs", options.codecs,
               "--threads", options.threads, "--runs", options.runs, "--decide-time", "0", *mode, *storage, "--force", "-o", out, corpus]
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nexit {done.returncode}: {done.stderr}")
    return json.loads((out / "results.json").read_text())


def key(result):
    return result["stored"], result["codec"], result["threads"]


def medians(sweeps, value):
    """By strategy, the median of a figure over several sweeps: of all runs, where each has one."""
    values = {}
    for results in sweeps:
        for result in results["results"]:
            if result["status"] == "ok" and (found := value(result)) is not None:
                values.setdefault(key(result), []).extend(found if isinstance(found, list) else [found])
    return {k: statistics.median(v) for k, v in values.items()}


def compare(predicted, measured):
    """Errors by figure: {strategy: predicted / measured - 1}."""
    errors = {}
    for figure, (said, was) in (FIGURES | REPEATED).items():
        a, b = medians(predicted, said), medians(measured, was)
        errors[figure] = {k: a[k] / b[k] - 1 for k in a if k in b and b[k] > 0}
    return errors


def measured_again(measured):
    """How far the rates of the last sweep are from the medians of those before."""
    found = []
    for state in ("cold", "cached") if len(measured) > 1 else ():
        before, last = (medians(sweeps, FIGURES[state][1]) for sweeps in (measured[:-1], measured[-1:]))
        found += [last[k] / before[k] - 1 for k in before if k in last and before[k] > 0]
    return found


def summary(errors):
    if not errors:
        return "      -       "
    worst = max(errors, key=abs)
    return f"{statistics.median(map(abs, errors)):6.1%} {worst:+7.1%}"


def print_line(name, errors, again):
    parts = [summary(list(errors[figure].values())) for figure in FIGURES]
    repeated = [e for figure in REPEATED for e in errors[figure].values()]
    print(f"{name:9}", *parts, summary(repeated), summary(again), sep="  ", flush=True)


def title():
    print(f"{'':9}", *(f"{title:14}" for title in (*FIGURES, "run again", "measured again")), sep="  ")


def all_pairs(options, names, work):
    """By pipeline, the sweeps that predict, and those that measure."""
    pairs = {name: ([], []) for name in names}
    for number in range(options.rounds):
        title()
        for name in names:
            corpus = make_corpus(name, work)
            predicted, measured = pairs[name]
            predicted.append(sweep(options, name, corpus, work / f"{name}-predicted-{number}", "--predict"))
            measured.append(sweep(options, name, corpus, work / f"{name}-measured-{number}", "--measure"))
            print_line(name, compare(predicted, measured), measured_again(measured))
    return pairs


def print_worst(errors):
    rates = [(abs(e), e, figure, k) for figure in ("cold", "cached") for k, e in errors[figure].items()]
    print("worst:")
    for _, error, figure, strategy in sorted(rates, key=lambda entry: -entry[0])[:12]:
        repeated = errors[f"{figure} again"].get(strategy)
        again = "" if repeated is None else f"  (run again: {repeated:+.1%})"
        print(f"  {error:+7.1%} {figure:6} {' '.join(str(part) for part in strategy)}{again}")


def main():
    options = parse_arguments()
    names = options.pipelines.split(",")
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or pathlib.Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        print("median and worst error of predictions; run again: difference of the rates of what both sweeps ran; "
              "measured again: of the last sweep that measures and those before")
        pairs = all_pairs(options, names, work)
    errors = {figure: {} for figure in FIGURES | REPEATED}
    again = []
    for name in names:
        again += measured_again(pairs[name][1])
        for figure, found in compare(*pairs[name]).items():
            errors[figure].update({(name, *k): e for k, e in found.items()})
    print_line("all", errors, again)
    print_worst(errors)
    if options.json:
        options.json.write_text(json.dumps({figure: [[*map(str, k), e] for k, e in found.items()]
                                            for figure, found in errors.items()}, indent=1))


if __name__ == "__main__":
    main()
