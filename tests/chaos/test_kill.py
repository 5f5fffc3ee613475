#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that are killed or interrupted at random moments: nothing false is left, --resume completes."""
import os
import signal
import subprocess
import time

from chaos import LIGHT, ChaosCase, main, moments, run, seeded, shards, snapshot, start, unnamed_shards

SETTINGS = [  # split, codec, threads, more
    ("resized", "none", 1, ["-s", "5"]),
    ("pixel-centered", "lz4", 2, ["-s", "4"]),
    ("resized", "zstd:1", 3, ["-s", "7"]),
    ("decoded", "zlib:1", 4, ["-s", "3"]),
    ("resized", "zstd:3+dict", 2, ["-s", "4"]),
    ("concatenated", "none", 2, ["-s", "4", "--file-compression", "gzip"]),
    ("resized", "snappy", 0, ["-s", "6"]),
    ("resized", "none", 4, ["-s", "9", "--file-compression", "gzip"]),
    ("resized", "none", 2, ["-s", "24"]),
    ("decoded", "none", 3, ["-s", "2"]),
    ("resized", "none", 1, ["-s", "150"]),  # so many that the progress file is not written after each
    ("resized", "none", 2, ["-s", "150"]),
    ("resized", "none", 3, ["-s", "150", "--file-compression", "gzip"]),
    ("resized", "zstd:1", 2, ["--shard-bytes", "1"]),
    ("resized", "zstd:1", 2, ["--shard-bytes", "200KiB"]),
    ("resized", "none", 3, ["--shard-bytes", "50KiB"]),
    ("decoded", "zstd:3+dict", 1, ["--shard-bytes", "1MiB", "--file-compression", "zlib"]),
]


class Kill(ChaosCase):
    photo_count = 40
    copies = 8  # of the source, so that there is time to be hit in

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.random = seeded(cls.__name__)
        cls.whole = {}

    def command(self, setting, out):
        split, codec, threads, more = setting
        copies = self.copies // 3 if LIGHT else self.copies
        return ["-q", "-p", self.pipeline, "-u", split, "-c", codec, "-j", threads, *more, "-o", out,
                *[self.make_photos()] * copies]

    def uninterrupted(self, setting):
        """The dataset as it must be, and how long that takes; made once a setting."""
        key = str(setting)
        if key not in self.whole:
            out = self.new()
            started = time.monotonic()
            done = run("presto-write", *self.command(setting, out))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.whole[key] = snapshot(out), time.monotonic() - started
        return self.whole[key]

    def random_signal(self, process, wait_s, number):
        time.sleep(wait_s)
        process.send_signal(number)
        _, err = self.finish(process)
        return err

    def assert_finished_or_resumable(self, setting, out, message):
        """After the last run of a chain: resume what is not whole."""
        whole, _ = self.whole[str(setting)]
        done = run("presto-write", "--resume", *self.command(setting, out))
        self.assertEqual((done.returncode, done.stderr), (0, ""), message)
        self.assert_same_dataset(out, whole, message)

    def test_a_killed_conversion_resumes_to_the_same_bytes(self):
        """kill -9, one to three times in a row, then a run to the end."""
        count, kills, whole_before = moments(15), 0, 0
        while kills < count:
            setting = SETTINGS[self.random.randrange(len(SETTINGS))]
            whole, duration_s = self.uninterrupted(setting)
            out, chain = self.new(), []
            for attempt in range(self.random.choice([1, 1, 2, 3])):
                wait_s = self.random.random() * duration_s * 0.9
                process = start("presto-write", *(["--resume"] if attempt else []), *self.command(setting, out))
                self.random_signal(process, wait_s, signal.SIGKILL)
                chain.append(round(wait_s, 4))
                kills += 1
                message = f"{setting}, killed after {chain} s"
                self.assertIn(process.returncode, (-signal.SIGKILL, 0), message)
                self.assert_nothing_false(out, whole, message)
                if (out / "dataset.json").exists():
                    whole_before += 1
                    break
            self.assert_finished_or_resumable(setting, out, f"{setting}, killed after {chain} s")
            subprocess.run(["rm", "-rf", out], check=True)
        print(f"{kills} kills, {whole_before} of them after the dataset was whole", flush=True)

    def test_kills_and_interrupts_in_a_row_resume_to_the_same_bytes(self):
        for _ in range(moments(5)):
            setting = SETTINGS[self.random.randrange(len(SETTINGS))]
            whole, duration_s = self.uninterrupted(setting)
            out, chain = self.new(), []
            for attempt in range(3):
                number = self.random.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
                process = start("presto-write", *(["--resume"] if attempt else []), *self.command(setting, out))
                chain.append((number.name, wait_s := self.random.random() * duration_s * 0.6))
                err = self.random_signal(process, wait_s, number)
                message = f"{setting}: {chain}: {err}"
                self.assertIn(process.returncode, (-number, 0), message)
                self.assert_nothing_false(out, whole, message)
                if process.returncode == 0:
                    break
            self.assert_finished_or_resumable(setting, out, f"{setting}: {chain}")


class Interrupt(ChaosCase):
    """SIGINT and SIGTERM: dies of the signal, soon, and cleans up."""
    photo_count = 40

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.random = seeded(cls.__name__)
        cls.temporary = cls.new("tmp")
        cls.temporary.mkdir()

    def start(self, *arguments, **options):
        return start(*arguments, env={**os.environ, "TMPDIR": str(self.temporary)}, **options)

    def interrupt(self, process, wait_s):
        """Send one of the signals after that time; nothing but death by it, or success, may follow."""
        number = self.random.choice([signal.SIGINT, signal.SIGTERM])
        message = f"{process.args}: {number.name} after {wait_s:.4f} s"
        time.sleep(wait_s)
        process.send_signal(number)
        _, err = self.finish(process)
        self.assertIn(process.returncode, (-number, 0), f"{message}: {err}")
        self.assertEqual(list(self.temporary.iterdir()), [], message)
        return err, message

    def check_interrupted_writes(self, shards_option, count):
        def command(out):
            return ["-q", "-p", self.pipeline, "-u", "resized", "-c", "zlib:6", *shards_option, "-j",
                    self.random.randrange(4), "-o", out, *[self.make_photos()] * 8]
        out = self.new()
        run("presto-write", *command(out))
        whole = snapshot(out)
        for _ in range(count):
            out = self.new()
            process = self.start("presto-write", *command(out))
            _, message = self.interrupt(process, self.random.random() * 0.5)
            names = {p.name for p in out.iterdir()} if out.exists() else set()
            if process.returncode == 0 or "dataset.json" in names:  # the signal came after the last sample
                self.assert_same_dataset(out, whole, message)
                continue
            self.assertEqual([name for name in names if "partial" in name], [], message)
            indexes = {name for name in names if name.endswith(".index")}
            data = {p.name for p in [*shards(out), *unnamed_shards(out)]} if names else set()
            self.assertEqual(indexes, {name + ".index" for name in data}, message)
            self.assert_nothing_false(out, whole, message)

    def test_writing_keeps_only_what_can_be_resumed(self):
        self.check_interrupted_writes(["-s", "6"], moments(8))

    def test_writing_compressed_shards_keeps_only_what_can_be_resumed(self):
        self.check_interrupted_writes(["-s", "6", "--file-compression", "gzip"], moments(8))

    def test_writing_shards_of_a_size_keeps_only_what_can_be_resumed(self):
        self.check_interrupted_writes(["--shard-bytes", "300KiB"], moments(8))

    def test_loading_stops_whether_read_or_not(self):
        dataset = self.write("-u", "resized", "-c", "zstd:1", "-s", "3")
        for _ in range(moments(10)):
            form = self.random.choice([["--format", "null"], ["--format", "tfrecord"], ["--format", "npy", "-b", "4"],
                                       ["--format", "raw"]])
            source = self.random.choice([[dataset], [dataset, "--shuffle", "full"],
                                         ["-p", self.pipeline, self.make_photos()]])
            process = self.start("presto-load", "-q", "-e", "1000000", "-j", self.random.randrange(5), *form, *source)
            if self.random.random() < 0.5:  # otherwise nobody reads
                drain = subprocess.Popen(["cat"], stdin=process.stdout, stdout=subprocess.DEVNULL)
                process.stdout.close()
                process.stdout = None
            else:
                drain = None
            err, message = self.interrupt(process, self.random.random() * 0.4)
            self.assertNotEqual(process.returncode, 0, message)
            self.assertEqual(err, "", message)
            if drain is not None:
                self.assertEqual(drain.wait(timeout=60), 0)

    def test_sweeping_removes_its_trials(self):
        for _ in range(moments(5)):
            out = self.new("sweep")
            process = self.start("presto-sweep", "-q", "-p", self.pipeline, "--codecs", "none,zstd:1", "--threads", "1,2",
                                 "--samples", "30", "--runs", "2", "-o", out, self.make_photos())
            _, message = self.interrupt(process, self.random.random() * 1.5)
            left = {str(p.relative_to(out)) for p in out.rglob("*")} if out.exists() else set()
            if process.returncode != 0:  # what was measured until then is kept
                whole = {"trials.jsonl", "results.json", "results.csv", "strategy.yaml", "report.html"}
                self.assertLessEqual(left, whole, message)


if __name__ == "__main__":
    main()
