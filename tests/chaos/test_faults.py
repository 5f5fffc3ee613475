#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The k-th call of the C library fails, for every k: a clean error or the right result, never anything between.

fault.c is preloaded and says which call. Memory is asked for too often to fail every request in each run:
PRESTO_CHAOS_ALL=1 does, otherwise some at random and the first ones are tried.
"""
import errno
import os
import re
import resource
import shutil
import signal
import subprocess
import time

from chaos import TOOLS, WATCHDOG_S, FaultCase, main, run, seeded, shards, snapshot, unnamed_shards

ALL = os.environ.get("PRESTO_CHAOS_ALL", "") not in ("", "0")
# What each kind of call fails with.
ERRNOS = {"malloc": errno.ENOMEM, "open": errno.EMFILE, "read": errno.EIO, "write": errno.ENOSPC, "sync": errno.EIO,
          "close": errno.EIO, "rename": errno.EIO, "unlink": errno.EIO, "mkdir": errno.ENOSPC, "map": errno.ENOMEM,
          "stat": errno.EIO, "folder": errno.EMFILE, "thread": errno.ENOMEM, "lock": errno.EIO, "process": errno.EAGAIN}


class Faults(FaultCase):
    photo_count = 6
    classes = 2

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.random = seeded(cls.__name__)
        cls.dataset = cls.write("-u", "resized", "-c", "zstd:1", "-s", "2")

    def numbers(self, count, some):
        """Which of the calls to let fail: every one if they are not too many."""
        if ALL or count <= some:
            return range(1, count + 1)
        return sorted(set(range(1, some // 4)) | set(self.random.sample(range(1, count + 1), some - some // 4)))

    def faults(self, counts, kinds, some=8):
        for call in kinds:
            for number in self.numbers(counts[call], some):
                for more in ("", "+") if call in ("write", "malloc", "open") else ("",):
                    yield f"{call}:{number}:{ERRNOS[call]}{more}"

    def codes(self, fault):
        """How it may fail. A folder of which nobody can tell that it is one is refused as an argument."""
        return (1, 2, 3) if fault.startswith("stat") else (1, 3)

    # ---- presto-write ----

    BY_SIZE = ("--shard-bytes", "20KiB")  # two samples each
    AT_ONCE = ({"threads": 3}, {"threads": 2, "shards": ("-s", "3", "--file-compression", "gzip")})

    def conversion(self, out, codec="zstd:1", threads=1, copies=1, shards=("-s", "3")):
        return ["-q", "-p", self.pipeline, "-u", "resized", "-c", codec, *shards, "-j", threads, "-o", out,
                *[self.make_photos()] * copies]

    def check_failed_conversion(self, fault, settings, whole):
        out = self.new()
        done = self.run_with(fault, "presto-write", *self.conversion(out, **settings))
        if done.returncode == 0:
            self.assertEqual(done.stderr, "", fault)
            if (out / ".presto.lock").exists():  # nobody holds it, so that it is in nobody's way
                self.assertRegex(fault, "^(unlink|stat)")
                self.assertEqual(run("presto-write", "--resume", *self.conversion(out, **settings)).returncode, 0)
        else:
            self.assert_clean_failure(done.returncode, done.stderr, message=fault)
            self.assert_nothing_false(out, whole, fault)
            if not fault.startswith("unlink"):  # all was done but to tidy up
                self.assertFalse((out / "dataset.json").exists(), f"{fault}: {done.stderr}")
            done = run("presto-write", "--resume", *self.conversion(out, **settings))
            self.assertEqual((done.returncode, done.stderr), (0, ""), fault)
        if fault.startswith("stat"):
            self.take_input_from(whole["dataset.json"], out)
        self.assert_same_dataset(out, whole, fault)
        shutil.rmtree(out)

    def take_input_from(self, whole, out):
        """A file that could be read but not looked at is without its size in the digest of the input."""
        pattern, path = rb'"input": "[0-9a-f]{16}"', out / "dataset.json"
        text, count = re.subn(pattern, re.search(pattern, whole)[0], path.read_bytes())
        self.assertEqual(count, 1)
        path.write_bytes(text)

    def check_conversions(self, kinds, settings, some=10):
        out = self.new()
        counts = self.count("presto-write", *self.conversion(out, **settings))
        whole = snapshot(out)
        for fault in self.faults(counts, kinds, some):
            with self.subTest(fault=fault, **settings):
                self.check_failed_conversion(fault, settings, whole)

    def test_a_conversion_survives_any_failing_call_on_files(self):
        self.check_conversions([c for c in ERRNOS if c not in ("malloc", "thread")], {})

    def test_a_conversion_to_shards_of_a_size_survives_any_failing_call(self):
        self.check_conversions([c for c in ERRNOS if c not in ("malloc", "thread")], {"shards": self.BY_SIZE})
        self.check_conversions(["malloc"], {"shards": self.BY_SIZE}, some=12)

    def test_a_conversion_of_several_shards_at_once_survives_any_failing_call(self):
        for settings in self.AT_ONCE:
            with self.subTest(**settings):
                self.check_conversions(ERRNOS, settings, some=8)

    def test_a_conversion_survives_any_lack_of_memory_and_threads(self):
        self.check_conversions(["malloc", "thread"], {"threads": 2}, some=12)
        self.check_conversions(["malloc"], {"threads": 1, "codec": "gzip"}, some=10)

    def test_calls_that_do_less_or_are_interrupted_change_nothing(self):
        out = self.new()
        counts = self.count("presto-write", *self.conversion(out))
        whole = snapshot(out)
        for call in ("read", "write"):
            for number in self.numbers(counts[call], 10):
                for what in ("short", errno.EINTR):
                    out, fault = self.new(), f"{call}:{number}:{what}"
                    done = self.run_with(fault, "presto-write", *self.conversion(out))
                    self.assertEqual((done.returncode, done.stderr), (0, ""), fault)
                    self.assert_same_dataset(out, whole, fault)

    def check_killed_before_calls(self, kinds, settings, resumed=None):
        out = self.new()
        counts = self.count("presto-write", *self.conversion(out, **settings))
        whole, killed, tried = snapshot(out), 0, 0
        # Shards that are finished at about the same time are noted together: then the last calls are never made.
        codes = (-signal.SIGKILL, 0)
        for call in kinds:
            for number in self.numbers(counts[call], 16):
                tried += 1
                out, fault = self.new(), f"{call}:{number}:kill"
                done = self.run_with(fault, "presto-write", *self.conversion(out, **settings))
                self.assertIn(done.returncode, codes, f"{fault}: {done.stderr}")
                killed += done.returncode != 0
                self.assert_nothing_false(out, whole, fault)
                if resumed:
                    resumed(out, number)
                    self.assert_nothing_false(out, whole, fault)
                done = run("presto-write", "--resume", *self.conversion(out, **settings))
                self.assertEqual((done.returncode, done.stderr), (0, ""), fault)
                self.assert_same_dataset(out, whole, fault)
                shutil.rmtree(out)
        self.assertGreater(killed, tried // 2)

    KINDS = ("open", "write", "sync", "close", "rename", "unlink", "mkdir")

    def test_killed_before_any_call_on_files_it_resumes_to_the_same_bytes(self):
        """Interrupted again where the first run was at its most fragile, then let through."""
        for settings in ({}, {"shards": self.BY_SIZE}, *self.AT_ONCE):
            with self.subTest(**settings):
                self.check_killed_before_calls(self.KINDS, settings, lambda out, number: self.run_with(
                    f"write:{1 + number % 3}:term", "presto-write", "--resume", *self.conversion(out, **settings)))

    MANY = (("-s", "150"), ("--shard-bytes", "1"), ("-s", "150", "--file-compression", "gzip"))

    def test_killed_while_the_progress_file_lags_it_resumes_to_the_same_bytes(self):
        for many in self.MANY:
            with self.subTest(shards=many):
                self.check_killed_before_calls(["rename"], {"shards": many, "threads": 3, "copies": 25})

    def test_the_progress_file_of_many_shards_is_not_written_after_each(self):
        for many in self.MANY:
            with self.subTest(shards=many):
                out = self.new()
                started = time.monotonic()
                counts = self.count("presto-write", *self.conversion(out, shards=many, threads=3, copies=25))
                seconds = time.monotonic() - started
                named = 4 if many[0] == "--shard-bytes" else 2  # the shard and its index, by size twice
                written = counts["rename"] - named * len(shards(out)) - 1  # dataset.json
                # When the folder is made, up to 64 times, once a second, at the end.
                self.assertGreaterEqual(written, 65 if many[0] == "--shard-bytes" else 3)
                self.assertLessEqual(written, 66 + int(seconds) + 1)

    def test_killed_twice_while_shards_are_renamed_they_have_their_names_in_the_end(self):
        settings = {"shards": self.BY_SIZE}
        self.check_killed_before_calls(["rename"], settings, lambda out, number: self.run_with(
            f"rename:{1 + number % 4}:kill", "presto-write", "--resume", *self.conversion(out, **settings)))

    def test_a_shard_that_is_gone_when_the_others_have_their_names_is_made_anew(self):
        settings = {"shards": self.BY_SIZE, "copies": 2}

        def remove_one(out, number):
            standing = [*shards(out), *unnamed_shards(out)]
            if standing:
                standing[number % len(standing)].unlink()
        self.check_killed_before_calls(["rename"], settings, remove_one)

    def test_interrupted_before_any_call_it_cleans_up(self):
        out = self.new()
        counts = self.count("presto-write", *self.conversion(out))
        for call in ("open", "write", "sync", "rename"):
            for number in self.numbers(counts[call], 8):
                out, fault = self.new(), f"{call}:{number}:int"
                done = self.run_with(fault, "presto-write", *self.conversion(out))
                self.assertEqual(done.returncode, -signal.SIGINT, f"{fault}: {done.stderr}")
                names = {p.name for p in out.iterdir()} if out.exists() else set()
                self.assertEqual([n for n in names if n.endswith(".partial")], [], fault)

    def test_listing_that_is_stuck_ends_at_once(self):
        source, foreign = self.make_photos(), self.new("foreign")
        shutil.copytree(self.dataset, foreign, ignore=shutil.ignore_patterns("*.json", "*.index"))
        for program, words, output in (
                ("presto-write", ["-q", "-p", self.pipeline, "-u", "resized", source, source], True),
                ("presto-inspect", ["recode", foreign], True),
                ("presto-inspect", ["info", foreign], False),
                ("presto-load", ["-q", "--format", "null", foreign], False)):
            for fault in ("folder:1:stuck", "stat:3:stuck"):
                with self.subTest(program=program, words=words[:1], fault=fault):
                    out = self.new()
                    done = self.run_with(fault, program, *words, *(["-o", out] if output else []))
                    self.assertEqual((done.returncode, done.stderr), (-signal.SIGINT, ""))
                    self.assertFalse(out.exists())

    # ---- presto-load ----

    def check_failed_load(self, fault, arguments, whole):
        done = self.run_with(fault, "presto-load", *arguments)
        if done.returncode == 0:
            self.assertEqual((done.stderr, done.stdout == whole), ("", True), fault)
        else:
            self.assert_clean_failure(done.returncode, done.stderr, self.codes(fault), fault)
            self.assertTrue(whole.startswith(done.stdout), fault)

    def check_loads(self, kinds, *arguments, some=10):
        whole = self.load(*arguments)
        counts = self.count("presto-load", *arguments)
        for fault in self.faults(counts, kinds, some):
            with self.subTest(fault=fault):
                self.check_failed_load(fault, arguments, whole)

    def test_loading_survives_any_failing_call_on_files(self):
        kinds = [c for c in ERRNOS if c not in ("malloc", "thread")]
        self.check_loads(kinds, "-q", "-j", "1", self.dataset)
        self.check_loads(kinds, "-q", "-j", "1", "-p", self.pipeline, "--format", "npy", self.make_photos())

    def test_loading_foreign_files_survives_any_failing_call(self):
        """No dataset.json, and names that say nothing: what cannot be looked into is not passed over."""
        foreign = self.new("foreign")
        foreign.mkdir()
        for number, path in enumerate(shards(self.dataset)):
            shutil.copy(path, foreign / f"samples.{number}")
        self.check_loads([*(c for c in ERRNOS if c != "thread")], "-q", "-j", "1", "--raw-records", foreign)

    def test_tfrecords_of_others_survive_any_failing_call_and_no_half_index_is_kept(self):
        """Through a pipeline, with indexes kept beside the files and apart. Keeping may fail: that changes nothing."""
        foreign, stored = self.new("foreign"), self.write("-u", "concatenated", "-s", "2")
        foreign.mkdir()
        for number, path in enumerate(shards(stored)):
            shutil.copy(path, foreign / f"samples.{number}")
        apart, home = self.new("apart"), self.new("home")
        kinds = [c for c in ERRNOS if c not in ("malloc", "thread")]
        before = os.environ.get("XDG_CACHE_HOME")
        os.environ["XDG_CACHE_HOME"] = str(home)  # for indexes that cannot be written beside the files
        self.addCleanup(lambda: os.environ.update({"XDG_CACHE_HOME": before}) if before else os.environ.pop("XDG_CACHE_HOME"))

        def forget():
            for path in foreign.glob("*.index"):
                path.unlink()
            for folder in (apart, home):
                shutil.rmtree(folder, ignore_errors=True)

        for how, where in (("keep", foreign), (f"keep:{apart}", apart)):
            for order in ([], ["--shuffle", "full"]):
                arguments = ["-q", "-j", "1", "-p", self.pipeline, "--from", "concatenated", "--feature", "image", "--index", how,
                             *order, foreign]
                forget()
                whole = self.load(*arguments)
                indexes = {p.name: p.read_bytes() for p in where.glob("*.index")}
                self.assertEqual(len(indexes), 2)
                forget()
                counts = self.count("presto-load", *arguments)
                for fault in self.faults(counts, [*kinds, "malloc"], 4):
                    with self.subTest(fault=fault, how=how, order=order):
                        forget()
                        self.check_failed_load(fault, arguments, whole)
                        kept = {p.name: p.read_bytes() for p in where.glob("*.index")} if where.exists() else {}
                        self.assertLessEqual(kept.items(), indexes.items())
                        self.assertEqual([*foreign.glob(".*.partial"), *apart.glob(".*.partial")], [])
                        self.assertEqual(self.load(*arguments), whole)

    def test_loading_survives_any_lack_of_memory_and_threads(self):
        self.check_loads(["malloc", "thread"], "-q", "-j", "3", "-e", "2", self.dataset, some=12)
        self.check_loads(["malloc", "thread"], "-q", "-j", "2", "--format", "npy", "-b", "4", "--shuffle", "buffer:3",
                         self.dataset, some=12)
        self.check_loads(["malloc"], "-q", "-j", "0", "-p", self.pipeline, self.make_photos(), some=12)

    def test_loading_takes_calls_that_do_less_or_are_interrupted(self):
        arguments = ["-q", "-j", "1", "-e", "2", self.dataset]
        whole = self.load(*arguments)
        counts = self.count("presto-load", *arguments)
        for call in ("read", "write"):
            for number in self.numbers(counts[call], 10):
                for what in ("short", errno.EINTR):
                    fault = f"{call}:{number}:{what}"
                    done = self.run_with(fault, "presto-load", *arguments)
                    self.assertEqual((done.returncode, done.stderr, done.stdout == whole), (0, "", True), fault)

    def check_cached_loads(self, kinds, warm, threads, some=10):
        """A cache that cannot be made is an error; whatever else fails in it changes nothing."""
        arguments = ["-q", "-j", threads, "-e", "2", "--format", "npy", "-p", self.pipeline, self.make_photos()]
        whole = self.load(*arguments)
        cache = self.new("cache")
        if warm:
            self.load("--cache", f"disk:{cache}:1MiB", *arguments)
        else:
            cache.mkdir()
        kept = self.new("kept")
        shutil.copytree(cache, kept)
        cached = ["--cache", f"disk:{cache}:1MiB", *arguments]
        counts = self.count("presto-load", *cached)
        for fault in self.faults(counts, kinds, some):
            with self.subTest(fault=fault, warm=warm):
                shutil.rmtree(cache)
                shutil.copytree(kept, cache)
                self.check_failed_load(fault, cached, whole)
                self.assertTrue(self.load(*cached) == whole, fault)
                self.assertEqual([p.name for p in cache.iterdir() if "partial" in p.name], [], fault)

    def test_loading_through_a_cache_survives_any_failing_call(self):
        kinds = [c for c in ERRNOS if c not in ("malloc", "thread")]
        for warm in (False, True):
            self.check_cached_loads(kinds, warm, 1)
            self.check_cached_loads(["malloc", "thread"], warm, 2)

    def test_loading_through_a_cache_takes_calls_that_do_less_or_are_interrupted(self):
        cache = self.new("cache")
        arguments = ["-q", "-j", "1", "-e", "2", "--format", "npy", "-p", self.pipeline, self.make_photos()]
        whole = self.load(*arguments)
        cached = ["--cache", f"disk:{cache}:1MiB", *arguments]
        counts = self.count("presto-load", *cached)
        for call in ("read", "write"):
            for number in self.numbers(counts[call], 10):
                for what in ("short", errno.EINTR):
                    shutil.rmtree(cache)
                    done = self.run_with(f"{call}:{number}:{what}", "presto-load", *cached)
                    self.assertEqual((done.returncode, done.stderr, done.stdout == whole), (0, "", True))

    def test_a_step_of_another_program_survives_any_failing_call(self):
        """cat repeats its request, so the stream is the one without it."""
        text = "name: t\nsource: {type: files, match: ['*.jpg']}\nsteps:\n  - {step: read-file, yields: concatenated}\n"
        plain, pipeline = self.new("plain.yaml"), self.new("command.yaml")
        plain.write_text(text)
        pipeline.write_text(text + "  - {step: command, run: [cat], output: string, workers: 2}\n")
        arguments = ["-q", "-p", pipeline, self.make_photos()]
        self.assertEqual(self.load(*arguments), self.load("-q", "-p", plain, self.make_photos()))
        self.assertGreaterEqual(self.count("presto-load", "-j", "1", *arguments)["process"], 4)
        self.check_loads([c for c in ERRNOS if c not in ("malloc", "thread")], "-j", "1", *arguments, some=12)
        self.check_loads(["malloc", "thread", "process"], "-j", "3", *arguments)
        for fault in ("read:7:short", "write:3:short", f"read:7:{errno.EINTR}", f"write:3:{errno.EINTR}"):
            done = self.run_with(fault, "presto-load", "-j", "1", *arguments)
            self.assertEqual((done.returncode, done.stderr, done.stdout == self.load(*arguments)), (0, "", True), fault)

    # ---- presto-inspect ----

    def check_failed_inspection(self, fault, arguments, said, output, made):
        """Damage is told on stdout with exit code 3, what failed on stderr; else it is said as without the fault."""
        if output:
            output.unlink(missing_ok=True)
        done = self.run_with(fault, "presto-inspect", *arguments)
        self.assertIn(done.returncode, (0, *self.codes(fault)), done.stderr)
        if done.returncode == 0:
            # Without the index file, offsets come from the headers.
            without_index = done.stdout.replace(b'"indexed": false', b'"indexed": true')
            self.assertEqual(without_index, said[0])
            self.assertRegex(done.stderr, rf"\A{re.escape(said[1])}(presto-inspect: .*\.index: .*\n)?\Z")
        elif arguments[0] == "verify":  # what it cannot read it lists as a fault
            self.assertRegex(done.stdout.decode() + done.stderr, r"(^|\n)(presto-inspect|/.*): .*\n")
        else:
            self.assert_clean_failure(done.returncode, done.stderr, self.codes(fault))
        if output and (output.exists() or done.returncode == 0):
            self.assertEqual(output.read_bytes(), made)
            self.assertEqual([p.name for p in output.parent.iterdir() if p.name.endswith(".partial")], [])

    def check_inspections(self, *arguments, kinds=tuple(ERRNOS), some=7, output=None):
        done = run("presto-inspect", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        made = output.read_bytes() if output else None
        if output:
            output.unlink()
        counts = self.count("presto-inspect", *arguments)
        for fault in self.faults(counts, kinds, some):
            with self.subTest(fault=fault):
                self.check_failed_inspection(fault, arguments, (done.stdout, done.stderr), output, made)

    def test_inspecting_survives_any_failing_call(self):
        shard = shards(self.dataset)[0]
        for command in (["info", self.dataset], ["info", "--json", self.dataset], ["verify", self.dataset],
                        ["cat", "--json", shard]):
            with self.subTest(command=command[:-1]):
                self.check_inspections(*command)

    def test_repairing_survives_any_failing_call(self):
        folder = self.new("repaired")
        folder.mkdir()
        output = folder / "out.tfrecord"
        self.check_inspections("repair", shards(self.dataset)[0], "-o", output, output=output)

    def test_interrupted_indexing_leaves_the_index_or_nothing(self):
        folder = self.new("foreign")
        folder.mkdir()
        shard = shutil.copy(shards(self.dataset)[0], folder / "a.tfrecord")
        for choice, output in (([], folder / "a.tfrecord.index"), (["--dali"], folder / "a.tfrecord.idx")):
            command = ["index", *choice, shard]
            self.assertEqual(run("presto-inspect", *command).returncode, 0)
            whole = output.read_bytes()
            output.unlink()  # an index that is there is opened, too
            counts = self.count("presto-inspect", *command)
            for call in ("open", "write", "sync", "rename", "close"):
                self.assertGreater(counts[call], 0)
                for number in range(1, counts[call] + 1):
                    output.unlink(missing_ok=True)
                    fault = f"{call}:{number}:int"
                    done = self.run_with(fault, "presto-inspect", *command)
                    self.assertEqual(done.returncode, -signal.SIGINT, f"{fault}: {done.stderr}")
                    self.assertLessEqual({p.name for p in folder.iterdir()}, {"a.tfrecord", output.name}, fault)
                    if output.exists():
                        self.assertEqual(output.read_bytes(), whole, fault)
            output.unlink(missing_ok=True)

    # ---- full disks ----

    def limited(self, limit_bytes, program, *arguments, ignore=True):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN if ignore else signal.SIG_DFL)
        return run(program, *arguments, preexec_fn=limit)

    def test_a_limit_on_the_size_of_files_is_an_error_like_any_other(self):
        out = self.new()
        self.assertEqual(run("presto-write", *self.conversion(out)).returncode, 0)
        whole = snapshot(out)
        for ignore in (True, False):
            for limit_bytes in (0, 1, 100, 1000, max(map(len, whole.values())) - 1):
                out = self.new()
                done = self.limited(limit_bytes, "presto-write", *self.conversion(out), ignore=ignore)
                self.assert_clean_failure(done.returncode, done.stderr, (1,))
                self.assertIn("File too large", done.stderr)
                self.assert_nothing_false(out, whole)
                self.assertFalse((out / "dataset.json").exists())
                done = run("presto-write", "--resume", *self.conversion(out))
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assert_same_dataset(out, whole)

    def test_a_full_disk_is_an_error_and_room_lets_it_resume(self):
        """On a small file system of its own."""
        place, copy = self.new("disk"), self.new()
        place.mkdir()
        script = ('mount -t tmpfs -o size="$1" none "$2" || exit 99; shift; place=$1; copy=$2; shift 2; '
                  '"$@"; code=$?; ls -A "$place/out" >&2; mount -o remount,size=64m "$place"; '
                  'shift; "$TOOLS/presto-write" --resume "$@" || exit 98; cp -a "$place/out" "$copy"; exit $code')
        if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", place], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("mounting is not permitted here")
        out = self.new()
        self.assertEqual(run("presto-write", *self.conversion(out)).returncode, 0)
        whole = snapshot(out)
        total_kib = sum(p.stat().st_size for p in out.iterdir()) // 1024
        for size_kib in sorted({4, 12, total_kib // 3, total_kib // 2, total_kib - 8}):
            done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", f"{size_kib}k", place, copy,
                                   TOOLS / "presto-write", *map(str, self.conversion(place / "out"))],
                                  env={**os.environ, "TOOLS": str(TOOLS)}, stderr=subprocess.PIPE, timeout=WATCHDOG_S)
            message, *names = done.stderr.decode().splitlines()
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(message, r"^presto-write: .*No space left on device", message)
            self.assertNotIn("dataset.json", names)
            self.assert_same_dataset(copy, whole, f"{size_kib} KiB")
            shutil.rmtree(copy)


if __name__ == "__main__":
    main()
