#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto-inspect: what it says of our datasets and of other people's files, whole and damaged."""
import base64
import json
import shutil
import sys

from cli import GOLDEN, ROOT, Case, example, frames, main, run

TFRECORDS = GOLDEN / "tfrecord"


class Inspect(Case):
    photo_count = 12

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.resized = cls.write("-u", "resized", "-c", "zstd:3", "-s", "3")
        cls.concatenated = cls.write("-u", "concatenated", "-s", "2")

    def inspect(self, *arguments, code=0):
        done = run("presto-inspect", *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout.decode()

    # ---- info ----

    def test_info_counts_files_records_and_bytes(self):
        info = json.loads(self.inspect("info", "--json", self.resized))
        shards = sorted(self.resized.glob("*.tfrecord"))
        self.assertEqual(info["schema"], 1)
        self.assertEqual((info["files"], info["records"]), (3, self.photo_count))
        self.assertEqual(info["stored_bytes"], sum(s.stat().st_size for s in shards))
        self.assertEqual((info["codec"], info["codec_guessed"]), ("zstd", False) if info["codec"] == "zstd" else
                         ("zstd:3", False))
        self.assertEqual(info["stored"], "resized")
        self.assertGreater(info["raw_bytes"], 48 * 64 * 3 * self.photo_count)
        self.assertEqual(info["features"]["image"]["shape"], [48, 64, 3])
        self.assertEqual(info["features"]["image"]["dtype"], "uint8")
        self.assertEqual(info["features"]["label"]["encoding"], "int64")
        self.assertEqual(info["features"]["key"]["encoding"], "bytes")

    def test_info_says_what_the_labels_stand_for(self):
        names = sorted(p.name for p in self.make_photos().iterdir() if p.is_dir())
        self.assertEqual(len(names), self.classes)
        recoded = self.new("recoded")
        self.inspect("recode", self.resized, "-o", recoded, "-c", "none")
        for dataset in (self.resized, recoded):
            self.assertEqual(json.loads(self.inspect("info", "--json", dataset))["labels"], names)
            self.assertIn("\nlabels: " + ", ".join(f"{i} {name}" for i, name in enumerate(names)) + "\n",
                          self.inspect("info", dataset))
        foreign = json.loads(self.inspect("info", "--json", TFRECORDS / "good-examples.tfrecord"))
        self.assertIsNone(foreign["labels"])

    def test_info_is_what_happens_without_a_subcommand(self):
        self.assertEqual(self.inspect(self.resized), self.inspect("info", self.resized))
        text = self.inspect(self.concatenated)
        for word in ("2 files", "12 records", "stored: concatenated", "codec: none", "image", "jpeg", "label", "int64"):
            self.assertIn(word, text)

    def test_paths_mean_here_what_they_mean_to_presto_load(self):
        """A pattern in quotes, and a shard that a dataset.json beside it lists."""
        shard = sorted(self.resized.glob("*.tfrecord"))[0]
        pattern = f"{str(self.resized)[:-1]}[{str(self.resized)[-1]}]"
        for path, records in ((pattern, self.photo_count), (shard, len(frames(shard.read_bytes())))):
            info = json.loads(self.inspect("info", "--json", path))
            self.assertEqual((info["stored"], info["split"], info["records"]), ("resized", "resized", records))
            self.assertEqual(len(self.inspect("cat", "--json", path).splitlines()), records)
            self.assertIn("no faults", self.inspect("verify", path))
        self.assertIsNone(json.loads(self.inspect("info", "--json", TFRECORDS / "good-examples.tfrecord"))["stored"])

    def test_info_of_files_without_a_description(self):
        info = json.loads(self.inspect("--json", TFRECORDS / "good-examples.tfrecord"))
        self.assertEqual(info["records"], len(frames((TFRECORDS / "good-examples.tfrecord").read_bytes())))
        self.assertEqual(info["record_kind"], "Example")
        self.assertTrue(info["codec_guessed"])
        self.assertEqual(info["file_list"][0]["compression"], "none")

    # ---- verify ----

    def test_whole_files_verify(self):
        self.assertIn("no faults", self.inspect("verify", self.resized))
        for path in sorted(TFRECORDS.glob("good-*")):
            with self.subTest(file=path.name):
                self.assertIn("no faults", self.inspect("verify", path))

    def test_damaged_files_do_not_verify_and_name_file_record_and_byte(self):
        for path in sorted(TFRECORDS.glob("bad-*")):
            with self.subTest(file=path.name):
                code = 1 if path.stem in ("bad-text", "bad-short-text") else 3  # no TFRecords at all
                text = self.inspect("verify", path, code=code)
                self.assertIn(path.name, text.splitlines()[0])
        text = self.inspect("verify", TFRECORDS / "bad-data-bit.tfrecord", code=3)
        self.assertRegex(text.splitlines()[0], r"record \d+: .* \(at byte \d+\)")
        report = json.loads(self.inspect("verify", "--json", TFRECORDS / "bad-data-bit.tfrecord", code=3))
        self.assertEqual((report["schema"], report["faults"]), (1, len(report["fault_list"])))

    def test_a_terabyte_of_zeros_is_passed_over(self):
        good = (TFRECORDS / "good-examples.tfrecord").read_bytes()
        count = len(frames(good))
        hollow = self.new("hollow.tfrecord")
        with open(hollow, "wb") as file:
            file.write(good)
            file.seek(1 << 40)
            file.write(good)
        self.addCleanup(hollow.unlink)
        self.assertIn(f"{len(good)}", self.inspect("verify", hollow, code=3))
        report = json.loads(self.inspect("verify", "--json", hollow, code=3))
        self.assertEqual((report["records"], report["faults"]), (2 * count, 1))
        self.inspect("repair", hollow, "-o", self.new("repaired.tfrecord"))
        self.assertEqual(json.loads(self.inspect("info", "--json", hollow))["records"], 2 * count)
        done = run("presto-load", "-q", "--format", "null", "--on-error", "skip", hollow)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_verify_compares_with_the_description(self):
        copy = self.new("copy")
        shutil.copytree(self.concatenated, copy)
        shard = sorted(copy.glob("*.tfrecord"))[0]
        payloads = frames(shard.read_bytes())
        shard.write_bytes(shard.read_bytes()[: -16 - len(payloads[-1])])  # cut at a record: framing is fine
        self.assertIn(shard.name, self.inspect("verify", copy, code=3))

    def test_quiet_leaves_only_the_exit_code(self):
        self.assertEqual(self.inspect("verify", "-q", TFRECORDS / "bad-data-bit.tfrecord", code=3), "")

    def test_what_cannot_be_read_is_a_failure_not_corrupt(self):
        self.assertEqual(self.inspect("verify", "/dev/null", code=1),
                         "/dev/null: unreadable: is a device, not a regular file\n")
        whole = self.inspect("verify", "/dev/null", TFRECORDS / "good-plain.tfrecord", code=1)
        self.assertRegex(whole, r"\n2 files, [1-9]\d* whole records, .*: 1 fault, 0 bytes lost\n$")
        done = run("presto-inspect", "verify", self.folder / "nowhere.tfrecord")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nowhere.tfrecord", done.stderr + done.stdout.decode())

    # ---- cat ----

    def test_cat_prints_records_as_they_are(self):
        shard = sorted(self.concatenated.glob("*.tfrecord"))[0]
        payloads = frames(shard.read_bytes())
        done = run("presto-inspect", "cat", shard)
        self.assertEqual(done.stdout, b"".join(payloads))
        self.assertEqual(run("presto-inspect", "cat", "--record", "3", shard).stdout, payloads[3])
        self.assertEqual(run("presto-inspect", "cat", "--limit", "2", shard).stdout, b"".join(payloads[:2]))

    def test_cat_json_is_a_line_a_record(self):
        lines = self.inspect("cat", "--json", self.resized).splitlines()
        self.assertEqual(len(lines), self.photo_count)
        records = [json.loads(line) for line in lines]
        self.assertEqual([r["record"] for r in records], list(range(self.photo_count)))
        photos = sorted(self.make_photos().rglob("*.jpg"))
        self.assertEqual([r["features"]["key"] for r in records],
                         [str(p.relative_to(self.make_photos())) for p in photos])
        self.assertEqual({type(r["features"]["label"]) for r in records}, {int})
        image = records[0]["features"]["image"]
        self.assertEqual((image["dtype"], image["shape"], len(image["first"])), ("uint8", [48, 64, 3], 8))

    def test_cat_full_gives_all_bytes_and_numbers(self):
        record = json.loads(self.inspect("cat", "--json", "--full", "--record", "0", self.concatenated))
        photo = sorted(self.make_photos().rglob("*.jpg"))[0]
        self.assertEqual(base64.b64decode(record["features"]["image"]["base64"]), photo.read_bytes())
        short = json.loads(self.inspect("cat", "--json", "--record", "0", self.concatenated))
        self.assertEqual(short["features"]["image"], {"bytes": photo.stat().st_size})
        record = json.loads(self.inspect("cat", "--json", "--full", "--record", "0", self.resized))
        self.assertEqual(len(record["features"]["image"]["values"]), 48 * 64 * 3)

    def test_cat_undoes_codecs_that_it_can_tell(self):
        plain = self.inspect("cat", "--json", TFRECORDS / "good-examples.tfrecord").splitlines()
        for codec in ("zlib", "gzip", "zstd", "lz4"):
            lines = self.inspect("cat", "--json", TFRECORDS / f"good-records-{codec}.tfrecord").splitlines()
            for line in lines:
                self.assertIn("features", json.loads(line), codec)
        self.assertTrue(plain)

    def test_cat_goes_on_after_a_damaged_record(self):
        path = TFRECORDS / "bad-data-bit.tfrecord"
        done = run("presto-inspect", "cat", "--json", path)
        self.assertEqual(done.returncode, 3)
        self.assertIn(path.name, done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), len(frames(path.read_bytes())) - 1)

    def test_cat_of_a_record_that_is_not_there(self):
        self.assert_fails(run("presto-inspect", "cat", "--json", "--record", "12", self.resized), 1, "12 records",
                          self.resized.name)

    # ---- dataset.json against its records ----

    def contradict(self, change):
        copy = self.new("contradiction")
        shutil.copytree(self.resized, copy)
        description = json.loads((copy / "dataset.json").read_text())
        change(description)
        (copy / "dataset.json").write_text(json.dumps(description))
        return copy

    def test_a_description_that_contradicts_its_records_is_found(self):
        def feature(name, **changes):
            return lambda d: next(f for f in d["features"] if f["name"] == name).update(changes)

        new = {"name": "more", "dtype": "int64", "shape": [], "encoding": "int64"}
        cases = [
            (feature("label", dtype="float32", shape=[7], encoding="tensor"), 'feature "label" is stored as int64, int64[1], but', "tensor, float32[7]"),
            (feature("label", dtype="float32", encoding="float"), "stored as int64", "says float, float32"),
            (feature("label", shape=[2]), "stored as int64, int64[1]", "int64[2]"),
            (feature("image", dtype="float32"), "tensor, uint8[", "float32[48"),
            (feature("image", shape=[-1, -1]), "tensor, uint8[", "uint8[?,?]"),
            (feature("image", shape=[-1, -1, 4]), "tensor, uint8[", "uint8[?,?,4]"),
            (feature("image", dtype="string", shape=[-1], encoding="bytes"), "stored as bytes, string[1]", None),
            (lambda d: d["features"].pop(), "which dataset.json does not have", None),
            (lambda d: d["features"].append(new), 'feature "more", which no record has', None),
            (lambda d: d["labels"].pop(), "dataset.json names the labels 0 to", None),
        ]
        for change, *parts in cases:
            done = run("presto-inspect", "verify", self.contradict(change))
            if parts == ["stored as bytes, string[1]", None]:
                self.assertEqual(done.returncode, 0, "bytes that happen to be tensors are bytes, too")
                continue
            self.assertEqual(done.returncode, 3, (parts, done.stdout))
            text = done.stdout.decode()
            self.assertIn("not as in dataset.json", text)
            for part in filter(None, parts):
                self.assertIn(part, text)
            self.assertIn("1 fault", text)
        unharmed = self.contradict(lambda d: None)
        self.assertEqual(run("presto-inspect", "verify", unharmed).returncode, 0)
        self.assertEqual(run("presto-inspect", "verify", sorted(unharmed.glob("*.tfrecord"))[0]).returncode, 0)

    def test_a_representation_that_its_pipeline_lacks_is_named(self):
        copy = self.contradict(lambda d: d.update(stored="nonsense", split="nonsense"))
        self.assert_fails(run("presto-load", "--format", "null", copy), 3, "dataset.json", "'stored'", "nonsense", "resized")
        copy = self.contradict(lambda d: d.update(stored="decoded"))
        self.assert_fails(run("presto-load", "--format", "null", copy), 3, "dataset.json", "'stored' and 'split', its name before, differ")

    # ---- what info looks at ----

    def test_info_looks_at_random_places_and_says_so(self):
        sys.path.insert(0, str(ROOT / "tests" / "corpora"))
        from records import framed, serialized
        path = self.new("turns.tfrecord")
        path.write_bytes(b"".join(framed(serialized({"a": i} if i % 2 else {"b": b"text"})) for i in range(200)))
        info = json.loads(self.inspect("info", "--json", path))
        self.assertEqual(info["sampled_records"], 100)
        seen = {name: feature["seen"] for name, feature in info["features"].items()}
        self.assertEqual(sorted(seen), ["a", "b"])
        self.assertEqual(sum(seen.values()), 100)
        self.assertGreater(min(seen.values()), 25)
        text = self.inspect("info", path)
        self.assertIn("in 100 of 200 records", text)
        self.assertEqual(text, self.inspect("info", path))
        self.assertNotIn("at random places", self.inspect("info", "--sample", "200", path))

    # ---- index, repair, recode ----

    def test_index_makes_what_presto_write_made(self):
        copy = self.new("copy")
        shutil.copytree(self.concatenated, copy)
        before = {p.name: p.read_bytes() for p in copy.glob("*.index")}
        self.assertEqual(len(before), 2)
        for path in copy.glob("*.index"):
            path.unlink()
        self.inspect("index", copy)
        self.assertEqual({p.name: len(p.read_bytes()) for p in copy.glob("*.index")},
                         {name: len(data) for name, data in before.items()})

    def test_dali_index_has_offset_and_size_of_each_record(self):
        copy = self.new("copy")
        copy.mkdir()
        shard = copy / "x.tfrecord"
        shutil.copy(sorted(self.concatenated.glob("*.tfrecord"))[0], shard)
        self.inspect("index", "--dali", shard)
        at, lines = 0, []
        for payload in frames(shard.read_bytes()):
            lines.append(f"{at} {len(payload) + 16}\n")
            at += len(payload) + 16
        self.assertEqual((copy / "x.tfrecord.idx").read_text(), "".join(lines))

    def test_repair_saves_every_whole_record(self):
        shard = sorted(self.concatenated.glob("*.tfrecord"))[0]
        data = bytearray(shard.read_bytes())
        payloads = frames(bytes(data))
        data[16 + len(payloads[0]) + 3] ^= 0x40  # the length of record 1
        broken, saved = self.new("broken"), self.new("saved")
        broken.write_bytes(data)
        done = run("presto-inspect", "repair", "--json", broken, "-o", saved)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(frames(saved.read_bytes()), payloads[:1] + payloads[2:])
        result = json.loads(done.stdout)
        self.assertEqual((result["records"], result["lost_bytes"]), (len(payloads) - 1, len(payloads[1]) + 16))
        self.assertIn("bytes lost", done.stderr)
        self.assertIn("no faults", self.inspect("verify", saved))

    def test_recode_keeps_samples_and_their_order(self):
        out = self.new("recoded")
        self.inspect("recode", self.resized, "-c", "lz4", "-s", "5", "-o", out)
        self.assertEqual(len(list(out.glob("*.tfrecord"))), 5)
        self.assertEqual(json.loads(self.inspect("info", "--json", out))["codec"], "lz4")
        self.assertTrue(self.load("-q", out) == self.load("-q", self.resized))
        again = self.new("recoded")
        text = self.inspect("recode", "--json", "-j", "0", "--shard-bytes", "30KiB", "-o", again, out)
        self.assertEqual(json.loads(text)["shards"], len(list(again.glob("*.tfrecord"))))
        self.assertEqual(json.loads(self.inspect("info", "--json", again))["codec"], "lz4")
        self.assertTrue(self.load("-q", again) == self.load("-q", self.resized))
        resumed = self.inspect("recode", "--json", "--resume", "--shard-bytes", "30KiB", "-o", again, out)
        self.assertEqual(json.loads(resumed)["records"], json.loads(text)["records"])
        done = run("presto-inspect", "recode", "-o", again, out)
        self.assert_fails(done, 2, "holds a whole dataset already")

    def test_recode_takes_files_of_others(self):
        folder, out, back = self.new("foreign"), self.new("recoded"), self.new("back")
        folder.mkdir()
        for i, shard in enumerate(sorted(self.resized.glob("*.tfrecord"))):  # records that are no Examples
            shutil.copy(shard, folder / f"part-{i}.tfrecord")
        stored = b"".join(path.read_bytes() for path in sorted(folder.iterdir()))
        done = run("presto-inspect", "recode", "-c", "zstd:1", "-s", "2", "-o", out, folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{self.photo_count} records, 2 shards", done.stderr)
        self.inspect("recode", "-c", "none", "-o", back, out)
        self.assertTrue(b"".join(path.read_bytes() for path in sorted(back.glob("*.tfrecord"))) == stored)

    def test_repair_replaces_no_file(self):
        taken = self.new("taken")
        taken.write_text("mine")
        shard = sorted(self.resized.glob("*.tfrecord"))[0]
        self.assert_fails(run("presto-inspect", "repair", shard, "-o", taken), 2, "exists already")
        self.assertEqual(taken.read_text(), "mine")

    def test_options_of_another_subcommand_are_refused(self):
        for arguments in (["info", "--record", "1"], ["cat", "--json", "--dali"], ["verify", "-o", "x"],
                          ["index", "--full"]):
            self.assert_usage(run("presto-inspect", *arguments, self.resized), f"does not go with {arguments[0]}")
        self.assert_usage(run("presto-inspect", "repair", self.resized), "--output is missing")


if __name__ == "__main__":
    main()
