#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bpe-encode and embed in the programs: texts of differing length from files to batches, models by --set, what is recorded."""
import io
import json
import sys

import numpy

from cli import GOLDEN, ROOT, Case, main, run

sys.path.append(str(ROOT / "examples"))
import npy_stream

MODELS = GOLDEN / "tokenizers"
PIPELINE = """\
name: texts
source: {type: files, match: ["*.txt"], feature: text}
steps:
  - {step: read-file,  yields: concatenated}
  - {step: bpe-encode, yields: bpe-encoded}
  - {step: embed,      yields: embedded, rows: 2000, columns: 4, seed: 3}
"""
TEXTS = ["All human beings are born free", "", "dignity", "Alle Menschen sind frei und gleich an W\u00fcrde"]


class TextSteps(Case):
    def setUp(self):
        self.folder = self.new("texts")
        self.folder.mkdir()
        for number, text in enumerate(TEXTS):
            (self.folder / f"{number}.txt").write_text(text)
        self.pipeline = self.new("texts.yaml")
        self.pipeline.write_text(PIPELINE)
        self.model = self.new("copy.model")
        self.model.write_bytes((MODELS / "bpe.model").read_bytes())
        self.set_model = ["--set", f"bpe-encode.model={self.model}"]

    def batches(self, *arguments):
        done = run("presto-load", "-q", "--format", "npy", "--features", "text", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        stream = io.BufferedReader(io.BytesIO(done.stdout))
        return [batch["text"] for batch in npy_stream.batches(stream)]

    def test_rows_of_differing_length_come_as_values_and_offsets_or_padded(self):
        (ids,) = self.batches("-b", 4, "-p", self.pipeline, "--to", "bpe-encoded", *self.set_model, self.folder)
        self.assertEqual((len(ids), len(ids[1]), ids.values.dtype), (4, 0, numpy.int32))
        (rows,) = self.batches("-b", 4, "-p", self.pipeline, *self.set_model, self.folder)
        (padded,) = self.batches("-b", 4, "--pad", "text=0", "-p", self.pipeline, *self.set_model, self.folder)
        longest = max(len(ids[row]) for row in range(4))
        self.assertEqual((padded.shape, padded.dtype), ((4, longest, 4), numpy.float32))
        (padded_ids,) = self.batches("-b", 4, "--pad", "text=7:64", "-p", self.pipeline, "--to", "bpe-encoded", *self.set_model, self.folder)
        self.assertEqual(padded_ids.shape, (4, 64))
        table = {}
        for row in range(4):
            self.assertEqual(rows[row].shape, (len(ids[row]), 4))
            numpy.testing.assert_array_equal(padded[row][:len(ids[row])], rows[row])
            self.assertFalse(padded[row][len(ids[row]):].any())
            numpy.testing.assert_array_equal(padded_ids[row][:len(ids[row])], ids[row])
            for token, vector in zip(ids[row], rows[row]):
                numpy.testing.assert_array_equal(table.setdefault(int(token), vector), vector)
        self.assertGreater(len({vector.tobytes() for vector in table.values()}), len(table) - 1)

    def test_a_stored_dataset_records_the_model_and_loads_without_it(self):
        encoded, concatenated = self.new("encoded"), self.new("concatenated")
        for split, out in (("bpe-encoded", encoded), ("concatenated", concatenated)):
            done = run("presto-write", "-q", "-p", self.pipeline, "-u", split, "-o", out, *self.set_model, self.folder)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            step = json.loads((out / "dataset.json").read_text())["pipeline"]["steps"][1]
            self.assertEqual(step["model"], str(self.model))
        (wanted,) = self.batches("-b", 4, "-p", self.pipeline, *self.set_model, self.folder)
        (online,) = self.batches("-b", 4, concatenated)
        self.model.unlink()
        (stored,) = self.batches("-b", 4, encoded)
        for got in (online, stored):
            numpy.testing.assert_array_equal(got.values, wanted.values)
            numpy.testing.assert_array_equal(got.offsets, wanted.offsets)
        done = run("presto-load", "-q", "--format", "null", concatenated)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"presto-load: {self.model}: step bpe-encode: cannot open", done.stderr)

    def test_a_cache_notices_that_the_model_has_changed(self):
        cache = self.new("cache")
        load = ["-b", 4, "-p", self.pipeline, "--to", "bpe-encoded", "--cache", f"disk:{cache}:64MiB", *self.set_model, self.folder]
        (before,) = self.batches(*load)
        self.model.write_bytes((MODELS / "unigram.model").read_bytes())
        (after,) = self.batches(*load)
        self.assertNotEqual(before.values.tolist(), after.values.tolist())

    def test_mistakes_are_told_with_what_to_do(self):
        bad = self.new("bad.model")
        bad.write_text("no model")
        for arguments, code, part in (
            ([], 2, "no model: set one, e.g. --set bpe-encode.model=FILE; docs/tokenizers.md says how to get or train one"),
            (["--set", "bpe-encode.model=/nowhere/x.model"], 1, "/nowhere/x.model"),
            (["--set", f"bpe-encode.model={bad}"], 3, "a text file, but a SentencePiece .model, tokenizer.json or vocab.json is needed"),
            ([*self.set_model, "--set", "embed.rows=30"], 1, "but the table has 30 rows"),
            ([*self.set_model, "--set", f"embed.table={self.model}"], 3, "a SentencePiece model, but a .npy or .safetensors file is needed"),
        ):
            with self.subTest(part=part):
                done = run("presto-load", "-q", "--format", "null", "-p", self.pipeline, *arguments, self.folder)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(part, done.stderr)
        done = run("presto-load", "-q", "-b", 4, "--on-error", "skip", "--format", "null", "-p", self.pipeline, *self.set_model, "--set", "embed.rows=30",
                   self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    main()
