#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""report.html in a browser: it opens from its file without a complaint and without a network; at 1280, 768 and 400 pixels and on paper
nothing is wider than the page; text has contrast in the light and the dark scheme; filters and sorting work by keyboard.

The page is a real sweep's, and the same page with other results: with predictions and all that a sweep may say, with figures as wide
as they get, with one strategy, 600 of them, failed ones, and names that try to be HTML.

Usage: report.py TOOLS_DIR
Exit: 0 right, 1 wrong, 77 not measured, for there is no Chromium or no report in this build.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import charts
from browser import Browser, find_chromium
from report_pages import disturbances, make_pages, measured

WIDTHS = (1280, 768, 400)
PAPER = round((210 - 2 * 14) / 25.4 * 96)  # what A4 leaves between the margins, in pixels

# Elements with a box that ends beyond the page, or whose text does: what a box hides or scrolls is cut, too.
BEYOND = """
[...document.querySelectorAll("body, body *")].filter(part => {
  const box = part.getBoundingClientRect();
  if (!box.width || part.closest(".skip, option") || part.tagName === "OPTION") return false;
  return box.right > innerWidth + 1 || box.left < -1 || (part.scrollWidth > part.clientWidth + 1 && part.clientWidth > 0 &&
    getComputedStyle(part).display !== "inline" && part.tagName !== "SELECT");
}).map(part => part.tagName + " " + (part.id || part.className) + " " + part.textContent.slice(0, 40))
"""
# Figures that a line break may part from their units.
PARTED = """
[...document.querySelectorAll("#tiles, #reason, #runners td, #whatif td, #errors-table td, #rows td, #rows span, #notes, .front")]
  .flatMap(part => part.textContent.match(/[0-9\u2248] (?:[kMGT]?B|m?s|%)(?![a-z])/g) || [])
"""
# Text whose contrast with what is behind it is below WCAG AA: [contrast, text].
FAINT = """
(() => {
  const numbers = colour => { const [r, g, b, a = 1] = colour.match(/[\\d.]+/g).map(Number); return { rgb: [r, g, b], a }; };
  const light = rgb => rgb.map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const behind = part => {
    for (let at = part; at; at = at.parentElement) {
      const { rgb, a } = numbers(getComputedStyle(at).backgroundColor);
      if (a === 1) return rgb;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const part of document.querySelectorAll("body *")) {
    const own = [...part.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!own || !part.getClientRects().length || part.tagName === "SCRIPT") continue;
    const [a, b] = [light(numbers(getComputedStyle(part).color).rgb), light(behind(part))].sort((x, y) => y - x);
    const contrast = (a + .05) / (b + .05);
    if (contrast < 4.5) found.push([contrast, part.textContent.slice(0, 40)]);
  }
  return found;
})()
"""


def run(*command):
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nexit {done.returncode}: {done.stderr}")
    return done.stdout


def make_report(tools, folder):
    run(tools / "presto-make-photos", "-q", "-n", "6", "-c", "2", "--width", "300", "--height", "260", "-o", folder / "photos")
    run(tools / "presto-sweep", "-q", "-p", "cv", "--codecs", "none,blosc-zstd:5+bitshuffle", "--threads", "1,2", "--samples", "4",
        "--runs", "2", "--run-time", "0", "--decide-time", "0", "-o", folder / "sweep", folder / "photos")
    return folder / "sweep" / "report.html"


# ---- the tile of the target and the reason ----
DISTANCE = re.compile(r"\b(?:is|it is) ([\d,]+ % (?:above|below)|[\d,]+ times) (?:it|the target)")


def aim(tools, folder, threads, *target):
    """One strategy, which has been run if it has one thread, and else is predicted. Then again with a target, without running it again."""
    out = folder / f"aimed-{threads}"
    run(tools / "presto-sweep", "-q", "-p", "cv", "--stored", "resized", "--codecs", "none", "--threads", threads, "--samples", "4", "--runs", "2",
        "--run-time", "0", "--decide-time", "0", "-o", out, *target, *(["--resume"] if target else []), folder / "photos")
    return out / "report.html", json.loads((out / "results.json").read_text())


def check_aim(browser, tools, folder, threads, *target):
    """Tile and reason tell the same distance. Returns the tile."""
    page, results = aim(tools, folder, threads, "--target", *target)
    browser.open(page)
    tile = browser.ask("[...find('tiles').children].find(tile => tile.textContent.startsWith('Target')).textContent").replace("\u00a0", " ")
    reason, limits = results["recommendation"]["reason"], results["recommendation"]["limits"]
    told, written = DISTANCE.search(tile), DISTANCE.search(reason)
    assert told and ("missed" in tile) == (limits != "keeps"), (tile, limits)
    assert written and told.group(1) == written.group(1), (tile, reason)
    for part in ("counted as a tenth below the median at most", "less than its headroom", "prediction less the uncertainty"):
        assert (part in tile) == (part in reason), (tile, reason)
    return tile


def check_targets(browser, tools, folder):
    for threads in (1, 32 * os.cpu_count()):
        results = aim(tools, folder, threads)[1]
        assert results["results"][0]["measured"] != results["results"][0]["elsewhere"] and (threads > 1 or results["results"][0]["measured"])
        rate = results["recommendation"]["slowest_samples_per_s"]
        for target, part in ((.01, r" times the target$"), (rate / 2.27, r" 127 % above it$"), (1e9, r" % below it$")):
            assert re.search(part, check_aim(browser, tools, folder, threads, f"{target:f}/s")), (target, part)
        assert " % above it, less than its headroom" in check_aim(browser, tools, folder, threads, f"{rate / 1.1:f}/s+40%")
    check_aim(browser, tools, folder, 1, "1000000000/s", "--max-storage", "1")


# ---- what is checked ----
def check_texts_of_c():
    """What the page looks for in texts of the sweep is there."""
    root = pathlib.Path(__file__).resolve().parents[2]
    figures = root.joinpath("profile", "report", "page", "figures.js").read_text()
    begins = re.findall('"(.*?)"', re.search(r"DISTURBANCES = \[(.*?)\]", figures).group(1))
    notes = disturbances()
    assert len(notes) == len(begins) == 2 and all(note.startswith(begin) for note, begin in zip(notes, begins)), (notes, begins)
    unseen = re.search('UNSEEN = "(.*?)"', figures).group(1)
    assert f'"{unseen}%s"' in root.joinpath("profile", "sweep.c").read_text(), unseen


def check_opening(browser, path):
    assert browser.complaints == [], browser.complaints
    assert [url for url in browser.requests if not url.startswith("data:")] == [path.resolve().as_uri()], browser.requests
    blank = browser.ask("drawn.filter(one => !one.chart || one.chart.width === 0).map(one => one.canvas.id)")
    shown = browser.ask("drawn.filter(one => one.canvas.closest('[hidden]')).map(one => one.canvas.id)")
    assert not blank and not shown, (blank, shown)


def check_width(browser, width):
    page = browser.ask("document.documentElement.scrollWidth")
    beyond = browser.ask(BEYOND)
    assert page <= width and not beyond, (width, page, beyond)
    shown = browser.ask("document.querySelector('.by-heading').getClientRects().length > 0")
    assert shown == (width > 960), "the table has headings to sort by on wide screens alone"
    parted = browser.ask(PARTED)
    assert not parted, parted
    charts.check_texts(browser)


def check_content(browser, kind, results):
    best = results["results"][results["recommendation"]["result"]]
    assert browser.ask("document.title") == f"Presto sweep: {results['pipeline']['name']}"
    assert browser.ask("document.querySelectorAll('img').length") == 0
    assert best["stored"] in browser.ask("find('headline').textContent") or best["codec"] is None
    rows = browser.ask("find('rows').rows.length")
    assert rows == min(len(results["results"]), browser.ask("FIRST_ROWS")), rows
    advice, model = results["recommendation"], results.get("model") or {}
    if best["codec"] is not None and any(r["codec"] is None for r in measured(results)):
        assert re.search(r" the unprocessed files on \d+ threads? \(", browser.ask("find('tiles').textContent"))
    said = browser.ask("find('stopped').hidden || find('stopped').textContent")
    assert (said is not True) == results["is_stopped"], said
    if kind in ("complete", "priced", "aimed", "stopped", "exceeding"):
        globals()[f"check_{kind}"](browser, results)
    if kind == "limited":
        texts = browser.ask("document.body.textContent")
        assert "beyond the limits" in texts and "None within the limits reaches" in texts
        assert "it still grows at 64 threads" in texts
        check_joined(browser, results)
    if kind == "not-run":
        texts = [browser.ask(f"find('{part}').textContent") for part in ("sure", "sure-text")]
        assert texts[0].startswith("Undecided between ") and "was not run" in texts[1], texts
    parts = {"sure-part": results.get("confidence"), "others-part": results.get("what_if") or advice.get("runners_up"),
             "steps-part": model.get("steps"), "errors-part": any(r.get("error") is not None for r in measured(results)),
             "hollow": any(r.get("measured") is False for r in measured(results))}
    for part, has_figures in parts.items():
        assert browser.ask(f"find('{part}').hidden") is not bool(has_figures), f"{kind}: {part} is shown only with its figures"
    ranges = browser.ask("drawn.flatMap(one => one.chart.data.datasets).flatMap(set => set.ranges || []).filter(Boolean).length")
    assert (ranges == 0) == (kind == "one"), f"{kind}: {ranges} error bars"
    check_charts(browser, kind, results)


def sure_texts(browser):
    return [browser.ask(f"find('{part}').textContent").replace("\u00a0", " ") for part in ("sure", "sure-text")]


def name_of(browser, i):
    return browser.ask(f"nameOf(all[{i}])")


def rivals_shown(browser):
    """Of each rival: difference, least and most, in percent; and the title of the axis."""
    return browser.ask("(({datasets: [set]}) => set.data.map((at, i) => [at, ...set.ranges[i]]))(Chart.getChart('rivals').data)"), \
        browser.ask("Chart.getChart('rivals').options.scales.x.title.text[0]")


def check_complete(browser, results):
    """Undecided: what the rival's ratio, 0.95 to 1.03, can cost. Predictions are marked in all lists."""
    text = sure_texts(browser)[1]
    assert "Whichever of the two you take, you lose 5 % at most" in text, text
    assert " at most; of the whole source" in browser.ask("document.body.textContent")
    shown, title = rivals_shown(browser)
    assert [round(v, 9) for v in shown[1]] == [-1, -5, 3] and title == "% of difference in speed to", (shown, title)
    rows = browser.ask("[...find('runners').tBodies[0].rows].map(row => [...row.cells].map(cell => cell.textContent))")
    for row, i in zip(rows, results["recommendation"]["runners_up"]):
        assert ("\u2248" in row[1]) == ("\u2248" in row[4]) == (not results["results"][i]["measured"]), row
    assert "\u2248" in str(rows) and not browser.ask("find('others-text').hidden")
    assert [browser.ask(f"percent({v})") for v in (.056, .996, 1.14)] == ["5.6\u00a0%", "100\u00a0%", "114\u00a0%"]


def check_priced(browser, results):
    """A ratio of costs is the leader's over its own: 0.95 to 1.03 are 5.3 % more to 2.9 % less."""
    text = sure_texts(browser)[1]
    assert "Whichever of the two you take, you pay 5.3 % more at most" in text, text
    shown, title = rivals_shown(browser)
    for found, wanted in zip(shown[1], (100 / .99 - 100, 100 / 1.03 - 100, 100 / .95 - 100)):
        assert abs(found - wanted) < 1e-9, shown
    assert title == "% of difference in cost to", title
    order = browser.ask("byRank.filter(r => r !== best && !r.equal).map(r => r.cost)")
    assert order == sorted(order) and len(order) > 2, order
    assert browser.ask("['runners', 'whatif'].every(id => find(id).tHead.rows[0].lastChild.textContent.startsWith('Cost'))")


def check_aimed(browser, results):
    rival = name_of(browser, results["confidence"]["rivals"][0]["result"])
    badge, text = sure_texts(browser)
    assert badge == f"Undecided: {rival} may reach the target, too", badge
    assert f"whether {rival}, which would be chosen instead, reaches the target and its headroom. More rounds would (--decide-time)." in text, text


def check_stopped(browser, results):
    every, run = len(results["results"]), len(measured(results))
    head = browser.ask("document.querySelector('header').textContent")
    assert f"The sweep was stopped: {run} of {every} ways were run on 4 of 6 samples, {every - run} were not looked at. " \
        "The same command with --resume goes on." in head and "failed" not in head, head
    facts = browser.ask("find('facts').textContent + find('notes').textContent")
    assert "up to 2 of each strategy" in facts and "strategies failed" not in facts, facts
    assert "More rounds would (the same command with --resume)" in sure_texts(browser)[1]
    busy = browser.ask("document.querySelector('.answer #disturbed:not([hidden])').textContent").replace("\u00a0", " ")
    assert busy == f"The machine was busy: {'; '.join(text % 93 for text in disturbances())}.", busy


def check_joined(browser, results):
    """What no strategy can is one row, the last one; where the target is missed anyway, without the nearest."""
    rows = browser.ask("[...find('whatif').tBodies[0].rows].map(row => [0, 1].map(i => row.cells[i].textContent.replaceAll('\u00a0', ' ')))")
    missed = [question["if"] for question in results["what_if"] if question["is_missed"]]
    assert len(missed) == 2 and len(rows) == len(results["what_if"]) - 1, rows
    joined = "; ".join(missed).replace("\u00a0", " ")
    assert rows[-1] == [joined[0].upper() + joined[1:], "No strategy can"], rows
    assert not any("No strategy can" in answer for _, answer in rows[:-1]), rows


def check_exceeding(browser, results):
    is_stored = results["results"][results["recommendation"]["result"]]["codec"] is not None  # the source keeps all limits
    begin = "None keeps the limits, and none reaches " if is_stored else "None within the limits reaches "
    assert browser.ask("find('headline').textContent").startswith(begin)
    assert "missed" in browser.ask("find('tiles').textContent")


def check_charts(browser, kind, results):
    charts.check_fronts(browser, results)
    charts.check_ticks(browser)
    charts.check_caches(browser, results)
    several = charts.check_error_bars(browser, results)
    if kind in ("complete", "one"):
        assert several == ({True, False} if kind == "complete" else {False}), several
    for part, check in (("errors-part", charts.check_errors), ("threads-part", charts.check_curve), ("codecs-part", charts.check_codecs)):
        if not browser.ask(f"find('{part}').hidden"):
            check(browser, results)
    said = browser.ask("drawn.map(one => one.canvas.closest('[hidden]') ? [] : [one.canvas.getAttribute('role'), one.canvas.getAttribute('aria-label'), "
                       "one.canvas.textContent]).filter(said => said.length)")
    assert all(role == "img" and len(label) > 30 and label == text for role, label, text in said), said
    assert len({label for _, label, _ in said}) == len(said), "each chart says in words what it shows"


def rows_shown(browser):
    """Representation, codec and threads of the rows, once all are shown."""
    browser.ask("find('more').hidden || find('more').click()")
    return sorted(map(tuple, browser.ask("[...find('rows').rows].map(row => [0, 1, 2].map(i => row.cells[i].textContent))")))


def check_filters(browser, results):
    """Each choice of each filter shows the strategies of results.json that match, and those alone."""
    def name(result):
        return result["stored"], result["codec"] or "", str(result["threads"])

    every = results["results"]
    values = {"stored": lambda r: r["stored"], "codec": lambda r: r["codec"] or "as files", "threads": lambda r: str(r["threads"])}
    for key, value in values.items():
        find = f"document.querySelector('#filters [name={key}]')"
        offered = browser.ask(f"[...{find}.options].map(option => option.value)")
        assert sorted(offered) == sorted({"", *map(value, every)}), (key, offered)
        for wanted in offered:
            browser.ask(f"{find}.value = {json.dumps(wanted)}, {find}.dispatchEvent(new Event('change'))")
            expected = sorted(name(r) for r in every if wanted in ("", value(r)))
            assert rows_shown(browser) == expected, (key, wanted)
            assert browser.ask("find('shown').textContent").startswith(f"{len(expected)} of {len(every)} ")
        browser.ask(f"{find}.value = '', {find}.dispatchEvent(new Event('change'))")
    target = results["options"]["target_samples_per_s"]
    browser.ask("document.querySelector('#filters [name=target]').click()")
    expected = sorted(name(r) for r in every if r["status"] == "ok" and r["cold"]["samples_per_s"]["median"] >= target)
    assert 0 < len(expected) < len(every) and rows_shown(browser) == expected, expected
    browser.ask("document.querySelector('#filters [name=target]').click()")


def tab_to(browser, what, limit=80):
    for _ in range(limit):
        browser.press("Tab")
        if browser.ask(f"Boolean(document.activeElement.matches({json.dumps(what)}))"):
            outline = browser.ask("getComputedStyle(document.activeElement).outlineStyle")
            assert outline not in ("none", ""), f"focus on {what} is not visible"
            return
    raise AssertionError(f"Tab does not reach {what}")


def check_reach(browser):
    """Tab comes to all that can be pressed or chosen, and shows where it is."""
    wanted = browser.ask("[...document.querySelectorAll('a, button, select, input')].filter(part => part.getClientRects().length).length")
    browser.ask("window.reached = new Set(), scrollTo(0, 0)")
    for _ in range(wanted + 1):
        browser.press("Tab")
        browser.ask("reached.add(document.activeElement).size")
        outline = browser.ask("document.activeElement === document.body || getComputedStyle(document.activeElement).outlineStyle")
        assert outline not in ("none", ""), "focus is not visible"
        if browser.ask("document.activeElement === document.body"):
            break
    missed = browser.ask("[...document.querySelectorAll('a, button, select, input')].filter(part => part.getClientRects().length && "
                         "!reached.has(part)).map(part => part.outerHTML)")
    assert not missed and wanted > 10, missed


def check_keyboard(browser, results):
    """Sorting, filters and the link to the table, without a mouse."""
    column = browser.ask("columns.findIndex(c => c.name === 'cold samples/s')")
    rates = f"[...find('rows').rows].map(row => row.cells[{column}].firstChild.textContent.replace(/[^0-9.]/g, '')).map(Number)"
    browser.press("Tab")
    browser.press("Enter")
    assert browser.ask("document.activeElement.id || location.hash") in ("strategies", "#strategies")
    tab_to(browser, "select[name=codec]")
    browser.press("ArrowDown")
    wanted = browser.ask("document.querySelector('select[name=codec]').value")
    codecs = set(browser.ask("[...find('rows').rows].map(row => row.cells[1].textContent)"))
    assert codecs == {"" if wanted == "as files" else wanted}, (wanted, codecs)
    browser.press("ArrowUp")
    tab_to(browser, "input[name=run]")
    browser.press(" ")
    run = sum(r["status"] == "ok" and r["measured"] for r in results["results"])
    assert browser.ask("find('rows').rows.length") == run < len(results["results"])
    assert f"{run} of" in browser.ask("find('shown').textContent")
    browser.press(" ")
    tab_to(browser, f"#head th:nth-child({column + 1}) button")
    for key, order in (("Enter", "ascending"), (" ", "descending")):
        browser.press(key)
        found = browser.ask(rates)
        assert found == sorted(found, reverse=order == "descending") and len(set(found)) > 1, found
        assert browser.ask(f"find('head').rows[0].cells[{column}].getAttribute('aria-sort')") == order
    assert browser.ask("document.activeElement.closest('#head') !== null"), "sorting loses the focus"


def check_paper(browser, folder, kind, results):
    browser.resize(PAPER)
    browser.prefer("dark", "print")
    browser.ask("dispatchEvent(new Event('beforeprint'))")
    check_width(browser, PAPER)
    assert browser.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)", "paper is white in the dark scheme, too"
    high = browser.ask("[...document.querySelectorAll('.chart, tr, .answer')].filter(p => p.getBoundingClientRect().height > 900).length")
    assert high == 0, "something that must not be broken is higher than a page"
    browser.ask("dispatchEvent(new Event('afterprint'))")
    browser.prefer("light")
    file = folder / f"{kind}.pdf"
    browser.pdf(file)
    if shutil.which("pdftotext"):
        check_pdf(run("pdftotext", "-bbox", file, "-"), results)


def check_printed(browser, path):
    """Charts are drawn before the window is laid out for paper, and keep their shape there: none is cut or squeezed, whatever the window."""
    for width in (1280, 400):
        browser.resize(width)
        browser.open(path)
        browser.ask("dispatchEvent(new Event('beforeprint')), drawn.forEach(one => { one.chart.resize = () => {}; })")
        browser.prefer("light", "print")
        for paper in (PAPER * 2 // 3, PAPER * 4 // 3, PAPER):  # a printer may have other paper than the page asks for
            browser.resize(paper)
            for name, drawn, shown, room in browser.ask("""drawn.map(({ canvas, chart }) => [canvas.id, [chart.width, chart.height],
              ...[canvas, canvas.parentNode].map(part => (({ width, height }) => [width, height])(part.getBoundingClientRect()))])"""):
                where = (width, paper, name, drawn, shown, room)
                assert abs(shown[0] / shown[1] / (drawn[0] / drawn[1]) - 1) < .03, ("squeezed", where)
                assert shown[0] <= room[0] + 1 and shown[1] <= room[1] + 1, ("cut", where)
                assert paper != PAPER or abs(shown[0] / drawn[0] - 1) < .03, ("scaled", where)
        captions = browser.ask("['size', 'rate'].map(part => find(`codecs-${part}-head`).textContent.includes(codecState.stored))")
        assert captions == [True, True], "the choice of the representation is not printed"
        browser.prefer("light")


def check_pdf(boxes, results):
    """All words are within their page, and the last note and the last row are there."""
    pages = re.findall(r'<page width="([\d.]+)" height="([\d.]+)">(.*?)</page>', boxes, re.DOTALL)
    assert pages and all(abs(float(w) - 595) < 2 and abs(float(h) - 842) < 2 for w, h, _ in pages), [p[:2] for p in pages]
    words = []
    for width, height, text in pages:
        for x, y, right, bottom, word in re.findall(r'xMin="(.*?)" yMin="(.*?)" xMax="(.*?)" yMax="(.*?)">(.*?)</word>', text):
            assert float(x) >= 0 and float(y) >= 0 and float(right) <= float(width) and float(bottom) <= float(height), word
            words.append(word)
    assert results["tool_version"] in words and "presto-load" in words


def main():
    tools = pathlib.Path(sys.argv[1]).resolve()
    program = find_chromium()
    check_texts_of_c()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        report = make_report(tools, folder)
        if not report.exists():
            print("this build makes no report.html (libjs-chart.js was not there): skipped")
            return 77
        if program is None:
            print("no Chromium here: the report was made, but not looked at")
            return 77
        with Browser(program) as browser:
            browser.before_scripts(charts.WATCH)
            check_targets(browser, tools, folder)
            print("targets: right")
            for kind, path, results in make_pages(report, folder):
                for width in WIDTHS:
                    browser.resize(width)
                    browser.open(path)
                    check_opening(browser, path)
                    check_width(browser, width)
                check_content(browser, kind, results)
                for scheme in ("light", "dark"):
                    browser.prefer(scheme)
                    faint = browser.ask(FAINT)
                    assert not faint, (kind, scheme, faint)
                browser.prefer("light")
                if kind in ("real", "complete-wide", "failed"):
                    check_paper(browser, folder, kind, results)
                if kind == "complete":
                    check_printed(browser, path)
                if kind == "complete":
                    browser.resize(1280)
                    browser.open(path)
                    check_keyboard(browser, results)
                    browser.open(path)
                    check_filters(browser, results)
                    browser.open(path)
                    check_reach(browser)
                print(f"{kind}: right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
