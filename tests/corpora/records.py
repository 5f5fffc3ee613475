# SPDX-License-Identifier: Apache-2.0
"""TFRecords of tf.train.Examples as other programs write them, made without TensorFlow and without Presto."""
import struct


def remainder(value):
    for _ in range(8):
        value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value


TABLE = [remainder(value) for value in range(256)]


def masked(data):
    """The masked CRC-32C of TFRecord."""
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ TABLE[(value ^ byte) & 255]
    value ^= 0xFFFFFFFF
    return struct.pack("<I", ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def framed(payload):
    length = struct.pack("<Q", len(payload))
    return length + masked(length) + payload + masked(payload)


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def field(number, payload):
    return bytes([number << 3 | 2]) + varint(len(payload)) + payload


def feature(value):
    if isinstance(value, bytes):
        return field(1, field(1, value))
    if isinstance(value, int):
        return field(3, field(1, varint(value)))
    return field(2, field(1, struct.pack(f"<{len(value)}f", *value)))


def serialized(values):
    """An Example; a value is bytes, an int, or a list of floats."""
    return field(1, b"".join(field(1, field(1, name.encode()) + field(2, feature(value))) for name, value in values.items()))
