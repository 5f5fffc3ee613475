#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto-sweep: its table, its files, and that what it recommends can be run."""
import csv
import fcntl
import json
import os
import pty
import re
import shlex
import shutil
import statistics
import struct
import subprocess
import sys
import termios
import unittest

from cli import PIPELINE, ROOT, SANITIZED, TOOLS, frames, main, run
from sweep_case import SweepCase


class Sweep(SweepCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.out = cls.folder / "sweep"
        cls.done = run("presto-sweep", "-p", cls.pipeline, "--stored", "unprocessed,concatenated,resized", "--codecs",
                       "none,lz4", "--threads", "1,2", "--samples", "8", "--runs", "2", "--decide-time", "2", "--measure",
                       "-o", cls.out,
                       cls.make_photos())

    def test_the_table_fits_80_columns_and_has_every_strategy(self):
        self.assertEqual((self.done.returncode, self.done.stderr), (0, ""))
        text = self.done.stdout.decode()
        table, rest = text.split("Recommended:")
        self.assertEqual([line for line in table.splitlines() if len(line) > 80], [])
        rows = [line for line in table.splitlines() if line[2:].startswith(("unprocessed ", "concatenated ", "resized "))]
        self.assertEqual(len(rows), (1 + 2 * 2) * 2)
        with open(self.out / "results.csv", newline="") as results:
            equal = sum(result["equal"] == "1" for result in csv.DictReader(results))
        self.assertEqual(rows[0][0], "*")
        self.assertEqual(sorted(row[0] for row in rows[1:]), [" "] * (10 - equal) + ["="] * (equal - 1))
        scores = [float(row.split()[-1]) for row in rows[1:]]
        self.assertEqual(scores, sorted(scores, reverse=True))
        self.assertIn("presto-load", rest)
        self.assertIn("16 samples", table)

    def test_the_results_are_written_and_the_trials_are_gone(self):
        names = {path.name for path in self.out.iterdir()}
        self.assertEqual(names - {"report.html"}, {"results.csv", "results.json", "strategy.yaml",
                                                   "trials.jsonl"})
        listed = sorted(names - {"trials.jsonl"})
        self.assertIn(f"In {self.out}: {', '.join(listed)}\n", self.done.stdout.decode())
        results = json.loads((self.out / "results.json").read_text())
        self.assertEqual(results["schema"], 1)
        with open(self.out / "results.csv", newline="") as table:
            self.assertEqual(len(list(csv.DictReader(table))), 10)

    def test_one_run_has_no_spread(self):
        out = self.new("sweep")
        done = run("presto-sweep", "-p", self.pipeline, "--stored", "concatenated", "--codecs", "none", "--threads", "1",
                   "--samples", "4", "--runs", "1", "--run-time", "0", "-o", out, self.make_photos())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("+-", done.stdout.decode().split("* Recommended:")[0])
        with open(out / "results.csv", newline="") as table:
            (row,) = csv.DictReader(table)
        spread = {name: value for name, value in row.items() if "_min_" in name or "_max_" in name}
        self.assertEqual(set(spread.values()), {""}, spread)
        self.assertGreater(float(row["cold_samples_per_s"]), 0)
        rate = json.loads((out / "results.json").read_text())["results"][0]["cold"]["samples_per_s"]
        self.assertEqual((rate["min"], rate["max"]), (None, None))

    def test_the_commands_it_prints_run(self):
        lines = self.done.stdout.decode().splitlines()
        commands = [shlex.split(line) for line in lines[lines.index("Next:") + 1 :] if line.startswith("  presto-")]
        self.assertIn(len(commands), (1, 2))
        work = self.new("work")
        work.mkdir()
        for command in commands:
            done = subprocess.run([TOOLS / command[0], *command[1:]], cwd=work, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{self.photo_count} samples in", done.stderr.decode())

    def strategy(self, split, codec):
        """A sweep that can only choose this one; its strategy.yaml."""
        out = self.new("sweep")
        done = run("presto-sweep", "-p", self.pipeline, "--stored", split, "--codecs", codec, "--threads", "2",
                   "--samples", "4", "--runs", "1", "--run-time", "0", "-b", "4", "-o", out, self.make_photos())
        self.assertEqual(done.returncode, 0, done.stderr)
        return out / "strategy.yaml"

    def test_write_and_load_take_the_strategy(self):
        strategy = self.strategy("resized", "zstd:1")
        out = self.new()
        done = run("presto-write", "--strategy", strategy, "--json", "-o", out, self.make_photos())
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual((result["stored"], result["threads"], result["shards"]), ("resized", 2, 2))
        self.assertTrue(result["codec"].startswith("zstd"))
        stats = json.loads(self.load("--strategy", strategy, "--format", "null", "--json", out))
        self.assertEqual((stats["samples"], stats["threads"]), (self.photo_count, 2))
        other = self.new()
        done = run("presto-write", "--strategy", strategy, "-c", "none", "-s", "1", "-j", "1", "--json", "-o", other,
                   self.make_photos())
        result = json.loads(done.stdout)
        self.assertEqual((result["codec"], result["threads"], result["shards"]), ("none", 1, 1))

    def test_a_strategy_that_stores_nothing_loads_the_source(self):
        strategy = self.strategy("unprocessed", "none")
        done = run("presto-write", "--strategy", strategy, "-o", self.new(), self.make_photos())
        self.assert_fails(done, 1, "nothing to write")
        self.assertEqual(len(frames(self.load("-q", "--strategy", strategy, self.make_photos()))), self.photo_count)

    def test_a_strategy_file_that_is_nested_deeply_is_refused_at_once(self):
        file = self.new("deep.yaml")
        start = "schema: 1\npipeline: cv\nstored: resized\ncodec: none\nthreads: 1\nexpected: "
        for nested in ("[" * 500000, "{a: " * 200000, "\n" + "".join(" " * i + "a:\n" for i in range(1, 700))):
            file.write_text(start + nested)
            done = run("presto-load", "--strategy", file, "--format", "null", self.make_photos())
            self.assert_fails(done, 1, "deep.yaml", "more than 16 deep")

    def test_steps_that_drop_samples_in_every_epoch_leave_as_many_of_each_strategy(self):
        pipeline = self.new("some.yaml")
        pipeline.write_text(PIPELINE.replace("  - {step: center-pixels", "  - {step: filter, feature: label, in: [0], yields: some}\n  - {step: center-pixels"))
        for mode in ("--measure", "--confirm=0"):
            out = self.new("sweep")
            done = run("presto-sweep", "-q", "-p", pipeline, "--stored", "unprocessed,resized,some", "--codecs", "none", "--threads", "1,3",
                       "--runs", "1", "--run-time", "0", "--decide-time", "0", mode, "-o", out, self.make_photos())
            self.assertEqual(done.returncode, 0, done.stderr)
            results = json.loads((out / "results.json").read_text())["results"]
            delivered = results[0]["cold"]["runs"][0]["samples"]
            self.assertTrue(0 < delivered < self.photo_count)
            self.assertEqual({r["samples"] for r in results}, {delivered})
            # All are tried: what is stored before the filter holds all, and what is behind it those that it keeps.
            counts = {r["stored"]: r["records"]["count"] for r in results if r.get("records")}
            self.assertEqual(counts, {"resized": self.photo_count, "some": delivered})
            for r in results:
                self.assertAlmostEqual(r["total_stored_bytes"], r["stored_bytes"], delta=1)

    def test_steps_that_leave_out_all_samples_are_told(self):
        pipeline = self.new("none.yaml")
        pipeline.write_text("name: none\nsource: {type: files, match: [\"*.jpg\"], label: parent-folder}\nsteps:\n"
                            "  - {step: read-file, yields: concatenated}\n  - {step: filter, min-bytes: 1GiB, yields: large}\n")
        done = run("presto-sweep", "-p", pipeline, "--threads", "1", "--runs", "1", "-o", self.new(), self.make_photos())
        self.assert_fails(done, 1, f"the steps leave out all of {self.photo_count} samples")

    def test_a_strategy_file_with_an_error_names_its_line(self):
        path = self.new("strategy").with_suffix(".yaml")
        path.write_text("pipeline: cv\nsplitt: resized\n")
        for program in ("presto-write", "presto-load"):
            done = run(program, "--strategy", path, *(["-o", self.new()] if program == "presto-write" else
                                                      ["--format", "null"]), self.make_photos())
            self.assert_fails(done, 1, path.name, "line ")

    def test_json_prints_the_results(self):
        out = self.new("sweep")
        done = run("presto-sweep", "-p", self.pipeline, "--stored", "concatenated", "--codecs", "none", "--threads", "1",
                   "--samples", "4", "--runs", "1", "--run-time", "0.01", "--json", "-o", out, self.make_photos())
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads(done.stdout)
        self.assertEqual(results, json.loads((out / "results.json").read_text()))
        self.assertEqual((results["schema"], results["options"]["run_s"]), (1, 0.01))

    def test_arguments_are_checked(self):
        base = ["-p", self.pipeline, "-o", self.new()]
        for arguments, part in [(["--threads", "1,,2"], "empty entry"), (["--threads", "1,x"], "'x'"),
                                (["--weights", "1,2"], "three numbers"), (["--weights", "0,0,0"], "above 0"),
                                (["--weights", "a,0,1"], "'a'"), (["--codecs", "none,zst"], "zst"),
                                (["--stored", "nose"], "nose"), (["--runs", "0"], "'0'"),
                                (["--run-time", "-1"], "'-1'"), (["--run-time", "nan"], "'nan'"),
                                (["--confirm", "-1"], "'-1'"), (["--run-time", "3601"], "'3601'"),
                                (["--target", "fast"], "fast"),
                                (["--target", "0/s"], "above 0"), (["--max-storage", "1 elephant"], "elephant"),
                                (["--target", "500+5"], "500+5"), (["--target", "500/s+x%"], "'x'"),
                                (["--target", "500+-5%"], "'-5'"), (["--decide-time", "long"], "'long'"),
                                (["--target", "500/s", "--weights", "1,0,1"], "give one of them"),
                                (["--epochs", "9"], "prices only"), (["--months", "3"], "prices only"),
                                (["--on-error", "shrug"], "shrug")]:
            with self.subTest(arguments=arguments):
                self.assert_usage(run("presto-sweep", *base, *arguments, self.make_photos()), part)

    def test_options_say_what_they_take(self):
        for options, part in ((["--target", "500/min"], "alone or with /s"), (["--target", "1e3"], "alone or with /s"),
                              (["--target", "500/s+10"], "+10%"), (["--price-cpu", "3/min"], "alone or with /h"),
                              (["--max-prepare", "0h"], "above 0"), (["--max-prepare", "15m"], "15min"),
                              (["--max-prepare", "min"], "15min"), (["--max-prepare", "1e3"], "15min"), (["--max-prepare", "-5s"], "15min"),
                              (["--max-prepare", "5 s"], "15min"), (["--max-prepare", "1.2.3s"], "'1.2.3'"), (["--max-prepare", ""], "15min"),
                              (["--max-prepare", "1" * 40 + "h"], "15min"), (["--max-preparation", "5"], "max-preparation"), (["--epochs", "3"], "--price-accelerator"),
                              (["--force", "--resume"], "one of them")):
            with self.subTest(options=options):
                self.assert_usage(run("presto-sweep", "-p", self.pipeline, "-o", self.new(), *options, self.make_photos()), part)

    def test_a_pipeline_that_strategy_yaml_cannot_name_is_refused_first(self):
        odd = os.fsdecode(os.fsencode(self.new("odd")) + b"\xff.yaml")
        with open(odd, "w") as copy:
            copy.write(self.pipeline.read_text())
        out = self.new("sweep")
        done = run("presto-sweep", "-p", odd, "-o", out, self.make_photos())
        self.assertEqual(done.returncode, 2)
        self.assertIn("is not UTF-8", done.stderr)
        self.assertEqual(list(out.iterdir()), [])

    def test_the_seed_keeps_all_its_digits(self):
        seed = 2**64 - 1
        out = self.new("sweep")
        done = run("presto-sweep", "-p", self.pipeline, "--stored", "concatenated", "--codecs", "none", "--threads", "1",
                   "--samples", "2", "--runs", "1", "--run-time", "0", "--seed", seed, "--json", "-o", out,
                   self.make_photos())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["options"]["seed"], str(seed))
        self.assertIn(f"seed: {seed}\n", (out / "strategy.yaml").read_text())
        done = run("presto-load", "--strategy", out / "strategy.yaml", "-p", self.pipeline, "--format", "null", "--json",
                   self.make_photos())
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_progress_never_wraps(self):
        for columns in (5, 20, 80):
            master, slave = pty.openpty()
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            process = subprocess.Popen([TOOLS / "presto-sweep", "--measure", "-p", self.pipeline, "--stored", "concatenated,decoded",
                                        "--codecs", "none", "--threads", "1", "--samples", "8", "--runs", "2", "--run-time", "0",
                                        "--decide-time", "0", "-o", self.new("sweep"), self.make_photos()], stdout=subprocess.DEVNULL, stderr=slave)
            os.close(slave)
            seen = b""
            try:
                while part := os.read(master, 65536):
                    seen += part
            except OSError:  # the end of a terminal
                pass
            os.close(master)
            self.assertEqual(process.wait(), 0)
            lines = re.split(rb"[\r\n]", seen.replace(b"\x1b[K", b""))
            self.assertIn(b"[", seen)
            self.assertNotIn(b"ETA", seen)
            self.assertNotIn(b" 0 thr", seen)
            self.assertLess(max(len(line) for line in lines), columns)

    def test_the_default_predicts_and_runs_what_it_recommends(self):
        table, results = self.predicted(self.new("sweep"), "--confirm", "2")
        rows = [line for line in table.splitlines() if line[2:].startswith(("unprocessed ", "concatenated ", "resized "))]
        self.assertEqual([line for line in table.split("Next:")[0].splitlines() if len(line) > 80], [])
        self.assertRegex(table, r"predict +measured +error")
        asked = {what_if["if"].split(",")[0]: what_if["result"] for what_if in results["what_if"]}
        for question in ("if storage were half as fast", "if storage were twice as fast", "with twice the processors"):
            self.assertLess(asked[question], len(results["results"]))
        self.assertEqual(len(results["results"]), 3 + 2 * 3 * 3)
        here = [r for r in results["results"] if r["threads"] <= 2]
        for result in results["results"]:
            self.assertGreater(result["predicted_samples_per_s"], 0)
            self.assertGreater(result["predicted_cached_samples_per_s"], 0)
            self.assertGreater(result["predicted_storage_bytes"], 0)
            self.assertEqual(result["measured"], len(result["cold"]["runs"]) > 0)
            if result["measured"]:
                self.assertEqual(result["cold_samples_per_s"], result["cold"]["samples_per_s"]["median"])
                self.assertAlmostEqual(result["total_stored_bytes"], result["predicted_storage_bytes"],
                                       delta=0.02 * result["total_stored_bytes"])
            else:
                self.assertEqual((result["cold_samples_per_s"], result["error"]), (None, None))
                self.assertEqual(result["cold"]["samples_per_s"]["median"], result["predicted_samples_per_s"])
            if result["error"] is not None:
                self.assertAlmostEqual(result["predicted_samples_per_s"] / result["cold_samples_per_s"] - 1, result["error"],
                                       delta=1e-6)
        # On a busy machine, also of those on 64 threads: what waits for processors looks as if it waited for storage.
        self.assertGreaterEqual(sum(r["error"] is not None for r in results["results"]), 2)
        self.assertGreater(sum(not r["measured"] for r in here), 0)
        elsewhere = [r for r in results["results"] if r["elsewhere"]]
        self.assertLessEqual({(r["threads"], r["measured"]) for r in elsewhere}, {(64, False)})
        best = results["results"][results["recommendation"]["result"]]
        self.assertEqual(best["measured"], not best["elsewhere"])
        model = results["model"]
        self.assertEqual([s["stored"] for s in model["stored"]], ["unprocessed", "concatenated", "resized"])
        self.assertEqual([c["threads"] for c in model["curve"]], list(range(1, 65)))
        self.assertEqual([c["codec"] for c in model["stored"][2]["codecs"]], ["none", "zlib:1", "lz4"])
        loaded = {(s["stored"], c["codec"]): c["loaded"] for s in model["stored"] for c in s["codecs"]}
        # Makes JPEGs no smaller, and takes next to no time: loaded only where storage is so slow that bytes count.
        jpegs = model["stored"][1]
        lz4 = jpegs["codecs"][2]
        cached_s = jpegs["cached_worker_s_per_sample"]["one_thread"]
        saved_s = abs(1 - lz4["ratio"]) * abs(jpegs["cold_worker_s_per_sample"]["one_thread"] - cached_s)
        if max(lz4["decompress_s_per_sample"]["one_thread"], saved_s) < 0.01 * cached_s:
            self.assertEqual(loaded["concatenated", "lz4"], 0)
        self.assertGreater(loaded["resized", "zlib:1"], 0)
        self.assertGreaterEqual(len(rows), sum(r["measured"] for r in results["results"]))
        texts = []
        for name in ("error", "cached_error"):
            errors = [abs(r[name]) for r in results["results"] if r["measured"] and r[name] is not None]
            texts.append(f"half are off by {min(100 * statistics.median(errors), 999):.0f} % or less, the worst by "
                         f"{min(100 * max(errors), 999):.0f} %")
        self.assertIn(f"{len(errors)} predicted, then run. Cold, {texts[0]}; cached, {texts[1]}.", " ".join(table.split()))

    def test_a_target_is_reached_by_the_cheapest_or_missed_by_the_nearest(self):
        for target, limits, part in (("0.001/s", "keeps", "times the target of"),
                                     ("1000000000000", "misses target", "No strategy reaches the target")):
            out = self.new("sweep")
            done = run("presto-sweep", "-q", "-p", self.pipeline, *self.SMALL, "--runs", "2", "--target", target, "-o", out,
                       self.make_photos())
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            results = json.loads((out / "results.json").read_text())
            self.assertEqual(results["recommendation"]["limits"], limits)
            self.assertIn(part, results["recommendation"]["reason"])
            if limits == "keeps":  # everything reaches it: what stores least
                least = min(results["results"], key=lambda result: result["total_stored_bytes"])
                self.assertEqual(results["recommendation"]["stored"], least["stored"])
                self.assertIn("=: reaches the target", done.stdout.decode().replace("\n", " "))
            self.assertIn(part.split()[0], done.stdout.decode())
            self.assertLessEqual(done.stdout.decode().count("no strategy can"), 1)
            self.assertEqual(results["recommendation"]["cache_reaches"], None)

    def test_a_target_that_only_a_cache_in_memory_reaches_says_so(self):
        """A step that sleeps: no strategy runs it fast, and what the cache holds does not run it again."""
        slow = self.new("slow.py")
        slow.write_text(f"import sys, time\nsys.path.insert(0, {str(ROOT / 'examples' / 'own_steps')!r})\nimport presto_worker\n"
                        "presto_worker.serve(lambda sample: time.sleep(0.02) or sample['value'], text=True)\n")
        pipeline = self.new("slow.yaml")
        pipeline.write_text("name: slow\nsource: {type: files, match: ['*.jpg']}\nsteps:\n  - {step: read-file, yields: read}\n"
                            f"  - {{step: command, run: [{sys.executable}, {slow}], output: string}}\n")
        out = self.new("sweep")
        done = run("presto-sweep", "-q", "-p", pipeline, "--codecs", "none", "--threads", "1", "--runs", "1", "--run-time", "0.01",
                   "--decide-time", "0", "--stored", "unprocessed,read", "--samples", "8", "--target", "500/s", "-o", out,
                   self.make_photos())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        results = json.loads((out / "results.json").read_text())
        advice = results["recommendation"]
        self.assertEqual(advice["limits"], "misses target")
        self.assertGreater(results["results"][advice["cache_reaches"]]["predicted_memory_samples_per_s"], 500)
        for text in (advice["reason"], " ".join(done.stdout.decode().split())):
            self.assertIn("With a cache in memory, epochs after the first are predicted to reach it", text)

    @unittest.skipIf(SANITIZED, "a minute of runs, as unit.profile takes them")
    def test_the_nearest_take_turns_until_it_is_decided(self):
        for _ in range(3):  # even of three runs, all may seem to be far apart
            out = self.new("sweep")
            command = ["presto-sweep", "-q", "-p", self.pipeline, "--measure", "--stored", "unprocessed,concatenated", "--codecs",
                       "none,lz4", "--threads", "1", "--samples", "8", "--runs", "3", "--run-time", "0", "-o", out,
                       self.make_photos()]
            done = run(*command, "--decide-time", "60")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            results = json.loads((out / "results.json").read_text())
            if results["confidence"]["rivals"]:
                break
        sure, strategies = results["confidence"], results["results"]
        self.assertTrue(sure["is_decided"] or sure["rounds"] >= 48, sure)
        self.assertEqual(sure["by"], "score")
        contenders = {sure["leader"]["result"]: sure["leader"]} | {rival["result"]: rival for rival in sure["rivals"]}
        self.assertGreater(len(contenders), 1)
        self.assertLessEqual(len(contenders), 6)
        rounds = {}
        for line in (out / "trials.jsonl").read_text().splitlines():
            entry = json.loads(line)
            if "round" in entry:
                rounds.setdefault(entry["round"], []).append(entry["strategy"])
                self.assertIn(entry["strategy"], contenders)
        self.assertEqual(sorted(rounds), list(range(1, sure["rounds"] + 1)))
        self.assertEqual(sorted(rounds[1]), sorted(contenders))
        self.assertEqual(rounds[2], rounds[1][::-1])
        for contender in contenders.values():
            self.assertEqual([r["round"] for r in contender["runs"]],
                             [number for number in sorted(rounds) if contender["result"] in rounds[number]])
        # The table keeps the runs that all strategies have had.
        self.assertEqual({len(strategy["cold"]["runs"]) for strategy in strategies}, {3})
        said = results["recommendation"]["reason"]
        self.assertIn("Decided: " if sure["is_decided"] else "Undecided ", said)
        self.assertIn(" runs of each ", said)
        equal = {i for i, strategy in enumerate(strategies) if strategy["equal"]}
        self.assertIn(results["recommendation"]["result"], equal)
        self.assertLessEqual(equal, set(contenders))
        # What is measured is not measured again.
        done = run(*command, "--decide-time", "0", "--resume")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        again = json.loads((out / "results.json").read_text())
        self.assertEqual(again["recommendation"]["result"], results["recommendation"]["result"])
        self.assertEqual({**again["confidence"], "spent_s": 0}, {**sure, "spent_s": 0})

    def test_what_would_change_it_is_what_another_question_recommends(self):
        out = self.new("sweep")
        command = ["presto-sweep", "-q", "-p", self.pipeline, *self.SMALL, "--runs", "2", "-o", out, self.make_photos()]
        self.assertEqual(run(*command).returncode, 0)
        results = json.loads((out / "results.json").read_text())
        best = results["results"][results["recommendation"]["result"]]
        tried = 0
        for what_if in results["what_if"]:
            part = {"half of its speed": 0.5, "a tenth of its speed": 0.1}.get(what_if["if"][3:].split(" is ")[0])
            if part is None:
                continue
            target = best["cold"]["samples_per_s"]["median"] * part
            self.assertEqual(run(*command, "--resume", "--target", f"{target:.9f}").returncode, 0)
            other = json.loads((out / "results.json").read_text())
            self.assertEqual(other["recommendation"]["result"], what_if["result"], what_if)
            tried += 1
        self.assertEqual(tried, 2)
        halves = [what_if for what_if in results["what_if"] if what_if["if"].startswith("with half the storage")]
        for what_if in halves:
            fits = any(r["status"] == "ok" and (r["stored"] == "unprocessed"  # which stores nothing
                                                or r["total_stored_bytes"] <= best["total_stored_bytes"] / 2)
                       for r in results["results"])
            self.assertEqual(what_if["is_missed"], not fits)

    def test_prices_choose_what_costs_least(self):
        def sweep(*prices):
            out = self.new("sweep")
            done = run("presto-sweep", "-q", "-p", self.pipeline, *self.SMALL, "--runs", "2", "--epochs", "10", *prices, "-o",
                       out, self.make_photos())
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            results = json.loads((out / "results.json").read_text())
            best = results["results"][results["recommendation"]["result"]]
            self.assertEqual(best["cost"], min(r["cost"] for r in results["results"]))
            self.assertIn("It costs least", results["recommendation"]["reason"])
            stored = "stored: " + results["recommendation"]["stored"]  # as scripts/demo looks for it
            self.assertIn(stored, (out / "strategy.yaml").read_text().splitlines())
            return done.stdout.decode(), results
        # Storage alone: the source is there anyway.
        table, results = sweep("--price-storage", "1000/GB-month", "--months", "2")
        self.assertEqual(results["recommendation"]["stored"], "unprocessed")
        for result in results["results"]:
            wanted = 0 if result["codec"] is None else result["total_stored_bytes"] / 1e9 * 1000 * 2
            self.assertAlmostEqual(result["cost"], wanted, delta=1e-6 * wanted)
        self.assertRegex(table, r"cached +cost")
        self.assertRegex(table, r"costs \S+\s+instead\s+of\s+nothing")
        _, results = sweep("--price-cpu", "2/h", "--price-accelerator", "5")
        for result in results["results"]:
            hours = 10 * self.photo_count / result["cold"]["samples_per_s"]["median"] / 3600
            wanted = hours * 7 + result["total_preparation_s"] / 3600 * 2
            self.assertAlmostEqual(result["cost"], wanted, delta=1e-6 * wanted)
        self.assert_usage(run("presto-sweep", "-p", self.pipeline, "-o", self.new(), "--price-cpu", "1/h", self.make_photos()),
                          "--epochs")

    def test_limits_of_storage_leave_strategies_out(self):
        out = self.new("sweep")
        done = run("presto-sweep", "-q", "-p", self.pipeline, *self.SMALL, "--runs", "1", "-o", out, self.make_photos())
        self.assertEqual(done.returncode, 0, done.stderr)
        sizes = {r["stored"]: r["total_stored_bytes"] for r in json.loads((out / "results.json").read_text())["results"]}
        self.assertLess(sizes["concatenated"], sizes["resized"])
        limit = int((sizes["concatenated"] + sizes["resized"]) / 2)
        done = run("presto-sweep", "-q", "-p", self.pipeline, *self.SMALL, "--runs", "1", "--force", "--max-storage", limit,
                   "-o", out, self.make_photos())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        results = json.loads((out / "results.json").read_text())
        self.assertIsNone({r["stored"]: r["score"] for r in results["results"]}["resized"])
        self.assertNotEqual(results["recommendation"]["stored"], "resized")
        self.assertIn("resized", done.stdout.decode())
        for splits, split, said in [("unprocessed,resized", "unprocessed", "It keeps the limits"),  # which stores nothing
                                    ("concatenated,resized", "concatenated", "No strategy keeps the limits")]:
            done = run("presto-sweep", "-q", "-p", self.pipeline, *self.SMALL, "--stored", splits, "--runs", "1", "--force",
                       "--weights", "0,1,0", "--max-storage", "1", "-o", out, self.make_photos())
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            recommended = json.loads((out / "results.json").read_text())["recommendation"]
            self.assertEqual(recommended["stored"], split)
            self.assertIn(said, recommended["reason"])

    def test_limits_of_preparation_leave_strategies_out(self):
        out = self.new("sweep")
        command = ["presto-sweep", "-q", "-p", self.pipeline, *self.SMALL, "--runs", "1", "-o", out, self.make_photos()]
        self.assertEqual(run(*command).returncode, 0)
        times = {r["stored"]: r["total_preparation_s"] for r in json.loads((out / "results.json").read_text())["results"]}
        self.assertEqual(times["unprocessed"], 0)
        shorter, longer = sorted((times[split], split) for split in ("concatenated", "resized"))
        limit = (shorter[0] + longer[0]) / 2
        for text in (f"{limit:.9f}", f"{limit:.9f}s", f"{limit / 60:.12f}min", f"{limit / 3600:.14f}h"):
            with self.subTest(text=text):
                done = run(*command, "--resume", "--max-prepare", text)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                results = json.loads((out / "results.json").read_text())
                self.assertEqual([r["stored"] for r in results["results"] if r["score"] is None], [longer[1]])
                self.assertNotEqual(results["recommendation"]["stored"], longer[1])
                self.assertIn("It keeps the limits", results["recommendation"]["reason"])
                self.assertIn("1 of 3 strategies would store more than the limit, or take longer to prepare",
                              done.stdout.decode().replace("\n  ", " "))
        done = run(*command, "--resume", "--max-prepare", "2h")
        self.assertNotIn("longer to prepare", done.stdout.decode().replace("\n  ", " "))
        self.assertEqual(run(*command, "--force", "--stored", "resized", "--max-prepare", "0.000001s").returncode, 0)
        self.assertIn("No strategy keeps the limits", json.loads((out / "results.json").read_text())["recommendation"]["reason"])

    def test_broken_files_end_it_or_are_left_out(self):
        photos = self.new("photos")
        shutil.copytree(self.make_photos(), photos)
        broken = sorted(photos.rglob("*.jpg"))[0]  # probes of single samples meet it
        broken.write_bytes(broken.read_bytes()[:500])
        base = ["presto-sweep", "-q", "-p", self.pipeline, "--stored", "unprocessed,resized", "--codecs", "none", "--threads",
                "1", "--runs", "1", "--run-time", "0", "--decide-time", "0"]
        done = run(*base, "-o", self.new("sweep"), photos)
        self.assert_fails(done, 3, broken.name, "--on-error skip")
        out = self.new("sweep")
        done = run(*base, "--on-error", "skip:50%", "-o", out, photos)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(f"1 of {self.photo_count} samples cannot be processed", done.stdout.decode().replace("\n  ", " "))
        results = json.loads((out / "results.json").read_text())["results"]
        self.assertEqual([r["cold"]["runs"][0]["samples"] for r in results], [self.photo_count - 1] * 2)
        self.assertEqual([r["samples"] for r in results], [self.photo_count - 1] * 2)
        # All were tried: the totals are exactly theirs, and what is left out takes no storage.
        self.assertEqual((results[1]["total_stored_bytes"], results[1]["total_stored_error_bytes"]), (results[1]["stored_bytes"], 0))
        self.assertEqual({results[1]["records"][f"total_bytes_{end}"] for end in ("min", "max")}, {results[1]["stored_bytes"]})
        for mode in (["--measure"], ["--confirm", "1"]):  # the one broken file is one in every epoch
            out = self.new("sweep")
            done = run(*base, *mode, "--on-error", "skip:1", "-o", out, photos)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            results = json.loads((out / "results.json").read_text())
            self.assertEqual([r["status"] for r in results["results"]], ["ok"] * 2)
            self.assertEqual(results["options"]["on_error"], "skip:1")
            work = self.new("work")
            work.mkdir()
            for name in ("write_command", "load_command"):
                if results["recommendation"][name] is not None:
                    command = shlex.split(results["recommendation"][name])
                    self.assertIn("skip:1", command)
                    self.assertEqual(run(*command, cwd=work).returncode, 0)
        done = run(*base, "--on-error", "skip:0", "-o", self.new("sweep"), photos)
        self.assert_fails(done, 3, broken.name)


if __name__ == "__main__":
    main()
