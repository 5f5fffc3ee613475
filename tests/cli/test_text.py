#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pipeline nlp: pages -> stored text -> delivered text."""
import json
import os

from cli import GOLDEN, Case, example, frames, main, run

PAGES = GOLDEN / "html"


class Text(Case):
    def texts(self, *arguments):
        """Text by the name of its page."""
        records = [example(payload) for payload in frames(self.load("-q", *arguments))]
        return {os.fsdecode(record["key"][0]): record["text"][0].decode() for record in records}

    def wanted(self):
        return {page.name: page.with_suffix(".txt").read_text(encoding="utf-8").rstrip("\n") for page in PAGES.glob("*.html")}

    def test_pages_are_written_and_loaded_as_text(self):
        dataset = self.write("-u", "decoded", "-s", "2", pipeline="nlp", source=PAGES)
        stored = json.loads((dataset / "dataset.json").read_text())
        self.assertIn({"name": "text", "dtype": "string", "shape": [], "encoding": "bytes"}, stored["features"])
        self.assertEqual(self.texts("--to", "decoded", dataset), self.wanted())

    def test_text_online_and_from_stored_pages_is_the_same(self):
        pages = self.write("-u", "concatenated", "-s", "1", "-c", "zstd", pipeline="nlp", source=PAGES)
        for threads in ("0", "1", "3"):
            self.assertEqual(self.texts("-j", threads, "--to", "decoded", pages), self.wanted())
            self.assertEqual(self.texts("-j", threads, "-p", "nlp", "--to", "decoded", PAGES), self.wanted())

    def test_options_are_checked(self):
        done = run("presto-load", "-p", "nlp", "--to", "decoded", "--set", "extract-text.encoding=klingon", PAGES)
        self.assert_fails(done, 1, "klingon")


if __name__ == "__main__":
    main()
