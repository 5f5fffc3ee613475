#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/corpora/make: the same files again, made once, of the paper's sizes; what is missing is named."""
import hashlib
import os
import shutil
import struct
import subprocess
import zlib

from cli import PHOTOS, ROOT, SANITIZED, Case, main

MAKE = ROOT / "tests" / "corpora" / "make"
# Mean bytes of a sample in the paper; for nilm, of a window within its file.
MEANS = {"cv": 0.1147e6, "cv2-jpg": 0.5203e6, "cv2-png": 17.4e6, "nlp": 0.0427e6, "nilm": 0.1477e6, "mp3": 0.0197e6,
         "flac": 0.2319e6}


def make(*arguments, **environment):
    return subprocess.run([MAKE, *map(str, arguments), "--photos", PHOTOS], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env={**os.environ, **environment})


def digests(folder):
    return {path.relative_to(folder): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file()}


class Corpora(Case):
    def made(self, name, *options):
        """The folder of a corpus, and its files without hidden ones."""
        out = self.new(name)
        done = make(name, "-o", out, *options)
        self.assertEqual((done.returncode, done.stdout), (0, f"{out}\n"), done.stderr)
        return out, [path for path in sorted(out.rglob("*")) if path.is_file() and path.name[0] != "."]

    def test_a_corpus_is_the_same_when_made_again(self):
        for name in ("cv2-png", "nlp", "nilm", "mp3", "flac"):
            (first, files), (second, _) = self.made(name, "--tiny"), self.made(name, "--tiny")
            self.assertEqual(digests(first), digests(second), name)
            self.assertGreater(len(files), 2, name)
            self.assertLess(sum(path.stat().st_size for path in files), 2e6, name)

    def test_mean_sizes_are_those_of_the_paper(self):
        """With few samples: the means wander."""
        counts = {"cv": 10, "nlp": 40, "nilm": 3, "mp3": 16, "flac": 5}
        scales = {"cv": 600, "nlp": 600, "nilm": 240, "mp3": 300, "flac": 60}
        for name, count in counts.items():
            _, files = self.made(name, "--scale", count / scales[name])
            samples = sum(path.stat().st_size for path in files if path.suffix not in (".tsv", ".txt"))
            self.assertAlmostEqual(samples / count / MEANS[name], 1, delta=0.25, msg=name)

    def test_large_images_are_as_large_as_those_of_the_paper(self):
        if SANITIZED:
            self.skipTest("the program that makes them is slow under sanitizers")
        for name, scale in (("cv2-jpg", 1 / 120), ("cv2-png", 1 / 24)):
            _, files = self.made(name, "--scale", scale)
            self.assertAlmostEqual(sum(path.stat().st_size for path in files) / len(files) / MEANS[name], 1, delta=0.25, msg=name)

    def test_pngs_have_16_bits_and_are_whole(self):
        _, files = self.made("cv2-png", "--tiny")
        data = files[0].read_bytes()
        self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
        at, packed = 8, b""
        while at < len(data):
            length, kind = struct.unpack_from(">I4s", data, at)
            body = data[at + 8:at + 8 + length]
            self.assertEqual(struct.unpack_from(">I", data, at + 8 + length)[0], zlib.crc32(kind + body))
            if kind == b"IHDR":
                width, height, *rest = struct.unpack(">IIBBBBB", body)
            packed += body if kind == b"IDAT" else b""
            at += 12 + length
        self.assertEqual((kind, rest), (b"IEND", [16, 2, 0, 0, 0]))
        self.assertEqual(len(zlib.decompress(packed)), height * (1 + 6 * width))

    def test_layouts_are_those_of_the_corpora_that_are_imitated(self):
        folder, _ = self.made("mp3", "--tiny")
        rows = [line.split("\t") for line in (folder / "train.tsv").read_text().splitlines()]
        self.assertEqual(rows[0][:3], ["client_id", "path", "sentence"])
        self.assertEqual(sorted(row[1] for row in rows[1:]), sorted(os.listdir(folder / "clips")))
        folder, _ = self.made("flac", "--tiny")
        spoken = {}
        for transcript in folder.rglob("*.trans.txt"):
            for line in transcript.read_text().splitlines():
                name, _, text = line.partition(" ")
                self.assertEqual(transcript.name, name.rpartition("-")[0] + ".trans.txt")
                spoken[transcript.parent / f"{name}.flac"] = text
        self.assertEqual(sorted(spoken), sorted(folder.rglob("*.flac")))
        self.assertTrue(all(text and text == text.upper() for text in spoken.values()))

    def test_two_runs_at_once_make_it_once(self):
        out = self.new("both")
        command = [MAKE, "nlp", "--tiny", "-o", out]
        runs = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for _ in range(4)]
        self.assertEqual({run.communicate()[0] for run in runs}, {f"{out}\n"})
        before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
        self.assertEqual(make("nlp", "--tiny", "-o", out).returncode, 0)
        self.assertEqual({path: path.stat().st_mtime_ns for path in out.rglob("*")}, before)
        self.assertEqual([path.name for path in out.parent.glob(f".{out.name}.part-*")], [])

    def test_a_folder_with_something_else_is_left_alone(self):
        out = self.new("mine")
        out.mkdir()
        (out / "thesis.txt").write_text("years of work")
        done = make("nlp", "--tiny", "-o", out)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{out} is there and is not this corpus", done.stderr)
        self.assertEqual((out / "thesis.txt").read_text(), "years of work")

    def test_missing_programs_are_named(self):
        programs = self.new("programs")
        programs.mkdir()
        for program in ("lame", "espeak-ng"):
            done = make("mp3", "--tiny", "-o", self.new(), PATH=str(programs))
            self.assertEqual((done.returncode, done.stderr.splitlines()[-1]),
                             (1, f"make: the program {program} is missing; Debian has it in the package {program}"))
            (programs / program).symlink_to(shutil.which(program))
        done = subprocess.run([MAKE, "cv", "--tiny", "-o", self.new(), "--photos", "/nowhere/photos"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("make: the program presto-make-photos is missing", done.stderr)


if __name__ == "__main__":
    main()
