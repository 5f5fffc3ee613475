#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The numbers of classes: they do not follow from the files that happen to be there, where the user gives the classes."""
import io
import json
import os
import tarfile
import unittest

from cli import Case, crc32c, example, frames, main, run, struct

try:
    import h5py
except ImportError:
    h5py = None

READ = "steps: [{step: read-file, yields: concatenated}]"
SOURCES = {
    "parent-folder": "{type: files, match: ['*.bin'], label: parent-folder}",
    "top-folder": "{type: files, match: ['*.bin'], label: top-folder}",
    "tar": "{type: tar, match: ['*.bin'], label: parent-folder}",
    "tar-top": "{type: tar, match: ['*.bin'], label: top-folder}",
    "tar-cls": "{type: tar, match: ['*.bin']}",
    "manifest": "{type: manifest, match: ['*.bin']}",
    "csv": "{type: files, match: ['*.bin'], label: 'csv:%s/labels.csv'}",
}
TRAIN = ["ant", "bee", "cat"]


class Classes(Case):
    def corpus(self, kind, classes, odd=()):
        """A source with a sample of each class, and folders without any."""
        top = self.new(kind)
        top.mkdir()
        inner = "/in" if kind in ("top-folder", "tar-top") else ""
        files = {f"{name}{inner}/1.bin": name.encode() for name in classes}
        files |= {f"{name}{inner}/1.bmp": b"x" for name in odd}
        if kind.startswith("tar"):
            with tarfile.open(top / "s.tar", "w") as tar:
                for name, content in sorted(files.items()):
                    key, kind_of = os.path.splitext(name)
                    pairs = [(name, content)]
                    if kind == "tar-cls":
                        key = key.replace("/", "_")
                        pairs = [(f"{key}{kind_of}", content), (f"{key}.cls", content)]
                    for member, data in pairs:
                        info = tarfile.TarInfo(member)
                        info.size = len(data)
                        tar.addfile(info, io.BytesIO(data))
            return top / "s.tar"
        for name, content in files.items():
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_bytes(content)
        rows = "".join(f"{name}/1.bin,{name}\n" for name in classes)
        (top / "labels.csv").write_text("path,label\n" + rows)
        return top / "labels.csv" if kind == "manifest" else top

    def pipeline_of(self, kind, source, classes=""):
        folder = source if source.is_dir() else source.parent
        text = SOURCES[kind].replace("%s", str(folder))
        path = self.new("pipeline.yaml")
        path.write_text(f"name: {kind}\nsource: {text[:-1]}{classes}}}\n{READ}\n")
        return path

    def labels(self, kind, source, *sets, pipeline=None):
        """content -> label; stderr."""
        done = run("presto-load", "--to", "concatenated", "-p", pipeline or self.pipeline_of(kind, source),
                   *(word for change in sets for word in ("--set", change)), source)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = [example(f) for f in frames(done.stdout)]
        self.assertTrue(found)
        main = next(k for k in found[0] if k not in ("key", "label", "cls"))
        return {f[main][0].decode(): f["label"][0] for f in found}, done.stderr

    def lists(self):
        """All ways to give the classes of TRAIN."""
        file = self.new("classes.txt")
        file.write_bytes(b"\xef\xbb\xbfant\r\nbee\r\n\r\ncat")
        folder = self.corpus("parent-folder", TRAIN)
        dataset = self.new("dataset")
        done = run("presto-write", "-q", "-p", self.pipeline_of("parent-folder", folder), "-o", dataset, folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return ["[ant, bee, cat]", file, folder, dataset, dataset / "dataset.json"]

    def test_numbers_follow_the_given_classes(self):
        given = self.lists()
        for kind in SOURCES:
            source = self.corpus(kind, ["ant", "cat"])
            if kind != "tar-cls":
                self.assertEqual(self.labels(kind, source)[0], {"ant": 0, "cat": 1})
            for classes in given:
                with self.subTest(kind=kind, classes=classes):
                    found, said = self.labels(kind, source, f"source.classes={classes}")
                    self.assertEqual(found, {"ant": 0, "cat": 2})
                    if kind != "tar-cls":
                        self.assertIn("1 of the 3 classes of source.classes has no sample: bee", said)
            found, _ = self.labels(kind, source, "source.classes=[cat, dog, ant]")
            self.assertEqual(found, {"ant": 2, "cat": 0})
            pipeline = self.pipeline_of(kind, source, ", classes: [cat, dog, ant]")
            self.assertEqual(self.labels(kind, source, pipeline=pipeline)[0], {"ant": 2, "cat": 0})

    def test_a_class_that_is_not_given_is_an_error_with_its_name(self):
        for kind in SOURCES:
            source = self.corpus(kind, ["ant", "cow"])
            done = run("presto-load", "--format", "null", "-p", self.pipeline_of(kind, source), "--set",
                       "source.classes=[ant, bee]", source)
            self.assertNotEqual(done.returncode, 0, kind)
            self.assertIn("class 'cow' is not among the 2 of source.classes (ant, bee)", done.stderr, kind)

    def test_a_note_names_folders_without_samples(self):
        for kind in "parent-folder", "top-folder", "tar", "tar-top":
            with self.subTest(kind=kind):
                source = self.corpus(kind, ["ant", "cat"], odd=["bee", "fly"])
                found, said = self.labels(kind, source)
                self.assertEqual(found, {"ant": 0, "cat": 1})
                self.assertIn("2 folders have no ", said)
                self.assertIn("are no class: bee, fly; source.classes gives", said)
                source = self.corpus(kind, TRAIN, odd=["bee"])  # it has others that match
                self.assertNotIn("no class", self.labels(kind, source)[1])
        # An empty one, and one within another; a folder of folders is no class.
        source = self.corpus("parent-folder", ["a/ant", "b/cat"])
        (source / "b" / "bee" / "deep").mkdir(parents=True)
        self.assertIn("1 folder has no file that matches and is no class: b/bee;", self.labels("parent-folder", source)[1])
        top = self.new("empty")
        top.mkdir()
        with tarfile.open(top / "s.tar", "w") as tar:
            for name in "in", "in/ant", "in/bee", "in/cat", "in/dog":
                info = tarfile.TarInfo(name)
                info.type = tarfile.DIRTYPE
                tar.addfile(info)
                if name[3:] in ("ant", "cat"):
                    info = tarfile.TarInfo(name + "/1.bin")
                    info.size = 1
                    tar.addfile(info, io.BytesIO(b"x"))
        self.assertIn("2 folders have no member that matches and are no class: bee, dog;", self.labels("tar", top / "s.tar")[1])

    def test_numbers_are_checked_against_the_classes(self):
        rows = [("1.bin", 0), ("2.bin", 2)]
        top = self.new("numbers")
        top.mkdir()
        for name, number in rows:
            (top / name).write_text(f"n{number}")
        (top / "list.csv").write_text("path,label\n" + "".join(f"{n},{i}\n" for n, i in rows))
        with tarfile.open(top / "s.tar", "w") as tar:
            for name, number in rows:
                for member, data in (name, f"n{number}"), (name.replace("bin", "cls"), f"{number}\n"):
                    info = tarfile.TarInfo(member)
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data.encode()))
        for kind, source in ("manifest", top / "list.csv"), ("tar-cls", top / "s.tar"):
            pipeline = self.pipeline_of(kind, source)
            found, _ = self.labels(kind, source, "source.classes=[ant, bee, cat]", pipeline=pipeline)
            self.assertEqual(found, {"n0": 0, "n2": 2})
            done = run("presto-load", "--format", "null", "-p", pipeline, "--set", "source.classes=[ant, bee]", source)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("label 2 is no number of a class: source.classes has 2, from 0", done.stderr)
            # Classes that are called by numbers.
            found, _ = self.labels(kind, source, "source.classes=[2, 0]", pipeline=pipeline)
            self.assertEqual(found, {"n0": 1, "n2": 0})

    def test_a_dataset_is_checked_against_another(self):
        train, val, all_ = (self.corpus("parent-folder", c) for c in (TRAIN, ["ant", "cat"], TRAIN))
        pipeline = self.pipeline_of("parent-folder", train)
        made = {}
        for name, source, more in ("train", train, []), ("val", val, []), ("good", val, ["--set", f"source.classes={all_}"]):
            made[name] = self.new(name)
            done = run("presto-write", "-q", "-p", pipeline, "-o", made[name], *more, source)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads((made["good"] / "dataset.json").read_text())["labels"], TRAIN)
        for given in made["train"], "[ant, bee, cat]":
            for more in [], ["-p", pipeline]:
                words = ["--format", "null", *more, "--set", f"source.classes={given}"]
                self.assert_fails(run("presto-load", *words, made["val"]), 1, made["val"],
                                  "label 1 is 'cat' here, but 'bee' in source.classes")
                self.load("-q", *words, made["good"])
                self.load("-q", *words, made["train"])
        self.assert_fails(run("presto-write", "-p", self.pipeline_of("parent-folder", train, ", classes: [x, y, z]"), "-o", self.new(),
                              made["train"]), 1, "label 0 is 'ant' here")
        self.assert_fails(run("presto-load", "--format", "null", "--set", "source.classes=[ant, bee]", made["train"]), 1,
                          "class 'cat' is not among the 2")
        # Some of the classes, with their numbers.
        self.load("-q", "--format", "null", "--set", "source.classes=[ant, bee, cat, dog]", made["train"])

    # ---- TFRecords ----

    def records(self, *labels, name="class"):
        """A file of records with the bytes of each label, and the label itself: a text, a number or a list of texts."""
        def field(number, payload):
            return bytes([number << 3 | 2, len(payload)]) + payload

        def crc(data):
            value = crc32c(data)
            return struct.pack("<I", (value >> 15 | value << 17) + 0xA282EAD8 & 0xFFFFFFFF)

        def feature(name, value):
            if isinstance(value, int):
                value = field(3, field(1, bytes([value])))
            else:
                value = field(1, b"".join(field(1, v.encode()) for v in ([value] if isinstance(value, str) else value)))
            return field(1, field(1, name.encode()) + field(2, value))

        path = self.new("r.tfrecord")
        with path.open("wb") as file:
            for number, label in enumerate(labels):
                entries = feature("data", f"{number}:{label}") + (b"" if label is None else feature(name, label))
                payload = field(1, entries)
                length = struct.pack("<Q", len(payload))
                file.write(length + crc(length) + payload + crc(payload))
        return path

    def record_words(self, *more, label="class"):
        pipeline = self.new("records.yaml")
        pipeline.write_text(f"name: r\nsource: {{type: tfrecord, feature: data{label and f', label: {label}'}}}\nsteps: []\n")
        return ["-p", pipeline, *(word for change in more for word in ("--set", change))]

    def record_labels(self, path, *more, label="class"):
        done = run("presto-load", *self.record_words(*more, label=label), path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [example(f)["label"][0] for f in frames(done.stdout)]

    def test_texts_of_records_become_the_numbers_of_their_classes(self):
        for name in "class", "label":
            path = self.records("bee", "ant", "cat", "ant", name=name)
            self.assertEqual(self.record_labels(path, label=name), [b"bee", b"ant", b"cat", b"ant"])
            for classes in self.lists():
                self.assertEqual(self.record_labels(path, f"source.classes={classes}", label=name), [1, 0, 2, 0])
        done = run("presto-load", "--format", "npy", "-b", 4, "--features", "label", *self.record_words("source.classes=[cat, bee, ant]", label="label"), path)
        self.assertIn(struct.pack("<4q", 1, 2, 0, 2), done.stdout)

    def test_a_text_that_is_no_class_is_an_error_of_its_record(self):
        path = self.records("ant", "bee", "cow")
        words = self.record_words("source.classes=[ant, bee]")
        self.assert_fails(run("presto-load", "--format", "null", *words, path), 3, path, "record 2",
                          "class 'cow' is not among the 2 of source.classes (ant, bee)")
        done = run("presto-load", "--format", "null", "--on-error", "skip", *words, path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 sample skipped", done.stderr)
        for label, message in (["ant", "bee"], "neither whole numbers nor a text"), (None, "which the label is to be"), ("", "class ''"):
            path = self.records(label if isinstance(label, list) else "ant", label)
            done = run("presto-load", "--format", "null", *self.record_words("source.classes=[ant, bee]"), path)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(message, done.stderr)
        path = self.records("ant", name="other")
        self.assert_fails(run("presto-load", "--format", "null", *self.record_words("source.classes=[ant]", label=""), path), 2, path,
                          "source.classes is given, but not which feature is the label")

    def test_numbers_of_records_are_numbers_of_classes(self):
        path = self.records(2, 0)
        self.assertEqual(self.record_labels(path, "source.classes=[ant, bee, cat]"), [2, 0])
        self.assert_fails(run("presto-load", "--format", "null", *self.record_words("source.classes=[ant, bee]"), path), 3, path, "record 0",
                          "label 2 is no number of a class: source.classes has 2, from 0")
        self.assertEqual(self.record_labels(path, "source.classes=[2, 0]"), [0, 1])  # classes that are called by numbers
        self.assertEqual(self.record_labels(self.records("2", "0"), "source.classes=[2, 0]"), [0, 1])
        self.assertEqual(self.record_labels(self.records("2", "0"), "source.classes=[ant, bee, cat]"), [2, 0])

    # ---- HDF5 ----

    @unittest.skipIf(h5py is None, "no h5py")
    def test_numbers_of_hdf5_files_follow_the_given_classes(self):
        top = self.new("h5")
        for number, name in enumerate(["ant", "cat"]):
            (top / name).mkdir(parents=True)
            with h5py.File(top / name / "1.h5", "w") as file:
                file["v"] = [float(number)] * 4
        (top / "labels.csv").write_text("path,label\nant/1.h5,ant\ncat/1.h5,cat\n")
        pipeline = self.new("h5.yaml")
        for label in "parent-folder", f"csv:{top / 'labels.csv'}":
            pipeline.write_text(f"name: h\nsource: {{type: hdf5, datasets: [v], samples: 4, label: '{label}'}}\nsteps: []\n")
            for classes, numbers in (None, [0, 1]), ("[ant, bee, cat]", [0, 2]), ("[cat, ant]", [1, 0]):
                more = [] if classes is None else ["--set", f"source.classes={classes}"]
                done = run("presto-load", "-p", pipeline, *more, top)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual([example(f)["label"][0] for f in frames(done.stdout)], numbers)
                self.assertEqual("classes of source.classes has no sample: bee" in done.stderr, classes == "[ant, bee, cat]", done.stderr)
            done = run("presto-load", "--format", "null", "-p", pipeline, "--set", "source.classes=[ant, bee]", top)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("class 'cat' is not among the 2 of source.classes (ant, bee)", done.stderr)

    def test_what_is_no_list_is_told(self):
        source = self.corpus("parent-folder", ["ant"])
        pipeline = self.pipeline_of("parent-folder", source)
        file = self.new("twice.txt")
        file.write_text("ant\nbee\nant\n")
        empty = self.new("empty.txt")
        empty.write_text("\n")
        for value, parts in ((file, (file, "has 'ant' twice")), ("[ant, ant]", ("has 'ant' twice",)), (empty, (empty, "holds no names")),
                             (self.new("none"), ("no such file or folder, which source.classes names",)),
                             ("ant,bee", ("a list of classes is written [ant, bee, cat]",)), ("[]", ("empty list",)),
                             ("{a: 1}", ("needs a list of names, or a path",))):
            self.assert_fails(run("presto-load", "--format", "null", "-p", pipeline, "--set", f"source.classes={value}", source), 1, *parts)
        self.assert_fails(run("presto-load", "--format", "null", "-p", pipeline, "--set", "source.classes=[ant]", "--set",
                              "source.label=none", source), 2, "source.classes is given, but source.label is none")


if __name__ == "__main__":
    main()
