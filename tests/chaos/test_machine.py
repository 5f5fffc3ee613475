#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""With --on-error skip, a failure of the machine is no bad sample: it is tried again, or the job fails.

fault.c is preloaded and lets one call fail, once or from then on.
"""
import errno
import json
import os
import pathlib
import re
import resource
import signal
import time

from chaos import WATCHDOG_S, FaultCase, frames, main, run, snapshot, start

PASSING = (errno.EMFILE, errno.ENFILE, errno.EINTR, errno.EAGAIN, errno.ESTALE)
LASTING = (errno.ENOMEM, errno.EIO, errno.ENOSPC, errno.ENODEV)
OF_THE_FILE = (errno.ENOENT, errno.EACCES, errno.EPERM)


class Machine(FaultCase):
    photo_count = 6
    classes = 2

    def arguments(self):
        return ["-q", "-j", "1", "--format", "null", "--json", "--on-error", "skip", "-p", self.pipeline,
                self.make_photos()]

    def load_with(self, fault):
        """Samples and skipped ones; None: it failed as it should."""
        done = self.run_with(fault, "presto-load", *self.arguments())
        if done.returncode == 0:
            figures = json.loads(done.stdout)
            return figures["samples"], figures["skipped"]
        self.assertEqual(done.returncode, 1, f"{fault}: {done.stderr}")
        self.assertNotIn("skipped", done.stderr, fault)
        return None

    def test_nothing_is_left_out_because_the_machine_failed_once(self):
        counts = self.count("presto-load", *self.arguments())
        for call in ("open", "read", "stat", "folder"):
            for code in PASSING + LASTING:
                ends = [self.load_with(f"{call}:{number}:{code}") for number in range(1, counts[call] + 1)]
                with self.subTest(call=call, code=errno.errorcode[code]):
                    self.assertEqual(set(ends) - {(6, 0), None}, set())
                    if call in ("open", "read") and code in PASSING:
                        self.assertGreaterEqual(ends.count((6, 0)), self.photo_count)
                    if call in ("open", "read") and code in LASTING:
                        self.assertGreaterEqual(ends.count(None), self.photo_count)

    def test_a_thread_that_cannot_start_at_first_starts_later(self):
        arguments = [*self.arguments(), "-j", "3"]
        for number in range(1, self.count("presto-load", *arguments)["thread"] + 1):
            with self.subTest(thread=number):
                done = self.run_with(f"thread:{number}:{errno.EAGAIN}", "presto-load", *arguments)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(json.loads(done.stdout)["samples"], 6)
        done = self.run_with(f"thread:1:{errno.EAGAIN}+", "presto-load", *arguments)
        self.assert_clean_failure(done.returncode, done.stderr, (1,))
        self.assertIn(os.strerror(errno.EAGAIN), done.stderr)

    def test_a_failure_that_lasts_is_the_end(self):
        counts = self.count("presto-load", *self.arguments())
        for code in PASSING + LASTING:
            with self.subTest(code=errno.errorcode[code]):
                fault = f"open:{counts['open'] - 1}:{code}+"
                done = self.run_with(fault, "presto-load", *self.arguments())
                self.assert_clean_failure(done.returncode, done.stderr, (1,), fault)
                self.assertIn(os.strerror(code), done.stderr)
                self.assertIn("photo-", done.stderr)

    def test_a_file_that_is_gone_or_closed_to_us_is_left_out(self):
        counts = self.count("presto-load", *self.arguments())
        for code in OF_THE_FILE:
            with self.subTest(code=errno.errorcode[code]):
                ends = [self.load_with(f"open:{number}:{code}") for number in range(1, counts["open"] + 1)]
                self.assertEqual(ends.count((5, 1)), self.photo_count)
                self.assertEqual(set(ends) - {(6, 0), (5, 1), None}, set())

    def test_records_that_could_not_be_read_at_first_are_not_left_out(self):
        dataset = self.write("-u", "resized", "-s", "2")
        arguments = ["-q", "-j", "1", "--format", "null", "--json", "--on-error", "skip", dataset]
        counts = self.count("presto-load", *arguments)
        for call in ("open", "read"):
            for code in PASSING + LASTING:
                for number in range(1, counts[call] + 1):
                    fault = f"{call}:{number}:{code}"
                    done = self.run_with(fault, "presto-load", *arguments)
                    if done.returncode == 0:
                        figures = json.loads(done.stdout)
                        self.assertEqual((figures["samples"], figures["skipped"]), (6, 0), fault)
                    else:
                        self.assert_clean_failure(done.returncode, done.stderr, (1, 3), fault)
                        self.assertNotIn("skipped", done.stderr, fault)

    def test_a_lack_of_memory_is_no_bad_sample(self):
        """The last requests of a run are those for its samples."""
        stored = [self.write("-u", "resized", "-s", "2", *codec) for codec in ([], ["-c", "zstd:1"])]
        for source in (["-p", self.pipeline, self.make_photos()], ["-p", self.pipeline, stored[0]], [stored[1]]):
            arguments = ["-q", "-j", "1", "--format", "null", "--json", "--on-error", "skip", *source]
            count, failed = self.count("presto-load", *arguments)["malloc"], 0
            for number in range(count - 120, count + 1):
                fault = f"malloc:{number}:{errno.ENOMEM}"
                done = self.run_with(fault, "presto-load", *arguments)
                self.assertNotIn("skipped", done.stderr, fault)
                if done.returncode == 0:
                    figures = json.loads(done.stdout)
                    self.assertEqual((figures["samples"], figures["skipped"]), (6, 0), fault)
                else:
                    self.assert_clean_failure(done.returncode, done.stderr, (1,), fault)
                    failed += 1
            self.assertGreater(failed, 0)

    def test_a_lack_of_memory_stores_all_or_fails(self):
        def command(out):
            return ["-q", "-j", "1", "-s", "2", "--on-error", "skip", "-p", self.pipeline, "-u", "resized", "-o", out,
                    self.make_photos()]
        whole = self.new()
        count = self.count("presto-write", *command(whole))["malloc"]
        for number in range(1, count + 1, 4):
            out, fault = self.new(), f"malloc:{number}:{errno.ENOMEM}"
            done = self.run_with(fault, "presto-write", *command(out))
            self.assertNotIn("skipped", done.stderr, fault)
            if done.returncode == 0:
                self.assert_same_dataset(out, snapshot(whole), fault)
            else:
                self.assert_clean_failure(done.returncode, done.stderr, (1,), fault)
                self.assert_no_dataset(out)

    def test_many_threads_and_few_descriptors_store_all_or_fail(self):
        for threads in (4, 64):
            out = self.new()
            done = run("presto-write", "-j", threads, "-s", "1", "--on-error", "skip", "-p", self.pipeline, "-u",
                       "concatenated", "-o", out, *[self.make_photos()] * 30,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (14, 14)))
            self.assertNotIn("skipped", done.stderr)
            if done.returncode == 0:
                self.assertIn("180 samples", done.stderr)
            else:
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("Too many open files", done.stderr)
                self.assert_no_dataset(out)


class Slow(FaultCase):
    photo_count = 6
    classes = 2

    def test_the_time_of_a_run_is_that_of_the_whole_program(self):
        """Half a second before the first name in a folder, or before dataset.json."""
        for fault, source in (("folder:1:late", ["-p", self.pipeline, self.make_photos()]),
                              ("open:1:late", [self.write("-u", "resized")])):
            with self.subTest(fault=fault):
                done = self.run_with(fault, "presto-load", "--format", "null", "--json", *source)
                self.assertEqual(done.returncode, 0, done.stderr)
                figures = json.loads(done.stdout)
                self.assertGreaterEqual(figures["first_sample_s"], 0.5)
                self.assertGreaterEqual(figures["wall_s"], figures["first_sample_s"])
                self.assertLessEqual(figures["samples_per_s"], self.photo_count / 0.5)
                self.assertLessEqual(figures["read_bytes_per_s"], figures["read_bytes"] / 0.5)

    def test_zeros_without_end_are_left_at_a_signal(self):
        """Where the file system cannot tell what is a hole, all of it is read."""
        hollow = self.new("hollow.tfrecord")
        data = next(self.write("-u", "resized").glob("*.tfrecord")).read_bytes()
        hollow.write_bytes(data[: 16 + len(frames(data)[0])])
        os.truncate(hollow, 8 << 40)
        environment = {**os.environ, "LD_PRELOAD": str(self.shim), "PRESTO_FAULT": f"seek:1:{errno.EINVAL}+"}
        for words in (["verify"], ["repair", "-o", self.new("repaired")]):
            for number in (signal.SIGINT, signal.SIGTERM):
                with self.subTest(command=words[0], signal=number.name):
                    process = start("presto-inspect", *words, hollow, env=environment)
                    until = time.monotonic() + WATCHDOG_S  # it is among the zeros
                    while self.read_bytes(process) < 64 << 20 and process.poll() is None and time.monotonic() < until:
                        time.sleep(0.01)
                    process.send_signal(number)
                    self.finish(process)
                    self.assertEqual(process.returncode, -number)
        self.assertEqual([p.name for p in self.folder.iterdir() if "repaired" in p.name], [])

    def read_bytes(self, process):
        return int(re.search(r"rchar: (\d+)", pathlib.Path(f"/proc/{process.pid}/io").read_text())[1])


if __name__ == "__main__":
    main()
