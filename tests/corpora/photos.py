# SPDX-License-Identifier: Apache-2.0
"""Photos in class folders, by presto-make-photos. The means of the paper: JPEGs of 0.11 MB (cv) and 0.52 MB (cv2-jpg),
16-bit PNGs of 17.4 MB (cv2-png)."""
import os
import pathlib
import shutil

from corpus import MissingTool, run

BUILT = pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "tools" / "presto-make-photos"
CLASSES = 10


def program():
    named = os.environ.get("PRESTO_PHOTOS")
    path = named or (str(BUILT) if BUILT.exists() else shutil.which("presto-make-photos"))
    if path is None or not os.access(path, os.X_OK):
        raise MissingTool("the program presto-make-photos is missing; build Presto first (with libjpeg-turbo and libspng)")
    return path


def photograph(folder, size, *options):
    small = ("--width", 96, "--height", 72) if size.tiny else ()
    classes = min(CLASSES, max(2, size.count // 2))
    run([program(), "--quiet", "--count", size.count, "--classes", classes, *options, *small, "--output", folder])


def make_cv(folder, size):
    photograph(folder, size)


def make_cv2_jpg(folder, size):
    photograph(folder, size, "--width", 2592, "--height", 1728, "--quality", 25)


def make_cv2_png(folder, size):
    photograph(folder, size, "--width", 2592, "--height", 1728, "--format", "png16")
