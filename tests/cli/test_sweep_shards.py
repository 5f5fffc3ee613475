#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto-sweep --shards: numbers of files that are compared."""
import csv
import json

from cli import Case, main, run


class Shards(Case):
    photo_count = 16

    def sweep(self, *options, shards="threads,1,5"):
        out = self.new("sweep")
        done = run("presto-sweep", "-p", self.pipeline, "--stored", "unprocessed,resized", "--codecs", "none,lz4", "--threads", "1,2",
                   "--samples", "12", "--runs", "1", "--run-time", "0.01", "--decide-time", "0", "--shards", shards, *options,
                   "-o", out, self.make_photos())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return out, done.stdout.decode(), json.loads((out / "results.json").read_text())

    def check_strategies(self, out, table, results):
        wanted = {("resized", codec, threads, shards) for codec in ("none", "lz4")
                  for threads, shards in ((1, 1), (2, 2), (2, 1), (1, 5), (2, 5))}
        wanted |= {("unprocessed", None, threads, 0) for threads in (1, 2)}
        found = [(r["stored"], r["codec"], r["threads"], r["shards"]) for r in results["results"]]
        self.assertEqual((len(found), set(found)), (len(wanted), wanted))
        with open(out / "results.csv", newline="") as lines:
            self.assertEqual(sorted(int(line["shards"]) for line in csv.DictReader(lines)),
                             sorted(shards for *_, shards in found))
        heading, *rows = table[table.index("\n  stored") + 1:table.index("Recommended:")].splitlines()
        self.assertEqual([line for line in (heading, *rows) if len(line) > 80], [])
        self.assertIn(" files ", heading)
        rows = [row.split() for row in rows if "resized" in row[:12] and "lz4" in row]
        self.assertEqual({"1", "2", "5"}, {row[row.index("lz4") + 1] for row in rows})

    def test_stored_may_have_its_old_name_with_one_note(self):
        for names, notes in ((("--stored",), 0), (("--splits", "--splits"), 1)):
            done = run("presto-sweep", "-p", self.pipeline, *(word for name in names for word in (name, "nothing")), "-o", self.new(),
                       self.make_photos())
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("has no representation 'nothing'", done.stderr)
            self.assertEqual(done.stderr.count("--splits is now called --stored"), notes)

    def test_each_number_is_a_candidate_and_is_measured(self):
        out, table, results = self.sweep("--measure")
        self.check_strategies(out, table, results)
        stored = {}
        for result in results["results"]:
            self.assertTrue(result["measured"])
            stored.setdefault((result["stored"], result["codec"]), set()).add(result["stored_bytes"])
        self.assertEqual([len(sizes) for sizes in stored.values()], [1] * 3, "files do not change what is stored")

    def test_each_number_is_predicted_with_what_a_file_costs(self):
        out, table, results = self.sweep("--confirm", "2")
        self.check_strategies(out, table, results)
        splits = {split["stored"]: split for split in results["model"]["stored"]}
        self.assertIsNone(splits["unprocessed"]["files"])
        files = splits["resized"]["files"]
        self.assertEqual(files["tried"], 5)
        for cost in ("cold_s_per_file", "cached_s_per_file"):
            self.assertGreaterEqual(min(files[cost].values()), 0)
        for result in results["results"]:
            self.assertGreater(result["predicted_samples_per_s"], 0)

    def test_one_number_is_that_of_all(self):
        out, table, results = self.sweep("--measure", shards="3")
        self.assertEqual({r["shards"] for r in results["results"] if r["stored"] == "resized"}, {3})
        best = (out / "strategy.yaml").read_text()
        self.assertTrue("shards: 3" in best or "stored: unprocessed" in best, best)

    def test_as_many_as_threads_is_not_a_column(self):
        _, table, results = self.sweep("--measure", shards="threads")
        self.assertNotIn(" files ", table[table.index("\n  stored") + 1:].splitlines()[0])
        self.assertEqual({(r["threads"], r["shards"]) for r in results["results"] if r["codec"]}, {(1, 1), (2, 2)})

    def test_numbers_are_checked(self):
        for text, part in (("0", "'0'"), ("1,many", "'many'"), ("100000", "'100000'"), ("1,,2", "empty entry")):
            with self.subTest(text=text):
                self.assert_usage(run("presto-sweep", "-p", self.pipeline, "-o", self.new(), "--shards", text, self.make_photos()), part)


if __name__ == "__main__":
    main()
