#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shards that vanish, shrink, change or are replaced while they are read: the right words, or the old file's samples."""
import os
import re
import shutil
import struct

from chaos import ChaosCase, main, moments, run, seeded, shards, start

SHARDS = 4


class Damage(ChaosCase):
    """The consumer takes a little, the shards are tampered with, the consumer takes the rest."""
    photo_count = 60

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.random = seeded(cls.__name__)
        # 1,920 samples of 9 KB: far more than the pipe, the sink's batch and the read-ahead hold.
        cls.pristine = cls.new("pristine")
        cls.copies = 32
        run("presto-write", "-q", "-p", cls.pipeline, "-u", "resized", "-s", SHARDS, "-o", cls.pristine,
            *[cls.make_photos()] * cls.copies)
        cls.whole = run("presto-load", "-q", cls.pristine).stdout
        cls.samples = cls.photo_count * cls.copies

    def copy(self):
        folder = self.new("dataset")
        shutil.copytree(self.pristine, folder)  # with times, so that the indexes hold
        return folder

    def tampered(self, tamper, *options, folder=None, before=1000):
        """Start loading with little read-ahead, take `before` bytes, tamper, take the rest."""
        folder = folder or self.copy()
        process = start("presto-load", "-q", "--prefetch-bytes", "1MiB", *options, folder)
        head = os.read(process.stdout.fileno(), before)
        tamper(shards(folder))
        tail, err = self.finish(process)
        return process.returncode, head + tail, err

    def record_bytes(self):
        """Bytes of a frame; they differ by the length of keys at most."""
        content = shards(self.pristine)[0].read_bytes()
        return struct.unpack_from("<Q", content)[0] + 16

    def assert_told(self, result, shard, *parts, codes=(3,)):
        code, out, err = result
        self.assertIn(code, codes, err)
        self.assertRegex(err, r"^presto-load: [^\n]+\n$")
        for part in (shard.name if hasattr(shard, "name") else shard, *parts):
            self.assertRegex(err, str(part))
        self.assertTrue(self.whole.startswith(out), "what comes before the damage is delivered, and nothing else")

    def test_removed_and_replaced_files_that_are_open_are_read_to_their_end(self):
        """Every shard is opened here, by a first epoch, before anything happens to its name."""
        def unlink(paths):
            for path in paths:
                path.unlink()

        def replace(paths):
            for path in paths:
                other = path.with_suffix(".other")
                other.write_bytes(os.urandom(5000))
                other.rename(path)
        two = self.load("-q", "-e", "2", self.pristine)
        for tamper in (unlink, replace):
            for threads in (0, 1, 3):
                code, out, err = self.after_an_epoch(tamper, threads)
                self.assertEqual((code, err), (0, ""))
                self.assertTrue(out == two)

    def after_an_epoch(self, tamper, threads):
        folder = self.copy()
        process = start("presto-load", "-q", "--prefetch-bytes", "1MiB", "-e", "2", "-j", threads, folder)
        head = b""
        while len(head) <= len(self.whole):
            head += os.read(process.stdout.fileno(), 1 << 20)
        tamper(shards(folder))
        tail, err = self.finish(process)
        return process.returncode, head + tail, err

    def test_a_shard_that_vanishes_before_its_turn_is_named(self):
        for threads in (0, 1, 2, 4):
            result = self.tampered(lambda paths: paths[-1].unlink(), "-j", threads)
            self.assert_told(result, f"data-0000{SHARDS - 1}", "No such file", codes=(1,))

    def test_a_shard_that_is_replaced_before_its_turn_is_named(self):
        def replace(paths):
            other = paths[-1].with_suffix(".other")
            other.write_bytes(paths[-1].read_bytes()[: -self.record_bytes()])
            other.rename(paths[-1])
        for threads in (0, 2):
            self.assert_told(self.tampered(replace, "-j", threads), f"data-0000{SHARDS - 1}")

    def test_a_shard_that_is_cut_is_named_with_record_and_byte(self):
        for _ in range(moments(12)):
            threads = self.random.randrange(5)
            which = self.random.randrange(SHARDS)
            size = shards(self.pristine)[which].stat().st_size
            cut = self.random.randrange(size * 3 // 4, size)
            result = self.tampered(lambda paths: os.truncate(paths[which], cut), "-j", threads)
            with self.subTest(threads=threads, which=which, cut=cut, err=result[2]):
                if result[0] == 0:  # all of it had been read before
                    self.assertTrue(result[1] == self.whole)
                else:
                    self.assert_told(result, f"data-0000{which}")

    def flip(self, path, at, bit):
        with open(path, "r+b") as file:
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 1 << bit]))

    def test_flipped_bits_are_found_with_file_record_and_byte(self):
        for _ in range(moments(16)):
            threads, which = self.random.randrange(5), self.random.randrange(SHARDS)
            at = self.random.randrange(shards(self.pristine)[which].stat().st_size)
            bit = self.random.randrange(8)
            result = self.tampered(lambda paths: self.flip(paths[which], at, bit), "-j", threads)
            with self.subTest(threads=threads, which=which, at=at, bit=bit, err=result[2]):
                if result[0] == 0:
                    self.assertTrue(result[1] == self.whole)
                else:
                    self.assert_told(result, f"data-0000{which}", r"record \d+", r"byte \d+")

    def test_skipping_goes_on_after_damage_and_counts(self):
        for threads in (0, 1, 3):
            folder, stats = self.copy(), self.new("stats")
            spots = [(0, 5), (1, 7), (1, 8), (3, 100)]  # shard, record
            for which, record in spots:
                self.flip(shards(folder)[which], self.offsets(which)[record] + 40, 3)
            process = start("presto-load", "-j", threads, "--on-error", "skip", "--stats", stats, folder)
            out, err = self.finish(process)
            self.assertEqual(process.returncode, 0, err)
            self.assertTrue(out == self.without(spots))
            self.assertRegex(stats.read_text(), rf'"skipped": {len(spots)}\b')
            self.assertEqual(len([line for line in err.splitlines() if "record" in line and "data-" in line]), len(spots), err)

    def test_skipping_goes_on_after_a_shard_has_shrunk_or_vanished(self):
        """Ends, says what it left out, and delivers the samples of the other shards."""
        def cut(paths):
            os.truncate(paths[2], self.offsets(2)[100] + 7)

        def unlink(paths):
            paths[2].unlink()
        for tamper in (cut, unlink):
            for threads in (0, 2):
                stats = self.new("stats")
                code, out, err = self.tampered(tamper, "-j", threads, "--on-error", "skip", "--stats", stats)
                self.assertIn(code, (0, 1), err[-2000:])
                if code == 0:
                    lost = int(re.search(r'"skipped": (\d+)', stats.read_text())[1])
                    self.assertLessEqual(lost, self.samples // SHARDS)
                    told = re.findall(r"skipped samples? (\d+)(?: to (\d+), alike)?: ", err)
                    count = sum(int(last or first) - int(first) + 1 for first, last in told)
                    if "more are skipped" in err:
                        self.assertEqual(len(told), 20, err[-2000:])
                        self.assertLess(count, lost)
                    else:
                        self.assertEqual(count, lost, err[-2000:])
                else:
                    self.assertRegex(err, "data-00002")

    def offsets(self, which):
        content, at, found = shards(self.pristine)[which].read_bytes(), 0, []
        while at < len(content):
            found.append(at)
            at += struct.unpack_from("<Q", content, at)[0] + 16
        return found

    def without(self, spots):
        """The stream as it is without those records."""
        firsts = [self.samples * i // SHARDS for i in range(SHARDS)]
        gone = {firsts[which] + record for which, record in spots}
        at, number, kept = 0, 0, []
        while at < len(self.whole):
            end = at + struct.unpack_from("<Q", self.whole, at)[0] + 16
            if number not in gone:
                kept.append(self.whole[at:end])
            at, number = end, number + 1
        return b"".join(kept)


if __name__ == "__main__":
    main()
