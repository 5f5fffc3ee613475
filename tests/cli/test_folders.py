# SPDX-License-Identifier: Apache-2.0
"""Folders that somebody else may write to, or has written to: what stands where a file is expected."""
import json
import os
import shutil
import socket
import subprocess

from cli import Case, main, run


def bind(path):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path))


KINDS = {"a named pipe": os.mkfifo, "a folder": os.mkdir, "a socket": bind,
         "a device": lambda path: os.symlink("/dev/zero", path)}


class NotRegular(Case):
    """What is no regular file by a name of ours is refused at once; nothing waits for it."""

    def assert_refused(self, path, kind, *command):
        done = run(*command, timeout=60)
        self.assertEqual(done.returncode, 1, (kind, command, done.stderr))
        self.assertIn(path.name, done.stderr)
        if kind != "a socket":  # which cannot be opened at all
            self.assertIn(f"is {kind}, not a regular file", done.stderr)

    def each_kind(self, path, check):
        """Put one after another at `path`, and see what check(kind) finds."""
        for kind, make in KINDS.items():
            make(path)
            check(kind)
            os.rmdir(path) if kind == "a folder" else os.unlink(path)

    def test_dataset_json(self):
        dataset = self.write("-s", "2")
        path = dataset / "dataset.json"
        path.unlink()

        def check(kind):
            for command in (("presto-load", "--format", "null", dataset), ("presto-inspect", "info", dataset),
                            ("presto-inspect", "verify", dataset),
                            ("presto-inspect", "recode", "-o", self.new(), dataset)):
                self.assert_refused(path, kind, *command)

        self.each_kind(path, check)

    def test_a_shard(self):
        dataset = self.write("-s", "2")
        path = next(dataset.glob("data-00000-of-*.tfrecord"))
        path.unlink()
        self.each_kind(path, lambda kind: self.assert_refused(path, kind, "presto-load", "--format", "null", dataset))

    def test_an_index_is_done_without(self):
        dataset = self.write("-s", "2")
        whole = self.load(dataset)
        path = next(dataset.glob("data-00000-of-*.index"))
        path.unlink()

        def check(kind):
            self.assertEqual(self.load(dataset), whole)
            self.assertEqual(run("presto-inspect", "info", dataset).returncode, 0)

        self.each_kind(path, check)

    def test_an_index_beside_a_source_of_a_sweep_is_done_without(self):
        source = self.new()
        source.mkdir()
        shutil.copy(next(self.write("-u", "concatenated", "-s", "1").glob("*.tfrecord")), source / "a.tfrecord")
        pipeline = self.folder / "records.yaml"
        pipeline.write_text("name: records\nsource: {type: tfrecord, feature: image}\nsteps:\n"
                            "  - {step: decode-image, yields: decoded}\n"
                            "  - {step: resize-image, yields: resized, height: 20, width: 20}\n")

        def check(kind):
            done = run("presto-sweep", "-q", "--measure", "-p", pipeline, "--stored", "unprocessed,resized", "--codecs",
                       "none", "--threads", "1", "--samples", "4", "--runs", "1", "--run-time", "0", "-o", self.new(), source,
                       timeout=60)
            self.assertEqual(done.returncode, 0, (kind, done.stderr))

        self.each_kind(source / "a.tfrecord.index", check)

    def test_the_dictionary(self):
        dataset = self.write("-s", "1", "-c", "zstd:3+dict", "-u", "resized")
        path = dataset / "dictionary"
        path.unlink()
        self.each_kind(path, lambda kind: self.assert_refused(path, kind, "presto-load", "--format", "null", dataset))

    def test_the_progress_file(self):
        out = self.new()
        out.mkdir()
        path = out / ".progress.json"

        def check(kind):
            for resume in ((), ("--resume",)):
                self.assert_refused(path, kind, "presto-write", "-p", self.pipeline, "-u", "resized", "-o", out,
                                    *resume, self.make_photos())

        self.each_kind(path, check)

    def test_what_the_user_names(self):
        dataset, photos, path = self.write("-s", "1"), self.make_photos(), self.folder / "named.yaml"

        def check(kind):
            self.assert_refused(path, kind, "presto-load", "-p", path, "--format", "null", photos)
            self.assert_refused(path, kind, "presto-write", "--strategy", path, "-o", self.new(), photos)
            done = run("presto-load", "--state", path, "--format", "null", dataset, timeout=60)
            self.assert_fails(done, 1, path)

        self.each_kind(path, check)

    def test_blocks_of_a_cache(self):
        dataset, cache = self.write("-s", "1"), self.new("cache")
        arguments = ["--cache", f"disk:{cache}:100MiB", "--to", "pixel-centered", "--format", "raw", "--features", "image",
                     dataset]
        whole = self.load(*arguments)
        (path,) = cache.glob("presto-*.block")

        def check(kind):
            self.assertEqual(self.load(*arguments), whole, kind)
            for made in cache.glob("presto-*.block"):
                if made != path:
                    made.unlink()

        path.unlink()
        self.each_kind(path, check)

    def test_a_file_larger_than_such_files_are_is_not_read(self):
        dataset = self.new()
        shutil.copytree(self.write("-s", "1"), dataset)
        os.truncate(dataset / "dataset.json", 20 << 30)
        self.assert_fails(run("presto-load", "--format", "null", dataset), 1, "dataset.json: is larger than")


class Named(Case):
    """Outputs that the user names: what is no regular file is written to as it stands."""
    photo_count = 4

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dataset = cls.write("-u", "resized", "-s", "1")
        cls.bad = cls.new("bad")
        shutil.copytree(cls.dataset, cls.bad)
        shard = next(cls.bad.glob("*.tfrecord"))
        shard.write_bytes(shard.read_bytes()[:-9])

    def stats(self, path, **options):
        done = run("presto-load", "-q", "--format", "null", "--stats", path, self.dataset, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def report(self, path, **options):
        done = run("presto-load", "-q", "--format", "null", "--on-error", "skip", "--error-report", path, self.bad, **options)
        self.assertEqual((done.returncode, done.stderr if path != "/dev/stderr" else ""), (0, ""))
        return done

    def assert_stats(self, text):
        self.assertEqual(json.loads(text)["samples"], self.photo_count)

    def assert_report(self, text):
        self.assertEqual(json.loads(text)["sample"], self.photo_count - 1)

    def test_open_descriptors(self):
        self.assert_stats(self.stats("/dev/stderr").stderr)
        self.assert_stats(self.stats("/dev/stdout").stdout)
        self.assert_report(self.report("/dev/stderr").stderr)
        for write, check in ((self.stats, self.assert_stats), (self.report, self.assert_report)):
            for folder in ("/dev/fd", "/proc/self/fd"):
                path = self.new("log")
                path.write_text("before\n")
                with open(path, "a") as file:
                    write(f"{folder}/{file.fileno()}", pass_fds=[file.fileno()])
                before, rest = path.read_text().split("\n", 1)
                self.assertEqual(before, "before")
                check(rest)

    def test_a_descriptor_that_is_not_open_to_write_is_told_at_once(self):
        with open(self.dataset / "dataset.json") as file:
            for number, fds in ((file.fileno(), [file.fileno()]), (99, [])):
                done = run("presto-load", "--format", "null", "--stats", f"/dev/fd/{number}", self.dataset, pass_fds=fds)
                self.assert_fails(done, 1, f"/dev/fd/{number}: cannot write: Bad file descriptor")
                self.assertNotIn("samples", done.stderr)

    def test_pipes_and_links_of_ones_own(self):
        for write, check in ((self.stats, self.assert_stats), (self.report, self.assert_report)):
            pipe, link = self.new("pipe"), self.new("link")
            os.mkfifo(pipe)
            link.symlink_to(pipe)
            for path in (pipe, link):
                reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
                write(path)
                check(reader.communicate(timeout=60)[0])
            self.assertTrue(pipe.is_fifo() and link.is_symlink())
            file = self.new("file")
            file.write_text("")
            link.unlink()
            link.symlink_to(file)
            write(link)
            check(link.read_text())
            # Figures take the link's place; lines are added to what the link names.
            self.assertEqual(link.is_symlink(), write == self.report)
            self.assertEqual(file.read_text() == "", write == self.stats)


if __name__ == "__main__":
    main()
