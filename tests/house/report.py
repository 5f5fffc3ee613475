#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nothing of report.html is off the screen at 1280 pixels, and at 400 the page itself does not scroll sideways.

The page is a real sweep's with figures as wide as they get. What the style sheet must say for that is checked without a browser; where
Chromium is installed, the page is laid out and measured as well.

Usage: report.py TOOLS_DIR [--static]
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

RESULTS = re.compile(r'(<script type="application/json" id="results">)(.*?)(</script>)', re.DOTALL)
# Reports what sticks out of the window: right edges of all elements but those that scroll by themselves on narrow screens.
PROBE = """
<script>
addEventListener("load", () => {
  const width = document.documentElement.clientWidth;
  const out = { width, page: document.documentElement.scrollWidth, columns: [], beyond: [] };
  for (const cell of document.querySelectorAll("#head th"))
    out.columns.push([cell.textContent, Math.round(cell.getBoundingClientRect().right)]);
  for (const part of document.querySelectorAll("h1, h2, p, pre, canvas, li, #head th, #rows td"))
    if (part.getBoundingClientRect().right > width + 1 && part.textContent.length < 200)
      out.beyond.push(part.tagName + " " + (part.id || part.textContent.slice(0, 40)));
  const box = document.createElement("pre");
  box.id = "probe";
  box.textContent = JSON.stringify(out);
  document.body.append(box);
});
</script>
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


def widen(page):
    """The same page with figures of a large source on a fast machine."""
    results = json.loads(RESULTS.search(page).group(2))
    for result in results["results"]:
        result.update(threads=1024, total_stored_bytes=123.4e12, total_stored_error_bytes=98.7e12,
                      total_preparation_s=123456.0, total_preparation_error_s=98765.0)
        for state in ("cold", "cached"):
            result[state]["samples_per_s"] = {"median": 1234567.0, "min": 1111111.0, "max": 1999999.0}
            result[state].update(cpu_s_per_sample=0.123456, context_switches_per_s=123456.0, peak_rss_bytes=123.4e9)
    text = json.dumps(results).replace("<", "\\u003c")
    return RESULTS.sub(lambda found: found.group(1) + text + found.group(3), page)


def check_style(page):
    """Cells break into lines, charts may be narrower than their least column, code scrolls in its box."""
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL).group(1)
    screen = re.sub(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}|/\*.*?\*/", "", style, flags=re.DOTALL)
    rules = {name.strip(): body for names, body in re.findall(r"([^{}]+)\{([^{}]*)\}", screen) for name in names.split(",")}
    assert "nowrap" not in rules["th"] + rules["td"], "table cells do not wrap"
    assert re.search(r"minmax\(min\([\d.]+rem, 100%\), 1fr\)", rules[".charts"]), "charts are wider than a narrow screen"
    assert "overflow-x: auto" in rules["pre"] and "overflow-x: auto" in rules[".scroll"]
    assert "@media print" in style, "on paper what scrolls is cut"
    width = float(re.search(r"max-width: ([\d.]+)rem", rules["body"]).group(1)) * 16
    assert width <= 1280, f"the page is {width:g} pixels wide"


def measure(browser, page, width, folder):
    probed = folder / f"probed-{width}.html"
    probed.write_text(page.replace("</body>", PROBE + "</body>"))
    out = run(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
              f"--user-data-dir={folder / f'profile-{width}'}", f"--window-size={width},900", "--virtual-time-budget=5000",
              "--dump-dom", probed.as_uri())
    found = re.search(r'<pre id="probe">(.*?)</pre>', out)
    assert found, "the page's script failed"
    return json.loads(found.group(1).replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))


def main():
    tools = pathlib.Path(sys.argv[1]).resolve()
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        report = make_report(tools, folder)
        if not report.exists():
            print("this build makes no report.html (libjs-chart.js was not there): skipped")
            return 77
        page = report.read_text()
        check_style(page)
        if "--static" in sys.argv:
            return 0
        if browser is None:
            print("no Chromium here: the style sheet is right, the layout was not measured")
            return 77
        for kind, text in (("as it is", page), ("with large figures", widen(page))):
            wide, narrow = (measure(browser, text, width, folder) for width in (1280, 400))
            print(f"{kind}: {wide}")
            assert [name for name, _ in wide["columns"]][-1] == "score", wide
            assert wide["page"] <= wide["width"] and not wide["beyond"], wide
            assert narrow["page"] <= narrow["width"], narrow
    return 0


if __name__ == "__main__":
    sys.exit(main())
