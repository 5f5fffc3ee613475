/* The charts: each is left out if its figures are not in the results. */
const tooltipOf = write => ({ callbacks: { title: () => "", label: c => write(c) } });
const rangePair = s => s.min === null || s.min === undefined ? null : [s.min, s.max];
const barHeight = (rows, each = 38, extra = 90) => rows * each + extra;
const targetLine = on => target ? [{ axis: on, value: target, text: `target ${perSecond(target)}`, colour: colour.bad }] : [];

/* ---- speed against what it needs ---- */
/* Those that nothing beats in both: from the least need to the fastest. */
function frontOf(list, need) {
  const front = [];
  for (const r of [...list].sort((a, b) => need(a) - need(b) || rate(b) - rate(a)))
    if (front.length === 0 || rate(r) > rate(front[front.length - 1])) front.push(r);
  return front;
}

function listFront(id, front, need, format) {
  for (const r of front) {
    const item = make("li");
    const text = `${nameOf(r)}: ${guess(r, perSecond(rate(r)))}, ${format(need(r))}`;
    item.append(make(r === best ? "b" : "span", r === best ? text + " (recommended)" : text));
    find(id).append(item);
  }
}

function frontPoints(shown, front, need) {
  return shown.map(r => {
    const at = front.indexOf(r);
    const point = { x: need(r), y: rate(r), r };
    if (at < 0 && r !== best) return point;
    const mark = at < 0 ? "" : `${at + 1} `;
    const [first, second] = linesOf(r);
    return { ...point, lines: [mark + first, second], brief: mark.trim(), isStrong: r === best,
      weight: r === best ? 2 : 1 };
  });
}

function frontChart(shown, front, need, xAxis, format) {
  const points = frontPoints(shown, front, need);
  const fill = p => p.r === best ? colour.best : front.includes(p.r) ? colour.accent : colour.soft;
  const marks = { data: points, ranges: shown.map(r => front.includes(r) || r === best ? rangePair(r.cold.samples_per_s) : null),
    pointRadius: points.map(p => p.r === best ? 8 : front.includes(p.r) ? 5.5 : 3.5),
    pointBackgroundColor: points.map(p => isMeasured(p.r) ? fill(p) : colour.paper),
    pointBorderColor: points.map(fill), pointBorderWidth: 1.5 };
  const line = { type: "line", data: front.map(r => ({ x: need(r), y: rate(r) })), borderColor: colour.accent,
    borderWidth: 1.5, pointRadius: 0, pointHitRadius: 0, stepped: "before" };
  const most = Math.max(target || 0, ...shown.map(r => r.cold.samples_per_s.max || rate(r)));
  return { type: "scatter", data: { datasets: [marks, line], references: targetLine("y") }, options: {
    scales: { x: xAxis(), y: tallRateAxis("samples/s, cold", { suggestedMax: most * 1.15 }) },
    plugins: { tooltip: tooltipOf(c => c.raw.r ? `${nameOf(c.raw.r)}: ${perSecond(c.raw.y)}, ${format(c.raw.x)}` : "") } } };
}

function addFront(kind, need, xAxis, format) {
  const shown = good.filter(r => isFinite(need(r)) && typeof need(r) === "number" && typeof rate(r) === "number");
  const front = frontOf(shown, need);
  listFront(`front-${kind}`, front, need, format);
  addChart(`pareto-${kind}`, `Samples per second against ${kind}; the list below has the ${front.length} on the line.`,
    () => frontChart(shown, front, need, () => xAxis(shown.map(need)), format));
}

const timeAxis = (values, none) => wideAxis("preparation, whole source", values, v => v === none ? "none" : seconds(v), none);

function addFronts() {
  if (good.some(r => !isMeasured(r))) show("hollow");
  addFront("storage", r => r.total_stored_bytes, v => wideAxis("stored, whole source", v, x => bytes(x)), bytes);
  /* What needs none has its place at the left end of a logarithmic axis. */
  const times = good.map(r => r.total_preparation_s).filter(s => s > 0);
  const none = times.length > 0 ? Math.min(...times) / 2 : 1;
  addFront("preparation", r => Math.max(r.total_preparation_s, none), v => timeAxis(v, none), s => s === none ? "none" : seconds(s));
}

/* ---- the time of a sample ---- */
function typicalWork(r) {
  const run = r.cold.runs.reduce((a, b) => !a ||
    Math.abs(b.samples_per_s - rate(r)) < Math.abs(a.samples_per_s - rate(r)) ? b : a, null);
  return run ? run.work : null;
}

/* One row a representation: the recommended strategy, or the best one that stores it on as many threads, or the model's figures. */
function workRows() {
  return representations.map(stored => {
    const of = good.filter(r => r.stored === stored && isMeasured(r) && typicalWork(r));
    const same = fastest(of.filter(r => r.threads === best.threads));
    const r = stored === best.stored && of.includes(best) ? best : same || fastest(of);
    if (r) return { lines: linesOf(r), work: typicalWork(r), isBest: r === best };
    const known = model && (model.stored || []).find(s => s.stored === stored);
    return known && { lines: [cut(stored), "predicted, uncompressed"], work: known.work, isBest: stored === best.stored };
  }).filter(Boolean);
}

/* Names of the parts, in the order of a sample's way; what is small everywhere is "other". */
function workParts(rows) {
  const nameOfPart = w => w.step || w.stage;
  const total = row => row.work.reduce((sum, w) => sum + (w.busy_s_per_sample || 0), 0);
  const names = [...new Set(rows.flatMap(row => row.work.map(nameOfPart)))];
  const cost = (row, name) => row.work.filter(w => nameOfPart(w) === name)
    .reduce((sum, w) => sum + (w.busy_s_per_sample || 0), 0);
  const share = name => Math.max(...rows.map(row => cost(row, name) / (total(row) || 1)));
  const large = names.filter(n => share(n) >= .03).sort((a, b) => share(b) - share(a)).slice(0, 9);
  const kept = names.filter(n => large.includes(n));
  const parts = kept.map(name => ({ name, costs: rows.map(row => cost(row, name)) }));
  const rest = rows.map((row, i) => total(row) - parts.reduce((sum, p) => sum + p.costs[i], 0));
  return rest.some(v => v > 1e-12) ? [...parts, { name: "other", costs: rest }] : parts;
}

function addWork() {
  const rows = workRows();
  const parts = rows.length > 0 ? workParts(rows) : [];
  if (parts.length === 0) return;
  show("work-part");
  const most = Math.max(...rows.map((_, i) => parts.reduce((sum, p) => sum + p.costs[i], 0)));
  const [unit, factor] = most < 1e-4 ? ["\u00b5s", 1e6] : most < 1 ? ["ms", 1e3] : ["s", 1];
  addChart("work", "Time of a worker for a sample, by step: " + rows.map((row, i) => `${row.lines.join(" ")} ` +
    seconds(parts.reduce((sum, p) => sum + p.costs[i], 0))).join("; "), () => ({ type: "bar",
    data: { labels: rows.map(row => row.lines.join(", ")), namesParts: true, datasets: parts.map((part, i) => ({ label: part.name,
      data: part.costs.map(v => v * factor), backgroundColor: part.name === "other" ? colour.soft : colour.parts[i],
      borderColor: colour.paper, borderWidth: 1, barPercentage: .75 })) },
    options: { indexAxis: "y", scales: { x: axis(`${unit} of worker time a sample`, { stacked: true }),
      y: { ...nameAxis(rows.map(row => row.isBest ? ["\u2714 " + row.lines[0], row.lines[1]] : row.lines)), stacked: true } },
    plugins: { legend: { display: true }, tooltip: tooltipOf(c => `${c.dataset.label}: ${number(c.raw)} ${unit}`) } } }),
    () => barHeight(rows.length, 46, 110));
}

/* ---- threads ---- */
function threadLine(r) {
  return good.filter(x => x.stored === r.stored && x.codec === r.codec && isMeasured(x) &&
    (x === r || x.shards === r.shards || x.shards === x.threads || !isStored(r))).sort((a, b) => a.threads - b.threads)
    .filter((x, i, list) => i === 0 || x.threads !== list[i - 1].threads);
}

function threadLines() {
  const lines = representations.map(stored => stored === best.stored ? best : fastestRun(good.filter(r => r.stored === stored)))
    .filter(Boolean).map(r => ({ r, points: threadLine(r) }));
  return lines.filter(line => line.points.length > 0);
}

function threadDataset(line, i) {
  const isBest = line.r === best;
  const tint = isBest ? colour.best : colour.parts[i % colour.parts.length];
  const last = line.points.length - 1;
  return { data: line.points.map((r, k) => ({ x: r.threads, y: rate(r), r, ...(k === last ? { isStrong: isBest,
    weight: isBest ? 2 : 1, isOnLine: true, lines: [cut(isStored(r) ? `${r.stored}, ${codecOf(r)}` : r.stored, 34)] } : {}) })),
    ranges: line.points.map(r => rangePair(r.cold.samples_per_s)), borderColor: tint, backgroundColor: tint,
    borderWidth: isBest ? 2.5 : 1.5, pointRadius: isBest ? 5 : 3.5, showLine: true, clip: 8 }; /* marks on the axis are whole */
}

const bounds = { cores: "its processors", storage: "the bandwidth of its storage", "storage reads": "the reads per second of its storage",
  memory: "the bandwidth of its memory", handover: "handing batches over", consumer: "the consumer" };

/* The least number of threads that comes within 3 % of the most that the model expects, if a quarter of the curve is level;
 * else it ends before it can be said where it is. */
function levelOf(curve) {
  const most = Math.max(...curve.map(p => p.cold_samples_per_s));
  const level = curve.find(p => p.cold_samples_per_s >= most * .97);
  return level.threads <= curve[curve.length - 1].threads * .75 ? level : null;
}

function threadsText(curve) {
  const text = "Samples per second, cold, by threads; the best codec of each representation.";
  if (curve.length === 0) return text;
  const level = levelOf(curve);
  const wall = level && bounds[level.cold_bound] ? `; its limit is ${bounds[level.cold_bound]}` : "";
  return `${text} The dashed line is what the model expects of the recommended one on a machine with as many processors` +
    (level ? `: more than ${level.threads} thread${plural(level.threads)} (${perSecond(level.cold_samples_per_s)}) do not make it ` +
      `faster${wall}.` : `: it still grows at ${curve[curve.length - 1].threads} threads.`);
}

const powersOfTwo = (least, most) => Array.from({ length: 32 }, (_, i) => 2 ** i).filter(v => v >= least && v <= most);

function addThreads() {
  const lines = threadLines();
  const curve = (model && model.curve || []).filter(p => typeof p.cold_samples_per_s === "number");
  const counts = new Set(lines.flatMap(line => line.points.map(r => r.threads)));
  if (counts.size < 2 && curve.length < 2) return;
  show("threads-part");
  setText("threads-text", threadsText(curve));
  const most = Math.max(...counts, ...curve.map(p => p.threads));
  const least = Math.min(Math.max(1, Math.min(...counts)), most / 2);
  const cores = sweep.machine.cpus;
  addChart("threads", threadsText(curve), () => {
    const datasets = lines.map(threadDataset);
    if (curve.length > 1)
      datasets.push({ data: curve.map(p => ({ x: p.threads, y: p.cold_samples_per_s, p })), borderColor: colour.best,
        borderDash: [6, 4], borderWidth: 2, pointRadius: 0, pointHitRadius: 6, showLine: true });
    const here = { axis: "x", value: cores, text: `this machine: ${cores}`, colour: colour.soft };
    return { type: "scatter", data: { datasets, references: [...targetLine("y"), ...(most > cores ? [here] : [])] },
      options: { scales: { x: most > 16
        ? axis("threads", { type: "logarithmic", min: least, max: most, ticks: { callback: v => v },
          afterBuildTicks: scale => { scale.ticks = powersOfTwo(least, most).map(value => ({ value })); } })
        : axis("threads", { min: Math.min(...counts), max: most + (curve.length ? 0 : .35), ticks: { stepSize: 1, callback: v => Number.isInteger(v) ? v : "" } }),
      y: tallRateAxis("samples/s, cold", target ? { suggestedMax: target * 1.1 } : {}) },
      plugins: { tooltip: tooltipOf(c => c.raw.r ? `${nameOf(c.raw.r)}: ${perSecond(c.raw.y)}`
        : `${c.raw.p.threads} threads: ${perSecond(c.raw.y)} expected`) } } };
  });
}

/* ---- codecs ---- */
const codecState = { stored: null };

/* One row a codec of that representation, on the recommended threads where possible. */
function codecRows(stored) {
  const of = good.filter(r => r.stored === stored && isStored(r));
  const threads = of.some(r => r.threads === best.threads) ? best.threads : Math.max(...of.map(r => r.threads));
  const seen = new Set();
  return of.filter(r => r.threads === threads && !seen.has(r.codec) && seen.add(r.codec))
    .sort((a, b) => a.total_stored_bytes - b.total_stored_bytes);
}

/* The codec and its figure. */
const codecLabels = (rows, figure) => rows.map(r => [(r === best ? "\u2714 " : "") + cut(r.codec), guess(r, figure(r))]);
/* Bars of predictions are hollow; the legend has the colour alone. */
const barsOf = (label, rows, value, tint, spread, isHollow = r => !isMeasured(r)) => ({ label, data: rows.map(value),
  backgroundColor: bar => bar.dataIndex !== undefined && isHollow(rows[bar.dataIndex]) ? colour.paper : tint,
  borderColor: tint, borderWidth: 1.5, barPercentage: .8, categoryPercentage: .8,
  ranges: spread ? rows.map(r => rangePair(spread(r))) : undefined });
/* Ranges of runs are inside the axis. */
const mostRate = rows => Math.max(...rows.flatMap(r => [r.cold, r.cached].map(e => e.samples_per_s.max || e.samples_per_s.median)));
const rateBars = rows => [barsOf("cold", rows, rate, colour.parts[0], r => r.cold.samples_per_s),
  barsOf("from the page cache", rows, cachedRate, colour.parts[1], r => r.cached.samples_per_s)];

function sizeChart() {
  const rows = codecRows(codecState.stored);
  const plain = rows.find(r => r.codec === "none");
  setText("codecs-size-head", `\u201c${codecState.stored}\u201d: stored for the whole source`);
  const saved = r => plain && r !== plain ? `, ${compared(r.total_stored_bytes / plain.total_stored_bytes, "more", "less", "as much")}` : "";
  return { type: "bar", data: { labels: rows.map(r => r.codec),
    datasets: [barsOf("stored", rows, r => r.total_stored_bytes, colour.parts[2])] }, options: { indexAxis: "y",
    scales: { x: axis("", { beginAtZero: true, ticks: { callback: v => bytes(v) } }),
      y: nameAxis(codecLabels(rows, r => bytes(r.total_stored_bytes))) },
    plugins: { legend: { display: true }, tooltip: tooltipOf(c => `${bytes(c.raw)}${saved(rows[c.dataIndex])}`) } } };
}

function speedChart() {
  const rows = codecRows(codecState.stored);
  setText("codecs-rate-head", `\u201c${codecState.stored}\u201d: samples per second ` +
    `${rows[0].threads === 0 ? "without threads" : onThreads(rows[0])}`);
  return { type: "bar", data: { labels: rows.map(r => r.codec), datasets: rateBars(rows) }, options: { indexAxis: "y",
    scales: { x: rateAxis("", { suggestedMax: mostRate(rows) }), y: nameAxis(codecLabels(rows, r => perSecond(rate(r)))) },
    plugins: { legend: { display: true }, tooltip: tooltipOf(c => `${c.dataset.label}: ${perSecond(c.raw)}`) } } };
}

function addCodecs() {
  const shown = representations.filter(stored => good.some(r => r.stored === stored && isStored(r)) && codecRows(stored).length > 1);
  if (shown.length === 0) return;
  show("codecs-part");
  codecState.stored = shown.includes(best.stored) ? best.stored : shown[0];
  const select = find("codecs-stored");
  for (const stored of shown) select.append(new Option(stored, stored, false, stored === codecState.stored));
  select.addEventListener("change", () => { codecState.stored = select.value; drawCharts(); });
  const height = () => barHeight(codecRows(codecState.stored).length, 36, 80);
  const said = (title, figures) => () => `${title} of ${codecState.stored} by codec: ` +
    codecRows(codecState.stored).map(r => `${r.codec} ${figures(r)}`).join("; ");
  addChart("codecs-size", said("Storage", r => bytes(r.total_stored_bytes)), sizeChart, height);
  addChart("codecs-rate", said("Samples per second, cold and from the page cache,",
    r => `${perSecond(rate(r))} and ${perSecond(cachedRate(r))}`), speedChart, height);
}

/* ---- caches ---- */
const memoryRate = r => r.predicted_memory_samples_per_s;
const MEMORY_PART = .75; /* of this machine's memory, as in the notes */

function memoryText(rows) {
  const needed = best.predicted_memory_bytes;
  const what = "A cache in memory (presto-load --cache memory:SIZE) keeps samples as they are before the first random step. From the second " +
    "epoch on, nothing is read, so the speed depends on the threads alone, not on what is stored; it is predicted (hollow bars). ";
  const fits = needed <= MEMORY_PART * sweep.machine.memory_bytes ? "which fits into" : "too much for";
  return rows.some(memoryRate) && needed
    ? `${what}For the whole source it takes ${bytes(needed)}, ${fits} this machine's ${bytes(sweep.machine.memory_bytes)}.` : "";
}

function cachedText() {
  const fits = best.total_stored_bytes <= sweep.machine.memory_bytes;
  return "The fastest strategy of each representation, and the recommended one. Cold: everything comes from storage, as in the first epoch. From the page " +
    "cache: the files are in memory already, as in later epochs if the dataset fits. The recommended one, " +
    `${bytes(best.total_stored_bytes)}, ${fits ? "fits" : "does not fit"} into this machine's memory of ${bytes(sweep.machine.memory_bytes)}.`;
}

function cachedChart(rows, hasMemory) {
  const bars = rateBars(rows);
  if (hasMemory)
    bars.push({ ...barsOf("from a cache in memory, predicted", rows, memoryRate, colour.parts[2], null, () => true),
      backgroundColor: colour.paper });
  const most = Math.max(mostRate(rows), ...(hasMemory ? rows.map(r => memoryRate(r) || 0) : []));
  return { type: "bar", data: { labels: rows.map(nameOf), datasets: bars }, options: { indexAxis: "y",
    scales: { x: rateAxis("samples/s", { suggestedMax: most }),
      y: nameAxis(rows.map(r => [(r === best ? "\u2714 " : "") + linesOf(r)[0], linesOf(r)[1]])) },
    plugins: { legend: { display: true }, tooltip: tooltipOf(c => `${c.dataset.label}: ${perSecond(c.raw)}`) } } };
}

function addCached() {
  const rows = representations.map(stored => stored === best.stored ? best : fastestRun(good.filter(r => r.stored === stored))).filter(Boolean);
  const memory = memoryText(rows);
  setText("cached-text", cachedText());
  if (memory) {
    setText("memory-text", memory);
    show("memory-text");
  }
  const said = r => `${nameOf(r)} ${perSecond(rate(r))}, ${perSecond(cachedRate(r))}` + (memory && memoryRate(r) ? `, ${perSecond(memoryRate(r))}` : "");
  addChart("cached", `Samples per second, cold, from the page cache${memory ? ", and predicted for a cache in memory" : ""}: ` +
    rows.map(said).join("; "), () => cachedChart(rows, memory !== ""), () => barHeight(rows.length, memory ? 62 : 50));
}

/* ---- predicted against measured ---- */
const states = [
  { name: "cold", error: r => r.error, measured: rate, predicted: r => r.predicted_samples_per_s, mark: "circle", part: 0 },
  { name: "cached", error: r => r.cached_error, measured: cachedRate, predicted: r => r.predicted_cached_samples_per_s, mark: "triangle", part: 1 },
];

/* What was predicted in that state before it was run, with the median and the worst error; null: nothing. */
function errorsOf(state) {
  const shown = good.filter(r => isMeasured(r) && typeof state.error(r) === "number");
  if (shown.length === 0) return null;
  const size = r => Math.abs(state.error(r));
  const sizes = shown.map(size).sort((a, b) => a - b);
  const middle = (sizes[(sizes.length - 1) >> 1] + sizes[sizes.length >> 1]) / 2;
  return { ...state, shown, middle, worst: shown.reduce((a, b) => size(b) > size(a) ? b : a) };
}

function errorMarks(state) {
  const tint = colour.parts[state.part];
  return { label: state.name, data: state.shown.map(r => ({ x: state.measured(r), y: state.predicted(r), r,
    ...(r === state.worst ? { lines: [`${state.name}: ${linesOf(r)[0]}`, linesOf(r)[1]], weight: 1 } : {}) })),
  pointStyle: state.mark, pointRadius: state.mark === "circle" ? 4.5 : 5.5, pointBackgroundColor: tint, pointBorderColor: colour.paper,
  backgroundColor: tint };
}

function errorsChart(kinds, ends) {
  const straight = (factor, width) => ({ type: "line", data: ends.map(v => ({ x: v, y: v * factor })), borderColor: colour.soft,
    borderWidth: width, pointRadius: 0, pointHitRadius: 0 });
  const state = item => kinds[item.datasetIndex];
  return { type: "scatter", data: { datasets: [...kinds.map(errorMarks), straight(1, 1.5), straight(1.25, .6), straight(.75, .6)] },
    options: { scales: { x: { ...wideAxis("measured samples/s", ends, short), min: ends[0], max: ends[1] },
      y: { ...wideAxis("predicted samples/s", ends, short), min: ends[0], max: ends[1] } },
    plugins: { legend: { display: true, labels: { usePointStyle: true, boxWidth: 9, filter: item => item.datasetIndex < kinds.length } },
      tooltip: tooltipOf(c => c.raw.r ? `${nameOf(c.raw.r)}, ${state(c).name}: measured ${perSecond(c.raw.x)}, predicted ` +
        `${perSecond(c.raw.y)}` : "") } } };
}

function addErrors() {
  const kinds = states.map(errorsOf).filter(Boolean);
  if (kinds.length === 0) return;
  const count = Math.max(...kinds.map(k => k.shown.length));
  setText("errors-text", `${count} strateg${count === 1 ? "y was" : "ies were"} predicted before they were run. On the thick line, prediction and ` +
    "measurement agree; the thin lines are 25 % off. Half of the errors are below the median.");
  fillTable("errors-table", ["Epochs", "Median error", "Worst error", "The worst"], kinds.map(k => [k.name, percent(k.middle),
    signed(k.error(k.worst)), nameOf(k.worst)]), () => false);
  show("errors-part");
  const values = kinds.flatMap(k => k.shown.flatMap(r => [k.measured(r), k.predicted(r)]));
  const ends = [Math.min(...values) / 1.3, Math.max(...values) * 1.3];
  addChart("errors", `Predicted against measured samples per second of ${count} strateg${count === 1 ? "y" : "ies"}. ` + kinds.map(k =>
    `${k.name}: median error ${percent(k.middle)}, worst ${signed(k.error(k.worst))} (${nameOf(k.worst)})`).join("; "),
  () => errorsChart(kinds, ends));
}

/* ---- how sure ---- */
const standings = { worse: "worse", equal: "equal", unknown: "not told apart", reaches: "reaches the target" };

function addRivals() {
  const confidence = sweep.confidence;
  /* Without an interval a ratio of a few rounds says nothing. */
  const shown = confidence ? confidence.rivals.filter(r => [r.ratio, r.ratio_min, r.ratio_max].every(v => typeof v === "number")) : [];
  if (shown.length === 0) { find("rivals").closest("figure").hidden = true; return; }
  /* In costs, a ratio is that of the leader's cost to its own. */
  const part = confidence.by === "cost" ? v => (1 / v - 1) * 100 : v => (v - 1) * 100;
  const than = confidence.by === "target" ? "the target and its headroom" : confidence.leader ? nameOf(all[confidence.leader.result]) : "the best";
  const what = confidence.by === "cost" ? "cost" : confidence.by === "score" && !isOnlySpeed ? "score or speed" : "speed";
  const rows = shown.map(r => ({ lines: [cut(all[r.result].stored), cut(linesOf(all[r.result])[1], 30), standings[r.standing] || r.standing],
    range: [part(r.ratio_min), part(r.ratio_max)].sort((a, b) => a - b), at: part(r.ratio) }));
  addChart("rivals", `Difference in ${what} to ${than}: ` + rows.map(r => `${r.lines.join(", ")}: ${number(r.at)} %`).join("; "),
    () => ({ type: "bar", data: { labels: rows.map(r => r.lines.join(", ")), datasets: [{ label: "difference", data: rows.map(r => r.at),
      ranges: rows.map(r => r.range), backgroundColor: colour.parts[0], barPercentage: .5 }] },
    options: { indexAxis: "y", scales: { x: axis([`% of difference in ${what} to`, than],
      { suggestedMin: Math.min(-5, ...rows.map(r => r.range[0])), suggestedMax: Math.max(5, ...rows.map(r => r.range[1])) }),
    y: nameAxis(rows.map(r => r.lines)) }, plugins: { tooltip: tooltipOf(c => `${number(c.raw)} %`) } } }),
    () => barHeight(rows.length, 60, 70));
}

fillAnswer();
startTable();
addRivals();
addFronts();
addErrors();
addWork();
addThreads();
addCodecs();
addCached();
/* The answer is on the screen before the charts are drawn. */
requestAnimationFrame(() => setTimeout(startCharts));
