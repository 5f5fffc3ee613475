#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JPEGs stored with an index (index-jpeg): offered by presto-sweep, and made of any source, with the pixels of the photos."""
import json
import shlex
import subprocess
import sys
import tarfile

from cli import ROOT, TOOLS, Case, a_sweep, example, frames, main, run

sys.path.insert(0, str(ROOT / "tests" / "corpora"))
from records import framed, serialized  # noqa: E402

STEPS = """\
name: cropped
source: {type: files, match: ["*.jpg"], label: parent-folder}
steps:
  - {step: read-file,           yields: concatenated}
  - {step: decode-image,        yields: decoded}
  - {step: %s}
"""
CROPS = ("random-resized-crop, size: 24, scale: [0.1, 0.6]", "random-crop, height: 20, width: 30",
         "crop-or-pad, height: 33, width: 17")
SEEKABLE = ("--set", "seekable=true", "-u", "seekable")
ORDER = ("-q", "--format", "npy", "--seed", "5", "-e", "2", "-b", "6")


class Seekable(Case):
    photo_count = 12

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.pipeline.write_text(STEPS % CROPS[0])
        cls.photos = cls.make_photos()
        cls.files = sorted(cls.photos.rglob("*.jpg"))

    def assert_indexed(self, dataset):
        """Each record is a JPEG with an index, smaller than 1.1 times the photo."""
        records = []
        for shard in sorted(dataset.glob("*.tfrecord")):
            records += [example(payload) for payload in frames(shard.read_bytes())]
        self.assertEqual(len(records), len(self.files))
        for record in records:
            (jpeg,) = [value[0] for value in record.values() if isinstance(value, list) and isinstance(value[0], bytes)
                       and value[0].startswith(b"\xff\xd8")]
            self.assertIn(b"PRESTO\0\1", jpeg[:64])
        return records

    @a_sweep
    def test_what_the_sweep_offers_can_be_written_and_loaded(self):
        """As printed, and by strategy.yaml: the same batches as from the photos."""
        out, work = self.new("sweep"), self.new("work")
        work.mkdir()
        sweep = ("presto-sweep", "-p", self.pipeline, "--codecs", "none", "--threads", "1", "--samples", "4", "--runs", "1",
                 "--run-time", "0", "--decide-time", "0", "--confirm", "0")
        done = run(*sweep, "--stored", "seekable", "-o", out, self.photos)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        text = done.stdout.decode()
        self.assertIn("seekable is no representation of the pipeline", " ".join(text.split()))
        write, load = [shlex.split(line) for line in text[text.index("Next:"):].splitlines() if line.startswith("  presto-")]
        self.assertEqual(write[:7], ["presto-write", "-p", str(self.pipeline), "--set", "seekable=true", "-u", "seekable"])
        want = self.load("-p", self.pipeline, *ORDER, self.photos)
        for command in (write, load):
            done = subprocess.run([TOOLS / command[0], *command[1:]], cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.load(*ORDER, work / "cropped-seekable"), want)
        self.assert_indexed(work / "cropped-seekable")
        by_file = self.new("dataset")
        done = run("presto-write", "-q", "--strategy", out / "strategy.yaml", "-o", by_file, self.photos)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.load("--strategy", out / "strategy.yaml", *ORDER, by_file), want)
        results = json.loads((out / "results.json").read_text())
        self.assertEqual((results["options"]["adds_seekable"], results["options"]["stored"]), (True, ["seekable"]))

    @a_sweep
    def test_the_offer_is_one_more_split_and_can_be_refused(self):
        sweep = ("presto-sweep", "-q", "--codecs", "none", "--threads", "1", "--samples", "2", "--runs", "1", "--run-time", "0",
                 "--decide-time", "0", "--confirm", "0")
        resized = self.new("resized.yaml")
        resized.write_text((STEPS % CROPS[1]).replace("  - {step: random", "  - {step: resize-image, min-side: 40}\n  - {step: random"))
        for pipeline, refuse, splits in ((self.pipeline, (), ["unprocessed", "concatenated", "seekable", "decoded"]),
                                         (self.pipeline, ("--no-seekable",), ["unprocessed", "concatenated", "decoded"]),
                                         (resized, (), ["unprocessed", "concatenated", "decoded"])):
            out = self.new("sweep")
            done = run(*sweep, *refuse, "-p", pipeline, "-o", out, self.photos)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(json.loads((out / "results.json").read_text())["options"]["stored"], splits)
        done = run(*sweep, "--no-seekable", "--stored", "seekable", "-p", self.pipeline, "-o", self.new(), self.photos)
        self.assert_usage(done, "--stored", "seekable")

    @a_sweep
    def test_the_offer_is_for_photos_only_of_which_it_makes_an_index(self):
        """The content counts, not the name; half of the files are enough. Who names it gets it in any case."""
        sweep = ("presto-sweep", "-q", "--codecs", "none", "--threads", "1", "--samples", "2", "--runs", "1", "--run-time", "0",
                 "--decide-time", "0", "--confirm", "0", "-p", self.pipeline)
        png = (ROOT / "tests" / "golden" / "images" / "png-rgb8-160x120.png").read_bytes()
        for photos, named, is_offered in ((0, (), False), (1, (), False), (2, (), True), (0, ("--stored", "seekable"), True)):
            folder, out = self.new("mixed"), self.new("sweep")
            (folder / "a").mkdir(parents=True)
            for number in range(4):
                content = self.files[number].read_bytes() if number < photos else png
                (folder / "a" / f"{number}.jpg").write_bytes(content)
            done = run(*sweep, *named, "-o", out, folder)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            options = json.loads((out / "results.json").read_text())["options"]
            self.assertEqual((options["adds_seekable"], "seekable" in options["splits"]), (is_offered, is_offered), photos)

    def test_a_pipeline_without_the_step_goes_on_with_it(self):
        """Where it changes no pixel. Else the error says what to do."""
        options = ("--set", "index-jpeg.every=3", "--set", "index-jpeg.metadata=drop")
        want = self.load("-p", self.pipeline, *ORDER, self.photos)
        for more in ((), options):
            dataset = self.write("-q", *SEEKABLE, *more)
            self.assertEqual(self.load("-p", self.pipeline, *ORDER, dataset), want, more)
        self.assertIn("stored: seekable", self.load("--explain", "-p", self.pipeline, dataset).decode())
        decoded = self.new("decoded")
        self.assertEqual(run("presto-write", "-q", "-p", self.pipeline, "-u", "decoded", "-o", decoded, dataset).returncode, 0)
        for pipeline in ((), ("-p", self.pipeline)):
            self.assertEqual(self.load(*pipeline, *ORDER, decoded), want)
        turned = self.new("turned.yaml")
        turned.write_text((STEPS % CROPS[0]).replace("decode-image,", "decode-image, orient: exif,"))
        self.load("-p", turned, *ORDER, self.write("-q", *SEEKABLE))
        done = run("presto-load", "-p", turned, *ORDER, dataset)
        self.assert_fails(done, 2, dataset, "--set seekable=true")
        other = self.new("other.yaml")
        other.write_text((STEPS % CROPS[0]).replace("name: cropped", "name: other"))
        done = run("presto-load", "-p", other, *ORDER, dataset)
        self.assert_fails(done, 2, dataset, "--set seekable=true")
        done = run("presto-write", "-p", self.pipeline, "-u", "seekable", "-o", self.new(), self.photos)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--set seekable=true", done.stderr)

    def test_each_crop_gives_the_same_from_any_form(self):
        for crop in CROPS:
            pipeline = self.new("crop.yaml")
            pipeline.write_text(STEPS % crop)
            want = self.load("-p", pipeline, *ORDER, self.photos)
            self.assertEqual(self.load("-p", pipeline, "--set", "seekable=true", *ORDER, self.photos), want)
            for more in ((), ("--set", "index-jpeg.every=1"), ("--set", "index-jpeg.metadata=drop")):
                dataset = self.write("-q", *SEEKABLE, *more, pipeline=pipeline)
                self.assert_indexed(dataset)
                self.assertEqual(self.load(*ORDER, dataset), want, (crop, more))
                self.assertEqual(self.load("-p", pipeline, "--set", "seekable=true", *more, *ORDER, dataset), want)
        explained = self.load("--explain", "-p", self.pipeline, "--set", "seekable=true", self.photos).decode()
        self.assertIn("[not run: nothing stores what it gives]", explained)

    def test_photos_of_tars_keep_their_labels_and_members(self):
        """WebDataset shards, and tars of folders."""
        shard, folders = self.new("shard.tar"), self.new("folders.tar")
        with tarfile.open(shard, "w") as tar:
            for number, path in enumerate(self.files):
                (self.folder / "cls").write_text(str(number % 3))
                tar.add(path, f"{number:04}.jpg")
                tar.add(self.folder / "cls", f"{number:04}.cls")
        with tarfile.open(folders, "w") as tar:
            for path in self.files:
                tar.add(path, f"{path.parent.name}/{path.name}")
        for source, label in ((shard, ()), (folders, ("--set", "source.label=parent-folder"))):
            options = ("--set", "source.type=tar", *label)
            dataset = self.write("-q", *options, *SEEKABLE, source=source)
            records = self.assert_indexed(dataset)
            self.assertTrue(all("label" in record for record in records), records[0].keys())
            self.assertEqual(self.load(*ORDER, dataset), self.load("-p", self.pipeline, *options, *ORDER, source))

    def test_records_keep_their_passengers(self):
        """TFRecords of other programs: labels and all other features stay as they are."""
        theirs, passengers = self.new("theirs"), []
        theirs.mkdir()
        records = []
        for number, path in enumerate(self.files):
            passengers.append((number % 5, path.name.encode(), [0.5 * k for k in range(number % 4)]))
            label, name, boxes = passengers[-1]
            records.append(framed(serialized({"image/filename": name, "image/class/label": label, "image/encoded": path.read_bytes(),
                                              "image/object/bbox/xmin": boxes})))
        (theirs / "train-00000-of-00001").write_bytes(b"".join(records))
        taken = ("--from", "concatenated", "--feature", "image/encoded", "--set", "source.label=image/class/label")
        dataset = self.write("-q", *taken, *SEEKABLE, source=theirs)
        found = self.assert_indexed(dataset)
        self.assertEqual([(record["label"][0], record["image/filename"][0]) for record in found],
                         [(label, name) for label, name, _ in passengers])
        self.assertTrue(all("image/object/bbox/xmin" in record for record in found))
        self.assertEqual(self.load(*ORDER, dataset), self.load("-p", self.pipeline, *taken, *ORDER, theirs))

    def test_a_dataset_of_ours_is_written_anew(self):
        """From photos that are stored as they are to the form with an index."""
        stored = self.write("-q", "-u", "concatenated", "-c", "lz4")
        dataset = self.write("-q", *SEEKABLE, source=stored)
        self.assert_indexed(dataset)
        self.assertEqual(self.load(*ORDER, dataset), self.load(*ORDER, stored))

    def test_what_is_no_photo_stays_as_it_is(self):
        """A PNG, and a JPEG whose end is missing: the records hold the bytes of the files."""
        odd = self.new("odd") / "a"
        odd.mkdir(parents=True)
        (odd / "cut.jpg").write_bytes(self.files[0].read_bytes()[:-400])
        (odd / "png.jpg").write_bytes((ROOT / "tests" / "golden" / "images" / "png-rgb8-160x120.png").read_bytes())
        dataset = self.write("-q", *SEEKABLE, source=odd.parent)
        held = {value[0] for shard in dataset.glob("*.tfrecord") for payload in frames(shard.read_bytes())
                for value in example(payload).values()}
        self.assertTrue({path.read_bytes() for path in odd.iterdir()} <= held)

    def test_it_cannot_be_set_where_nothing_is_decoded(self):
        text = self.new("text.yaml")
        text.write_text(STEPS.replace("  - {step: decode-image,        yields: decoded}\n  - {step: %s}\n", ""))
        done = run("presto-write", "-p", text, *SEEKABLE, "-o", self.new(), self.photos)
        self.assert_fails(done, 1, "--set seekable=true", "no step decode-image")
        done = run("presto-write", "-p", self.pipeline, "--set", "seekable=no", "-o", self.new(), self.photos)
        self.assert_fails(done, 1, "--set seekable=no", "only seekable=true can be set")


if __name__ == "__main__":
    main()
