#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto-sweep: what may be recommended, and when that is decided."""
import csv
import json

from cli import main, run
from sweep_case import SweepCase


class Decide(SweepCase):
    def test_a_codec_that_cannot_be_used_fails_with_the_reason_and_takes_no_part(self):
        out = self.new("sweep")
        command = ["presto-sweep", "-q", "-p", self.pipeline, "--stored", "unprocessed,concatenated,resized", "--codecs",
                   "none,zstd+delta", "--threads", "1,2", "--samples", "6", "--runs", "1", "--run-time", "0", "--decide-time", "0",
                   "--confirm", "1", "-o", out, self.make_photos()]
        reason = "codec zstd+delta is for tensors of integers"
        for again in ([], ["--resume"]):
            done = run(*command, *again)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            results = json.loads((out / "results.json").read_text())
            failed = [r for r in results["results"] if r["status"] == "failed"]
            self.assertEqual({(r["stored"], r["codec"], r["failure"]) for r in failed}, {("concatenated", "zstd+delta", reason)})
            self.assertEqual(len(failed), 2)
            self.assertIn(reason, done.stdout.decode())
            with open(out / "results.csv", newline="") as lines:
                rows = list(csv.DictReader(lines))
            for row, result in zip(rows, results["results"]):
                self.assertEqual(row["status"], result["status"])
                if row["status"] == "failed":
                    self.assertEqual((row["measured"], row["score"], row["total_stored_bytes"], row["failure"]), ("0", "", "", reason))
                else:
                    self.assertGreater(result["cold"]["samples_per_s"]["median"], 0)
        # Of no use where all have it.
        done = run("presto-sweep", "-q", "-p", self.pipeline, "--stored", "concatenated", "--codecs", "zstd+delta", "--threads", "1,2",
                   "--samples", "4", "--runs", "1", "--run-time", "0", "-o", self.new("sweep"), self.make_photos())
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(reason, done.stderr)

    def test_it_is_decided_only_if_nothing_that_was_not_run_could_change_it(self):
        for more in (["--decide-time", "0", "--confirm", "0"], ["--decide-time", "3", "--confirm", "0"]):
            out = self.new("sweep")
            _, results = self.predicted(out, "--threads", "1,2", *more)
            sure, strategies = results["confidence"], results["results"]
            best = strategies[results["recommendation"]["result"]]
            self.assertTrue(best["measured"])
            limit = 1.02 * max(best["cold_samples_per_s"], *(r["cold_samples_per_s"] or 0 for r in strategies))
            plain = {(r["stored"], r["threads"], r["shards"]): r["total_stored_bytes"] for r in strategies if r["codec"] == "none"}
            saves = [r["codec"] in (None, "none") or  # a codec that saves less is never the answer
                     r["total_stored_bytes"] <= 0.98 * plain.get((r["stored"], r["threads"], r["shards"]), float("inf"))
                     for r in strategies]
            open_ones = {i for i, r in enumerate(strategies) if not r["measured"] and saves[i] and
                         r["predicted_samples_per_s"] * (1 + min(r["uncertainty"], .9)) > limit}
            self.assertLessEqual(open_ones, set(sure["not_run"]))
            for i in sure["not_run"]:
                self.assertFalse(strategies[i]["measured"])
            if sure["not_run"]:
                self.assertFalse(sure["is_decided"])
                self.assertIn("Undecided", results["recommendation"]["reason"])
                self.assertIn("not run", results["recommendation"]["reason"])
            else:
                self.assertTrue(sure["is_decided"] or sure["rivals"] or sure["start_part"] != 0)  # null: it counts in full
                if not sure["is_decided"]:  # a start that counts is one reason
                    self.assertIn("Undecided", results["recommendation"]["reason"])

    def test_beyond_this_machine_it_is_undecided_and_says_so(self):
        _, results = self.predicted(self.new("sweep"), "--threads", "512", "--confirm", "0")
        self.assertFalse(results["confidence"]["is_decided"])
        self.assertEqual(results["confidence"]["not_run"][0], results["recommendation"]["result"])
        self.assertIn("Undecided: it was not run, as it has 512 threads and this machine has ", results["recommendation"]["reason"])

    def test_with_a_target_the_training_is_what_limits(self):
        _, results = self.predicted(self.new("sweep"), "--threads", "1,2", "--confirm", "0", "--target", "0.001/s")
        self.assertEqual({r["cold_bound"] for r in results["results"]}, {"consumer"})
        self.assertIn("so that the training itself is the limit", results["recommendation"]["reason"])
        self.assertGreater(min(r["predicted_samples_per_s"] for r in results["results"]), 1)

    def test_with_prices_the_cheapest_of_those_that_reach_the_target_is_chosen(self):
        out = self.new("sweep")
        command = ["presto-sweep", "-q", "-p", self.pipeline, *self.SMALL, "--runs", "2", "-o", out, self.make_photos()]
        self.assertEqual(run(*command).returncode, 0)
        rates = {r["stored"]: r["cold"]["samples_per_s"] for r in json.loads((out / "results.json").read_text())["results"]}
        fastest = max(rates, key=lambda split: rates[split]["min"])
        prices = ["--price-storage", "1/GB-month", "--epochs", "1"]
        for target, limits in ((rates[fastest]["min"] / 1.11, "keeps"), (1e9, "misses target")):
            done = run(*command, "--resume", *prices, "--target", f"{target:.6f}")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            results = json.loads((out / "results.json").read_text())
            self.assertEqual(results["recommendation"]["limits"], limits)
            best = results["results"][results["recommendation"]["result"]]
            reaching = [r for r in results["results"] if max(r["cold"]["samples_per_s"]["min"], .9 * r["cold"]["samples_per_s"]["median"])
                        >= 1.1 * target]
            if limits == "keeps":
                self.assertEqual(best["cost"], min(r["cost"] for r in reaching))
                self.assertEqual({r["stored"] for r in results["results"] if r["equal"]}, {r["stored"] for r in reaching})
            else:
                self.assertEqual(reaching, [])
                self.assertIn("No strategy reaches the target", results["recommendation"]["reason"])


if __name__ == "__main__":
    main()
