#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""However a stream ends, its state says what is whole in the pipe, and the rest follows byte for byte."""
import gzip
import io
import json
import os
import signal
import subprocess
import time

import numpy as np

from chaos import LIGHT, ChaosCase, frames, main, moments, seeded, shards, start, unnamed_shards

EPOCHS = 6 if LIGHT else 30
BATCH = 4
FORMS = {
    "tfrecord": ["--format", "tfrecord"],
    "npy": ["--format", "npy", "--features", "image"],
    "raw": ["--format", "raw"],
}


def pieces(stream):
    """Each array of an npy stream: is it a message, and its bytes."""
    reader, found = io.BytesIO(stream), []
    while reader.tell() < len(stream):
        start = reader.tell()
        array = np.lib.format.read_array(reader)
        found.append((array.dtype.kind == "S", stream[start : reader.tell()]))
    return found


def batches_of(form, stream):
    """What a stream holds, without the messages that an npy stream has around it."""
    return stream if form != "npy" else b"".join(array for is_message, array in pieces(stream) if not is_message)


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals(ChaosCase):
    photo_count = 24  # a multiple of BATCH: batches do not depend on where the stream goes on

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.random = seeded(cls.__name__)
        cls.resized = cls.write("-u", "resized", "-c", "zstd:1", "-s", "3")
        cls.wholes = {}

    def order(self, form):
        return ["-q", "-e", EPOCHS, "-b", BATCH, "--shuffle", "full", *FORMS[form], self.resized]

    def whole(self, form):
        if form not in self.wholes:
            self.wholes[form] = self.load(*self.order(form))
        return self.wholes[form]

    def position(self, state):
        """Samples passed; a run that was stopped before it began has left none."""
        if not state.exists():
            return 0
        saved = json.loads(state.read_text())
        return saved["epoch"] * self.photo_count + saved["next"]

    def sizes(self, form):
        """Bytes of each batch."""
        whole = batches_of(form, self.whole(form))
        if form != "tfrecord":  # all alike
            count = EPOCHS * self.photo_count // BATCH
            return [len(whole) // count] * count
        records = [16 + len(payload) for payload in frames(whole)]
        return [sum(records[i : i + BATCH]) for i in range(0, len(records), BATCH)]

    def assert_goes_on(self, form, state, first, exact, message):
        """`first` came out. `exact`: all of what entered the pipe, else it may be less."""
        whole = self.whole(form)
        self.assertTrue(whole.startswith(first), message)
        batches, passed = 0, len(pieces(whole)[0][1]) if form == "npy" else 0
        for size in self.sizes(form):
            if passed + size > len(first):
                break
            batches, passed = batches + 1, passed + size
        position = self.position(state)
        if exact:
            self.assertEqual(position, batches * BATCH, message)
        else:
            self.assertGreaterEqual(position, batches * BATCH, message)
        rest = self.load("--state", state, *self.order(form))
        start_at = sum(self.sizes(form)[: position // BATCH])
        self.assertTrue(batches_of(form, rest) == batches_of(form, whole)[start_at:], message)

    def read_some(self, process):
        got = b""
        for _ in range(self.random.randrange(12)):
            got += os.read(process.stdout.fileno(), self.random.randrange(1, 1 << 18))
        return got

    def test_a_signal_leaves_the_state_of_the_batches_that_are_whole(self):
        saved = 0
        for attempt in range(moments(24)):
            form = list(FORMS)[attempt % 3]
            number = SIGNALS[attempt // 3 % 3]
            j, delay = self.random.randrange(4), self.random.random() * 0.5
            state = self.new("state")
            self.whole(form)
            process = start("presto-load", "-j", j, "--state", state, *self.order(form))
            time.sleep(delay)
            # Half of them are stuck: nobody reads, and the pipe is full.
            first = self.read_some(process) if self.random.random() < 0.5 and delay > 0.2 else b""
            process.send_signal(number)
            out, err = self.finish(process)
            message = f"{form}, -j {j}, {number.name} after {delay:.3f} s: {err}"
            self.assertIn(process.returncode, (-number, 0), message)
            self.assertEqual(err, "", message)
            saved += self.position(state) > 0
            self.assert_goes_on(form, state, first + out, True, message)
        self.assertGreater(saved, 0)

    def test_a_reader_that_leaves_leaves_a_state(self):
        for attempt in range(moments(12)):
            form = list(FORMS)[attempt % 3]
            state = self.new("state")
            process = start("presto-load", "-j", attempt % 4, "--state", state, *self.order(form))
            first = os.read(process.stdout.fileno(), 1 << 16) + self.read_some(process)
            process.stdout.close()
            process.stdout = None
            _, err = self.finish(process)
            self.assertEqual((process.returncode, err), (0, ""))
            self.assertTrue(state.exists())
            self.assert_goes_on(form, state, first, False, form)

    def test_a_state_is_there_from_the_start_even_for_a_kill(self):
        state = self.new("state")
        process = start("presto-load", "--state", state, *self.order("raw"))
        os.read(process.stdout.fileno(), 1)
        process.kill()
        self.finish(process)
        self.assertEqual(self.position(state), 0)
        self.assertTrue(state.exists())

    def test_a_failure_leaves_the_state_before_it(self):
        damaged = self.write("-u", "resized", "-s", "3")
        shard = sorted(damaged.glob("data-00001-*.tfrecord"))[0]
        sound = shard.read_bytes()
        order = ["-q", "-b", BATCH, "--format", "raw", damaged]
        whole = self.load(*order)
        shard.write_bytes(sound[:-20] + b"\xff" + sound[-19:])  # in the last of the second eight samples
        for j in range(3):
            state = self.new("state")
            process = start("presto-load", "-j", j, "--state", state, *order)
            first, err = self.finish(process)
            self.assert_clean_failure(process.returncode, err, (3,))
            self.assertEqual(self.position(state), 15)
            shard.write_bytes(sound)
            self.assertTrue(first + self.load("--state", state, *order) == whole)
            shard.write_bytes(sound[:-20] + b"\xff" + sound[-19:])

    # ---- the other programs ----

    def endless_zeros(self):
        """A record, and gigabytes of zeros behind it, as many gzip members."""
        path = self.new("zeros").with_suffix(".tfrecord.gz")
        zeros = gzip.compress(bytes(64 << 20), 6)
        data = next(self.resized.glob("*.tfrecord")).read_bytes()
        path.write_bytes(gzip.compress(data[: 16 + len(frames(data)[0])]) + zeros * 300)
        return path

    def test_inspecting_damage_without_end_is_stopped_by_a_signal(self):
        path = self.endless_zeros()
        for words in (["verify"], ["repair", "-o", self.new("repaired")]):
            number = self.random.choice(SIGNALS)
            process = start("presto-inspect", *words, path)
            time.sleep(self.random.random())
            process.send_signal(number)
            self.finish(process)
            self.assertEqual(process.returncode, -number, words)
        self.assertEqual([p.name for p in self.folder.iterdir() if "repaired" in p.name], [])

    def stop_conversion(self, program, before, after):
        """Interrupt it once some of its shards stand; None: it was over before. Else its folder and what it said."""
        out = self.new("stopped")
        process = start(program, *before, "-q", "-j", "1", "-s", "40", "-c", "zstd:19", "-o", out, *after)
        while process.poll() is None and not (out.exists() and len(shards(out) + unnamed_shards(out)) > 2):
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, err = self.finish(process)
        if process.returncode == 0:
            return None
        self.assertEqual(process.returncode, -signal.SIGINT, err)
        return out, err

    def test_a_stopped_conversion_says_how_to_go_on(self):
        """All samples in so slow a codec take a second, of which nearly all is left when some shards stand."""
        source = [self.make_photos()] * 60
        dataset = self.write("-u", "decoded", "-s", "1", *source[1:])
        for program, before, after in (("presto-write", [], ["-p", self.pipeline, "-u", "decoded", *source]),
                                       ("presto-inspect", ["recode"], [dataset])):
            with self.subTest(program=program):
                # Whoever looks on may be held up for longer than the program runs.
                stopped = next(filter(None, (self.stop_conversion(program, before, after) for _ in range(5))), None)
                self.assertIsNotNone(stopped, "no signal came in time")
                out, err = stopped
                self.assertIn(f"{out}: stopped; the same command with --resume goes on", err)
                self.assertTrue((out / ".progress.json").exists())

    # ---- nothing but samples to leave out ----

    def lying_dataset(self, records):
        """dataset.json promises that many records; the shard has been cut to its first ones."""
        dataset = self.write("-u", "resized", "-s", "1")
        shard = next(dataset.glob("*.tfrecord"))
        data = shard.read_bytes()
        shard.write_bytes(data[: 2 * (16 + len(frames(data)[0]))])
        (dataset / (shard.name + ".index")).unlink()
        about = json.loads((dataset / "dataset.json").read_text())
        for part in (about["shards"][0], about["totals"]):
            part["records"], part["stored_bytes"] = records, 4096 * records
        (dataset / "dataset.json").write_text(json.dumps(about))
        return dataset

    def test_a_signal_ends_a_run_of_samples_left_out_and_their_report_stays_small(self):
        dataset = self.lying_dataset(10**12)
        for attempt in range(moments(8)):
            number, report, state = SIGNALS[attempt % 3], self.new("report"), self.new("state")
            process = start("presto-load", "-q", "-j", attempt % 3, "--on-error", "skip", "--error-report", report,
                            "--state", state, "--format", random_form(self.random), dataset, stdout=subprocess.DEVNULL)
            while not report.exists() or report.stat().st_size < 4000:  # it is among them
                self.assertIsNone(process.poll())
                time.sleep(0.01)
            time.sleep(self.random.random() * 0.5)
            process.send_signal(number)
            _, err = self.finish(process)
            self.assertEqual((process.returncode, err), (-number, ""))
            told = [json.loads(line) for line in report.read_text().splitlines()]
            self.assertLess(len(told), 100)
            lost = 0
            for line in told:  # all of them, each once
                self.assertEqual((line["sample"], line["record"]), (2 + lost, 2 + lost))
                lost += line["samples"]
            # The rest begins among those that have been told.
            self.assertLessEqual(json.loads(state.read_text())["next"], 2 + lost)
            self.assertGreater(json.loads(state.read_text())["next"], 0)

    def test_the_report_of_shuffled_samples_stays_small_and_counts_them_all(self):
        dataset, report = self.lying_dataset(40000), self.new("report")
        process = start("presto-load", "-j", "1", "--shuffle", "full", "--on-error", "skip", "--error-report", report,
                        "--format", "null", dataset)
        _, err = self.finish(process)
        self.assertEqual(process.returncode, 0, err)
        told = [json.loads(line) for line in report.read_text().splitlines()]
        listed = [line["sample"] + i for line in told if line["sample"] is not None for i in range(line["samples"])]
        counted = [line for line in told if line["sample"] is None]
        self.assertLess(len(told), 10050)
        self.assertEqual(len(told) - len(counted), 10000)
        self.assertEqual(len(set(listed)), len(listed))
        self.assertEqual(sum(line["samples"] for line in told), 40000 - 2)
        self.assertEqual({(line["file"], line["record"], line["reason"]) for line in counted},
                         {(None, None, "not listed: there are more than 10000 lines")})


def random_form(random):
    return random.choice(["null", "tfrecord", "npy", "raw"])


if __name__ == "__main__":
    main()
