# SPDX-License-Identifier: Apache-2.0
"""What the records of the golden TFRecords hold, as bytes and as JSON; and the frame around a record."""

import hashlib
import struct

import ml_dtypes
import numpy as np
import tensorflow as tf

from tensorflow.core.framework.tensor_pb2 import TensorProto

from golden_images import picture

HEADER, FOOTER = 12, 4
CRC_TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    CRC_TABLE.append(byte)


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def frame(data, length=None):
    """One frame; `length` claims another length than the data has, with the right CRC."""
    head = struct.pack("<Q", len(data) if length is None else length)
    return (head + struct.pack("<I", masked_crc(head)) + data + struct.pack("<I", masked_crc(data)))


def sha256(data):
    return hashlib.sha256(data).hexdigest()


# ---- what a payload holds, as JSON ----------------------------------------------------------------


def bytes_json(value):
    return {"hex": value.hex()} if len(value) <= 64 else {"bytes": len(value), "sha256": sha256(value)}


def feature_json(feature):
    kind = feature.WhichOneof("kind")
    if kind is None:
        return {"kind": None}
    values = getattr(feature, kind).value
    if kind == "bytes_list":
        return {"kind": kind, "values": [bytes_json(v) for v in values]}
    if kind == "float_list":  # the bits, so that they compare exactly
        return {"kind": kind, "float_bits": [struct.pack(">f", v).hex() for v in values]}
    return {"kind": kind, "values": list(values)}


def features_json(features):
    return {name: feature_json(features.feature[name]) for name in sorted(features.feature)}


def example_json(payload):
    return {"example": features_json(tf.train.Example.FromString(payload).features)}


def sequence_json(payload):
    sequence = tf.train.SequenceExample.FromString(payload)
    lists = sequence.feature_lists.feature_list
    return {
        "context": features_json(sequence.context),
        "feature_lists": {n: [feature_json(f) for f in lists[n].feature] for n in sorted(lists)},
    }


def tensor_json(serialized):
    """Shape and little-endian bytes of a serialized TensorProto, as TensorFlow parses it."""
    proto = TensorProto.FromString(serialized)
    dtype = tf.dtypes.as_dtype(proto.dtype)
    array = tf.io.parse_tensor(serialized, dtype).numpy()
    entry = {"dtype": dtype.name, "tensor_dtype": int(proto.dtype), "shape": list(np.shape(array))}
    if dtype == tf.string:
        entry["values"] = [bytes_json(v) for v in np.ravel(array)]
    else:
        entry["data"] = bytes_json(np.asarray(array).tobytes())
    return entry


def tensor_example_json(payload):
    example = tf.train.Example.FromString(payload)
    serialized = example.features.feature["tensor"].bytes_list.value[0]
    return {**example_json(payload), "tensor": tensor_json(serialized)}


# ---- what the records hold ------------------------------------------------------------------------


def feature(values):
    if values is None:
        return tf.train.Feature()
    kinds = {
        bytes: lambda: tf.train.Feature(bytes_list=tf.train.BytesList(value=values)),
        float: lambda: tf.train.Feature(float_list=tf.train.FloatList(value=values)),
        int: lambda: tf.train.Feature(int64_list=tf.train.Int64List(value=values)),
    }
    return kinds[type(values[0])]()


def example(**features):
    features = tf.train.Features(feature={name: feature(v) for name, v in features.items()})
    return tf.train.Example(features=features).SerializeToString(deterministic=True)


def examples():
    rng = np.random.default_rng(7)
    return [
        example(image=[rng.bytes(500)], label=[3], key=[b"class-3/a.jpg"]),
        example(image=[rng.bytes(321)], label=[-1], key=["classe-\u00e9t\u00e9/b.jpg".encode()]),
        example(ids=[0, 1, -1, 127, 128, 2**31, -(2**31), 2**63 - 1, -(2**63)]),
        example(scores=[0.0, -0.0, 1.5, 3.4028235e38, 1e-45, float("inf"), float("-inf"), float("nan")]),
        example(words=[b"", b"one", b"\x00\xff", b"three"], nothing=None),
        example(),
    ]


def tensors():
    rng = np.random.default_rng(8)
    picture_u8 = picture(16, 12, 3, 9)
    arrays = [
        picture_u8,
        (picture_u8 / np.float32(127.5) - 1).astype(np.float32),
        rng.random((2, 3, 4)),
        np.arange(-5, 5, dtype=np.int32).reshape(2, 5),
        np.array([2**63 - 1, -(2**63), 0], np.int64),
        np.arange(-300, 300, 50, dtype=np.int16).reshape(3, 4),
        np.array([-128, 0, 127], np.int8),
        np.array([0, 65535], np.uint16),
        np.array([0, 2**32 - 1], np.uint32),
        np.array([[0], [2**64 - 1]], np.uint64),
        np.array([[True, False, True]]),
        np.linspace(-2, 2, 9, dtype=np.float16),
        np.float32(2.5),  # a scalar: no dimensions
        np.zeros((0, 3), np.float32),  # no elements
        np.array([b"", b"text", b"\x00\x01"], object),
    ]
    return [tf.io.serialize_tensor(tf.constant(a)).numpy() for a in arrays]


def value_field_tensors():
    """TensorProtos with their numbers in the typed fields; the last one given fills the shape."""
    proto, shape = TensorProto, lambda *d: tf.TensorShape(d).as_proto()
    types = tf.dtypes
    made = [
        dict(dtype=types.float32, tensor_shape=shape(2, 2), float_val=[1.5, -2.5, 0.0, 4.0]),
        dict(dtype=types.float32, tensor_shape=shape(3, 4), float_val=[7.25]),
        dict(dtype=types.float64, tensor_shape=shape(2), double_val=[1e300, -1e-300]),
        dict(dtype=types.int32, tensor_shape=shape(3), int_val=[1, -2, 3]),
        dict(dtype=types.uint8, tensor_shape=shape(2, 3), int_val=[0, 1, 254, 255]),
        dict(dtype=types.int16, tensor_shape=shape(2), int_val=[-32768, 32767]),
        dict(dtype=types.int64, tensor_shape=shape(), int64_val=[-9]),
        dict(dtype=types.bool, tensor_shape=shape(3), bool_val=[True, False, True]),
        dict(dtype=types.float16, tensor_shape=shape(2), half_val=[0x3C00, 0xC000]),
        dict(dtype=types.uint32, tensor_shape=shape(2), uint32_val=[1, 2**32 - 1]),
        dict(dtype=types.uint64, tensor_shape=shape(2), uint64_val=[1, 2**64 - 1]),
        dict(dtype=types.float32, tensor_shape=shape(2, 2)),  # no number at all: zeros
    ]
    for fields in made:
        fields["dtype"] = fields["dtype"].as_datatype_enum
    return [proto(**fields).SerializeToString(deterministic=True) for fields in made]


def unsupported_tensors():
    arrays = [
        np.array([1 + 2j], np.complex64),
        np.array([1 + 2j, -3j], np.complex128),
        np.array([1.5, -2.0], ml_dtypes.bfloat16),
    ]
    return [tf.io.serialize_tensor(tf.constant(a)).numpy() for a in arrays]


def field(number, wire, body):
    """One protobuf field; `body` is the length-delimited content or the encoded number."""
    assert number < 16
    tag = bytes([number << 3 | wire])
    return tag + varint(len(body)) + body if wire == 2 else tag + body


def varint(value):
    value &= 2**64 - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def example_forms():
    """Encodings that are valid and that TensorFlow's own writer does not produce."""

    def entry(name, value):
        return field(1, 2, field(1, 2, name) + field(2, 2, value))

    def whole(*entries):
        return field(1, 2, b"".join(entries))

    ints = field(3, 2, field(1, 2, varint(1) + varint(2)))
    unpacked_ints = field(3, 2, field(1, 0, varint(5)) + field(1, 0, varint(-6)))
    mixed_ints = field(3, 2, field(1, 0, varint(5)) + field(1, 2, varint(6) + varint(7)))
    unpacked_floats = field(2, 2, b"".join(field(1, 5, struct.pack("<f", v)) for v in (0.5, -8.0)))
    one_bytes = field(1, 2, field(1, 2, b"x"))
    return [
        whole(entry(b"i", unpacked_ints), entry(b"f", unpacked_floats), entry(b"m", mixed_ints)),
        whole(entry(b"z", one_bytes), entry(b"a", ints)),  # keys not sorted
        whole(entry(b"k", one_bytes), entry(b"k", ints)),  # the same key twice: the last wins
        whole(field(1, 2, field(2, 2, ints) + field(1, 2, b"late"))),  # value before key
        whole(field(1, 2, field(1, 2, b"valueless")), field(1, 2, field(2, 2, ints))),  # half entries
        whole(entry(b"kinds", one_bytes + ints)),  # two kinds in a oneof: the last wins
        whole(entry(b"none", b""), entry(b"empty", field(3, 2, b""))),
        whole(entry(b"i", ints)) + whole(entry(b"j", one_bytes)),  # `features` twice: merged
        field(9, 2, b"unknown") + whole(entry(b"i", field(7, 0, varint(1)) + ints)) + field(15, 5, b"\0\0\0\0"),
        b"",
    ]


def sequences():
    def steps(*values):
        return tf.train.FeatureList(feature=[feature(v) for v in values])

    return [
        tf.train.SequenceExample(
            context=tf.train.Features(feature={"id": feature([17]), "name": feature([b"first"])}),
            feature_lists=tf.train.FeatureLists(
                feature_list={
                    "frame": steps([b"f0"], [b"f1"], [b"f2"]),
                    "score": steps([0.5], [1.5, 2.5], None),
                    "none": steps(),
                }
            ),
        ).SerializeToString(deterministic=True)
    ]
