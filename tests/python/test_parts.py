#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto.write(part=...) and presto.join(): many calls, the files of one."""
import concurrent.futures

from case import PythonCase, cli, main, presto


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


class Parts(PythonCase):
    @classmethod
    def setUpClass(cls):
        cli.Case.setUpClass.__func__(cls)  # no datasets

    def write(self, out, **options):
        return presto.write(self.make_photos(), out, pipeline=self.pipeline, up_to="resized", shards=5, threads=1, progress=False, **options)

    def test_many_calls_make_the_files_of_one(self):
        whole, out = self.new(), self.new()
        self.write(whole)
        parts = [self.write(out, part=f"{number}/3", attempt=f"task-{number}") for number in (2, 0, 1)]
        self.assertEqual(sum(part.samples for part in parts), self.photo_count)
        self.assertEqual([part.shards for part in parts], [2, 1, 2])
        with self.assertRaises(presto.BusyError):
            presto.open(out)
        joined = presto.join(out)
        self.assertEqual((joined.samples, joined.shards, joined.path), (self.photo_count, 5, str(out)))
        self.assertEqual(contents(out), contents(whole))
        self.assertEqual(len(presto.open(out)), self.photo_count)

    def test_threads_of_one_process_write_parts_at_once(self):
        whole, out = self.new(), self.new()
        self.write(whole)
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda number: self.write(out, part=f"{number}/3"), range(3)))
        presto.join(out, sync=False)
        self.assertEqual(contents(out), contents(whole))

    def test_of_a_split_and_without_a_pipeline(self):
        whole, out, again, parts = self.new(), self.new(), self.new(), self.new()
        self.write(whole, split="50/50", part="train")
        for number in range(2):
            self.write(out, split="50/50", part=("train", f"{number}/2"))
        presto.join(out)
        self.assertEqual(contents(out), contents(whole))
        presto.write(whole, again, codec="zlib:1", progress=False)
        for number in range(2):
            presto.write(whole, parts, codec="zlib:1", part=f"{number}/2", progress=False)
        presto.join(parts)
        self.assertEqual(contents(parts), contents(again))

    def test_attempts_are_named(self):
        whole, out = self.new(), self.new()
        self.write(whole)
        for number in range(2):
            self.write(out, part=f"{number}/2", attempt="a")
        with self.assertRaises(presto.NotFoundError):
            presto.join(out, attempts=["00000-of-00002.a", "00001-of-00002.b"])
        with self.assertRaisesRegex(presto.BusyError, "1 of 2 parts is not whole: 1"):
            presto.join(out, attempts=["00000-of-00002.a"])
        presto.join(out, attempts=["00000-of-00002.a", "00001-of-00002.a"])
        self.assertEqual(contents(out), contents(whole))
        with self.assertRaises(TypeError):
            presto.join(out, attempts="00000-of-00002.a")

    def test_what_is_refused(self):
        out = self.new()
        for part in ("3/3", "a/3", "1/", "/3", "-1/3", ("train",), ("train", 3)):
            with self.assertRaises(presto.ArgumentError, msg=repr(part)):
                self.write(out, part=part)
        with self.assertRaises(presto.ArgumentError):
            self.write(out, attempt="a")
        with self.assertRaises(presto.ArgumentError):
            presto.write(self.make_photos(), out, pipeline=self.pipeline, part="0/2", progress=False)
        with self.assertRaises(presto.UnsupportedError):
            self.write("s3://bucket/key", part="0/2")
        with self.assertRaises(presto.UnsupportedError):
            presto.join("s3://bucket/key")
        with self.assertRaises(presto.NotFoundError):
            presto.join(self.folder / "nowhere")
        self.assertFalse(out.exists())


if __name__ == "__main__":
    main()
