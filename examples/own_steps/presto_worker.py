# SPDX-License-Identifier: Apache-2.0
"""The worker's side of `step: command` in Python, with NumPy and nothing else: copy it beside your own step.

    import presto_worker

    def step(sample):                   # {"value": ..., and the features that the pipeline names}
        return sample["value"][::-1]    # the new value; or a dict {"value": ..., "other": ...}

    presto_worker.serve(step)

Texts are bytes, numbers NumPy arrays. None leaves the sample out (`drops: true`). BadSample says that it is bad, and
--on-error decides; any other exception ends the run. print() goes to stderr. docs/own-steps.md describes the bytes.
"""
import os
import struct
import sys

import numpy as np

# Numbers of tensorflow.DataType and what NumPy calls them.
DTYPES = {1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 5: "<i2", 6: "i1", 8: "<c8", 9: "<i8", 10: "?", 17: "<u2", 18: "<c16", 19: "<f2",
          22: "<u4", 23: "<u8"}
NUMBERS = {np.dtype(name): number for number, name in DTYPES.items()}
HEAD = struct.Struct("<QQ")  # bytes of the Example, number of the request


class BadSample(Exception):
    """This sample cannot be processed; the next one may."""


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of each field of a protobuf message: a number, or a view of bytes."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key & 7 == 0:
            value, at = read_varint(data, at)
        else:
            size, at = read_varint(data, at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
            value, at = data[at : at + size], at + size
        yield key >> 3, value


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def read_tensor(data):
    """A TensorProto as an array; a view, not a copy."""
    dtype, shape, content = 0, [], b""
    for number, value in fields(data):
        if number == 1:
            dtype = value
        elif number == 2:
            shape = [signed(dict(fields(dim)).get(1, 0)) for kind, dim in fields(value) if kind == 2]
        elif number == 4:
            content = value
    return np.frombuffer(content, DTYPES[dtype]).reshape(shape)


def read_feature(data):
    for kind, values in fields(data):
        if kind == 2:
            return np.concatenate([np.frombuffer(v, "<f4") for _, v in fields(values)] or [np.empty(0, "<f4")])
        if kind == 3:
            packed = b"".join(v if not isinstance(v, int) else write_varint(v) for _, v in fields(values))
            numbers, at = [], 0
            while at < len(packed):
                number, at = read_varint(packed, at)
                numbers.append(signed(number))
            return np.array(numbers, np.int64)
        texts = [value for _, value in fields(values)]
        return texts[0] if len(texts) == 1 else [bytes(text) for text in texts]
    return None


def read_example(data, is_text):
    sample = {}
    for _, features in fields(data):
        for _, entry in fields(features):
            name, feature = (value for _, value in fields(entry))
            sample[bytes(name).decode()] = read_feature(feature)
    if not is_text and isinstance(sample["value"], memoryview):
        sample["value"] = read_tensor(sample["value"])
    return {name: bytes(value) if isinstance(value, memoryview) else value for name, value in sample.items()}


def write_varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def nest(number, *parts):
    """A field of bytes: its head, then `parts`, which are not copied."""
    return [write_varint(number << 3 | 2), write_varint(sum(map(len, parts))), *parts]


def write_value(value):
    """A Feature, as pieces."""
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return nest(1, *nest(1, value))
    if isinstance(value, list) and value and isinstance(value[0], (bytes, str)):
        texts = [text.encode() if isinstance(text, str) else text for text in value]
        return nest(1, *(piece for text in texts for piece in nest(1, text)))
    array = np.asarray(value)
    shape = [piece for size in array.shape for piece in nest(2, b"\x08" + write_varint(size))]
    content = memoryview(np.ascontiguousarray(array).reshape(-1)).cast("B") if array.size else b""
    tensor = [b"\x08" + write_varint(NUMBERS[array.dtype.newbyteorder("<")]), *nest(2, *shape), *nest(4, content)]
    return nest(1, *nest(1, *tensor))


def write_example(sample):
    """A tf.train.Example, as pieces."""
    entries = [nest(1, *nest(1, name.encode()), *nest(2, *write_value(value))) for name, value in sample.items()]
    return nest(1, *(piece for entry in entries for piece in entry))


def read_exactly(file, size):
    """`size` bytes; None at the end of the file."""
    data = bytearray(size)
    view, used = memoryview(data), 0
    while used < size:
        got = os.readv(file, [view[used:]])
        if got == 0:
            return None
        used += got
    return view


def write_all(file, pieces):
    total = sum(map(len, pieces))
    if total < 65536:
        pieces = [b"".join(pieces)]
    while pieces:
        done = os.writev(file, pieces[:512])
        while pieces and done >= len(pieces[0]):
            done -= len(pieces.pop(0))
        if done:
            pieces[0] = memoryview(pieces[0])[done:]


def answer(step, sample):
    try:
        result = step(sample)
    except BadSample as error:
        return write_example({"error": str(error)})
    if result is None:
        return []
    return write_example(result if isinstance(result, dict) else {"value": result})


def serve(step, text=False):
    """Answer requests until stdin ends. `text`: the value that comes in is a text or bytes, not numbers."""
    replies = os.dup(1)
    os.dup2(2, 1)  # print() must not get between the frames
    sys.stdout = sys.stderr
    while (head := read_exactly(0, HEAD.size)) is not None:
        size, number = HEAD.unpack(head)
        reply = answer(step, read_example(read_exactly(0, size), text))
        write_all(replies, [HEAD.pack(sum(map(len, reply)), number), *reply])
