#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Links that another user has put where a program writes: none is followed."""
import json
import os
import shutil
import signal
import subprocess

from chaos import ChaosCase, as_nobody, main, run, shards, snapshot, start, stop


class Planted(ChaosCase):
    """Another user may write to the folder: what he plants there is neither followed nor written to."""
    photo_count = 8

    def setUp(self):
        self.folder.chmod(0o755)
        self.precious = self.new("precious")
        self.precious.write_text("precious\n")

    def shared(self):
        out = self.new("shared")
        out.mkdir()
        out.chmod(0o777)
        return out

    def plant(self, out, *names):
        for name in names:
            subprocess.run([*as_nobody(), "ln", "-s", self.precious, out / name], check=True)

    def assert_untouched(self):
        self.assertEqual(self.precious.read_text(), "precious\n")

    def write_into(self, out, *more):
        return run("presto-write", "-q", "-p", self.pipeline, "-u", "resized", "-s", "4", "-j", "1", *more, "-o", out,
                   self.make_photos())

    def test_links_by_names_of_temporary_files(self):
        out = self.shared()
        self.plant(out, "..progress.json.partial")
        self.write_into(out)
        self.assert_untouched()
        out = self.shared()
        self.plant(out, "..progress.json.0123456789abcdef.partial")
        done = self.write_into(out)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assert_untouched()

    def test_links_by_names_of_shards_in_a_folder_under_work(self):
        out = self.shared()
        whole = self.new()
        self.assertEqual(self.write_into(whole).returncode, 0)
        process = start("presto-write", "-q", "-p", self.pipeline, "-u", "resized", "-s", "4", "-j", "1", "-o", out,
                        self.make_photos())
        while process.poll() is None and not (out / ".progress.json").exists():
            pass
        stop(process)
        names = [f".data-{i:05}-of-00004.tfrecord{index}.partial" for i in range(4) for index in ("", ".index")]
        names += [f"data-{i:05}-of-00004.tfrecord.index" for i in range(4) if
                  not (out / f"data-{i:05}-of-00004.tfrecord.index").exists()]
        if not (out / "dataset.json").exists():
            names += [".dataset.json.partial"]
        self.plant(out, *names)
        process.send_signal(signal.SIGCONT)
        _, err = self.finish(process)
        self.assertEqual((process.returncode, err), (0, ""))
        self.assert_untouched()
        for name, content in snapshot(whole).items():
            self.assertFalse((out / name).is_symlink(), name)
            if not name.endswith(".index"):
                self.assertEqual((out / name).read_bytes(), content, name)

    def test_a_link_by_the_name_of_a_whole_shard_is_not_taken_for_it(self):
        out, whole = self.shared(), self.new()
        self.assertEqual(self.write_into(whole, *[self.make_photos()] * 99).returncode, 0)
        process = start("presto-write", "-q", "-p", self.pipeline, "-u", "resized", "-s", "4", "-j", "1", "-o", out,
                        *[self.make_photos()] * 100)
        while process.poll() is None and not shards(out):
            pass
        process.kill()
        self.finish(process)
        self.assertFalse((out / "dataset.json").exists(), "the run was over before it could be killed")
        shard = shards(out)[0]
        self.precious.write_bytes(bytes(shard.stat().st_size))
        shard.unlink()
        self.plant(out, shard.name)
        done = self.write_into(out, "--resume", *[self.make_photos()] * 99)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(set(self.precious.read_bytes()), {0})
        self.assert_same_dataset(out, snapshot(whole))

    def test_links_beside_files_that_are_indexed_and_repaired(self):
        out = self.shared()
        dataset = self.write("-s", "1")
        shutil.copy(shards(dataset)[0], out / "x.tfrecord")
        self.plant(out, ".x.tfrecord.index.partial", "x.tfrecord.index", ".new.tfrecord.partial", "x.idx", ".x.idx.partial",
                   ".new.tfrecord.index.partial", "new.tfrecord.index")
        self.assertEqual(run("presto-inspect", "index", out / "x.tfrecord").returncode, 0)
        self.assertEqual(run("presto-inspect", "repair", out / "x.tfrecord", "-o", out / "new.tfrecord").returncode, 0)
        self.assert_untouched()

    def test_links_by_names_that_the_user_gives(self):
        out, dataset = self.shared(), self.write("-u", "resized", "-s", "1")
        load = ["presto-load", "-q", "--format", "null"]
        pipe = self.new("pipe")
        os.mkfifo(pipe)
        pipe.chmod(0o666)
        inlet = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, inlet)
        for to in (self.precious, pipe):
            for name in ("report", "stats", "state"):
                subprocess.run([*as_nobody(), "ln", "-sfT", to, out / name], check=True)
            done = run(*load, "--on-error", "skip", "--error-report", out / "report", dataset)
            self.assert_fails(done, 1, f"{out}/report: is a link that another user has made, which is not followed")
            self.assertNotEqual(run(*load, "--state", out / "state", dataset).returncode, 0)
            self.assertTrue((out / "state").is_symlink())
            self.assertEqual(run(*load, "--stats", out / "stats", dataset).returncode, 0)
            self.assertFalse((out / "stats").is_symlink())
            self.assertEqual(json.loads((out / "stats").read_text())["samples"], self.photo_count)
            self.assert_untouched()
            self.assertEqual(os.read(inlet, 1), b"")

    def test_links_that_take_the_place_of_states_under_way(self):
        out, dataset = self.shared(), self.write("-u", "resized", "-s", "1")
        pipe, state = self.new("pipe"), out / "state"
        os.mkfifo(pipe)
        process = start("presto-load", "-q", "-e", "50", "--format", "raw", "--state", state, dataset)
        os.read(process.stdout.fileno(), 1)  # nobody reads on, so it waits
        self.assertTrue(state.exists())
        subprocess.run([*as_nobody(), "ln", "-sfT", pipe, state], check=True)
        _, err = self.finish(process)
        self.assertEqual((process.returncode, err), (0, ""))
        self.assertFalse(state.is_symlink())
        self.assertEqual(json.loads(state.read_text())["epoch"], 50)

    def test_links_beside_results(self):
        out = self.shared()
        self.plant(out, *(f".{name}.partial" for name in ("results.json", "results.csv", "strategy.yaml", "report.html",
                                                          "trials.jsonl")))
        done = run("presto-sweep", "-q", "-p", self.pipeline, "--codecs", "none", "--threads", "1", "--stored", "resized",
                   "--samples", "3", "--runs", "1", "--run-time", "0.01", "-o", out, self.make_photos())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_untouched()


if __name__ == "__main__":
    main()
