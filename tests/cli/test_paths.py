#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Paths as users type them: patterns in quotes, URLs, ~, and folders of several splits."""
import shutil

from cli import Case, example, frames, main, run

PIPELINE = "{name: t, source: {type: files, match: ['*.bin']}, steps: [{step: read-file, yields: concatenated}]}"
URLS = {"GS://bucket/train-*": "mount it", "az://c/x": "mount it", "S3://B/x": "mount it",
        "HF://datasets/mnist": "snapshot_download", "s3a://bucket/x": "s3://",
        "hdfs://n/x": "HDFS is not read", "file:///tmp/x": "without file://", "weird+x://a": "URLs are not read",
        "~/data": "$HOME", "~someone/data": "$HOME", "none-*": "no file matches this pattern"}


class Paths(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.pipeline.write_text(PIPELINE)
        cls.files = cls.folder / "files"
        cls.files.mkdir()
        for i in range(6):
            (cls.files / f"{'ab'[i % 2]}{i}.bin").write_text(str(i))
        cls.dataset = cls.folder / "dataset"
        done = run("presto-write", "-q", "-p", cls.pipeline, "-s", "3", "-o", cls.dataset, cls.files)
        assert done.returncode == 0, done.stderr
        cls.shards = sorted(cls.dataset.glob("*.tfrecord"))

    def programs(self, path):
        """Each program with this input."""
        raw = ["-p", self.pipeline]
        yield "presto-load", [*raw, "--format", "null", path]
        yield "presto-load", [*raw, "--set", "source.type=tar", "--format", "null", path]
        yield "presto-load", [*raw, "--set", "source.type=manifest", "--format", "null", path]
        yield "presto-load", ["--format", "null", path]
        yield "presto-write", [*raw, "-o", self.new(), path]
        yield "presto-inspect", [path]
        yield "presto-inspect", ["verify", path]
        yield "presto-inspect", ["cat", path]
        yield "presto-sweep", [*raw, "-o", self.new(), path]

    def test_what_is_no_path_gets_one_line_with_the_way(self):
        for url, hint in URLS.items():
            for program, words in list(self.programs(url))[: None if url in ("GS://bucket/train-*", "none-*") else 2]:
                with self.subTest(program=program, words=words[-3:]):
                    done = run(program, *words, cwd=self.folder)
                    self.assertIn(done.returncode, (1, 2), done.stderr)
                    self.assertIn(hint, done.stderr)
                    self.assertEqual(len([line for line in done.stderr.splitlines() if line.strip()]), 1 + (done.returncode == 2),
                                     done.stderr)
            for value in "source.label=csv:" + url, "source.classes=" + url:
                done = run("presto-load", "-p", self.pipeline, "--set", "source.label=parent-folder", "--set", value, "--format", "null",
                           self.files, cwd=self.folder)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(hint, done.stderr)

    def test_patterns_in_quotes_are_expanded(self):
        for program, arguments, wanted in (("presto-load", ["-p", self.pipeline], 3), ("presto-load", [], 4)):
            path = self.files / "a*.bin" if wanted == 3 else self.dataset / f"{self.shards[0].name[:-len('00000-of-00003.tfrecord')]}*[01]-of*"
            found = frames(self.load("-q", *arguments, *(["--to", "concatenated"] if wanted == 3 else []), path))
            self.assertEqual(len(found), wanted, path)
        keys = [example(f)["key"][0] for f in frames(self.load("-q", "-p", self.pipeline, "--to", "concatenated", self.files / "?[024].bin"))]
        self.assertEqual(keys, [b"a0.bin", b"a2.bin", b"a4.bin"])
        self.assertEqual(run("presto-inspect", "verify", self.dataset / "*.tfrecord").returncode, 0)
        # A file that is called like a pattern.
        (self.files / "a[1].bin").write_text("x")
        self.addCleanup((self.files / "a[1].bin").unlink)
        self.assertEqual(len(frames(self.load("-q", "-p", self.pipeline, "--to", "concatenated", self.files / "a[1].bin"))), 1)

    def splits(self, names, description=None):
        folder = self.new("splits")
        for i, name in enumerate(names):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self.shards[i % 3], folder / name)
        if description:
            (folder / description).write_text("{}")
        return folder

    def test_a_folder_of_several_splits_is_an_error_that_lists_them(self):
        cases = [
            (["mnist-train.tfrecord-00000-of-00002", "mnist-train.tfrecord-00001-of-00002", "mnist-test.tfrecord-00000-of-00001"],
             "dataset_info.json", "2 splits", "test (1 file), train (2 files)", "mnist-train*"),
            (["x-unlabelled.tfrecord-00000-of-00001", "x-test2.tfrecord-00000-of-00001"], "features.json", "2 splits",
             "test2 (1 file), unlabelled (1 file)", "x-test2*"),
            (["train-00000-of-00001", "validation-00000-of-00001"], None, "2 splits", "train (1 file), validation (1 file)", "/train*"),
            (["train.tfrecord", "val.tfrecord", "TEST.tfrecord"], None, "3 splits", "train (1 file)", "/train*"),
            (["Split-train/data_tfrecord-00000-of-00001", "Split-eval/data_tfrecord-00000-of-00001"], None, "2 splits",
             "eval (1 file), train (1 file)", "/Split-train\""),
            (["ld_train00-1.tfrec", "ld_test00-1.tfrec"], None, "2 splits", "test (1 file)", "/ld_train*"),
        ]
        for names, description, *parts in cases:
            folder = self.splits(names, description)
            for program, words in (("presto-load", ["--format", "null"]), ("presto-inspect", []),
                                   ("presto-load", ["-p", self.pipeline, "--from", "concatenated", "--feature", "image", "--format", "null"]),
                                   ("presto-write", ["-p", self.pipeline, "--from", "concatenated", "--feature", "image", "-o", self.new()]),
                                   ("presto-sweep", ["-p", self.pipeline, "--from", "concatenated", "--feature", "image", "-o", self.new()])):
                with self.subTest(program=program, names=names):
                    done = run(program, *words, folder)
                    self.assertNotEqual(done.returncode, 0)
                    for part in (str(folder), "which would be read as one", *parts):
                        self.assertIn(part, done.stderr)
            # What the message says to type.
            pattern = done.stderr.split('as in "')[1].split('"')[0]
            self.load("-q", "--format", "null", pattern)
            self.assertEqual(run("presto-inspect", "verify", folder).returncode, 0)
        for names in (["train-00000-of-00002", "train-00001-of-00002"], ["a.tfrecord", "b.tfrecord"], ["contest.tfrecord", "train.tfrecord"]):
            self.load("-q", "--format", "null", self.splits(names, "dataset_info.json"))


if __name__ == "__main__":
    main()
