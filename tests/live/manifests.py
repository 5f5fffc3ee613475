#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables that list files, of many programs: presto-load has the values that pandas and Python's csv and json read, or says which
line has none.

Runs in the tests' Python environment. Usage: manifests.py TOOLS_DIR
"""
import csv
import io
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import pandas as pd

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))

from npy_stream import batches  # noqa: E402

PIPELINE = "{name: t, source: {type: manifest, feature: data}, steps: [{step: read-file, yields: concatenated}]}"
FILES = ["a.bin", "b.bin", "c.bin", "d.bin"]


class Folder:
    def __init__(self, tools, folder):
        self.tools, self.folder = pathlib.Path(tools), pathlib.Path(folder)
        self.pipeline = self.folder / "pipeline.yaml"
        self.pipeline.write_text(PIPELINE)
        for name in FILES:
            (self.folder / name).write_bytes(name.encode())

    def load(self, name, text, *options):
        """All samples in order: feature -> list; or the message."""
        (self.folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        done = subprocess.run([self.tools / "presto-load", "-q", "-p", self.pipeline, "--format", "npy", "-b", "1",
                               *itertools.chain(*(("--set", o) for o in options)), self.folder / name],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        if done.returncode != 0:
            return done.returncode, done.stderr.decode()
        return 0, read_batches(done.stdout)


def read_batches(stream):
    columns = {}
    for batch in batches(io.BufferedReader(io.BytesIO(stream))):
        for name, value in batch.items():
            columns.setdefault(name, []).extend(v.decode() if isinstance(v, bytes) else v for v in value)
    return columns


def tables():
    """name, bytes, options of pandas.read_csv."""
    rows = list(zip(FILES, ["cat", "dog", "dog", "ape"], [3, -4, 0, 12], [0.5, 2, -1e-3, 1e20], ["x", "y, z", "", "1"]))
    for separator, end, bom, quoting in itertools.product(",;\t|", ["\n", "\r\n", "\r"], ["", "\ufeff"],
                                                          [csv.QUOTE_MINIMAL, csv.QUOTE_ALL]):
        out = io.StringIO()
        writer = csv.writer(out, delimiter=separator, lineterminator=end, quoting=quoting)
        writer.writerow(["path", "class", "n", "x", "text"])
        writer.writerows(rows)
        yield "t.csv", (bom + out.getvalue()).encode(), {"sep": separator}
    yield "t.tsv", b'path\tclass\tn\tx\ttext\na.bin\t"cat"\t3\t.5\t"x\ty ""z"""\nb.bin\tdog\t4\t1.5\tan inch: 1"\n', {"sep": "\t"}
    yield "t.csv", b"Path, class, n, x, text\na.bin, cat, 3, 0.5, x\nb.bin, \"dog\", -4, 2, \"y, z\"\n", {"skipinitialspace": True}
    yield "t.csv", b"PATH,class,n,x,text\na.bin,cat, 3,0.5 ,x\nb.bin,dog,-4 ,inf,y\n", {}
    yield "t.csv", b"path,class,n,x,text\na.bin,cat,007,-Infinity,x\nb.bin,dog,+4,1E3,y\n", {}


def check_csv(folder):
    count = 0
    for name, text, options in tables():
        wanted = pd.read_csv(io.BytesIO(text), keep_default_na=False, encoding="utf-8-sig", **options)
        wanted.columns = [c.lower() for c in wanted.columns]
        code, got = folder.load(name, text, "source.label=class")
        assert code == 0, (text, got)
        classes = sorted(set(wanted["class"]))
        assert [classes[i] for i in got["label"]] == list(wanted["class"]), (text, got)
        assert got["key"] == list(wanted["path"]), (text, got)
        assert np.array(got["n"]).dtype == wanted["n"].dtype == np.int64 and list(got["n"]) == list(wanted["n"]), (text, got)
        assert wanted["x"].dtype == np.float64
        np.testing.assert_array_equal(np.array(got["x"]), wanted["x"].astype(np.float32), strict=True)
        assert got["text"] == [str(t) for t in wanted["text"]], (text, got)
        count += 1
    return count


MISSING = ["", "NA", "N/A", "nan", "NaN", "null", "NULL", "None", "<NA>", "#N/A", "n/a", "-nan", " "]


def check_missing(folder):
    """What pandas takes for a missing value is an error that names the line, or what the user says."""
    for word, column in itertools.product(MISSING, ["label", "n", "x"]):
        rows = [dict(path=f, label=i % 3 * 5, n=i, x=i / 4) for i, f in enumerate(FILES)]
        rows[2][column] = word
        out = io.StringIO()
        writer = csv.DictWriter(out, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
        text = out.getvalue()
        read = pd.read_csv(io.StringIO(text), skipinitialspace=True)
        assert list(read[column].isna()) == [False, False, True, False], (word, read)
        code, got = folder.load("m.csv", text)
        assert code == 1 and "line 4 has no value in column '%s'" % column in got and "m.csv" in got, (word, column, got)
        code, got = folder.load("m.csv", text, "source.missing=drop")
        kept = read.dropna()
        assert code == 0 and got["key"] == list(kept["path"]), (word, column, got)
        for name in "label", "n", "x":
            np.testing.assert_array_equal(got[name], kept[name])
        code, got = folder.load("m.csv", text, "source.missing=-1")
        assert code == 0 and list(got[column]) == list(read[column].fillna(-1)), (word, column, got)
        dtype = np.float32 if column == "x" else np.int64
        assert np.array(got[column]).dtype == dtype
        code, got = folder.load("m.csv", text, "source.missing=nan")
        if column == "x":
            np.testing.assert_array_equal(got["x"], read["x"].astype(np.float32))
        else:
            assert code == 1 and "line 4" in got and "must be a whole number" in got, got
    # The rows that are not chosen need none.
    code, got = folder.load("m.csv", "path,label,part\na.bin,1,x\nb.bin,,y\nc.bin,2,x\n", "source.where=[part=x]")
    assert code == 0 and list(got["label"]) == [1, 2], got


def check_classes(folder):
    """A label without a name is no class of its own."""
    for word in ["", "NA", "nan", "null", "None"]:
        text = f"path,label\na.bin,cat\nb.bin,{word}\nc.bin,dog\n"
        code, got = folder.load("m.csv", text)
        assert code == 1 and "line 3 has no value in column 'label'" in got, (word, got)
        code, got = folder.load("m.csv", text, "source.missing=-100")
        assert code == 0 and list(got["label"]) == [0, -100, 1], got
        code, got = folder.load("m.csv", text, "source.texts=[label]")
        if word == "":
            assert code == 1, got
        else:
            assert code == 0 and list(got["label"]) == [sorted(["cat", word, "dog"]).index(c) for c in ("cat", word, "dog")], got


def check_odd(folder):
    """A cell of another kind is an error, and changes no column."""
    for odd in ["x", "1O", "?", "-", "1,5", "0x10", "1e", "--1", "12.5.1", "1 2", "\u0663", "none"]:
        for column in "label", "n":
            rows = [dict(path=f, label=i, n=i) for i, f in enumerate(FILES)]
            rows[3][column] = odd
            for end in ".csv", ".jsonl":
                text = "".join(json.dumps(r) + "\n" for r in rows) if end == ".jsonl" else pd.DataFrame(rows).to_csv(index=False)
                code, got = folder.load("m" + end, text)
                line = 4 if end == ".jsonl" else 5
                assert code == 1 and f"line {line}: '" in got and column in got and "source.texts" in got, (odd, column, got)
                code, got = folder.load("m" + end, text, f"source.texts=[{column}]")
                assert code == 0, got
                if column == "n":
                    assert got["n"] == [str(r["n"]) for r in rows], got
    code, got = folder.load("m.csv", "path,label\na.bin,cat\nb.bin,7\nc.bin,dog\n")
    assert code == 1 and "line 3: '7' of column 'label' is a number" in got, got
    # Most of these are texts.
    code, got = folder.load("m.csv", "path,says\na.bin,one\nb.bin,1984\nc.bin,two\n")
    assert code == 0 and got["says"] == ["one", "1984", "two"], got


def check_json(folder):
    """As Python writes and reads JSON Lines."""
    rows = [dict(path="a.bin", label=0, x=float("nan"), y=[1, float("inf"), "NaN"], s="NaN -Infinity"),
            dict(path="b.bin", label=1, x=float("-inf"), y=[], s='"NaN"\\'),
            dict(path="c.bin", label=2, x=1.5, y=[float("nan")], s=""), dict(path="d.bin", label=10, x=float("inf"), y=None, s="x")]
    text = "".join(json.dumps(r) + "\n" for r in rows)
    code, got = folder.load("m.jsonl", "\ufeff" + text.replace("\n", "\r\n"))
    assert code == 0, got
    np.testing.assert_array_equal(got["x"], np.float32([r["x"] for r in rows]))
    assert list(got["label"]) == [0, 1, 2, 10] and got["s"] == [r["s"] for r in rows], got
    assert [json.loads(y) if y else None for y in got["y"]][:2] == [r["y"] for r in rows][:2] and got["y"][2] == "[NaN]", got["y"]
    # A key that a line lacks, wherever: null. Also one that the first line lacks.
    for i, (key, word) in itertools.product(range(4), [("label", None), ("n", None), ("n", float("nan")), ("label", "no key")]):
        rows = [dict(path=f, label=k * k, n=k) for k, f in enumerate(FILES)]
        rows[i][key] = word
        if word == "no key":
            del rows[i][key]
        code, got = folder.load("m.jsonl", "".join(json.dumps(r) + "\n" for r in rows))
        assert code == 1 and f"line {i + 1} has no value in column '{key}'" in got, (i, key, word, got)
        code, got = folder.load("m.jsonl", "".join(json.dumps(r) + "\n" for r in rows), "source.missing=drop")
        assert code == 0 and list(got["label"]) == [r["label"] for k, r in enumerate(rows) if k != i], got


def main():
    with tempfile.TemporaryDirectory(prefix="presto-manifests-") as name:
        folder = Folder(sys.argv[1], name)
        count = check_csv(folder)
        check_missing(folder)
        check_classes(folder)
        check_odd(folder)
        check_json(folder)
    print(f"{count} tables of numbers and texts are as pandas reads them")


if __name__ == "__main__":
    main()
