#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--storage of presto-load and presto-sweep: what it takes, what it counts, and that a signal ends its waits."""
import io
import json
import os
import re
import signal
import subprocess
import tarfile
import time
import unittest

from cli import TIMEOUT_S, TOOLS, Case, a_sweep, example, frames, main, run

# Counts, and makes nobody wait.
ENDLESS = "bandwidth=1000TB/s"


class Storage(Case):
    def stats(self, *arguments):
        return json.loads(self.load("-q", "--json", "--format", "null", "--storage", ENDLESS, *arguments))

    def test_wrong_storages_are_usage_errors(self):
        for text, why in (("", "empty part"), ("bandwidth=910", "lacks its unit"), ("bandwidth=0MB/s", "leave it out"),
                          ("bandwidth=inf", "write it as bandwidth=910MB/s"), ("latency=1e300s", "write it as latency=8us"),
                          ("iops=-1", "write it as iops=222000"), ("nmve", "did you mean nvme"), ("latency=0s", "limits nothing")):
            self.assert_usage(run("presto-load", "--storage", text, "x"), "--storage: ", why)
            self.assert_usage(run("presto-sweep", "-p", "cv", "-o", "out", "--storage", text, "x"), "--storage: ", why)

    def test_help_names_every_profile(self):
        done = run("presto-load", "--storage", "tape", "x")
        names = re.search(r"there are (.*?), and figures", done.stderr).group(1).split(", ")
        self.assertIn("ceph-hdd", names)
        for program in ("presto-load", "presto-sweep"):
            words = set(re.split(r"[\s,]+", run(program, "--help").stdout.decode()))
            self.assertLessEqual(set(names), words)

    def test_it_changes_no_byte_and_counts_reads(self):
        dataset = self.write("-u", "resized", "-c", "zstd:1", "-s", "3")
        for shuffle in ("none", "full"):
            order = ["-q", "--shuffle", shuffle, dataset]
            self.assertEqual(self.load("--storage", ENDLESS, "-j", "3", *order), self.load(*order))
        stats = self.stats("-j", "1", dataset)
        self.assertEqual(stats["storage_reads"], 3 * 3)  # the beginning, the index and the records of each shard
        self.assertEqual(stats["times"]["storage_wait_s"], 0)
        self.assertEqual(self.stats("-p", self.pipeline, self.make_photos())["storage_reads"], self.photo_count)

    def test_archives_are_read_from_it(self):
        archive = self.new("tar").with_suffix(".tar")
        with tarfile.open(archive, "w", format=tarfile.USTAR_FORMAT) as out:
            for i in range(20):
                for name, content in ((f"{i:05}.jpg", b"x" * 1000), (f"{i:05}.cls", b"1")):
                    info = tarfile.TarInfo(name)
                    info.size = len(content)
                    out.addfile(info, io.BytesIO(content))
        pipeline = self.folder / "tar.yaml"
        pipeline.write_text("name: t\nsource: {type: tar, match: ['*.jpg']}\n"
                            "steps:\n  - {step: read-file, yields: concatenated}\n")
        self.assertGreaterEqual(self.stats("-j", "1", "-p", pipeline, archive)["storage_reads"], 1)

    def streams(self, *arguments):
        """What is delivered, and said, with files that take long to open, and with others."""
        for storage in ((), ("--storage", "open=5ms,latency=5ms")):
            done = run("presto-load", "--format", "tfrecord", *arguments, *storage)
            self.assertEqual(done.returncode, 0, done.stderr)
            yield done.stdout, [line for line in done.stderr.splitlines() if ": note: " in line]

    def test_many_archives_are_looked_at_at_once_and_put_in_order(self):
        folder = self.new("tars")
        folder.mkdir()
        for a in range(40):
            with tarfile.open(folder / f"{a:02}.tar", "w", format=tarfile.USTAR_FORMAT) as out:
                for i in range(a % 4):
                    names = [f"class{(a * 7 + i) % 11}/{a}-{i}.jpg", f"class{(a * 7 + i) % 11}/{a}-{i}.json"]
                    names += [f"class{(a * 7 + i) % 11}/{a}-{i}.rare{a}"] if a % 9 == 2 else []
                    for name in names:
                        info = tarfile.TarInfo(name)
                        info.size = 300_000 if a == 3 else 10 + a  # headers far apart: it takes longer than those behind it
                        out.addfile(info, io.BytesIO(name.encode().ljust(info.size)))
        pipeline = self.folder / "labels.yaml"
        pipeline.write_text("name: t\nsource: {type: tar, match: ['*.jpg'], label: parent-folder}\n"
                            "steps:\n  - {step: read-file, yields: concatenated}\n")
        (here, notes), played = self.streams("-p", pipeline, folder)
        self.assertEqual((here, notes), played)
        samples = [example(payload) for payload in frames(here)]
        labels = sorted({f"class{(a * 7 + i) % 11}" for a in range(40) for i in range(a % 4)})
        self.assertEqual([(s["key"], s["label"]) for s in samples],
                         [([f"class{c}/{a}-{i}".encode()], [labels.index(f"class{c}")]) for a in range(40) for i in range(a % 4)
                          for c in [(a * 7 + i) % 11]])
        self.assertEqual(re.findall(r"members [.](rare\d+) left out", "".join(notes)), ["rare2", "rare11", "rare29", "rare38"])

    def test_many_files_of_records_are_looked_at_at_once(self):
        dataset = self.write("-u", "resized", "-c", "none", "-s", "6")
        folder = self.new("foreign")
        folder.mkdir()
        for i in range(30):
            (folder / f"{i:02}.tfrecord").write_bytes((dataset / f"data-{i % 6:05}-of-00006.tfrecord").read_bytes())
        for shuffle in ("none", "full"):
            here, played = self.streams("--shuffle", shuffle, folder)
            self.assertEqual(here, played)
            self.assertEqual(len(frames(here[0])), 5 * self.photo_count)
        for i in (9, 12, 25):  # those begun later fail no sooner
            (folder / f"{i:02}.tfrecord").write_bytes(b"no record" * (30 - i))
        for storage in ("open=5ms", ENDLESS):
            self.assert_fails(run("presto-load", "--format", "null", "--storage", storage, folder), 1, "09.tfrecord: a text file")

    def test_a_slow_storage_is_the_limit(self):
        done = run("presto-load", "-p", self.pipeline, "--storage", "open=20ms", "-j", "2", "--format", "null", self.make_photos())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("limited by storage (", done.stderr)

    def test_auto_threads_are_more_than_processors_where_they_wait(self):
        """Each photo waits for 0.1 s: some 60 threads are worth it, whatever the number of processors."""
        order = ["-q", "-p", self.pipeline, "--shuffle", "full", "-e", "40", "--format", "npy", self.make_photos()]
        stats_file = self.new("stats")
        slow = ["--storage", "latency=100ms", "--stats", stats_file, "-j", "auto"]
        self.assertEqual(self.load(*slow, *order), self.load("-j", "1", *order))
        stats = json.loads(stats_file.read_text())
        self.assertGreater(stats["threads"], 2 * len(os.sched_getaffinity(0)))
        self.assertLess(stats["wall_s"], 0.1 * stats["samples"] / len(os.sched_getaffinity(0)))

    def test_a_signal_ends_a_wait(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            for threads in ("0", "2"):
                state = self.new("state")
                load = subprocess.Popen([TOOLS / "presto-load", "-q", "-p", self.pipeline, "-j", threads, "--storage", "latency=1000s",
                                         "--state", state, "--format", "null", self.make_photos()], stderr=subprocess.PIPE)
                self.addCleanup(load.kill)
                while not state.exists():  # it is written once signals are caught
                    self.assertIsNone(load.poll())
                    time.sleep(0.01)
                load.send_signal(number)
                _, errors = load.communicate(timeout=TIMEOUT_S)
                self.assertEqual(load.returncode, -number, errors)

    @a_sweep
    def test_a_sweep_plays_it_in_cold_epochs(self):
        out = self.new("sweep")
        done = run("presto-sweep", "-q", "-p", self.pipeline, "--stored", "unprocessed,resized", "--codecs", "none", "--threads", "2",
                   "--samples", "12", "--runs", "1", "--run-time", "0", "--storage", "open=20ms", "-o", out, self.make_photos())
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads((out / "results.json").read_text())
        self.assertEqual(results["options"]["storage"], "open=20ms")
        self.assertTrue(any("open=20ms" in note for note in results["notes"]), results["notes"])
        raw = next(r for r in results["results"] if r["stored"] == "unprocessed")
        # Twelve files, two at a time: at least six times 20 ms. Cached epochs do not wait.
        self.assertLess(raw["cold"]["runs"][0]["samples_per_s"], 12 / 0.119)
        self.assertGreater(raw["cached"]["runs"][0]["samples_per_s"], raw["cold"]["runs"][0]["samples_per_s"])
        # What was measured on one storage is not taken for another.
        done = run("presto-sweep", "-q", "-p", self.pipeline, "--stored", "unprocessed,resized", "--codecs", "none", "--threads", "2",
                   "--samples", "12", "--runs", "1", "--run-time", "0", "--storage", "open=10ms", "--resume", "-o", out, self.make_photos())
        self.assert_fails(done, 2, "of a sweep with other options")

    @a_sweep
    def test_each_cold_epoch_of_a_dataset_opens_its_files(self):
        out = self.new("sweep")
        done = run("presto-sweep", "-q", "-p", self.pipeline, "--stored", "resized", "--codecs", "none", "--threads", "1", "--measure",
                   "--runs", "1", "--run-time", "0.3", "--storage", "open=50ms", "-o", out, self.make_photos())
        self.assertEqual(done.returncode, 0, done.stderr)
        cold = json.loads((out / "results.json").read_text())["results"][0]["cold"]["runs"][0]
        self.assertGreaterEqual(cold["epochs"], 2)
        self.assertGreater(cold["epoch_s"], 0.049)


if __name__ == "__main__":
    main()
