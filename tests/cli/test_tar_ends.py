#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tars that end without their blocks of zeros, as GNU tar and Python's tarfile read them."""

import gzip
import io
import json
import tarfile

from cli import Case, main, run

PIPELINE = "{name: t, source: {type: tar, match: ['*.bin']}, steps: [{step: read-file, yields: concatenated}]}"


def tar_of(form, names):
    """The members without the end of the archive."""
    bytes_ = io.BytesIO()
    with tarfile.open(fileobj=bytes_, mode="w", format=form) as tar:
        for i, name in enumerate(names):
            info = tarfile.TarInfo(name)
            content = str(i // 2).encode()
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        end = tar.offset
    return bytes_.getvalue()[:end]


class TarEnds(Case):
    def load(self, path, *words):
        return run("presto-load", "-q", "-p", self.pipeline, "--format", "null", "--json", *words, path)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.pipeline.write_text(PIPELINE)

    def file(self, name, content):
        folder = self.new("tars")
        folder.mkdir()
        (folder / name).write_bytes(content)
        return folder / name

    def test_each_format_keeps_its_last_sample(self):
        long_name = "folder/" * 30
        for form in tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT:
            folder = "" if form == tarfile.USTAR_FORMAT else long_name
            members = [f"{folder}{i}.{kind}" for i in range(4) for kind in ("bin", "cls")]
            whole = tar_of(form, members)
            with tarfile.open(fileobj=io.BytesIO(whole)) as tar:  # the reference
                self.assertEqual(tar.getnames(), members)
            for name, content in ("bare.tar", whole), ("bare.tar.gz", gzip.compress(whole)), ("zeros.tar", whole + bytes(100)):
                with self.subTest(form=form, name=name):
                    path = self.file(name, content)
                    done = self.load(path)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(json.loads(done.stdout)["samples"], 4)
                    done = run("presto-load", "-p", self.pipeline, "--format", "null", path)
                    self.assertIn("ends without the blocks of zeros", done.stderr)

    def test_a_cut_in_the_middle_is_an_error_and_costs_one_sample(self):
        for form in tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT:
            folder = "" if form == tarfile.USTAR_FORMAT else "folder/" * 30
            whole = tar_of(form, [f"{folder}{i}.{kind}" for i in range(4) for kind in ("bin", "cls")])
            # Within the content of the last member, and within the header of the last sample.
            for cut in len(whole) - 512, len(whole) - (3 * 512 + 200):
                with self.subTest(form=form, cut=cut):
                    path = self.file("cut.tar", whole[:cut])
                    done = self.load(path)
                    self.assertEqual(done.returncode, 3, done.stderr)
                    self.assertIn("the tar ends within", done.stderr)
                    done = self.load(path, "--on-error", "skip")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(json.loads(done.stdout)["samples"], 3)


if __name__ == "__main__":
    main()
