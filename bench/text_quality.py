#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much of a page's main text extract-text finds, beside trafilatura and newspaper4k.

    bench/text_quality.py [--tools DIR] [--peers trafilatura,newspaper] FOLDER...

Each folder holds pages NAME.html, and beside each its text by somebody else's judgement, NAME.txt (UTF-8). For each folder
and each extractor, the table has the mean and median over the pages of the token F1 (words in lower case, as multisets), how
many pages are below 0.5, and pages per second of processor time on one thread. Peers that are not installed are left out:

    python3 -m venv venv && venv/bin/pip install trafilatura newspaper4k lxml_html_clean
    venv/bin/python bench/text_quality.py pages

Public sets of pages with texts are, among others, scrapinghub/article-extraction-benchmark and
AndyTheFactory/article-extraction-dataset. Their licences keep them out of this repository.
"""
import argparse
import collections
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "cli"))
from cli import example, frames

WORD = re.compile(r"\w+")


def words(text):
    return WORD.findall(text.lower())


def f1(got, wanted):
    common = sum((collections.Counter(got) & collections.Counter(wanted)).values())
    if common == 0:
        return 0.0
    precision, recall = common / len(got), common / len(wanted)
    return 2 * precision * recall / (precision + recall)


def by_presto(tools, folder):
    """Texts by name, and seconds of processor time."""
    command = [tools / "presto-load", "-q", "-j", "0", "-p", "nlp", "--to", "decoded", folder]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    texts = {}
    for record in map(example, frames(done.stdout)):
        (main,) = (name for name in record if name not in ("key", "label"))
        texts[os.fsdecode(record["key"][0])] = record[main][0].decode()
    return texts, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def trafilatura_extractor():
    import trafilatura

    return lambda page: trafilatura.extract(page, include_comments=False)


def newspaper_extractor():
    import newspaper

    def extract(page):
        article = newspaper.Article("https://example.org/", fetch_images=False)
        article.download(input_html=page.decode("utf-8", "replace"))
        article.parse()
        return article.text

    return extract


PEERS = {"trafilatura": trafilatura_extractor, "newspaper": newspaper_extractor}


def by_peer(extract, folder):
    texts, seconds = {}, 0.0
    for path in folder.glob("*.html"):
        page = path.read_bytes()
        begin = time.process_time()
        try:
            texts[path.name] = extract(page) or ""
        except Exception as error:  # a page that a peer cannot read is a page without text
            print(f"{path}: {error}", file=sys.stderr)
            texts[path.name] = ""
        seconds += time.process_time() - begin
    return texts, seconds


def report(name, folder, texts, seconds):
    scores = []
    for path in sorted(folder.glob("*.txt")):
        wanted = words(path.read_text(encoding="utf-8"))
        if wanted and path.with_suffix(".html").exists():
            scores.append(f1(words(texts.get(path.with_suffix(".html").name, "")), wanted))
    if not scores:
        sys.exit(f"{folder}: no NAME.html with a NAME.txt")
    low = sum(score < 0.5 for score in scores)
    print(f"| {folder.name} | {len(scores)} | {name} | {statistics.mean(scores):.4f} | {statistics.median(scores):.4f} | {low} | "
          f"{len(texts) / seconds:.0f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build" / "release" / "tools", help="folder of the programs")
    parser.add_argument("--peers", default=",".join(PEERS), help="other extractors to compare with; empty for none")
    parser.add_argument("folders", type=pathlib.Path, nargs="+", metavar="FOLDER")
    args = parser.parse_args()
    extractors = {"presto": lambda folder: by_presto(args.tools, folder)}
    for name in filter(None, args.peers.split(",")):
        try:
            extract = PEERS[name]()
        except ImportError:
            print(f"{name} is not installed", file=sys.stderr)
            continue
        extractors[name] = lambda folder, extract=extract: by_peer(extract, folder)
    print("| set | pages | extractor | mean F1 | median F1 | below 0.5 | pages/s |\n| --- | --- | --- | --- | --- | --- | --- |")
    for folder in args.folders:
        for name, run in extractors.items():
            report(name, folder, *run(folder))


if __name__ == "__main__":
    main()
