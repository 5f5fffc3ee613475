#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that are no TFRecords: every program says what they are and fails with 1; damaged TFRecords stay damaged (3)."""
import gzip
import io
import shutil
import struct
import tarfile
import wave
import zipfile
import zlib

import numpy as np

from cli import GOLDEN, PROGRAMS, Case, frames, main, run

GOOD = (GOLDEN / "tfrecord" / "good-examples.tfrecord").read_bytes()


def made(write):
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


def wav(stream):
    with wave.open(stream, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(range(256)) * 40)


def zipped(stream, name="a.tfrecord", data=GOOD):
    with zipfile.ZipFile(stream, "w") as file:  # stored: whole records stand in it
        file.writestr(name, data)


def tarred(stream):
    with tarfile.open(fileobj=stream, mode="w") as file:
        entry = tarfile.TarInfo("a.tfrecord")
        entry.size = len(GOOD)
        file.addfile(entry, io.BytesIO(GOOD))


def riff(form):
    return b"RIFF" + struct.pack("<I", 4096) + form + bytes(4096)


def png():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(bytes(6))) + chunk(b"IEND", b""))


ROWS = "".join(f"a/{i}.jpg,{i % 7}\n" for i in range(2000))
NOISE = np.random.default_rng(14).integers(0, 256, 20000, np.uint8).tobytes()
KINDS = {
    # name: (what it is called, content)
    "a.csv": ("a CSV file", ROWS.encode()),
    "short.csv": ("a text file", b"a,1\n"),
    "quoted.csv": ("a CSV file", b'name,"remark, free"\na,"one\nand, two"\nb,\n'),
    "german.csv": ("a CSV file", b"datum;wert\r\n1.1.;1,5\r\n2.1.;3,25\r\n" * 40),
    "a.tsv": ("a CSV file", b"1\t2\t3\n" * 300),
    "uneven.csv": ("a text file", b"a,1\nb,2,3\n"),
    "prose.txt": ("a text file", b"Dear reader, hello\nand, of course, goodbye\n" * 30),
    "even.txt": ("a text file", b"Well, hello\nnow, then\nso, goodbye\n" * 30),
    "a.txt": ("a text file", "grüße aus köln\n".encode() * 300),
    "a.jsonl": ("a JSON Lines file", b'{"text": "a", "label": 1}\n' * 900),
    "b.json": ("a JSON file", b'[{"text": "a"},\n {"text": "b"}]'),
    "c.json": ("a JSON file", b"[\n  1.5e3,\n  2\n]\n"),
    "a.log": ("a text file", b"[2026-01-02 03:04:05] started\n" * 30),
    "b.log": ("a text file", b"[INFO] started\n" * 30),
    "braces.txt": ("a text file", b"{ not a pair of names }\n" * 30),
    "a.html": ("an HTML file", b"<!DOCTYPE html>\n<html><body>no</body></html>\n"),
    "b.html": ("an HTML file", b"<html lang=en>\n<title>404</title>\n"),
    "a.xml": ("an XML file", b'<?xml version="1.0"?>\n<annotation/>\n'),
    "a.pdf": ("a PDF file", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" + NOISE),
    "a.parquet": ("a Parquet file", b"PAR1" + NOISE + b"PAR1"),
    "a.arrow": ("an Arrow (Feather) file", b"ARROW1\0\0" + NOISE + b"ARROW1"),
    "v1.feather": ("an Arrow (Feather) file", b"FEA1" + NOISE),
    "a.h5": ("an HDF5 file", b"\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0" + NOISE),
    "a.npy": ("an npy file", made(lambda stream: np.save(stream, np.arange(5000.0)))),
    "a.npz": ("an npz file", made(lambda stream: np.savez(stream, image=np.arange(5000.0)))),
    "b.npz": ("an npz file", made(lambda stream: np.savez_compressed(stream, np.arange(5000), np.zeros(9)))),
    "a.zip": ("a zip file", made(zipped)),
    "a.tar": ("a tar file", made(tarred)),
    "a.wav": ("a WAV file", made(wav)),
    "a.webp": ("a WebP file", riff(b"WEBPVP8 ")),
    "a.avi": ("an AVI file", riff(b"AVI LIST")),
    "a.flac": ("a FLAC file", b"fLaC\0\0\0\x22" + NOISE),
    "a.mp3": ("an MP3 file", b"ID3\x04\0\0\0\0\0\x0a" + NOISE),
    "bare.mp3": ("an MP3 file", (b"\xff\xfb\x90\x44" + bytes(413)) * 40),
    "a.ogg": ("an Ogg file", b"OggS\0\x02" + NOISE),
    "a.mp4": ("an MP4 file", b"\0\0\0\x20ftypisom" + NOISE),
    "a.jpg": ("a JPEG file", b"\xff\xd8\xff\xe0\0\x10JFIF\0" + NOISE),
    "a.png": ("a PNG file", png()),
    "a.gif": ("a GIF file", b"GIF89a" + NOISE),
    "a.tiff": ("a TIFF file", b"II*\0\x08\0\0\0" + NOISE),
    "a.offsets": ("the index of a TFRecord file", b"PRESTOIX\2\0\0\0" + NOISE),
    "a.sqlite": ("an SQLite file", b"SQLite format 3\0" + NOISE),
    "a.zst": ("a zstd file", b"\x28\xb5\x2f\xfd" + NOISE),
    "a.xz": ("an xz file", b"\xfd7zXZ\0" + NOISE),
    "a.bz2": ("a bzip2 file", b"BZh91AY&SY" + NOISE),
}


class Foreign(Case):
    photo_count = 12

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.made = cls.new("kinds")
        cls.made.mkdir()
        for name, (_, content) in KINDS.items():
            (cls.made / name).write_bytes(content)

    def refusals(self, path):
        """Every way to read the file or folder: what was run, and what came of it."""
        out = self.new("out")
        for command in ([], ["info", "--json"], ["verify"], ["cat", "--json"], ["index"], ["index", "--dali"],
                        ["repair", "-o", out], ["recode", "-o", out]):
            yield ["presto-inspect", *command, path], run("presto-inspect", *command, path)
        for choice in ([], ["--on-error", "skip"]):
            yield ["presto-load", *choice, path], run("presto-load", "-q", "--format", "null", *choice, path)
        self.assertFalse(out.is_file(), out)
        self.assertFalse((out / "dataset.json").exists(), out)

    def assert_named(self, path, shown, code=1):
        for command, done in self.refusals(path):
            with self.subTest(file=path.name, command=[str(word) for word in command]):
                said = done.stderr + done.stdout.decode()
                self.assertEqual(done.returncode, code, said)
                self.assertIn(f"{path}: ", said)
                self.assertIn(f"{shown}, not TFRecords: ", said)
                self.assertNotIn("damaged in", said)
        for suffix in (".index", ".idx"):
            self.assertFalse(path.with_name(path.name + suffix).exists())

    def test_every_kind_is_called_by_its_name(self):
        for name, (shown, _) in KINDS.items():
            self.assert_named(self.made / name, shown)

    def test_a_name_of_tfrecords_changes_nothing(self):
        for kind in ("a.wav", "a.tar", "a.csv", "a.parquet"):
            shown, content = KINDS[kind]
            path = self.new("data.tfrecord")
            path.write_bytes(content)
            self.assert_named(path, shown)

    def test_gzip_of_something_else(self):
        for kind in ("a.wav", "a.tar", "a.csv", "short.csv", "bare.mp3"):
            shown, content = KINDS[kind]
            path = self.new("x").with_suffix(".gz")
            path.write_bytes(gzip.compress(content))
            self.assert_named(path, shown + " compressed by gzip")
        path = self.new("noise").with_suffix(".gz")
        path.write_bytes(gzip.compress(NOISE))
        self.assert_named(path, "a gzip file of something else")

    def test_the_advice_names_the_program_and_verify_counts_a_file_without_loss(self):
        self.assertIn("presto-write", PROGRAMS)
        done = run("presto-inspect", "verify", self.made / "a.wav")
        self.assertIn('"presto-write -p PIPELINE"', done.stdout.decode())
        self.assertIn("1 file, 0 whole records, ", done.stdout.decode())
        self.assertIn(": 1 fault, 0 bytes lost", done.stdout.decode())
        # A damaged file among others counts for more than a foreign one.
        broken = self.new("broken.tfrecord")
        broken.write_bytes(GOOD[:-5])
        self.assertEqual(run("presto-inspect", "verify", self.made / "a.wav", broken).returncode, 3)

    def test_nothing_is_written_where_no_record_can_be_saved(self):
        for name, content in (("noise", NOISE), ("cut", GOOD[:20]), ("noise.gz", gzip.compress(GOOD[:20]))):
            path, out = self.new(name).with_suffix(".tfrecord"), self.new("saved")
            path.write_bytes(content)
            for choice in ([], ["--json"]):
                done = run("presto-inspect", "repair", *choice, path, "-o", out)
                self.assertEqual((done.returncode, done.stdout), (3, b""), done.stderr)
                self.assertIn(f"{path}: no whole record was found: damaged, or not TFRecords", done.stderr)
                self.assertEqual([p.name for p in self.folder.iterdir() if "saved" in p.name], [])
        path.write_bytes(b"")  # no record, and none lost
        self.assertEqual(run("presto-inspect", "repair", path, "-o", out).returncode, 0)
        self.assertEqual(out.read_bytes(), b"")

    def test_a_folder_of_nothing_else(self):
        others = sum(not name.endswith(".json") for name in KINDS)
        for path in (self.made, f"{self.made}/"):
            for program in ("presto-inspect", "presto-load"):
                done = run(program, path)
                self.assert_fails(done, 1, f"no TFRecord files in this folder, but {others} others, such as ",
                                  "/a.arrow', an Arrow (Feather) file: ", '"presto-write -p PIPELINE"')
        one = self.new("one")
        one.mkdir()
        (one / "noise").write_bytes(NOISE)
        self.assert_fails(run("presto-inspect", one), 1, "but 1 other, such as '", "/noise': ")

    # ---- what is damaged stays damaged ----

    def assert_damaged(self, content, note):
        path = self.new("some")
        path.write_bytes(content)
        for arguments in (["presto-inspect", "verify"], ["presto-load", "-q", "--format", "null"],
                          ["presto-inspect", "index"]):
            done = run(*arguments, path)
            said = done.stderr + done.stdout.decode()
            self.assertEqual(done.returncode, 3, (note, arguments, said))
            self.assertNotIn("not TFRecords", said, note)
            self.assertIn("at byte ", said, note)

    def test_a_damaged_first_header(self):
        first = 16 + len(frames(GOOD)[0])
        for bit in range(0, 96, 5):
            for records in (GOOD, GOOD[:first]):
                content = bytearray(records)
                content[bit // 8] ^= 1 << bit % 8
                self.assert_damaged(bytes(content), f"bit {bit} of {len(records)} bytes")

    def test_text_or_an_mpeg_frame_over_the_start(self):
        """Weak signs: whole records further on say what the file is."""
        large = GOOD * (4000 // len(GOOD) + 1)
        self.assert_damaged(ROWS.encode()[:600] + large[600:], "text")
        self.assert_damaged(b"\xff\xfb\x90\x44" + large[4:], "mpeg")

    def test_a_cut_header(self):
        for length in range(1, 12):
            self.assert_damaged(GOOD[:length], f"cut after {length}")

    def test_what_has_no_sign_is_called_damaged_or_not_tfrecords(self):
        path = self.new("noise")
        path.write_bytes(NOISE)
        done = run("presto-inspect", path)
        self.assertIn(f"{path}: no whole record: damaged, or not TFRecords\n", done.stdout.decode())
        self.assertEqual(run("presto-inspect", "verify", path).returncode, 3)

    def test_in_the_place_of_a_listed_shard_it_is_damage(self):
        dataset = self.write("-u", "concatenated", "-s", "2")
        shard = sorted(dataset.glob("*.tfrecord"))[1]
        shard.with_name(shard.name + ".index").unlink()
        for kind in ("a.wav", "a.csv"):
            shown, content = KINDS[kind]
            size = shard.stat().st_size
            for data in (content, (content * (size // len(content) + 1))[:size]):
                shard.write_bytes(data)
                for command in (["verify"], ["index"], ["cat", "--json"]):
                    done = run("presto-inspect", *command, dataset)
                    self.assertEqual(done.returncode, 3, (command, done.stderr))
                    self.assertIn(f"{shown}, not TFRecords: ", done.stderr + done.stdout.decode())
                done = run("presto-inspect", "repair", shard, "-o", self.new("saved"))
                self.assert_fails(done, 3, shard.name, shown)
                self.assert_fails(run("presto-load", "-q", "--format", "null", dataset), 3, shard.name, shown)
                text = run("presto-inspect", dataset)
                self.assertEqual(text.returncode, 0, text.stderr)
                self.assertIn(shard.name, text.stdout.decode())
        shutil.rmtree(dataset)


if __name__ == "__main__":
    main()
