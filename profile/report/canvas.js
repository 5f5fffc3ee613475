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
const rateAxis = (title, extra = {}) => axis(title, { beginAtZero: true, ...extra,
  ticks: { callback: v => number(v), maxTicksLimit: isNarrow() ? 5 : 8 } });

/* Logarithmic with labels at 1, 2 and 5 (1 and 5 where it is narrow), unless the values are near each other. */
function wideAxis(title, values, format) {
  const least = Math.min(...values);
  const most = Math.max(...values);
  if (!(least > 0) || most / least < 4)
    return axis(title, { beginAtZero: true, ticks: { callback: v => format(v), maxTicksLimit: isNarrow() ? 4 : 8 } });
  const digits = most / least > (isNarrow() ? 100 : 1000) ? "1" : isNarrow() ? "15" : "125";
  const isLabelled = v => digits.includes(v.toExponential(9)[0]) && /^.\.0+e/.test(v.toExponential(9));
  return axis(title, { type: "logarithmic", min: least / 1.3, max: most * 1.3,
    ticks: { callback: v => isLabelled(v) ? format(v) : "", autoSkip: false, align: "inner" } });
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

/* Places around a mark, the best first: { x, y, w, h } of the text. */
function placesAround(mark, w, h) {
  const gap = 10;
  const { x, y } = mark;
  const beside = [[x + gap, y - h / 2], [x - gap - w, y - h / 2]];
  const around = [[x - w / 2, y - gap - h], [x - w / 2, y + gap], [x + gap / 2, y - gap - h], [x - gap / 2 - w, y - gap - h],
    [x + gap / 2, y + gap], [x - gap / 2 - w, y + gap]];
  return (mark.raw.isOnLine ? [...around, ...beside] : [...beside, ...around]).map(([left, top]) => ({ x: left, y: top, w, h }));
}

/* The first place that is free of texts and marks, or else of texts and labelled marks. */
function freePlace(places, taken, area) {
  const inside = places.filter(at => at.x >= area.left && at.x + at.w <= area.right && at.y >= area.top && at.y + at.h <= area.bottom);
  const isFree = list => at => !list.some(other => overlaps(at, other));
  return inside.find(isFree([...taken.marks, ...taken.texts])) || inside.find(isFree(taken.texts));
}

function placeText(ctx, mark, lines, taken, area) {
  ctx.font = `${mark.raw.isStrong ? "600 " : ""}${isNarrow() ? 11 : 12}px system-ui, sans-serif`;
  const w = Math.max(...lines.map(line => ctx.measureText(line).width));
  const box = freePlace(placesAround(mark, w, lines.length * 14), taken, area);
  if (!box) return false;
  taken.texts.push(box);
  ctx.fillStyle = mark.raw.isStrong ? colour.best : colour.ink;
  ctx.strokeStyle = colour.paper; /* a rim, so that lines do not cross letters */
  ctx.lineWidth = 4;
  lines.forEach((line, i) => {
    ctx.strokeText(line, box.x, box.y + 14 * i + 11);
    ctx.fillText(line, box.x, box.y + 14 * i + 11);
  });
  return true;
}

/* Writes beside marks; where there is no room, the last line alone: the number in the list below. */
const besideMarks = { id: "besideMarks", afterDatasetsDraw(chart) {
  const all = marksOf(chart);
  const marks = all.filter(m => m.raw.lines);
  if (marks.length === 0) return;
  const { ctx } = chart;
  const area = { left: chart.chartArea.left + 2, right: chart.width, top: 0, bottom: chart.chartArea.bottom };
  const boxes = list => list.map(m => ({ x: m.x - 6, y: m.y - 6, w: 12, h: 12 }));
  const taken = { marks: boxes(all), texts: boxes(marks) };
  ctx.save();
  ctx.textAlign = "left";
  ctx.lineJoin = "round";
  for (const mark of marks)
    if (!placeText(ctx, mark, mark.raw.lines, taken, area) && mark.raw.brief)
      placeText(ctx, mark, [mark.raw.brief], taken, area);
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

/* data.references: lines at a value of an axis, with a text. */
const references = { id: "references", afterDatasetsDraw(chart) {
  const { ctx, chartArea: area } = chart;
  for (const line of chart.data.references || []) {
    const at = chart.scales[line.axis].getPixelForValue(line.value);
    const stands = line.axis === "x";
    if (!(stands ? at >= area.left && at <= area.right : at >= area.top && at <= area.bottom)) continue;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = line.colour;
    ctx.setLineDash([6, 4]);
    ctx.beginPath();
    ctx.moveTo(stands ? at : area.left, stands ? area.top : at);
    ctx.lineTo(stands ? at : area.right, stands ? area.bottom : at);
    ctx.stroke();
    ctx.font = "600 12px system-ui, sans-serif";
    const w = ctx.measureText(line.text).width;
    ctx.textAlign = "left";
    ctx.fillText(line.text, stands ? Math.min(at + 5, area.right - w) : area.left + 5, stands ? area.top + 12 : at - 4);
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

/* `build` makes the configuration, again whenever colours or paper change. `text` says in words what the chart shows. */
function addChart(id, text, build, height) {
  const canvas = find(id);
  canvas.setAttribute("aria-label", text);
  canvas.textContent = text;
  drawn.push({ canvas, build, height });
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
