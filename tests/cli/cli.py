# SPDX-License-Identifier: Apache-2.0
"""What the tests of the programs share: running them, a small corpus, reading TFRecords without Presto.

Each test file runs by itself: PRESTO_TOOLS is the folder of the programs, PRESTO_PHOTOS the program
that makes the corpus. Everything is written into a folder of the test class's own.
"""
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

# A shell's background job ignores Ctrl-C, one of nohup the end of its terminal, and so would all programs started here.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
TOOLS = pathlib.Path(os.environ.get("PRESTO_TOOLS", ROOT / "build" / "release" / "tools"))
PHOTOS = os.environ.get("PRESTO_PHOTOS", ROOT / "build" / "release" / "tools" / "presto-make-photos")
SANITIZED = os.environ.get("PRESTO_SANITIZE", "") != ""
a_sweep = unittest.skipIf("thread" in os.environ.get("PRESTO_SANITIZE", ""), "slow under TSan, where unit.profile.test_sweep runs")
PROGRAMS = ["presto-write", "presto-load", "presto-inspect", "presto-sweep", "presto-make-photos"]
# A hang is a failure; sanitizers and a busy machine are slow.
TIMEOUT_S = 120

# The steps of the pipeline cv on small images, so that the tests are quick under sanitizers.
PIPELINE = """\
name: small
source: {type: files, match: ["*.jpg"], label: parent-folder}
steps:
  - {step: read-file,     yields: concatenated}
  - {step: decode-image,  yields: decoded, channels: 3}
  - {step: resize-image,  yields: resized, min-side: 48}
  - {step: center-pixels, yields: pixel-centered}
  - {step: random-crop,   height: 32, width: 40}
"""


def run(program, *arguments, **options):
    """Run a program to its end; stdout as bytes, stderr as text."""
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("timeout", TIMEOUT_S)
    options.setdefault("stdout", subprocess.PIPE)
    done = subprocess.run([TOOLS / program, *map(str, arguments)], stderr=subprocess.PIPE, **options)
    done.stderr = done.stderr.decode(errors="backslashreplace")
    return done


_CRCS = list(range(256))
for _ in range(8):
    _CRCS = [crc >> 1 ^ (0x82F63B78 if crc & 1 else 0) for crc in _CRCS]


def crc32c(data, before=0):
    """CRC-32C by the polynomial of RFC 3720."""
    value = before ^ 0xFFFFFFFF
    for byte in data:
        value = _CRCS[(value ^ byte) & 255] ^ value >> 8
    return value ^ 0xFFFFFFFF


def frames(data):
    """The payloads of a TFRecord stream."""
    at, payloads = 0, []
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        payloads.append(data[at + 12 : at + 12 + length])
        assert len(payloads[-1]) == length, "stream ends within a record"
        at += 16 + length
    return payloads


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of a protobuf message; lengths and varints only."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            at, value = at + value, data[at : at + value]
        yield key >> 3, value


def example(payload):
    """name -> list of bytes or ints, or the bytes of a float_list, of a tf.train.Example."""
    features = {}
    for _, entry in fields(dict(fields(payload)).get(1, b"")):
        name, feature = (value for _, value in fields(entry))
        kind, values = next(fields(feature), (0, b""))
        if kind in (0, 2):
            features[name.decode()] = values
        elif kind == 3:
            packed = b"".join(v for _, v in fields(values))
            numbers, at = [], 0
            while at < len(packed):
                number, at = varint(packed, at)
                numbers.append(number)
            features[name.decode()] = numbers
        else:
            features[name.decode()] = [value for _, value in fields(values)]
    return features


class Case(unittest.TestCase):
    """A test class with a folder of its own."""

    photo_count = 24
    classes = 4

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="presto-cli-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.pipeline = cls.folder / "small.yaml"
        cls.pipeline.write_text(PIPELINE)
        cls.names = iter(range(1 << 30))

    @classmethod
    def make_photos(cls):
        """A corpus of photos, all of one size; made once a class."""
        photos = cls.folder / "photos"
        if not photos.exists():
            subprocess.run([PHOTOS, "-n", str(cls.photo_count), "-c", str(cls.classes), "--width", "96",
                            "--height", "72", "-j", "0", "-q", "-o", photos], check=True)
        return photos

    @classmethod
    def new(cls, stem="out"):
        """A path that does not exist yet."""
        return cls.folder / f"{stem}-{next(cls.names)}"

    @classmethod
    def write(cls, *arguments, pipeline=None, source=None):
        """Write a dataset of the corpus; its folder."""
        out = cls.new("dataset")
        pipeline = pipeline or cls.pipeline
        if not {"-u", "--up-to", "--strategy"} & set(arguments) and "yields: pixel-centered}" in pathlib.Path(pipeline).read_text():
            arguments = ("-u", "pixel-centered", *arguments)  # the last one: with the fewest steps left
        done = run("presto-write", "-p", pipeline, "-o", out, *arguments, source or cls.make_photos())
        assert done.returncode == 0, done.stderr
        return out

    def load(self, *arguments, **options):
        """stdout of presto-load, which must succeed."""
        done = run("presto-load", *arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def assert_fails(self, done, code, *parts):
        """Exit code, nothing on stdout, and every part in the message, which starts with the program."""
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertRegex(done.stderr, r"^presto-[a-z-]+: ")
        for part in parts:
            self.assertIn(str(part), done.stderr)

    def assert_usage(self, done, *parts):
        """One line, where to look, exit code 2."""
        self.assert_fails(done, 2, *parts)
        lines = done.stderr.splitlines()
        program = lines[0].split(":")[0]
        self.assertEqual(lines[1:], [f"Try '{program} --help'."], done.stderr)
        self.assertEqual(done.stdout, b"")

    def assert_no_dataset(self, out):
        """Nothing there looks like a whole dataset."""
        self.assertFalse((out / "dataset.json").exists())


def main():
    unittest.main(verbosity=2 if "-v" in sys.argv else 1)
