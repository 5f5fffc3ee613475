#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bytes of another kind: named files of other formats are errors of their sample that say what they are; odd text is none."""
import bz2
import gzip
import io
import json
import lzma
import pickle
import sqlite3
import sys
import tarfile
import zipfile

import numpy
from cli import GOLDEN, ROOT, Case, a_sweep, main, run

sys.path.append(str(ROOT / "examples"))
import npy_stream

try:
    from PIL import Image
except ImportError:
    Image = None

SENTENCE = "The ferry leaves the harbour at nine in the morning, and comes back before dark. "
PAGE = f"<html><head><title>T</title></head><body><p>{SENTENCE * 3}</p><p>{SENTENCE * 3}</p></body></html>"
LINES = "".join(json.dumps({"text": SENTENCE * (i + 1)}) + "\n" for i in range(3))
PIPELINES = {
    "page": "  - {step: extract-text, yields: text}\n",
    "tokens": f"  - {{step: bpe-encode, yields: tokens, model: {GOLDEN / 'tokenizers' / 'bpe.model'}}}\n",
    "image": "  - {step: decode-image, yields: image}\n",
    "sound": "  - {step: decode-audio, yields: sound}\n",
    "array": "  - {step: decode-npy, yields: array}\n",
}


def image(kind, **more):
    out = io.BytesIO()
    Image.fromarray(numpy.arange(48 * 64 * 3, dtype=numpy.uint8).reshape(48, 64, 3)).save(out, kind, **more)
    return out.getvalue()


def others(folder):
    """(what it is called, its bytes), each by the library of its format."""
    yield "a gzip file", gzip.compress(PAGE.encode())
    yield "a gzip file", gzip.compress(b"")
    yield "a bzip2 file", bz2.compress(PAGE.encode())
    yield "an xz file", lzma.compress(PAGE.encode())
    if Image is not None:
        for name, kind in (("a GIF file", "GIF"), ("a BMP file", "BMP"), ("a TIFF file", "TIFF"), ("a WebP file", "WEBP"), ("a JPEG 2000 file", "JPEG2000"),
                           ("a PNM (PBM, PGM, PPM) file", "PPM"), ("an icon file", "ICO"), ("a PDF file", "PDF")):
            yield name, image(kind)
    yield "a Python pickle", pickle.dumps({"a": numpy.ones(9)})
    out = io.BytesIO()
    numpy.savez(out, a=numpy.ones(9))
    yield "an npz file", out.getvalue()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.txt", PAGE)
    yield "a zip file", out.getvalue()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("empty"))
    yield "a tar file", out.getvalue()
    base = sqlite3.connect(folder / "base.sqlite")
    base.execute("create table t(a)")
    base.commit()
    base.close()
    yield "an SQLite file", (folder / "base.sqlite").read_bytes()
    (folder / "base.sqlite").unlink()
    with open(sys.executable, "rb") as program:
        yield "a program or library (ELF)", program.read(20000)
    yield "a git LFS pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"4d" * 32 + b"\nsize 12345\n"
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return
    table = pyarrow.table({"text": [SENTENCE] * 5})
    out = io.BytesIO()
    pyarrow.parquet.write_table(table, out)
    yield "a Parquet file", out.getvalue()
    for name, kind in (("an Arrow (Feather) file", pyarrow.ipc.new_file), ("an Arrow stream", pyarrow.ipc.new_stream)):
        out = io.BytesIO()
        with kind(out, table.schema) as writer:
            writer.write_table(table)
        yield name, out.getvalue()


class Content(Case):
    def setUp(self):
        self.folder = self.new("files")
        self.folder.mkdir()

    def load(self, kind, data, *arguments, code=0, name="a.bin"):
        (self.folder / name).write_bytes(data)
        pipeline = self.new(f"{kind}.yaml")
        pipeline.write_text("name: p\nsource: {type: files, match: ['*']}\nsteps:\n  - {step: read-file, yields: raw}\n" + PIPELINES[kind])
        done = run("presto-load", "-q", "-b", 1, "--format", "npy", "-p", pipeline, *arguments, self.folder / name)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_files_of_another_kind_are_named_by_every_step(self):
        needed = {"page": "an HTML page", "tokens": "text", "image": "a JPEG or PNG", "sound": "WAV, FLAC, Ogg or MP3", "array": "a .npy file"}
        for name, data in others(self.folder):
            for kind, what in needed.items():
                with self.subTest(name=name, kind=kind):
                    message = self.load(kind, data, code=3).stderr
                    self.assertIn(f": {name}", message)
                    self.assertIn(f", but {what} is needed: ", message)

    def test_photos_and_sounds_are_no_text(self):
        wav = (GOLDEN / "audio" / "pcm16-8k.wav").read_bytes()
        photos = [("a JPEG file", image("JPEG")), ("a PNG file", image("PNG"))] if Image is not None else []
        for name, data in [*photos, ("a WAV file", wav)]:
            for kind in ("page", "tokens"):
                with self.subTest(name=name, kind=kind):
                    message = self.load(kind, data, code=3).stderr
                    self.assertIn(name, message)
                    self.assertIn(f"--set {'extract-text' if kind == 'page' else 'bpe-encode'}.content=any", message)

    def test_bytes_of_no_known_kind_are_no_text(self):
        rng = numpy.random.default_rng(1)
        for data in (rng.bytes(2000), numpy.arange(300).tobytes(), (rng.standard_normal(900) * 90).astype("<i2").tobytes(), rng.standard_normal(300).tobytes()):
            for kind in ("page", "tokens"):
                self.assertRegex(self.load(kind, data, code=3).stderr, ": (binary data|an? [^:]* file), but ")

    def test_json_lines_are_many_samples(self):
        for kind in ("page", "tokens"):
            self.assertIn("a JSON Lines file, but ", self.load(kind, LINES.encode(), code=3).stderr)
        self.assertIn("a JSON file, but an HTML page is needed", self.load("page", LINES.splitlines()[0].encode(), code=3).stderr)
        self.load("tokens", LINES.splitlines()[0].encode())

    def test_other_kinds_are_left_out_or_taken_if_the_user_says_so(self):
        (self.folder / "b.bin").write_bytes(SENTENCE.encode())
        pipeline = ["--on-error", "skip", self.folder / "b.bin"]
        self.load("tokens", gzip.compress(PAGE.encode()), *pipeline)
        for data in (gzip.compress(PAGE.encode()), LINES.encode(), bytes(range(256)) * 4):
            self.load("tokens", data, "--set", "bpe-encode.content=any")

    def tokens(self, data):
        (batch,) = npy_stream.batches(io.BufferedReader(io.BytesIO(self.load("tokens", data).stdout)))
        return next(iter(batch.values()))[0].tolist()

    def test_odd_text_is_text(self):
        odd = "caf\u00e9 \u03b1\u03b2\u03b3 \u65e5\u672c\u8a9e \U0001f600 " + SENTENCE
        wanted = self.tokens(odd.encode())
        for encoding, mark in (("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")):
            self.assertEqual(self.tokens(mark + odd.encode(encoding)), wanted)
        for data in (SENTENCE.encode("latin-1") + "caf\u00e9".encode("latin-1"), b"ID3 tags, ORC and BM", b"N\bNA\bAM\bME\bE", b"", b"x"):
            self.load("tokens", data)
        for encoding in ("utf-16", "utf-16-le", "utf-16-be", "latin-1", "cp1251", "shift_jis"):
            page = PAGE.replace("T<", "\u0422<") if encoding == "cp1251" else PAGE
            self.assertIn(b"ferry", self.load("page", page.encode(encoding)).stdout)
        self.assertIn(b"ferry", self.load("page", PAGE.replace("<body>", "<body>" + "\0\1\2\3" * 30).encode()).stdout)

    def test_sources_name_files_of_another_kind(self):
        for name, data in others(self.folder):
            if name in ("a gzip file", "a tar file", "a bzip2 file", "an xz file"):  # the source tar has words of its own for these
                continue
            for kind, needed in (("tar", "a tar file"), ("manifest", "a CSV, TSV or JSON Lines file")):
                with self.subTest(name=name, kind=kind):
                    if kind == "manifest" and "pointer" in name:
                        continue
                    message = self.load("image", data, "--set", f"source.type={kind}", code=3, name="a.tar" if kind == "tar" else "a.csv").stderr
                    self.assertIn(f", but {needed} is needed: ", message)

    def test_the_file_of_a_model_is_named(self):
        (self.folder / "vocab.json").write_text(json.dumps({"a": 0, "b": 1, "ab": 2}))
        (self.folder / "merges.txt").write_text("#version: 0.2\na b\na b c\n")
        (self.folder / "lfs").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n")
        for model, merges, code, message in (
            ("vocab.json", "merges.txt", 3, "merges.txt: step bpe-encode: line 3: merge 1"),
            ("lfs", None, 3, "lfs: step bpe-encode: a git LFS pointer, not the file itself, but a SentencePiece .model, tokenizer.json or vocab.json is needed"),
        ):
            more = ["--set", f"bpe-encode.merges={self.folder / merges}"] if merges else []
            done = self.load("tokens", b"text", "--set", f"bpe-encode.model={self.folder / model}", *more, code=code)
            self.assertIn(f"{self.folder}/{message}", done.stderr)

    # ---- what is no error and is told ----

    def pages(self, *charsets):
        folder = self.new("pages")
        folder.mkdir()
        for number, charset in enumerate(charsets):
            (folder / f"{number:02}.html").write_bytes(f'<meta charset="{charset}"><p>Caf\xe9. {SENTENCE * 3}</p>'.encode("latin-1"))
        pipeline = self.new("pages.yaml")
        pipeline.write_text('name: pages\nsource: {type: files, match: ["*.html"], feature: page}\nsteps:\n'
                            "  - {step: read-file, yields: read}\n" + PIPELINES["page"])
        return folder, pipeline

    def test_a_charset_that_nobody_knows_is_told_with_its_count_and_an_example(self):
        folder, pipeline = self.pages("utf-8", "x-foo", "windows-1252", "x-foo", "x-\x1bbar", "x-foo")
        told, stats = [], self.new("stats")
        for threads in (0, 1, 4):
            done = run("presto-load", "-j", threads, "-b", 2, "-p", pipeline, "--format", "null", "--stats", stats, folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            told.append(json.loads(stats.read_text())["notes"])
            self.assertIn(f"note: {told[0][0]}\n", done.stderr)
        self.assertEqual(told[0], told[1])
        self.assertEqual(told[0], told[2])
        self.assertRegex(told[0][0], f"^extract-text: unknown charset 'x-foo', read as [a-z0-9-]+: 3 samples, e.g. {folder}/01.html$")
        self.assertRegex(done.stderr, r"note: extract-text: unknown charset 'x-\\x1bbar', read as [a-z0-9-]+: 1 sample, e.g. " + f"{folder}/04.html\n")
        self.assertEqual(len(told[0]), 2)
        done = run("presto-write", "--json", "-p", pipeline, "-o", self.new("stored"), folder)
        self.assertEqual(json.loads(done.stdout)["notes"], told[0])
        self.assertIn(f"note: {told[0][0]}\n", done.stderr)
        done = run("presto-load", "-p", pipeline, "--set", "extract-text.encoding=latin1", "--format", "null", folder)
        self.assertNotIn("charset", done.stderr)

    def test_notes_of_samples_are_bounded(self):
        folder, pipeline = self.pages(*(f"x-{number}" for number in range(20)))
        done = run("presto-load", "-j", 0, "--json", "-p", pipeline, "--format", "null", folder)
        notes = json.loads(done.stdout)["notes"]
        self.assertEqual((len(notes), notes[16]), (17, f"steps: further notes: 4 samples, e.g. {folder}/16.html"))

    @a_sweep
    def test_a_sweep_has_the_notes_of_its_sample(self):
        folder, pipeline = self.pages("x-foo", "x-foo", "utf-8")
        out = self.new("sweep")
        done = run("presto-sweep", "-q", "-p", pipeline, "--codecs", "none", "--threads", 1, "--runs", 1, "-o", out, folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        notes = [note for note in json.loads((out / "results.json").read_text())["notes"] if "charset" in note]
        self.assertEqual(len(notes), 1)
        self.assertRegex(notes[0], f"unknown charset 'x-foo', read as [a-z0-9-]+: 2 samples, e.g. {folder}/00.html$")


if __name__ == "__main__":
    main()
