#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto-load: the order of the stream, its formats, its figures, and how it ends."""
import fcntl
import io
import json
import os
import pty
import signal
import struct
import subprocess
import termios
import time
import unittest

import numpy as np

from cli import GOLDEN, PHOTOS, SANITIZED, TOOLS, Case, example, frames, main, run

THREADS = (0, 1, 2, 5, 8)


def arrays(data):
    """All .npy arrays of a stream but its messages."""
    stream = io.BytesIO(data)
    found = []
    while stream.tell() < len(data):
        found.append(np.lib.format.read_array(stream))
    return [array for array in found if array.dtype.kind != "S"]


def strings(values, offsets):
    return [values[at:end].tobytes() for at, end in zip(offsets, offsets[1:])]


class Load(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.resized = cls.write("-u", "resized", "-c", "zstd:1", "-s", "3")
        cls.concatenated = cls.write("-u", "concatenated", "-s", "2")

    # ---- order ----

    def assert_same_for_all_threads(self, *arguments):
        streams = [self.load("-q", "-j", j, *arguments) for j in THREADS]
        self.assertGreater(len(streams[0]), 1000)
        for j, stream in zip(THREADS, streams):
            self.assertTrue(stream == streams[0], f"-j {j} differs from -j 0: {arguments}")
        return streams[0]

    def test_the_number_of_threads_changes_no_byte(self):
        for shuffle in ("none", "buffer:5"):
            for form in (["--format", "tfrecord"], ["--format", "npy", "-b", "5"]):
                with self.subTest(shuffle=shuffle, form=form):
                    self.assert_same_for_all_threads("--shuffle", shuffle, "--seed", "3", "-e", "2", *form,
                                                     self.resized)
        self.assert_same_for_all_threads("-p", self.pipeline, "--shuffle", "buffer:5", self.make_photos())

    def test_full_and_block_shuffles_are_the_same_for_all_threads(self):
        for shuffle in ("full", "blocks:4"):
            with self.subTest(shuffle=shuffle):
                stream = self.assert_same_for_all_threads("--shuffle", shuffle, self.concatenated)
                keys = [example(p)["key"][0] for p in frames(stream)]
                self.assertNotEqual(keys, sorted(keys))
                self.assertEqual(sorted(keys), sorted(self.keys()))

    def keys(self, *arguments):
        return [example(p)["key"][0] for p in frames(self.load("-q", *arguments, self.concatenated))]

    def test_shuffling_keeps_every_sample_once_and_its_seed_repeats(self):
        plain = self.keys()
        self.assertEqual(plain, sorted(plain))
        one = self.keys("--shuffle", "buffer:10", "--seed", "1")
        self.assertEqual(sorted(one), plain)
        self.assertNotEqual(one, plain)
        self.assertEqual(self.keys("--shuffle", "buffer:10", "--seed", "1"), one)
        self.assertNotEqual(self.keys("--shuffle", "buffer:10", "--seed", "2"), one)
        two = self.keys("--shuffle", "buffer:10", "--seed", "1", "-e", "2")
        self.assertEqual(two[: len(one)], one)
        self.assertNotEqual(two[len(one) :], one)
        self.assertEqual(sorted(two[len(one) :]), plain)

    def test_random_steps_differ_from_epoch_to_epoch_and_repeat_with_the_seed(self):
        (first, second) = np.split(
            np.concatenate(arrays(self.load("-q", "-e", "2", "--format", "npy", "--features", "image", self.resized))), 2)
        self.assertFalse(np.array_equal(first, second))
        again = np.concatenate(arrays(self.load("-q", "--format", "npy", "--features", "image", self.resized)))
        self.assertTrue(np.array_equal(first, again))
        other = np.concatenate(
            arrays(self.load("-q", "--seed", "9", "--format", "npy", "--features", "image", self.resized)))
        self.assertFalse(np.array_equal(first, other))

    def test_every_split_delivers_the_same_as_the_raw_source(self):
        online = self.load("-q", "-p", self.pipeline, self.make_photos())
        self.assertTrue(self.load("-q", self.resized) == online)
        self.assertTrue(self.load("-q", self.concatenated) == online)
        self.assertTrue(self.load("-q", self.write("-u", "pixel-centered", "-s", "5")) == online)

    def test_limit_counts_over_all_epochs(self):
        limited = self.keys("-e", "3", "--limit", str(self.photo_count + 5))
        self.assertEqual(limited, self.keys() + self.keys()[:5])
        self.assertEqual(len(self.keys("-e", "2", "--limit", "1000")), 2 * self.photo_count)

    def test_a_stream_goes_on_where_its_state_says(self):
        whole = self.load("-q", "-e", "3", "--shuffle", "buffer:7", self.resized)
        state = self.new("state")
        parts = [self.load("-q", "-e", "3", "--shuffle", "buffer:7", "--state", state, "-j", j, *limit, self.resized)
                 for j, limit in [(2, ["--limit", "5"]), (0, ["--limit", "31"]), (5, ["--limit", "1"]), (1, [])]]
        self.assertEqual([len(frames(part)) for part in parts], [5, 31, 1, 3 * self.photo_count - 37])
        self.assertTrue(b"".join(parts) == whole)
        done = run("presto-load", "-e", "3", "--shuffle", "buffer:7", "--state", state, self.resized)
        self.assertEqual((done.returncode, done.stdout), (0, b""))
        self.assertIn("nothing remains", done.stderr)

    def test_threads_are_found_and_change_nothing(self):
        order = ["-e", "20", "--shuffle", "full", "-b", "5", "--format", "npy", self.resized]
        wanted = self.load("-q", "-j", "1", *order)
        stats_file = self.new("stats")
        cpus = sorted(os.sched_getaffinity(0))
        for count in {1, len(cpus)}:
            done = run("presto-load", "-j", "auto", "--stats", stats_file, *order,
                       preexec_fn=lambda: os.sched_setaffinity(0, cpus[:count]))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stdout == wanted)
            stats = json.loads(stats_file.read_text())
            self.assertTrue(stats["auto_threads"])
            self.assertGreaterEqual(stats["threads"], 1)
            self.assertLessEqual(stats["threads"], max(64, 4 * count))
            self.assertRegex(done.stderr, rf"presto-load: auto: {stats['threads']} threads?\n$")
        self.assertFalse(json.loads(self.load("--json", "-j", "2", "--format", "null", self.resized))["auto_threads"])
        self.assert_usage(run("presto-load", "-j", "automatic", self.resized), "--threads")

    def test_a_state_is_kept_while_the_stream_runs(self):
        """Killed at any moment, the stream goes on at or before the place where it was read to."""
        order = ["-q", "-e", "20", "--shuffle", "full", "-b", "5", self.resized]
        whole = self.load(*order)
        for interval, pause in (("0", 0.3), ("0.05", 0.5)):
            state = self.new("state")
            process = subprocess.Popen([TOOLS / "presto-load", "--state", state, "--state-interval", interval, *order],
                                       stdout=subprocess.PIPE)
            first = process.stdout.read(200000)
            deadline = time.monotonic() + 60
            while not state.exists() and time.monotonic() < deadline:
                first += process.stdout.read1(1 << 16)
            time.sleep(pause / 10)
            process.kill()
            first += process.stdout.read()
            process.stdout.close()
            process.wait()
            json.loads(state.read_text())  # whole at any moment
            rest = self.load("--state", state, *order)
            self.assertTrue(whole.endswith(rest))
            self.assertTrue(whole.startswith(first))
            self.assertLessEqual(len(whole) - len(rest), len(first))
            self.assertEqual([p for p in state.parent.glob(state.name + ".*") if str(process.pid) not in p.name], [])
        self.assert_usage(run("presto-load", "--state-interval", "5", self.resized), "--state")
        self.assert_usage(run("presto-load", "--state", "x", "--state-interval", "-5", self.resized), "--state-interval")

    def test_a_state_of_something_else_is_refused(self):
        state = self.new("state")
        self.load("-q", "--limit", "5", "--state", state, self.resized)
        self.assert_fails(run("presto-load", "--seed", "3", "--state", state, self.resized), 2, state.name, "seed")
        self.assert_fails(run("presto-load", "--state", state, self.concatenated), 2, state.name)
        state.write_text("no state")
        self.assert_fails(run("presto-load", "--state", state, self.resized), 3, state.name)

    def test_a_cache_changes_no_byte(self):
        for form in (["npy", "-b", "5"], ["raw"]):
            arguments = ["-q", "-e", "3", "--shuffle", "buffer:5", "--format", *form, "-p", self.pipeline]
            plain = self.load(*arguments, self.make_photos())
            for size in ("1GiB", "20KiB"):
                self.assertTrue(self.load("--cache", f"memory:{size}", *arguments, self.make_photos()) == plain)
        stats = json.loads(self.load("-j", "0", "-e", "3", "--cache", "memory:1GiB", "--format", "null", "--json", "-p", self.pipeline,
                                     self.make_photos()))
        self.assertEqual(stats["cached_samples"], 2 * self.photo_count)
        busy = {step["step"]: step["samples"] for step in stats["steps"]}
        self.assertEqual((busy["decode-image"], busy["random-crop"]), (self.photo_count, 3 * self.photo_count))

    def test_ranks_are_disjoint_and_complete(self):
        shares = [self.keys("--rank", r, "--world", 3) for r in range(3)]
        self.assertEqual(sorted(sum(shares, [])), sorted(self.keys()))
        self.assertEqual({len(share) for share in shares}, {self.photo_count // 3})

    # ---- formats ----

    def test_npy_has_main_feature_label_and_key_of_each_batch(self):
        found = arrays(self.load("-q", "--format", "npy", "-b", "10", self.resized))
        self.assertEqual(len(found), 3 * 4)
        photos = sorted(self.make_photos().rglob("*.jpg"))
        classes = sorted({p.parent.name for p in photos})
        at = 0
        for image, label, values, offsets in zip(found[0::4], found[1::4], found[2::4], found[3::4]):
            rows = min(10, self.photo_count - at)
            self.assertEqual((image.dtype, image.shape), (np.dtype("<f4"), (rows, 32, 40, 3)))
            self.assertLessEqual(np.abs(image).max(), 1)
            self.assertEqual((label.dtype, label.shape), (np.dtype("<i8"), (rows,)))
            expected = photos[at : at + rows]
            self.assertEqual(list(label), [classes.index(p.parent.name) for p in expected])
            self.assertEqual((values.dtype, offsets.dtype), (np.dtype("u1"), np.dtype("<i8")))
            self.assertEqual(strings(values, offsets),
                             [str(p.relative_to(self.make_photos())).encode() for p in expected])
            at += rows

    def test_each_npy_array_starts_at_a_multiple_of_64_bytes(self):
        data = self.load("-q", "--format", "npy", "-b", "4", "--limit", "4", "--features", "image", self.resized)
        self.assertEqual(data[:8], b"\x93NUMPY\x01\x00")
        (length,) = struct.unpack_from("<H", data, 8)
        self.assertEqual((10 + length) % 64, 0)
        self.assertEqual(data[9 + length : 10 + length], b"\n")

    def test_features_chooses_what_is_delivered_and_in_which_order(self):
        found = arrays(self.load("-q", "--format", "npy", "-b", "24", "--features", "key,label", self.resized))
        self.assertEqual([a.dtype.name for a in found], ["uint8", "int64", "int64"])
        done = run("presto-load", "--format", "npy", "--features", "image,nose", self.resized)
        self.assert_fails(done, 1, "no feature 'nose'", "label")
        self.assertEqual(done.stdout, b"")

    def test_text_features_are_bytes_and_offsets(self):
        found = arrays(self.load("-q", "--to", "concatenated", "--format", "npy", "-b", "24", "-p", self.pipeline,
                                 self.make_photos()))
        photos = sorted(self.make_photos().rglob("*.jpg"))
        self.assertEqual(strings(found[0], found[1]), [p.read_bytes() for p in photos])

    def test_drop_last_leaves_out_the_partial_batch(self):
        found = arrays(self.load("-q", "--format", "npy", "-b", "10", "--drop-last", "--features", "label", self.resized))
        self.assertEqual([len(a) for a in found], [10, 10])
        # What only counts, whose blocks of work are smaller, comes to the same.
        for batch in (5, 10, 24, 25):
            stats = json.loads(self.load("-e", "2", "-b", batch, "--drop-last", "--prefetch-bytes", "20KiB",
                                         "--json", "--format", "null", self.resized))
            self.assertEqual((stats["samples"], stats["batches"]), (2 * (24 // batch * batch), 2 * (24 // batch)))

    def test_raw_is_the_bytes_of_the_arrays(self):
        image = np.concatenate(arrays(self.load("-q", "--format", "npy", "--features", "image", self.resized)))
        label = np.concatenate(arrays(self.load("-q", "--format", "npy", "--features", "label", self.resized)))
        for batch in (1, 7):
            self.assertTrue(self.load("-q", "--format", "raw", "-b", batch, self.resized) == image.tobytes())
            both = self.load("-q", "--format", "raw", "-b", batch, "--features", "label,image", self.resized)
            self.assertTrue(both == b"".join(l.tobytes() + i.tobytes() for l, i in zip(label, image)))

    def test_raw_refuses_text(self):
        done = run("presto-load", "--format", "raw", "--features", "key", self.resized)
        self.assert_fails(done, 1, "'key' is text")

    def test_records_of_any_content_pass_with_raw_records(self):
        plain = GOLDEN / "tfrecord" / "good-plain.tfrecord"
        self.assertEqual(self.load("-q", "--raw-records", plain), plain.read_bytes())
        self.assertEqual(self.load("-q", "--raw-records", "-e", "2", plain), plain.read_bytes() * 2)
        one = self.load("-q", "--raw-records", "--limit", "1", plain)
        self.assertEqual(frames(one), frames(plain.read_bytes())[:1])
        self.assert_fails(run("presto-load", "--raw-records", GOLDEN / "tfrecord" / "bad-data-bit.tfrecord"), 3,
                          "bad-data-bit.tfrecord")

    def test_foreign_examples_are_delivered_as_they_are(self):
        path = GOLDEN / "tfrecord" / "good-examples.tfrecord"
        ours = [example(p).keys() for p in frames(self.load("-q", path))]
        self.assertEqual(ours, [example(p).keys() for p in frames(path.read_bytes())])

    def test_foreign_records_run_the_steps_after_from(self):
        foreign = self.new("foreign")
        foreign.mkdir()
        for path in self.concatenated.glob("*.tfrecord"):
            (foreign / path.name).write_bytes(path.read_bytes())
        online = self.load("-q", "-p", self.pipeline, "--from", "concatenated", foreign)
        self.assertTrue(online == self.load("-q", self.concatenated))

    # ---- figures ----

    def test_stats_count_what_was_delivered(self):
        stats_file = self.new("stats")
        self.load("-q", "--format", "null", "-e", "2", "-j", "2", "--stats", stats_file, self.resized)
        stats = json.loads(stats_file.read_text())
        self.assertEqual((stats["schema"], stats["program"]), (1, "presto-load"))
        self.assertEqual((stats["samples"], stats["skipped"], stats["threads"]), (2 * self.photo_count, 0, 2))
        self.assertTrue(stats["complete"])
        self.assertEqual([step["step"] for step in stats["steps"]].count("random-crop") <= 1, True)
        self.assertIn(stats["limit"]["stage"], ("read", "decompress", "parse", "encode", "batch", "step", "consumer"))
        for key in ("wall_s", "cpu_s", "samples_per_s", "read_bytes_per_s", "read_bytes", "peak_rss_bytes"):
            self.assertGreater(stats[key], 0, key)
        self.assertGreaterEqual(min(stats["voluntary_switches"], stats["involuntary_switches"]), 0)
        self.assertEqual(json.loads(self.load("--json", "--format", "null", self.resized))["samples"], self.photo_count)

    def test_the_verdict_names_the_consumer_if_it_is_slow_and_never_otherwise(self):
        stats_file = self.new("stats")
        for j in (0, 2):
            process = subprocess.Popen([TOOLS / "presto-load", "-q", "-j", str(j), "-e", "3", "--format", "npy", "--stats",
                                        stats_file, self.write("-u", "pixel-centered")], stdout=subprocess.PIPE)
            time.sleep(1.5)
            self.assertGreater(len(process.stdout.read()), 1 << 20)  # more than the pipe holds
            process.stdout.close()
            self.assertEqual(process.wait(), 0)
            self.assertEqual(json.loads(stats_file.read_text())["limit"]["stage"], "consumer")
            stats = json.loads(self.load("-j", j, "-e", "20", "--format", "null", "--json", self.concatenated))
            self.assertNotEqual(stats["limit"]["stage"], "consumer")

    def test_the_closing_lines_say_rate_and_limit(self):
        done = run("presto-load", "--format", "null", self.resized)
        self.assertEqual((done.returncode, done.stdout), (0, b""))
        self.assertRegex(done.stderr, r"^presto-load: 24 samples in .*: \S+ samples/s, read .*/s \(T3\), delivered .*/s \(T4\)\n"
                                      r"presto-load: limited by .+\n$")

    def test_explain_prints_the_plan_and_stops(self):
        text = self.load("--explain", self.resized).decode()
        for word in ("24 samples", "dataset", "small", "resized", "zstd:1", "random-crop", "loader:"):
            self.assertIn(word, text)
        self.assertNotIn("decode-image", text)

    @unittest.skipIf(SANITIZED, "sanitizers need memory of their own")
    def test_memory_stays_within_the_limit(self):
        """A dataset of about 115 MB through 16 MiB."""
        source = self.new("source")
        subprocess.run([PHOTOS, "-n", "110", "-o", source], check=True)
        dataset = self.write("-u", "pixel-centered", "-s", "2", pipeline="cv", source=source)
        for form in (["tfrecord"], ["npy", "-b", "4"]):
            process = subprocess.Popen([TOOLS / "presto-load", "-q", "-j", "4", "--prefetch-bytes", "16MiB", "--format",
                                        *form, dataset], stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0)
            self.assertLess(usage.ru_maxrss / 1024, 16 + 64, form)

    # ---- terminals, pipes, signals ----

    def test_binary_is_not_printed_on_a_terminal(self):
        master, slave = pty.openpty()
        with open(master, "rb"), open(slave, "wb") as terminal:
            done = run("presto-load", self.resized, stdout=terminal)
            self.assertEqual(done.returncode, 2)
            self.assertIn("--format null", done.stderr)
            self.assertEqual(run("presto-load", "--format", "null", self.resized, stdout=terminal).returncode, 0)

    def progress_on_terminal(self, *options, columns=78):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        with open(slave, "wb") as terminal:
            process = subprocess.Popen([TOOLS / "presto-load", "--format", "null", "-e", "15" if SANITIZED else "60", "-j", "1", *options,
                                        self.concatenated], stderr=terminal, stdin=subprocess.DEVNULL)
        seen = b""
        while True:
            try:
                chunk = os.read(master, 4096)
            except OSError:  # EIO: the other side is closed
                chunk = b""
            if not chunk:
                break
            seen += chunk
        os.close(master)
        self.assertEqual(process.wait(), 0)
        return seen.decode()

    def test_progress_is_one_line_that_fits_the_terminal(self):
        seen = self.progress_on_terminal()
        drawn = [line.split("\033[K")[0] for line in seen.split("\r") if "samples  " in line]
        self.assertTrue(drawn, seen)
        for line in drawn:
            self.assertLess(len(line), 78)
            self.assertNotIn("\n", line)
        self.assertTrue(any("ETA" in line for line in drawn), drawn)
        wide = self.progress_on_terminal(columns=200)
        self.assertRegex(wide, r"\d+/[0-9,]+ samples  \S+/s  ETA \S+  \S+ \S?B/s, queue \d+ %, "
                               r"(consumer|workers) waits? for (reading|step|the consumer|decomp|pars|assem)")
        self.assertEqual(self.progress_on_terminal("--quiet"), "")

    def test_a_reader_that_closes_the_pipe_ends_it_quietly(self):
        for form in ("tfrecord", "npy", "raw"):
            process = subprocess.Popen([TOOLS / "presto-load", "-e", "1000000", "--format", form, self.resized],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual(len(process.stdout.read(1000)), 1000)
            process.stdout.close()
            self.assertEqual(process.stderr.read(), b"")
            self.assertEqual(process.wait(timeout=60), 0)
            process.stderr.close()

    def test_a_full_output_is_an_error(self):
        for form in ("tfrecord", "npy", "raw"):
            with open("/dev/full", "wb") as full:
                done = run("presto-load", "--format", form, self.resized, stdout=full)
            self.assert_fails(done, 1, "stdout", "No space left")

    def test_signals_end_it_even_when_nobody_reads(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen([TOOLS / "presto-load", "-e", "1000000", self.resized], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            process.stdout.read(1)  # it runs, and soon the pipe is full
            time.sleep(0.2)
            process.send_signal(number)
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, -number)


if __name__ == "__main__":
    main()
