#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--split and --part: disjoint parts that are complete together, and in which a sample stays whatever else comes or goes."""
import io
import json
import math
import shutil
import sys
import tarfile

import numpy as np

from cli import ROOT, Case, example, frames, main, run
from test_npy import npy_stream

sys.path.insert(0, str(ROOT / "tests" / "corpora"))
from records import framed, serialized  # noqa: E402

NPY = "name: npy\nsource: {type: files, match: ['*.npy']}\nsteps:\n  - {step: read-file, yields: bytes}\n"


class Split(Case):
    photo_count = 40

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.theirs = cls.folder / "theirs"
        cls.theirs.mkdir()
        cls.count = 3000
        each = cls.count // 3
        for i in range(3):
            (cls.theirs / f"{i}.tfrecord").write_bytes(
                b"".join(framed(serialized({"n": i * each + j})) for j in range(each)))

    def numbers(self, *arguments, data=None):
        return [example(f)["n"][0] for f in frames(self.load("-q", *arguments, data or self.theirs))]

    def part(self, part, *arguments, ratio="90/10", data=None):
        return self.numbers("--split", ratio, "--part", part, *arguments, data=data)

    def test_parts_are_disjoint_complete_and_as_large_as_they_should_be(self):
        for ratio, names in (("90/10", ("train", "eval")), ("80/10/10", ("train", "validation", "test")),
                             ("1/1/1/1", ("1", "2", "3", "4"))):
            shares = [int(s) for s in ratio.split("/")]
            parts = [self.part(name, ratio=ratio) for name in names]
            self.assertEqual(sorted(n for p in parts for n in p), list(range(self.count)))
            for number, (part, share) in enumerate(zip(parts, shares)):
                self.assertEqual(part, sorted(part), "the order is that of the files")
                p = share / sum(shares)
                self.assertLess(abs(len(part) - p * self.count), 5 * math.sqrt(p * (1 - p) * self.count))
                self.assertEqual(part, self.part(number + 1, ratio=ratio))
        self.assertEqual(self.part("eval"), self.part("test"))
        self.assertEqual(self.part("train"), self.part("train", ratio="9/1"))

    def test_threads_shuffles_ranks_and_caches_do_not_change_a_part(self):
        wanted = self.part("train")
        for threads in ("0", "1", "2", "8"):
            self.assertEqual(self.part("train", "-j", threads, "-b", "7"), wanted)
        for shuffle in ("full", "blocks:100", "buffer:70"):
            order = ["--shuffle", shuffle, "--seed", "5"]
            one = self.part("train", *order)
            self.assertEqual(sorted(one), wanted)
            self.assertNotEqual(one, wanted)
            self.assertEqual(self.part("train", *order, "-j", "3"), one)
            ranks = [self.part("train", *order, "--rank", r, "--world", "3") for r in range(3)]
            dealt = [n for three in zip(*ranks) for n in three]
            self.assertEqual(dealt[:len(one)], one)
            other = self.part("train", "-e", "2", *order)
            self.assertEqual(sorted(other[len(one):]), wanted)
        for cache in ("memory:100MiB", f"disk:{self.new('cache')}:100MiB"):
            def column(part, *more):
                stream = self.load("-q", "--split", "90/10", "--part", part, "--format", "npy", "-b", "64", *more, self.theirs)
                return [int(n) for b in npy_stream.batches(io.BufferedReader(io.BytesIO(stream))) for n in b["n"]]
            for part in ("train", "eval"):  # both share the cache
                self.assertEqual(column(part, "-e", "2", "--cache", cache), self.part(part) * 2)

    def test_seeds(self):
        self.assertEqual(self.part("eval", "--seed", "3"), self.part("eval"), "a run's seed is not the split's")
        others = {tuple(self.part("eval", "--split-seed", s)) for s in ("0", "1", str(2**64 - 1))}
        self.assertEqual(len(others), 3)

    def test_one_sample_is_in_one_part(self):
        one = self.new("one")
        one.mkdir()
        (one / "a.tfrecord").write_bytes(framed(serialized({"n": 1})))
        ends = {part: run("presto-load", "--explain", "--split", "50/50", "--part", part, one) for part in ("train", "eval")}
        self.assertEqual(sorted(done.returncode for done in ends.values()), [0, 1])
        for part, done in ends.items():
            said = done.stdout.decode() + done.stderr
            self.assertRegex(said, rf"{part} of 50/50, seed 0: 1 of 1 sample\n" if done.returncode == 0 else
                             r"no sample is in part \d of 50/50, of 1 sample in all")

    def test_files_that_are_added_move_no_sample(self):
        data = self.new("data")
        shutil.copytree(self.theirs, data)
        before = {part: set(self.part(part, data=data)) for part in ("train", "eval")}
        (data / "00.tfrecord").write_bytes(b"".join(framed(serialized({"n": 10000 + i})) for i in range(500)))
        for part, numbers in before.items():
            self.assertEqual({n for n in self.part(part, data=data) if n < 10000}, numbers)
        photos = self.new("photos")
        shutil.copytree(self.make_photos(), photos)

        def keys(part):
            return {example(f)["key"][0] for f in frames(self.load(
                "-q", "-p", self.pipeline, "--to", "concatenated", "--split", "70/30", "--part", part, photos))}

        before = {part: keys(part) for part in ("train", "eval")}
        first = sorted(photos.rglob("*.jpg"))[0]
        for name in ("!.jpg", "zz.jpg"):
            shutil.copy(first, first.parent / name)
        self.assertEqual(len(before["train"] | before["eval"]), 40)
        new = {f"{first.parent.name}/{name}".encode() for name in ("!.jpg", "zz.jpg")}
        for part, names in before.items():
            self.assertEqual(keys(part) - new, names)
        # Another name of the folder, another place of the corpus: the same parts.
        moved = self.new("moved")
        photos.rename(moved)
        photos = moved / "../" / moved.name
        self.assertEqual(keys("eval") - new, before["eval"])

    def test_each_kind_of_source(self):
        photos = self.make_photos()
        files = sorted(photos.rglob("*.jpg"))
        archive = self.new("tar")
        archive = archive.with_suffix(".tar")
        with tarfile.open(archive, "w") as tar:
            for path in files:
                tar.add(path, path.relative_to(photos))
        table = photos.parent / "list.csv"
        table.write_text("path\n" + "".join(f"photos/{p.relative_to(photos)}\n" for p in files))
        arrays = self.new("arrays")
        arrays.mkdir()
        for i in range(40):
            np.save(arrays / f"{i}.npy", np.full(3, i))
        dataset = self.write("-u", "concatenated", "-s", "3")
        other = self.write("-u", "concatenated", "-s", "1", "-c", "zstd")
        small = ("-p", self.pipeline, "--to", "concatenated")
        npy = self.new("npy.yaml")
        npy.write_text(NPY)
        found = {}
        for name, arguments in {
            "files": (*small, photos),
            "tar": (*small, "--set", "source.type=tar", "--set", "source.label=parent-folder", archive),
            "manifest": (*small, "--set", "source.type=manifest", "--set", "source.label=none", table),
            "npy": ("-p", npy, arrays),
            "dataset": (dataset,),
            "recoded": (other,),
            "synthetic": ("-p", "synthetic", "--set", "source.count=50", "--to", "generated"),
        }.items():
            if name == "synthetic":
                continue
            whole = frames(self.load("-q", *arguments))
            parts = [frames(self.load("-q", "--split", "60/40", "--part", part, *arguments)) for part in ("train", "eval")]
            self.assertEqual(sorted(parts[0] + parts[1]), sorted(whole), name)
            self.assertTrue(0 < len(parts[1]) < len(parts[0]) + 20, name)
            found[name] = parts[1]
        self.assertEqual(found["dataset"], found["recoded"], "shards and codecs do not matter")

    def test_presto_write_stores_a_part(self):
        photos = self.make_photos()
        parts = [self.write("-u", "resized", "--split", "80/20", "--part", part, "-s", "2") for part in ("train", "eval")]
        counts = [json.loads(run("presto-inspect", "info", "--json", p).stdout)["records"] for p in parts]
        self.assertEqual(sum(counts), 40)
        whole = sorted(frames(self.load("-q", "--to", "resized", self.write("-u", "resized"))))
        self.assertEqual(sorted(f for p in parts for f in frames(self.load("-q", "--to", "resized", p))), whole)
        limited = self.write("-u", "resized", "--split", "80/20", "--part", "train", "--limit", "9")
        self.assertEqual(frames(self.load("-q", "--to", "resized", limited)),
                         frames(self.load("-q", "--to", "resized", parts[0]))[:9])
        done = run("presto-write", "-p", self.pipeline, "--split", "80/20", "--part", "eval", "--explain", photos)
        self.assertIn(f"eval of 80/20, seed 0: {counts[1]} of 40 samples", done.stdout.decode())
        # An interrupted conversion of one part is not continued by another.
        out = self.new("unfinished")
        done = run("presto-write", "-q", "-p", self.pipeline, "--split", "80/20", "--part", "train", "-s", "4", "-o", out, photos)
        self.assertEqual(done.returncode, 0)
        (out / "dataset.json").unlink()
        done = run("presto-write", "-q", "-p", self.pipeline, "--split", "80/20", "--part", "eval", "-s", "4", "--resume", "-o",
                   out, photos)
        self.assertNotEqual(done.returncode, 0)

    def test_a_state_belongs_to_its_part(self):
        state = self.new("state")
        order = ["--shuffle", "full", "-e", "2", "--state", state]
        whole = self.part("train", "--shuffle", "full", "-e", "2")
        got = []
        while len(got) < len(whole):
            more = self.part("train", *order, "--limit", "977")
            self.assertGreater(len(more), 0)
            got += more
        self.assertEqual(got, whole)
        for other in (["--part", "eval"], ["--part", "train", "--split-seed", "4"]):
            done = run("presto-load", "-q", "--split", "90/10", *other, *order, self.theirs)
            self.assert_fails(done, 2, "another input")

    def test_what_is_wrong_is_said(self):
        for arguments, words in (
                (["--split", "90/10"], "--part train"), (["--part", "train"], "--split 90/10"),
                (["--split-seed", "3"], "--split 90/10"), (["--split", "90", "--part", "1"], "--split '90' is no ratio"),
                (["--split", "90/0", "--part", "1"], "--split '90/0'"), (["--split", "90/10/", "--part", "1"], "--split '90/10/'"),
                (["--split", "0.9/0.1", "--part", "1"], "--split '0.9"), (["--split", "-1/2", "--part", "1"], "--split '-1/2'"),
                (["--split", "/".join("1" * 17), "--part", "1"], "--split '1/1/"),
                (["--split", "90/10", "--part", "dev"], "--part 'dev' is none of the 2 parts: say train, eval, or 1 to 2"),
                (["--split", "90/10", "--part", "3"], "1 to 2"), (["--split", "90/10", "--part", "0"], "--part '0'"),
                (["--split", "1/1/1/1", "--part", "train"], "say 1 to 4")):
            for program, *rest in (["presto-load", "-q"], ["presto-write", "-p", "cv", "-o", self.new()]):
                self.assert_usage(run(program, *rest, *arguments, self.theirs), words)
        done = run("presto-load", "-q", "--split", "1000000/1", "--part", "eval", self.theirs / "0.tfrecord")
        self.assert_fails(done, 1, "no sample is in part 2")


if __name__ == "__main__":
    main()
