#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto-load --cache disk: the same stream with and without it, within its limit, in any folder."""
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import time

from cli import PIPELINE, main, run
from disk_cache import LIMIT, CacheCase, allocated, arrays


class DiskCache(CacheCase):
    # ---- the stream ----

    def test_the_stream_is_the_same_and_a_second_run_computes_nothing(self):
        count = self.photo_count
        for shuffle in ("none", "full", "buffer:7", "blocks:8"):
            plain = self.plain(shuffle=shuffle)
            self.cache = self.new("cache")
            data, stats = self.stream(shuffle=shuffle, threads=0)
            self.assertTrue(data == plain, shuffle)
            self.assert_counts(stats, count, count)
            self.assertGreater(stats["cache_written_bytes"], 0)
            self.assertGreater(stats["cache_bytes"], 0)
            for threads in (0, 1, 2, 5, 8):
                data, stats = self.stream(shuffle=shuffle, threads=threads)
                self.assertTrue(data == plain, f"{shuffle}, {threads} threads")
                self.assert_counts(stats, 2 * count, 0)
                self.assertEqual(stats["cache_written_bytes"], 0)
                self.assertEqual(next(s["samples"] for s in stats["steps"] if s["step"] == "decode-image"), 0)
        self.assertEqual([p for p in self.cache.iterdir() if "partial" in p.name], [])

    def test_all_threads_fill_it_alike(self):
        plain = self.plain()
        for threads in (1, 2, 8):
            self.cache = self.new("cache")
            self.assertTrue(self.stream(threads=threads)[0] == plain)
            data, stats = self.stream(threads=1)
            self.assertTrue(data == plain)
            self.assert_counts(stats, 2 * self.photo_count, 0)

    def test_every_form_and_batch_comes_out_the_same(self):
        dataset = self.write("-u", "pixel-centered", "-s", "3")
        forms = [["--format", "raw"], ["--format", "npy", "-b", "1"], ["--format", "npy", "-b", "17", "--drop-last"]]
        for source in ([dataset], [self.write("-u", "resized", "-c", "zstd:1"), "--to", "pixel-centered"],
                       ["-p", self.pipeline, "--to", "decoded", self.make_photos()]):
            for form in forms:
                arguments = ["-q", "-e", "2", "-j", "2", *form, *source]
                plain = self.load(*arguments)
                for _ in range(2):
                    self.assertTrue(self.load("--cache", f"disk:{self.cache}:{LIMIT}", *arguments) == plain)

    def test_ranks_share_it_and_a_state_goes_on_in_it(self):
        wanted = [self.plain("--rank", r, "--world", 3) for r in range(3)]
        for turn in range(2):
            for rank in range(3):
                data, stats = self.stream("--rank", rank, "--world", 3)
                self.assertTrue(data == wanted[rank])
            self.assertEqual(stats["missed_samples"] == 0, turn == 1)
        whole = arrays(self.plain(epochs=3))
        state = self.new("state")
        parts = [self.stream("--state", state, *limit, epochs=3)[0]
                 for limit in (["--limit", "15"], ["--limit", "55"], [])]
        self.assertTrue(b"".join(map(arrays, parts)) == whole)

    def test_what_could_not_be_computed_is_not_stored(self):
        source = self.new("photos")
        shutil.copytree(self.make_photos(), source)
        damaged = sorted(source.rglob("*.jpg"))[7]
        damaged.write_bytes(damaged.read_bytes()[:300])
        arguments = ["-j", "2", "-e", "2", "--format", "npy", "--on-error", "skip", "-p", self.pipeline, source]
        plain = run("presto-load", *arguments)
        for _ in range(2):
            done = run("presto-load", "--cache", f"disk:{self.cache}:{LIMIT}", *arguments)
            self.assertTrue(done.stdout == plain.stdout)
            self.assertIn("2 samples skipped", done.stderr)
        self.assert_fails(run("presto-load", "--cache", f"disk:{self.cache}:{LIMIT}", "-q", "--format", "null", "-p",
                              self.pipeline, source), 3, damaged.name)

    # ---- never another's, never stale ----

    def test_other_pipelines_and_sources_share_the_folder_but_no_samples(self):
        other = self.new("other")
        other.write_text(PIPELINE.replace("min-side: 48", "min-side: 56"))
        crop = self.new("crop")
        crop.write_text(PIPELINE.replace("width: 40", "width: 36"))
        self.stream()
        for pipeline, is_same in ((other, False), (crop, True), (self.pipeline, True)):
            arguments = ["-q", "--format", "npy", "-p", f"{pipeline}", self.make_photos()]
            if pipeline is not self.pipeline:
                pipeline.rename(pipeline.with_suffix(".yaml"))
                arguments[-2] = str(pipeline.with_suffix(".yaml"))
            stats = self.new("stats")
            data = self.load("--cache", f"disk:{self.cache}:{LIMIT}", "--stats", stats, *arguments)
            self.assertTrue(data == self.load(*arguments))
            # A change behind the first random step changes nothing that is stored.
            self.assert_counts(json.loads(stats.read_text()), self.photo_count * is_same,
                               self.photo_count * (not is_same))

    def test_a_file_that_changes_is_read_again(self):
        source = self.new("photos")
        shutil.copytree(self.make_photos(), source)
        files = sorted(source.rglob("*.jpg"))
        arguments = ["-q", "--format", "npy", "-p", self.pipeline, source]
        cached = ["--cache", f"disk:{self.cache}:{LIMIT}", *arguments]
        before = self.load(*cached)
        first, second = files[0].read_bytes(), files[1].read_bytes()
        size = max(len(first), len(second))
        times = files[0].stat()
        # The same size, and the time of modification put back.
        files[0].write_bytes(first.ljust(size, b"\0"))
        os.utime(files[0], ns=(times.st_atime_ns, times.st_mtime_ns))
        self.assertTrue(self.load(*cached) == before)
        files[0].write_bytes(second.ljust(size, b"\0"))
        os.utime(files[0], ns=(times.st_atime_ns, times.st_mtime_ns))
        after = self.load(*arguments)
        self.assertFalse(after == before)
        self.assertTrue(self.load(*cached) == after)
        files[2].unlink()
        self.assertTrue(self.load(*cached) == self.load(*arguments))

    def test_a_dataset_that_is_written_again_is_read_again(self):
        first = self.write("-u", "decoded", "-s", "2", "--limit", "8")
        second = self.write("-u", "resized", "-s", "2", "--limit", "8")
        place = self.new("place")
        arguments = ["-q", "--format", "npy", place]
        cached = ["--cache", f"disk:{self.cache}:{LIMIT}", *arguments]
        for source in (first, second, first):
            shutil.copytree(source, place)
            self.assertTrue(self.load(*cached) == self.load(*arguments))
            self.assertTrue(self.load(*cached) == self.load(*arguments))
            shutil.rmtree(place)

    def test_samples_that_were_not_checked_do_not_pass_for_checked_ones(self):
        dataset = self.write("-u", "pixel-centered", "-s", "1")
        shard = next(dataset.glob("*.tfrecord"))
        data = bytearray(shard.read_bytes())
        data[5000] ^= 1  # of a tensor
        shard.write_bytes(data)
        cached = ["-q", "--cache", f"disk:{self.cache}:{LIMIT}", "--format", "null"]
        self.load(*cached, "--verify", "none", dataset)
        self.assert_fails(run("presto-load", *cached, dataset), 3, shard.name)

    def damaged_dataset(self):
        """A dataset whose one shard has lost the lengths of three records, but not its index file."""
        dataset = self.write("-u", "pixel-centered", "-s", "1")
        shard = next(dataset.glob("*.tfrecord"))
        data = bytearray(shard.read_bytes())
        at = 0
        for record in range(13):
            length = struct.unpack_from("<Q", data, at)[0]
            if record >= 10:
                data[at + 8] ^= 1
            at += 16 + length
        times = shard.stat()
        shard.write_bytes(data)
        os.utime(shard, ns=(times.st_atime_ns, times.st_mtime_ns))
        return dataset, shard

    def check_with_and_without_index(self, shard, *arguments):
        index = shard.with_name(shard.name + ".index")
        content, times = index.read_bytes(), index.stat()
        arguments = ["-q", "--on-error", "skip", "--format", "npy", "-b", "1", *arguments]
        cached = ["--cache", f"disk:{self.cache}:{LIMIT}", *arguments]
        streams = []
        for has_index in (True, False, True, False):
            if has_index:
                index.write_bytes(content)
                os.utime(index, ns=(times.st_atime_ns, times.st_mtime_ns))
            else:
                index.unlink()
            for threads in (1, 2):
                plain = self.load("-j", threads, *arguments)
                streams.append(plain)
                self.assertTrue(self.load("-j", threads, *cached) == plain, f"{has_index} {threads}")
        stats = self.new("stats")
        self.load("--stats", stats, *cached)
        self.assertGreaterEqual(json.loads(stats.read_text())["cached_samples"], 37)
        self.assertGreater(len(streams[0]), 0)

    def test_damaged_records_have_other_numbers_without_an_index(self):
        dataset, shard = self.damaged_dataset()
        self.check_with_and_without_index(shard, dataset)

    def test_damaged_records_of_foreign_files_have_other_numbers_without_an_index(self):
        dataset, shard = self.damaged_dataset()
        (dataset / "dataset.json").unlink()
        self.check_with_and_without_index(shard, dataset)

    def test_a_whole_dataset_is_the_same_with_and_without_tolerance(self):
        dataset = self.write("-u", "pixel-centered", "-s", "3")
        cached = ["-q", "--cache", f"disk:{self.cache}:{LIMIT}", "--format", "null"]
        self.load(*cached, dataset)
        for index in [None, *dataset.glob("*.index")]:
            if index is not None:
                index.unlink()
            stats = self.new("stats")
            self.load(*cached, "--on-error", "skip", "--stats", stats, dataset)
            self.assert_counts(json.loads(stats.read_text()), self.photo_count, 0)

    # ---- the limit ----

    def test_it_stays_within_its_limit_and_keeps_what_fits(self):
        plain = self.plain(epochs=3)
        for limit in (64 << 10, 200 << 10, 700 << 10):
            self.cache = self.new("cache")
            hits = []
            for _ in range(2):
                data, stats = self.stream(limit=limit, epochs=3)
                self.assertTrue(data == plain)
                self.assertLessEqual(allocated(self.cache), limit)
                self.assertLessEqual(stats["cache_bytes"], limit)
                hits.append(stats["cached_samples"])
            # Of its own samples it keeps those that it has: every epoch of the second run finds them.
            self.assertGreaterEqual(hits[1], 3 if limit < 200 << 10 else 9)
            self.assertGreater(hits[1], hits[0])

    def test_a_smaller_limit_makes_it_smaller(self):
        self.stream()
        before = allocated(self.cache)
        plain = self.plain()
        data, stats = self.stream(limit=before // 3)
        self.assertTrue(data == plain)
        self.assertLessEqual(allocated(self.cache), before // 3)

    def test_what_was_not_used_for_longest_goes_first(self):
        sources = []
        for i in range(3):
            source = self.new("photos")
            shutil.copytree(self.make_photos(), source)
            sources.append(source)

        def stats_of(i):
            stats = self.new("stats")
            self.load("--cache", f"disk:{self.cache}:{limit}", "--stats", stats, "-q", "--format", "null", "-j", "1", "-p",
                      self.pipeline, sources[i])
            time.sleep(0.02)  # the clock of file times is coarse
            return json.loads(stats.read_text())

        limit = 1 << 30
        stats_of(0)
        limit = allocated(self.cache) * 5 // 2
        shutil.rmtree(self.cache)
        self.assert_counts(stats_of(0), 0, self.photo_count)
        self.assert_counts(stats_of(1), 0, self.photo_count)
        self.assert_counts(stats_of(0), self.photo_count, 0)  # used again
        stats = stats_of(2)
        self.assertGreater(stats["cache_evicted_blocks"], 0)
        self.assertLessEqual(allocated(self.cache), limit)
        self.assert_counts(stats_of(0), self.photo_count, 0)
        self.assertGreater(stats_of(1)["missed_samples"], 0)

    def test_other_files_in_the_folder_are_left_alone(self):
        self.cache.mkdir()
        names = ["notes.txt", "presto-0123.block", ".presto-x.partial", "presto-" + "g" * 32 + "-" + "0" * 16 + ".block"]
        for name in names:
            (self.cache / name).write_bytes(b"mine" * 50000)
        self.stream(limit=200 << 10)
        self.assertEqual([(self.cache / name).read_bytes() == b"mine" * 50000 for name in names], [True] * 4)

    def test_what_is_no_file_is_left_alone_whatever_it_is_called(self):
        plain = self.plain()
        self.stream()
        block = self.blocks()[0].name
        elsewhere = self.new("elsewhere")
        elsewhere.write_bytes(b"mine")
        names = []
        for i, make in enumerate([os.mkdir, os.mkfifo, lambda path: os.symlink(elsewhere, path)]):
            stem = f"{block[:40]}{i:016x}"
            for name in (f"{stem}.block", f".{stem}.partial"):
                names.append(name)
                make(self.cache / name)
        for limit in (LIMIT, 300 << 10):
            for _ in range(2):
                data, stats = self.stream(limit=limit)
                self.assertTrue(data == plain)
                self.assertEqual(stats["cache_damaged_blocks"], 0)
        self.assertEqual([name for name in names if not os.path.lexists(self.cache / name)], [])
        self.assertEqual(elsewhere.read_bytes(), b"mine")

    # ---- folders that cannot be used, disks that are full ----

    def test_a_folder_that_cannot_be_used_is_said_so(self):
        file = self.new("file")
        file.write_text("no folder")
        for folder, text in ((file, "Not a directory"), (self.folder / "no" / "cache", "No such file or directory"),
                             ("/proc", "cannot make files")):
            done = run("presto-load", "--cache", f"disk:{folder}:{LIMIT}", *self.arguments())
            self.assert_fails(done, 1, folder, text)
            self.assertEqual(done.stdout, b"")
        if os.geteuid() != 0:
            self.cache.mkdir(mode=0o500)
            self.assert_fails(run("presto-load", "--cache", f"disk:{self.cache}:{LIMIT}", *self.arguments()), 1, self.cache)
        self.assert_fails(run("presto-load", "--cache", f"disk:{self.cache}:1KiB", *self.arguments()), 2, "at least 65536")

    def test_colons_belong_to_the_folder(self):
        self.cache = self.new("a:b")
        self.stream()
        self.assertGreater(len(self.blocks()), 0)

    def test_a_disk_that_gets_full_ends_caching_with_one_warning(self):
        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (300000, 300000))
        arguments = ["--format", "npy", "-j", "2", "-e", "3", "-p", self.pipeline, self.make_photos()]
        plain = self.load("-q", *arguments)
        done = run("presto-load", "--cache", f"disk:{self.cache}:{LIMIT}", *arguments, preexec_fn=small_files)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout == plain)
        self.assertEqual(done.stderr.count("nothing more is cached"), 1, done.stderr)
        self.assertIn(str(self.cache), done.stderr)
        shutil.rmtree(self.cache)
        stats = self.new("stats")
        self.load("-q", "--stats", stats, "--cache", f"disk:{self.cache}:{LIMIT}", *arguments, preexec_fn=small_files)
        [warning] = json.loads(stats.read_text())["warnings"]
        self.assertIn("nothing more is cached", warning)
        self.assertTrue(self.load("-q", "--cache", f"disk:{self.cache}:{LIMIT}", *arguments) == plain)

    def test_a_full_file_system_ends_caching_with_one_warning(self):
        mount = self.new("mount")
        mount.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", mount], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("needs the right to mount")
        self.addCleanup(subprocess.run, ["umount", mount])
        arguments = ["--format", "npy", "-j", "2", "-e", "3", "-p", self.pipeline, self.make_photos()]
        plain = self.load("-q", *arguments)
        for _ in range(2):
            done = run("presto-load", "--cache", f"disk:{mount}/cache:{LIMIT}", *arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stdout == plain)
            self.assertEqual(done.stderr.count("nothing more is cached"), 1, done.stderr)


if __name__ == "__main__":
    main()
