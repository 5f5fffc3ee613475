#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto-sweep: what is left of a sweep that was stopped, and how it goes on."""
import json
import os
import random
import shutil
import signal
import subprocess
import time

from cli import SANITIZED, TIMEOUT_S, TOOLS, main, run
from sweep_case import SweepCase


class Resume(SweepCase):
    def test_a_prediction_is_resumed_and_then_measured(self):
        out = self.new("sweep")
        _, before = self.predicted(out, "--confirm", "1")
        journal = (out / "trials.jsonl").read_bytes()
        _, after = self.predicted(out, "--confirm", "1", "--resume")
        self.assertEqual((out / "trials.jsonl").read_bytes(), journal, "nothing is measured, and nothing probed again")
        for name in ("results", "recommendation", "notes", "what_if"):
            self.assertEqual(after[name], before[name])
        for old, new in zip(before["results"], after["results"]):
            self.assertGreaterEqual(new["measured"], old["measured"])
        _, smaller = self.predicted(out, "--confirm", "1", "--resume", "--weights", "0,1,0")
        for results in (after, smaller):
            for old, new in zip(before["results"], results["results"]):
                if old["measured"]:
                    for figure in ("cold_samples_per_s", "cached_samples_per_s", "total_stored_bytes"):
                        self.assertEqual(new[figure], old[figure])
                self.assertGreater(new["total_stored_bytes"], 0)
        _, measured = self.predicted(out, "--measure", "--resume")
        self.assertTrue((out / "trials.jsonl").read_bytes().startswith(journal))
        self.assertTrue(all(result["measured"] for result in measured["results"]))
        self.assertIsNone(measured["model"])

    def test_on_another_number_of_processors_it_is_another_sweep(self):
        cpus = sorted(os.sched_getaffinity(0))
        if len(cpus) < 2:
            self.skipTest("needs two processors")
        out = self.new("sweep")
        self.predicted(out, "--confirm", "0")
        before = (out / "trials.jsonl").read_bytes()
        done = run("presto-sweep", "-q", "-p", self.pipeline, *self.PREDICTED, "--confirm", "0", "--resume", "-o", out,
                   self.make_photos(), preexec_fn=lambda: os.sched_setaffinity(0, {cpus[0]}))
        self.assert_fails(done, 2, "trials.jsonl", "another number of processors")
        self.assertEqual((out / "trials.jsonl").read_bytes(), before)

    def refused_after(self, change, *more):
        """Of a sweep that had ended, the journal stays as it is. Returns how it is resumed, as `change` left the source."""
        photos, out = self.new("photos"), self.new("sweep")
        shutil.copytree(self.make_photos(), photos)

        def sweep(*options):
            return run("presto-sweep", "-q", "-p", self.pipeline, *self.SMALL, "--runs", "1", *options, "-o", out, photos)

        self.assertEqual(sweep().returncode, 0)
        journal = (out / "trials.jsonl").read_bytes()
        change(sorted(photos.rglob("*.jpg")))
        self.assert_fails(sweep("--resume", *more), 2, "trials.jsonl", "files that have changed since")
        self.assertEqual((out / "trials.jsonl").read_bytes(), journal)
        return sweep

    def test_another_sample_or_a_changed_source_is_another_sweep(self):
        self.refused_after(lambda files: None, "--samples", "5")
        self.refused_after(lambda files: files[0].rename(files[0].with_name("x.jpg")))
        self.refused_after(lambda files: files[0].write_bytes(files[0].read_bytes()[:-1] + b"\0"))  # of the same size
        added = []

        def add(files):
            added.append(files[0].with_name("more.jpg"))
            added[0].write_bytes(files[0].read_bytes())

        sweep = self.refused_after(add)
        added[0].unlink()
        done = sweep("--resume")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_probes_that_were_changed_are_refused_or_believed(self):
        out = self.new("sweep")
        self.predicted(out, "--confirm", "1")
        journal = out / "trials.jsonl"
        lines = journal.read_text().splitlines(keepends=True)
        for number, old, new in ((0, '"steps":[', '"steps":[7,'), (0, '"memory_bytes_per_s":[', '"memory_bytes_per_s":[-1,'),
                                 (1, '"codecs":[', '"codecs":[null,'), (2, '"loaded":', '"loaded":-1,"x":'), (3, '"probe":3', '"probe":4'),
                                 (2, '"found":{', '"found":1,"x":{'), (2, '"start_s"', '"start"')):
            with self.subTest(number=number, new=new):
                changed = [line.replace(old, new, 1) if line.startswith(f'{{"probe":{number},') else line for line in lines]
                self.assertNotEqual(changed, lines)
                journal.write_text("".join(changed))
                done = run("presto-sweep", "-q", "-p", self.pipeline, *self.PREDICTED, "--confirm", "1", "--resume", "-o", out, self.make_photos())
                self.assert_fails(done, 1, "trials.jsonl", "probe")

    def interrupted(self, out, *more):
        """The finished process of a sweep that got Ctrl-C after a few runs, and what it printed."""
        process = subprocess.Popen([TOOLS / "presto-sweep", "-q", "-p", self.pipeline, *self.SMALL, "--runs", "400",
                                    *more, "-o", out, self.make_photos()], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 100
        journal = out / "trials.jsonl"
        while process.poll() is None and time.monotonic() < deadline:
            if journal.exists() and journal.read_bytes().count(b"\n") > 8:
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        printed = [text.decode() for text in process.communicate(timeout=100)]
        self.assertEqual(process.returncode, -signal.SIGINT, printed)
        return printed

    def test_an_interrupted_sweep_shows_what_it_has_and_goes_on_from_there(self):
        out = self.new("sweep")
        table, said = self.interrupted(out)
        self.assertIn("* Recommended:", table)
        self.assertIn("stopped early: 3 of 3 strategies", table.replace("\n ", ""))
        self.assertIn("--resume", said)
        self.assertFalse((out / "trials").exists())
        self.assertTrue(json.loads((out / "results.json").read_text())["is_stopped"])
        before = (out / "trials.jsonl").read_bytes()
        runs = max(before.count(b'{"strategy":%d,"cold"' % i) for i in range(3)) + 2
        done = run("presto-sweep", "-q", "-p", self.pipeline, *self.SMALL, "--runs", runs, "--resume", "-o", out,
                   self.make_photos())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        after = (out / "trials.jsonl").read_bytes()
        self.assertTrue(after.startswith(before))
        self.assertEqual(after.count(b'"cold"'), 3 * runs)
        self.assertEqual(after.count(b'"preparation_s"'), 2)
        results = json.loads((out / "results.json").read_text())
        self.assertFalse(results["is_stopped"])
        self.assertEqual([len(result["cold"]["runs"]) for result in results["results"]], [runs] * 3)
        walls = [json.loads(line)["cold"]["wall_s"] for line in after.decode().splitlines() if '"strategy":1,"cold"' in line]
        again = [r["wall_s"] for r in results["results"][1]["cold"]["runs"]]
        self.assertEqual(len(walls), len(again))
        for wall, same in zip(walls, again):  # results.json has nine digits
            self.assertAlmostEqual(wall, same, delta=1e-8 * wall)

    LONGER = ("--stored", "unprocessed,concatenated,resized", "--codecs", "none,zlib:1", "--threads", "1,2", "--samples", "6",
              "--run-time", "0.02", "--decide-time", "0")
    # When a sweep is in this phase, by the last lines of its journal.
    PHASES = {"anchors": lambda lines: sum("cold" in line for line in lines) >= 4,
              "codecs": lambda lines: lines[-1].get("probe") == 2,  # those of the first split that stores something are known
              "confirming": lambda lines: lines[-1].get("probe") == 3 or lines[-1].get("strategy", 0) in (4, 5)}

    def ended_while(self, phase, number):
        """The folder of a sweep with predictions that got this signal then, its returncode, what it printed and said."""
        out = self.new("sweep")
        process = subprocess.Popen([TOOLS / "presto-sweep", "-q", "-p", self.pipeline, *self.LONGER, "--runs", "4", "-o", out,
                                    self.make_photos()], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 100
        journal = out / "trials.jsonl"
        while process.poll() is None and time.monotonic() < deadline:
            lines = [json.loads(line) for line in journal.read_bytes().split(b"\n")[1:-1]] if journal.exists() else []
            if lines and self.PHASES[phase](lines):
                break
            time.sleep(0.002)
        process.send_signal(number)
        table, said = process.communicate(timeout=100)
        self.assertEqual(process.returncode, -number, said)
        return out, table.decode(), said.decode()

    def assert_goes_on(self, out, before):
        """As of a sweep that was never stopped, and nothing is measured twice."""
        done = run("presto-sweep", "-q", "-p", self.pipeline, *self.LONGER, "--runs", "4", "--resume", "-o", out, self.make_photos(),
                   timeout=300)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        after = (out / "trials.jsonl").read_bytes()
        self.assertTrue(after.startswith(before))
        lines = [json.loads(line) for line in after.splitlines()]
        for what, most in (("probe", 1), ("preparation_s", 1), ("cold", 4)):
            of = [line["probe" if what == "probe" else "strategy"] for line in lines if what in line]
            self.assertLessEqual(max(map(of.count, of)), most)
        results = json.loads((out / "results.json").read_text())
        self.assertFalse(results["is_stopped"])
        self.assertEqual({r["status"] for r in results["results"]}, {"ok"})
        self.assertEqual(len(results["results"][results["recommendation"]["result"]]["cold"]["runs"]), 4)

    def test_a_prediction_that_is_interrupted_shows_what_is_known_and_goes_on_from_there(self):
        for phase, predicted in (("anchors", set()), ("codecs", {"concatenated"}), ("confirming", {"concatenated", "resized"})):
            with self.subTest(phase=phase):
                out, table, said = self.ended_while(phase, signal.SIGINT)
                self.assertRegex(said, rf"^presto-sweep: {out}: stopped; [^\n]*--resume[^\n]*\n$")
                self.assertIn("* Recommended:", table)
                self.assertFalse((out / "trials").exists())
                results = json.loads((out / "results.json").read_text())
                self.assertTrue(results["is_stopped"])
                journal = (out / "trials.jsonl").read_bytes()
                ran = {line["strategy"] for line in map(json.loads, journal.splitlines()) if "cold" in line}
                shown = {i for i, r in enumerate(results["results"]) if r.get("measured")}
                self.assertEqual(shown, {i for i in ran if i < len(results["results"])})
                self.assertEqual({r["stored"] for i, r in enumerate(results["results"]) if r["status"] == "ok" and i not in shown},
                                 predicted if len(shown) < len(results["results"]) else set())
                self.assertIn(f"{len(shown)} of {len(results['results'])} strategies measured", table.replace("\n", " "))
                for i, result in enumerate(results["results"]):
                    if result["status"] == "ok":
                        self.assertGreater(result["cold"]["samples_per_s"]["median"], 0)
                    else:
                        self.assertEqual(result["failure"], "not measured: the sweep was stopped")
                        self.assertIn(" not looked at)", table.replace("\n", " "))
                    if result["codec"] == "zlib:1" and i in shown:
                        self.assertIsNotNone(result["error"])
                self.assert_goes_on(out, journal)

    def test_a_prediction_that_is_killed_goes_on_from_there(self):
        seed = int(os.environ.get("PRESTO_TEST_SEED", time.time_ns() % 1000000))
        print(f"PRESTO_TEST_SEED={seed}", flush=True)
        # With sanitizers one of them: what goes on goes on as from Ctrl-C.
        for phase in random.Random(seed).sample(list(self.PHASES), 1 if SANITIZED else len(self.PHASES)):
            with self.subTest(phase=phase):
                out, table, _ = self.ended_while(phase, signal.SIGKILL)
                self.assertEqual(table, "")
                before = (out / "trials.jsonl").read_bytes()
                self.assert_goes_on(out, before[:before.rindex(b"\n") + 1])

    def test_a_journal_of_another_sweep_or_with_damage_is_refused(self):
        out = self.new("sweep")
        self.interrupted(out)
        journal = out / "trials.jsonl"
        content = journal.read_bytes()
        done = run("presto-sweep", "-q", "-p", self.pipeline, *self.SMALL, "--seed", "5", "--resume", "-o", out,
                   self.make_photos())
        self.assert_fails(done, 2, "trials.jsonl", "of a sweep with other options")
        lines = content.splitlines(keepends=True)
        for damage in (b"[]\n", b"{\n", b'{"strategy":99}\n', b'{"strategy":0,"cold":{}}\n',
                       b'{"strategy":-1}\n', lines[1].replace(b'"samples":4', b'"samples":"4"')):
            with self.subTest(damage=damage):
                journal.write_bytes(lines[0] + damage + b"".join(lines[2:]))
                done = run("presto-sweep", "-q", "-p", self.pipeline, *self.SMALL, "--runs", "400", "--resume", "-o", out,
                           self.make_photos())
                self.assert_fails(done, 1, "trials.jsonl", "line 2")
        journal.write_bytes(content[:-7])  # a crash in the middle of a line
        runs = content.count(b'"strategy":0,"cold"') + 1
        done = run("presto-sweep", "-q", "-p", self.pipeline, *self.SMALL, "--runs", runs, "--resume", "-o", out,
                   self.make_photos())
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_only_what_listing_leaves_of_a_conversion_grows_with_the_source(self):
        """Of labels from a file, the first samples are taken: a conversion of them lists the whole source."""
        photos = self.make_photos()
        names = sorted(photo.relative_to(photos) for photo in photos.rglob("*.jpg"))
        labels = self.new("labels.csv")
        labels.write_text("".join(f"{name},{i}\n" for i, name in enumerate(names)))
        for label, lists_all, mode in (("none", False, "--measure"), (f"csv:{labels}", True, "--measure"), (f"csv:{labels}", True, "--predict")):
            with self.subTest(label=label, mode=mode):
                pipeline, out = self.new("labelled.yaml"), self.new("sweep")
                pipeline.write_text(f"name: labelled\nsource: {{type: files, match: ['*.jpg'], label: '{label}'}}\n"
                                    "steps:\n  - {step: read-file, yields: concatenated}\n")
                command = ["presto-sweep", "-q", "-p", pipeline, mode, "--stored", "concatenated", "--codecs", "none", "--threads",
                           "1", "--samples", "4", "--run-time", "0", "--decide-time", "0", "--runs", "1", "-o", out, photos]
                done = run(*command)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                journal = out / "trials.jsonl"
                lines = [json.loads(line) for line in journal.read_text().splitlines()]
                for made in (line for line in lines if "preparation_s" in line):
                    self.assertEqual(made["list_s"] > 0, lists_all)
                    self.assertLess(made["list_s"], made["preparation_s"])
                    made.update(preparation_s=10, list_s=4)
                journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
                done = run(*command, "--resume")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                result = json.loads((out / "results.json").read_text())["results"][0]
                self.assertEqual(result["preparation_s"]["median"], 10)
                self.assertAlmostEqual(result["total_preparation_s"], 4 + 6 * self.photo_count / 4)
                if mode == "--predict":  # what the model says of the anchor that it rests on
                    self.assertAlmostEqual(result["predicted_preparation_s"], 4 + 6 * self.photo_count / 4, places=6)

    def test_stopped_before_anything_was_measured_it_leaves_nothing(self):
        out = self.new("sweep")
        process = subprocess.Popen([TOOLS / "presto-sweep", "-p", self.pipeline, "--runs", "500", "-o", out,
                                    self.make_photos()], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while not (out / "trials").exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=100)
        self.assertEqual(process.returncode, -signal.SIGINT)
        self.assertFalse((out / "trials").exists())
        if not (out / "trials.jsonl").exists():
            self.assertEqual(list(out.iterdir()), [])

    def test_a_folder_that_became_anothers_gets_no_results(self):
        out = self.new("sweep")
        sweep = subprocess.Popen([TOOLS / "presto-sweep", "-p", self.pipeline, *self.SMALL, "--runs", "2", "-o", out,
                                  self.make_photos()], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(sweep.kill)
        while not (out / "trials.jsonl").exists():
            self.assertIsNone(sweep.poll())
            time.sleep(0.01)
        (out / ".presto.lock").unlink()  # as `rm -r` would, before another sweep begins there
        table, errors = sweep.communicate(timeout=TIMEOUT_S)
        self.assertEqual(sweep.returncode, 1, errors)
        self.assertIn(str(out).encode(), errors)
        self.assertIn(b"Recommended", table)
        self.assertFalse((out / "results.json").exists())

    def test_results_are_not_replaced_unasked(self):
        out = self.new("sweep")
        command = ["presto-sweep", "-q", "-p", self.pipeline, *self.SMALL, "--runs", "1", "-o", out, self.make_photos()]
        self.assertEqual(run(*command).returncode, 0)
        before = (out / "results.json").read_bytes()
        self.assert_fails(run(*command), 1, "--force", "--resume")
        self.assertEqual((out / "results.json").read_bytes(), before)
        self.assertEqual(run(*command, "--force").returncode, 0)
        self.assertNotEqual((out / "results.json").read_bytes(), before)


if __name__ == "__main__":
    main()
