#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TFRecords of other programs, and datasets of ours, as the source of presto-write, presto-load and presto-sweep."""
import gzip
import io
import json
import re
import shlex
import struct
import subprocess
import sys
import tarfile

from cli import ROOT, TOOLS, Case, a_sweep, example, fields, frames, main, run

sys.path.insert(0, str(ROOT / "tests" / "corpora"))
from records import framed, serialized  # noqa: E402

YAML = """\
name: small
source: {type: tfrecord, feature: image/encoded, label: image/class/label%s}
steps:
  - {step: decode-image,  yields: decoded, channels: 3}
  - {step: resize-image,  yields: resized, min-side: 48}
  - {step: center-pixels, yields: pixel-centered}
  - {step: random-crop,   height: 32, width: 40}
"""
FROM = ("--from", "concatenated", "--feature", "image/encoded", "--set", "source.label=image/class/label")


class Tfrecord(Case):
    photo_count = 16

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        photos = cls.make_photos()
        cls.files = sorted(photos.rglob("*.jpg"))
        classes = sorted({path.parent.name for path in cls.files})
        cls.labels = [classes.index(path.parent.name) for path in cls.files]
        cls.theirs = cls.folder / "theirs"
        cls.theirs.mkdir()
        records = [framed(serialized({
            "image/filename": path.name.encode(), "image/class/label": label, "image/encoded": path.read_bytes(),
            "image/object/bbox/xmin": [0.5 * k for k in range(number % 4)]}))
            for number, (path, label) in enumerate(zip(cls.files, cls.labels))]
        cls.records = records
        for shard in range(2):
            (cls.theirs / f"train-{shard:05}-of-00002").write_bytes(b"".join(records[shard * 8:shard * 8 + 8]))
        cls.yaml = cls.folder / "mine.yaml"
        cls.yaml.write_text(YAML % "")

    def test_the_first_pass_begins_at_once(self):
        """Without an index nothing is counted first: what comes is what comes with one."""
        alone = self.new("alone")
        alone.mkdir()
        for path in self.theirs.iterdir():
            (alone / path.name).write_bytes(path.read_bytes())
        load = ("-q", "-p", self.pipeline, *FROM, "-e", "2")
        caches = ([], ["--cache", "memory:100MiB"], ["--cache", "memory:50KiB"])
        orders = [["--format", "npy", "-b", "3", "-j", j, *cache] for j in ("0", "1", "4") for cache in caches]
        orders += [["-j", "2", "--skip", "11"], ["--to", "decoded", "--limit", "5"]]
        walked = [self.load(*load, *order, alone) for order in orders]
        state = self.new("state")
        self.load(*load, "-j", "0", "-b", "1", "--limit", "1", "--state", state, alone)
        self.assertIsNone(json.loads(state.read_text())["samples"])
        self.assertEqual(run("presto-inspect", "index", alone).returncode, 0)
        self.assertEqual([self.load(*load, *order, alone) for order in orders], walked)
        state = self.new("state")
        self.load(*load, "-j", "0", "-b", "1", "--limit", "1", "--state", state, alone)
        self.assertEqual(json.loads(state.read_text())["samples"], len(self.files))

    def test_what_the_first_pass_reads_is_counted(self):
        for pack in (bytes, gzip.compress):
            folder = self.new("counted")
            folder.mkdir()
            for path in self.theirs.iterdir():
                (folder / path.name).write_bytes(pack(path.read_bytes() * 20))
            total = sum(path.stat().st_size for path in folder.iterdir())
            for j in ("0", "2"):
                stats = json.loads(self.load("--json", "--format", "null", "-j", j, folder))
                self.assertEqual((stats["samples"], stats["read_bytes"]), (20 * len(self.files), total), (pack, j))

    def test_damage_at_the_beginning_is_passed_over(self):
        """What the records hold is found out from whole ones; a damaged one is told where it stands."""
        for damage in ("header", "payload", "whole file"):
            alone = self.new("alone")
            alone.mkdir()
            for path in sorted(self.theirs.iterdir()):
                content = bytearray(path.read_bytes())
                if path.name.startswith("train-00000"):
                    for at in {"header": (9,), "payload": (len(self.records[0]) - 2,), "whole file": range(9, len(content), 97)}[damage]:
                        content[at] ^= 1
                (alone / path.name).write_bytes(content)
            load = ("-p", self.pipeline, "--from", "concatenated", "--feature", "image/encoded")
            done = run("presto-load", "-q", *load, alone)
            self.assert_fails(done, 3, "train-00000", "record 0")
            done = run("presto-load", "-q", *load, "--on-error", "skip", alone)
            self.assertEqual((done.returncode, len(frames(done.stdout))), (0, 8 if damage == "whole file" else 15), done.stderr)

    def test_tfrecords_that_are_named_one_by_one_are_no_files_of_a_source(self):
        """Files may have any name, but TFRecords are not samples: the message says which options to give."""
        files = sorted(self.theirs.iterdir())
        packed = self.new("train.gz")
        packed.write_bytes(gzip.compress(files[0].read_bytes()))
        for paths in (files, [packed], [self.files[0], *files]):
            for program in (["presto-load", "--format", "null"], ["presto-write", "-o", self.new()]):
                done = run(*program, "-p", "cv", *paths)
                self.assert_fails(done, 1, "it holds TFRecords", "--from concatenated --feature NAME")
        odd = self.new("photo.of-mine")
        odd.write_bytes(self.files[0].read_bytes())
        self.assertEqual(len(self.examples("-p", self.pipeline, "--to", "decoded", odd)), 1)

    def test_options_of_the_source_that_records_replace_are_told_once(self):
        """The pipeline's own source is not read: what it says of labels and classes says nothing of the records."""
        classes = self.new("pipeline.yaml")
        classes.write_text(self.pipeline.read_text().replace("label: parent-folder", "label: parent-folder, classes: [a, b, c, d]"))
        from_ = ("--from", "concatenated", "--feature", "image/encoded")
        label, names = ("--set", "source.label=image/class/label"), ("--set", "source.classes=[a, b, c, d]")
        for pipeline, more, unused in ((self.pipeline, (), "option label is not"), (classes, (), "options label, classes are not"),
                                       (classes, label, "option classes is not"), (self.pipeline, label, None),
                                       (classes, (*label, *names), None), (self.yaml, (), "option label is not")):
            with self.subTest(more=more, unused=unused):
                done = run("presto-load", "--format", "null", "-p", pipeline, *from_, *more, self.theirs)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stderr.count("records take the place of the pipeline's source"), unused is not None, done.stderr)
                self.assertIn(unused or "", done.stderr)
        # Records that have a feature of that name miss nothing.
        named = self.new("named.tfrecord")
        named.write_bytes(b"".join(framed(serialized({"image/encoded": path.read_bytes(), "label": 1})) for path in self.files[:2]))
        done = run("presto-load", "--format", "null", "-p", self.pipeline, *from_, named)
        self.assertEqual((done.returncode, done.stderr.count("take the place")), (0, 0), done.stderr)

    def test_the_hint_about_pipelines_is_given_for_raw_files_alone(self):
        hint = "name its pipeline"
        self.assert_fails(run("presto-load", "--format", "null", self.make_photos()), 1, hint)
        missing = run("presto-load", "--format", "null", self.folder / "missing")
        self.assert_fails(missing, 1, "missing")
        self.assertNotIn(hint, missing.stderr)

    @a_sweep
    def test_a_sweep_samples_files_from_all_over(self):
        """Ten files, of which only those in the middle hold photos: the first ones would be no sample of them."""
        many = self.new("many")
        many.mkdir()
        for number in range(10):
            records = self.records[:4] if number == 5 else [
                framed(serialized({"image/encoded": b"no photo", "image/class/label": 0})) for _ in range(4)]
            (many / f"{number}.tfrecord").write_bytes(b"".join(records))
        sweep = ("-p", self.pipeline, *FROM, "--stored", "resized", "--codecs", "none", "--threads", "1", "--runs", "1")
        done = run("presto-sweep", *sweep, "--samples", "4", "-o", self.new(), many)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = run("presto-sweep", *sweep, "--samples", "8", "-o", self.new(), many)
        self.assertNotEqual(done.returncode, 0, "half of these are no photos")

    @a_sweep
    def test_a_sweep_samples_records_from_all_over_a_file(self):
        """Of 40 records, four are photos: those in the middle of each quarter, or the first ones."""
        no_photo = framed(serialized({"image/encoded": b"no photo", "image/class/label": 0}))
        sweep = ("-p", self.pipeline, *FROM, "--stored", "unprocessed,resized", "--codecs", "none", "--threads", "1", "--runs", "1",
                 "--samples", "4")
        for photos, packed in (((4, 14, 24, 34), False), ((0, 1, 2, 3), False), ((0, 1, 2, 3), True)):
            content = b"".join(self.records[photos.index(i)] if i in photos else no_photo for i in range(40))
            one = self.new("one.tfrecord" + (".gz" if packed else ""))
            one.write_bytes(gzip.compress(content) if packed else content)
            out = self.new()
            done = run("presto-sweep", *sweep, "-o", out, one)
            if photos[0] == 0 and not packed:
                self.assertNotEqual(done.returncode, 0, "the sample has no photo")
                continue
            self.assertEqual(done.returncode, 0, done.stderr)
            which = "the first 4 of 40 samples" if packed else "an even selection of 4 of 40 samples"
            self.assertIn(which, " ".join(json.loads((out / "results.json").read_text())["notes"]))

    def tar(self, photos, first, count, ending):
        """A WebDataset shard of the samples from `first` on, of which those with a number in `photos` are photos."""
        path = self.new("shard").with_suffix(ending)
        with tarfile.open(path, "w:gz" if ending.endswith("gz") else "w") as tar:
            for number in range(first, first + count):
                photo = self.files[photos.index(number)].read_bytes() if number in photos else b"no photo"
                for name, content in ((f"{number:03}.jpg", photo), (f"{number:03}.cls", b"0")):
                    member = tarfile.TarInfo(name)
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
        return path

    @a_sweep
    def test_a_sweep_samples_members_of_tars_from_all_over(self):
        """Of 40 samples in two shards four are photos: those of an even selection, or the first ones, which are taken of .tar.gz."""
        sweep = ("-p", self.pipeline, "--set", "source.type=tar", "--stored", "unprocessed,resized", "--codecs", "none",
                 "--threads", "1", "--runs", "1", "--run-time", "0", "--decide-time", "0", "--samples", "4")
        for ending, which in ((".tar", "an even selection of"), (".tar.gz", "the first")):
            for photos in ((4, 14, 24, 34), (0, 1, 2, 3)):
                shards = [self.tar(photos, first, count, ending) for first, count in ((0, 10), (10, 30))]
                out = self.new()
                done = run("presto-sweep", *sweep, "-o", out, *shards)
                if (photos[0] == 0) != (which == "the first"):
                    self.assert_fails(done, 3, "shard", "a JPEG or PNG is needed")
                    continue
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f"{which} 4 of 40 samples", " ".join(json.loads((out / "results.json").read_text())["notes"]))

    def examples(self, *arguments):
        return [example(payload) for payload in frames(self.load("-q", *arguments))]

    def assert_same(self, theirs, ours):
        """The same images and labels as those of the files."""
        self.assertEqual(len(theirs), len(self.files))
        for one, other in zip(theirs, ours):
            self.assertEqual(one["image/encoded"], other["image"])
            self.assertEqual(one["label"], other["label"])

    # ---- the programs ----

    def test_every_split_is_written_as_from_the_files_themselves(self):
        for split in ("concatenated", "decoded", "resized", "pixel-centered"):
            files = self.write("-u", split, "-s", 2)
            for how in (["-p", self.pipeline, *FROM], ["-p", self.yaml]):
                out = self.new("dataset")
                done = run("presto-write", *how, "-u", split, "-s", 3, "-o", out, self.theirs)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assert_same(self.examples("--to", split, out), self.examples("--to", split, files))
                # The remaining steps draw the same random numbers.
                with_from = self.examples("--seed", 7, out)
                if how[1] == self.pipeline:
                    self.assert_same(with_from, self.examples("--seed", 7, files))

    def test_all_steps_run_online_as_from_the_files_themselves(self):
        ours = self.examples("-p", self.pipeline, "--seed", 3, "--shuffle", "full", self.make_photos())
        for inputs in ([self.theirs], sorted(self.theirs.iterdir())):
            theirs = self.examples("-p", self.pipeline, *FROM, "--seed", 3, "--shuffle", "full", *inputs)
            self.assert_same(theirs, ours)

    @a_sweep
    def test_the_recommended_commands_of_a_sweep_run(self):
        out = self.new("plan")
        done = run("presto-sweep", "-p", self.pipeline, *FROM, "--codecs", "none,zlib:1", "--threads", "2", "--samples", 8,
                   "--runs", 1, "--run-time", 0, "--decide-time", 0, "-o", out, self.theirs, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads((out / "results.json").read_text())
        self.assertIn("unprocessed", json.dumps(results))
        commands = [line.strip() for line in done.stdout.decode().partition("\nNext:\n")[2].splitlines()
                    if line.startswith("  presto-")]
        self.assertGreaterEqual(len(commands), 1)
        for command in commands:
            words = shlex.split(command)
            done = subprocess.run([TOOLS / words[0], *words[1:]], cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, command + done.stderr)
            if words[0] == "presto-load":
                self.assertIn("16 samples", done.stderr)
        strategy = out / "strategy.yaml"
        text = re.sub(r"stored: .*\n(codec: .*\n)?(shards: .*\n)?", "stored: unprocessed\n", strategy.read_text())
        strategy.write_text(text)
        done = run("presto-load", "--strategy", strategy, "--format", "null", "--json", self.theirs)
        self.assertEqual(json.loads(done.stdout)["samples"], 16, done.stderr)

    # ---- what comes along ----

    def test_other_features_come_along_if_they_are_chosen(self):
        out = self.new("dataset")
        run("presto-write", "-p", self.yaml, "-u", "resized", "-o", out, self.theirs)
        info = json.loads((out / "dataset.json").read_text())
        self.assertEqual({f["name"]: f["shape"] for f in info["features"] if f["encoding"] != "tensor"},
                         {"image/filename": [], "image/object/bbox/xmin": [-1], "label": []})
        for number, one in enumerate(self.examples("--to", "resized", out)):
            self.assertEqual(one["image/filename"], [self.files[number].name.encode()])
            self.assertEqual(struct.unpack(f"<{number % 4}f", b"".join(v for _, v in fields(one["image/object/bbox/xmin"]))),
                             tuple(0.5 * k for k in range(number % 4)))
        chosen = self.folder / "chosen.yaml"
        chosen.write_text(YAML % ", features: [image/filename]")
        for one in self.examples("-p", chosen, "--to", "decoded", self.theirs):
            self.assertEqual(set(one), {"image/encoded", "image/filename", "label"})

    # ---- kinds of input ----

    def test_gzip_and_datasets_of_ours_are_sources(self):
        ours = self.examples("-p", self.pipeline, "--to", "resized", self.make_photos())
        packed = self.new("packed")
        packed.mkdir()
        for path in self.theirs.iterdir():
            (packed / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        self.assert_same(self.examples("-p", self.yaml, "--to", "resized", packed), ours)
        stored = self.new("stored")
        for codec in ("none", "zstd:1"):
            stored = self.new("stored")
            done = run("presto-write", "-p", self.yaml, "-u", "concatenated", "-c", codec, "-o", stored, self.theirs)
            self.assertEqual(done.returncode, 0, done.stderr)
            other = self.folder / "other.yaml"
            other.write_text((YAML % "").replace("name: small", "name: other").replace(", label: image/class/label", ""))
            self.assert_same(self.examples("-p", other, "--to", "resized", stored), ours)
            again = self.new("dataset")
            done = run("presto-write", "-p", other, "-u", "resized", "-o", again, stored)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assert_same(self.examples("--to", "resized", again), ours)

    def test_what_was_stored_again_in_another_codec_goes_on_where_it_was(self):
        files = self.write("-u", "concatenated", "-s", 2)
        again = self.new("again")
        self.assertEqual(run("presto-inspect", "recode", "-c", "zstd:1", "-o", again, files).returncode, 0)
        wanted = self.load("-q", files)
        self.assertTrue(self.load("-q", again) == wanted)
        self.assertTrue(self.load("-q", "-p", self.pipeline, again) == wanted)
        self.assertTrue(self.load("-q", "-p", self.pipeline, "--from", "concatenated", again) == wanted)
        out = self.new("dataset")
        done = run("presto-write", "-p", self.pipeline, "-u", "resized", "-o", out, again)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_where_it_is_not_known_what_the_records_hold_the_message_says_what_to_give(self):
        again = self.new("again")
        self.assertEqual(run("presto-inspect", "recode", "-c", "zstd:1", "-o", again, self.theirs).returncode, 0)
        self.assertEqual(len(self.examples(again)), 16)
        self.assert_fails(run("presto-load", "-p", self.pipeline, "--format", "null", again), 2, "give --from REPRESENTATION")
        self.assert_fails(run("presto-write", "-p", self.pipeline, "-o", self.new(), again), 2, "give --from")
        for source in (again, self.theirs):
            for program in (["presto-load", "--format", "null"], ["presto-write", "-o", self.new()],
                            ["presto-sweep", "-o", self.new()]):
                done = run(*program, "-p", self.pipeline, "--from", "concatenated", source)
                self.assert_fails(done, 2, "Give --feature NAME", "image/encoded", "image/class/label")
                done = run(*program, "-p", self.pipeline, "--from", "concatenated", "--feature", "image/encodd", source)
                self.assert_fails(done, 2, "no feature 'image/encodd'", "image/encoded")
            self.assertEqual(len(self.examples("-p", self.pipeline, *FROM, source)), 16)
        done = run("presto-write", "-p", self.pipeline, "-o", self.new(), self.theirs)
        self.assert_fails(done, 1, "holds TFRecords", "--from")

    def test_a_representation_that_the_bytes_are_not_is_refused(self):
        done = run("presto-load", "--format", "null", "-p", self.pipeline, "--from", "resized", "--feature", "image/encoded",
                   self.theirs)
        self.assert_fails(done, 1, "other bytes than a TensorProto", "--from")
        done = run("presto-load", "--format", "null", "-p", self.pipeline, "--from", "concatenated", "--feature",
                   "image/class/label", self.theirs)
        self.assert_fails(done, 1, "decode-image", "int64")
        self.assert_usage(run("presto-sweep", "-p", self.pipeline, "--from", "resised", "-o", self.new(), self.theirs),
                          "'resised'", "resized")

    # ---- damage ----

    def test_a_damaged_record_is_named_and_can_be_left_out(self):
        hurt = self.new("hurt")
        hurt.mkdir()
        for path in self.theirs.iterdir():
            (hurt / path.name).write_bytes(path.read_bytes())
        path = hurt / "train-00001-of-00002"
        content = bytearray(path.read_bytes())
        at = sum(len(record) for record in self.records[8:11])
        content[at + 500] ^= 1
        path.write_bytes(content)
        for program in (["presto-load", "--format", "null"], ["presto-write", "-o", self.new(), "-u", "resized"]):
            done = run(*program, "-p", self.yaml, hurt)
            self.assert_fails(done, 3, path, "record 3", f"byte {at}")
        out, report = self.new("dataset"), self.new("report")
        done = run("presto-write", "-p", self.yaml, "-u", "resized", "--on-error", "skip", "--error-report", report, "-o", out,
                   hurt)
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(report.read_text())
        self.assertEqual((told["file"], told["record"], told["byte"], told["sample"]), (str(path), 3, at, 11))
        kept = [one["image/filename"][0].decode() for one in self.examples("--to", "resized", out)]
        self.assertEqual(kept, [file.name for number, file in enumerate(self.files) if number != 11])
        # A length that is damaged: the rest of the file is found again.
        content[at + 2] ^= 1
        path.write_bytes(content)
        self.assert_fails(run("presto-load", "--format", "null", "-p", self.yaml, hurt), 3, path, f"byte {at}")
        self.assertEqual(len(self.examples("-p", self.yaml, "--on-error", "skip", "--to", "decoded", hurt)), 15)

    def test_an_image_that_cannot_be_decoded_is_named_by_its_record(self):
        path = self.new("broken").with_suffix(".tfrecord")
        bad = framed(serialized({"image/encoded": b"\xff\xd8\xff\xe0 no more", "image/class/label": 1}))
        path.write_bytes(self.records[0] + bad + self.records[1])
        self.assert_fails(run("presto-load", "--format", "null", "-p", self.yaml, path), 3, path, "record 1",
                          f"byte {len(self.records[0])}", "decode-image")


if __name__ == "__main__":
    main()
