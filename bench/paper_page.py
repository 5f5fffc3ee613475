# SPDX-License-Identifier: Apache-2.0
"""The page docs/paper.md: the paper's figures beside those that bench/paper has measured. A dash is a figure that is not known."""
import json
import pathlib
import re
import statistics

ROOT = pathlib.Path(__file__).resolve().parent.parent
THEIRS = json.loads((ROOT / "bench" / "paper_figures.json").read_text())
CORES = 8  # theirs
THREADS = (1, 2, 4, CORES)
SHUFFLES = ("none", "buffer:1000", "full")
PLACES = {"grey", "shuffles", "sizes", "codecs"}  # in the page, each of a part of the figures; the others are of "pipelines"


# ---- text ----

def number(value):
    if value is None:
        return "-"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def times(value):
    return "-" if value is None else f"{number(value)}x"


def mega(value):
    return "-" if value is None else f"{value / 1e6:.3f}"


def percent(value):
    return "-" if value is None else f"{100 * value:+.0f} %"


def ratio(a, b):
    return a / b if a is not None and b else None


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"] + ["| " + " | ".join(row) + " |" for row in rows])


# ---- figures ----

def theirs_of(name, split):
    """Bytes of a sample, samples a second, and the latter as text."""
    figure = THEIRS["pipelines"][name]["representations"][split]
    mark = "~" if figure.get("approximate") else "< " if figure.get("below") else ""
    return figure["bytes"] / THEIRS["pipelines"][name]["samples"], figure["rate"], mark + number(figure["rate"])


def predicted(row, threads=CORES, codec="none"):
    return row.get("rates", {}).get(codec, {}).get(str(threads))


def swept(figures):
    """The pipelines that presto-sweep was asked about."""
    return {name: rows for name, rows in figures["pipelines"].items() if all("rates" in row for row in rows.values())}


def best_of(values):
    return max(values, key=values.get)


def best_split(rows):
    return best_of({split: predicted(row) for split, row in rows.items()})


def errors_of(errors):
    if not errors:
        return "none"
    return f"{len(errors)}; median {100 * statistics.median(map(abs, errors)):.1f} %, worst {100 * max(errors, key=abs):+.0f} %"


# ---- the parts of the page ----

def about(figures):
    is_whole = PLACES <= set(figures) and set(swept(figures)) == set(THEIRS["pipelines"])
    words = [f"Measured on {figures['date']} on {figures['machine']}, {figures['cpus']} CPUs" +
             (f", in {figures['elapsed_s'] / 60:.0f} minutes. Theirs takes {THEIRS['days']} days." if is_whole else ".")]
    if figures.get("quick"):
        words.append("**These figures mean nothing**: `--quick` only sees that all works, with tiny corpora.")
    if max(figures["load"], figures["load_after"]) > figures["cpus"] + 1:
        words.append(f"**The machine was busy with other work**: its load was {figures['load']:.0f} at the start and {figures['load_after']:.0f} at the "
                     "end. `bench/paper` on an idle machine writes better figures.")
    if not is_whole:
        words.append("**Not all of it is measured**: a dash stands for a figure that is missing.")
    return "\n".join(words)


def representations(figures):
    rows, errors = [], {"2": [], str(CORES): []}
    for name, splits in figures["pipelines"].items():
        for split, row in splits.items():
            size, _, rate = theirs_of(name, split)
            cells = [name, split, mega(size), mega(row["stored"]), rate, number(predicted(row)), row.get("limit", "-")]
            for threads, list_of in errors.items():
                said, played = predicted(row, threads), row["played"].get(threads)
                error = ratio(said, played) - 1 if said and played else None
                list_of += [error] if error is not None else []
                cells += [number(said)] if threads == "2" else []
                cells += [number(played), percent(error)]
            rows.append(cells)
    head = ["pipeline", "representation", "theirs, MB", "ours, MB", "theirs, samples/s", "ours, samples/s", "limit", "2 threads: by the model",
            "2 threads: played", "2 threads: error", "8 threads: played", "8 threads: error"]
    return (table(head, rows) + f"\n\nErrors with 2 threads: {errors_of(errors['2'])}. With 8 threads: {errors_of(errors[str(CORES)])}.")


def winners(figures):
    rows, same = [], 0
    for name, splits in swept(figures).items():
        theirs, best = THEIRS["pipelines"][name]["best"], best_split(splits)
        same += best == theirs
        _, rate, text = theirs_of(name, theirs)
        rows.append([name, theirs, text, number(predicted(splits[theirs])), best, number(predicted(splits[best])),
                     times(predicted(splits[best]) / rate), "the same" if best == theirs else "moved"])
    return (f"The same in {same} of {len(rows)} pipelines.\n\n" +
            table(["pipeline", "their best", "theirs, samples/s", "ours of the same", "our best", "samples/s", "ours / theirs", "moved?"], rows))


def thread_s(rate):
    """Of one of eight threads, for a sample."""
    return CORES / rate


def loading_s(name, split):
    """Theirs, for a byte: what the last representation takes, as few steps are left."""
    size, rate, _ = theirs_of(name, split)
    return thread_s(rate) / size


def step_costs(name, splits):
    """What is between two representations: (names of the steps, theirs in seconds or None, ours in seconds)."""
    listed = [split for split in splits if split != "unprocessed"]
    byte_s = loading_s(name, listed[-1])
    for before, after in zip(listed, listed[1:]):
        (size, rate, _), (next_size, next_rate, _) = theirs_of(name, before), theirs_of(name, after)
        theirs_s = thread_s(rate) - thread_s(next_rate) - byte_s * (size - next_size)
        is_known = theirs_s > 0 and not THEIRS["pipelines"][name]["representations"][before].get("below")
        here = {step: s for step, s in splits[before]["steps"].items() if step not in splits[after]["steps"]}
        yield ", ".join(here), theirs_s if is_known else None, sum(here.values())


def steps(figures):
    rows = []
    for name, splits in swept(figures).items():
        last = list(splits)[-1]
        theirs, ours = loading_s(name, last), thread_s(predicted(splits[last])) / splits[last]["stored"]
        rows.append([name, "loading a MB", number(theirs * 1e9), number(ours * 1e9), times(theirs / ours)])
        for words, theirs, ours in step_costs(name, splits):
            rows.append([name, words, number(theirs and theirs * 1e3), number(ours * 1e3), times(theirs and ratio(theirs, ours))])
    return table(["pipeline", "step", "theirs, ms a sample and thread", "ours, ms", "times cheaper"], rows)


def moved_one(name, splits, theirs, best, bytes_per_s):
    def costs(split):
        row = splits[split]
        return (f"`{split}` takes a thread of theirs {number(1e3 * thread_s(theirs_of(name, split)[1]))} ms a sample; one of ours computes "
                f"{number(1e3 * row['computing_s'])} ms and waits {number(1e3 * row['waiting_s'])} ms for storage")

    cheaper = [f"`{words}` takes {number(1e3 * b)} instead of {number(1e3 * a)} ms ({times(a / b)} cheaper)" for words, a, b in step_costs(name, splits)
               if a and b]
    most = [f"{number(bytes_per_s / splits[split]['stored'])} a second of `{split}`" for split in (theirs, best)]
    return (f"**{name}: from `{theirs}` to `{best}`.** {costs(theirs)}. {costs(best)}. {'; '.join(cheaper)}. "
            f"The storage gives {number(bytes_per_s / 1e6)} MB/s however fast the steps are: {most[0]}, {most[1]}.")


def moved(figures):
    words = []
    for name, splits in swept(figures).items():
        theirs, best = THEIRS["pipelines"][name]["best"], best_split(splits)
        if best != theirs:
            words.append(moved_one(name, splits, theirs, best, figures["storage"]["bytes_per_s"]))
    return "\n\n".join(words) or "None moved."


def normalized(values, higher_is_better):
    low, high = min(values.values()), max(values.values())
    if high == low:
        return dict.fromkeys(values, 1.0)
    return {k: (v - low if higher_is_better else high - v) / (high - low) for k, v in values.items()}


def scores(metrics, weights):
    """f = w_p |p| + w_s |s| + w_t |t|, as in presto-sweep: metrics is {representation: (preparation, bytes, rate)}."""
    parts = [normalized({k: v[i] for k, v in metrics.items()}, i == 2) for i in range(3)]
    return {k: sum(w * part[k] for w, part in zip(weights, parts)) for k in metrics}


def scored_theirs(name, weights):
    """The best one by their figures, which have no time of preparation."""
    if weights[0] > 0:
        return "-"
    splits = THEIRS["pipelines"][name]["representations"]
    return best_of(scores({split: (0, figure["bytes"], figure["rate"]) for split, figure in splits.items()}, weights))


def score_table(figures):
    asked, rows = ((0, 0, 1), (1, 0, 1), (0, 1, 1), (1, 1, 1)), []
    for name, splits in swept(figures).items():
        ours = {split: (row["preparation_s"], row["stored"], predicted(row)) for split, row in splits.items()}
        rows.append([name, *(cell for weights in asked for cell in (scored_theirs(name, weights), best_of(scores(ours, weights))))])
    names = [",".join(map(str, weights)) for weights in asked]
    return table(["pipeline", *(f"{weights}: {who}" for weights in names for who in ("theirs", "ours"))], rows)


def threads(figures):
    rows, theirs = [], THEIRS["threads"]
    for name, splits in swept(figures).items():
        for split in dict.fromkeys(("unprocessed", THEIRS["pipelines"][name]["best"], best_split(splits))):
            rates = [predicted(splits[split], n) for n in THREADS]
            rows.append([name, split, theirs.get(name, theirs.get(f"{name} {split}", "-")), times(rates[-1] / rates[0]), *map(number, rates),
                         splits[split]["limit"]])
    return table(["pipeline", "representation", "8 / 1: theirs", "8 / 1: ours", "1 thread, samples/s", "2", "4", "8", "limit of 8"], rows)


def sizes(figures):
    rows, last = [], list(figures["sizes"].values())[-1]
    for size, row in figures["sizes"].items():
        theirs, (one, two) = THEIRS["sizes"].get(size, {}), (row["1"], row["2"])
        rows.append([f"{int(size) / 1e6:.2f}", theirs.get("time", "-"), times(last["1"]["bytes_per_s"] / one["bytes_per_s"]),
                     theirs.get("threads", "-"), times(two["bytes_per_s"] / one["bytes_per_s"]), theirs.get("switches", "-"), number(two["switches"]),
                     number(one["bytes_per_s"] / 1e6), number(two["bytes_per_s"] / 1e6), number(one["cpu_s"] * 1e6)])
    return table(["sample, MB", "time against 20.48 MB: theirs", "ours, 1 thread", "8 threads / 1: theirs", "2 threads / 1: ours",
                  "context switches a second: theirs", "ours, 2 threads", "ours: MB/s, 1 thread", "2 threads", "CPU us a sample"], rows)


def caches(figures):
    rows = []
    for name, splits in figures["pipelines"].items():
        split, row = list(splits.items())[-1]
        theirs, played = THEIRS["caches"].get(name, (None, None)), row["played"].get("2")
        rows.append([name, split, mega(row["stored"]), times(theirs[0]), times(ratio(row["cached"], played)), times(theirs[1]),
                     times(ratio(row["memory"], played)), number(played), number(row["cached"]), number(row["memory"])])
    return table(["pipeline", "representation", "MB a sample", "page cache / none: theirs", "ours", "application cache / none: theirs", "ours",
                  "ours: none, samples/s", "page cache", "`--cache memory`"], rows)


def codecs(figures):
    rows, errors = [], [error for splits in figures["pipelines"].values() for row in splits.values() for error in row.get("errors", [])]
    for case, row in figures["codecs"].items():
        plain, (name, split) = row["none"], case.split()
        swept_row = figures["pipelines"].get(name, {}).get(split, {})
        for codec, figure in row.items():
            if codec == "none":
                continue
            theirs = THEIRS["codecs"].get(case, {}) if "whole" in codec else {}
            rows.append([case, codec, theirs.get("saved", "-"), f"{100 * (1 - figure['bytes'] / plain['bytes']):.0f} %", theirs.get("ratio", "-"),
                         times(ratio(predicted(swept_row, codec=codec), predicted(swept_row))), times(figure["rate"] / plain["rate"]),
                         number(plain["rate"]), number(figure["rate"]), times(figure["write_s"] / plain["write_s"])])
    head = ["representation", "codec", "saved: theirs", "ours", "with / without: theirs", "ours, 8 threads by the model", "ours, 2 threads played",
            "without, samples/s", "with, samples/s", "time of writing"]
    return table(head, rows) + (
        "\n\nThe sweeps also ran some of what they predicted: strategies with a codec, and those with 4 and 8 threads. Errors of the "
        f"predictions, for an epoch of the sample: {errors_of(errors)}.\nThe largest are of 4 and 8 threads and few samples. What starts such "
        "an epoch is known for 1 and 2 threads only; behind it, the rates above show how near the model comes.")


def grey(figures):
    pipelines = {"cv": swept(figures).get("cv", {})} | figures["grey"]
    rows = [[name, split, mega(row["stored"]), number(predicted(row)), row["limit"]] for name, splits in pipelines.items()
            for split, row in splits.items() if split in ("greyscaled", "resized", "pixel-centered")]
    best = {name: max((predicted(row) for row in splits.values()), default=None) for name, splits in pipelines.items()}
    resized = {name: predicted(splits.get("resized", {})) for name, splits in pipelines.items()}
    theirs = THEIRS["greyscale"]
    with_grey = max(best[name] for name in figures["grey"])
    compared = [["theirs", number(theirs["best_without"]), number(theirs["best_with"]), times(theirs["best_with"] / theirs["best_without"])],
                ["ours, the best ones", number(best["cv"]), number(with_grey), times(ratio(with_grey, best["cv"]))],
                ["ours, `resized`", number(resized["cv"]), number(resized["cv-grey-early"]), times(ratio(resized["cv-grey-early"], resized["cv"]))]]
    return (table(["rates", "without, samples/s", "with greyscale", "with / without"], compared) + "\n\n" +
            table(["pipeline", "representation", "MB a sample", "ours, samples/s", "limit"], rows))


def shuffles(figures):
    rows = [[split, mega(row["bytes"]), THEIRS["shuffles"], *(number(row[s]["cpu_s"] * 1e6) for s in SHUFFLES), *(number(row[s].get("rate")) for s in SHUFFLES)]
            for split, row in figures["shuffles"].items()]
    return table(["representation", "MB a sample", "a buffer costs a sample: theirs", *(f"{s}: CPU us a sample" for s in SHUFFLES),
                  *(f"{s}: samples/s" for s in SHUFFLES)], rows)


TABLES = {"about": about, "representations": representations, "winners": winners, "steps": steps, "moved": moved, "scores": score_table,
          "threads": threads, "sizes": sizes, "caches": caches, "codecs": codecs, "grey": grey, "shuffles": shuffles}
OF_ANY = {"about", "representations", "caches"}  # they have dashes where presto-sweep was not asked


def write(figures, output):
    """The page."""
    for name, theirs in THEIRS["pipelines"].items():
        assert scored_theirs(name, (0, 0, 1)) == theirs["best"], f"{name}: the score's best one is not the paper's"
    template = (ROOT / "bench" / "paper.md.in").read_text()

    def fill(match):
        place = match.group(1)
        is_known = place in figures if place in PLACES else place in OF_ANY or swept(figures)
        is_known = is_known and (place != "moved" or "storage" in figures)  # which it is explained by
        return TABLES[place](figures) if is_known else "Not measured yet."

    output.write_text(re.sub(r"^\{\{(\w+)\}\}$", fill, template, flags=re.MULTILINE))
