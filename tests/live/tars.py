#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The source tar on archives that webdataset and tar wrote: samples equal those that webdataset reads; damage is told.

Runs in the tests' Python environment; PRESTO_TOOLS and PRESTO_PHOTOS as for tests/cli.
"""
import io
import json
import pathlib
import subprocess
import sys
import warnings

import numpy as np
import webdataset

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from cli import Case, example, fields, frames, main, run  # noqa: E402

# Types of tensorflow.DataType that the tests store.
DTYPES = {1: "<f4", 3: "<i4"}


def tensor(payload):
    """The array of a TensorProto."""
    proto = dict(fields(payload))
    shape = [dict(fields(dim)).get(1, 0) for number, dim in fields(proto[2]) if number == 2]
    return np.frombuffer(proto[4], DTYPES[proto[1]]).reshape(shape)


class Tars(Case):
    tar = ["-p", "cv", "--set", "source.type=tar"]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.photos = sorted(cls.make_photos().rglob("*.jpg"))

    @classmethod
    def write_with_webdataset(cls, path, first=0, count=12):
        """A shard of photos with every kind of passenger; gzip by its name."""
        with webdataset.TarWriter(str(path)) as tar:
            for i in range(first, first + count):
                tar.write({
                    "__key__": f"part{i % 2}/{i:06d}",
                    "jpg": cls.photos[i % len(cls.photos)].read_bytes(),
                    "cls": i * 7 % 10,
                    "json": {"number": i, "text": "ä"},
                    "txt": f"a photo, number {i}",
                    "emb.npy": np.arange(i % 3 + 2, dtype=np.float32) * i,
                    "seg.png": b"not decoded " * i,
                })
        return path

    def stored(self, *arguments):
        """The samples of presto-load, as features."""
        return [example(frame) for frame in frames(self.load("-q", *arguments))]

    def read_with_webdataset(self, *paths):
        warnings.simplefilter("ignore", ResourceWarning)  # it leaves its files open
        return list(webdataset.WebDataset([str(path) for path in paths], shardshuffle=False))

    def check_equal(self, samples, wanted):
        self.assertEqual([s["key"] for s in samples], [[w["__key__"].encode()] for w in wanted])
        for sample, sure in zip(samples, wanted):
            self.assertEqual(sample["image"], [sure["jpg"]])
            self.assertEqual(sample["label"], [int(sure["cls"])])
            for name in "json", "txt", "seg.png":
                self.assertEqual(sample[name], [sure[name]])
            array = np.load(io.BytesIO(sure["emb.npy"]))
            got = tensor(sample["emb.npy"][0])
            self.assertEqual((got.dtype, got.shape), (array.dtype, array.shape))
            np.testing.assert_array_equal(got, array)
            self.assertEqual(set(sample), {"image", "key", "label", "json", "txt", "seg.png", "emb.npy"})

    def test_what_webdataset_wrote_is_what_webdataset_reads(self):
        for ending in "tar", "tar.gz":
            folder = self.new("shards")
            folder.mkdir()
            paths = [self.write_with_webdataset(folder / f"{i}.{ending}", first=12 * i) for i in range(2)]
            wanted = self.read_with_webdataset(*paths)
            self.assertEqual(len(wanted), 24)
            self.check_equal(self.stored(*self.tar, "--to", "concatenated", "-j", "2", folder), wanted)
            out = self.new("dataset")
            done = run("presto-write", "-q", *self.tar, "-u", "concatenated", "--shards", "3", "-o", out, folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.check_equal(self.stored("--to", "concatenated", out), wanted)

    def test_what_tar_wrote_is_what_webdataset_reads(self):
        source = self.new("source")
        long = "a-long-folder-name/" * 6
        for i, folder in enumerate(["", "sub/", long, "ünïcode/"]):
            (source / folder).mkdir(parents=True, exist_ok=True)
            (source / folder / f"{i}.JPG").write_bytes(self.photos[i].read_bytes())
            (source / folder / f"{i}.cls").write_text(f"{i}\n")
            (source / folder / f"{i}.txt").write_text("")
        (source / "README").write_text("no sample")
        (source / "link.jpg").symlink_to("0.JPG")
        for form in "v7", "ustar", "oldgnu", "gnu", "pax":
            path = self.new(form).with_suffix(".tar")
            names = ["."] if form != "v7" else ["0.cls", "0.JPG", "0.txt", "sub"]
            subprocess.run(["tar", f"--format={form}", "--sort=name", "-cf", path, "-C", source, *names], check=True)
            wanted = self.read_with_webdataset(path)
            samples = self.stored(*self.tar, "--to", "concatenated", path)
            self.assertEqual(len(samples), 2 if form == "v7" else 4)
            self.assertEqual([(s["key"][0].decode(), s["image"][0], s["label"][0], s["txt"][0]) for s in samples],
                             [(w["__key__"], w["jpg"], int(w["cls"]), w["txt"]) for w in wanted], form)

    def test_folders_are_labels_as_those_of_the_unpacked_files(self):
        path = self.new("photos").with_suffix(".tar")
        subprocess.run(["tar", "--sort=name", "-cf", path, "-C", self.make_photos(), "."], check=True)
        packed = self.stored(*self.tar, "--set", "source.label=parent-folder", "--to", "concatenated", path)
        plain = self.stored("-p", "cv", "--to", "concatenated", self.make_photos())
        by_key = lambda samples: sorted((s["key"][0].decode().removeprefix("./").split(".")[0], s["image"], s["label"])
                                        for s in samples)
        self.assertEqual(by_key(packed), by_key(plain))
        self.assertEqual(len(packed), self.photo_count)

    def test_batches_are_the_same_stored_shuffled_and_by_ranks(self):
        folder = self.new("shards")
        folder.mkdir()
        for i in range(2):
            self.write_with_webdataset(folder / f"{i}.tar", first=12 * i)
        small = ["--set", "resize-image.min-side=48", "--set", "random-crop.height=32", "--set", "random-crop.width=40",
                 "--set", "source.features=[txt]"]
        load = ["-q", "--seed", "3", "--epochs", "2", "--shuffle", "full", "--format", "npy", "-b", "4"]
        online = self.load(*load, *self.tar, *small, "-j", "2", folder)
        out = self.new("dataset")
        done = run("presto-write", "-q", *self.tar, *small, "-u", "resized", "-o", out, folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.load(*load, out), online)
        keys = []
        for rank in "0", "1", "2":
            keys += [s["key"][0] for s in self.stored(*self.tar, "--rank", rank, "--world", "3", "--shuffle", "full",
                                                      "--to", "concatenated", folder)]
        self.assertEqual((len(keys), len(set(keys))), (24, 24))

    def test_a_cut_archive_ends_the_run_or_costs_one_sample(self):
        path = self.write_with_webdataset(self.new("cut").with_suffix(".tar"))
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        self.assert_fails(run("presto-load", *self.tar, "--to", "concatenated", "--format", "null", path), 3, path,
                          "damaged tar", "at byte")
        done = run("presto-load", "-q", *self.tar, "--to", "concatenated", "--on-error", "skip", "--format", "null", "--json", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        got = json.loads(done.stdout)
        self.assertEqual(got["skipped"], 1)
        self.assertIn(got["samples"], range(4, 8))

    def test_wrong_words_are_usage_errors_or_name_the_option(self):
        path = self.write_with_webdataset(self.new("words").with_suffix(".tar"), count=1)
        self.assert_fails(run("presto-load", "-p", "cv", "--set", "source.type=tars", path), 1, "did you mean 'tar'?")
        self.assert_fails(run("presto-load", *self.tar, "--set", "source.label=csv:x", path), 1, "option 'label' is 'csv:x'")
        self.assert_fails(run("presto-load", *self.tar, "--set", "source.features=[key]", path), 1, "'key'")
        self.assert_fails(run("presto-load", "-p", "mp3", "--set", "source.type=tar", path), 1, "no member matches *.mp3")


if __name__ == "__main__":
    main()
