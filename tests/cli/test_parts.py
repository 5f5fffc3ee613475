#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto-write --part K/N and --join: many runs, the bytes of one; what is refused, killed, left over."""
import json
import os
import random
import subprocess
import time

from cli import TOOLS, Case, main, run

SEED = int(os.environ.get("PRESTO_TEST_SEED", time.time_ns() % 1000000))


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


class Parts(Case):
    photo_count = 24

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.random = random.Random(SEED)

    def command(self, out, part, *more, source=None):
        return ["-q", "-p", self.pipeline, "-u", "resized", "-s", "7", "-j", "1", "--part", part, *more, "-o", out,
                source or self.make_photos()]

    def part(self, out, part, *more, **options):
        done = run("presto-write", *self.command(out, part, *more, **options))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def join(self, out, *more):
        done = run("presto-write", "--join", out, *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_many_runs_make_the_files_of_one(self):
        whole = contents(self.write("-u", "resized", "-s", "7"))
        self.assertEqual(len(whole), 15)
        for count in (1, 2, 7, 64):
            out = self.new()
            order = list(range(count))
            self.random.shuffle(order)
            for number in order:
                self.part(out, f"{number}/{count}")
            self.assert_no_dataset(out)
            done = self.join(out)
            self.assertIn(f"{self.photo_count} samples, 7 shards", done.stderr)
            self.assertEqual(contents(out), whole)

    def test_a_part_of_a_split_is_shared_too(self):
        split = ("--split", "50/50", "--part", "train")
        whole = contents(self.write("-u", "resized", "-s", "7", *split))
        out = self.new()
        for number in range(3):
            self.part(out, f"{number}/3", *split)
        self.join(out)
        self.assertEqual(contents(out), whole)

    def test_processes_that_are_killed_at_any_moment(self):
        """Each part has two that run at once, and are started again, under new names, until one has done it."""
        whole = contents(self.write("-u", "resized", "-s", "7"))
        out = self.new()
        waiting = [number for number in range(3) for _ in range(2)]
        for number in waiting:
            process = subprocess.Popen([TOOLS / "presto-write", *map(str, self.command(out, f"{number}/3"))],
                                       stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(self.random.random() / 10)
            process.kill()
            process.wait()
        running = [subprocess.Popen([TOOLS / "presto-write", *map(str, self.command(out, f"{number}/3"))],
                                    stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for number in waiting]
        self.assertEqual([process.wait() for process in running], [0] * len(running))
        self.join(out)
        self.assertEqual(contents(out), whole)

    def test_a_join_reports(self):
        out = self.new()
        for number in range(2):
            done = run("presto-write", *self.command(out, f"{number}/2", "--json"))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["shards"], 3 + number)
        told = json.loads(self.join(out, "--json", "-q").stdout)
        self.assertEqual((told["samples"], told["shards"], told["notes"]), (self.photo_count, 7, []))
        again = json.loads(run("presto-write", "--join", "--json", "-q", "-o", out).stdout)
        self.assertEqual((again["samples"], again["shards"]), (self.photo_count, 7))
        self.assertEqual(len(again["notes"]), 1)

    def test_a_missing_part_is_named(self):
        out = self.new()
        self.part(out, "1/3")
        self.assert_fails(run("presto-write", "--join", out), 1, "2 of 3 parts are not whole: 0, 2")
        self.assert_fails(run("presto-inspect", out), 1, "presto-write --join")
        self.assert_fails(run("presto-write", "--join", self.folder / "nowhere"), 1, "nowhere")
        self.assert_fails(run("presto-write", *self.command(out, "0/3", "--attempt", "a b")), 2, "name of an attempt")

    def test_another_command_writes_nothing_among_parts(self):
        out = self.new()
        self.part(out, "0/3")
        done = run("presto-write", "-p", self.pipeline, "-s", "7", "-o", out, self.make_photos())
        self.assert_fails(done, 2, "_parts")

    def test_what_is_skipped_is_added_up(self):
        source = self.new("photos")
        subprocess.run(["cp", "-a", self.make_photos(), source], check=True)
        photos = sorted(source.rglob("*.jpg"))
        for i in (0, 1, -1):
            photos[i].write_bytes(b"no photo")
        whole = self.new()
        done = run("presto-write", "-q", "-p", self.pipeline, "-u", "resized", "-s", "7", "--on-error", "skip", "-o", whole, source)
        self.assertEqual(done.returncode, 0, done.stderr)
        for policy, code in (("skip", 0), ("skip:3", 0), ("skip:2", 3), ("skip:12.5%", 0), ("skip:12%", 3)):
            out = self.new()
            for number in range(3):
                self.part(out, f"{number}/3", "--on-error", policy, source=source)
            done = run("presto-write", "--join", out)
            self.assertEqual(done.returncode, code, done.stderr)
            if code == 0:
                self.assertIn("3 samples skipped", done.stderr)
                self.assertEqual(contents(out), contents(whole))
            else:
                self.assertIn("3 of 24 samples had to be left out", done.stderr)
                self.assert_no_dataset(out)

    def test_parts_of_other_files_do_not_join(self):
        source = self.new("photos")
        subprocess.run(["cp", "-a", self.make_photos(), source], check=True)
        out = self.new()
        self.part(out, "0/2")
        next(source.rglob("*.jpg")).unlink()
        self.part(out, "1/2", source=source)
        self.assert_fails(run("presto-write", "--join", out), 1, "1 of 2 parts is not whole", "another dataset, which differs in input")

    def test_clean_removes_what_died(self):
        out = self.new()
        self.part(out, "0/2", "--attempt", "mine")
        dead = out / "_parts" / "00001-of-00002.dead"
        dead.mkdir()
        (dead / ".progress.json").write_text("{}")
        done = run("presto-inspect", "clean", "--remove", "--json", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(dead.exists())
        self.assertTrue((out / "_parts" / "00000-of-00002.mine" / "part.json").exists())
        for path in (out / "_parts" / "00000-of-00002.mine").iterdir():
            os.utime(path, (1, 1))
        done = run("presto-inspect", "clean", "--remove", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse((out / "_parts").exists())

    def test_what_contradicts_itself_is_a_usage_error(self):
        for arguments, words in (
            (["--part", "8/8"], "0/8 to 7/8"),
            (["--part", "1/0"], "1 to 99999"),
            (["--part", "-1/8"], "not a number of parts"),
            (["--part", "1/8x"], "not a number of parts"),
            (["--part", "0/2", "--shard-bytes", "1MiB"], "--shard-bytes"),
            (["--part", "0/2"], "--shards"),
            (["--attempt", "a"], "--part"),
            (["--part", "train"], "--split"),
        ):
            self.assert_usage(run("presto-write", "-p", self.pipeline, *arguments, "-o", self.new(), self.make_photos()), words)
        self.assert_usage(run("presto-write", "--join"), "which folder")
        self.assert_usage(run("presto-write", "--join", "a", "b"), "which folder")
        self.assert_usage(run("presto-write", "--join", "-p", "cv", "a"), "--pipeline")
        self.assert_usage(run("presto-write", "--join", "--part", "0/2", "a"), "first all parts")
        for arguments in (["--explain"], ["-s", "4"], ["-c", "zstd:1"], ["--resume"], ["--attempt", "a"], ["--on-error", "skip"]):
            self.assert_usage(run("presto-write", "--join", *arguments, "a"), "only --json and --quiet")

    def test_what_cannot_be_shared_is_refused(self):
        done = run("presto-write", *self.command("s3://bucket/key", "0/2"))
        self.assert_fails(done, 1, "not yet to a bucket")


if __name__ == "__main__":
    print(f"PRESTO_TEST_SEED={SEED}", flush=True)
    main()
