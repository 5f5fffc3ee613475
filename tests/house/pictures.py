#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the pictures of docs/ anew: presto-sweep in a terminal, its report (the answer; more of it) on a wide screen and on a phone.

Usage: build/venv/bin/python tests/house/pictures.py TOOLS_DIR [SWEEP_DIR]
       build/venv/bin/python tests/house/pictures.py --pipelines WORK_DIR
With SWEEP_DIR, the report's pictures show that sweep, and the terminal's is left as it is. --pipelines: the answers of the
reports of seven pipelines, of the sweeps that `bench/choice.py best --work WORK_DIR` has left.
"""
import html
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from PIL import Image

from browser import Browser, find_chromium

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
SWEEP = ["presto-sweep", "-p", "cv", "--codecs", "none,lz4,zstd:1", "--threads", "1,2", "--target", "2000/s", "-o", "sweep", "photos"]
ROWS = 10  # of the table in the terminal's picture


def run_sweep(folder, tools):
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "COLUMNS": "80"}
    return subprocess.run(SWEEP, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment,
                          check=True, text=True).stdout


def shorten(text):
    """The table's first rows stand for all."""
    lines = text.split("\n")
    first = next(i for i, line in enumerate(lines) if re.search(r"stored +codec", line)) + 1
    end = lines.index("", first)
    return "\n".join(lines[:first + ROWS] + ["  ..."] * (end > first + ROWS) + lines[end:])


def terminal_page(text):
    """What is recommended stands out."""
    lines = [f"<b style='color:#7ee787'>{line}</b>" if line.startswith("* ") else line for line in html.escape(text).strip("\n").split("\n")]
    return ("<!DOCTYPE html><meta charset=utf-8><body style='margin:0;background:#0d1117'><pre style='display:inline-block;margin:0;"
            "padding:24px 32px;color:#e6edf3;font:15px/1.42 monospace'><span style='color:#7ee787'>$</span> "
            f"<b>{html.escape(' '.join(SWEEP))}</b>\n{chr(10).join(lines)}</pre>")


def shoot(browser, page, path, width, scheme, height=None):
    browser.prefer(scheme)
    browser.resize(width, height or 900)
    browser.open(page)
    if height is None:
        box = browser.ask("(({width, height}) => [Math.ceil(width), Math.ceil(height)])(document.querySelector('pre').getBoundingClientRect())")
        browser.resize(*box)
    browser.picture(path)
    with Image.open(path) as image:
        image.convert("RGB").quantize(96).save(path, optimize=True)
    print(f"{path.relative_to(DOCS.parent)}: {path.stat().st_size / 1000:.0f} kB")


def pipelines(work):
    (DOCS / "reports").mkdir(exist_ok=True)
    with Browser(find_chromium()) as browser:
        for report in sorted(work.glob("*-default/report.html")):
            name = report.parent.name.removesuffix("-default")
            shoot(browser, report, DOCS / "reports" / f"{name}.png", 1000, "light", 800)


def main():
    if sys.argv[1] == "--pipelines":
        pipelines(pathlib.Path(sys.argv[2]).resolve())
        return
    tools = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name, Browser(find_chromium()) as browser:
        folder = pathlib.Path(name)
        report = pathlib.Path(sys.argv[2], "report.html") if len(sys.argv) > 2 else folder / "sweep" / "report.html"
        if len(sys.argv) == 2:
            subprocess.run([tools / "presto-make-photos", "-q", "-n", "300", "-o", folder / "photos"], check=True)
            page = folder / "terminal.html"
            page.write_text(terminal_page(shorten(run_sweep(folder, tools))))
            shoot(browser, page, DOCS / "sweep.png", 1000, "dark")
        shoot(browser, report, DOCS / "answer.png", 1100, "light", 748)
        shoot(browser, report, DOCS / "report.png", 1100, "light", 1250)
        shoot(browser, report, DOCS / "report-phone.png", 400, "dark", 1000)


if __name__ == "__main__":
    main()
