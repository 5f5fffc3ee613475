#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto-load --cache disk: the same stream whatever happens to the cache, also with several processes that are killed."""
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import time

from cli import SANITIZED, TOOLS, crc32c, main
from disk_cache import LIMIT, CacheCase, allocated

MOMENTS = 6 if SANITIZED else 25


class DamagedCache(CacheCase):
    # ---- damage ----

    def test_flipped_bits_anywhere_change_no_byte(self):
        plain = self.plain()
        self.stream(limit="2MiB", threads=0)  # every sample once
        whole = {path.name: path.read_bytes() for path in self.blocks()}
        self.assertGreater(len(whole), 3)
        damaged = 0
        for moment in range(MOMENTS):
            for path in self.blocks():
                path.unlink()
            for name, data in whole.items():
                data = bytearray(data)
                for _ in range(self.random.choice([0, 1, 1, 30])):
                    data[self.random.choice([self.random.randrange(64), self.random.randrange(len(data)),
                                             len(data) - 1 - self.random.randrange(64)])] ^= 1 << self.random.randrange(8)
                (self.cache / name).write_bytes(data)
            data, stats = self.stream(limit="2MiB", threads=moment % 3)
            self.assertTrue(data == plain, f"moment {moment}")
            damaged += stats["cache_damaged_blocks"]
            self.assertEqual(stats["cached_samples"] + stats["missed_samples"], 2 * self.photo_count)
            # A block may turn out damaged when its other samples have been read for the last time: one more stream
            # stores those again.
            for _ in range(2):
                data, stats = self.stream(limit="2MiB")
                self.assertTrue(data == plain)
            self.assert_counts(stats, 2 * self.photo_count, 0)
        self.assertGreater(damaged, MOMENTS)

    def test_a_file_that_is_cut_swapped_or_none_of_ours_is_removed(self):
        plain = self.plain()
        self.stream(limit="2MiB")
        paths = self.blocks()
        contents = [path.read_bytes() for path in paths]
        for change in (lambda i: b"", lambda i: contents[i][:50], lambda i: contents[i][: len(contents[i]) // 2],
                       lambda i: contents[i][:-1], lambda i: contents[i] + b"x", lambda i: b"\0" * len(contents[i]),
                       lambda i: b"no cache file" * 10):
            for i, path in enumerate(paths):
                path.write_bytes(change(i) if i % 2 == 0 else contents[i])
            data, stats = self.stream(limit="2MiB")
            self.assertTrue(data == plain)
            self.assertEqual(stats["cache_damaged_blocks"], (len(paths) + 1) // 2)
            for path in self.blocks():
                path.unlink()
        # A block of another key under a name of this one.
        for path, content in zip(paths, contents):
            path.write_bytes(content)
        name = paths[0].name
        other = self.load("--cache", f"disk:{self.cache}:{LIMIT}", "-q", "--format", "npy", "-p", self.pipeline, "--to",
                          "resized", self.make_photos())
        foreign = next(path for path in self.blocks() if path.name[:39] != name[:39])
        paths[0].write_bytes(foreign.read_bytes())
        data, stats = self.stream()
        self.assertTrue(data == plain)
        self.assertEqual(stats["cache_damaged_blocks"], 1)
        self.assertGreater(len(other), 0)

    def test_what_is_removed_or_cut_while_it_is_read_is_computed_again(self):
        wanted = self.plain(epochs=30, threads=2)
        self.stream(limit="2MiB")
        for damage in (lambda path: path.unlink(), lambda path: os.truncate(path, path.stat().st_size // 3)):
            process = subprocess.Popen(
                [str(a) for a in [TOOLS / "presto-load", "--cache", f"disk:{self.cache}:2MiB", "--prefetch-bytes", "1MiB",
                                  *self.arguments(epochs=30)]], stdout=subprocess.PIPE)
            data = process.stdout.read(len(wanted) // 10)
            for path in self.blocks():
                damage(path)
            data += process.stdout.read()
            process.stdout.close()
            self.assertEqual(process.wait(), 0)
            self.assertTrue(data == wanted)

    def forge(self, name, bytes, entry=b"", whole=True):
        """A block of one entry of so many bytes, nearly all of them zeros that nobody wrote."""
        key = [int(name[7 + 16 * i : 23 + 16 * i], 16) for i in range(2)]
        table = struct.pack("<QII", 0, 1, bytes // 64)
        head = struct.pack("<8sIIQQQQIII", b"PRESTOCB", 1, 1, *key, 64 + bytes + len(table), 64 + bytes, crc32c(table), 0, 0)
        with open(self.cache / name, "wb") as file:
            if whole:
                os.posix_fallocate(file.fileno(), 0, 64 + bytes + len(table))
            file.write(head + struct.pack("<I", crc32c(head)) + entry)
            file.seek(64 + bytes)
            file.write(table)

    def test_a_block_that_is_made_up_decides_about_no_memory(self):
        arguments = ["-q", "-j", "1", "-e", "1", "--prefetch-bytes", "16MiB", "--format", "npy", "-p", self.pipeline,
                     self.make_photos()]
        plain = self.load(*arguments)
        large = 512 << 20
        cached = ["--cache", f"disk:{self.cache}:8GiB", *arguments]
        self.load(*cached)
        name = self.blocks()[0].name

        def little_memory():
            resource.setrlimit(resource.RLIMIT_AS, (large, large))
        # Full of holes; an entry that is none; an entry that may be one, for which there is no memory.
        for forged, damaged in ((dict(bytes=3 << 30, whole=False), 1), (dict(bytes=large), 1),
                                (dict(bytes=large, entry=struct.pack("<IIQQ", 0, 1, 0, large)), 0)):
            if SANITIZED and damaged == 0:
                continue  # whose own memory has no limit: the entry is read, and its CRC differs
            for path in self.blocks():
                path.unlink()
            try:
                self.forge(name, **forged)
            except OSError as error:
                self.skipTest(f"needs {large} bytes: {error}")
            stats = self.new("stats")
            data = self.load("--stats", stats, *cached, preexec_fn=None if SANITIZED else little_memory)
            self.assertTrue(data == plain)
            self.assert_counts(json.loads(stats.read_text()), 0, self.photo_count, damaged)
            self.assertEqual((self.cache / name).exists(), damaged == 0)

    # ---- several processes, and those that die ----

    def start(self, *more, limit=LIMIT, **order):
        return subprocess.Popen([str(a) for a in [TOOLS / "presto-load", "--cache", f"disk:{self.cache}:{limit}",
                                                  *self.arguments(*more, **order)]],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_processes_that_share_it_all_get_their_stream(self):
        for limit in (LIMIT, 500 << 10):
            self.cache = self.new("cache")
            orders = [dict(shuffle=s, threads=t, epochs=4) for s, t in (("none", 2), ("full", 1), ("full", 2), ("buffer:5", 3))]
            wanted = [self.plain(**order) for order in orders]
            processes = [self.start(limit=limit, **order) for order in orders]
            for process, data in zip(processes, wanted):
                self.watch(limit)
                out, err = process.communicate(timeout=120)
                self.assertEqual((process.returncode, err), (0, b""))
                self.assertTrue(out == data)
            self.watch(limit)
            if limit == LIMIT:
                _, stats = self.stream()
                self.assert_counts(stats, 2 * self.photo_count, 0)

    def watch(self, limit):
        """The limit holds at this moment."""
        total = 0
        for path in list(self.cache.iterdir()) if self.cache.exists() else []:
            try:
                total += path.lstat().st_size
            except FileNotFoundError:
                pass
        self.assertLessEqual(total, 64 << 20 if limit == LIMIT else limit)

    def test_killed_at_any_moment_it_leaves_nothing_that_harms(self):
        plain = self.plain(epochs=3)
        begin = time.monotonic()
        self.stream(epochs=3)
        duration_s = time.monotonic() - begin
        shutil.rmtree(self.cache)
        for moment in range(MOMENTS):
            process = self.start(limit="2MiB", epochs=3, threads=self.random.randrange(4))
            drain = subprocess.Popen(["cat"], stdin=process.stdout, stdout=subprocess.DEVNULL)
            process.stdout.close()
            time.sleep(self.random.random() * duration_s)
            process.send_signal(self.random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
            process.wait()
            drain.wait()
            process.stderr.close()
            if moment % 3 == 2:
                data, _ = self.stream(limit="2MiB", epochs=3)
                self.assertTrue(data == plain, f"moment {moment}")
                self.assertEqual([p.name for p in self.cache.iterdir() if "partial" in p.name], [])
                if moment % 2 == 0:
                    shutil.rmtree(self.cache)
        self.assertLessEqual(allocated(self.cache) if self.cache.exists() else 0, 2 << 20)


if __name__ == "__main__":
    main()
