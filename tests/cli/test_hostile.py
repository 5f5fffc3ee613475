#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Datasets and names made by an enemy: nothing of them steers a terminal, is lost in JSON, or claims what
cannot be."""
import functools
import gzip
import json
import os
import pathlib
import resource
import struct
import subprocess
import tarfile

import cli
from cli import SANITIZED, TOOLS, Case, main, run

crc32c = functools.lru_cache(maxsize=16)(cli.crc32c)  # it is slow, and the same payloads come often
BAD = ["\x1b", "\x07", "\x7f", "\r", "\u009b", "\u0085", "\u202e", "\u2066"]


def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def frame(payload, length=None):
    head = struct.pack("<Q", len(payload) if length is None else length)
    return head + masked(head) + payload + masked(payload)


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def ints(*values):
    return field(3, field(1, b"".join(map(varint, values))))


def texts(*values):
    return field(1, b"".join(field(1, v) for v in values))


def make_example(features):
    return field(1, b"".join(field(1, field(1, name) + field(2, value)) for name, value in features))


# Root may read everything: then somebody else looks.
NOBODY = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}


class Hostile(Case):
    def dataset(self, payload, features, records=1, shards=None, **changes):
        """A folder with one shard of `records` equal records, and what its dataset.json says."""
        folder = self.new("hostile")
        folder.mkdir()
        shard = frame(payload) * records
        (folder / "data-00000-of-00001.tfrecord").write_bytes(shard)
        entry = {"file": "data-00000-of-00001.tfrecord", "records": records, "stored_bytes": len(shard),
                 "raw_bytes": records * len(payload), "crc32c": f"{crc32c(shard):08x}"}
        entry.update(shards or {})
        says = {"format": "presto-dataset", "version": 1, "id": "0" * 16, "codec": "none", "seed": 0,
                "file_compression": "none", "features": features, "shards": [entry],
                "totals": {key: entry[key] for key in ("records", "stored_bytes", "raw_bytes")}}
        says.update(changes)
        (folder / "dataset.json").write_text(json.dumps(says))
        return folder

    @staticmethod
    def feature(name, dtype="int64", encoding="int64"):
        return {"name": name, "dtype": dtype, "encoding": encoding, "shape": []}

    def assert_shown_safely(self, done):
        """Nothing but printable text, a line's end and what UTF-8 can hold."""
        for text in (done.stdout.decode(), done.stderr):
            for bad in BAD:
                self.assertNotIn(bad, text)
        self.assertNotIn("\nverify: all OK", done.stdout.decode() + done.stderr)


class Terminal(Hostile):
    EVIL = "a\x1b]0;title\x07\u009b31m\u202e\x7f\nverify: all OK"

    def evil(self):
        payload = make_example([(self.EVIL.encode(), texts(self.EVIL.encode() + b"\x9b"))])
        return self.dataset(payload, [self.feature(self.EVIL, "string", "bytes")], labels=["fine", self.EVIL],
                            split=self.EVIL)

    def test_names_of_a_dataset_do_not_reach_the_terminal(self):
        folder = self.evil()
        for command in (["presto-inspect", "info", folder], ["presto-inspect", "verify", folder],
                        ["presto-load", "--explain", folder]):
            done = run(*command)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assert_shown_safely(done)
        pipeline = self.new("names.yaml")
        pipeline.write_text('name: t\nsource: {type: files}\nsteps: [{step: decode-image, reads: "a\\u202eb"}]\n')
        done = run("presto-load", "--explain", "-p", pipeline, pipeline)
        self.assertIn("reads a\\u202eb", done.stdout.decode())
        self.assert_shown_safely(done)
        shown = run("presto-inspect", "info", folder).stdout.decode()
        self.assertIn(r"a\x1b]0;title\x07\u009b31m\u202e\x7f\nverify: all OK", shown)

    def test_nor_do_they_in_json_which_keeps_them(self):
        folder = self.evil()
        for command in (["info"], ["cat"], ["verify"]):
            done = run("presto-inspect", *command, "--json", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assert_shown_safely(done)
            said = json.loads(done.stdout)
            if command != ["verify"]:
                self.assertEqual(list(said["features"]), [self.EVIL])
        said = json.loads(run("presto-inspect", "info", "--json", folder).stdout)
        self.assertEqual((said["labels"][1], said["stored"]), (self.EVIL, self.EVIL))

    def test_messages_about_what_is_wrong_are_one_line(self):
        payload = make_example([(b"x", ints(1))])
        wrong = [dict(codec=self.EVIL), dict(features=[self.feature(self.EVIL)] * 2),
                 dict(shards={"file": "../" + self.EVIL}), dict(main_feature=self.EVIL, split=self.EVIL,
                                                                 pipeline={"name": self.EVIL})]
        for changes in wrong:
            folder = self.dataset(payload, **{"features": [self.feature("x")], **changes})
            for command in (["presto-load", "--format", "null"], ["presto-inspect", "info"],
                            ["presto-inspect", "verify"]):
                done = run(*command, folder)
                self.assert_shown_safely(done)
                self.assertLessEqual(len(done.stderr.splitlines()), 2, done.stderr)

    def test_names_of_files_do_not_either(self):
        source = self.new("evil")
        folder = os.fsencode(source) + b"/" + self.EVIL.replace("/", "").encode() + b"\x9b"
        os.makedirs(folder)
        pathlib.Path(os.fsdecode(folder), "broken.jpg").write_bytes(b"no picture")
        pathlib.Path(os.fsdecode(folder), "cut.tfrecord").write_bytes(frame(b"x" * 40)[:-7])
        for command in (["presto-write", "-p", "cv", "-o", self.new(), source],
                        ["presto-load", "-p", "cv", "--format", "null", "--on-error", "skip", source],
                        ["presto-inspect", "info", folder + b"/cut.tfrecord"],
                        ["presto-inspect", "verify", folder + b"/cut.tfrecord"],
                        ["presto-inspect", "verify", "--json", folder + b"/cut.tfrecord"]):
            done = subprocess.run([TOOLS / command[0], *command[1:]], capture_output=True, timeout=120)
            for said in (done.stdout, done.stderr):
                text = said.decode()  # UTF-8, whatever the name is
                for bad in BAD:
                    self.assertNotIn(bad, text)
                self.assertNotIn("\nverify: all OK", text)


class OddNames(Hostile):
    def test_json_keeps_names_that_are_not_utf8(self):
        names = [b"a", b"a\0b", b"\\xff", b"\xff", "\u00e9".encode()]
        file = self.new("odd.tfrecord")
        file = file.with_name(file.name + ".tfrecord")
        file.write_bytes(frame(make_example([(name, ints(i)) for i, name in enumerate(names)])))
        keys = ["a", "a\\x00b", "\\x5cxff", "\\xff", "\u00e9"]
        done = run("presto-inspect", "info", "--json", file)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(json.loads(done.stdout)["features"]), sorted(keys))
        done = run("presto-inspect", "cat", "--json", file)
        self.assertEqual(json.loads(done.stdout)["features"], {key: i for i, key in enumerate(keys)})

    def test_folders_that_are_not_utf8_are_labels_and_keys(self):
        photos = self.new("photos")
        classes = [b"caf\xe9", b"\\xe9", "K\u00e4tzchen".encode()]
        made = sorted(self.make_photos().rglob("*.jpg"))[:3]
        for name, photo in zip(classes, made):
            os.makedirs(os.fsencode(photos) + b"/" + name)
            os.link(photo, os.fsencode(photos) + b"/" + name + b"/1\xff.jpg")
        out = self.write("-u", "concatenated", source=photos)
        says = json.loads((out / "dataset.json").read_text())
        self.assertEqual(says["labels"], ["K\u00e4tzchen", "\\x5cxe9", "caf\\xe9"])
        said = json.loads(run("presto-inspect", "info", "--json", out).stdout)
        self.assertEqual(said["labels"], says["labels"])
        again = self.new()
        done = run("presto-inspect", "recode", "-q", "-c", "zlib", "-o", again, out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads((again / "dataset.json").read_text())["labels"], says["labels"])


class ManyFeatures(Hostile):
    """Sixteen times the features may take little more than sixteen times as long, and not 256 times. This is processor
    time, and compared with a run of the same program: it holds with sanitizers and on a busy machine."""
    MOST = 65_536  # that a dataset may have
    MANY = 16_384 if SANITIZED else MOST  # that time grows with them is no matter of sanitizers
    FEW = MANY // 16
    MOST_TIMES = 32
    SPARE_S = 0.2

    @staticmethod
    def spent():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    def measure(self, make, count, code, limit_s=None):
        command = make(count)
        set_limit = None
        if limit_s is not None:
            seconds = int(limit_s) + 1
            set_limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        before = self.spent()
        done = run(*command, stdout=subprocess.DEVNULL, preexec_fn=set_limit)
        self.assertEqual(done.returncode, code, f"{command} of {count} features, at most {limit_s} s: {done.stderr}")
        return self.spent() - before

    def assert_linear(self, make, code=0):
        """`make(count)` makes an input of so many features, and returns a command that reads it."""
        limit_s = self.MOST_TIMES * self.measure(make, self.FEW, code) + self.SPARE_S
        self.assertLess(self.measure(make, self.MANY, code, limit_s), limit_s)

    @staticmethod
    def called(count, before=b""):
        return [before + b"%06d" % i for i in range(count)]

    def records(self, *of_names):
        """A file of records that have these features, and no dataset.json."""
        file = self.new("many").with_suffix(".tfrecord")
        file.write_bytes(b"".join(frame(make_example([(name, ints(1)) for name in names])) for names in of_names))
        return file

    def lists(self, count, falling=False):
        """A dataset of two records with so many lists, which are declared as such."""
        names = self.called(count)
        payload = make_example([(name, ints(1, 2)) for name in names])
        features = [dict(self.feature(name.decode()), shape=[-1]) for name in (reversed(names) if falling else names)]
        return self.dataset(payload, features, records=2)

    @staticmethod
    def load(*arguments):
        return ["presto-load", "-q", "-j", "1", "--format", *arguments]

    def test_of_a_record(self):
        self.assert_linear(lambda count: self.load("null", self.records(reversed(self.called(count)))))
        self.assert_linear(lambda count: ["presto-inspect", "info", self.records(reversed(self.called(count)))])

    def test_of_batches(self):
        self.assert_linear(lambda count: self.load("npy", "-b", "1", self.records(*[self.called(count)] * 2)))
        self.assert_linear(lambda count: self.load("arrow", "-b", "2", self.records(*[self.called(count)] * 2)))

    def test_that_are_declared_as_lists(self):
        self.assert_linear(lambda count: self.load("npy", "-b", "2", self.lists(count, falling=True)))

    def test_of_rows_that_have_none_in_common(self):
        self.assert_linear(lambda count: self.load("npy", "-b", "2", self.records(  # several workers share a batch
            self.called(count, b"b"), reversed(self.called(count, b"a")))))
        for batch in ("1", "4"):
            self.assert_linear(lambda count, batch=batch: self.load("npy", "-b", batch, self.small_records(count // 4)))

    def small_records(self, count):
        """A worker takes several of them at once. Nothing is declared, but the count is known."""
        folder = self.dataset(b"", [])
        payloads = [make_example([(name, ints(1)) for name in reversed(self.called(count, before))])
                    for before in (b"d", b"c", b"b", b"a")]
        shard = folder / "data-00000-of-00001.tfrecord"
        shard.write_bytes(b"".join(map(frame, payloads)))
        says = json.loads((folder / "dataset.json").read_text())
        sums = {"records": 4, "stored_bytes": shard.stat().st_size, "raw_bytes": sum(map(len, payloads))}
        says["shards"][0].update(sums, crc32c=f"{crc32c(shard.read_bytes()):08x}")
        (folder / "dataset.json").write_text(json.dumps(dict(says, totals=sums)))
        return folder

    def test_of_a_mix(self):
        def mix(count):
            rising, falling = self.lists(count), self.lists(count, falling=True)
            return self.load("null", "--mix", f"{rising}=1", "--mix", f"{falling}=1")

        self.assert_linear(mix)

    def test_through_a_pipeline(self):
        pipeline = self.new("lists.yaml")
        pipeline.write_text("name: t\nsource: {type: tfrecord, feature: '000000'}\nsteps: []\n")
        self.assert_linear(lambda count: self.load("null", "-p", pipeline, self.lists(count)))
        self.assert_linear(lambda count: ["presto-write", "-q", "-p", pipeline, "-o", self.new(),
                                          self.records([b"000000", *reversed(self.called(count))][:-1])])

    def test_a_dataset_has_no_more_than_can_be_read(self):
        pipeline = self.new("any.yaml")
        pipeline.write_text("name: t\nsource: {type: tfrecord, feature: '000000'}\nsteps: []\n")
        for count, code in ((self.MOST, 0), (self.MOST + 1, 1)):
            out = self.new()
            done = run("presto-write", "-q", "-p", pipeline, "-o", out, self.records(self.called(count)))
            self.assertEqual((done.returncode, (out / "dataset.json").exists()), (code, code == 0), done.stderr)
        self.assertIn("more than 65536 different features", done.stderr)
        self.assertEqual(run("presto-load", "-q", "--format", "null", "--limit", "1", self.lists(self.MOST)).returncode, 0)

    def test_of_a_progress_file(self):
        def resume(count):
            folder = self.new("progress")
            folder.mkdir()
            features = [{"name": name.decode(), "encoding": 1, "dtype": 9, "rank": 1, "dims": [i % 7]}
                        for i, name in enumerate(reversed(self.called(count)))]
            (folder / ".progress.json").write_text(json.dumps(
                {"format": 4, "job": {}, "shards": [], "features": features}))
            return ["presto-write", "-q", "--resume", "-p", self.pipeline, "-u", "resized", "-o", folder, self.make_photos()]

        self.assert_linear(resume, 2)

    def test_none_is_lost(self):
        """A batch that has as many features as those before it, but other ones."""
        stream = run(*self.load("npy", "-b", "1", self.records([b"a", b"b"], [b"a", b"c"]))).stdout
        for name in (b'"b"', b'"c"'):
            self.assertIn(name, stream)


class Claims(Hostile):
    X = [(b"x", ints(5))]

    def claim(self, **changes):
        return self.dataset(make_example(self.X), [self.feature("x")], records=20, **changes)

    def test_counts_that_the_bytes_cannot_hold(self):
        for records in ("18446744073709551615", "9223372036854775808", 10 ** 15, 100):
            folder = self.claim(shards={"records": records})
            for cache in ([], ["--cache", f"disk:{self.new('cache')}:1MiB"], ["--cache", "memory:1MiB"]):
                for more in (["-j", "0"], ["--shuffle", "full"], ["--on-error", "skip"]):
                    done = run("presto-load", "-q", "--format", "null", *cache, *more, folder)
                    self.assert_fails(done, 3, f"{folder}/dataset.json: ", f"'records' is {records}")
            self.assert_fails(run("presto-inspect", "verify", folder), 3, "'records'")

    def test_sizes_that_the_file_has_not(self):
        """A claim that is possible in itself is compared with the file before memory is taken for it."""
        folder = self.claim(shards={"records": 10 ** 13, "stored_bytes": 10 ** 15})
        done = run("presto-load", "-q", "--format", "null", "--cache", f"disk:{self.new('cache')}:1MiB", folder)
        self.assert_fails(done, 3, "data-00000-of-00001.tfrecord: ", "10000000000000 records in 1000000000000000")
        self.assertEqual(run("presto-inspect", "verify", folder).returncode, 3)

    def test_lists(self):
        x = self.feature("x")
        for changes, *said in [(dict(features=[x] * 2), "'features' lists 'x' twice"),
                               (dict(features=[self.feature(str(i)) for i in range(70000)]), "more than 65536"),
                               (dict(shards={"file": "."}), "'.' is no file of the folder"),
                               (dict(shards={"file": "./data-00000-of-00001.tfrecord"}), "is no file of the folder")]:
            folder = self.dataset(make_example(self.X), **{"features": [x], **changes})
            self.assert_fails(run("presto-load", "-q", "--format", "null", folder), 3, "dataset.json: bad", *said)

    def test_a_codec_that_is_none(self):
        for codec in ("zstd:99", "nosuch", "zstd\nINJECTED", ""):
            done = run("presto-load", "-q", "--format", "null", self.claim(codec=codec))
            self.assert_fails(done, 3, "bad dataset.json: 'codec': ")
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_a_shard_given_twice(self):
        shard = self.claim() / "data-00000-of-00001.tfrecord"
        self.assertEqual(run("presto-load", "-q", "--format", "null", shard).returncode, 0)
        self.assert_fails(run("presto-load", "-q", "--format", "null", shard, shard), 2, shard, "given twice")

    def test_a_record_longer_than_any_file(self):
        for length in (2 ** 64 - 1, 2 ** 63, 2 ** 40):
            file = self.new("long").with_suffix(".tfrecord")
            file.write_bytes(frame(b"whole") + frame(b"abc", length))
            for command in (["presto-load", "--raw-records", "-q", "--format", "null"], ["presto-inspect", "verify"]):
                done = run(*command, file)
                self.assertEqual(done.returncode, 3, done.stderr)

    def test_what_may_not_be_read_is_not_corrupt(self):
        folder = self.claim()
        self.folder.chmod(0o755)
        shard = folder / "data-00000-of-00001.tfrecord"
        self.assertEqual(run("presto-inspect", "index", shard).returncode, 0)
        index = pathlib.Path(f"{shard}.index")
        for file, said in ((index, "its index cannot be opened"), (shard, "cannot open")):
            file.chmod(0)
            done = run("presto-inspect", "verify", folder, **NOBODY)
            file.chmod(0o644)
            self.assertEqual(done.returncode, 1, done)
            self.assertIn(said + ": Permission denied", done.stdout.decode())
            # Of an index: how many records are whole is known all the same.
            self.assertEqual("whole record" in done.stdout.decode(), file == index)
            self.assertEqual(": 1 fault" in done.stdout.decode(), file == index)
        self.assertEqual(run("presto-inspect", "verify", folder, **NOBODY).returncode, 0)


def tar_header(name, size, kind=b"0"):
    member = tarfile.TarInfo(name)
    member.size, member.type = size, kind
    return member.tobuf(tarfile.GNU_FORMAT)


class Archives(Hostile):
    """What costs a reader more than the archive is large."""

    def load(self, archive, label="cls"):
        pipeline = self.new("tar.yaml")
        pipeline.write_text(f"name: t\nsource: {{type: tar, match: ['*.bin'], label: {label}}}\n"
                            "steps: [{step: decode-image, yields: decoded}]\n")
        stats = self.new("stats.json")
        done = run("presto-load", "-p", pipeline, "-j", "1", "--on-error", "skip", "--stats", stats, "--format", "null", archive)
        return done, json.loads(stats.read_text()) if stats.exists() else None

    def test_an_end_is_looked_for_once(self):
        """Each member claims more than the stream holds; between them is more than a window of it keeps."""
        archive = self.new("deep.tar.gz")
        with gzip.open(archive, "wb", 1) as out:
            for i in range(60):
                out.write(tar_header(f"{i}.bin", 10 << 30) + b"x" * (1 << 20))
        done, stats = self.load(archive)
        self.assertEqual(stats["skipped"], 60, done.stderr)
        self.assertIn("the tar ends within the member '0.bin' of 10737418240 bytes (at byte 512)", done.stderr)
        self.assertLess(stats["read_bytes"], 4 * archive.stat().st_size)

    def test_broken_headers_are_not_read_a_thousand_times(self):
        """Each extended header holds all of those behind it."""
        archive = self.new("nested.tar")
        archive.write_bytes(tar_header("x", 1 << 20, b"x") * 1100 + bytes(2 << 20))
        done, stats = self.load(archive)
        self.assertRegex(done.stderr, r"nested\.tar\S*: too many broken headers, left out from byte 5\d{5} on")
        self.assertGreater(stats["skipped"], 1000)

    def test_names_of_folders_are_bounded(self):
        archive = self.new("folders.tar.gz")
        with gzip.open(archive, "wb", 1) as out:
            for i in range(70):
                record = b"path=" + b"f" * (1000 << 10) + b"%d/k.bin\n" % i
                record = b"%d " % (len(record) + 8) + record
                out.write(tar_header("x", len(record), b"x") + record + bytes(-len(record) % 512) + tar_header("k.bin", 0))
        done, _ = self.load(archive, "parent-folder")
        self.assert_fails(done, 1, archive, "too many for its size: give another source.label")

    def test_classes_that_alternate_are_no_attack(self):
        """Each sample names its folder; the archive has the bytes for it."""
        archive = self.new("alternating.tar")
        with open(archive, "wb") as out:
            for i in range(1150):
                name = b"ab"[i % 2:i % 2 + 1] * 60_000 + b"/%d.bin\0" % i
                out.write(tar_header("././@LongLink", len(name), b"L") + name + bytes(-len(name) % 512) + tar_header("k.bin", 0))
        done, stats = self.load(archive, "parent-folder")
        self.assertEqual((done.returncode, stats["skipped"]), (0, 1150), done.stderr)


class Words(Hostile):
    def test_a_command_that_is_none(self):
        self.assert_usage(run("presto-inspect", "frobnicate", self.folder), "'frobnicate' is no command", "verify")

    def test_a_strategy_of_another_dataset(self):
        strategy = self.new("strategy")
        strategy.write_text(f"schema: 1\npipeline: {self.pipeline}\nstored: resized\ncodec: zlib:1\nshards: 2\n"
                            "threads: 1\nbatch_samples: 4\nseed: 7\n")
        fits = self.write("-u", "resized", "-c", "zlib:1")
        self.assertEqual(run("presto-load", "-q", "--strategy", strategy, "--format", "null", fits).returncode, 0)
        for other in (["-u", "decoded", "-c", "zlib:1"], ["-u", "resized", "-c", "none"]):
            done = run("presto-load", "-q", "--strategy", strategy, "--format", "null", self.write(*other))
            self.assert_usage(done, strategy, "resized with codec zlib:1", f"holds {other[1]} with codec {other[3]}")

    def test_explain_in_json(self):
        photos = self.make_photos()
        done = run("presto-write", "--json", "--explain", "-p", self.pipeline, "-u", "resized", "-s", "3", photos)
        said = json.loads(done.stdout)
        self.assertEqual((said["stored"], said["codec"], said["shards"], said["samples"]), ("resized", "none", 3, 24))
        self.assertEqual(said["steps_now"], ["read-file", "decode-image", "resize-image"])
        self.assertEqual(said["steps_left"], ["center-pixels", "random-crop"])
        said = json.loads(run("presto-load", "--json", "--explain", self.write("-u", "resized")).stdout)
        self.assertEqual((said["input"], said["stored"], said["samples"]), ("dataset", "resized", 24))
        self.assertIn("center-pixels", said["steps"])


if __name__ == "__main__":
    main()
