#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto-load --index: indexes that are kept beside TFRecords of other programs, or in a folder of the user's own. Whatever stands there, the
records are those of the data."""
import json
import os
import shutil
import struct
import sys

from cli import ROOT, Case, crc32c, frames, main, run
sys.path.insert(0, str(ROOT / "tests" / "corpora"))
from records import framed, serialized  # noqa: E402

HEADER_BYTES = 48


class Index(Case):
    def setUp(self):
        self.data = self.new("data")
        self.data.mkdir()
        self.file = self.data / "a.tfrecord"
        self.records = [serialized({"n": i, "text": b"x" * (i % 50)}) for i in range(300)]
        self.file.write_bytes(b"".join(map(framed, self.records)))
        self.index = self.data / "a.tfrecord.index"
        self.home = self.new("home")
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(self.home)}
        self.kept = self.home / "presto" / "index"

    def run_load(self, *arguments):
        done = run("presto-load", *arguments, "--verify", "full", self.file, env=self.environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def assert_whole(self, how="keep", warning=""):
        """All records, in order and shuffled; the first run may warn."""
        done = self.run_load("-q", "--index", how)
        self.assertEqual(frames(done.stdout), self.records)
        done = self.run_load("--index", how)
        self.assertEqual(frames(done.stdout), self.records)
        done = self.run_load("--index", how, "--shuffle", "full")
        self.assertEqual(sorted(frames(done.stdout)), sorted(self.records))

    def is_counted_at_once(self, how="keep"):
        """Is the number of records known before they have been read?"""
        state = self.new("state")
        self.run_load("-q", "-j", "0", "-b", "1", "--limit", "1", "--index", how, "--state", state)
        return json.loads(state.read_text())["samples"] == 300

    def test_it_stands_beside_the_file_after_one_pass(self):
        self.assertFalse(self.is_counted_at_once())
        self.assertFalse(self.index.exists(), "the file was not read to its end")
        for order in ([], ["--shuffle", "full"], ["--rank", "0", "--world", "2"]):
            self.run_load("-q", "--index", "none", *order)
            self.assertFalse(self.index.exists())
            self.run_load("-q", "--index", "keep", *order)
            self.assertTrue(self.is_counted_at_once())
            found = self.index.read_bytes()
            self.index.unlink()
            self.assertEqual(run("presto-inspect", "index", self.file).returncode, 0)
            self.assertEqual(found, self.index.read_bytes())
            self.index.unlink()
        self.assertFalse(self.home.exists())

    def test_it_stands_in_a_private_folder(self):
        folder = self.new("kept")
        for how, where in ((f"keep:{folder}", folder), ("keep", self.kept)):
            self.index.mkdir(exist_ok=True)  # its name is taken
            self.assertFalse(self.is_counted_at_once(how))
            self.run_load("-q", "--index", how)
            self.assertEqual([p.stat().st_mode & 0o777 for p in (where,)], [0o700])
            self.assertEqual(len(list(where.iterdir())), 1)
            self.assertTrue(self.is_counted_at_once(how))
            self.assert_whole(how)
            self.assertTrue(self.index.is_dir())
        # The same file by another name has the same index; a copy has none.
        link = self.data / "link.tfrecord"
        link.symlink_to(self.file)
        self.run_load("-q", "--index", f"keep:{folder}", link)
        self.assertEqual(len(list(folder.iterdir())), 1)

    def test_another_programs_file_is_left_alone(self):
        self.index.write_text("0 128\n")
        self.assert_whole()
        self.assertEqual(self.index.read_text(), "0 128\n")
        self.assertEqual(len(list(self.kept.iterdir())), 1)

    def test_a_file_that_has_changed_is_indexed_anew(self):
        for how, where in (("keep", self.data), (f"keep:{self.new('kept')}", None)):
            self.run_load("-q", "--index", how)
            self.records = self.records[1:] + [serialized({"n": 1, "text": b"y" * len(self.records)})]
            self.file.write_bytes(b"".join(map(framed, self.records)))
            self.assertFalse(self.is_counted_at_once(how))
            self.assert_whole(how)
            self.assertTrue(self.is_counted_at_once(how), where)
            self.index.unlink(missing_ok=True)

    def forge(self, path, offsets):
        """An index with right checksums and wrong content."""
        info = self.file.stat()
        header = b"PRESTOIX" + struct.pack("<IIQQqI", 2, 0, len(offsets) - 1, info.st_size, info.st_mtime_ns, 0)
        header += struct.pack("<I", crc32c(header))
        body = struct.pack(f"<{len(offsets)}Q", *offsets)
        path.write_bytes(header + body + struct.pack("<I", crc32c(body, crc32c(header))))

    def test_damaged_and_forged_ones_change_nothing(self):
        folder = self.new("kept")
        how = f"keep:{folder}"
        self.run_load("-q", "--index", how)
        (path,) = folder.iterdir()
        whole = path.read_bytes()
        at, offsets = 0, [0]
        for record in self.records:
            at += len(framed(record))
            offsets.append(at)
        self.forge(path, offsets)
        self.assertEqual(path.read_bytes(), whole, "it is forged as it is written")
        size = offsets[-1]
        forged = {
            "merged": [0, *offsets[2:]],
            "shifted": [0, *(o + 1 for o in offsets[1:-1]), size],
            "outside": [*offsets[:10], *(2**62 + 16 * i for i in range(290)), size],
            "one": [0, size],
            "falling": [0, *offsets[-2:0:-1], size],
        }
        for name, wrong in forged.items():
            self.forge(path, wrong)
            done = run("presto-load", "--index", how, self.file)
            if len(wrong) == len(offsets):
                self.assertEqual((done.returncode, frames(done.stdout)), (0, self.records), (name, done.stderr))
                self.assertIn("not used", done.stderr, name)
            else:  # it counts other records: refused, or found out at once
                self.assertIn(done.returncode, (0, 3), name)
                self.assertTrue(done.returncode == 3 or frames(done.stdout) == self.records, name)
                self.assertIn(str(path), done.stderr) if done.returncode == 0 else self.assertIn("index", done.stderr)
            path.unlink(missing_ok=True)
            self.assert_whole(how)
            path.write_bytes(whole)
        for bit in range(0, len(whole) * 8, 1999):
            damaged = bytearray(whole)
            damaged[bit // 8] ^= 1 << bit % 8
            path.write_bytes(damaged)
            self.assertEqual(frames(self.run_load("-q", "--index", how).stdout), self.records, bit)
            self.assertEqual(path.read_bytes(), whole, "a damaged one is replaced")
        for cut in (0, 7, HEADER_BYTES, len(whole) - 1):
            path.write_bytes(whole[:cut])
            self.assertEqual(frames(self.run_load("-q", "--index", how).stdout), self.records, cut)

    def test_what_others_may_have_written_is_not_read(self):
        folder = self.new("kept")
        how = f"keep:{folder}"
        self.run_load("-q", "--index", how)
        folder.chmod(0o770)
        done = self.run_load("--index", how)
        self.assertIn("others may write", done.stderr)
        self.assertEqual(frames(done.stdout), self.records)
        self.assertFalse(self.is_counted_at_once(how))
        folder.chmod(0o700)
        self.assertTrue(self.is_counted_at_once(how))
        (path,) = folder.iterdir()
        if os.geteuid() == 0:
            os.chown(path, 65534, 65534)
            self.assertIn("somebody else", self.run_load("--index", how).stderr)
            self.assertTrue(self.is_counted_at_once(how), "it was replaced by our own")
        moved = self.new("moved")
        path.rename(moved)
        path.symlink_to(moved)
        self.assertIn("somebody else", self.run_load("--index", how).stderr)

    def test_damaged_data_gets_no_index(self):
        content = bytearray(self.file.read_bytes())
        content[9] ^= 1  # the CRC of the first length
        self.file.write_bytes(content)
        for order in ([], ["--shuffle", "full"]):
            done = run("presto-load", "-q", "--index", "keep", "--on-error", "skip", *order, self.file)
            self.assertEqual((done.returncode, len(frames(done.stdout))), (0, 299))
            self.assertFalse(self.index.exists())

    def test_it_goes_with_compressed_files_folders_and_presto_write(self):
        import gzip
        (self.data / "b.tfrecord.gz").write_bytes(gzip.compress(self.file.read_bytes()))
        done = run("presto-load", "-q", "--index", "keep", self.data)
        self.assertEqual(frames(done.stdout), self.records * 2)
        self.assertEqual(len(list(self.data.glob("*.index"))), 2)
        self.assertEqual(frames(run("presto-load", "-q", "--index", "keep", "-e", "2", self.data).stdout), self.records * 4)
        for path in self.data.glob("*.index"):
            path.unlink()
        photos = self.make_photos()
        (self.data / "b.tfrecord.gz").unlink()
        self.file.write_bytes(b"".join(framed(serialized({"image/encoded": path.read_bytes()}))
                                       for path in sorted(photos.rglob("*.jpg"))))
        done = run("presto-write", "-q", "-p", self.pipeline, "--from", "concatenated", "-u", "resized", "--index", "keep", "-o",
                   self.new(), self.data)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.index.exists())

    def test_a_wrong_argument_is_a_usage_error(self):
        for how in ("yes", "keep:", "beside"):
            self.assertEqual(run("presto-load", "--index", how, self.file).returncode, 2)

    def tearDown(self):
        shutil.rmtree(self.home, ignore_errors=True)


if __name__ == "__main__":
    main()
