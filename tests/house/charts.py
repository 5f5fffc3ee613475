# SPDX-License-Identifier: Apache-2.0
"""What a report's charts have drawn. A canvas has no elements to ask: before the page's scripts run, its methods are wrapped, and keep each
text with its box and each line with its ends, in pixels of the page, until the canvas is cleared.
"""
import json
import statistics

# window.canvasTexts(canvas): { text, box: [left, top, right, bottom], tint, behind: the most frequent colour there }.
# window.canvasLines(canvas): { from, to, tint, isDashed }.
WATCH = """
(() => {
  const kept = new WeakMap();
  const of = context => kept.get(context.canvas) || kept.set(context.canvas, { texts: [], lines: [], path: [] }).get(context.canvas);
  const wrap = (name, before) => {
    const own = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function (...given) { before(this, ...given); return own.apply(this, given); };
  };
  const toPage = (context, x, y) => {
    const at = context.getTransform().transformPoint(new DOMPoint(x, y));
    return [at.x / devicePixelRatio, at.y / devicePixelRatio];
  };
  wrap("fillText", (context, text, x, y, most) => {
    if (!String(text).trim()) return;
    const size = context.measureText(text);
    const part = most && size.width > most ? most / size.width : 1;
    const corners = [-size.actualBoundingBoxLeft * part, size.actualBoundingBoxRight * part].flatMap(dx =>
      [-size.actualBoundingBoxAscent, size.actualBoundingBoxDescent].map(dy => toPage(context, x + dx, y + dy)));
    const [xs, ys] = [0, 1].map(i => corners.map(corner => corner[i]));
    of(context).texts.push({ text: String(text), tint: context.fillStyle, box: [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)] });
  });
  wrap("clearRect", (context, x, y, w, h) => {
    if (x <= 0 && y <= 0 && w >= context.canvas.width && h >= context.canvas.height) kept.delete(context.canvas);
  });
  wrap("beginPath", context => { of(context).path = []; });
  wrap("moveTo", (context, x, y) => { of(context).path.push([toPage(context, x, y)]); });
  wrap("lineTo", (context, x, y) => { const { path } = of(context); if (path.length) path[path.length - 1].push(toPage(context, x, y)); });
  wrap("stroke", context => {
    const { path, lines } = of(context);
    for (const line of path)
      for (let i = 1; i < line.length; i++)
        lines.push({ from: line[i - 1], to: line[i], tint: context.strokeStyle, isDashed: context.getLineDash().length > 0 });
  });
  const behind = (canvas, box) => {
    const [left, top, right, bottom] = box.map(v => Math.round(v * devicePixelRatio));
    const { data } = canvas.getContext("2d").getImageData(left, top, Math.max(right - left, 1), Math.max(bottom - top, 1));
    const page = getComputedStyle(document.body).backgroundColor, counts = new Map();
    for (let i = 0; i < data.length; i += 4) {
      const key = data[i + 3] === 0 ? page : `rgb(${[...data.slice(i, i + 3)].join(", ")})`;
      counts.set(key, (counts.get(key) || 0) + 1);
    }
    return [...counts].reduce((a, b) => b[1] > a[1] ? b : a)[0];
  };
  window.canvasTexts = canvas => (kept.get(canvas) || { texts: [] }).texts.map(text => ({ ...text, behind: behind(canvas, text.box) }));
  window.canvasLines = canvas => (kept.get(canvas) || { lines: [] }).lines;
})();
"""

TEXTS = """
drawn.filter(one => !one.canvas.closest("[hidden]")).map(({ canvas }) => ({ id: canvas.id, width: canvas.clientWidth, height: canvas.clientHeight,
  texts: canvasTexts(canvas) }))
"""


def lines_of(browser, chart):
    return browser.ask(f"canvasLines(find('{chart}'))")


def texts_of(browser, chart):
    return [text["text"] for text in browser.ask(f"canvasTexts(find('{chart}'))")]


def overlap(a, b, least=2):
    """By more than the rim of letters."""
    return min(a[2], b[2]) - max(a[0], b[0]) > least and min(a[3], b[3]) - max(a[1], b[1]) > least


def check_texts(browser):
    """No text of a chart is cut by its edge or lies on another one, and each stands out from what is behind it."""
    charts = browser.ask(TEXTS)
    assert charts and all(chart["texts"] for chart in charts), [chart["id"] for chart in charts if not chart["texts"]]
    for chart in charts:
        for i, text in enumerate(chart["texts"]):
            left, top, right, bottom = text["box"]
            where = (chart["id"], chart["width"], chart["height"], text)
            assert left >= -1 and top >= -1 and right <= chart["width"] + 1 and bottom <= chart["height"] + 1, ("cut", *where)
            for other in chart["texts"][:i]:
                assert not overlap(text["box"], other["box"]), ("overlap", *where, other)
            assert contrast(text["tint"], text["behind"]) >= 4.5, ("faint", contrast(text["tint"], text["behind"]), *where)


def contrast(one, other):
    """As WCAG has it, of #rrggbb or rgb(r, g, b)."""
    def light(colour):
        parts = [int(colour[i:i + 2], 16) for i in (1, 3, 5)] if colour[0] == "#" else [float(v) for v in colour[4:-1].split(",")]
        linear = [v / 255 / 12.92 if v / 255 <= .04045 else ((v / 255 + .055) / 1.055) ** 2.4 for v in parts]
        return sum(v * share for v, share in zip(linear, (.2126, .7152, .0722)))

    dark, bright = sorted((light(one), light(other)))
    return (bright + .05) / (dark + .05)


# ---- what they show: compared with results.json ----
def good(results):
    return [r for r in results["results"] if r["status"] == "ok"]


def rate(result, state="cold"):
    return result[state]["samples_per_s"]["median"]


def check_target(browser, results, chart):
    """One dashed line across, at the target."""
    target = results["options"]["target_samples_per_s"]
    bad = browser.ask("colour.bad")
    across = [line for line in lines_of(browser, chart) if line["isDashed"] and line["tint"] == bad and line["from"][1] == line["to"][1]]
    assert len(across) == bool(target), (chart, across)
    if target:
        low, high = (browser.ask(f"Chart.getChart('{chart}').scales.y.getValueForPixel({across[0]['from'][1] + by})") for by in (.6, -.6))
        assert low <= target <= high, (chart, low, target, high)
        assert any(text.startswith("target ") for text in texts_of(browser, chart)), f"{chart}: the line has no name"


def front_of(results, need):
    """Those that nothing beats: no other one needs no more and is at least as fast."""
    points = {(need(r), rate(r)) for r in good(results)}
    return sorted(p for p in points if not any(o != p and o[0] <= p[0] and o[1] >= p[1] for o in points))


def check_fronts(browser, results):
    least = min((r["total_preparation_s"] for r in good(results) if r["total_preparation_s"] > 0), default=2)
    needs = {"storage": lambda r: r["total_stored_bytes"], "preparation": lambda r: max(r["total_preparation_s"], least / 2)}
    for kind, need in needs.items():
        expected = front_of(results, need)
        line = browser.ask(f"Chart.getChart('pareto-{kind}').data.datasets.find(set => set.type === 'line').data.map(p => [p.x, p.y])")
        assert [tuple(point) for point in line] == expected, (kind, line, expected)
        listed = browser.ask(f"[...find('front-{kind}').children].map(item => item.textContent)")
        assert len(listed) == len(expected), (listed, expected)
        for text, (_, speed) in zip(listed, expected):
            assert f"{browser.ask(f'number({speed})')}/s" in text, (text, speed)
            were_run = {r["measured"] for r in good(results) if rate(r) == speed}
            assert ("\u2248" not in text) in were_run, text
        check_target(browser, results, f"pareto-{kind}")
        check_names(browser, f"pareto-{kind}")


def check_ticks(browser):
    """On a narrow chart, labels of a logarithmic axis keep apart, and the one of its left end is there."""
    ticks = browser.ask("""(scale => (thinTicks(scale, v => v === .05 ? "none" : seconds(v), .05), scale.ticks.map(tick => tick.value)))(
      { isHorizontal: () => true, width: 200, min: .04, max: 6, ctx: Chart.getChart("pareto-storage").ctx,
        ticks: [.05, .1, .2, .5, 1, 2, 5].map(value => ({ value })) })""")
    assert ticks == [.05, 1], ticks


def check_names(browser, chart):
    """Names beside marks cover no other mark: but for the recommended one's, which must be somewhere."""
    marks = browser.ask(f"Chart.getChart('{chart}').getDatasetMeta(0).data.map(mark => [mark.x, mark.y])")
    best = browser.ask("colour.best")
    left = browser.ask(f"Chart.getChart('{chart}').chartArea.left")
    names = [text for text in browser.ask(f"canvasTexts(find('{chart}'))") if text["box"][0] > left and len(text["text"]) > 3 and text["tint"] != best]
    for name in names:
        (x0, y0, x1, y1), text = name["box"], name["text"]
        covered = [mark for mark in marks if x0 < mark[0] < x1 and y0 < mark[1] < y1]
        assert not covered or text.startswith("target "), (chart, text, covered)


def check_whole_marks(browser):
    """In the chart of threads, marks at its left edge are whole: left of the axis there is the colour of one of them, too."""
    halves = browser.ask("""(() => {
      const chart = Chart.getChart("threads"), ratio = chart.currentDevicePixelRatio, { left } = chart.chartArea;
      const lines = chart.data.datasets.map((set, d) => ({ set, mark: chart.getDatasetMeta(d).data[0] })).filter(({ set }) => !set.borderDash);
      const tints = lines.map(({ set }) => set.borderColor.match(/[0-9a-f]{2}/g).map(part => parseInt(part, 16)));
      return lines.filter(({ mark }) => Math.abs(mark.x - left) < 1).map(({ mark }) => {
        const { data } = chart.ctx.getImageData((left - 3) * ratio, (mark.y - 4) * ratio, 2 * ratio, 8 * ratio);
        return Array.from({ length: data.length / 4 }, (_, i) => i * 4)
          .some(i => tints.some(tint => tint.every((v, k) => Math.abs(data[i + k] - v) < 3)));
      });
    })()""")
    assert not halves or any(halves), halves  # bars of ranges may hide some


def check_codecs(browser, results):
    """Codecs are named at the bars, and in the words of the chart, for each split that may be chosen."""
    codecs = {}
    for result in good(results):
        if result["codec"] is not None:
            codecs.setdefault(result["stored"], {}).setdefault(result["threads"], set()).add(result["codec"])
    offered = browser.ask("[...find('codecs-stored').options].map(option => option.value)")
    assert set(offered) <= set(codecs) and offered, (offered, codecs)
    for split in offered:
        browser.ask(f"find('codecs-stored').value = {json.dumps(split)}, find('codecs-stored').dispatchEvent(new Event('change'))")
        for chart in ("codecs-size", "codecs-rate"):
            shown, label = set(texts_of(browser, chart)), browser.ask(f"find('{chart}').getAttribute('aria-label')")
            threads = browser.ask("codecRows(codecState.stored)[0].threads")
            for codec in codecs[split][threads]:
                short = codec if len(codec) <= 22 else codec[:21] + "\u2026"
                assert short in shown or f"\u2714 {short}" in shown, (chart, split, codec, shown)
                assert codec in label and split in label, label


def check_curve(browser, results):
    """The model's curve for the recommended strategy goes beyond the processors that are here."""
    curve = browser.ask("Chart.getChart('threads').data.datasets.filter(set => set.borderDash).map(set => "
                        "({ points: set.data.map(p => [p.x, p.y]), isBest: set.borderColor === colour.best }))")
    expected = [[p["threads"], p["cold_samples_per_s"]] for p in results["model"]["curve"] if p["cold_samples_per_s"] is not None]
    assert curve == [{"points": expected, "isBest": True}], curve
    last = expected[-1][0]
    assert last > results["machine"]["cpus"] and browser.ask("Chart.getChart('threads').scales.x.max") >= last
    check_target(browser, results, "threads")
    check_whole_marks(browser)


def check_error_bars(browser, results):
    """In the chart of caches: from the least to the most run where there were several, and none else."""
    bars = browser.ask("""Chart.getChart("cached").data.datasets.slice(0, 2).flatMap((set, d) => set.data.map((value, i) => {
      const { x } = Chart.getChart("cached").scales, bar = Chart.getChart("cached").getDatasetMeta(d).data[i];
      const r = good.find(r => nameOf(r) === Chart.getChart("cached").data.labels[i] && (d ? cachedRate : rate)(r) === value);
      const { min, max } = (d ? r.cached : r.cold).samples_per_s;
      return { place: all.indexOf(r), state: d ? "cached" : "cold", y: bar.y, ends: [x.getPixelForValue(min), x.getPixelForValue(max)] };
    }))""")
    ink = browser.ask("colour.ink")
    lines = [(line["from"], line["to"]) for line in lines_of(browser, "cached") if line["tint"] == ink and line["from"][1] == line["to"][1]]
    several = set()
    for bar in bars:
        result = results["results"][bar["place"]][bar["state"]]
        here = [line for line in lines if abs(line[0][1] - bar["y"]) < .6]
        has_several = result["samples_per_s"]["min"] is not None
        several.add(has_several)
        assert len(here) == has_several, (bar, here)
        if has_several:
            assert all(abs(end[0] - wanted) < .6 for end, wanted in zip(here[0], bar["ends"])), (bar, here)
    return several


def check_caches(browser, results):
    """The cache in memory: hollow bars of what is predicted, and what it takes."""
    memory = [r.get("predicted_memory_samples_per_s") for r in good(results)]
    has_memory = any(memory)
    assert browser.ask("find('memory-text').hidden") is not has_memory
    bars = browser.ask("Chart.getChart('cached').data.datasets.slice(2).map((set, i) => [set.label, set.data, "
                       "Chart.getChart('cached').getDatasetMeta(i + 2).data.every(bar => bar.options.backgroundColor === colour.paper)])")
    assert len(bars) == has_memory, bars
    if has_memory:
        (label, values, is_hollow), = bars
        assert is_hollow and "predicted" in label and set(values) <= set(memory), bars
        assert any(label in text for text in texts_of(browser, "cached"))
        best = results["results"][results["recommendation"]["result"]]
        needed = browser.ask(f"bytes({best['predicted_memory_bytes']})")
        assert f"it takes {needed}, " in browser.ask("find('memory-text').textContent")


def check_errors(browser, results):
    """Cold and cached: marks of different shapes, names in the legend, and median and worst error beside them."""
    wanted = {}
    for state, key in (("cold", "error"), ("cached", "cached_error")):
        errors = [r[key] for r in good(results) if r["measured"] and r.get(key) is not None]
        if errors:
            wanted[state] = (100 * statistics.median(map(abs, errors)), 100 * max(errors, key=abs), len(errors))
    rows = browser.ask("[...find('errors-table').tBodies[0].rows].map(row => [...row.cells].map(cell => cell.textContent))")
    marks = browser.ask("Chart.getChart('errors').data.datasets.filter(set => set.pointStyle).map(set => [set.label, set.pointStyle, set.data.length])")
    assert [row[0] for row in rows] == [mark[0] for mark in marks] == list(wanted), (rows, marks)
    assert len({mark[1] for mark in marks}) == len(marks), "shapes tell them apart"
    for (state, median, worst, _), (_, _, count) in zip(rows, marks):
        figures = [float(text.replace("\u2212", "-").replace("%", "").replace(",", "")) for text in (median, worst)]
        for figure, right in zip(figures, wanted[state]):
            assert abs(figure - right) <= .06 * abs(right), (state, figure, right)
        assert count == wanted[state][2] and state in texts_of(browser, "errors")
