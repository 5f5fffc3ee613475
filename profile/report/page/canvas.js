/* What all charts share: colours of the page, axes, and three plug-ins of Chart.js that write beside
 * marks, draw the range of runs, and draw lines of reference. */
const styleOf = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colours = () => ({
  ink: styleOf("--ink"), soft: styleOf("--soft"), line: styleOf("--line"), paper: styleOf("--paper"),
  best: styleOf("--best"), bad: styleOf("--bad"), accent: styleOf("--accent"),
  parts: Array.from({ length: 10 }, (_, i) => styleOf(`--c${i}`)),
});
let colour = colours();

/* ---- axes ---- */
const axis = (title, extra = {}) => {
  const { ticks = {}, grid = {}, ...rest } = extra;
  return { title: { display: title !== "", text: title, color: colour.soft }, ...rest,
    ticks: { color: colour.soft, maxRotation: 0, ...ticks },
    grid: { color: colour.line, borderColor: colour.soft, ...grid } };
};
/* Figures beside an axis are short: "1.5 M". */
const short = v => Math.abs(v) >= 1e6 ? number(v / 1e6) + NBSP + "M" : number(v);
/* Chart.js leaves out labels of horizontal axes by their width, unless it is told how many there may be. */
const rateAxis = (title, extra = {}) => axis(title, { beginAtZero: true, ...extra, ticks: { callback: v => short(v) } });
const tallRateAxis = (title, extra) => {
  const made = rateAxis(title, extra);
  made.ticks.maxTicksLimit = isNarrow() ? 5 : 8;
  return made;
};

/* Does the label of a logarithmic axis have room beside the one before it? */
function hasRoom(scale, value, before, format) {
  const lies = scale.isHorizontal();
  const length = .9 * (lies ? scale.width : scale.height); /* other axes take some */
  const at = v => Math.log(v / scale.min) / Math.log(scale.max / scale.min) * length;
  scale.ctx.font = `${Chart.defaults.font.size}px ${Chart.defaults.font.family}`;
  const room = v => lies ? scale.ctx.measureText(format(v)).width + 8 : Chart.defaults.font.size * 1.4;
  return before === undefined || at(value) - at(before) >= (room(value) + room(before)) / 2;
}

/* Of the ticks that Chart.js has made, those at 1, 2 and 5, or as many of them as have room; `first` is there in any case. */
function thinTicks(scale, format, first) {
  const begins = (v, digits) => digits.includes(v.toExponential(9)[0]) && /^.\.0+e/.test(v.toExponential(9));
  const of = digits => [...(first ? [first] : []), ...scale.ticks.map(tick => tick.value)
    .filter(v => begins(v, digits) && (!first || v >= first * 1.7))];
  const have = list => list.every((v, i) => hasRoom(scale, v, list[i - 1], format));
  const few = list => list.reduce((kept, v) => hasRoom(scale, v, kept[kept.length - 1], format) ? [...kept, v] : kept, []);
  scale.ticks = (["125", "15"].map(of).find(have) || few(of("1"))).map(value => ({ value }));
}

/* Logarithmic, unless the values are near each other. `first`: a tick at the left end. */
function wideAxis(title, values, format, first) {
  const least = Math.min(...values);
  const most = Math.max(...values);
  if (!(least > 0) || most / least < 4)
    return axis(title, { beginAtZero: true, ticks: { callback: v => format(v) } });
  return axis(title, { type: "logarithmic", min: least / 1.3, max: most * 1.3, ticks: { autoSkip: false, callback: v => format(v) },
    afterBuildTicks: scale => thinTicks(scale, format, first) });
}

/* Labels of bars: at most two lines, so that they fit on a phone. */
const nameAxis = labels => axis("", { grid: { display: false },
  ticks: { color: colour.ink, autoSkip: false, callback: (_, i) => labels[i] } });

/* ---- plug-ins ---- */
const overlaps = (a, b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;

/* All points: those with `lines` are written beside. The important ones are first. */
function marksOf(chart) {
  const marks = [];
  chart.data.datasets.forEach((dataset, d) => {
    const meta = chart.getDatasetMeta(d);
    if (!meta.hidden)
      meta.data.forEach((element, i) => {
        const raw = dataset.data[i];
        if (raw && raw.r) marks.push({ raw, x: element.x, y: element.y });
      });
  });
  return marks.sort((a, b) => (b.raw.weight || 0) - (a.raw.weight || 0));
}

/* Places around a mark, the near ones and the best first: { x, y, w, h } of the text. Only the recommended mark's text may be farther off:
 * it stands out, and must be somewhere. */
function placesAround(mark, w, h) {
  const { x, y } = mark;
  return (mark.raw.isStrong ? [10, 22, 40] : [10]).flatMap(gap => {
    const beside = [[x + gap, y - h / 2], [x - gap - w, y - h / 2]];
    const around = [[x - w / 2, y - gap - h], [x - w / 2, y + gap], [x + gap / 2, y - gap - h], [x - gap / 2 - w, y - gap - h],
      [x + gap / 2, y + gap], [x - gap / 2 - w, y + gap]];
    return mark.raw.isOnLine ? [...around, ...beside] : [...beside, ...around];
  }).map(([left, top]) => ({ x: left, y: top, w, h }));
}

/* The first place that is free of texts and marks, or else, if it may cover others, of texts and labelled marks. */
function freePlace(places, taken, area, mayCover) {
  const inside = places.filter(at => at.x >= area.left && at.x + at.w <= area.right && at.y >= area.top && at.y + at.h <= area.bottom);
  const isFree = list => at => !list.some(other => overlaps(at, other));
  return inside.find(isFree([...taken.marks, ...taken.texts])) || (mayCover ? inside.find(isFree(taken.texts)) : undefined);
}

/* A text of lines: { lines, tint, isStrong, mayCover, places: what gives the places for a width and a height }. */
function placeText(ctx, text, taken, area) {
  const { lines } = text;
  ctx.font = `${text.isStrong ? "600 " : ""}${isNarrow() ? 11 : 12}px system-ui, sans-serif`;
  const w = Math.max(...lines.map(line => ctx.measureText(line).width));
  const box = freePlace(text.places(w, lines.length * 14), taken, area, text.mayCover);
  if (!box) return false;
  taken.texts.push(box);
  ctx.fillStyle = text.tint;
  ctx.strokeStyle = colour.paper; /* a rim, so that lines do not cross letters */
  ctx.lineWidth = 4;
  lines.forEach((line, i) => {
    ctx.strokeText(line, box.x, box.y + 14 * i + 11);
    ctx.fillText(line, box.x, box.y + 14 * i + 11);
  });
  return true;
}

const textOfMark = (mark, lines, mayCover) => ({ lines, mayCover, isStrong: mark.raw.isStrong, tint: mark.raw.isStrong ? colour.best : colour.ink,
  places: (w, h) => placesAround(mark, w, h) });

/* data.references: lines at a value of an axis, with a text. Those within the chart: where they are, in pixels. */
function referencesOf(chart) {
  const { chartArea: area } = chart;
  return (chart.data.references || []).map(line => ({ ...line, stands: line.axis === "x",
    at: chart.scales[line.axis].getPixelForValue(line.value) }))
    .filter(({ stands, at }) => stands ? at >= area.left && at <= area.right : at >= area.top && at <= area.bottom);
}

/* Places along a line of reference: at its ends first, then every few pixels. */
function placesAlong(line, area, w, h) {
  const [from, to] = line.stands ? [area.top + 2, area.bottom - h - 2] : [area.right - w - 4, area.left + 4];
  const steps = Array.from({ length: 11 }, (_, i) => from + (to - from) * (i <= 1 ? i : (i - 1) / 10));
  return steps.flatMap(v => line.stands ? [{ x: line.at + 4, y: v, w, h }, { x: line.at - 4 - w, y: v, w, h }]
    : [{ x: v, y: line.at - h - 1, w, h }, { x: v, y: line.at + 2, w, h }]);
}

/* What may be written beside a mark, the best first: where there is no room, its number in the list below. The recommended mark's name
 * must be somewhere. */
function textsOfMark(mark) {
  const { lines, brief, isStrong } = mark.raw;
  const whole = [textOfMark(mark, lines, false), textOfMark(mark, lines, true)];
  return !brief || isStrong ? whole : [whole[0], textOfMark(mark, [brief], false), textOfMark(mark, [brief], true)];
}

/* Writes beside lines of reference, the recommended mark, and the others. */
const besideMarks = { id: "besideMarks", afterDatasetsDraw(chart) {
  const all = marksOf(chart);
  const marks = all.filter(m => m.raw.lines);
  const { ctx } = chart;
  const area = { left: chart.chartArea.left + 2, right: chart.width, top: 0, bottom: chart.chartArea.bottom };
  const boxes = list => list.map(m => ({ x: m.x - 6, y: m.y - 6, w: 12, h: 12 }));
  const taken = { marks: boxes(all), texts: boxes(marks) };
  const place = text => placeText(ctx, text, taken, area);
  ctx.save();
  ctx.textAlign = "left";
  ctx.textBaseline = "alphabetic";
  ctx.lineJoin = "round";
  for (const line of referencesOf(chart))
    place({ lines: [line.text], isStrong: true, mayCover: true, tint: line.colour, places: (w, h) => placesAlong(line, chart.chartArea, w, h) });
  for (const mark of marks) textsOfMark(mark).some(place);
  ctx.restore();
} };

/* Datasets with `ranges`: [least, most] or null for each point. */
const runRanges = { id: "runRanges", afterDatasetsDraw(chart) {
  const { ctx } = chart;
  const lies = chart.options.indexAxis === "y";
  const scale = chart.scales[lies ? "x" : "y"];
  ctx.save();
  ctx.strokeStyle = colour.ink;
  ctx.lineWidth = 1.25;
  ctx.beginPath();
  chart.data.datasets.forEach((dataset, d) => {
    const meta = chart.getDatasetMeta(d);
    (dataset.ranges || []).forEach((range, i) => {
      const element = meta.data[i];
      if (!range || !element || meta.hidden) return;
      const [from, to] = range.map(v => scale.getPixelForValue(v));
      const draw = (a, b, c, e) => lies ? (ctx.moveTo(a, b), ctx.lineTo(c, e)) : (ctx.moveTo(b, a), ctx.lineTo(e, c));
      const at = lies ? element.y : element.x;
      draw(from, at, to, at);
      draw(from, at - 4, from, at + 4);
      draw(to, at - 4, to, at + 4);
    });
  });
  ctx.stroke();
  ctx.restore();
} };

const references = { id: "references", afterDatasetsDraw(chart) {
  const { ctx, chartArea: area } = chart;
  for (const { stands, at, colour: tint } of referencesOf(chart)) {
    ctx.save();
    ctx.strokeStyle = tint;
    ctx.setLineDash([6, 4]);
    ctx.beginPath();
    ctx.moveTo(stands ? at : area.left, stands ? area.top : at);
    ctx.lineTo(stands ? at : area.right, stands ? area.bottom : at);
    ctx.stroke();
    ctx.restore();
  }
} };

/* data.namesParts: the name of a part of a bar is written into it, where it fits. */
const inBars = { id: "inBars", afterDatasetsDraw(chart) {
  if (!chart.data.namesParts) return;
  const { ctx } = chart;
  ctx.save();
  ctx.font = "11px system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  chart.data.datasets.forEach((dataset, d) => chart.getDatasetMeta(d).data.forEach(bar => {
    const width = Math.abs(bar.x - bar.base);
    if (ctx.measureText(dataset.label).width + 8 > width) return;
    ctx.fillStyle = colour.paper;
    ctx.fillText(dataset.label, (bar.x + bar.base) / 2, bar.y);
  }));
  ctx.restore();
} };

/* ---- charts ---- */
const drawn = [];

/* `build` makes the configuration, again whenever colours, paper or what is chosen change. `text` says in words what the chart
 * shows: a text, or a function if that changes. */
function addChart(id, text, build, height) {
  drawn.push({ canvas: find(id), text: typeof text === "function" ? text : () => text, build, height });
}

function describe(canvas, text) {
  canvas.setAttribute("aria-label", text);
  canvas.textContent = text;
}

function configure(config) {
  const options = config.options;
  options.plugins = { legend: { display: false }, ...options.plugins };
  if (options.plugins.legend.display !== false)
    options.plugins.legend = { position: "bottom", align: "start", ...options.plugins.legend,
      labels: { color: colour.ink, boxWidth: 14, ...(options.plugins.legend.labels || {}) } };
  return { ...config, plugins: [references, runRanges, inBars, besideMarks] };
}

function drawCharts() {
  colour = colours();
  for (const one of drawn) {
    if (one.chart) one.chart.destroy();
    describe(one.canvas, one.text());
    if (one.height) one.canvas.parentNode.style.height = `${one.height()}px`;
    one.chart = new Chart(one.canvas, configure(one.build()));
  }
}

function startCharts() {
  Chart.defaults.font.family = "system-ui, sans-serif";
  Chart.defaults.font.size = isNarrow() ? 11 : 12;
  Chart.defaults.animation = false;
  Chart.defaults.maintainAspectRatio = false;
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawCharts);
  const turnPage = isPaper => {
    document.documentElement.classList.toggle("on-paper", isPaper);
    drawCharts();
  };
  addEventListener("beforeprint", () => turnPage(true));
  addEventListener("afterprint", () => turnPage(false));
  drawCharts();
}
