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

PREFIX_BYTES = 80


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
            made = self.index.read_bytes()  # the same places; and, as all of the file was read for it, its CRC
            end = PREFIX_BYTES + 8 * (len(self.records) + 1)
            self.assertEqual(found[PREFIX_BYTES:end], made[PREFIX_BYTES:end])
            self.assertEqual((found[16:32], found[36:40], found[48:80]), (made[16:32], made[36:40], made[48:80]))
            self.assertEqual((found[12], found[32:36], made[12]), (0, bytes(4), 1))
            self.assertEqual(struct.unpack("<I", made[32:36])[0], crc32c(self.file.read_bytes()))
            self.index.unlink()
        self.assertFalse(self.home.exists())

    def test_presto_inspect_makes_the_indexes_that_presto_write_makes(self):
        dataset = self.written()
        written = {path: path.read_bytes() for path in dataset.glob("*.index")}
        self.assertEqual(len(written), 3)
        for path in written:
            path.unlink()
        self.assertEqual(run("presto-inspect", "index", dataset).returncode, 0)
        self.assertEqual({path: path.read_bytes() for path in dataset.glob("*.index")}, written)

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
        # A copy anywhere has the same index.
        copy = self.new("elsewhere") / "copy.tfrecord"
        copy.parent.mkdir()
        copy.write_bytes(self.file.read_bytes())
        self.file = copy
        self.assertTrue(self.is_counted_at_once(f"keep:{folder}"))
        self.assert_whole(f"keep:{folder}")
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
        data, n = self.file.read_bytes(), len(offsets) - 1
        places = [max(offsets[i] - 4, 0) for i in (0, n // 3, n // 3 * 2, n)]
        content = b"".join(data[at:at + 16] for at in places)
        packed = struct.pack("<4Q", *places)
        header = b"PRESTOIX" + struct.pack("<IIQQIII", 3, 0, n, len(data), 0, crc32c(content), crc32c(packed))
        header += struct.pack("<I", crc32c(header))
        body = struct.pack(f"<{len(offsets)}Q", *offsets)
        path.write_bytes(header + packed + body + struct.pack("<I", crc32c(body, crc32c(header))))

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
        for cut in (0, 7, 48, PREFIX_BYTES, len(whole) - 1):
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

    def written(self):
        """A dataset of the records, with indexes."""
        dataset = self.new("dataset")
        self.assertEqual(run("presto-inspect", "recode", "-q", "-s", "3", "-o", dataset, self.file).returncode, 0)
        return dataset

    def is_used(self, folder):
        files = json.loads(run("presto-inspect", "info", "--json", folder).stdout)["file_list"]
        return [file["indexed"] for file in files]

    def test_the_indexes_of_a_copy_hold(self):
        dataset = self.written()
        shutil.copytree(self.data, foreign := self.new("foreign"))
        self.assertEqual(run("presto-inspect", "index", foreign).returncode, 0)
        for folder, files in ((dataset, 3), (foreign, 1)):
            copy = self.new("copy")
            for path in sorted(folder.iterdir(), reverse=True):  # the index before its shard, and other times
                copy.mkdir(exist_ok=True)
                (copy / path.name).write_bytes(path.read_bytes())
            for times in (None, (1, 1), (2e9, 2e9)):
                for path in copy.iterdir():
                    os.utime(path, times)
                self.assertEqual(self.is_used(copy), [True] * files)
                done = run("presto-inspect", "verify", copy)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn("no faults", done.stdout.decode())
                done = run("presto-load", copy)
                self.assertEqual(frames(done.stdout), self.records)
                self.assertNotIn("index", done.stderr)

    def test_an_index_of_another_shard_is_found_out(self):
        """A shard in the place of another one of the same size, the same records in another order, a cut one, an index of another."""
        whole = self.written()
        names = sorted(p.name for p in whole.glob("*.tfrecord"))
        data = (whole / names[0]).read_bytes()
        records = frames(data)
        others = {
            "reversed": b"".join(map(framed, records[::-1])),
            "rotated": b"".join(map(framed, records[1:] + records[:1])),
            "last two": b"".join(map(framed, [*records[:-2], records[-1], records[-2]])),
            "first two": b"".join(map(framed, [records[1], records[0], *records[2:]])),
            "one record": framed(b"z" * (len(data) - 16)),
            "the same sizes": b"".join(framed(bytes(len(r))) for r in records),
            "cut": data[:-1],
            "cut between records": data[:-len(framed(records[-1]))],
            "longer": data + framed(b""),
        }
        for name, content in others.items():
            shutil.copytree(whole, copy := self.new("other"))
            (copy / names[0]).write_bytes(content)
            times = (whole / names[0]).stat()
            os.utime(copy / names[0], ns=(times.st_atime_ns, times.st_mtime_ns))
            self.assertEqual(self.is_used(copy)[1:], [True, True], name)
            done = run("presto-inspect", "verify", copy)
            self.assertEqual(done.returncode, 3, name)
            self.assertIn(f"{names[0]}: bad index: it is of another file", done.stdout.decode(), name)
            done = run("presto-load", copy)
            if len(content) == len(data) and len(frames(content)) == len(records):
                self.assertEqual((done.returncode, frames(done.stdout)), (0, frames(content) + self.records[100:]), (name, done.stderr))
            else:
                self.assertEqual(done.returncode, 3, name)
            (copy / "dataset.json").unlink()
            self.assertFalse(self.is_used(copy)[0], name)
            if not name.startswith("cut"):
                self.assertEqual(frames(run("presto-load", "-q", copy / names[0]).stdout), frames(content), name)
        shutil.copytree(whole, copy := self.new("swapped"))
        shutil.copy(whole / (names[0] + ".index"), copy / (names[1] + ".index"))  # another size, or another CRC
        self.assertEqual(self.is_used(copy), [True, False, True])
        self.assertEqual(frames(run("presto-load", "-q", copy).stdout), self.records)

    def test_an_index_of_another_file_than_the_description_says_is_not_used(self):
        dataset = self.written()
        description = json.loads((dataset / "dataset.json").read_text())
        description["shards"][1]["crc32c"] = "00000001"
        (dataset / "dataset.json").write_text(json.dumps(description))
        done = run("presto-load", dataset)
        self.assertEqual(frames(done.stdout), self.records)
        self.assertIn("another file than the one that dataset.json describes", done.stderr)

    def test_indexes_of_earlier_versions_are_read(self):
        """By the time of the shard; of a copy, if frames of a plain file stand where it says."""
        at, offsets = 0, [0]
        for record in self.records:
            at += len(framed(record))
            offsets.append(at)
        for version in (1, 2):
            info = self.file.stat()
            header = b"PRESTOIX" + struct.pack("<IIQQqI", version, 0, 300, info.st_size, info.st_mtime_ns, 0)
            header += struct.pack("<I", crc32c(header))
            body = struct.pack("<301Q", *offsets)
            self.index.write_bytes(header + body + struct.pack("<I", crc32c(body, crc32c(header))))
            for times in (info.st_mtime_ns, 10**18, 2 * 10**18):
                os.utime(self.file, ns=(times, times))
                self.assertEqual(self.is_used(self.data), [True])
                self.assertEqual(run("presto-inspect", "verify", self.data).returncode, 0)
                self.assertEqual(frames(self.run_load("-q").stdout), self.records)
            os.utime(self.file, (3, version))
            wrong = [o + 1 if 0 < i < 300 else o for i, o in enumerate(offsets)]
            body = struct.pack("<301Q", *wrong)
            self.index.write_bytes(header + body + struct.pack("<I", crc32c(body, crc32c(header))))
            self.assertEqual(self.is_used(self.data), [False])
            self.assertEqual(run("presto-inspect", "verify", self.data).returncode, 3)
        self.index.unlink()

    def test_a_wrong_argument_is_a_usage_error(self):
        for how in ("yes", "keep:", "beside"):
            self.assertEqual(run("presto-load", "--index", how, self.file).returncode, 2)

    def tearDown(self):
        shutil.rmtree(self.home, ignore_errors=True)


if __name__ == "__main__":
    main()
