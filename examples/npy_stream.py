# SPDX-License-Identifier: Apache-2.0
"""Read what `presto-load --format npy` prints: batches, without copying arrays twice, to a whole end or an error.

    for batch in npy_stream.batches(sys.stdin.buffer):            # a pipe
    for batch in npy_stream.load("-b", "32", "photos-resized"):   # starts presto-load, looks at its exit code
        batch["image"]          # dense: an array [rows, ...]
        batch["key"][3]         # Bytes: the bytes of row 3, all of them; str(i) and strings() decode
        batch["tokens"][3]      # Ragged: row 3 as an array of its own length

The stream is described in docs/streams.md. A stream that ends early raises IncompleteStream: what failed is on
presto-load's stderr.
"""
import json
import subprocess

import numpy as np


class IncompleteStream(EOFError):
    """The stream ended without saying that it was whole: presto-load failed or was stopped."""


class Ragged:
    """Rows of differing shape: `values` of all rows back to back, row r is [offsets[r], offsets[r + 1])."""

    def __init__(self, values, offsets, shapes=None):
        self.values, self.offsets, self.shapes = values, offsets, shapes

    def __len__(self):
        return len(self.offsets) - 1

    def __getitem__(self, row):
        row = range(len(self))[row]
        found = self.values[self.offsets[row] : self.offsets[row + 1]]
        if self.shapes is None:
            return found
        return found.reshape([n for n in self.shapes[row] if n >= 0])


class Bytes:
    """Strings: `values` (uint8) of all of them back to back; string s is [offsets[s], offsets[s + 1]).

    A row is one string, unless there are `rows`: then row r is the list of strings [rows[r], rows[r + 1]).
    """

    def __init__(self, values, offsets, rows=None):
        self.values, self.offsets, self.rows = values, offsets, rows

    def __len__(self):
        return len(self.offsets if self.rows is None else self.rows) - 1

    def item(self, i):
        return self.values[self.offsets[i] : self.offsets[i + 1]].tobytes()

    def __getitem__(self, row):
        row = range(len(self))[row]
        if self.rows is None:
            return self.item(row)
        return [self.item(i) for i in range(self.rows[row], self.rows[row + 1])]

    def str(self, row, encoding="utf-8"):
        found = self[row]
        return found.decode(encoding) if self.rows is None else [text.decode(encoding) for text in found]

    def strings(self, encoding="utf-8"):
        return [self.str(row, encoding) for row in range(len(self))]


def read_array(stream):
    """The next array of a buffered binary stream; None at its end.

    numpy.lib.format.read_array() does the same, but takes a pipe for a file that it can seek in, and reading
    through its fallback costs a copy. Here the header is NumPy's business and the data goes straight into the array.
    """
    if not stream.peek(1):
        return None
    try:
        version = np.lib.format.read_magic(stream)
        if version != (1, 0):
            raise ValueError(f"array of .npy version {version}")
        shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(stream)
    except ValueError as error:
        if "EOF" in str(error):  # NumPy's word for a header that is cut
            raise IncompleteStream("the stream ends within the header of an array") from None
        raise
    if fortran_order:
        raise ValueError("array in Fortran order")
    array = np.empty(shape, dtype)
    if array.nbytes > 0 and stream.readinto(array.reshape(-1).view(np.uint8)) != array.nbytes:
        raise IncompleteStream("the stream ends within an array")
    return array


def is_message(array):
    """No feature is an |S array: these are JSON."""
    return array.dtype.kind == "S"


def read_feature(stream, feature, first=None):
    arrays = {}
    for name in feature["arrays"]:
        array = first if first is not None else read_array(stream)
        first = None
        if array is None or is_message(array):
            raise IncompleteStream(f"the stream ends within feature {feature['name']}")
        arrays[name] = array
    if feature["layout"] == "dense":
        return arrays["values"]
    return (Bytes if feature["layout"] == "bytes" else Ragged)(*arrays.values())


def read_batch(stream, features, first):
    batch = {}
    for feature in features:
        batch[feature["name"]] = read_feature(stream, feature, first)
        first = None
    return batch


def batches(stream):
    """Batches as dicts, a name and value for each feature, until the stream says that it has ended."""
    features = None
    count = 0
    while (array := read_array(stream)) is not None:
        if is_message(array):
            message = json.loads(array.item())
            if message.get("end"):
                if message["batches"] != count:
                    raise IncompleteStream(f"{count} batches of {message['batches']} arrived")
                return
            if message.get("presto") != "npy" or message.get("version") != 1:
                raise ValueError(f"no npy stream of version 1: {message}")
            features = message["features"]
            continue
        if features is None:
            raise ValueError("the stream does not begin with a description")
        yield read_batch(stream, features, array)
        count += 1
    raise IncompleteStream(f"the stream ended after {count} batches without its last array: presto-load failed")


def load(*arguments, program="presto-load"):
    """Start presto-load with these arguments and yield its batches. Whoever stops early stops the program, too."""
    command = [program, "--format", "npy", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=1 << 16)
    try:
        yield from batches(process.stdout)
    except IncompleteStream as error:
        code = process.wait()
        raise IncompleteStream(f"presto-load ended with {code}: {error}") from None
    finally:
        process.stdout.close()
        code = process.wait()
    if code != 0:
        raise RuntimeError(f"presto-load ended with {code}")
