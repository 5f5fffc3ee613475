/* The head of the report: what to do, why, how sure that is, and what else there is. */

/* The steps before and after the stored representation. */
function stepsAround(stored) {
  const steps = sweep.pipeline.steps || [];
  const last = steps.findIndex(s => s.yields === stored);
  const names = list => list.map(s => s.step).join(", ");
  return { once: names(steps.slice(0, last + 1)), always: names(steps.slice(last + 1)) };
}

/* What stands before the advice, if it is not what was asked for. */
function reservation() {
  const limits = sweep.recommendation.limits;
  const { most_stored_bytes: stored, most_preparation_s: prepared } = sweep.options;
  const none = exceedsLimits(best) ? "None keeps the limits, and none" : stored || prepared ? "None within the limits" : "None";
  if (limits === "misses target") return `${none} reaches ${number(target)} samples/s. The nearest: `;
  return limits === "exceeds limits" ? "None keeps the limits. Without them: " : "";
}

function headline() {
  const reading = best.threads === 0 ? "without threads" : `with ${threadsOf(best)}`;
  const codec = best.codec === "none" ? "uncompressed" : `compressed with ${best.codec}`;
  const advice = isStored(best) ? `Store the samples as \u201c${best.stored}\u201d, ${codec}; read them ${reading}.`
    : `Store nothing: read the files as they are, ${reading}.`;
  const before = reservation();
  return before ? before + advice[0].toLowerCase() + advice.slice(1) : advice;
}

function fillWay() {
  const { once, always } = stepsAround(best.stored);
  const box = (title, text, kind) => {
    const item = make("li", undefined, kind);
    item.append(make("b", title), make("span", text));
    find("way").append(item);
  };
  if (isStored(best)) {
    box("Once", once || "nothing is computed");
    box("Stored", `${best.stored}, ${codecOf(best)}, in ${best.shards} file${plural(best.shards)}`, "stored");
  } else {
    box("Once", "nothing");
    box("Stored", "the source's files, as they are", "stored");
  }
  box("In every epoch", always || "nothing is left to compute");
}

/* ---- figures of the recommended strategy ---- */
function tile(name, figure, below, kind) {
  const item = make("div", undefined, kind);
  item.append(make("dt", name), make("dd", figure, "figure"));
  if (below) item.append(make("dd", below, "below"));
  find("tiles").append(item);
}

function speedBelow() {
  const parts = [];
  const raw = unprocessed(best);
  if (raw && raw !== best) {
    const ratio = rate(best) / rate(raw);
    parts.push(compared(ratio, "more than", "less than", "as many as") +
      ` the unprocessed files ${onThreads(raw)} (${guess(raw, perSecond(rate(raw)))})`);
  }
  const range = rangeOf(best.cold.samples_per_s);
  if (range) parts.push(`${range} in ${best.cold.runs.length} runs`);
  if (!isMeasured(best)) parts.push("predicted, not run");
  else if (typeof best.error === "number") parts.push(`predicted: ${number(best.predicted_samples_per_s)}`);
  return parts.join("; ");
}

/* As the reason has it, from the same figure. */
function targetTile() {
  const { slowest_samples_per_s: slowest, limits } = sweep.recommendation;
  const goal = target * (1 + sweep.options.headroom);
  const missed = limits === "misses target";
  const ratio = slowest / target;
  const apart = ratio < 3 ? `${Math.round(Math.abs(ratio - 1) * 100)}${NBSP}% ${ratio < 1 ? "below" : "above"} it`
    : `${Math.round(ratio)} times the target`;
  const whose = !isMeasured(best) ? "by its prediction less the uncertainty, it is"
    : slowest > best.cold.samples_per_s.min && best.cold.runs.length > 1
      ? "its slowest run, counted as a tenth below the median at most, is" : "its slowest run is";
  const lacking = missed && ratio >= 1 && slowest < goal ? `, less than its headroom of ${percent(sweep.options.headroom)}` : "";
  tile(`Target ${perSecond(target)}`, missed ? "missed" : "reached", `${whose} ${apart}${lacking}`, missed ? "missed" : "");
}

/* How far off the time of preparing may be. An error that is larger than the time would reach below zero. */
function preparationMargin() {
  const error = best.total_preparation_error_s, time = best.total_preparation_s;
  if (!error) return "";
  return error < time ? `\u00b1 ${seconds(error, 2)}` : `${seconds(time + error, 2)} at most`;
}

function fillTiles() {
  tile("Speed from storage (cold)", `${number(rate(best))} samples/s`, speedBelow());
  if (target) targetTile();
  tile("Speed from memory (cached)", `${number(cachedRate(best))} samples/s`, rangeOf(best.cached.samples_per_s));
  const ratio = best.total_stored_bytes / sweep.source.bytes;
  const about = best.total_stored_error_bytes ? `\u00b1 ${bytes(best.total_stored_error_bytes, 2)}; ` : "";
  tile("Storage for the whole source", bytes(best.total_stored_bytes),
    isStored(best) ? `${about}${Math.abs(ratio - 1) < .005 ? "as much as" : `${number(ratio)} times`} the source` : "the source itself");
  const margin = preparationMargin();
  tile("Preparation, once", isStored(best) ? seconds(best.total_preparation_s) : "none",
    isStored(best) ? `${margin && margin + "; "}of the whole source` : "");
  if (hasCosts) tile("Cost", costOf(best), "by the prices that were given");
}

/* ---- how sure ---- */
/* Could more rounds with it change the choice? */
function isOpen(rival, confidence) {
  if (confidence.by === "target") return rival.standing === "unknown";
  if (rival.result === sweep.recommendation.result) return rival.standing !== "equal";
  return typeof rival.ratio_max !== "number" || rival.ratio_max > 1 / (1 - confidence.same);
}

/* The position of what the recommended strategy could not be told apart from: by runs, or as it was not run. With a target: of the first of
 * which it is open whether it reaches that; they are in the order in which they would be chosen. */
function rivalOf(confidence) {
  const recommended = sweep.recommendation.result;
  const notRun = confidence.not_run || [];
  if (notRun.includes(recommended)) return undefined;
  if (notRun.length > 0 && !confidence.rivals.some(r => isOpen(r, confidence))) return notRun[0];
  const open = confidence.rivals.find(r => isOpen(r, confidence));
  if (confidence.by === "target") return open ? open.result : notRun[0];
  if (!open && confidence.left_out === 0) return notRun[0];
  if (confidence.leader && confidence.leader.result !== recommended) return confidence.leader.result;
  const most = r => typeof r.ratio_max === "number" ? r.ratio_max : Infinity;
  const unknown = confidence.rivals.filter(r => r.standing === "unknown" && r.result !== recommended);
  const nearest = unknown.sort((a, b) => most(b) - most(a))[0]; // as in the reason
  return nearest ? nearest.result : notRun[0];
}

/* What makes all figures doubtful stands at the head, too. */
function fillDisturbed() {
  const found = sweep.notes.filter(note => DISTURBANCES.some(begin => note.startsWith(begin)));
  if (found.length === 0) return;
  setText("disturbed", keepUnits(`The machine was busy: ${found.join("; ")}.`));
  show("disturbed");
}

function fillSure() {
  const confidence = sweep.confidence;
  if (!confidence) return;
  const rival = confidence.is_decided ? undefined : rivalOf(confidence);
  setText("sure", confidence.is_decided ? "Decided" : undecided(confidence, rival));
  document.querySelector(".answer").classList.toggle("undecided", !confidence.is_decided);
  setText("sure-text", sureText(confidence, rival));
  show("sure-part");
}

function undecided(confidence, rival) {
  if (rival === undefined) return "Undecided";
  if (confidence.by !== "target") return `Undecided between ${nameOf(best)} and ${nameOf(all[rival])}`;
  const isReached = sweep.recommendation.limits !== "misses target";
  return `Undecided: ${rival === sweep.recommendation.result ? "it" : nameOf(all[rival])} may reach the target` +
    (rival !== sweep.recommendation.result && isReached ? ", too" : "");
}

/* What can be lost by taking the one or the other. A ratio is over the leader; of costs, it is that of the leader's to its own. */
function stakes(confidence, rival) {
  const seen = confidence.rivals.find(r => r.result === rival);
  if (!seen || typeof seen.ratio_max !== "number") return "";
  const { ratio_min: least, ratio_max: most } = seen;
  return " Whichever of the two you take, you " + (confidence.by === "cost" ? `pay ${percent(Math.max(most, 1 / least) - 1)} more`
    : `lose ${percent(Math.max(1 - 1 / most, 1 - least))}`) + " at most.";
}

/* Have rounds told nothing? Then more may. */
function moreRounds(confidence) {
  return confidence.rivals.some(r => typeof r.ratio_min === "number") ? ""
    : ` More rounds would (${sweep.is_stopped ? "the same command with --resume" : "--decide-time"}).`;
}

/* Why it is undecided. */
function doubt(confidence, rival, same) {
  const notRun = confidence.not_run || [];
  if (notRun.includes(sweep.recommendation.result))
    return "The recommended strategy was not run: its figures are predictions.";
  if (rival === undefined && confidence.left_out === 0 && all.some(isUnseen))
    return "The sweep was stopped before it had looked at all: what is left may be the better choice.";
  if (confidence.by === "score" && !(sweep.options.weights.throughput > 0))
    return "Times of preparation vary, and rounds do not measure them.";
  if (confidence.by === "target") return doubtOfTarget(confidence, rival);
  if (rival === undefined && confidence.start_part !== undefined && confidence.start_part !== 0)
    return "Epochs were short, and " + (confidence.start_part === null ? "what starts them counted in full"
      : `their start-up counted for ${percent(confidence.start_part)}`) +
      ". More --samples, more --run-time or more room on the disk would tell what an epoch of all samples is.";
  if (notRun.includes(rival))
    return `${nameOf(all[rival])} was not run, and by its prediction it may be the better choice` +
      (notRun.length > 1 ? `, as may ${number(notRun.length - 1)} more. ` : ". ") + `Differences of up to ${same} do not count.`;
  return `A repeated sweep may recommend ${rival !== undefined ? nameOf(all[rival]) : "another one"}: the runs do not tell ` +
    `them apart. Differences of up to ${same} do not count.${stakes(confidence, rival)}${moreRounds(confidence)}`;
}

function doubtOfTarget(confidence, rival) {
  const notRun = confidence.not_run || [];
  if (rival === undefined) return "Others come near the target, and were not measured again.";
  if (notRun.includes(rival))
    return `${nameOf(all[rival])} was not run. By its prediction it may reach the target and its headroom, and would be chosen instead then.`;
  const whose = rival === sweep.recommendation.result ? "it" : `${nameOf(all[rival])}, which would be chosen instead,`;
  return `The runs do not tell whether ${whose} reaches the target and its headroom.${moreRounds(confidence)}`;
}

function sureText(confidence, rival) {
  const rounds = confidence.rounds > 0
    ? `Those near the best were run in turn, in ${confidence.rounds} round${plural(confidence.rounds)}. ` : "";
  const same = percent(confidence.same);
  if (!confidence.is_decided)
    return rounds + doubt(confidence, rival, same);
  const error = percent(confidence.error);
  if (confidence.rivals.length === 0)
    return rounds + (confidence.by === "target" ? "No strategy that would be chosen instead comes near the target."
      : `No other strategy comes near it in its runs, or may be better by more than ${same} by its prediction.`);
  return `${rounds}A repeated sweep would recommend the same, with an error of ${error} at most` +
    (confidence.by === "target" ? "." : `; differences of up to ${same} do not count.`);
}

/* ---- what to do ---- */
function copyButton(text, pre) {
  const button = make("button", "Copy", "copy");
  button.type = "button";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(pre);
      button.textContent = "Selected";
    }
  });
  return button;
}

function command(title, text) {
  const item = make("li", title);
  if (text) {
    const pre = make("pre");
    pre.append(...text.split(/(?<= )/).map(word => make("span", word))); /* lines break between words */
    const line = make("div", undefined, "line");
    line.append(pre, copyButton(text, pre));
    item.append(line);
  }
  find("commands").append(item);
}

function fillCommands() {
  const advice = sweep.recommendation;
  if (advice.write_command) {
    const margin = preparationMargin();
    command(`Prepare the dataset, once. It takes about ${seconds(best.total_preparation_s, 2)}${margin && ` (${margin})`} and ` +
      `${bytes(best.total_stored_bytes, 2)} of storage.`, advice.write_command);
  }
  command("Read it, and see that it is as fast where you train.", advice.load_command);
  command("Train on it: with --format npy instead of null, on a pipe into the trainer, or with the Python package.");
}

/* ---- the others ---- */
/* As the terminal has it: the source is there anyway. */
function storageBeside(r) {
  if (!isStored(r)) return "none";
  return isStored(best) ? compared(r.total_stored_bytes / best.total_stored_bytes, "more", "less", "as much") : bytes(r.total_stored_bytes);
}

function fillOthers() {
  const next = (sweep.recommendation.runners_up || []).slice(0, 4).map(i => all[i]);
  if (next.length > 0) {
    const cost = r => hasCosts ? [guess(r, compared(r.cost / best.cost, "more", "less", "as much"))] : [];
    fillTable("runners", ["Strategy", "Speed", "Storage", "Preparation", ...(hasCosts ? ["Cost"] : [])], next.map(r => [nameOf(r),
      guess(r, compared(rate(r) / rate(best), "faster", "slower", "as fast")),
      storageBeside(r),
      seconds(r.total_preparation_s, 2), ...cost(r)]), () => false);
    find("runners").classList.toggle("priced", hasCosts);
    show("runners-part");
  }
  const questions = joinMissed(sweep.what_if || []);
  if (questions.length > 0) {
    fillTable("whatif", ["Question", "Answer", ...(hasCosts ? ["Cost, prices as given"] : [])], questions.map(q =>
      [keepUnits(q.if[0].toUpperCase() + q.if.slice(1)), answerTo(q), ...(hasCosts ? [q.is_other ? costOf(all[q.result]) : ""] : [])]),
    () => false);
    show("whatif-part");
  }
  const shown = [...next, ...questions.filter(q => q.is_other).map(q => all[q.result])];
  if (!shown.every(isMeasured)) show("others-text");
  if (next.length + questions.length > 0) show("others-part");
}

/* All that no strategy can is one question. Where the target is missed anyway, the nearest one is of no interest. */
function joinMissed(questions) {
  const misses = sweep.recommendation.limits === "misses target";
  const isOnlyMissed = q => q.is_missed && (!q.is_other || misses);
  const missed = questions.filter(isOnlyMissed);
  if (missed.length < 2) return questions;
  const joined = { ...missed[0], if: missed.map(q => q.if).join("; "), is_other: false };
  return [...questions.filter(q => !isOnlyMissed(q)), joined];
}

function answerTo(question) {
  const other = all[question.result];
  if (question.is_missed) return "No strategy can" + (question.is_other ? `; the nearest is ${nameOf(other)}` : "");
  if (!question.is_other) return "The same";
  return `${nameOf(other)}: ${guess(other, perSecond(rate(other)))}, ${isStored(other) ? bytes(other.total_stored_bytes, 2) : "nothing stored"}`;
}

/* ---- what was measured ---- */
function fact(name, value) {
  if (!value) return;
  find("facts").append(make("dt", name), make("dd", value));
}

function storageFact(storage) {
  const parts = [];
  if (storage.bytes_per_s) parts.push(`${bytes(storage.bytes_per_s)}/s`);
  if (storage.bytes_per_s_per_thread) parts.push(`${bytes(storage.bytes_per_s_per_thread)}/s a thread`);
  if (storage.reads_per_s) parts.push(`${number(storage.reads_per_s)} reads/s`);
  if (storage.latency_s) parts.push(`${seconds(storage.latency_s)} latency`);
  if (!parts.length) return "not known";
  return parts.join(", ") + (storage.is_given ? ", as given" : ", as probed");
}

function fillFacts() {
  if (failed.length > 0)
    find("notes").append(make("li", `${failed.length} of ${all.length} strategies failed; the table says why`));
  for (const note of sweep.notes) find("notes").append(make("li", keepUnits(note)));
  const source = sweep.source;
  fact("Source", `${number(source.samples)} sample${plural(source.samples)}, ${bytes(source.bytes)}: ${source.paths.join(", ")}`);
  fact("Sample", `${number(source.measured_samples)} sample${plural(source.measured_samples)}, ${bytes(source.measured_bytes)}`);
  fact("Machine", `${sweep.machine.cpu_model}, ${sweep.machine.cpus} CPU${plural(sweep.machine.cpus)}, ` +
    `${bytes(sweep.machine.memory_bytes)} of memory, ${sweep.machine.kernel}, ${sweep.machine.filesystem}`);
  if (model && model.storage) fact("Storage", storageFact(model.storage));
  const fewest = Math.min(...good.filter(isMeasured).map(r => r.cold.runs.length));
  fact("Runs", `${fewest < sweep.options.runs ? "up to " : ""}${sweep.options.runs} of each strategy that was run`);
  fact("Started", `${sweep.started}; took ${seconds(sweep.elapsed_s)}; Presto ${sweep.tool_version}`);
}

function fillSteps() {
  const steps = (model && model.steps || []).filter(s => s.mean_s > 0);
  if (steps.length === 0) return;
  fillTable("steps", ["Step", "Mean", "Median", "90 % stay below", "Longest"],
    steps.map(s => [s.step || (s.stage === "all" ? "all together" : s.stage), seconds(s.mean_s), seconds(s.median_s),
      seconds(s.p90_s), seconds(s.most_s)]), i => i > 0);
  show("steps-part");
}

/* How many ways were compared, and how. */
function fillTried() {
  const run = good.filter(isMeasured).length, predicted = good.length - run, unseen = all.length - good.length - failed.length;
  const { samples, measured_samples: some } = sweep.source;
  const on = `on ${some < samples ? `${number(some)} of` : "all"} ${number(samples)} sample${plural(samples)}`;
  const parts = [[predicted, `${areOrIs(predicted)} predicted`], [failed.length, "failed"], [unseen, `${wereOrWas(unseen)} not looked at`]].filter(([count]) => count > 0)
    .map(([count, what]) => `, ${number(count)} ${what}`).join("");
  setText("tried", "How far should this data be prepared before it is stored, in which compression, and read by how many threads?" +
    (sweep.is_stopped ? "" : ` ${all.length === 1 ? "One way was" : `${number(all.length)} ways were`} compared ${on}` +
      (parts ? `: ${number(run)} ${wereOrWas(run)} run${parts}.` : ".")));
  if (!sweep.is_stopped) return;
  setText("stopped", `The sweep was stopped: ${number(run)} of ${number(all.length)} ways ${wereOrWas(run)} run ${on}${parts}. ` +
    "The same command with --resume goes on.");
  show("stopped");
}

function fillAnswer() {
  document.title = `Presto sweep: ${sweep.pipeline.name}`;
  setText("pipeline", sweep.pipeline.name);
  fillTried();
  setText("headline", headline());
  fillWay();
  fillTiles();
  /* A sentence a line. */
  for (const sentence of sweep.recommendation.reason.split(/(?<=[.)]) (?=[A-Z0-9])/))
    find("reason").append(make("li", keepUnits(sentence)));
  fillSure();
  fillDisturbed();
  fillCommands();
  fillOthers();
  fillFacts();
  fillSteps();
}
