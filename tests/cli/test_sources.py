#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Raw sources: which files are found, what is said about the others, where labels come from."""
import os
import shutil

from cli import Case, example, frames, main, run


class Links(Case):
    photo_count = 1
    classes = 1

    def chain(self, file):
        """Folders of which each has two links to the next; the last one holds the file: 2^25 paths lead to it."""
        folder = self.new("chain")
        for i in range(26):
            (folder / str(i)).mkdir(parents=True)
            if i < 25:
                for name in "ab":
                    (folder / str(i) / name).symlink_to(f"../{i + 1}")
        shutil.copy(file, folder / "25")
        return folder / "0"

    def test_photos_behind_many_links_are_found_once(self):
        photo = next(self.make_photos().rglob("*.jpg"))
        found = frames(self.load("-q", "-p", self.pipeline, "--to", "concatenated", self.chain(photo)))
        self.assertEqual([example(f)["key"][0] for f in found], [os.fsencode("a/" * 25 + photo.name)])

    def test_records_behind_many_links_are_found_once(self):
        shard = next(self.write("-u", "concatenated", "-s", "1").glob("*.tfrecord"))
        self.assertEqual(len(frames(self.load("-q", self.chain(shard)))), 1)


if __name__ == "__main__":
    main()
