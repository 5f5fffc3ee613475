#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Raw sources: which files are found, what is said about the others, where labels come from."""
import json
import os
import shutil
import struct
import tarfile

from cli import Case, example, frames, main, run


class Links(Case):
    photo_count = 1
    classes = 1

    def chain(self, file):
        """Folders of which each has two links to the next; the last one holds the file: 2^25 paths lead to it."""
        folder = self.new("chain")
        for i in range(26):
            (folder / str(i)).mkdir(parents=True)
            if i < 25:
                for name in "ab":
                    (folder / str(i) / name).symlink_to(f"../{i + 1}")
        shutil.copy(file, folder / "25")
        return folder / "0"

    def test_photos_behind_many_links_are_found_once(self):
        photo = next(self.make_photos().rglob("*.jpg"))
        found = frames(self.load("-q", "-p", self.pipeline, "--to", "concatenated", self.chain(photo)))
        self.assertEqual([example(f)["key"][0] for f in found], [os.fsencode("a/" * 25 + photo.name)])

    def test_records_behind_many_links_are_found_once(self):
        shard = next(self.write("-u", "concatenated", "-s", "1").glob("*.tfrecord"))
        self.assertEqual(len(frames(self.load("-q", self.chain(shard)))), 1)


class Photos(Case):
    photo_count = 4
    classes = 2

    def folder_of(self, *names):
        """A folder of copies of a photo under these names; what is no image by its ending is text."""
        folder, photo = self.new("photos"), next(self.make_photos().rglob("*.jpg"))
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            if name.lower().endswith((".jpg", ".jpeg", ".png")):
                shutil.copy(photo, folder / name)
            else:
                (folder / name).write_text("text")
        return folder

    def test_built_in_pipelines_take_images_whatever_the_case_of_their_names(self):
        folder = self.folder_of("a/1.jpg", "a/2.JPG", "a/3.Jpeg", "a/4.PNG", "a/5.txt")
        for pipeline, count in (("cv", 4), ("cv2-jpg", 3), ("cv2-png", 1)):
            found = frames(self.load("-q", "-p", pipeline, "--to", "concatenated", folder))
            self.assertEqual(len(found), count, pipeline)

    def test_files_left_out_are_told(self):
        folder = self.folder_of("a/1.jpg", "a/2.txt", "a/3.TXT", "a/4")
        note = "3 files left out: 2 .txt, 1 without ending"
        for program, arguments in (("presto-load", ["--format", "null"]), ("presto-write", ["-u", "concatenated", "-o"])):
            def arguments_now(*more):
                return [*more, "-p", "cv", *arguments, *([self.new()] if program == "presto-write" else []), folder]
            done = run(program, *arguments_now("--json"))
            self.assertIn(f"{program}: note: {note}\n", done.stderr)
            self.assertEqual(json.loads(done.stdout)["notes"], [note])
            self.assertEqual(run(program, *arguments_now("-q")).stderr, "")
            self.assertIn(f"note: {note}\n".encode(), run(program, *arguments_now("--explain")).stdout)
        done = run("presto-load", "--explain", "-p", "cv", self.folder_of("a/1.txt", "a/2.gif"))
        self.assert_fails(done, 1, "no file matches *.jpg, *.jpeg, *.png (2 files left out: 1 .gif, 1 .txt)")

    def test_a_file_of_many_samples_that_is_taken_as_one_is_told(self):
        photo = sorted(self.make_photos().rglob("*.jpg"))[0]
        folder = self.new("mixed")
        folder.mkdir()
        (folder / "a.jpg").write_bytes(photo.read_bytes())
        (folder / "list.CSV").write_text("path,class\na.jpg,x\n")
        with tarfile.open(folder / "all.tar.gz", "w:gz") as tar:
            tar.add(folder / "a.jpg", "x/a.jpg")
        for name, kind, instead in (("list.CSV", "manifest", "the files that it lists, with source.type=csv each of its rows"),
                                    ("all.tar.gz", "tar", "the samples that it holds")):
            done = run("presto-load", "--format", "null", "-p", "cv", folder / name)
            self.assertEqual(done.returncode, 3)
            self.assertIn(f"{name} is taken as one sample: with source.type={kind} it would be {instead}\n", done.stderr)
            done = run("presto-load", "--format", "null", "-p", "cv", "--set", f"source.type={kind}", folder / name)
            self.assertEqual((done.returncode, "one sample" in done.stderr), (0, False), done.stderr)
            done = run("presto-load", "--format", "null", "-p", "cv", "--set", f"source.type={kind}", "--set", "source.label=nope",
                       folder / name)
            self.assertNotEqual(done.returncode, 0)
            self.assertNotIn("TFRecords", done.stderr)

    def labelled(self, label, source, folder=None):
        """key -> label, under a pipeline in `folder`, run from elsewhere."""
        folder = folder or self.new("yaml")
        folder.mkdir(exist_ok=True)
        (folder / "p.yaml").write_text(
            f"name: p\nsource: {{type: files, match: ['*.jpg'], label: '{label}'}}\n"
            "steps:\n  - {step: read-file, yields: concatenated}\n")
        done = run("presto-load", "-q", "-p", os.path.relpath(folder / "p.yaml", self.folder), source, cwd=self.folder)
        if done.returncode != 0:
            return done
        samples = map(example, frames(done.stdout))
        return {s["key"][0].decode(): s["label"] for s in samples}

    def test_the_outermost_folder_is_a_label_as_well(self):
        folder = self.folder_of("cat/1.jpg", "cat/extra/2021/2.jpg", "dog/extra/2021/3.jpg")
        self.assertEqual(self.labelled("top-folder", folder),
                         {"cat/1.jpg": [0], "cat/extra/2021/2.jpg": [0], "dog/extra/2021/3.jpg": [1]})

    def test_a_label_file_is_found_from_the_pipeline_and_numbers_stay_numbers(self):
        folder, place = self.folder_of("1.jpg", "2.jpg"), self.new("yaml")
        (place / "sub").mkdir(parents=True)
        (place / "sub" / "l.csv").write_text("file,age\n1.jpg,0.25\n2.jpg,3\n")
        found = self.labelled("csv:sub/l.csv", folder, place)
        self.assertEqual({k: struct.unpack("<f", v[-4:])[0] for k, v in found.items()}, {"1.jpg": 0.25, "2.jpg": 3})
        self.assertEqual(self.labelled("csv-class:sub/l.csv", folder, place), {"1.jpg": [0], "2.jpg": [1]})
        (place / "sub" / "l.csv").write_text("1.jpg,7\n2.jpg,-9\n")
        self.assertEqual(self.labelled("csv:sub/l.csv", folder, place), {"1.jpg": [7], "2.jpg": [(1 << 64) - 9]})
        (place / "sub" / "l.csv").write_text("1.jpg,7\n2.jpg,x\n")
        done = self.labelled("csv:sub/l.csv", folder, place)
        self.assert_fails(done, 2 if done.returncode == 2 else 1, "l.csv: line 2: label 'x' is no number")

    def test_paths_of_a_label_file_may_be_relative_to_it(self):
        folder = self.folder_of("images/1.jpg", "images/2.jpg")
        (folder / "l.csv").write_text("images/1.jpg,cat\nimages/2.jpg,dog\n")
        self.assertEqual(self.labelled(f"csv:{folder}/l.csv", folder / "images"), {"1.jpg": [0], "2.jpg": [1]})
        self.assertEqual(self.labelled("csv:l.csv", folder, folder), {"images/1.jpg": [0], "images/2.jpg": [1]})


if __name__ == "__main__":
    main()
