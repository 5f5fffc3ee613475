# SPDX-License-Identifier: Apache-2.0
"""The golden TFRecords: good, bad and unsupported files, and what the right reading of each is.

good-*        must read as the manifest says
bad-*         must be reported as the manifest says; the records before the fault are whole
unsupported-* valid, and refused with a reason

Run through make_golden.py.
"""

import gzip
import json
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import zlib

import blosc
import numpy as np
import snappy
import tensorflow as tf

from golden_payloads import (
    HEADER,
    FOOTER,
    frame,
    sha256,
    example_json,
    sequence_json,
    tensor_example_json,
    example,
    examples,
    tensors,
    value_field_tensors,
    unsupported_tensors,
    field,
    example_forms,
    sequences,
)


def plain_records():
    rng = np.random.default_rng(10)
    return [rng.bytes(n) for n in (10, 0, 1, 300, 64)]


def tool(*command):
    return lambda data: subprocess.run(
        command, input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout


def with_size(*command):
    """A tool that stores the size of the content only when it reads a file."""

    def compress(data):
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            return tool(*command, file.name)(b"")

    return compress


RECORD_CODECS = {
    "zlib": ("Python's zlib, level 6", lambda d: zlib.compress(d, 6)),
    "gzip": ("Python's gzip, level 9", lambda d: gzip.compress(d, 9, mtime=0)),
    "zstd": ("zstd 1.5.4, level 3", with_size("zstd", "-q", "-3", "-c")),
    "lz4": ("lz4 1.9.4, level 1", with_size("lz4", "-q", "-1", "--content-size", "-c")),
    "snappy": ("python-snappy, raw block", snappy.compress),
    "blosc-lz4": ("python-blosc, byte shuffle, typesize 4",
                  lambda d: blosc.compress(d, typesize=4, cname="lz4", shuffle=blosc.SHUFFLE)),
    "blosc-zstd": ("python-blosc, bit shuffle, typesize 4",
                   lambda d: blosc.compress(d, typesize=4, cname="zstd", shuffle=blosc.BITSHUFFLE)),
}

# ---- files ----------------------------------------------------------------------------------------


def tensorflow_reading(path, compression):
    """How many records TensorFlow reads, and the error it ends with."""
    count = 0
    try:
        for _ in tf.data.TFRecordDataset(str(path), compression_type=compression.upper()):
            count += 1
    except tf.errors.OpError as error:
        message = error.message.split("}} ")[-1].split(" [Op:")[0]
        return {"records": count, "error": f"{type(error).__name__}: {message}"}
    return {"records": count, "error": None}


def tensorflow_reading_apart(path):
    """The same in a process of its own, for files that may bring TensorFlow down."""
    program = (
        "import json, pathlib, sys, golden_tfrecords as g\n"
        "print(json.dumps(g.tensorflow_reading(pathlib.Path(sys.argv[1]), '')))"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], cwd=pathlib.Path(__file__).parent,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if done.returncode < 0:
        return {"records": None, "error": f"the process dies of {signal.Signals(-done.returncode).name}"}
    return json.loads(done.stdout)


class Folder:
    def __init__(self, path):
        self.path = path
        self.entries = []

    def add(self, name, what, made_by, data, payloads, describe=None, compression="none",
            codec=None, **extra):
        """Write one file; `payloads` are the records that the right reading yields."""
        (self.path / name).write_bytes(data)
        records, offset = [], 0
        for payload in payloads:
            record = {"offset": offset, "bytes": len(payload), "sha256": sha256(payload)}
            if codec:
                record["decoded"] = {"bytes": len(codec[1][offset]), "sha256": sha256(codec[1][offset])}
                payload_to_show = codec[1][offset]
            else:
                payload_to_show = payload
            if describe:
                record.update(describe(payload_to_show))
            records.append(record)
            offset += HEADER + len(payload) + FOOTER
        entry = {"file": name, "what": what, "made_by": made_by, "bytes": len(data),
                 "sha256": sha256(data), "file_compression": compression,
                 "record_codec": codec[0] if codec else "none", "records": records, **extra}
        if entry.get("fault", {}).get("kind") == "length":
            entry["tensorflow"] = tensorflow_reading_apart(self.path / name)
        else:
            reading = "" if compression == "none" else compression
            entry["tensorflow"] = tensorflow_reading(self.path / name, reading)
        self.entries.append(entry)

    def write(self, name, payloads, compression=""):
        """Have TensorFlow write the records; return the file's bytes."""
        path = self.path / name
        with tf.io.TFRecordWriter(str(path), tf.io.TFRecordOptions(compression)) as writer:
            for payload in payloads:
                writer.write(payload)
        return path.read_bytes()


def add_good(folder):
    by = "TensorFlow"
    for name, what, payloads, describe, maker in (
        ("plain", "records of bytes, 10, 0, 1, 300 and 64 long", plain_records(), None, by),
        ("empty-record", "one record without bytes", [b""], None, by),
        ("no-records", "a file without bytes", [], None, by),
        ("examples", "Examples of all kinds", examples(), example_json, by),
        ("sequence", "a SequenceExample", sequences(), sequence_json, by),
        ("tensors", "Examples with `tensor` from tf.io.serialize_tensor",
         [example(tensor=[t], index=[i]) for i, t in enumerate(tensors())], tensor_example_json, by),
        ("tensors-in-value-fields", "the same with the numbers in float_val, int_val, ...",
         [example(tensor=[t], index=[i]) for i, t in enumerate(value_field_tensors())],
         tensor_example_json, by),
        ("example-forms", "valid encodings that TensorFlow's writer does not produce; values as "
         "protobuf's parser gives them", example_forms(), example_json, "hand, framed by TensorFlow"),
    ):
        file = f"good-{name}.tfrecord"
        folder.add(file, what, maker, folder.write(file, payloads), payloads, describe)

    payloads = examples()
    for compression, suffix in (("gzip", "gz"), ("zlib", "deflate")):
        file = f"good-examples.tfrecord.{suffix}"
        data = folder.write(file, payloads, compression.upper())
        folder.add(file, f"the Examples, whole file {compression}", by, data, payloads,
                   example_json, compression)
    file = "good-no-records.tfrecord.gz"
    folder.add(file, "no record, whole file gzip", by, folder.write(file, [], "GZIP"), [],
               compression="gzip")
    framed = b"".join(frame(p) for p in payloads)
    halves = [b"".join(frame(p) for p in part) for part in (payloads[:2], payloads[2:])]
    folder.add("good-examples-two-members.tfrecord.gz", "two gzip files put together", "Python's gzip",
               b"".join(gzip.compress(m, 6, mtime=0) for m in halves), payloads, example_json, "gzip")
    members = [framed[: len(framed) // 2], b"", framed[len(framed) // 2 :]]
    folder.add("good-examples-members.tfrecord.gz", "three gzip members, cut inside a record, the "
               "second one empty; TensorFlow stops there", "Python's gzip",
               b"".join(gzip.compress(m, 6, mtime=0) for m in members), payloads, example_json, "gzip")

    decoded = [*payloads[:5], *(example(tensor=[t]) for t in tensors()[:2])]
    for name, (maker, compress) in RECORD_CODECS.items():
        packed = [compress(p) for p in decoded]
        by_offset, offset = {}, 0
        for p, original in zip(packed, decoded):
            by_offset[offset] = original
            offset += HEADER + len(p) + FOOTER
        file = f"good-records-{name}.tfrecord"
        folder.add(file, f"Examples, each record {name}", f"{maker}, framed by TensorFlow",
                   folder.write(file, packed), packed, example_json, codec=(name, by_offset))
        if name in ("zlib", "gzip"):
            for p, original in zip(packed, decoded):
                assert tf.io.decode_compressed(p, name.upper()).numpy() == original


def add_bad(folder):
    payloads = plain_records()
    frames = [frame(p) for p in payloads]
    whole = b"".join(frames)
    starts = [sum(map(len, frames[:i])) for i in range(len(frames) + 1)]
    hand = "a good file, damaged by hand"

    def add(name, what, data, kind, record, recoverable=(), offset=None, before=None, **extra):
        """`recoverable` are the records that stand whole after the fault."""
        before = payloads[:record] if before is None else before
        folder.add(
            f"bad-{name}.tfrecord", what, hand, data, before,
            fault={"kind": kind, "record": record, "record_offset": starts[record],
                   "offset": starts[record] if offset is None else offset},
            recoverable=[{"offset": starts[i], "bytes": len(payloads[i]), "sha256": sha256(payloads[i])}
                         for i in recoverable], **extra)

    def flipped(at, bit=0):
        data = bytearray(whole)
        data[at] ^= 1 << bit
        return bytes(data)

    at = starts[3]  # the record of 300 bytes
    add("length-bit", "record 3: lowest bit of its length flipped", flipped(at), "length-crc", 3, [4])
    add("length-top-bit", "record 3: highest bit of its length flipped", flipped(at + 7, 7),
        "length-crc", 3, [4])
    add("length-crc-bit", "record 3: a bit of the length's CRC flipped", flipped(at + 8, 3),
        "length-crc", 3, [4])
    add("data-bit", "record 3: a bit of its data flipped", flipped(at + 12 + 150, 5), "data-crc", 3,
        [4], offset=at + 12)
    add("data-crc-bit", "record 3: a bit of the data's CRC flipped", flipped(at + 12 + 300, 1),
        "data-crc", 3, [4], offset=at + 12)
    add("first-length-bit", "record 0: a bit of its length flipped", flipped(1, 2), "length-crc", 0,
        [1, 2, 3, 4])
    add("empty-record-crc-bit", "record 1 (no data): a bit of the data's CRC flipped",
        flipped(starts[1] + 12), "data-crc", 1, [2, 3, 4], offset=starts[1] + 12)

    for left in range(1, 12):
        add(f"cut-header-{left:02}", f"record 4: only {left} bytes of its header are there",
            whole[: starts[4] + left], "truncated", 4)
    add("cut-after-header", "record 4: cut right after its header", whole[: starts[4] + 12],
        "truncated", 4)
    add("cut-data", "record 4: cut inside its data", whole[: starts[4] + 12 + 30], "truncated", 4)
    for left in range(4):
        add(f"cut-footer-{left}", f"record 4: {left} bytes of the data's CRC are there",
            whole[: starts[5] - 4 + left], "truncated", 4)

    zeros = whole[:at] + bytes(4096)
    folder.add("bad-zeros.tfrecord", "4096 zero bytes after record 2, then the rest", hand,
               zeros + whole[at:], payloads[:3],
               fault={"kind": "length-crc", "record": 3, "record_offset": at, "offset": at},
               recoverable=[{"offset": starts[i] + 4096, "bytes": len(payloads[i]),
                             "sha256": sha256(payloads[i])} for i in (3, 4)])
    missing = whole[: at + 100] + whole[at + 130 :]
    folder.add("bad-hole.tfrecord", "30 bytes missing from record 3's data", hand, missing,
               payloads[:3],
               fault={"kind": "data-crc", "record": 3, "record_offset": at, "offset": at + 12},
               recoverable=[{"offset": starts[4] - 30, "bytes": len(payloads[4]),
                             "sha256": sha256(payloads[4])}])
    add("huge-length", "record 3 claims 2^62 bytes, with the right CRC",
        whole[:at] + frame(payloads[3], length=2**62) + whole[starts[4] :], "length", 3, [4])
    add("negative-length", "record 3 claims 2^64 - 1 bytes, with the right CRC",
        whole[:at] + frame(payloads[3], length=2**64 - 1) + whole[starts[4] :], "length", 3, [4])
    for name, what, data in (("text", "a text file", b"This is not a TFRecord file.\n" * 3),
                             ("short-text", "a text file shorter than a header", b"text\n")):
        folder.add(f"bad-{name}.tfrecord", what, hand, data, [], fault={"kind": "foreign"})

    by = "hand, framed by TensorFlow"
    malformed = [
        ("truncated-field", examples()[0][:-5]),
        ("length-past-end", field(1, 2, b"\x0a\x7f\x0a\x01k")),
        ("endless-varint", b"\x0a" + b"\xff" * 12),
        ("field-zero", b"\x00\x01"),
        ("open-group", b"\x0b\x08\x01"),
    ]
    good = examples()[0]
    for name, payload in malformed:
        file = f"bad-example-{name}.tfrecord"
        records = [good, payload, good]
        folder.add(file, f"record 1 is framed well and is no Example ({name})", by,
                   folder.write(file, records), records,
                   fault={"kind": "example", "record": 1, "record_offset": len(frame(good)),
                          "offset": len(frame(good)) + HEADER}, recoverable=[])
        try:
            tf.train.Example.FromString(payload)
        except Exception:
            continue
        raise AssertionError(f"{name} parses")

    # Whole-file compression: what can be read before the fault is up to the reader's buffers.
    packed = folder.write("bad-cut.tfrecord.gz", payloads * 20, "GZIP")
    trailer = bytearray(packed)
    trailer[-6] ^= 1
    middle = bytearray(packed)
    middle[len(packed) // 2] ^= 0x20
    plain = b"".join(frames[:3])
    boundary = zlib.compressobj(9, zlib.DEFLATED, 31)
    boundary = boundary.compress(plain) + boundary.flush(zlib.Z_SYNC_FLUSH)
    for file, what, data, compression in (
        ("bad-cut.tfrecord.gz", "cut in the middle", packed[: len(packed) // 2], "gzip"),
        ("bad-trailer.tfrecord.gz", "a bit of the trailer's CRC flipped", bytes(trailer), "gzip"),
        ("bad-bit.tfrecord.gz", "a bit in the middle flipped", bytes(middle), "gzip"),
        ("bad-cut-at-record.tfrecord.gz", "cut between two records; TensorFlow reads it as whole",
         boundary, "gzip"),
        ("bad-adler.tfrecord.deflate", "the last byte (of the Adler-32) changed",
         zlib.compress(whole)[:-1] + b"\x00", "zlib"),
        ("bad-header-only.tfrecord.gz", "a gzip header and nothing more", packed[:10], "gzip"),
    ):
        folder.add(file, f"whole file {compression}: {what}", hand, data, [],
                   compression=compression, fault={"kind": "compression"})

    # Compressed records that do not decode: the frames are whole.
    original = examples()[0]
    for name in ("zlib", "gzip", "zstd", "lz4", "snappy", "blosc-lz4"):
        packed = RECORD_CODECS[name][1](original)
        cut = packed[: len(packed) - 9]
        file = f"bad-records-{name}.tfrecord"
        records = [packed, cut, packed]
        folder.add(file, f"record 1: the {name} payload lacks its last 9 bytes", by,
                   folder.write(file, records), records,
                   fault={"kind": "codec", "codec": name, "record": 1,
                          "record_offset": len(frame(packed)),
                          "offset": len(frame(packed)) + HEADER}, recoverable=[])


def add_unsupported(folder):
    framed = b"".join(frame(p) for p in plain_records())
    block = snappy.compress(framed)
    folder.add("unsupported-snappy.tfrecord.snappy", "whole file in TensorFlow's SNAPPY form "
               "(u32 big-endian length, raw block)", "python-snappy",
               struct.pack(">I", len(block)) + block, [], compression="snappy")
    payloads = [example(tensor=[t]) for t in unsupported_tensors()]
    file = "unsupported-tensor-dtypes.tfrecord"
    folder.add(file, "Examples with complex64, complex128 and bfloat16 tensors", "TensorFlow",
               folder.write(file, payloads), payloads, example_json)


def make(path):
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    folder = Folder(path)
    add_good(folder)
    add_bad(folder)
    add_unsupported(folder)
    manifest = {
        "schema": 1,
        "made_with": {"tensorflow": tf.__version__, "blosc": blosc.__version__},
        "offsets": "bytes of the framed stream; `data-crc`, `codec` and `example` faults are counted "
                   "from where the data starts, others from where the record starts",
        "files": folder.entries,
    }
    (path / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    print(f"tfrecords: {len(folder.entries)}")
