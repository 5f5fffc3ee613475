# SPDX-License-Identifier: Apache-2.0
"""Rows of foreign.py about what the Python prototype of the paper called for its costly steps. One thread each."""
import json
import pathlib
import subprocess
import sys

from foreign import Row, Way

ROOT = pathlib.Path(__file__).resolve().parent.parent


def corpus(name, bench, scale):
    """The folder of the corpus of a built-in pipeline."""
    size = ["--tiny"] if bench.quick else ["--scale", str(scale)]
    made = subprocess.run([sys.executable, ROOT / "tests/corpora/make", name, *size], stdout=subprocess.PIPE, text=True, check=True)
    return pathlib.Path(made.stdout.strip())


def one_thread(bench, *arguments):
    """The command line of presto-load for a single thread."""
    return [str(bench.tools / "presto-load"), "--quiet", "-j", "1", "-b", "1", *map(str, arguments)]


def deliver(bench, count, *arguments):
    subprocess.run(one_thread(bench, "--format", "null", *arguments), check=True)
    return count


def raw_samples(bench, *arguments):
    """All values of all samples, one after the other, as bytes."""
    return subprocess.run(one_thread(bench, "--format", "raw", *arguments), stdout=subprocess.PIPE, check=True).stdout


def web_pages(bench):
    """The main text of web pages, as newspaper4k finds it."""
    import text_quality

    extract = text_quality.newspaper_extractor()
    folder = corpus("nlp", bench, 0.1)
    pages = [path.read_bytes() for path in sorted(folder.rglob("*.html"))]
    ours = ["-p", "nlp", "--to", "decoded", folder]

    def theirs():
        for page in pages:
            extract(page)
        return len(pages)

    def compare():
        listed = subprocess.run([bench.tools / "presto-load", *ours, "--format", "null", "--json", "--quiet"],
                                stdout=subprocess.PIPE, check=True)
        assert json.loads(listed.stdout)["samples"] == len(pages)
        return f"{len(pages)} pages; bench/text_quality.py compares the texts"

    return Row("pages", [Way("presto-load", lambda: deliver(bench, len(pages), *ours)), Way("newspaper4k", theirs)], compare)


def png16(bench):
    """16-bit PNGs of 17 MB to 8 bits, decoded by TensorFlow."""
    import numpy as np
    import tensorflow as tf

    folder = corpus("cv2-png", bench, 0.2)
    paths = sorted(str(path) for path in folder.rglob("*.png"))
    ours = ["-p", "cv2-png", "--to", "decoded", folder]

    def decoded():
        for path in paths:
            # An operation that is called one by one runs on the thread that calls it.
            yield tf.io.decode_png(tf.io.read_file(path), channels=3, dtype=tf.uint8)

    def theirs():
        return sum(image.shape[2] == 3 for image in decoded())

    def compare():
        wanted = np.concatenate([image.numpy().ravel() for image in decoded()])
        assert np.array_equal(np.frombuffer(raw_samples(bench, *ours), np.uint8), wanted)
        return f"{len(paths)} images are equal"

    return Row("images", [Way("presto-load", lambda: deliver(bench, len(paths), *ours)), Way("tf.io.decode_png", theirs)], compare)


def hdf5(bench):
    """Windows of voltage and current from HDF5 files, read by h5py."""
    import h5py
    import numpy as np

    folder, samples = corpus("nilm", bench, 0.3), 64_000
    paths = sorted(folder.rglob("*.h5")) + sorted(folder.rglob("*.hdf5"))
    ours = ["-p", "nilm", "--to", "decoded", folder]

    def windows():
        for path in paths:
            with h5py.File(path, "r") as file:
                voltage, current = file["voltage"], file["current"]
                for start in range(0, len(voltage) - samples + 1, samples):
                    yield np.stack([voltage[start : start + samples], current[start : start + samples]])

    count = sum(1 for _ in windows())

    def compare():
        wanted = np.concatenate([window.ravel() for window in windows()])
        got = np.frombuffer(raw_samples(bench, *ours), wanted.dtype)
        assert np.array_equal(got, wanted)
        return f"{count} windows of {samples} values each are equal"

    return Row("windows", [Way("presto-load", lambda: deliver(bench, count, *ours)),
                           Way("h5py", lambda: sum(len(window) == 2 for window in windows()))], compare)


ROWS = {"web_pages": web_pages, "png16": png16, "hdf5": hdf5}
