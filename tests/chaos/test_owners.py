#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A folder under work has one owner, whatever happens to the others; what strangers put into a cache is not believed."""
import contextlib
import errno
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import time
import unittest

from chaos import SANITIZED, ChaosCase, as_nobody, main, moments, run, shards, snapshot, start, stop

LOCK = ".presto.lock"
IN_USE = "is being written to by"


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def is_owned(folder):
    """Does its lock name an owner? It does a moment after it exists."""
    try:
        return (folder / LOCK).read_text().endswith("\n")
    except FileNotFoundError:
        return False


class Owners(ChaosCase):
    photo_count = 40

    def command(self, out, *more, copies=1):
        return ["presto-write", "-q", "-p", self.pipeline, "-u", "resized", "-c", "zlib:6", "-j", "1", *more, "-o", out,
                *[self.make_photos()] * copies]

    def recode(self, out, *more):
        return ["presto-inspect", "recode", "-q", "-c", "zstd:9", "-j", "1", *more, "-o", out, self.long_dataset()]

    @classmethod
    def long_dataset(cls):
        """So long that a conversion of it can be met under way."""
        out = cls.folder / "long"
        if not out.exists():
            run("presto-write", "-q", "-p", cls.pipeline, "-u", "resized", "-s", "2", "-o", out, *[cls.make_photos()] * 10)
        return out

    def wait_until(self, process, condition):
        """The process is met under way; False: it has ended."""
        until = time.monotonic() + 60
        while process.poll() is None:
            if condition():
                return True
            self.assertLess(time.monotonic(), until)
        return False

    @contextlib.contextmanager
    def stalled(self, command, out):
        """A writer that is stopped while it writes its first shard, and goes on behind the block."""
        for _ in range(5):  # on a busy machine it may have ended before it was seen
            process = start(*command)
            if self.wait_until(process, lambda: list(out.glob(".*data-*.partial"))):
                break
            self.finish(process)
            shutil.rmtree(out)
        stop(process)
        self.assertIsNone(process.poll(), process.args)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
        _, err = self.finish(process)
        self.assertEqual((process.returncode, err), (0, ""))

    def kill_while_it_writes(self, command, out):
        """A writer that is killed between its first shard and its end."""
        for _ in range(5):  # on a busy machine it may have ended before it was seen
            process = start(*command)
            self.wait_until(process, lambda: list(out.glob("*data-*.tfrecord")))
            stop(process)
            is_under_way = not (out / "dataset.json").exists()
            process.kill()
            self.finish(process)
            if is_under_way:
                self.assertEqual(process.returncode, -signal.SIGKILL)
                return
            shutil.rmtree(out)
        self.fail("the writer was never met under way")

    def assert_refused(self, done, out, process=None):
        self.assert_fails(done, 1, out, IN_USE, *([f"process {process.pid} on"] if process else []))

    def test_of_two_that_start_together_one_writes(self):
        whole_of = {}
        for form in (["-s", "4"], ["--shard-bytes", "100KiB"]):
            out = self.new()
            self.assertEqual(run(*self.command(out, *form)).returncode, 0)
            whole_of[str(form)] = snapshot(out)
            for i in range(moments(20) // 2):
                out = self.new()
                if i % 3 == 1:  # what a killed process leaves at its very start
                    out.mkdir()
                    (out / LOCK).write_text("1 elsewhere\n")
                more = ["--resume"] if i % 3 == 2 else []
                both = [start(*self.command(out, *form, *more, )) for _ in range(2)]
                ends = [(process, self.finish(process)[1]) for process in both]
                codes = sorted(process.returncode for process, _ in ends)
                messages = "".join(err for _, err in ends)
                if codes == [0, 0]:  # the second one came when all was done
                    self.assertEqual(more, ["--resume"])
                else:
                    self.assertIn(codes, ([0, 1], [0, 2]), messages)
                    if codes == [0, 1]:
                        self.assertIn(IN_USE, messages)
                    else:
                        self.assertIn("holds a whole dataset already", messages)
                self.assert_same_dataset(out, whole_of[str(form)])
                shutil.rmtree(out)

    def test_while_a_writer_is_stalled_nobody_else_begins(self):
        for form in (["-s", "2"], ["--shard-bytes", "300KiB"], ["-s", "2", "--file-compression", "gzip"]):
            out, whole = self.new(), self.new()
            run(*self.command(whole, *form, copies=12))
            with self.stalled(self.command(out, *form, copies=12), out) as process:
                before = snapshot(out)
                for more in ([], ["--resume"]):
                    self.assert_refused(run(*self.command(out, *form, *more, copies=12)), out, process)
                self.assert_refused(run(*self.recode(out)), out, process)
                self.assertEqual(snapshot(out), before)
            self.assert_same_dataset(out, snapshot(whole))

    def test_while_a_recode_is_stalled_nobody_else_begins(self):
        out, whole = self.new(), self.new()
        run(*self.recode(whole))
        with self.stalled(self.recode(out), out) as process:
            before = snapshot(out)
            self.assert_refused(run(*self.recode(out, "--resume")), out, process)
            self.assertEqual(snapshot(out), before)
        self.assert_same_dataset(out, snapshot(whole))

    def test_a_sweep_owns_its_results(self):
        out = self.new()
        command = ["presto-sweep", "-q", "-p", self.pipeline, "--codecs", "none", "--threads", "1", "--stored", "resized",
                   "--samples", "30", "--runs", "3", "--run-time", "0.2", "-o", out, self.make_photos()]
        process = start(*command)
        try:
            self.assertTrue(self.wait_until(process, lambda: is_owned(out)))
            stop(process)
            self.assert_refused(run(*command), out, process)
        finally:
            process.send_signal(signal.SIGCONT)
            self.finish(process)
        self.assertEqual(process.returncode, 0)
        self.assertFalse((out / LOCK).exists())
        self.assertEqual(run(*command, "--force").returncode, 0)

    def test_a_killed_writer_is_in_nobodys_way(self):
        for resumed in (["-s", "8"], ["--shard-bytes", "100KiB"]):
            whole = self.new()
            run(*self.command(whole, *resumed, copies=12))
            out = self.new()
            self.kill_while_it_writes(self.command(out, *resumed, copies=12), out)
            self.assertTrue((out / LOCK).exists())
            done = run(*self.command(out, *resumed, "--resume", copies=12))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assert_same_dataset(out, snapshot(whole))

    def test_a_writer_whose_folder_was_taken_away_touches_nothing_of_the_next_one(self):
        out = self.new()
        first = start(*self.command(out, "-s", "2", copies=12))
        self.assertTrue(self.wait_until(first, lambda: list(out.glob(".*data-*.partial"))))
        stop(first)
        shutil.rmtree(out)
        self.assertEqual(run(*self.command(out, "-s", "2")).returncode, 0)
        before = snapshot(out)
        first.send_signal(signal.SIGCONT)
        _, err = self.finish(first)
        self.assertNotEqual(first.returncode, 0, err)
        self.assertIn(str(out), err)
        self.assertEqual(snapshot(out), before)

    def test_without_permission_to_lock_it_says_so(self):
        out = self.new()
        out.mkdir()
        (out / LOCK).symlink_to(self.folder / "elsewhere")
        done = run(*self.command(out))
        self.assert_fails(done, 1, out, f"cannot open {LOCK} in it")
        self.assertFalse((self.folder / "elsewhere").exists())


@unittest.skipIf(SANITIZED, "the library with the faults cannot stand before the sanitizer's")
class NoLocks(ChaosCase):
    """A file system without locks: the file decides, and a killed process has to be cleaned up after."""
    photo_count = 8

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shim = cls.folder / "fault.so"
        subprocess.run([os.environ.get("CC") or "cc", "-std=c11", "-O1", "-shared", "-fPIC", "-o", cls.shim,
                        pathlib.Path(__file__).with_name("fault.c"), "-ldl"], check=True)

    def write_with(self, code, out):
        return run("presto-write", "-q", "-p", self.pipeline, "-u", "resized", "-s", "2", "-o", out, self.make_photos(),
                   env={**os.environ, "LD_PRELOAD": str(self.shim), "PRESTO_FAULT": f"lock:1:{code}"})

    def test_what_a_killed_process_left_is_to_be_removed_by_hand(self):
        for code in (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK):
            out = self.new()
            self.assertEqual(self.write_with(code, out).returncode, 0)
            self.assertFalse((out / LOCK).exists())
            out = self.new()
            out.mkdir()
            (out / LOCK).write_text("1 elsewhere\n")
            self.assert_fails(self.write_with(code, out), 1, out / LOCK, "remove it")
            (out / LOCK).unlink()
            self.assertEqual(self.write_with(code, out).returncode, 0)

    def test_another_failure_is_told(self):
        out = self.new()
        self.assert_fails(self.write_with(errno.EIO, out), 1, out, f"cannot lock {LOCK} in it")
        self.assertFalse(out.exists())


class Unfinished(ChaosCase):
    """A dataset that is not whole is not read as if it were."""
    photo_count = 40

    def unfinished(self, *form):
        out = self.new()
        process = start("presto-write", "-q", "-p", self.pipeline, "-u", "resized", *form, "-j", "1", "-o", out,
                        *[self.make_photos()] * 40)
        until = time.monotonic() + 60
        while process.poll() is None and not list(out.glob("*data-*.tfrecord")) and time.monotonic() < until:
            pass
        process.kill()
        self.finish(process)
        self.assertFalse((out / "dataset.json").exists(), "the run was over before it could be killed")
        return out

    def test_it_is_refused_by_name_and_its_shards_are_not(self):
        for form in (["-s", "20"], ["--shard-bytes", "50KiB"]):
            out = self.unfinished(*form)
            for command in (["presto-load", "--format", "null", out], ["presto-load", "--explain", out],
                            ["presto-load", "--format", "null", "-p", self.pipeline, "--from", "resized", out],
                            ["presto-load", "--format", "null", "--raw-records", out],
                            ["presto-inspect", "info", out], ["presto-inspect", out], ["presto-inspect", "verify", out],
                            ["presto-inspect", "index", out], ["presto-inspect", "info", out.parent / "." / out.name],
                            ["presto-inspect", "recode", "-q", "-o", self.new(), out]):
                done = run(*command)
                self.assert_fails(done, 1, out.name, "is an unfinished dataset", "--resume")
            outer = self.new()
            outer.mkdir()
            shutil.copytree(out, outer / "inner")
            self.assert_fails(run("presto-load", "--format", "null", outer), 1, outer / "inner", "is an unfinished dataset")
            for shard in shards(out):
                self.assertEqual(run("presto-load", "--format", "null", shard).returncode, 0)
                self.assertEqual(run("presto-inspect", "verify", shard).returncode, 0)


class SharedCache(ChaosCase):
    """What another user puts into a cache's folder never reaches a stream."""
    photo_count = 12

    def setUp(self):
        self.folder.chmod(0o755)

    def load_through(self, cache, **options):
        arguments = ["-q", "-j", "1", "-b", "4", "--format", "npy", "--features", "image", "-p", self.pipeline, "--to",
                     "pixel-centered", self.make_photos()]
        stats = self.new("stats")
        done = run("presto-load", "--cache", f"disk:{cache}:10MiB", "--stats", stats, *arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, json.loads(stats.read_text())["cached_samples"]

    def forge(self, path, to):
        """Other pixels, with all CRCs right."""
        block = bytearray(path.read_bytes())
        (count,), (table,) = struct.unpack_from("<I", block, 12), struct.unpack_from("<Q", block, 40)
        for i in range(count):
            _, at, _ = struct.unpack_from("<QII", block, table + 16 * i)
            at *= 64
            (size,) = struct.unpack_from("<Q", block, at + 16)
            block[at + size - 4000:at + size - 3000] = bytes(1000)
            struct.pack_into("<I", block, at, crc32c(bytes(block[at + 4:at + size])))
        to.write_bytes(block)

    def forge_all(self, cache):
        blocks = list(cache.glob("presto-*.block"))
        self.assertNotEqual(blocks, [])
        for block in blocks:
            self.forge(block, block)
        return blocks

    def test_a_block_of_ones_own_is_believed(self):
        """The forgery itself works: as one's own file it is believed."""
        cache = self.new("cache")
        whole, _ = self.load_through(cache)
        self.forge_all(cache)
        forged, cached = self.load_through(cache)
        self.assertEqual(cached, self.photo_count)
        self.assertNotEqual(forged, whole)

    def test_blocks_of_another_user_are_left_alone(self):
        cache = self.new("cache")
        whole, _ = self.load_through(cache)
        blocks = self.forge_all(cache)
        as_nobody()
        for block in blocks:
            os.chown(block, 65534, 65534)
        self.assertEqual(self.load_through(cache), (whole, 0))
        self.assertEqual([block for block in blocks if not block.exists()], [])

    def test_blocks_that_others_may_write_to_are_made_anew(self):
        cache = self.new("cache")
        whole, _ = self.load_through(cache)
        for mode in (0o620, 0o602):
            for block in self.forge_all(cache):
                block.chmod(mode)
            self.assertEqual(self.load_through(cache), (whole, 0))
            self.assertEqual(self.load_through(cache), (whole, self.photo_count))

    def test_in_a_folder_for_all_each_has_his_own(self):
        for mode in (0o1777, 0o777, 0o775):
            cache = self.new("cache")
            cache.mkdir()
            cache.chmod(mode)
            whole, cached = self.load_through(cache)
            self.assertEqual(cached, 0)
            own = cache / f"presto-{os.geteuid()}"
            self.assertEqual(list(cache.iterdir()), [own])
            self.assertEqual(own.stat().st_mode & 0o777, 0o700)
            blocks = list(own.iterdir())
            self.assertEqual({block.stat().st_mode & 0o777 for block in blocks}, {0o600})
            self.assertEqual(self.load_through(cache), (whole, self.photo_count))
            for block in blocks:
                self.forge(block, cache / block.name)
            self.assertEqual(self.load_through(cache), (whole, self.photo_count))

    def test_a_folder_that_another_user_planted_is_refused(self):
        nobody = as_nobody()
        cache = self.new("cache")
        cache.mkdir()
        cache.chmod(0o1777)
        own = cache / f"presto-{os.geteuid()}"
        for command, part in ((["mkdir", own], "others may write to it"), (["ln", "-s", "/tmp", own], "cannot open")):
            subprocess.run([*nobody, *command], check=True)
            done = run("presto-load", "--cache", f"disk:{cache}:10MiB", "--format", "null", "-p", self.pipeline,
                       self.make_photos())
            self.assert_fails(done, 1, own, part)
            own.rmdir() if own.is_dir() and not own.is_symlink() else own.unlink()


if __name__ == "__main__":
    main()
