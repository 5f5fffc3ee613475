#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad input: each kind gives a message that names file, record and byte, the documented exit code, and
nothing that looks whole."""
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import zlib

from cli import PHOTOS, Case, example, frames, main, run


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


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
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
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


class BadShard(Case):
    photo_count = 8

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dataset = cls.write("-u", "concatenated", "-s", "1")

    def damaged(self, change):
        """A copy of the dataset whose shard has been changed."""
        copy = self.new("damaged")
        shutil.copytree(self.dataset, copy)
        shard = next(copy.glob("*.tfrecord"))
        data = bytearray(shard.read_bytes())
        shard.write_bytes(change(data))
        return copy, shard

    def positions(self):
        """Start of each record's frame, and the end."""
        shard = next(self.dataset.glob("*.tfrecord"))
        at = [0]
        for payload in frames(shard.read_bytes()):
            at.append(at[-1] + 16 + len(payload))
        return at

    def test_a_flipped_bit_in_the_data_names_file_record_and_byte(self):
        start = self.positions()[3]

        def flip(data):
            data[start + 12 + 200] ^= 1
            return data
        copy, shard = self.damaged(flip)
        done = run("presto-load", "--format", "null", copy)
        self.assert_fails(done, 3, shard.name, "record 3", "at byte ")
        done = run("presto-load", "-q", "--on-error", "skip", copy)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("record 3", done.stderr)
        self.assertEqual(len(frames(done.stdout)), self.photo_count - 1)

    def sums(self, stream):
        """A short stand-in for each payload of a stream."""
        return [zlib.crc32(payload) for payload in frames(stream)]

    def test_skipping_goes_on_behind_a_damaged_length(self):
        """In a file of others, whose records are found by their lengths, and in a dataset without its index."""
        at, whole = self.positions(), self.sums(self.load("--to", "concatenated", self.dataset))
        spots = [(2, at[2] + 3), (5, at[5] + 9)]  # record, byte

        def damage(data):
            for _, byte in spots:
                data[byte] ^= 1
            return data[: at[-1] - 5]
        copy, shard = self.damaged(damage)
        (copy / f"{shard.name}.index").unlink()
        foreign = self.new("foreign")
        foreign.mkdir()
        shutil.copy(shard, foreign / "some.tfrecord")
        lost = [record for record, _ in spots] + [self.photo_count - 1]
        kept = [payload for i, payload in enumerate(whole) if i not in lost]
        for folder in (copy, foreign):
            self.assert_fails(run("presto-load", "--format", "null", folder), 3, "record 2", f"at byte {at[2]}")
            for options in (["-j", "0"], ["-j", "1"], ["-j", "4"], ["--raw-records"], ["-j", "2", "--shuffle", "full"]):
                with self.subTest(folder=folder.name, options=options):
                    report = self.new("report")
                    to = ["--to", "concatenated"] if folder == copy and "-j" in options else []
                    done = run("presto-load", *to, "--on-error", "skip", "--error-report", report, *options, folder)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    got = self.sums(done.stdout)
                    self.assertEqual(sorted(got) if "full" in options else got, sorted(kept) if "full" in options else kept)
                    told = [json.loads(line) for line in report.read_text().splitlines()]
                    self.assertEqual(sorted((line["record"], line["byte"]) for line in told), [(i, at[i]) for i in lost])

    def test_skipping_delivers_what_a_cut_shard_still_holds(self):
        at, whole = self.positions(), self.sums(self.load("--to", "concatenated", self.dataset))
        for left, end in ((3, at[3]), (3, at[3] + 5), (3, at[4] - 1), (0, 0), (0, 7)):
            copy, shard = self.damaged(lambda data, end=end: data[:end])
            for j in (0, 1, 3):
                with self.subTest(end=end, j=j):
                    report = self.new("report")
                    done = run("presto-load", "--to", "concatenated", "-j", j, "--on-error", "skip", "--error-report", report, copy)
                    self.assertEqual((done.returncode, self.sums(done.stdout)), (0, whole[:left]), done.stderr)
                    told = [json.loads(line) for line in report.read_text().splitlines()]
                    lost = [line[key] + i for key in ("record", "sample") for line in told for i in range(line["samples"])]
                    self.assertEqual(lost, [*range(left, self.photo_count)] * 2)
                    self.assertLessEqual(len(told), 8)
                    self.assertEqual({line["status"] for line in told}, {"PRESTO_ERR_TRUNCATED"})
            out = self.new()
            convert = ["presto-write", "-q", "-p", self.pipeline, "-u", "resized", "-o", out]
            self.assert_fails(run(*convert, copy), 3, shard.name)
            self.assertEqual(run(*convert, "--on-error", "skip", copy).returncode, 0)
            self.assertEqual(len(frames(self.load("--to", "resized", out))), left)

    def test_skipping_delivers_what_stands_before_the_damage_in_a_compressed_shard(self):
        dataset = self.write("-u", "concatenated", "-s", "1", "--file-compression", "gzip")
        whole = self.sums(self.load("--to", "concatenated", dataset))
        shard = next(dataset.glob("*.gz"))
        data = shard.read_bytes()
        for end, least in ((len(data) - 4, self.photo_count), (len(data) // 2, 1), (30, 0)):
            shard.write_bytes(data[:end])
            for options in ([], ["--raw-records"]):
                with self.subTest(end=end, options=options):
                    report = self.new("report")
                    to = options or ["--to", "concatenated", "-j", "2"]
                    done = run("presto-load", *to, "--on-error", "skip", "--error-report", report, dataset)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    got = self.sums(done.stdout)
                    self.assertGreaterEqual(len(got), least)
                    self.assertEqual(got, whole[: len(got)])
                    told = [json.loads(line)["samples"] for line in report.read_text().splitlines()]
                    self.assertTrue(sum(told) == self.photo_count - len(got) or (options and sum(told) <= 1), told)

    def test_samples_before_the_damage_are_delivered(self):
        start = self.positions()[3]

        def flip(data):
            data[start + 12 + 200] ^= 1
            return data
        copy, _ = self.damaged(flip)
        for j in (0, 1, 4):
            done = run("presto-load", "-j", j, "--to", "concatenated", "-b", "1", copy)
            self.assertEqual(done.returncode, 3)
            self.assertEqual(len(frames(done.stdout)), 3)

    def test_a_flipped_bit_in_each_part_of_a_frame(self):
        start, end = self.positions()[2:4]
        for name, at in [("length", start), ("length", start + 7), ("length's checksum", start + 9),
                         ("data", start + 12), ("data's checksum", end - 1)]:
            def flip(data, at=at):
                data[at] ^= 0x10
                return data
            with self.subTest(part=name, at=at - start):
                copy, shard = self.damaged(flip)
                self.assert_fails(run("presto-load", "--format", "null", copy), 3, shard.name)
                foreign = run("presto-load", "--format", "null", shard)  # without dataset.json
                self.assert_fails(foreign, 3, shard.name)

    def test_a_shard_that_is_cut(self):
        positions = self.positions()
        for cut in (0, 5, positions[1], positions[2] + 3, positions[3] + 100, positions[-1] - 1):
            with self.subTest(cut=cut):
                copy, shard = self.damaged(lambda data, cut=cut: data[:cut])
                self.assert_fails(run("presto-load", "--format", "null", copy), 3, shard.name)

    def test_a_shard_that_is_missing(self):
        copy, shard = self.damaged(lambda data: data)
        shard.unlink()
        self.assert_fails(run("presto-load", "--format", "null", copy), 1, shard.name)

    def test_a_dataset_without_its_description_is_foreign_records(self):
        copy, _ = self.damaged(lambda data: data)
        (copy / "dataset.json").unlink()
        self.assertEqual(len(frames(self.load("-q", copy))), self.photo_count)

    def test_a_description_that_is_damaged(self):
        whole = (self.dataset / "dataset.json").read_bytes()
        for text in (b"", b"{", whole[: len(whole) // 2], b"[]", b"{}", whole.replace(b'"records"', b'"rekords"')):
            copy, _ = self.damaged(lambda data: data)
            (copy / "dataset.json").write_bytes(text)
            with self.subTest(text=text[:20]):
                self.assert_fails(run("presto-load", "--format", "null", copy), 3, "dataset.json")


TO = ["--to", "resized"]


class BadIndex(Case):
    """An index is a hint: whatever is wrong with it, the stream is the same, and one line tells."""
    photo_count = 12
    orders = [[*TO], [*TO, "--shuffle", "full"], [*TO, "--shuffle", "buffer:4"], [*TO, "--on-error", "skip"],
              [*TO, "--on-error", "skip", "--shuffle", "full"], [*TO, "--verify", "none"], [*TO, "-j", "0", "-e", "2"],
              ["--raw-records"]]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dataset = cls.write("-u", "resized", "-c", "zstd:1", "-s", "2")
        cls.index = sorted(cls.dataset.glob("*.index"))[1]
        cls.whole = cls.index.read_bytes()
        cls.streams = [run("presto-load", "-q", *order, cls.dataset).stdout for order in cls.orders]
        assert all(len(frames(stream)) in (12, 24) for stream in cls.streams)

    def tearDown(self):
        self.index.unlink(missing_ok=True)
        self.index.write_bytes(self.whole)

    def assert_same_stream(self, i, warns=True):
        done = run("presto-load", *self.orders[i], self.dataset)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, self.streams[i])
        self.assertEqual(done.stderr.count(f"{self.index.name}: bad index"), int(warns), done.stderr)
        self.assertNotRegex(done.stderr, r"[1-9] (sample )?skipped")

    def test_a_flipped_bit_anywhere_changes_nothing(self):
        for at in range(len(self.whole)):
            damaged = bytearray(self.whole)
            damaged[at] ^= 1 << (at * 5 % 8)
            self.index.write_bytes(damaged)
            with self.subTest(at=at):
                self.assert_same_stream(at % len(self.orders))

    def test_the_other_programs_see_it_too(self):
        damaged = bytearray(self.whole)
        damaged[48 + 8 * 3] ^= 8
        self.index.write_bytes(damaged)
        done = run("presto-inspect", "verify", self.dataset)
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stdout.decode(), r"data-00001-of-00002\.tfrecord: bad index: ")
        done = run("presto-inspect", "info", "--json", self.dataset)
        self.assertEqual(json.loads(done.stdout)["records"], 12)
        for program in (["recode", "-o", self.new(), "-c", "none", self.dataset], ["cat", "--json", self.dataset]):
            done = run("presto-inspect", *program)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr.count(f"{self.index.name}: bad index, not used"), 1, done.stderr)
        self.assertEqual(run("presto-inspect", "index", self.dataset).returncode, 0)
        self.assertEqual(self.index.read_bytes(), self.whole)

    def test_a_cut_or_unreadable_index_changes_nothing(self):
        for cut in (0, 20, 48, 60, len(self.whole) - 1):
            self.index.write_bytes(self.whole[:cut])
            self.assert_same_stream(0)
        self.index.unlink()
        os.mkfifo(self.index)
        self.assert_same_stream(0)
        self.index.unlink()
        self.assert_same_stream(0, warns=False)

    def test_an_index_with_another_count_than_the_description_changes_nothing(self):
        count = struct.unpack_from("<Q", self.whole, 16)[0]
        offsets = self.whole[48 : 48 + 8 * (count + 1)]
        header = self.whole[:16] + struct.pack("<Q", count - 1) + self.whole[24:44]
        header += struct.pack("<I", crc32c(header))
        body = header + offsets[:16] + offsets[24:]
        self.index.write_bytes(body + struct.pack("<I", crc32c(body)))
        for i in range(len(self.orders)):
            with self.subTest(order=self.orders[i]):
                self.assert_same_stream(i)


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
        self.assert_usage(run("presto-sweep", "-p", "cv", "--splits", "decoded,resised", "-o", self.new(),
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
