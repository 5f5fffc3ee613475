# SPDX-License-Identifier: Apache-2.0
"""The picture of docs/performance.md and README.md: the rate of each peer on each workload, as a share of Presto's."""
import statistics

import matplotlib

matplotlib.use("agg")
from matplotlib import pyplot, ticker  # noqa: E402

from common import WORKLOADS  # noqa: E402
from page import BARE  # noqa: E402

# Colours that the colour-blind tell apart (Okabe and Ito), and a shape each.
LOOKS = {"tf": ("#D55E00", "o"), "torch": ("#CC79A7", "s"), "grain": ("#009E73", "^"), "wds": ("#56B4E9", "D"), "mds": ("#E69F00", "v"),
         "litdata": ("#0072B2", "P"), "dali": ("#8A8A00", "X"), "ffcv": ("#56B4E9", "h"), BARE: ("#999999", "|")}


def share(figures, workload, peer):
    """Of Presto's rate, the median over the rounds; None if it was not measured."""
    ratios = figures.ratios(workload, peer, "clock")
    return 1 / statistics.median(ratios) if ratios else None


def draw(figures, path):
    workloads = figures.workloads()
    figure, axes = pyplot.subplots(figsize=(9, 0.9 + 0.34 * len(workloads)), layout="constrained")
    rows = range(len(workloads))
    axes.axvline(1, color="black", linewidth=2, label="Presto", zorder=1)
    for peer, (colour, marker) in LOOKS.items():
        points = [(share(figures, workload, peer), row) for workload, row in zip(workloads, rows)]
        points = [point for point in points if point[0] is not None]
        if points:
            axes.scatter(*zip(*points), color=colour, marker=marker, s=120 if peer == BARE else 42, label=figures.peers[peer], zorder=2)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_yticks(list(rows), [WORKLOADS[workload].what for workload in workloads])
    axes.invert_yaxis()
    axes.grid(axis="x", color="#dddddd", zorder=0)
    axes.grid(axis="y", color="#eeeeee", linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("samples a second, as a share of Presto's (logarithmic): further left is slower")
    figure.legend(loc="outside upper center", ncols=9, frameon=False, fontsize=7.5, handletextpad=0.4, columnspacing=0.8)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
