# SPDX-License-Identifier: Apache-2.0
"""Folders that somebody else may write to, or has written to: what stands where a file is expected."""
import os
import shutil
import socket

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
            done = run("presto-sweep", "-q", "--measure", "-p", pipeline, "--splits", "unprocessed,resized", "--codecs",
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


if __name__ == "__main__":
    main()
