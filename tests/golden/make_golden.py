#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the golden files of this folder anew: images and TFRecords, with what TensorFlow reads, models of tokenizers, and pages.

Usage: make_golden.py [images] [tfrecords] [tokenizers] [html]     (default: all)

Needs the packages of tests/requirements.txt, and for the images cjpeg (Debian's
libjpeg-turbo-progs) and pnmtopng (netpbm). The tests do not run this; they read what it wrote.
"""

import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")


def main():
    root = pathlib.Path(__file__).resolve().parent
    wanted = sys.argv[1:] or ["images", "tfrecords", "tokenizers", "html"]
    if not set(wanted) <= {"images", "tfrecords", "tokenizers", "html"}:
        sys.exit(__doc__.strip())
    if "images" in wanted:
        import golden_images

        golden_images.make(root)
    if "tfrecords" in wanted:
        import golden_tfrecords

        golden_tfrecords.make(root / "tfrecord")
    if "tokenizers" in wanted:
        import golden_tokenizers

        golden_tokenizers.make(root / "tokenizers")
    if "html" in wanted:
        import golden_html

        golden_html.make(root / "html")


if __name__ == "__main__":
    main()
