#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pack and filter in presto-write: rows of tokens equal to NumPy's, for any threads and shards, after kill -9, and what is recorded."""
import filecmp
import io
import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy

import cli

sys.path.append(str(cli.ROOT / "examples"))
import npy_stream

MODEL = cli.GOLDEN / "tokenizers"
SEED = int(os.environ.get("PRESTO_TEST_SEED", time.time_ns() % 1000000))
PIPELINE = """\
name: tokens
source: {{type: files, match: ["*.txt"], feature: text, label: parent-folder}}
steps:
  - {{step: read-file,  yields: read}}
  {filter}
  - {{step: bpe-encode, yields: encoded, model: {model}/vocab.json, merges: {model}/merges.txt}}
  - {{step: pack,       yields: packed, {options}}}
"""


def pack(documents, length, bos=None, eos=None, pad=None):
    """The reference: rows, the offsets of each, and how many tokens are in no row."""
    pieces = [numpy.concatenate([[bos] * (bos is not None), d, [eos] * (eos is not None)]).astype(numpy.int64)
              for d in documents]
    stream = numpy.concatenate([numpy.zeros(0, numpy.int64), *pieces])
    ends = numpy.cumsum([0] + [len(p) for p in pieces])
    rest = len(stream) % length
    count = len(stream) // length
    if pad is not None and rest:
        stream = numpy.concatenate([stream, numpy.full(length - rest, pad)])
        count, rest = count + 1, 0
    rows = stream[: count * length].reshape(count, length)
    offsets = []
    for row in range(count):
        first, last = row * length, min((row + 1) * length, ends[-1])
        inside = ends[(ends > first) & (ends < last)]
        offsets.append(numpy.unique(numpy.concatenate([[first], inside, [last]])) - first)
    return rows, offsets, rest


class Pack(cli.Case):
    count = 60

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        print(f"PRESTO_TEST_SEED={SEED}", file=sys.stderr)
        cls.random = random.Random(SEED)
        cls.texts = cls.folder / "texts"
        for i in range(cls.count):
            folder = cls.texts / f"class-{i % 3}"
            folder.mkdir(parents=True, exist_ok=True)
            words = cls.random.choice([0, 1, 5, 40, 200])
            (folder / f"{i:03}.txt").write_text(" ".join("".join(cls.random.choices("abcdef", k=4)) for _ in range(words)))

    def yaml(self, options, filter=""):
        path = self.new("tokens.yaml")
        path = path.with_suffix(".yaml")
        path.write_text(PIPELINE.format(model=MODEL, options=options, filter=f"- {{step: filter, {filter}}}" if filter else ""))
        return path

    def batches(self, *arguments):
        stream = io.BufferedReader(io.BytesIO(self.load("-q", "--format", "npy", "-b", 16, *arguments)))
        return list(npy_stream.batches(stream))

    def documents(self, yaml):
        return [batch["text"][i] for batch in self.batches("-p", yaml, "--to", "encoded", self.texts)
                for i in range(len(batch["text"]))]

    def packed(self, dataset):
        rows, offsets = [], []
        for batch in self.batches(dataset):
            self.assertEqual(batch["text"].dtype, numpy.int32)
            rows += list(batch["text"])
            offsets += [batch["document-offsets"][i] for i in range(len(batch["text"]))]
        return rows, offsets

    def pack(self, yaml, *arguments):
        out = self.new("packed")
        done = cli.run("presto-write", "-p", yaml, "-o", out, *arguments, self.texts)
        self.assertEqual(done.returncode, 0, done.stderr)
        return out, done.stderr

    def assert_equal(self, dataset, expected):
        rows, offsets = self.packed(dataset)
        self.assertEqual(len(rows), len(expected[0]))
        for row, wanted in zip(rows, expected[0]):
            numpy.testing.assert_array_equal(row, wanted)
        for got, wanted in zip(offsets, expected[1]):
            numpy.testing.assert_array_equal(numpy.atleast_1d(got), wanted)

    def test_rows_are_those_of_numpy(self):
        for options, wanted in (("length: 64", {}), ("length: 100, eos: 3", {"eos": 3}),
                                ("length: 7, bos: 1, eos: 2, last: pad, pad: -100", {"bos": 1, "eos": 2, "pad": -100}),
                                ("length: 100000, last: pad", {"pad": 0}), ("length: 1", {})):
            yaml = self.yaml(options)
            documents = self.documents(yaml)
            length = int(options.split()[1].rstrip(","))
            expected = pack(documents, length, **wanted)
            for shards in self.random.sample([["-s", 1], ["-s", 5], ["--shard-bytes", 3000], ["-s", 50]], 2):
                out, said = self.pack(yaml, "-j", self.random.choice([0, 1, 3]), *shards)
                self.assert_equal(out, expected)
                if expected[2]:
                    self.assertIn(f"{expected[2]:,} token", said)
                    self.assertIn("fill no row", said)

    def test_the_files_are_the_same_for_any_threads(self):
        yaml = self.yaml("length: 50, eos: 0")
        for how in (["-s", 4], ["--shard-bytes", 4000, "-c", "zstd:1"]):
            first, _ = self.pack(yaml, "-j", 0, *how)
            for threads in (2, 8):
                self.assert_same(first, self.pack(yaml, "-j", threads, *how)[0])

    def assert_same(self, one, other):
        names = sorted(p.name for p in one.iterdir() if p.suffix != ".index")
        self.assertEqual(names, sorted(p.name for p in other.iterdir() if p.suffix != ".index"))
        self.assertEqual(filecmp.cmpfiles(one, other, names, shallow=False), (names, [], []))

    def test_what_is_recorded_and_told(self):
        yaml = self.yaml("length: 64, eos: 5")
        documents = self.documents(yaml)
        out = self.new("packed")
        done = cli.run("presto-write", "--json", "-p", yaml, "-s", 3, "-o", out, self.texts)
        self.assertEqual(done.returncode, 0, done.stderr)
        figures = json.loads(done.stdout)
        tokens = sum(map(len, documents)) + len(documents)
        self.assertEqual([figures[key] for key in ("packed_documents", "packed_tokens", "samples", "dropped_tokens", "padded_tokens")],
                         [self.count, tokens, tokens // 64, tokens % 64, 0])
        self.assertIn(f"packed {self.count} documents", done.stderr)
        info = json.loads((out / "dataset.json").read_text())
        self.assertEqual(info["stored"], "packed")
        self.assertEqual(info["pipeline"]["steps"][-1]["length"], 64)
        features = {f["name"]: f for f in info["features"]}
        self.assertEqual(sorted(features), ["document-offsets", "text"])
        self.assertEqual((features["text"]["dtype"], features["text"]["shape"]), ("int32", [64]))
        again = cli.run("presto-write", "--resume", "-p", yaml, "-s", 3, "-o", out, self.texts)
        self.assertEqual(again.returncode, 0, again.stderr)
        verify = cli.run("presto-inspect", "verify", out)
        self.assertEqual(verify.returncode, 0, verify.stderr)

    def test_filter_leaves_documents_out(self):
        for condition, keep in (("min-length: 100", lambda text, label: len(text) >= 100),
                                ("feature: label, in: [0, 2]", lambda text, label: label != 1),
                                ("max-bytes: 25, min-bytes: 1", lambda text, label: 1 <= len(text) <= 25)):
            files = sorted(self.texts.glob("*/*.txt"))
            kept = [f for f in files if keep(f.read_text(), int(f.parent.name[-1]))]
            yaml = self.yaml("length: 32", condition)
            expected = pack(self.documents(yaml), 32)
            out, said = self.pack(yaml, "-s", 4)
            self.assert_equal(out, expected)
            self.assertIn(f"{len(files) - len(kept)} samples left out by steps", said)
            self.assertIn(f"packed {len(kept)} documents", said)
            # The same without pack, stored, and online.
            stored = self.new("filtered")
            done = cli.run("presto-write", "--json", "-p", yaml, "-u", "encoded", "-o", stored, self.texts)
            self.assertEqual((done.returncode, json.loads(done.stdout)["dropped"]), (0, len(files) - len(kept)), done.stderr)
            keys = [cli.example(p)["key"][0].decode() for p in cli.frames(self.load("-q", "--to", "encoded", stored))]
            self.assertEqual(keys, [str(f.relative_to(self.texts)) for f in kept])
            stats = self.new("stats")
            self.load("-q", "--format", "null", "--stats", stats, "-p", yaml, "--to", "encoded", self.texts)
            self.assertEqual(json.loads(stats.read_text())["dropped"], len(files) - len(kept))

    def test_a_killed_run_goes_on_with_equal_bytes(self):
        yaml = self.yaml("length: 33, eos: 9", "min-length: 1")
        for how in (["-s", 12], ["--shard-bytes", 9000]):
            whole, _ = self.pack(yaml, *how)
            killed = 0
            for _ in range(1 if cli.SANITIZED else 2):
                out = self.new("killed")
                command = [cli.TOOLS / "presto-write", "-q", "-p", yaml, "-o", out, "--resume", *map(str, how), self.texts]
                for _ in range(20):
                    process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL)
                    try:
                        process.wait(self.random.uniform(0.01, 0.3))
                    except subprocess.TimeoutExpired:
                        process.send_signal(signal.SIGKILL)
                    if process.wait() == 0:
                        break
                    killed += 1
                else:
                    self.assertEqual(cli.run(*command).returncode, 0)
                self.assert_same(whole, out)
            print(f"killed {killed} times", file=sys.stderr)

    def test_progress_of_an_enemy(self):
        yaml = self.yaml("length: 33")
        for text in ('{"sample": 5, "token": 0, "documents": 6, "tokens": 1}', '{"sample": -1, "token": 0, "documents": 0, "tokens": 0}',
                     '{"sample": 0, "token": 0, "documents": 0, "tokens": 0}', '{"sample": 9}', "[]", "3"):
            folder = self.new("enemy")
            folder.mkdir()
            shard = ('{"number": 0, "file": ".data-00000.tfrecord", "first": 0, "end": 9, "skipped": 0, "records": 20, "stored_bytes": 1, '
                     '"raw_bytes": 1, "crc32c": 1, "next": %s}' % text)
            (folder / ".progress.json").write_text('{"format": 4, "job": {}, "shards": [%s], "features": []}' % shard)
            done = cli.run("presto-write", "--resume", "-p", yaml, "-o", folder, self.texts)
            self.assert_fails(done, 3, "shard 0 is no shard")

    def test_where_it_cannot_run(self):
        yaml = self.yaml("length: 64")
        done = cli.run("presto-load", "--format", "null", "-p", yaml, self.texts)
        self.assertEqual(done.returncode, 2)
        self.assertIn("presto-write stores them", done.stderr)
        encoded = self.new("encoded")
        self.assertEqual(cli.run("presto-write", "-q", "-p", yaml, "-u", "encoded", "-o", encoded, self.texts).returncode, 0)
        self.assertIn("step pack makes new samples", cli.run("presto-load", "--format", "null", encoded).stderr)
        out = self.new("packed")
        done = cli.run("presto-write", "-p", yaml, "-o", out, encoded)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_equal(out, pack(self.documents(yaml), 64))
        sweep = cli.run("presto-sweep", "-p", yaml, "-o", self.new("plan"), self.texts)
        self.assertNotEqual(sweep.returncode, 0)
        self.assertIn("measure the pipeline without it", sweep.stderr)
        explained = cli.run("presto-write", "-p", yaml, "--explain", self.texts)
        self.assertEqual(explained.returncode, 0, explained.stderr)
        behind = self.new("behind").with_suffix(".yaml")
        behind.write_text(yaml.read_text() + "  - {step: cast, dtype: int64, yields: wide}\n")
        refused = cli.run("presto-write", "-p", behind, "-u", "wide", "-o", self.new("wide"), self.texts)
        self.assertIn("store what it gives first", refused.stderr)
        first, second = self.new("first"), self.new("second")
        self.assertEqual(cli.run("presto-write", "-q", "-p", behind, "-u", "packed", "-o", first, self.texts).returncode, 0)
        done = cli.run("presto-write", "-q", "-p", behind, "-u", "wide", "-o", second, first)
        self.assertEqual(done.returncode, 0, done.stderr)
        (wide, *_) = self.batches(second)
        self.assertEqual(wide["text"].dtype, numpy.int64)

    def test_nothing_to_pack(self):
        yaml = self.yaml("length: 64", "min-length: 1000000")
        out, said = self.pack(yaml, "-s", 2)
        self.assertEqual(self.packed(out), ([], []))
        self.assertIn("0 samples", said)


if __name__ == "__main__":
    cli.main()
