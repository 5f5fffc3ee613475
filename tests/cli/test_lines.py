#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The sources lines, jsonl and csv: what becomes of each line, row and field, and which line and byte a failure names."""
import csv
import gzip
import io
import json
import math
import random
import struct

from cli import Case, example, fields, frames, main, run

STEPS = "[{step: bpe-encode, model: none, yields: tokens}]"


def plain(values):
    """Lists of bytes, of ints with their sign, or of floats."""
    if isinstance(values, bytes):
        packed = b"".join(v for _, v in fields(values))
        return list(struct.unpack(f"<{len(packed) // 4}f", packed))
    return [v - (1 << 64) if isinstance(v, int) and v >> 63 else v for v in values]


class Lines(Case):
    photo_count = 1

    def pipeline_of(self, source):
        path = self.new("pipeline").with_suffix(".yaml")
        path.write_text(f"{{name: t, source: {{{source}}}, steps: {STEPS}}}")
        return path

    def put(self, name, content):
        folder = self.new("texts")
        folder.mkdir()
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def samples(self, source, path, *arguments):
        """Each sample as a dict; lists of one value are that value."""
        out = self.load("-q", "-p", self.pipeline_of(source), "--to", "text", *arguments, path)
        return [{name: plain(value) for name, value in example(frame).items()} for frame in frames(out)]

    def texts(self, source, path, *arguments):
        return [sample["text"][0] for sample in self.samples(source, path, *arguments)]

    def fails(self, source, path, code, *parts):
        done = run("presto-load", "-q", "-p", self.pipeline_of(source), "--to", "text", "--format", "null", path)
        self.assert_fails(done, code, path, *parts)

    # ---- lines ----

    def test_lines_are_those_of_python(self):
        text = "\ufeffone\r\n\n  two \nthr\u00e9e\r\n\x00\nlast".encode()
        wanted = [line.rstrip(b"\n").removesuffix(b"\r") for line in io.BytesIO(text[3:])]
        for name, content in ("a.txt", text), ("a.txt.gz", gzip.compress(text)), ("b.any", text):
            self.assertEqual(self.texts("type: lines", self.put(name, content)), wanted)

    def test_folders_are_searched_and_files_follow_each_other(self):
        folder = self.put("b.txt", "3\n").parent
        (folder / "a").mkdir()
        (folder / "a" / "x.txt").write_text("1\n2")
        (folder / "c.md").write_text("no\n")
        (folder / "z.txt").write_text("")
        self.assertEqual(self.texts("type: lines", folder), [b"1", b"2", b"3"])
        self.assertEqual(len(self.texts("type: lines", folder, "--shuffle", "full", "--rank", "1", "--world", "3")), 1)

    def test_a_file_of_no_lines_is_empty(self):
        self.assertEqual(self.texts("type: lines", self.put("a.txt", "")), [])

    def test_what_is_packed_is_not_shuffled_in_full(self):
        path = self.put("a.txt.gz", gzip.compress(b"1\n2\n3\n"))
        done = run("presto-load", "-q", "-p", self.pipeline_of("type: lines"), "--to", "text", "--shuffle", "full", "--format", "null", path)
        self.assert_fails(done, 2, path, "compressed as a whole (gzip)", "buffer:N")
        self.assertEqual(sorted(self.texts("type: lines", path, "--shuffle", "buffer:2")), [b"1", b"2", b"3"])

    def test_failures_name_line_and_byte(self):
        self.fails("type: lines", self.put("a.txt", b"ok\nb\xffd\n"), 3, "record 1", "line 2: no UTF-8: the byte is 0xff", "at byte 4")
        self.fails("type: lines, max-bytes: 10", self.put("a.txt", b"ok\n" + b"y" * 100 + b"\n"), 1, "line 2: ", "max-bytes", "at byte 3")
        self.fails("type: lines", self.put("a.txt", b"\xff\xfea\0"), 3, "UTF-16")
        self.fails("type: lines", self.put("a.txt", b"\x89PNG\r\n\x1a\n" + bytes(100)), 3, "a PNG file")

    def test_an_index_is_kept_and_used(self):
        path = self.put("a.txt", "".join(f"line {i} {'x' * (i % 90)}\n" for i in range(2000)))
        index = path.with_name("a.txt.index")
        wanted = self.texts("type: lines", path, "--shuffle", "full")
        self.assertFalse(index.exists())
        for _ in range(2):
            self.assertEqual(self.texts("type: lines", path, "--shuffle", "full", "--index", "keep"), wanted)
            self.assertEqual(index.read_bytes()[:8], b"PRESTOLX")
        index.write_bytes(index.read_bytes()[:-1])  # damaged: told, and not used
        done = run("presto-load", "-p", self.pipeline_of("type: lines"), "--to", "text", "--shuffle", "full", path)
        self.assertEqual([example(f)["text"][0] for f in frames(done.stdout)], wanted)
        self.assertIn("its size does not fit its marks", done.stderr)
        self.fails("type: lines", index, 3, "index of a text file")

    def test_a_dataset_of_lines_is_written(self):
        path, out = self.put("a.txt", "one\ntwo\nthree\n"), self.new()
        done = run("presto-write", "-p", self.pipeline_of("type: lines"), "-u", "text", "-s", "2", "-o", out, path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([example(f)["text"][0] for f in frames(self.load("-q", "--to", "text", out))], [b"one", b"two", b"three"])

    # ---- jsonl ----

    def test_values_are_those_of_pythons_json(self):
        rows = [{"text": "a \u00e9 \u20ac \U0001f600 \x00 \" \\", "n": 2**63 - 1, "x": 0.1, "l": [1, -2], "f": [0.5, 3], "any": {"b": [None, True, 1.5]}, "label": 4},
                {"any": "t", "label": 0, "f": [], "l": [], "x": -7, "n": -2**63, "text": ""},
                {"text": "\U0001f600", "n": 1.0, "x": float("inf"), "l": [3.0], "f": [float("nan")], "any": float("-inf"), "label": True,
                 "other": 10**30, "more": {"n": 1}}]
        rows[2].pop("other")
        for ascii_only in True, False:
            text = "\n".join(json.dumps(row, ensure_ascii=ascii_only) for row in rows)
            got = self.samples("type: jsonl, label: label, features: ['n:int64', 'x:float32', 'l:int64[]', 'f:float32[]', 'any:json']",
                               self.put("a.jsonl", text))
            for row, sample in zip(rows, got, strict=True):
                self.assertEqual(sample["text"][0].decode(), row["text"])
                self.assertEqual(sample["n"], [row["n"]])
                self.assertEqual(struct.pack("<f", sample["x"][0]), struct.pack("<f", row["x"]))
                self.assertEqual(sample["l"], row["l"])
                self.assertEqual([struct.pack("<f", v) for v in sample["f"]], [struct.pack("<f", v) for v in row["f"]])
                self.assertEqual(json.loads(sample["any"][0]), row["any"])
                self.assertEqual(sample["label"], [int(row["label"])])

    def test_lines_of_white_space_are_none(self):
        self.assertEqual(self.texts("type: jsonl", self.put("a.jsonl", '\ufeff\n{"text": "a"}\r\n \t\r\n\n{"text": "b"}')), [b"a", b"b"])

    def test_whole_numbers_beyond_int64_matter_only_where_they_are_asked_for(self):
        path = self.put("a.jsonl", '{"text": "a", "n": 5, "id": 18446744073709551615}\n')
        self.assertEqual(self.samples("type: jsonl, features: ['n:int64']", path)[0]["n"], [5])
        self.fails("type: jsonl, features: ['id:int64']", path, 1, "line 1: 'id' is a number, not a whole number that fits int64")

    def test_whole_numbers_beyond_int64_change_no_other_number(self):
        text = '{"a":12,"b":9007199254740993,"c":-9223372036854775809,"d":123456789012345678901234567890,"e":[9223372036854775807,1.5]}'
        path = self.put("a.jsonl", '{"text": "-9223372036854775809 \\" 1", "n": 9007199254740993, "u": 18446744073709551615, "x": NaN, "any": %s}\n' % text)
        sample = self.samples("type: jsonl, label: n, features: ['u:float32', 'x:float32', 'any:json']", path)[0]
        self.assertEqual(sample["text"], [b'-9223372036854775809 " 1'])
        self.assertEqual(sample["label"], [9007199254740993])
        self.assertEqual(sample["u"], [2.0**64])
        self.assertTrue(math.isnan(sample["x"][0]))
        self.assertEqual(sample["any"], [text.encode()])
        for odd in "[NaN, 18446744073709551616", '"a", "n": 18446744073709551616, "n": 1':
            line = '{"text": "a", "any": ' + odd + "}"
            self.fails("type: jsonl", self.put("a.jsonl", line), 3, f"at byte {len(line) - (1 if odd[0] == '[' else 5)}", "line 1: ")

    def test_lines_as_long_as_they_may_be_are_read(self):
        longest = b"a" * 65535
        for end in b"\r\n", b"\n":
            for lines in [longest, b"b"], [longest, b"b", longest]:
                path = self.put("a.txt", end.join(lines) + end)
                self.assertEqual(self.texts("type: lines, max-bytes: 65535", path), lines)
                self.assertEqual(sorted(self.texts("type: lines, max-bytes: 65535", path, "--shuffle", "full")), sorted(lines))
            self.fails("type: lines, max-bytes: 65534", path, 1, "line 1: ", "65534")

    def test_lines_of_white_space_that_are_too_long_fail(self):
        for spaces in 1001, 70000:
            path = self.put("a.jsonl", '{"text": "a"}\n' + " " * spaces + '\n{"text": "b"}\n')
            self.fails("type: jsonl, max-bytes: 1000", path, 1, "record 1", "line 2: ", "1000")
        self.assertEqual(self.texts("type: jsonl, max-bytes: 1000", self.put("a.jsonl", '{"text": "a"}\n' + " " * 1000 + '\n{"text": "b"}\n')), [b"a", b"b"])

    def test_an_index_older_than_its_file_is_not_used(self):
        text = "one\n" * 50000
        path = self.put("a.txt", text)
        self.texts("type: lines", path, "--shuffle", "full", "--index", "keep")
        self.assertTrue(path.with_name("a.txt.index").exists())
        path.write_text(text[:70000] + "one one\n" + text[70008:])
        got = self.texts("type: lines", path, "--shuffle", "full", "--index", "keep")
        self.assertEqual(sorted(got), sorted([b"one"] * 49998 + [b"one one"]))

    def test_classes_give_numbers_to_names(self):
        path = self.put("a.jsonl", '{"text": "a", "kind": "cat"}\n{"text": "b", "kind": "ant"}\n{"text": "c", "kind": 0}\n')
        source = "type: jsonl, label: kind, classes: [ant, bee, cat]"
        self.assertEqual([s["label"] for s in self.samples(source, path)], [[2], [0], [0]])
        self.fails("type: jsonl, label: kind, classes: [ant, bee]", path, 1, "line 1: ", "cat")
        self.fails("type: jsonl, label: kind", path, 1, "line 1: 'kind' is a text, not a whole number", "source.classes")

    def test_failures_name_line_byte_and_field(self):
        for line, *parts in (
            ('{"text": "b", }', "line 2: cannot be read as JSON"), ('{"text": "b"', "line 2: cannot be read as JSON"),
            ('["text"]', "line 2: is no JSON object"), ('"text"', "line 2: ", "JSON"), ('{"text": "b"} {}', "line 2: cannot be read as JSON"),
            ('{"text": null}', "line 2: 'text' is null, not a text"), ('{"Text": "b"}', "line 2: it has no field 'text'"),
            ('{"text": 5}', "line 2: 'text' is a number, not a text"), ('{"text": NaN}', "line 2: 'text' is a number, not a text"),
            ('{"text": ["b"]}', "line 2: 'text' is a list, not a text"), ('{"text": {"a": 1}}', "line 2: 'text' is an object, not a text"),
            ('{"text": "a", "text": "b"}', "line 2: cannot be read as JSON: duplicate object key"),
            ('{"text": "\\ud800"}', "line 2: cannot be read as JSON"), ('{"text": "b", "x": 1e400}', "line 2: cannot be read as JSON"),
        ):
            with self.subTest(line=line):
                code = 3 if "JSON" in parts[-1] else 1  # broken, or of another type
                self.fails("type: jsonl", self.put("a.jsonl", '{"text": "a"}\n' + line + "\n"), code, "record 1", "at byte ", *parts)
        self.fails("type: jsonl", self.put("a.jsonl", b'{"text": "a"}\n{"text": "\xff"}\n'), 3, "record 1", "line 2: ")
        self.fails("type: jsonl, features: ['n:int64']", self.put("a.jsonl", '{"text": "a", "n": 1.5}'), 1, "'n' is a number, not a whole number")
        self.fails("type: jsonl, features: ['l:int64[]']", self.put("a.jsonl", '{"text": "a", "l": [1, "2"]}'), 1, "value 1 of the list 'l'")
        self.fails("type: jsonl, features: ['n']", self.put("a.jsonl", '{"text": "a", "n": 1}'), 1, "'n' is a number, not a text: source.features")
        self.fails("type: jsonl, features: ['x:float32']", self.put("a.jsonl", '{"text": "a", "x": 1e39}'), 1, "fits float32")
        self.fails("type: jsonl", self.put("a.jsonl", '{"text": ' + "[" * 3000 + "]" * 3000 + "}"), 3, "line 1: ")

    def test_bad_samples_are_left_out(self):
        path = self.put("a.jsonl", '{"text": "a"}\n{"text": null}\n{"text": "c"}\n{"text": "d"\n{"text": "e"}\n')
        self.assertEqual(self.texts("type: jsonl", path, "--on-error", "skip:50%"), [b"a", b"c", b"e"])

    def test_options_are_checked(self):
        path = self.put("a.jsonl", "{}")
        for source, word in (("features: ['n:int']", "'n:int'"), ("features: [text]", "'text', which another"),
                             ("features: ['a:json', a]", "'a', which another"), ("features: [label], label: x", "'label', which another")):
            self.fails_usage(f"type: jsonl, {source}", path, word)
        self.fails_usage("type: csv, features: ['a:json']", path, "'a:json'")
        self.fails_usage("type: csv, delimiter: ab", path, "'ab'")

    def fails_usage(self, source, path, word):
        done = run("presto-load", "-q", "-p", self.pipeline_of(source), "--to", "text", "--format", "null", path)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(word, done.stderr)

    # ---- csv ----

    def test_rows_are_those_of_pythons_csv(self):
        rng = random.Random(7)
        letters = ["a", "b", ",", '"', "\n", "\r\n", ";", "\t", " ", "\u00e9", "'", "\r"]
        rows = [["".join(rng.choices(letters, k=rng.randrange(9))) for _ in range(3)] for _ in range(400)]
        for delimiter, end, quoting in ((",", "\r\n", csv.QUOTE_MINIMAL), (";", "\n", csv.QUOTE_ALL), ("\t", "\r", csv.QUOTE_ALL)):
            out = io.StringIO(newline="")
            writer = csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=quoting)
            writer.writerow(["text", "b", "c"])
            writer.writerows(rows)
            name = "a.tsv" if delimiter == "\t" else "a.csv"
            given = ", delimiter: ';'" if delimiter == ";" else ""
            got = self.samples(f"type: csv, features: [b, c]{given}", self.put(name, out.getvalue()))
            self.assertEqual([[s[n][0].decode() for n in ("text", "b", "c")] for s in got], rows)

    def test_odd_quotes_are_read_as_by_pythons_csv(self):
        text = 'text,b\n"a"x,1\na"b"c,"2"" "\n "a",3\n"","a"",""b"\n\n\r\nlast,4'
        wanted = [[row["text"], row["b"]] for row in csv.DictReader(io.StringIO(text, newline=""))]
        got = self.samples("type: csv, features: [b]", self.put("a.csv", text))
        self.assertEqual([[s["text"][0].decode(), s["b"][0].decode()] for s in got], wanted)

    def test_types_are_those_that_are_stated(self):
        text = "\ufefftext,n,x,y\r\na, 12 ,.5,007\r\nb,-3,1e-3,-INF\r\nc,+4,nan,\r\n"
        got = self.samples("type: csv, features: ['n:int64', 'x:float32', y]", self.put("a.csv", text))
        self.assertEqual([s["n"][0] for s in got], [12, -3, 4])
        self.assertEqual([struct.pack("<f", s["x"][0]) for s in got], [struct.pack("<f", v) for v in (0.5, 1e-3, float("nan"))])
        self.assertEqual([s["y"][0] for s in got], [b"007", b"-INF", b""])

    def test_names_may_be_given(self):
        got = self.samples("type: csv, names: [n, text], features: ['n:int64']", self.put("a.csv", "1,a\n2,b\n"))
        self.assertEqual([(s["n"][0], s["text"][0]) for s in got], [(1, b"a"), (2, b"b")])

    def test_failures_of_rows_name_line_and_byte(self):
        self.fails("type: csv", self.put("a.csv", "a,b\n1,2\n"), 1, "has no column 'text'", "a, b")
        self.fails("type: csv", self.put("a.csv", "text,b,text\n1,2,3\n"), 3, "columns 1 and 3 are both called 'text'")
        self.fails("type: csv", self.put("a.csv", 'text,b\n"x\ny",2\n1\n'), 3, "record 1", "line 4: the row has 1 field, not 2", "at byte 15")
        self.fails("type: csv", self.put("a.csv", 'text,"b\n1,2\n3,4\n'), 3, "line 1, which names the columns: a quoted field does not end")
        self.fails("type: csv", self.put("a.csv", "text,b\n1,2,3\n"), 3, "line 2: the row has 3 fields, not 2")
        self.fails("type: csv", self.put("a.csv", 'text,b\na,1\n"b,2\nc,3\n'), 3, "record 1", "line 3: a quoted field does not end", "at byte 11")
        self.fails("type: csv, features: ['b:int64']", self.put("a.csv", "text,b\na,1\nb,x\n"), 1, "line 3: 'b' is 'x', which is no whole number", "at byte 13")
        self.fails("type: csv, features: ['b:int64']", self.put("a.csv", "text,b\na,\n"), 1, "line 2: 'b' is ''")
        self.fails("type: csv, features: ['b:int64']", self.put("a.csv", "text,b\na,9223372036854775808\n"), 1, "no whole number of int64")
        self.fails("type: csv, features: ['b:float32']", self.put("a.csv", "text,b\na,1e39\n"), 1, "fits float32")
        self.fails("type: csv", self.put("a.csv", b"text,b\na,1\n\xe9,2\n"), 3, "line 3: no UTF-8", "at byte 11")

    # ---- what is said elsewhere ----

    def test_the_three_kinds_are_told_where_files_are_taken_as_one_sample(self):
        pipeline = self.new("files").with_suffix(".yaml")
        pipeline.write_text("{name: t, source: {type: files, match: ['*.bin']}, steps: [{step: read-file, yields: concatenated}]}")
        for name, words in (("a.csv", ("source.type=csv each of its rows", "source.type=manifest")), ("a.jsonl", ("source.type=jsonl each of its lines",)),
                            ("a.jsonl.gz", ("source.type=jsonl it would be each of its lines",))):
            done = run("presto-load", "-p", pipeline, "--format", "null", self.put(name, "text\n1\n"))
            self.assertEqual(done.returncode, 0, done.stderr)
            for word in words:
                self.assertIn(word, done.stderr)

    def test_it_is_told_where_tfrecords_are_needed(self):
        for name, text, kind in (("a.jsonl", '{"text": "a"}\n{"text": "b"}\n', "jsonl"), ("a.csv", "a,b\n1,2\n3,4\n", "csv"), ("a.txt", "some words\nof a text\n", "lines")):
            for words in (["presto-inspect"], ["presto-load", "--format", "null"]):
                done = run(*words, self.put(name, text))
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(f"source.type={kind}", done.stderr)


if __name__ == "__main__":
    main()
