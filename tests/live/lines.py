#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JSON Lines and CSV as samples: presto-load has the values that Python's json and csv, and pandas, read of random files of
many shapes.

Runs in the tests' Python environment. Usage: lines.py TOOLS_DIR
"""
import csv
import io
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np
import pandas as pd

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))

from npy_stream import batches  # noqa: E402

STEPS = "[{step: bpe-encode, model: none, yields: tokens}]"
LETTERS = ["a", "b", "Z", " ", ",", '"', "\n", "\r\n", "\t", ";", "\\", "/", "'", "\u00e9", "\u20ac", "\U0001f600", "0", "{", "]", "\x00", "\x1f", "\x7f"]


class Folder:
    def __init__(self, tools, folder):
        self.tools, self.folder = pathlib.Path(tools), pathlib.Path(folder)

    def load(self, name, content, source, *arguments):
        """All samples, in the order of delivery: feature -> list."""
        (self.folder / name).write_bytes(content)
        (self.folder / "p.yaml").write_text(f"{{name: t, source: {{{source}}}, steps: {STEPS}}}")
        done = subprocess.run([self.tools / "presto-load", "-q", "-p", self.folder / "p.yaml", "--to", "text", "--format", "npy", "-b", "1",
                               *arguments, self.folder / name], stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        assert done.returncode == 0, (content[:2000], done.stderr.decode())
        columns = {}
        for batch in batches(io.BufferedReader(io.BytesIO(done.stdout))):
            for feature, value in batch.items():
                columns.setdefault(feature, []).extend(v.decode() if isinstance(v, bytes) else v for v in value)
        return columns


def text(rng):
    return "".join(rng.choices(LETTERS, k=rng.choice([0, 1, 3, 20, 300])))


def number(rng):
    return rng.choice([0, -0.0, 1.5, 1e-40, 3.4e38, -1e-3, 123456789.125, 0.1, rng.uniform(-1, 1), rng.randrange(-2**40, 2**40)])


def check_jsonl(folder, rng):
    rows = [{"text": text(rng), "n": rng.choice([0, -1, 2**63 - 1, -2**63, rng.randrange(-10**9, 10**9)]), "x": number(rng),
             "any": rng.choice([None, True, [1, {"a": text(rng)}], {"b": []}, 5, "t"]), "more": text(rng)} for _ in range(120)]
    spaces = {"separators": (",", ":")} if rng.random() < 0.5 else {"separators": (" , ", " : ")}
    end = rng.choice(["\n", "\r\n"])
    content = end.join(json.dumps(row, ensure_ascii=rng.random() < 0.5, **spaces) + rng.choice(["", "", end + " "]) for row in rows)
    content = (rng.choice(["", "\ufeff"]) + content + rng.choice(["", end])).encode()
    got = folder.load("t.jsonl", content, "type: jsonl, features: ['n:int64', 'x:float32', 'any:json', more]")
    wanted = [json.loads(line) for line in content.decode("utf-8-sig").split("\n") if line.strip()]
    assert wanted == rows
    assert got["text"] == [r["text"] for r in wanted] and got["more"] == [r["more"] for r in wanted]
    assert [int(v) for v in got["n"]] == [r["n"] for r in wanted]
    assert np.array_equal(np.array(got["x"], np.float32), np.array([r["x"] for r in wanted], np.float64).astype(np.float32))
    assert [json.loads(v) for v in got["any"]] == [r["any"] for r in wanted]
    table = pd.read_json(io.BytesIO(content.decode("utf-8-sig").replace("\\u0000", "").encode()), lines=True, dtype=False)
    assert [t.replace("\0", "") for t in got["text"]] == list(table["text"])
    assert [int(v) for v in got["n"]] == [int(v) for v in table["n"]]


def check_csv(folder, rng):
    letters = [letter for letter in LETTERS if letter != "\x00"]
    rows = [["".join(rng.choices(letters, k=rng.choice([0, 1, 5, 40]))), str(rng.randrange(-10**9, 10**9)), repr(float(number(rng)))] for _ in range(150)]
    delimiter, end = rng.choice(",;\t|"), rng.choice(["\n", "\r\n"])
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]))
    writer.writerow(["text", "n", "x"])
    for row in rows:
        writer.writerow(row)
        if rng.random() < 0.1:
            out.write(end)
    content = (rng.choice(["", "\ufeff"]) + out.getvalue()).encode()
    got = folder.load("t.csv", content, f"type: csv, delimiter: '{'tab' if delimiter == chr(9) else delimiter}', features: ['n:int64', 'x:float32']")
    wanted = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), delimiter=delimiter))
    assert got["text"] == [r["text"] for r in wanted]
    assert [int(v) for v in got["n"]] == [int(r["n"]) for r in wanted]
    assert np.array_equal(np.array(got["x"], np.float32), np.array([float(r["x"]) for r in wanted]).astype(np.float32))
    table = pd.read_csv(io.BytesIO(content), sep=delimiter, encoding="utf-8-sig", keep_default_na=False, dtype=str)
    assert len(table) == len(got["text"]) and got["text"] == list(table["text"])
    assert np.array_equal(np.array(got["x"], np.float32), np.array([float(x) for x in table["x"]]).astype(np.float32))


def quote_is_open(body):
    """Does the text end in a quoted field? A field is one if it begins with a quote."""
    begins, is_quoted, at = True, False, 0
    while at < len(body):
        if is_quoted and body.startswith('""', at):
            at += 1
        elif body[at] == '"' and (begins or is_quoted):
            is_quoted = not is_quoted
        begins = not is_quoted and body[at] in ",\n"
        at += 1
    return is_quoted


def check_odd_csv(folder, rng):
    """Text that no writer makes: as Python's csv reads it, where each row has two fields and quotes are closed."""
    letters = ["a", '"', '"', '""', " ", "b"]
    body = "\n".join(",".join("".join(rng.choices(letters, k=rng.randrange(5))) for _ in range(2)) for _ in range(4))
    try:
        rows = list(csv.reader(io.StringIO("text,b\n" + body, newline=""), strict=False))
    except csv.Error:
        return 0
    rows = [row for row in rows[1:] if row]
    if any(len(row) != 2 for row in rows) or not rows:
        return 0
    if quote_is_open(body):
        return 0  # the last row is an error
    got = folder.load("t.csv", ("text,b\n" + body).encode(), "type: csv, features: [b]", "--on-error", "skip:100%")
    assert len(got["text"]) == len(rows), body
    assert [[a, b] for a, b in zip(got["text"], got["b"])] == rows, body
    return 1


def main():
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
    print(f"seed {seed}", flush=True)
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Folder(sys.argv[1], name)
        for _ in range(12):
            check_jsonl(folder, rng)
            check_csv(folder, rng)
        count = sum(check_odd_csv(folder, rng) for _ in range(300))
    assert count > 50, count
    print(f"as json, csv and pandas; {count} odd texts")


if __name__ == "__main__":
    main()
