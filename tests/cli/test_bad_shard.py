#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad shards and indexes: damage is named with file, record and byte, what is whole is delivered, and an index is a hint."""
import json
import os
import shutil
import struct
import zlib

from cli import Case, crc32c, frames, main, run


class BadShard(Case):
    photo_count = 8

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dataset = cls.write("-u", "concatenated", "-s", "1")

    def damaged(self, change):
        """A copy of the dataset whose shard has been changed."""
        copy = self.new("damaged")
        shutil.copytree(self.dataset, copy)
        shard = next(copy.glob("*.tfrecord"))
        data = bytearray(shard.read_bytes())
        shard.write_bytes(change(data))
        return copy, shard

    def positions(self):
        """Start of each record's frame, and the end."""
        shard = next(self.dataset.glob("*.tfrecord"))
        at = [0]
        for payload in frames(shard.read_bytes()):
            at.append(at[-1] + 16 + len(payload))
        return at

    def test_a_flipped_bit_in_the_data_names_file_record_and_byte(self):
        start = self.positions()[3]

        def flip(data):
            data[start + 12 + 200] ^= 1
            return data
        copy, shard = self.damaged(flip)
        done = run("presto-load", "--format", "null", copy)
        self.assert_fails(done, 3, shard.name, "record 3", "at byte ")
        done = run("presto-load", "-q", "--on-error", "skip", copy)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("record 3", done.stderr)
        self.assertEqual(len(frames(done.stdout)), self.photo_count - 1)

    def sums(self, stream):
        """A short stand-in for each payload of a stream."""
        return [zlib.crc32(payload) for payload in frames(stream)]

    def test_skipping_goes_on_behind_a_damaged_length(self):
        """In a file of others, whose records are found by their lengths, and in a dataset without its index."""
        at, whole = self.positions(), self.sums(self.load("--to", "concatenated", self.dataset))
        spots = [(2, at[2] + 3), (5, at[5] + 9)]  # record, byte

        def damage(data):
            for _, byte in spots:
                data[byte] ^= 1
            return data[: at[-1] - 5]
        copy, shard = self.damaged(damage)
        (copy / f"{shard.name}.index").unlink()
        foreign = self.new("foreign")
        foreign.mkdir()
        shutil.copy(shard, foreign / "some.tfrecord")
        lost = [record for record, _ in spots] + [self.photo_count - 1]
        kept = [payload for i, payload in enumerate(whole) if i not in lost]
        for folder in (copy, foreign):
            self.assert_fails(run("presto-load", "--format", "null", folder), 3, "record 2", f"at byte {at[2]}")
            for options in (["-j", "0"], ["-j", "1"], ["-j", "4"], ["--raw-records"], ["-j", "2", "--shuffle", "full"]):
                with self.subTest(folder=folder.name, options=options):
                    report = self.new("report")
                    to = ["--to", "concatenated"] if folder == copy and "-j" in options else []
                    done = run("presto-load", *to, "--on-error", "skip", "--error-report", report, *options, folder)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    got = self.sums(done.stdout)
                    self.assertEqual(sorted(got) if "full" in options else got, sorted(kept) if "full" in options else kept)
                    told = [json.loads(line) for line in report.read_text().splitlines()]
                    self.assertEqual(sorted((line["record"], line["byte"]) for line in told), [(i, at[i]) for i in lost])

    def test_skipping_delivers_what_a_cut_shard_still_holds(self):
        at, whole = self.positions(), self.sums(self.load("--to", "concatenated", self.dataset))
        for left, end in ((3, at[3]), (3, at[3] + 5), (3, at[4] - 1), (0, 0), (0, 7)):
            copy, shard = self.damaged(lambda data, end=end: data[:end])
            for j in (0, 1, 3):
                with self.subTest(end=end, j=j):
                    report = self.new("report")
                    done = run("presto-load", "--to", "concatenated", "-j", j, "--on-error", "skip", "--error-report", report, copy)
                    self.assertEqual((done.returncode, self.sums(done.stdout)), (0, whole[:left]), done.stderr)
                    told = [json.loads(line) for line in report.read_text().splitlines()]
                    lost = [line[key] + i for key in ("record", "sample") for line in told for i in range(line["samples"])]
                    self.assertEqual(lost, [*range(left, self.photo_count)] * 2)
                    self.assertLessEqual(len(told), 8)
                    self.assertEqual({line["status"] for line in told}, {"PRESTO_ERR_TRUNCATED"})
            out = self.new()
            convert = ["presto-write", "-q", "-p", self.pipeline, "-u", "resized", "-o", out]
            self.assert_fails(run(*convert, copy), 3, shard.name)
            self.assertEqual(run(*convert, "--on-error", "skip", copy).returncode, 0)
            self.assertEqual(len(frames(self.load("--to", "resized", out))), left)

    def test_skipping_delivers_what_stands_before_the_damage_in_a_compressed_shard(self):
        dataset = self.write("-u", "concatenated", "-s", "1", "--file-compression", "gzip")
        whole = self.sums(self.load("--to", "concatenated", dataset))
        shard = next(dataset.glob("*.gz"))
        data = shard.read_bytes()
        for end, least in ((len(data) - 4, self.photo_count), (len(data) // 2, 1), (30, 0)):
            shard.write_bytes(data[:end])
            for options in ([], ["--raw-records"]):
                with self.subTest(end=end, options=options):
                    report = self.new("report")
                    to = options or ["--to", "concatenated", "-j", "2"]
                    done = run("presto-load", *to, "--on-error", "skip", "--error-report", report, dataset)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    got = self.sums(done.stdout)
                    self.assertGreaterEqual(len(got), least)
                    self.assertEqual(got, whole[: len(got)])
                    told = [json.loads(line)["samples"] for line in report.read_text().splitlines()]
                    self.assertTrue(sum(told) == self.photo_count - len(got) or (options and sum(told) <= 1), told)

    def test_samples_before_the_damage_are_delivered(self):
        start = self.positions()[3]

        def flip(data):
            data[start + 12 + 200] ^= 1
            return data
        copy, _ = self.damaged(flip)
        for j in (0, 1, 4):
            done = run("presto-load", "-j", j, "--to", "concatenated", "-b", "1", copy)
            self.assertEqual(done.returncode, 3)
            self.assertEqual(len(frames(done.stdout)), 3)

    def test_a_flipped_bit_in_each_part_of_a_frame(self):
        start, end = self.positions()[2:4]
        for name, at in [("length", start), ("length", start + 7), ("length's checksum", start + 9),
                         ("data", start + 12), ("data's checksum", end - 1)]:
            def flip(data, at=at):
                data[at] ^= 0x10
                return data
            with self.subTest(part=name, at=at - start):
                copy, shard = self.damaged(flip)
                self.assert_fails(run("presto-load", "--format", "null", copy), 3, shard.name)
                foreign = run("presto-load", "--format", "null", shard)  # without dataset.json
                self.assert_fails(foreign, 3, shard.name)

    def test_a_shard_that_is_cut(self):
        positions = self.positions()
        for cut in (0, 5, positions[1], positions[2] + 3, positions[3] + 100, positions[-1] - 1):
            with self.subTest(cut=cut):
                copy, shard = self.damaged(lambda data, cut=cut: data[:cut])
                self.assert_fails(run("presto-load", "--format", "null", copy), 3, shard.name)

    def test_a_shard_that_is_missing(self):
        copy, shard = self.damaged(lambda data: data)
        shard.unlink()
        self.assert_fails(run("presto-load", "--format", "null", copy), 1, shard.name)

    def test_a_dataset_without_its_description_is_foreign_records(self):
        copy, _ = self.damaged(lambda data: data)
        (copy / "dataset.json").unlink()
        self.assertEqual(len(frames(self.load("-q", copy))), self.photo_count)

    def test_a_description_that_is_damaged(self):
        whole = (self.dataset / "dataset.json").read_bytes()
        for text in (b"", b"{", whole[: len(whole) // 2], b"[]", b"{}", whole.replace(b'"records"', b'"rekords"')):
            copy, _ = self.damaged(lambda data: data)
            (copy / "dataset.json").write_bytes(text)
            with self.subTest(text=text[:20]):
                self.assert_fails(run("presto-load", "--format", "null", copy), 3, "dataset.json")


TO = ["--to", "resized"]


class BadIndex(Case):
    """An index is a hint: whatever is wrong with it, the stream is the same, and one line tells."""
    photo_count = 12
    orders = [[*TO], [*TO, "--shuffle", "full"], [*TO, "--shuffle", "buffer:4"], [*TO, "--on-error", "skip"],
              [*TO, "--on-error", "skip", "--shuffle", "full"], [*TO, "--verify", "none"], [*TO, "-j", "0", "-e", "2"],
              ["--raw-records"]]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dataset = cls.write("-u", "resized", "-c", "zstd:1", "-s", "2")
        cls.index = sorted(cls.dataset.glob("*.index"))[1]
        cls.whole = cls.index.read_bytes()
        cls.streams = [run("presto-load", "-q", *order, cls.dataset).stdout for order in cls.orders]
        assert all(len(frames(stream)) in (12, 24) for stream in cls.streams)

    def tearDown(self):
        self.index.unlink(missing_ok=True)
        self.index.write_bytes(self.whole)

    def assert_same_stream(self, i, warns=True):
        done = run("presto-load", *self.orders[i], self.dataset)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, self.streams[i])
        self.assertEqual(done.stderr.count(f"{self.index.name}: bad index"), int(warns), done.stderr)
        self.assertNotRegex(done.stderr, r"[1-9] (sample )?skipped")

    def test_a_flipped_bit_anywhere_changes_nothing(self):
        for at in range(len(self.whole)):
            damaged = bytearray(self.whole)
            damaged[at] ^= 1 << (at * 5 % 8)
            self.index.write_bytes(damaged)
            with self.subTest(at=at):
                self.assert_same_stream(at % len(self.orders))

    def test_the_other_programs_see_it_too(self):
        damaged = bytearray(self.whole)
        damaged[80 + 8 * 3] ^= 8
        self.index.write_bytes(damaged)
        done = run("presto-inspect", "verify", self.dataset)
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stdout.decode(), r"data-00001-of-00002\.tfrecord: bad index: ")
        done = run("presto-inspect", "info", "--json", self.dataset)
        self.assertEqual(json.loads(done.stdout)["records"], 12)
        for program in (["recode", "-o", self.new(), "-c", "none", self.dataset], ["cat", "--json", self.dataset]):
            done = run("presto-inspect", *program)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr.count(f"{self.index.name}: bad index, not used"), 1, done.stderr)
        self.assertEqual(run("presto-inspect", "index", self.dataset).returncode, 0)
        self.assertEqual(self.index.read_bytes()[36:44], self.whole[36:44])
        self.assertEqual(self.index.read_bytes()[48:-4], self.whole[48:-4])
        self.assertEqual(run("presto-inspect", "verify", self.dataset).returncode, 0)

    def test_a_cut_or_unreadable_index_changes_nothing(self):
        for cut in (0, 20, 48, 60, 80, 92, len(self.whole) - 1):
            self.index.write_bytes(self.whole[:cut])
            self.assert_same_stream(0)
        self.index.unlink()
        os.mkfifo(self.index)
        self.assert_same_stream(0)
        self.index.unlink()
        self.assert_same_stream(0, warns=False)

    def test_an_index_with_another_count_than_the_description_changes_nothing(self):
        count = struct.unpack_from("<Q", self.whole, 16)[0]
        offsets = self.whole[80 : 80 + 8 * (count + 1)]
        header = self.whole[:16] + struct.pack("<Q", count - 1) + self.whole[24:44]
        header += struct.pack("<I", crc32c(header))
        body = offsets[:16] + offsets[24:]
        self.index.write_bytes(header + self.whole[48:80] + body + struct.pack("<I", crc32c(header + body)))
        for i in range(len(self.orders)):
            with self.subTest(order=self.orders[i]):
                self.assert_same_stream(i)


if __name__ == "__main__":
    main()
