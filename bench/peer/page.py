# SPDX-License-Identifier: Apache-2.0
"""The page that bench/peers writes, and the short form in README.md, from its figures.

In the template, a line `{{...}}` becomes: `{{run}}` the commands, dates and machine; `{{versions}}`; `{{refused}}` what was not measured
and why; `{{rates}}`, `{{ratios clock}}`, `{{ratios cpu}}`, `{{memory}}`, `{{first}}` and `{{stored}}` tables of workloads and peers; `{{behind}}`
every place where Presto is not ahead. `{{why WORKLOAD}}` begins a reason, up to the next empty line: it is printed if Presto is behind a peer
there. write() tells where one is missing.
"""
import json
import re
import statistics

from common import WORKLOADS

AHEAD = 1.0
BARE = "bare"


def figure(values):
    """Median and spread, as in docs/bench.md."""
    values = sorted(values)
    median = statistics.median(values)
    if len(values) < 4:
        return median, (values[-1] - values[0]) / 2 / median if median else 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return median, (high - low) / 2 / median if median else 0.0


def number(value):
    """With three digits."""
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 100 else f"{value:.3g}"


class Figures:
    def __init__(self, file, peers):
        self.peers, self.runs, self.versions, self.refused, self.turns = peers, [], {}, {}, {}
        for line in file.read_text().splitlines():
            note = json.loads(line)
            kind = note.pop("kind")
            if kind == "run":
                self.runs.append(note)
            elif kind == "versions":
                self.versions[note["peer"]] = note["versions"]
            elif kind == "refused":
                self.refused[note["workload"], note["peer"]] = note["reason"]
            else:
                self.turns.setdefault((note["workload"], note["peer"]), {})[note["round"]] = note

    def workloads(self):
        return [name for name in WORKLOADS if (name, "presto") in self.turns]

    def names(self):
        return [name for name in self.peers if any(peer == name for _, peer in self.turns)]

    def rounds(self, workload, peer):
        """Those that count: all but the first, which warms up."""
        if (workload, peer) in self.refused:
            return {}
        return {at: turn for at, turn in self.turns.get((workload, peer), {}).items() if at > 0}

    def of(self, workload, peer, key):
        return [turn[key] for turn in self.rounds(workload, peer).values()]

    def ratios(self, workload, peer, by):
        """Presto's advantage in each round, by the clock or by processor time."""
        ours, theirs = self.rounds(workload, "presto"), self.rounds(workload, peer)
        shared = sorted(ours.keys() & theirs.keys())
        if by == "clock":
            return [ours[at]["rate"] / theirs[at]["rate"] for at in shared]
        return [theirs[at]["busy"] / max(ours[at]["busy"], 1e-9) for at in shared]

    def behind(self):
        """(workload, peer, by, median) where Presto is not ahead of a peer. The bare loop is no peer."""
        found = []
        for workload in self.workloads():
            for peer in self.names():
                for by in ("clock", "cpu") if peer not in ("presto", BARE) else ():
                    ratios = self.ratios(workload, peer, by)
                    if ratios and statistics.median(ratios) < AHEAD:
                        found.append((workload, peer, by, statistics.median(ratios)))
        return found


def table(head, rows):
    lines = [f"| {' | '.join(head)} |", f"| --- |{' ---: |' * (len(head) - 1)}"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def rates(figures):
    names = figures.names()
    rows = []
    for workload in figures.workloads():
        row = [WORKLOADS[workload].what]
        for name in names:
            found = figures.of(workload, name, "rate")
            median, spread = figure(found) if found else (0, 0)
            row.append(f"{number(median)} ± {100 * spread:.0f} %" if found else "")
        rows.append(row)
    return table(["samples a second", *(figures.peers[name] for name in names)], rows)


def ratios(figures, by):
    names = [name for name in figures.names() if name != "presto"]
    rows = []
    for workload in figures.workloads():
        row = [WORKLOADS[workload].what]
        for name in names:
            found = figures.ratios(workload, name, by)
            median, spread = figure(found) if found else (0, 0)
            row.append(f"{median:.2f} ± {100 * spread:.0f} %" if found else "")
        rows.append(row)
    return table(["Presto's advantage over", *(figures.peers[name] for name in names)], rows)


def plain(figures, what, read):
    names = figures.names()
    rows = [[WORKLOADS[workload].what, *(read(workload, name) for name in names)] for workload in figures.workloads()]
    return table([what, *(figures.peers[name] for name in names)], rows)


def memory(figures):
    def read(workload, name):
        turn = figures.turns.get((workload, name), {}).get(0)
        return "" if turn is None or (workload, name) in figures.refused else number(turn["peak"] / 1e6)

    return plain(figures, "MB", read)


def first(figures):
    def read(workload, name):
        found = figures.of(workload, name, "first") if WORKLOADS[workload].mode != "write" else []
        return number(1000 * statistics.median(found)) if found else ""

    return plain(figures, "ms", read)


def versions(figures):
    every = {package: version for found in figures.versions.values() for package, version in found.items()}
    return ", ".join(f"{package} {version}" for package, version in sorted(every.items())) + "."


def refused(figures):
    lines = {}
    for (workload, peer), reason in figures.refused.items():
        lines.setdefault((peer, reason), []).append(workload)
    return "\n".join(f"- {figures.peers[peer]}, {', '.join(names)}: {reason}" for (peer, reason), names in lines.items()) or "Nothing."


def behind(figures):
    found = figures.behind()
    if not found:
        return "Presto was ahead of every peer on every workload, by the clock and by processor time."
    words = {"clock": "by the clock", "cpu": "by processor time"}
    return "\n".join(f"- {WORKLOADS[workload].what}, {figures.peers[peer]}, {words[by]}: {median:.2f}"
                     for workload, peer, by, median in found)


def short(figures):
    """README's table: Presto and the best of the peers, which is the one over which its advantage is least."""
    rows = []
    for workload in figures.workloads():
        found = {name: statistics.median(figures.ratios(workload, name, "clock")) for name in figures.names()
                 if name not in ("presto", BARE) and figures.ratios(workload, name, "clock")}
        if not found:
            continue
        best = min(found, key=found.get)
        ours, theirs = (number(statistics.median(figures.of(workload, name, "rate"))) for name in ("presto", best))
        cpu = statistics.median(figures.ratios(workload, best, "cpu"))
        rows.append([WORKLOADS[workload].what, ours, f"{figures.peers[best]}, {theirs}", f"{found[best]:.1f}", f"{cpu:.1f}"])
    return table(["workload", "Presto, samples/s", "best of the others", "Presto is times as fast", "and needs 1 / n of the CPU time"],
                 rows)


def write(template, figures):
    """(the page, the workloads where Presto is behind without a reason)."""
    tables = {"run": lambda: "\n".join(f"- `{run['command']}`, {run['date']}, {run['machine']}" for run in figures.runs),
              "versions": lambda: versions(figures), "refused": lambda: refused(figures), "rates": lambda: rates(figures),
              "ratios clock": lambda: ratios(figures, "clock"), "ratios cpu": lambda: ratios(figures, "cpu"),
              "memory": lambda: memory(figures), "first": lambda: first(figures), "behind": lambda: behind(figures)}
    needed, given = {workload for workload, *_ in figures.behind()}, set()
    out = []
    for paragraph in re.split(r"\n\n", template):
        why = re.match(r"\{\{why ([\w-]+(?:, [\w-]+)*)\}\}\s*", paragraph)
        if why:
            about = set(why.group(1).split(", "))
            given |= about
            if about & needed:
                out.append(paragraph[why.end():])
            continue
        out.append(re.sub(r"\{\{([^}]+)\}\}", lambda found: tables[found.group(1)](), paragraph))
    return "\n\n".join(out), sorted(needed - given)


def into_readme(text, figures):
    begin, end = "<!-- bench/peers -->\n", "<!-- /bench/peers -->"
    head, _, rest = text.partition(begin)
    if not rest or end not in rest:
        raise ValueError("README.md has no markers")
    tail = rest[rest.index(end):]
    said = ("Beside other loaders, into Python, on one machine ([docs/performance.md](docs/performance.md) has all figures, and says\n"
            "where Presto is not ahead):\n\n"
            "![Samples a second of tf.data, torch's DataLoader, Grain, WebDataset, MDS, LitData, DALI and FFCV as a share of Presto's, for each\n"
            "workload](docs/performance.png)\n")
    below = "Ratios are taken within a round, so they are not the quotients of the medians.\n"
    return f"{head}{begin}{said}\n{short(figures)}\n\n{below}{tail}"
