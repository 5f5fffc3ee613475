#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad input: each kind gives a message that names file, record and byte, the documented exit code, and
nothing that looks whole."""
import json
import os
import resource
import shutil
import signal

from cli import Case, example, frames, main, run


def photo_with(case, name, data):
    """A source folder of two good photos and a bad one."""
    source = case.new("source")
    good = sorted(case.make_photos().rglob("*.jpg"))[:2]
    (source / "a").mkdir(parents=True)
    shutil.copy(good[0], source / "a" / "0.jpg")
    shutil.copy(good[1], source / "a" / "9.jpg")
    if data is not None:
        (source / "a" / name).write_bytes(data)
    return source


class BadSource(Case):
    photo_count = 4

    def assert_refused(self, source, code, *parts):
        out = self.new()
        done = run("presto-write", "-p", self.pipeline, "-j", "2", "-o", out, source)
        self.assert_fails(done, code, *parts)
        self.assertEqual(sum(": note: " not in line for line in done.stderr.splitlines()), 1, done.stderr)
        self.assert_no_dataset(out)
        done = run("presto-load", "-p", self.pipeline, "--format", "null", source)
        self.assert_fails(done, code, *parts)

    def test_a_text_file_named_jpg(self):
        self.assert_refused(photo_with(self, "5.jpg", b"this is no picture\n" * 10), 3, "a/5.jpg", "decode-image")

    def test_a_truncated_jpeg(self):
        data = next(self.make_photos().rglob("*.jpg")).read_bytes()
        for cut in (len(data) - 1, len(data) // 2, 100, 2):
            with self.subTest(cut=cut):
                self.assert_refused(photo_with(self, "5.jpg", data[:cut]), 3, "a/5.jpg", "decode-image")

    def test_a_file_of_no_bytes(self):
        self.assert_refused(photo_with(self, "5.jpg", b""), 3, "a/5.jpg")

    def test_skip_leaves_the_bad_one_out_and_counts_it(self):
        source = photo_with(self, "5.jpg", b"text")
        out = self.new()
        done = run("presto-write", "-p", self.pipeline, "-u", "resized", "--on-error", "skip", "-o", out, source)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"presto-write: skipped sample 1: .*a/5\.jpg: ")
        self.assertIn("1 sample skipped", done.stderr)
        keys = [example(p)["key"][0] for p in frames(self.load("-q", "--to", "resized", out))]
        self.assertEqual(keys, [b"a/0.jpg", b"a/9.jpg"])
        done = run("presto-load", "-p", self.pipeline, "--format", "null", "--on-error", "skip", source)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 sample skipped", done.stderr)

    def test_each_sample_skipped_has_a_line_in_the_report(self):
        photo = next(self.make_photos().rglob("*.jpg")).read_bytes()
        source = photo_with(self, "1.jpg", b"text")
        (source / "a" / "2.jpg").write_bytes(photo.replace(b"\xff\xc0", b"\xff\xc3", 1))  # lossless: no decoder
        (source / "a" / "3.jpg").write_bytes(photo[:len(photo) // 2])
        os.symlink("nothing", source / "a" / "4.jpg")
        os.link(source / "a" / "1.jpg", os.fsencode(source) + b"/a/5\xff.jpg")
        wanted = [("a/1.jpg", "PRESTO_ERR_"), ("a/2.jpg", "PRESTO_ERR_UNSUPPORTED"),
                  ("a/3.jpg", "PRESTO_ERR_TRUNCATED"), ("a/4.jpg", "PRESTO_ERR_NOT_FOUND"), ("a/5\\xff.jpg", "PRESTO_ERR_")]
        report = self.new("report")
        for j in (0, 2):
            report.unlink(missing_ok=True)
            done = run("presto-load", "-p", self.pipeline, "--format", "null", "-e", "2", "-j", j, "--on-error",
                       "skip", "--error-report", report, source)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("10 samples skipped", done.stderr)
            self.assertNotIn("skipped sample", done.stderr)
            lines = [json.loads(line) for line in report.read_text().splitlines()]
            self.assertEqual([(x["epoch"], x["sample"]) for x in lines],
                             [(e, s) for e in range(2) for s in range(1, 6)])
            for line, (name, status) in zip(lines, wanted * 2):
                self.assertEqual(list(line), ["file", "record", "byte", "sample", "samples", "epoch", "status", "reason"])
                self.assertEqual(line["samples"], 1)
                self.assertEqual(line["file"], f"{source}/{name}")
                self.assertTrue(line["status"].startswith(status), line)
                self.assertIsNone(line["record"])
                self.assertGreater(len(line["reason"]), 10)
        # presto-write appends to the same file.
        out = self.new()
        done = run("presto-write", "-p", self.pipeline, "-u", "resized", "--on-error", "skip", "--error-report", report,
                   "-o", out, source)
        self.assertEqual(done.returncode, 0, done.stderr)
        more = [json.loads(line) for line in report.read_text().splitlines()]
        self.assertEqual(more[:10], lines)
        self.assertEqual(more[10:], lines[:5])

    def test_the_report_says_where_a_damaged_record_stands(self):
        source = photo_with(self, "5.jpg", None)
        out = self.new()
        done = run("presto-write", "-p", self.pipeline, "-u", "resized", "-s", "1", "-o", out, source)
        self.assertEqual(done.returncode, 0, done.stderr)
        shard = out / "data-00000-of-00001.tfrecord"
        data = bytearray(shard.read_bytes())
        data[-10] ^= 1
        shard.write_bytes(data)
        second = len(data) - len(frames(bytes(data))[1]) - 16
        for raw in ([], ["--raw-records"]):
            report = self.new("report")
            done = run("presto-load", "--format", "null", "-q", "--on-error", "skip", "--error-report", report, *raw, out)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            line = json.loads(report.read_text())
            self.assertEqual((line["file"], line["record"], line["byte"], line["sample"], line["epoch"], line["status"]),
                             (str(shard), 1, second, 1, 0, "PRESTO_ERR_CORRUPT"))

    def test_a_report_that_cannot_be_written_is_a_failure(self):
        source = photo_with(self, "5.jpg", b"text")
        load = ["presto-load", "-p", self.pipeline, "--format", "null"]
        self.assert_usage(run(*load, "--error-report", self.new(), source), "--on-error")
        self.assert_fails(run(*load, "--on-error", "skip", "--error-report", source, source), 1, "Is a directory")
        self.assert_fails(run(*load, "-q", "--on-error", "skip", "--error-report", "/dev/full", source), 1,
                          "/dev/full", "No space left")

    def test_a_dataset_of_no_samples_is_loaded(self):
        """All were left out. No sample has shown what is stored."""
        source, out = self.new("photos"), self.new()
        source.mkdir()
        (source / "empty.jpg").touch()
        self.assertEqual(run("presto-write", "-p", "cv", "--on-error", "skip", "-o", out, source).returncode, 0)
        for form in ("null", "tfrecord", "npy", "raw"):
            done = run("presto-load", "--format", form, out)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("presto-load: 0 samples in", done.stderr)
            self.assertNotIn("the first after", done.stderr)

    def test_the_skip_budget_is_kept(self):
        source = photo_with(self, "5.jpg", b"text")
        for policy, code in [("skip:1", 0), ("skip:0", 3), ("skip:10%", 3), ("skip:50%", 0)]:
            with self.subTest(policy=policy):
                out = self.new()
                done = run("presto-write", "-p", self.pipeline, "--on-error", policy, "-o", out, source)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertEqual((out / "dataset.json").exists(), code == 0)

    def test_an_empty_folder(self):
        empty = self.new("empty")
        empty.mkdir()
        self.assert_refused(empty, 1, empty.name)

    def test_a_folder_without_a_match_says_what_was_looked_for(self):
        source = self.new("source")
        source.mkdir()
        (source / "x.png").write_bytes(b"")
        self.assert_refused(source, 1, source.name, "*.jpg")

    def test_a_source_that_does_not_exist(self):
        self.assert_refused(self.new("nowhere"), 1, "nowhere")

    def test_a_dangling_link(self):
        source = photo_with(self, "5.jpg", None)
        os.symlink("nothing", source / "a" / "5.jpg")
        self.assert_refused(source, 1, "a/5.jpg")

    def test_an_unreadable_file(self):
        source = photo_with(self, "5.jpg", b"x")
        (source / "a" / "5.jpg").chmod(0)
        if os.access(source / "a" / "5.jpg", os.R_OK):
            self.skipTest("the superuser reads everything")
        self.assert_refused(source, 1, "a/5.jpg", "Permission denied")

    def test_a_folder_named_like_a_photo_is_a_folder(self):
        source = photo_with(self, "5.jpg", None)
        (source / "a" / "5.jpg").mkdir()
        done = run("presto-load", "-p", self.pipeline, "--format", "null", source)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("2 samples", done.stderr)


class BadOutput(Case):
    photo_count = 8

    def test_a_folder_that_cannot_be_made(self):
        file = self.new("file")
        file.write_text("in the way")
        for out in (file, file / "below", self.folder / "none" / "at" / "all"):
            with self.subTest(out=out.name):
                done = run("presto-write", "-p", self.pipeline, "-o", out, self.make_photos())
                self.assertIn(done.returncode, (1, 2), done.stderr)
                self.assertIn(out.name, done.stderr)
        self.assertEqual(file.read_text(), "in the way")

    def test_a_disk_that_is_full(self):
        """A limit on the size of files stands for it: write() fails alike."""
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (50000, 50000))
        for codec in ("none", "lz4"):
            out = self.new()
            done = run("presto-write", "-p", self.pipeline, "-s", "1", "-c", codec, "-o", out, self.make_photos(),
                       preexec_fn=limit)
            self.assert_fails(done, 1, out.name, "File too large")
            self.assert_no_dataset(out)
            self.assertEqual([p.name for p in out.glob("*.tfrecord")], [])

    def test_figures_that_cannot_be_written(self):
        done = run("presto-load", "-p", self.pipeline, "--format", "null", "--stats", "/dev/full", self.make_photos())
        self.assert_fails(done, 1, "/dev/full", "No space left")
        done = run("presto-load", "-p", self.pipeline, "--format", "null", "--stats", self.folder / "no" / "file",
                   self.make_photos())
        self.assert_fails(done, 1, "no/file")


class BadWords(Case):
    photo_count = 4

    def test_an_unknown_pipeline_lists_the_known(self):
        for program in ("presto-write", "presto-load", "presto-sweep"):
            out = [] if program == "presto-load" else ["-o", self.new()]
            self.assert_usage(run(program, "-p", "cvv", *out, self.make_photos()), "did you mean 'cv'?", "cv2-jpg")

    def test_an_unknown_representation_lists_the_known(self):
        self.assert_usage(run("presto-write", "-p", "cv", "-u", "resised", "-o", self.new(), self.make_photos()),
                          "'resised'", "resized")
        self.assert_usage(run("presto-load", "--format", "null", "-p", "cv", "--from", "resised", self.make_photos()),
                          "'resised'", "resized")
        self.assert_usage(run("presto-sweep", "-p", "cv", "--stored", "decoded,resised", "-o", self.new(),
                              self.make_photos()), "'resised'", "resized")

    def test_set_of_a_step_that_is_not_there_lists_those_that_are(self):
        done = run("presto-load", "--format", "null", "-p", "cv", "--set", "resize-imag.min-side=3", self.make_photos())
        self.assert_fails(done, 1, "resize-imag.min-side=3", "read-file, decode-image, resize-image, center-pixels, random-crop")

    def test_a_dataset_does_not_hold_another_representation_than_it_says(self):
        out = self.write("-u", "resized")
        done = run("presto-load", "--format", "null", "--from", "decoded", out)
        self.assertNotEqual(done.returncode, 0, done.stderr)
        self.assertIn("holds 'resized', not 'decoded'", done.stderr)
        self.assertEqual(run("presto-load", "--format", "null", "--from", "resized", out).returncode, 0)

    def test_an_unknown_codec_lists_the_known(self):
        for codec in ("zst", "zstd:99", "none:1", "lz4+magic"):
            with self.subTest(codec=codec):
                out = self.new()
                self.assert_usage(run("presto-write", "-p", "cv", "-c", codec, "-o", out, self.make_photos()),
                                  "--codec")
                self.assertFalse(out.exists())
        self.assert_usage(run("presto-write", "-p", "cv", "-c", "zst", "-o", self.new(), "x"), "zstd", "snappy")

    def assert_bad_pipeline(self, text, *parts):
        path = self.new("pipeline").with_suffix(".yaml")
        path.write_text(text)
        out = self.new()
        for done in (run("presto-write", "-p", path, "-o", out, self.make_photos()),
                     run("presto-load", "--format", "null", "-p", path, self.make_photos())):
            self.assert_fails(done, 1, path.name, *parts)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertFalse(out.exists())

    def test_a_pipeline_with_an_error_names_file_and_line(self):
        good = self.pipeline.read_text()
        for text, parts in [
            (good.replace("decode-image", "decode-imago"), ["line 5", "decode-imago"]),
            (good.replace("min-side", "min-sid"), ["line 6", "min-sid"]),
            (good.replace("min-side: 48", "min-side: tall"), ["line 6", "tall"]),
            (good.replace("min-side: 48", "min-side: -1"), ["line 6", "min-side"]),
            (good.replace("type: files", "type: tape"), ["line 2", "tape"]),
            (good.replace("steps:", "steps: ["), ["line "]),
            (good.replace("name: small", "name: small\nname: again"), ["line 2", "name"]),
            (good + "colour: red\n", ["line 9", "colour"]),
            ("", ["line 1"]),
            ("\t", ["line 1"]),
            ("just a text", ["line 1"]),
        ]:
            with self.subTest(parts=parts):
                self.assert_bad_pipeline(text, *parts)

    def test_a_step_whose_input_does_not_fit_is_named(self):
        good = self.pipeline.read_text().splitlines(keepends=True)
        self.assert_bad_pipeline("".join(good[:4] + good[5:]), "line 5", "resize-image")  # no decode-image

    def test_a_pipeline_file_that_does_not_exist(self):
        done = run("presto-load", "--format", "null", "-p", "./no.yaml", self.make_photos())
        self.assert_fails(done, 1, "no.yaml")


if __name__ == "__main__":
    main()
