# SPDX-License-Identifier: Apache-2.0
"""Pages of a sweep's report with other results than it had: with all that a sweep may say, with figures as wide as they get, and so on."""
import copy
import json
import pathlib
import re

RESULTS = re.compile(r'(<script type="application/json" id="results">)(.*?)(</script>)', re.DOTALL)
HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"><!-- & ' " + "verylongname" * 8


def disturbances():
    """The notes on what disturbed the runs, as C has them, and the page knows by how they begin."""
    root = pathlib.Path(__file__).resolve().parents[2]
    notes = root.joinpath("profile", "answer", "notes.c").read_text().split("note_busy_machine(", 1)[1].split("\n}", 1)[0]
    return [text.replace('"\n            "', "").replace("%.0f", "%d") for text in re.findall(r'"((?:[^"]|"\n +")*)",\n', notes)]


def with_results(page, results):
    text = json.dumps(results).replace("<", "\\u003c")
    return RESULTS.sub(lambda found: found.group(1) + text + found.group(3), page)


# ---- results of other kinds ----
def measured(results):
    return [r for r in results["results"] if r["status"] == "ok"]


def widen(results):
    """Figures of a large source on a fast machine."""
    for result in measured(results):
        result.update(threads=1024, total_stored_bytes=123.4e12, total_stored_error_bytes=98.7e12,
                      total_preparation_s=123456.0, total_preparation_error_s=98765.0)
        if result.get("predicted_samples_per_s") is not None:
            result["predicted_samples_per_s"] = 1234567.0
        if result.get("error") is not None:
            result["error"] = -0.9876
        result["score"] = 0.000123
        for state in ("cold", "cached"):
            result[state]["samples_per_s"] = {"median": 1234567.0, "min": 1111111.0, "max": 1999999.0}
            result[state].update(cpu_s_per_sample=0.000000123456, context_switches_per_s=123456.0, peak_rss_bytes=123.4e9)


def only_predict(result):
    result["measured"] = False
    for state in ("cold", "cached"):
        spread = result[state]["samples_per_s"]
        result[state].update(runs=[], cpu_s_per_sample=None, peak_rss_bytes=None, samples_per_s={**spread, "min": None, "max": None})


def run_once(result):
    """Of one run nothing is known of the spread."""
    for state in ("cold", "cached"):
        result[state]["samples_per_s"].update(min=None, max=None)
        del result[state]["runs"][1:]


def complete(results):
    """All that a sweep may say: a target, prices, predictions, a model, an undecided choice, what would change it."""
    best = results["recommendation"]["result"]
    others = [i for i, r in enumerate(results["results"]) if i != best and r["status"] == "ok"]
    for i, result in enumerate(measured(results)):
        rate = result["cold"]["samples_per_s"]["median"]
        result.update(predicted_samples_per_s=rate * 1.1, error=0.1 if i % 2 else None, cold_bound="storage reads", cost=12.5 + i,
                      measured=True, cached_error=-.01 * i if i % 2 else None)
        if result["stored"] == "unprocessed":
            run_once(result)
    for i in others[2::3]:
        only_predict(results["results"][i])
    results["results"][others[2]]["cold"]["samples_per_s"]["median"] *= 3  # the fastest is a prediction
    rates = [r["cold"]["samples_per_s"]["median"] for r in measured(results)]
    results["options"]["target_samples_per_s"] = sorted(rates)[len(rates) // 2]
    results["recommendation"].update(limits="keeps", runners_up=others[:5])
    rival = {"result": others[0], "runs": [], "standing": "unknown", "rounds": 12, "ratio": 0.99, "ratio_min": 0.95, "ratio_max": 1.03}
    results["confidence"] = {
        "is_decided": False, "by": "score", "same": 0.02, "error": 0.05, "rounds": 12, "spent_s": 9.5, "left_out": 0,
        "leader": {"result": best, "runs": []},
        "rivals": [{**rival, "result": others[1], "ratio_min": 0.98, "ratio_max": 1.01}, rival,  # the second one may be most ahead
                   {**rival, "result": others[3], "standing": "worse", "ratio": 0.9}]}
    results["results"][best]["total_preparation_error_s"] = 2 * results["results"][best]["total_preparation_s"]
    results["what_if"] = [
        {"if": "with twice the target, 4,000 samples/s and 10 % more in each run", "result": best, "is_other": False, "is_missed": True},
        {"if": "if storage were half as fast", "result": others[0], "is_other": True, "is_missed": False}]
    work = results["results"][best]["cold"]["runs"][0]["work"]
    step = {"step": "decode-image", "mean_s": 4e-3, "p10_s": 1e-3, "median_s": 3e-3, "p90_s": 9e-3, "most_s": 2e-2, "cpu_mean_s": 3e-3,
            "out_bytes": 1e5}
    results["model"] = {
        "cores": 2, "steps": [step], "stored": [{"stored": s, "work": work} for s in results["options"]["stored"]],
        "storage": {"is_given": True, "bytes_per_s": 1e9, "reads_per_s": 2e4, "latency_s": 1e-4},
        "curve": [{"threads": n, "cold_samples_per_s": rates[best] * min(n, 12), "cold_bound": "storage" if n > 12 else "cores"}
                  for n in range(1, 65)]}


def price(results):
    """By cost, which is another order than that of the scores; without a target."""
    best = results["recommendation"]["result"]
    for i, result in enumerate(results["results"]):
        result["cost"] = 10.0 if i == best else 100.0 - i
    results["options"]["target_samples_per_s"] = None
    results["recommendation"].update(limits="no limits")
    results["confidence"]["by"] = "cost"


def aim_at(results):
    """Undecided whether others reach the target, of which the first one would be chosen."""
    sure = results["confidence"]
    sure.update(by="target", leader=None)
    sure["rivals"][:] = [{**rival, "standing": "unknown", "ratio": None, "ratio_min": None, "ratio_max": None} for rival in sure["rivals"]]


def stop(results):
    """Stopped before all was looked at, on a busy machine."""
    results["is_stopped"] = True
    best = results["recommendation"]["result"]
    for i in [i for i in range(len(results["results"])) if i != best][::2]:
        kept = {k: results["results"][i][k] for k in ("stored", "codec", "threads", "shards")}
        results["results"][i] = {**kept, "status": "failed", "failure": "not measured: the sweep was stopped"}
    run_once(measured(results)[0])
    results["recommendation"]["runners_up"] = []
    results["what_if"] = []
    others = [i for i, r in enumerate(results["results"]) if r["status"] == "ok" and i != best]
    rival = {"result": others[0], "runs": [], "standing": "unknown", "rounds": 0, "ratio": None, "ratio_min": None, "ratio_max": None}
    results["confidence"].update(is_decided=False, by="score", rounds=0, not_run=[], leader={"result": best, "runs": []}, rivals=[rival])
    results["notes"] = [text % 93 for text in disturbances()]


def leave_out(results):
    """The runs tell all, and one that was not run may be better."""
    sure = results["confidence"]
    sure["rivals"] = [{**rival, "standing": "worse", "ratio_max": 0.95} for rival in sure["rivals"]]
    sure["not_run"] = [i for i, r in enumerate(results["results"]) if r.get("measured") is False]


def limit(results):
    """A limit of storage that some exceed: they have no score. The target is missed, and so are two others."""
    best = results["recommendation"]["result"]
    for i, result in enumerate(results["results"]):
        if i != best and i % 2 and result["status"] == "ok":
            result["score"] = None
    results["options"]["most_stored_bytes"] = 1e12
    results["recommendation"].update(limits="misses target")
    results["what_if"].append({"if": "if the storage were a tenth as fast", "result": results["what_if"][1]["result"], "is_other": True,
                               "is_missed": True})
    for n, point in enumerate(results["model"]["curve"]):
        point["cold_samples_per_s"] = 1000 * (n + 1)  # no end in sight


def exceed(results):
    """No strategy keeps the limits, and none reaches the target."""
    results["options"]["most_stored_bytes"] = 1


def keep_one(results):
    best = results["results"][results["recommendation"]["result"]]
    run_once(best)
    best["predicted_memory_samples_per_s"] = best["predicted_memory_bytes"] = None
    results["results"] = [best]
    results["recommendation"].update(result=0, runners_up=[])
    results.update(confidence=None, what_if=[])


def multiply(results, count=600):
    known = measured(results)
    results["results"] = [copy.deepcopy(known[i % len(known)]) for i in range(count)]
    for i, result in enumerate(results["results"]):
        result["threads"] = 1 + i // len(known)
        result["cold"]["samples_per_s"]["median"] *= 1 + i / count
        result["total_stored_bytes"] *= 1 + (i * 7919 % count) / count
    results["recommendation"].update(result=3, runners_up=[])
    results.update(confidence=None, what_if=[])


def fail_some(results):
    for i, result in enumerate(results["results"]):
        if i != results["recommendation"]["result"] and i % 2:
            kept = {k: result[k] for k in ("stored", "codec", "threads", "shards")}
            results["results"][i] = {**kept, "status": "failed", "failure": f"{HOSTILE}: the disk is full"}
    results["recommendation"]["runners_up"] = []
    results.update(confidence=None, what_if=[])


def rename(results):
    """Whatever users name: the pipeline, a representation, paths."""
    text = json.dumps(results)
    for name in (results["recommendation"]["stored"], "photos"):
        text = text.replace(json.dumps(name), json.dumps(HOSTILE)).replace(f"/{name}", f"/{json.dumps(HOSTILE)[1:-1]}")
    results.update(json.loads(text))
    results["pipeline"]["name"] = HOSTILE
    results["notes"].append(HOSTILE)
    results["recommendation"]["reason"] += " " + HOSTILE


KINDS = {"real": [], "wide": [widen], "complete": [complete], "complete-wide": [complete, widen], "limited": [complete, limit],
         "exceeding": [complete, limit, exceed], "priced": [complete, price], "aimed": [complete, aim_at], "stopped": [stop],
         "not-run": [complete, leave_out], "one": [keep_one], "many": [multiply],
         "failed": [fail_some], "hostile": [complete, rename]}


def make_pages(report, folder):
    page = report.read_text()
    for kind, changes in KINDS.items():
        results = json.loads(RESULTS.search(page).group(2))
        for change in changes:
            change(results)
        path = folder / f"{kind}.html"
        path.write_text(with_results(page, results))
        yield kind, path, results
