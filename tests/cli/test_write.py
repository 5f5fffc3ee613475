#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto-write: what it stores, and that the number of threads changes nothing of it."""
import json
import signal
import subprocess
import tarfile
import time

from cli import PHOTOS, TOOLS, Case, example, frames, main, run


def contents(folder):
    """The shards, their indexes and their description. Without a killed run's lock."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name != ".presto.lock"}


class Write(Case):
    def test_the_dataset_is_described_and_holds_every_photo_with_its_label(self):
        out = self.write("-u", "concatenated", "-s", "3", "-j", "2")
        shards = sorted(path.name for path in out.glob("*.tfrecord"))
        self.assertEqual(shards, [f"data-0000{i}-of-00003.tfrecord" for i in range(3)])
        described = json.loads((out / "dataset.json").read_text())
        self.assertEqual(sum(shard["records"] for shard in described["shards"]), self.photo_count)
        samples = [example(payload) for name in shards for payload in frames((out / name).read_bytes())]
        photos = sorted(self.make_photos().rglob("*.jpg"))
        self.assertEqual([s["key"][0].decode() for s in samples],
                         [str(p.relative_to(self.make_photos())) for p in photos])
        self.assertEqual([s["image"][0] for s in samples], [p.read_bytes() for p in photos])
        classes = sorted({p.parent.name for p in photos})
        self.assertEqual([s["label"] for s in samples], [[classes.index(p.parent.name)] for p in photos])
        leftovers = [p.name for p in out.iterdir() if p.name.startswith(".") or "partial" in p.name]
        self.assertEqual(leftovers, [])

    def test_the_number_of_threads_changes_no_byte(self):
        datasets = [contents(self.write("-c", "zlib", "-s", "3", "-j", j)) for j in (0, 1, 2, 5, 8)]
        self.assertEqual(len(datasets[0]), 7)
        for dataset in datasets[1:]:
            self.assertTrue(dataset == datasets[0])

    def test_a_dictionary_is_trained_on_what_can_only_be_read_in_order(self):
        archive = self.new("photos").with_suffix(".tar.gz")
        with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
            for path in sorted(self.make_photos().rglob("*.jpg")):
                tar.add(path, path.relative_to(self.make_photos()))
        source = ("--set", "source.type=tar", "-u", "resized", "-s", "1")
        found = []
        for codec in ("none", "zstd:3+dict"):
            out = self.write("-c", codec, *source, source=archive)
            self.assertEqual((out / "dictionary").exists(), codec != "none")
            found.append(frames(self.load("-q", "--to", "resized", out)))
        self.assertEqual(len(found[0]), self.photo_count)
        self.assertEqual(found[0], found[1])

    def test_the_last_representation_that_can_be_stored_is_the_default(self):
        done = run("presto-write", "-p", self.pipeline, "--json", "-o", self.new(), self.make_photos())
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual(result["schema"], 1)
        self.assertEqual(result["stored"], "resized")
        self.assertEqual((result["samples"], result["skipped"]), (self.photo_count, 0))
        self.assertGreater(result["stored_bytes"], result["raw_bytes"])  # framing
        self.assertGreater(result["samples_per_s"], 0)

    def test_every_codec_and_file_compression_gives_the_same_samples_back(self):
        plain = self.load("-q", self.write("-u", "resized"))
        for option in (["-c", "zlib"], ["-c", "gzip:1"], ["-c", "zstd:3"], ["-c", "lz4"], ["-c", "snappy"],
                       ["--file-compression", "gzip"], ["--file-compression", "zlib", "-c", "lz4"]):
            with self.subTest(option=option):
                self.assertEqual(self.load("-q", self.write("-u", "resized", *option)), plain)

    def test_records_of_every_size_come_back(self):
        """Images whose records fall below, around and far above the sizes of buffers."""
        source = self.new("source")
        source.mkdir()
        for i, side in enumerate([20, 60, 150, 209, 250, 296, 340, 600, 900]):
            subprocess.run([PHOTOS, "-n", "2", "-c", "1", "--width", str(side), "--height", str(side), "-j", "0",
                            "-o", source / str(i)], check=True)
        online = self.load("-q", "-p", self.pipeline, "--to", "decoded", source)
        for shards in (1, 3):
            self.assertTrue(self.load("-q", "--to", "decoded", self.write("-u", "decoded", "-s", shards, source=source))
                            == online)

    def test_the_unprocessed_source_is_not_written(self):
        out = self.new()
        self.assert_usage(run("presto-write", "-p", self.pipeline, "-u", "unprocessed", "-o", out, self.make_photos()),
                          "nothing to write")
        self.assertFalse(out.exists())

    def test_codecs_that_not_every_tensorflow_reads_are_refused_when_asked(self):
        refused = "zstd:1", "lz4", "snappy", "blosc-lz4"
        for codec in refused:
            out = self.new()
            self.assert_usage(run("presto-write", "-p", self.pipeline, "--tensorflow-readable", "-c", codec, "-o", out,
                                  self.make_photos()), codec, "none, zlib, gzip")
            self.assertFalse(out.exists())
            self.assert_usage(run("presto-sweep", "-p", self.pipeline, "--tensorflow-readable", "--codecs",
                                  f"gzip,{codec}", "-o", out, self.make_photos()), codec, "none, zlib, gzip")
        strategy = self.new("strategy")
        strategy.write_text("schema: 1\npipeline: cv\nstored: resized\ncodec: lz4\nshards: 1\nthreads: 1\n")
        self.assert_usage(run("presto-write", "--strategy", strategy, "--tensorflow-readable", "-o", self.new(),
                              self.make_photos()), strategy, "lz4", "none, zlib, gzip")
        for codec in ("none", "zlib:1", "gzip"):
            self.write("--tensorflow-readable", "-c", codec, "--file-compression", "gzip")

    def test_a_strategy_with_the_old_name_of_stored_is_carried_out_with_a_note(self):
        photos, strategy, said = self.make_photos(), self.new("strategy"), []
        for name in ("stored", "split"):
            out = self.new(name)
            strategy.write_text(f"schema: 1\npipeline: {self.pipeline}\n{name}: resized\ncodec: lz4\nshards: 1\nthreads: 1\n")
            done = run("presto-write", "--strategy", strategy, "-o", out, photos)
            self.assertEqual(done.returncode, 0, done.stderr)
            said.append(done.stderr.count("'split', which is now called 'stored'"))
            done = run("presto-load", "--strategy", strategy, "--format", "null", out)
            said.append(done.stderr.count("'split', which is now called 'stored'"))
        self.assertEqual(said, [0, 0, 1, 1])

    def test_limit_takes_the_first_samples(self):
        every = frames(self.load("-q", self.write("-u", "concatenated")))
        some = frames(self.load("-q", self.write("-u", "concatenated", "--limit", "7")))
        self.assertEqual(some, every[:7])

    def test_the_closing_line_is_on_stderr_and_quiet_leaves_it_out(self):
        done = run("presto-write", "-p", self.pipeline, "-o", self.new(), self.make_photos())
        self.assertEqual(done.stdout, b"")
        self.assertRegex(done.stderr, r"^presto-write: .*: 24 samples \(resized\), \d+ shards?, .*samples/s\n$")
        done = run("presto-write", "-q", "-p", self.pipeline, "-o", self.new(), self.make_photos())
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", ""))

    def test_explain_prints_the_plan_and_writes_nothing(self):
        out = self.new()
        done = run("presto-write", "--explain", "-p", self.pipeline, "-u", "resized", "-o", out, self.make_photos())
        self.assertEqual(done.returncode, 0, done.stderr)
        text = done.stdout.decode()
        for word in ("24 samples", "small", "resized", "decode-image", "center-pixels, random-crop"):
            self.assertIn(word, text)
        self.assertFalse(out.exists())

    def test_a_folder_that_holds_something_is_refused(self):
        out = self.write("-u", "concatenated")
        before = contents(out)
        done = run("presto-write", "-p", self.pipeline, "-o", out, self.make_photos())
        self.assert_fails(done, 2, out)
        self.assertEqual(contents(out), before)

    def test_an_output_that_is_no_folder_is_refused(self):
        file = self.new()
        file.write_text("mine")
        for path in ("/dev/null", file):
            self.assert_fails(run("presto-write", "-p", self.pipeline, "-o", path, self.make_photos()), 2, path,
                              "is not a folder")
        self.assertEqual(file.read_text(), "mine")

    def test_shards_of_a_size(self):
        """Each as large as it can be without going above the size, and the samples of one shard in order."""
        one = (self.write("-u", "resized", "-s", "1") / "data-00000-of-00001.tfrecord").read_bytes()
        sizes = [len(payload) + 16 for payload in frames(one)]
        for size in (1, max(sizes), 3 * max(sizes) - 1, 50000, len(one), len(one) + 1):
            with self.subTest(size=size):
                out = self.write("-u", "resized", "--shard-bytes", size, "-j", size % 3)
                shards = [p.read_bytes() for p in sorted(out.glob("data-*.tfrecord"))]
                self.assertTrue(b"".join(shards) == one)
                names = [f"data-{i:05}-of-{len(shards):05}.tfrecord" for i in range(len(shards))]
                described = json.loads((out / "dataset.json").read_text())["shards"]
                self.assertEqual([shard["file"] for shard in described], names)
                self.assertEqual(sorted(p.name for p in out.iterdir()),
                                 sorted([*names, *(n + ".index" for n in names), "dataset.json"]))
                for this, following in zip(shards, shards[1:]):
                    self.assertTrue(len(this) <= size or len(frames(this)) == 1)
                    self.assertGreater(len(this) + len(frames(following)[0]) + 16, size)

    def test_shards_of_a_size_are_explained(self):
        done = run("presto-write", "--explain", "-p", self.pipeline, "--shard-bytes", "3MiB", self.make_photos())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("shards of up to 3.15 MB", done.stdout.decode())

    def test_shards_end_by_number_or_by_size_and_the_size_is_one(self):
        def write(*arguments):
            return run("presto-write", "-p", self.pipeline, *arguments, "-o", out, self.make_photos())
        out = self.new()
        self.assert_usage(write("-s", "3", "--shard-bytes", "1MiB"), "--shards", "--shard-bytes")
        for size in ("0", "-1", "", "x", "1.5MiB", "5MB", "99999999999TiB"):
            self.assert_usage(write("--shard-bytes", size), "--shard-bytes")
        self.assertFalse(out.exists())

    def test_auto_threads_store_the_same(self):
        fixed = self.write("-u", "resized", "-c", "zlib", "-s", "2", "-j", "1")
        auto = self.write("-u", "resized", "-c", "zlib", "-s", "2", "-j", "auto")
        self.assertEqual(contents(auto), contents(fixed))
        done = run("presto-write", "-p", self.pipeline, "-j", "auto", "--json", "-o", self.new(), self.make_photos())
        result = json.loads(done.stdout)
        self.assertTrue(result["auto_threads"])
        self.assertGreaterEqual(result["threads"], 1)
        self.assert_usage(run("presto-write", "-p", self.pipeline, "-j", "automatic", "-o", self.new(), "."), "--threads")

    def test_one_of_a_thing_is_one_thing(self):
        done = run("presto-write", "-p", self.pipeline, "-s", "1", "--limit", "1", "-o", self.new(), self.make_photos())
        self.assertIn(": 1 sample (resized), 1 shard, ", done.stderr)
        done = run("presto-write", "--explain", "-p", self.pipeline, "-s", "1", "-j", "1", self.make_photos())
        self.assertIn(", 1 shard, ", done.stdout.decode())
        self.assertIn("on 1 thread:", done.stdout.decode())

    def slow_write(self, out, shards=("-s", "8")):
        """A write that takes long enough to be hit: the corpus many times over."""
        return ["-p", self.pipeline, "-u", "resized", "-c", "zlib:9", "-j", "1", *shards, "-o", out,
                *[self.make_photos()] * 60]

    def start_slow_write(self, out, *shards):
        """Start it, wait until it has begun."""
        process = subprocess.Popen([TOOLS / "presto-write", *self.slow_write(out, *shards)], stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while not (out.exists() and any(out.iterdir())) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        return process

    def test_a_killed_run_leaves_nothing_that_looks_whole(self):
        whole = self.new()
        self.assertEqual(run("presto-write", "-q", *self.slow_write(whole)).returncode, 0)
        cut_short = 0
        for wait_s in (0, 0, 0.02, 0.05, 0.2):
            out = self.new()
            process = self.start_slow_write(out)
            time.sleep(wait_s)
            process.kill()
            process.communicate()
            self.assertIn(process.returncode, (0, -signal.SIGKILL))
            if (out / "dataset.json").exists():  # on a busy machine the kill may come late
                self.assertTrue(contents(out) == contents(whole), sorted(contents(out)))
            else:
                cut_short += 1
        self.assertGreater(cut_short, 0)

    def check_killed_and_resumed(self, shards, pattern):
        """Killed once some files that match stand; resumed, those are kept."""
        whole = self.new()
        self.assertEqual(run("presto-write", "-q", *self.slow_write(whole, shards)).returncode, 0)
        for shards_before_the_kill in (2, 5):
            out = self.new()
            process = self.start_slow_write(out, shards)
            while process.poll() is None and len(list(out.glob(pattern))) < shards_before_the_kill:
                time.sleep(0.002)
            process.kill()
            process.communicate()
            kept = {p.stat().st_mtime_ns for p in out.glob(pattern)}
            finished = (out / "dataset.json").exists()
            if not finished:
                self.assert_fails(run("presto-write", *self.slow_write(out, shards)), 2, out)  # not without --resume
                done = run("presto-write", "--resume", *self.slow_write(out, shards))
                self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(contents(out) == contents(whole), sorted(contents(out)))
            if not finished:
                self.assertTrue(kept & {p.stat().st_mtime_ns for p in out.glob("data-*.tfrecord")})

    def test_a_killed_run_is_resumed_to_the_same_bytes(self):
        self.check_killed_and_resumed(("-s", "8"), "data-*.tfrecord")

    def test_a_killed_run_of_shards_of_a_size_is_resumed_to_the_same_bytes(self):
        self.check_killed_and_resumed(("--shard-bytes", "1MiB"), ".data-*.tfrecord")

    def test_an_unfinished_run_is_resumed_with_the_same_size_only(self):
        shards = ("--shard-bytes", "1MiB")
        out = self.new()
        process = self.start_slow_write(out, shards)
        while process.poll() is None and not list(out.glob(".data-*.tfrecord")):
            time.sleep(0.002)
        process.kill()
        process.communicate()
        if process.returncode == 0:
            self.skipTest("the run was over before it could be killed")
        before = contents(out)
        for other in (("--shard-bytes", "2MiB"), ("-s", "8")):
            done = run("presto-write", "--resume", *self.slow_write(out, other))
            self.assert_fails(done, 2, out, "differs in: shard")
        self.assertEqual(contents(out), before)

    def test_interrupted_it_cleans_up_and_dies_of_the_signal(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            for _ in range(5):  # on a busy machine the signal may come late
                out = self.new()
                process = self.start_slow_write(out)
                process.send_signal(number)
                process.communicate(timeout=60)
                if process.returncode != 0:
                    break
            self.assertEqual(process.returncode, -number)
            self.assert_no_dataset(out)
            self.assertEqual([p.name for p in out.parent.glob(f"{out.name}/*") if "partial" in p.name], [])


if __name__ == "__main__":
    main()
