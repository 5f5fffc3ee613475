#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fit the forest of extract-text, steps/text/page/generated/extract_text_forest.c, to pages whose text is known.

    bench/text_fit.py [--blocks build/release/bench/text_blocks] [--trees N] [--check] -o FILE FOLDER...

Folders as bench/text_quality.py takes them: NAME.html and NAME.txt. A page may have NAME.json instead, with the lists `with` and
`without` of pieces that its text has and has not. A block belongs to the text if its words stand there in this order. Its weight
is its share of the page's words: that is what a mistake costs in F1. `--check` fits to three quarters of the pages first, and
prints the F1 of the others.

Needs NumPy and scikit-learn. The forest is an ensemble of small decision trees (gradient boosting): fast, and proof against
features of any scale. Fit it anew when the features change.
"""
import argparse
import bisect
import collections
import hashlib
import json
import pathlib
import re
import struct
import subprocess
import textwrap

import numpy
from sklearn.ensemble import HistGradientBoostingClassifier

WORD = re.compile(r"\w+")
ROOT = pathlib.Path(__file__).resolve().parent.parent
Page = collections.namedtuple("Page", "name features texts wanted labels")


def words(text):
    return WORD.findall(text.lower())


def read_blocks(program, folder):
    """(path, features, texts) of each page."""
    pages = sorted(folder.glob("*.html"))
    for begin in range(0, len(pages), 500):
        data = subprocess.run([program, *pages[begin:begin + 500]], stdout=subprocess.PIPE, check=True).stdout
        at = 0

        def take_span():
            nonlocal at
            (size,) = struct.unpack_from("<I", data, at)
            at += 4 + size
            return data[at - size:at]

        while at < len(data):
            path = pathlib.Path(take_span().decode())
            blocks, count = struct.unpack_from("<II", data, at)
            features = numpy.frombuffer(data, "<f4", blocks * count, at + 8).reshape(blocks, count)
            at += 8 + 4 * blocks * count
            yield path, features, [take_span().decode() for _ in range(blocks)]


def find_long(blocks, wanted):
    """For each block of four words or more: where the text has it, or None."""
    places = collections.defaultdict(list)
    for i in range(len(wanted) - 2):
        places[tuple(wanted[i:i + 3])].append(i)
    found, last = [None] * len(blocks), 0
    for number, block in enumerate(blocks):
        hits = [places.get(tuple(block[i:i + 3])) for i in range(len(block) - 2)] if len(block) > 3 else []
        known = [hit for hit in hits if hit]
        if known and len(known) >= 0.6 * len(hits):
            found[number] = min((place for place in known[0] if place >= last - 50), default=known[0][0])
            last = max(last, found[number]) if found[number] < last + 2000 else last
    return found


def label(blocks, wanted):
    """1 for blocks of the text. Short ones must stand between the long ones around them."""
    found = find_long(blocks, wanted)
    numbers = [number for number, place in enumerate(found) if place is not None]
    labels = numpy.array([place is not None for place in found], float)
    for number, block in enumerate(blocks):
        if not 0 < len(block) < 4 or not numbers:
            continue
        after = bisect.bisect(numbers, number)
        begin = found[numbers[after - 1]] if after > 0 else max(0, found[numbers[0]] - 30)
        end = found[numbers[after]] if after < len(numbers) else begin + 400
        labels[number] = any(wanted[at:at + len(block)] == block for at in range(max(0, begin - 1), min(len(wanted), end + len(block) + 1)))
    return labels


def score(page, kept):
    got = collections.Counter(word for block, keep in zip(page.texts, kept) if keep for word in block)
    common = sum((got & collections.Counter(page.wanted)).values())
    return 2 * common / (sum(got.values()) + len(page.wanted)) if common else 0.0


def rows_of_page(page):
    """Blocks with labels and weights; none if the page does not have its text."""
    if not page.wanted or score(page, page.labels > 0) < 0.8:
        return []
    size = max(len(page.wanted), 100)
    return [(f, l, min(1, len(t) / size) + 0.002) for f, l, t in zip(page.features, page.labels, page.texts)]


def rows_of_pieces(features, texts, pieces):
    have = [piece for piece in pieces.get("with", []) if len(piece) > 5]
    lack = [piece for piece in pieces.get("without", []) if len(piece) > 3]
    rows = []
    for feature, text in zip(features, texts):
        text = " ".join(text.split())
        is_in, is_out = any(piece in text for piece in have), any(piece in text for piece in lack)
        if is_in != is_out:
            rows.append((feature, float(is_in), 0.12))
    return rows


def read(program, folders):
    pages, more = [], []
    for folder in folders:
        for path, features, texts in read_blocks(program, folder):
            if path.with_suffix(".txt").exists():
                blocks, wanted = [words(text) for text in texts], words(path.with_suffix(".txt").read_text(encoding="utf-8"))
                pages.append(Page(f"{folder.name}/{path.name}", features, blocks, wanted, label(blocks, wanted)))
            elif path.with_suffix(".json").exists():
                more += rows_of_pieces(features, texts, json.loads(path.with_suffix(".json").read_text(encoding="utf-8")))
    return pages, more


def fit(pages, more, trees):
    rows = [row for page in pages for row in rows_of_page(page)]
    # Of the many blocks that are out and weigh next to nothing, a third speaks for all.
    random = numpy.random.default_rng(1)
    rows = [(f, l, w) if l or w > 0.01 else (f, l, 3 * w) for f, l, w in rows if l or w > 0.01 or random.random() < 1 / 3]
    features, labels, weights = (numpy.array(column) for column in zip(*rows, *more))
    model = HistGradientBoostingClassifier(max_iter=trees, learning_rate=0.1, max_leaf_nodes=12, l2_regularization=1, min_samples_leaf=40,
                                           early_stopping=False)
    return model.fit(features, labels, weights)


def check(pages, more, trees):
    held = {page.name for page in pages if hashlib.md5(page.name.encode()).digest()[0] % 4 == 0}
    model = fit([page for page in pages if page.name not in held], more, trees)
    scores = [score(page, model.decision_function(page.features) > -0.3) for page in pages if page.name in held and len(page.features)]
    print(f"{len(scores)} pages held out: mean F1 {numpy.mean(scores):.4f}, median {numpy.median(scores):.4f}", flush=True)


HEAD = """/* SPDX-License-Identifier: Apache-2.0 */
/* Made by bench/text_fit.py; do not edit. Boosted decision trees over the features of a block. */
#include "extract_text_internal.h"

enum { TREES = %d, SPLITS = %d };

/* Where to go on: to another split, or to leaf -1 - n. */
typedef struct tree_split {
    float threshold;
    uint8_t feature;
    int8_t if_less; /* or equal */
    int8_t if_more;
} tree_split;

/* clang-format off */
static const tree_split splits[TREES][SPLITS] = {
"""
MIDDLE = """};

static const float leaves[TREES][SPLITS + 1] = {
"""
TAIL = """};
/* clang-format on */

float presto__forest_score(const float features[PRESTO__FEATURE_COUNT]) {
    float score = %s;
    for (int tree = 0; tree < TREES; tree++) {
        int at = 0;
        while (at >= 0) {
            const tree_split *split = &splits[tree][at];
            at = features[split->feature] <= split->threshold ? split->if_less : split->if_more;
        }
        score += leaves[tree][-1 - at];
    }
    return score;
}
"""


def number(value):
    text = f"{value:.5g}"
    return (text if set(text) & set(".e") else text + ".0") + "f"


def tree_of(nodes):
    """Splits and leaves of a tree, the root first."""
    splits = {i: n for n, i in enumerate(i for i, node in enumerate(nodes) if not node["is_leaf"])}
    leaves = {i: n for n, i in enumerate(i for i, node in enumerate(nodes) if node["is_leaf"])}
    place = lambda i: splits[i] if i in splits else -1 - leaves[i]
    return ([(number(nodes[i]["num_threshold"]), nodes[i]["feature_idx"], place(nodes[i]["left"]), place(nodes[i]["right"])) for i in splits],
            [number(nodes[i]["value"]) for i in leaves])


def table(rows):
    """Rows of braces, as many in a line as fit."""
    return textwrap.fill(" ".join("{" + ", ".join(row) + "}," for row in rows), 100, break_long_words=False, break_on_hyphens=False) + "\n"


def write(model, path):
    trees = [tree_of(predictors[0].nodes) for predictors in model._predictors]
    splits = table([[f"{{{t}, {f}, {l}, {r}}}" for t, f, l, r in tree[0]] for tree in trees])
    path.write_text(HEAD % (len(trees), max(len(tree[0]) for tree in trees)) + splits + MIDDLE + table([tree[1] for tree in trees]) +
                    TAIL % number(float(numpy.ravel(model._baseline_prediction)[0])))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=pathlib.Path, default=ROOT / "build" / "release" / "bench" / "text_blocks")
    parser.add_argument("--trees", type=int, default=110)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    parser.add_argument("folders", type=pathlib.Path, nargs="+", metavar="FOLDER")
    args = parser.parse_args()
    pages, more = read(args.blocks, args.folders)
    if args.check:
        check(pages, more, args.trees)
    write(fit(pages, more, args.trees), args.output)


if __name__ == "__main__":
    main()
