/* The table of all strategies: filters, sorting, and how many rows are shown. */
const FIRST_ROWS = isNarrow() ? 15 : 30;
/* Predicted, and then run. */
const isForetold = r => typeof r.error === "number";

/* A cell is a text, or a text and what stands below it in smaller letters. */
const ratesOf = (r, spread) => [guess(r, number(spread.median)), rangeOf(spread)];
const plusMinus = (value, error, format) => [format(value), error ? "\u00b1\u00a0" + format(error, 2) : ""];
const columns = [
  { name: "stored", key: r => representations.indexOf(r.stored), show: r => r.stored, kind: "words" },
  { name: "codec", key: r => r.codec || "", show: r => r.codec || "", kind: "words" },
  { name: "threads", key: r => r.threads, show: r => r.threads },
  { name: "shards", key: r => r.shards, show: r => r.shards, if: new Set(good.map(r => `${r.stored} ${r.codec} ${r.threads}`)).size < good.length },
  { name: "storage", key: r => r.total_stored_bytes,
    show: r => plusMinus(r.total_stored_bytes, r.total_stored_error_bytes, bytes) },
  { name: "preparation", key: r => r.total_preparation_s,
    show: r => plusMinus(r.total_preparation_s, r.total_preparation_error_s, seconds) },
  { name: "cold samples/s", key: rate, show: r => ratesOf(r, r.cold.samples_per_s) },
  { name: "predicted", key: r => isForetold(r) ? r.predicted_samples_per_s : null, if: good.some(isForetold),
    show: r => isForetold(r) ? [number(r.predicted_samples_per_s), signed(r.error)] : "" },
  { name: "limited by", key: r => r.cold_bound || "", show: r => r.cold_bound || "", kind: "words",
    if: good.some(r => r.cold_bound && r.cold_bound !== "unknown") },
  { name: "cached samples/s", key: cachedRate, show: r => ratesOf(r, r.cached.samples_per_s) },
  { name: "CPU ms/sample", key: r => r.cold.cpu_s_per_sample,
    kind: "detail",
    show: r => r.cold.cpu_s_per_sample === null ? "" : number(r.cold.cpu_s_per_sample * 1e3) },
  { name: "peak memory", kind: "detail", key: r => r.cold.peak_rss_bytes, show: r => bytes(r.cold.peak_rss_bytes) },
  { name: "cost", key: r => r.cost, show: costOf, if: hasCosts },
  { name: "score", key: r => r.score, show: r => isBeyond(r) ? "beyond the limits" : r.score.toFixed(3) },
].filter(c => c.if !== false);
const FIXED = 3; /* columns that failed strategies have, too */

/* The recommended one first, then its equals, then by cost, or else by score; what is beyond the limits has no score. */
const isBeyond = r => typeof r.score !== "number";
const rank = r => r === best ? -2 : r.status !== "ok" ? 9 : r.equal ? -1 : isBeyond(r) ? 1 : 0;
const byMerit = (a, b) => hasCosts ? a.cost - b.cost : b.score - a.score;
const byRank = [...all].sort((a, b) => rank(a) - rank(b) || byMerit(a, b) || 0);
const order = { column: -1, sign: 1 };
const filters = { stored: "", codec: "", threads: "", run: false, target: false };
let isWhole = all.length <= FIRST_ROWS;

/* ---- rows ---- */
function addCell(row, column, r) {
  const [text, below] = [].concat(column.show(r));
  const item = make("td", text, column.kind);
  item.setAttribute("role", "cell");
  item.dataset.name = column.name;
  if (below) item.append(make("span", below));
  row.append(item);
}

function addRow(body, r) {
  const row = body.insertRow();
  row.setAttribute("role", "row");
  row.className = r === best ? "best" : isMeasured(r) ? "" : "predicted";
  if (r.status === "ok") {
    for (const column of columns) addCell(row, column, r);
    return;
  }
  for (const column of columns.slice(0, FIXED)) addCell(row, column, r);
  const failure = make("td", r.failure, isUnseen(r) ? "words unseen" : "words failure");
  failure.setAttribute("role", "cell");
  failure.dataset.name = isUnseen(r) ? "not run" : "failed";
  failure.colSpan = columns.length - FIXED;
  row.append(failure);
}

/* ---- what is shown ---- */
function isWanted(r) {
  if (filters.stored && r.stored !== filters.stored) return false;
  if (filters.codec && (r.codec || "as files") !== filters.codec) return false;
  if (filters.threads && String(r.threads) !== filters.threads) return false;
  if (filters.run && !(r.status === "ok" && isMeasured(r))) return false;
  return !filters.target || (r.status === "ok" && rate(r) >= target);
}

function sorted(list) {
  if (order.column < 0) return list;
  const { key } = columns[order.column];
  /* Failed strategies and unknown figures are last in both directions. */
  const isKnown = r => (r.status === "ok" || order.column < FIXED) && key(r) !== null && key(r) !== undefined;
  const known = list.filter(isKnown).sort((a, b) => order.sign * (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0));
  return known.concat(list.filter(r => !isKnown(r)));
}

function fillRows() {
  const wanted = sorted(byRank.filter(isWanted));
  const shown = isWhole ? wanted : wanted.slice(0, FIRST_ROWS);
  const body = find("rows");
  body.replaceChildren();
  for (const r of shown) addRow(body, r);
  setText("shown", `${shown.length} of ${number(all.length)} strateg${all.length === 1 ? "y" : "ies"} shown`);
  find("more").hidden = shown.length === wanted.length;
  setText("more", `Show all ${number(wanted.length)}`);
  [...find("head").rows[0].cells].forEach((cell, i) => {
    if (i === order.column) cell.setAttribute("aria-sort", order.sign > 0 ? "ascending" : "descending");
    else cell.removeAttribute("aria-sort");
  });
}

/* ---- controls ---- */
function addHead() {
  const row = find("head").insertRow();
  row.setAttribute("role", "row");
  columns.forEach((column, i) => {
    const cell = make("th", undefined, column.kind);
    cell.scope = "col";
    cell.setAttribute("role", "columnheader");
    const button = make("button", column.name);
    button.type = "button";
    button.title = `Sort by ${column.name}`;
    button.addEventListener("click", () => {
      order.sign = order.column === i ? -order.sign : 1;
      order.column = i;
      fillRows();
    });
    cell.append(button);
    row.append(cell);
  });
}

function addChoice(name, title, values, label = x => x) {
  if (values.length < 2) return;
  const select = make("select");
  select.name = name;
  select.append(new Option("all", ""));
  for (const value of values) select.append(new Option(label(value), value));
  select.addEventListener("change", () => { filters[name] = select.value; fillRows(); });
  const box = make("label", title + " ");
  box.append(select);
  find("filters").append(box);
}

function addSwitch(name, title) {
  const input = make("input");
  input.type = "checkbox";
  input.name = name;
  input.addEventListener("change", () => { filters[name] = input.checked; fillRows(); });
  const box = make("label");
  box.append(input, " " + title);
  find("filters").append(box);
}

function startTable() {
  addHead();
  const values = of => [...new Set(all.map(of))];
  addChoice("stored", "Stored", representations.filter(s => all.some(r => r.stored === s)));
  addChoice("codec", "Codec", values(r => r.codec || "as files"));
  addChoice("threads", "Threads", values(r => r.threads).sort((a, b) => a - b));
  if (all.some(r => !isMeasured(r))) addSwitch("run", "only those that were run");
  if (target) addSwitch("target", `only ${perSecond(target)} or more`);
  find("filters").addEventListener("submit", event => event.preventDefault());
  find("more").addEventListener("click", () => { isWhole = true; fillRows(); });
  const runs = good.some(r => r.cold.samples_per_s.min !== null);
  setText("strategies-text", "Stored: the representation. " +
    (runs ? "Speeds are medians; below them the least and the most of the runs. " : "") +
    "Storage and preparation are for the whole source, with half the 95 % interval. " +
    (good.every(isMeasured) ? "" : "\u2248 marks predictions. "));
  find("strategies-text").append(make("span", "The headings sort.", "by-heading"));
  fillRows();
}
