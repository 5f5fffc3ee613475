#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto-sweep --check: new files against a dataset, and what is said of its strategy."""
import json
import os
import shutil

from cli import Case, main, run


class Check(Case):
    photo_count = 32

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dataset = cls.write("-u", "resized", "-c", "zstd:1")

    def check(self, *arguments, code=0):
        temporary = self.new("tmp")
        temporary.mkdir()
        done = run("presto-sweep", "--check", *arguments, env={**os.environ, "TMPDIR": str(temporary)})
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(list(temporary.iterdir()), [])
        return done

    def test_the_same_files_are_alike(self):
        before = {path.name: path.read_bytes() for path in self.dataset.iterdir()}
        table = self.check(self.dataset, self.make_photos(), code=0).stdout.decode()
        self.assertRegex(table, r"stored bytes .* alike\n")
        self.assertRegex(table, r"dimension 2 .* alike\n")
        self.assertIn("still fits", table)
        self.assertEqual([line for line in table.splitlines()[1:] if len(line) > 80], [])
        self.assertEqual({path.name: path.read_bytes() for path in self.dataset.iterdir()}, before)

    def test_larger_samples_differ_and_may_move_it(self):
        wide = self.new("wide")
        done = run("presto-make-photos", "-q", "-n", "24", "-c", "2", "--width", "600", "--height", "100", "-o", wide)
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads(self.check(self.dataset, "--json", wide, code=4).stdout)
        figures = {figure["name"]: figure for figure in results["figures"]}
        self.assertEqual((results["stored_records"], results["new_samples"], results["tried_samples"]), (32, 24, 24))
        self.assertTrue(results["moves"])
        self.assertTrue(figures["stored bytes"]["differs"])
        self.assertEqual(figures["stored bytes"]["distance"], 1)
        self.assertTrue(figures["dimension 1"]["differs"])
        self.assertEqual(figures["dimension 1"]["new_median"], 6 * figures["dimension 0"]["new_median"])
        self.assertFalse(figures["dimension 2"]["differs"])
        self.assertIn("may be another one", self.check(self.dataset, wide, code=4).stdout.decode().replace("\n", " "))

    def test_few_samples_of_unlike_costs_show_nothing(self):
        """Nine of forty photos are large, and two of the three that are tried: the numbers 6, 19 and 32."""
        photos = self.new("mixed")
        (photos / "a").mkdir(parents=True)
        large = [1, 6, 11, 16, 19, 21, 24, 29, 37]
        small = [i for i in range(40) if i not in large]
        for side, numbers in ((600, large), (40, small)):
            made = self.new(f"photos-{side}")
            done = run("presto-make-photos", "-q", "-n", str(len(numbers)), "-c", "1", "--width", str(side), "--height", str(side),
                       "-o", made)
            self.assertEqual(done.returncode, 0, done.stderr)
            for number, photo in zip(numbers, sorted(made.rglob("*.jpg")), strict=True):
                shutil.copy(photo, photos / "a" / f"{number:02}.jpg")
        stored = self.new()
        done = run("presto-write", "-q", "-p", "cv", "-u", "concatenated", "-c", "none", "-o", stored, photos)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(self.check(stored, "--samples", "3", "--json", photos).stdout)
        self.assertGreater(found["time_ratio"], 1.2)  # which is beyond the margin, but for the interval
        self.assertFalse(found["moves"])
        self.assertFalse(found["time_differs"])
        found = json.loads(self.check(stored, "--samples", "1", "--json", photos).stdout)
        self.assertIsNone(found["time_ratio_max"])
        self.assertRegex(self.check(stored, "--samples", "1", photos).stdout.decode(), r"time to load .* \(unknown\): not shown")

    def test_the_margin_is_that_of_the_sweep(self):
        out = self.new("sweep")
        out.mkdir()
        results = {"results": [{"cold_samples_per_s": 100}, {"cold_samples_per_s": None, "predicted_samples_per_s": 80.0}],
                   "recommendation": {"result": 0, "runners_up": [1]}}
        (out / "results.json").write_text(json.dumps(results))
        done = self.check(self.dataset, "-o", out, "--samples", "8", "--json", self.make_photos())
        found = json.loads(done.stdout)
        self.assertAlmostEqual(found["margin"], 0.25)
        self.assertEqual(found["tried_samples"], 8)
        for change, margin in [
            ({"recommendation": {"result": 1, "runners_up": [0]}}, 0.1),  # a slower one, for other reasons
            ({"recommendation": {"result": 0, "runners_up": []}}, 0.1),
            ({"results": [{"cold_samples_per_s": 100, "cost": 4}, {"cold_samples_per_s": 900, "cost": 5}]}, 0.25),
            ({"options": {"target_samples_per_s": 50}, "recommendation": {"slowest_samples_per_s": 65, "runners_up": [1]}}, 0.3),
            ({"options": {"target_samples_per_s": 50}, "recommendation": {"slowest_samples_per_s": 45, "runners_up": [1]}}, 0.02),
        ]:
            (out / "results.json").write_text(json.dumps({**results, **change}))
            done = run("presto-sweep", "--check", self.dataset, "-o", out, "--samples", "8", "--json", self.make_photos())
            self.assertIn(done.returncode, (0, 4), done.stderr)  # the time of eight samples tells little
            self.assertAlmostEqual(json.loads(done.stdout)["margin"], margin)
        for spoilt in ("{", "[]", json.dumps({**results, "results": []}),
                       json.dumps({**results, "recommendation": {"result": -1, "runners_up": [1]}})):
            (out / "results.json").write_text(spoilt)
            done = run("presto-sweep", "--check", self.dataset, "-o", out, self.make_photos())
            self.assert_fails(done, 1, "results.json")
        (out / "results.json").unlink()
        os.mkfifo(out / "results.json")  # which nobody waits for
        self.assert_fails(run("presto-sweep", "--check", self.dataset, "-o", out, self.make_photos()), 1, "results.json")

    def test_source_bytes_and_offline_steps_are_compared_with_the_sweep(self):
        out = self.new("sweep")
        photos = self.make_photos()
        done = run("presto-sweep", "-q", "-p", "cv", "--stored", "unprocessed,resized", "--codecs", "none", "--threads", "1",
                   "--runs", "1", "--run-time", "0.02", "--decide-time", "0", "--confirm", "0", "-o", out, photos)
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads((out / "results.json").read_text())
        results["recommendation"]["runners_up"] = [1 - results["recommendation"]["result"]]
        results["results"][0]["cold_samples_per_s"], results["results"][1]["cold_samples_per_s"] = 100, 190  # margin: 0.9
        steps = {step["step"]: step for step in results["model"]["steps"] if "step" in step}
        (out / "results.json").write_text(json.dumps(results))

        def costs(*arguments):
            done = run("presto-sweep", "--check", self.dataset, "-o", out, "--json", *arguments)
            self.assertIn(done.returncode, (0, 4), done.stderr)
            return {cost["name"]: cost for cost in json.loads(done.stdout)["costs"]}, done.returncode

        same, _ = costs(photos)
        self.assertEqual(list(same), ["source bytes", "read-file", "decode-image", "resize-image"])  # not those after the split
        self.assertEqual(same["source bytes"]["then_mean_bytes"], same["source bytes"]["new_mean_bytes"])
        self.assertFalse(same["source bytes"]["differs"])
        self.assertEqual(same["decode-image"]["then_median_s"], steps["decode-image"]["median_s"])
        self.assertGreater(same["decode-image"]["new_median_s"], 0)
        results["source"]["measured_bytes"] *= 3
        steps["decode-image"]["median_s"] *= 1000
        (out / "results.json").write_text(json.dumps(results))
        other, code = costs(photos)
        self.assertTrue(other["source bytes"]["differs"])
        self.assertTrue(other["decode-image"]["differs"])
        self.assertEqual(code, 4)
        results["machine"]["cpu_model"] = "another"
        (out / "results.json").write_text(json.dumps(results))
        self.assertFalse(costs(photos)[0]["decode-image"]["differs"])
        table = run("presto-sweep", "--check", self.dataset, "-o", out, photos).stdout.decode()
        self.assertRegex(table, r"source bytes .* differs\n")
        self.assertRegex(table, r"decode-image .* ms .* alike\n")

    def test_what_cannot_be_checked_is_refused(self):
        self.assert_usage(run("presto-sweep", "--check", self.dataset), "needs new files")
        done = run("presto-sweep", "--check", self.make_photos(), self.make_photos())
        self.assert_fails(done, 1, "no TFRecord files")
        foreign = self.new("foreign")
        foreign.mkdir()
        shutil.copy(next(self.dataset.glob("data-*.tfrecord")), foreign)
        done = run("presto-sweep", "--check", foreign, self.make_photos())
        self.assert_fails(done, 2, foreign.name, "by which pipeline")
        done = run("presto-sweep", "--check", self.dataset, self.folder / "nothing")
        self.assert_fails(done, 1, "nothing")

    def test_samples_that_fail_in_steps_that_remain_are_left_out(self):
        stored = self.write("-u", "concatenated")
        photos = self.new("photos")
        shutil.copytree(self.make_photos(), photos)
        (next(photos.rglob("*.jpg")).parent / "bad.jpg").write_bytes(b"junk")
        done = run("presto-sweep", "--check", stored, photos)
        self.assert_fails(done, 3, "bad.jpg")
        done = run("presto-sweep", "--check", stored, "--on-error", "skip", photos)
        self.assertIn(done.returncode, (0, 4), done.stderr)

    def test_results_of_too_many_values_are_refused(self):
        out = self.new("sweep")
        out.mkdir()
        (out / "results.json").write_text('{"a": [' + "{}," * 1000000 + "{}]}")
        done = run("presto-sweep", "--check", self.dataset, "-o", out, self.make_photos())
        self.assert_fails(done, 1, "results.json")

    def test_broken_files_end_it_or_are_left_out(self):
        photos = self.new("photos")
        shutil.copytree(self.make_photos(), photos)
        broken = sorted(photos.rglob("*.jpg"))[3]
        broken.write_bytes(broken.read_bytes()[:300])
        done = run("presto-sweep", "--check", self.dataset, photos)
        self.assert_fails(done, 3, broken.name)
        found = json.loads(self.check(self.dataset, "--on-error", "skip:1", "--json", photos).stdout)
        self.assertEqual(found["tried_samples"], self.photo_count - 1)

    def test_folders_of_tfx_are_sources_and_new_files(self):
        """Split-train/ and Split-eval/, as TFX's ExampleGen writes them."""
        tfx = self.new("tfx")
        for split, number in (("Split-train", 2), ("Split-eval", 1)):
            (tfx / split).mkdir(parents=True)
            plain = self.write("-u", "concatenated", "--file-compression", "gzip", "-s", str(number))
            for i, shard in enumerate(sorted(plain.glob("data-*.tfrecord.gz"))):
                shutil.copy(shard, tfx / split / f"data_tfrecord-{i:05}-of-{number:05}.gz")
        stored = self.new()
        records = ["-p", "cv", "--from", "concatenated", "--feature", "image"]
        done = run("presto-write", "-q", *records, "-u", "decoded", "-c", "none", "-o", stored, tfx / "Split-train")
        self.assertEqual(done.returncode, 0, done.stderr)
        info = json.loads(run("presto-inspect", "info", "--json", stored).stdout)
        self.assertEqual(info["records"], self.photo_count)
        loaded = json.loads(self.load("--format", "null", "--json", *records, tfx / "Split-train", tfx / "Split-eval"))
        self.assertEqual(loaded["samples"], 2 * self.photo_count)  # each split is named
        self.assert_fails(run("presto-load", "--format", "null", *records, tfx), 2, "2 splits", "eval", "train")
        found = json.loads(self.check(stored, "--json", tfx / "Split-eval").stdout)
        self.assertEqual(found["tried_samples"], self.photo_count)
        self.assertFalse(any(figure["differs"] for figure in found["figures"]))
        out = self.new("sweep")
        done = run("presto-sweep", "-q", "--measure", *records, "--stored", "unprocessed,decoded", "--codecs", "none", "--threads",
                   "1", "--samples", "4", "--runs", "1", "--run-time", "0", "--decide-time", "0", "-o", out, tfx / "Split-train")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    main()
