"use strict";
/* The results, how figures are written, and small helpers for elements. All text that comes from the
 * results is set as text, never as HTML. */
const sweep = JSON.parse(document.getElementById("results").textContent);
const all = sweep.results;
const good = all.filter(r => r.status === "ok");
const best = all[sweep.recommendation.result];
const representations = sweep.options.stored;
const { preparation: preparationWeight, storage: storageWeight } = sweep.options.weights;
const isOnlySpeed = !(preparationWeight > 0 || storageWeight > 0); /* of what the score is made */
const target = sweep.options.target_samples_per_s || null;
const model = sweep.model || null;

/* ---- strategies ---- */
const isMeasured = r => r.measured !== false;
/* Not failed, but not looked at before the sweep was stopped: as profile/sweep.c has it. */
const UNSEEN = "not measured: ";
const isUnseen = r => r.status !== "ok" && r.failure.startsWith(UNSEEN);
const failed = all.filter(r => r.status !== "ok" && !isUnseen(r));
const hasCosts = good.some(r => typeof r.cost === "number");
/* Notes on what disturbed the runs begin like this: as profile/answer/notes.c has them. */
const DISTURBANCES = ["other processes used ", "the host of this virtual machine gave "];
const rate = r => r.cold.samples_per_s.median;
const cachedRate = r => r.cached.samples_per_s.median;
const isStored = r => r.codec !== null;
const fastest = list => list.reduce((a, b) => !a || rate(b) > rate(a) ? b : a, null);
/* What is a figure of runs counts more than a prediction. */
const fastestRun = list => fastest(list.filter(isMeasured)) || fastest(list);

function plural(count) {
  return count === 1 ? "" : "s";
}
const wereOrWas = count => count === 1 ? "was" : "were";
const areOrIs = count => count === 1 ? "is" : "are";
const threadsOf = r => r.threads === 0 ? "inline" : `${r.threads} thread${plural(r.threads)}`;
const codecOf = r => r.codec === "none" ? "uncompressed" : r.codec || "as files";
const onThreads = r => r.threads === 0 ? "inline" : `on ${threadsOf(r)}`;
/* As the reason has it: "resized with lz4 on 2 threads". */
const nameOf = r => `${r.stored} ${!isStored(r) ? "files" : r.codec === "none" ? "uncompressed" : "with " + r.codec} ` +
  (isStored(r) && r.shards !== Math.max(r.threads, 1) ? `in ${r.shards} file${plural(r.shards)} ` : "") +
  onThreads(r);

/* The same, in lines that fit beside a mark or an axis. */
function cut(text, most = 22) {
  return text.length > most ? text.slice(0, most - 1) + "\u2026" : text;
}
const linesOf = r => [cut(r.stored), cut(isStored(r) ? `${codecOf(r)}, ${threadsOf(r)}` : threadsOf(r), 30)];

/* Would it store more, or take longer to prepare, than it may? The source is there anyway. */
function exceedsLimits(r) {
  const { most_stored_bytes: stored, most_preparation_s: prepared } = sweep.options;
  return isStored(r) && ((stored > 0 && r.total_stored_bytes > stored) || (prepared > 0 && r.total_preparation_s > prepared));
}

/* What reading the files as they are delivers: on the same threads as `r`, or else at its best. */
function unprocessed(r) {
  const raw = good.filter(x => !isStored(x));
  return raw.find(x => x.threads === r.threads) || fastest(raw);
}

/* ---- figures ---- */
const NBSP = "\u00a0"; /* a figure and its unit stay in one line */
function number(value, digits = 3) {
  if (value === null || value === undefined) return "";
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en");
  return Number(value.toPrecision(digits)).toString();
}
function bytes(value, digits = 3) {
  if (value === null || value === undefined) return "";
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (Math.abs(Number(value.toPrecision(digits))) >= 1000 && unit < units.length - 1) { value /= 1000; unit++; }
  return number(value, digits) + NBSP + units[unit];
}
function seconds(value, digits = 3) {
  if (value === null || value === undefined) return "";
  if (value >= 172800) return number(value / 86400, digits) + NBSP + "days";
  if (value >= 7200) return number(value / 3600, digits) + NBSP + "h";
  if (value >= 120) return number(value / 60, digits) + NBSP + "min";
  if (value >= 1 || value === 0) return number(value, digits) + NBSP + "s";
  return value >= 1e-3 ? number(value * 1e3, digits) + NBSP + "ms" : number(value * 1e6, digits) + NBSP + "\u00b5s";
}
const percent = (value, digits = Math.abs(value) >= 1 ? 3 : 2) => number(value * 100, digits) + NBSP + "%";
const signed = value => `${value < 0 ? "\u2212" : "+"}${percent(Math.abs(value))}`;
const perSecond = value => number(value) + "/s";
/* Predictions are marked. */
const guess = (r, text) => isMeasured(r) || text === "" ? text : "\u2248" + NBSP + text;

/* "9.0 times as much", "12 % more", "as much". */
function compared(ratio, more, less, same) {
  if (!isFinite(ratio)) return "";
  if (ratio >= 2) return `${number(ratio)} times ${same}`;
  const part = Math.round(100 * (ratio - 1));
  return part === 0 ? same : `${Math.abs(part)}${NBSP}% ${part > 0 ? more : less}`;
}

/* The range of several runs; empty for one run. */
const rangeOf = s => s.min === null || s.min === undefined ? "" : `${number(s.min)} to ${number(s.max)}`;

/* Text of the sweep, whose figures and units are parted by spaces. */
const keepUnits = text => text.replace(/(\d) (?=(?:[kMGTP]?B|[m\u00b5]?s|min|h|days|%)(?![\w]))/g, "$1" + NBSP);
const costOf = r => guess(r, number(r.cost));

/* ---- elements ---- */
const isNarrow = () => document.documentElement.clientWidth < 560;
const find = id => document.getElementById(id);
const show = id => { find(id).hidden = false; };
function setText(id, value) {
  find(id).textContent = value;
}
function make(kind, text, className) {
  const item = document.createElement(kind);
  if (text !== undefined) item.textContent = text;
  if (className) item.className = className;
  return item;
}
/* A table from texts; a column is a number where `isNumber` says so. */
function fillTable(id, names, rows, isNumber) {
  const table = find(id);
  const head = table.createTHead().insertRow();
  const kind = i => isNumber(i) ? "number" : "";
  names.forEach((name, i) => {
    const cell = make("th", name, kind(i));
    cell.scope = "col";
    head.append(cell);
  });
  const body = table.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    row.forEach((text, i) => line.append(make("td", text, kind(i))));
  }
}
