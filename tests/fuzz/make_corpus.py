#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the seeds of the fuzz targets for records/ out of tests/golden/tfrecord: tests/fuzz/corpus/<target>/.

Files are named by their content, so running it again changes nothing.
"""
import hashlib
import json
import random
import struct
import sys
import zlib
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
GOLDEN = TESTS / "golden" / "tfrecord"
CORPUS = TESTS / "fuzz" / "corpus"
MOST_BYTES = 1500


def put(target, data):
    if len(data) > MOST_BYTES:
        return
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)


def records(data):
    at = 0
    while len(data) - at >= 16:
        (length,) = struct.unpack_from("<Q", data, at)
        if length > len(data) - at - 16:
            return
        yield data[at + 12 : at + 12 + length]
        at += length + 16


def bytes_values(example):
    """The values of length-delimited fields, three levels down: TensorProtos among them."""

    def fields(data):
        at = 0
        while at < len(data):
            tag, at = data[at], at + 1
            if tag & 7 != 2:
                return
            length = shift = 0
            while at < len(data):
                byte, at = data[at], at + 1
                length |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            yield data[at : at + length]
            at += length

    level = [example]
    for _ in range(5):
        level = [value for data in level for value in fields(data)]
        yield from level


def index_of(data, offsets):
    header = b"PRESTOIX" + struct.pack("<IIQQqI", 1, 0, len(offsets) - 1, len(data), 0, 0)
    body = header + struct.pack("<I", 0) + b"".join(struct.pack("<Q", o) for o in offsets)
    return body + struct.pack("<I", 0)


def placed_index_of(data, offsets):
    """Of version 3, which fuzz_index.c makes of 2, as it does the CRCs."""
    n = len(offsets) - 1
    places = [max(offsets[i] - 4, 0) for i in (0, n // 3, n // 3 * 2, n)]
    header = b"PRESTOIX" + struct.pack("<IIQQIIII", 2, 1, n, len(data), 7, 0, 0, 0)
    body = header + struct.pack("<4Q", *places) + b"".join(struct.pack("<Q", o) for o in offsets)
    return body + struct.pack("<I", 0)


def dataset_json(codec):
    shards = [
        {"file": f"data-{i:05}-of-00002.tfrecord", "records": 10 + i, "stored_bytes": 1000 + i,
         "raw_bytes": 2000, "crc32c": "0123abcd"} for i in range(2)
    ]
    return json.dumps({
        "format": "presto-dataset", "version": 1, "id": "0123456789abcdef", "tool_version": "0.1.0",
        "pipeline": {"name": "cv", "steps": []}, "split": "resized", "main_feature": "image",
        "features": [{"name": "image", "dtype": "uint8", "shape": [-1, 256, 3],
                      "encoding": "tensor"},
                     {"name": "label", "dtype": "int64", "shape": [], "encoding": "int64"},
                     {"name": "key", "dtype": "string", "shape": None, "encoding": "bytes"}],
        "labels": ["cat", "dog"], "codec": codec, "dictionary": None, "file_compression": "none",
        "seed": "18446744073709551615",
        "totals": {"records": 21, "stored_bytes": 2001, "raw_bytes": 4000}, "shards": shards,
    }).encode()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def cache_entry(number, features):
    """A sample as a cache file holds it; features are (name, dtype, encoding, dims, value), strings as a list."""
    at = 24 + sum(32 + 8 * len(dims) for _, _, _, dims, _ in features)
    head, body = b"", b""
    for name, dtype, encoding, dims, value in features:
        strings = isinstance(value, list)
        if strings:
            value = b"".join(struct.pack("<Q", len(text)) for text in value) + b"".join(value)
        align = 8 if strings or len(value) <= 64 else 64
        start = at + len(body) + len(name)
        gap = -start % align
        head += struct.pack("<IHBBQQQ", len(name), dtype, encoding, len(dims), at + len(body), start + gap, len(value))
        head += struct.pack(f"<{len(dims)}q", *dims)
        body += name + b"\0" * gap + value
    rest = struct.pack("<IQQ", len(features), number, at + len(body)) + head + body
    entry = struct.pack("<I", crc32c(rest)) + rest
    return entry + b"\0" * (-len(entry) % 64)


def cache_file(entries):
    """A whole file of (number, entry)."""
    table, body = b"", b""
    for number, entry in entries:
        table += struct.pack("<QII", number, 1 + len(body) // 64, len(entry) // 64)
        body += entry
    head = b"PRESTOCB" + struct.pack("<IIQQQQIII", 1, len(entries), 7, 11, 64 + len(body) + len(table), 64 + len(body),
                                     crc32c(table), 0, 0)
    return head + struct.pack("<I", crc32c(head)) + body + table


LABELS = (
    b"path,label\na/1.jpg,cat\n./b/2.jpg,dog\n", b"a,1\r\nb,-2\r\nc,9223372036854775807\r\n", b"x,0.5\ny,1e-3\nz,2",
    b'"a, ""b""\n.jpg","two\nlines"\n', b"k,1\nk,2\n", b"only\n", "ä/ö.png,grün\n".encode(), b'a,"open',
)


def states():
    for shuffle, window, next_sample in (("none", 0, 999), ("buffer", 100, 3), ("full", 0, 0), ("blocks", 100, 501)):
        yield {"presto_state": 1, "source": "0123456789abcdef", "samples": 1000, "seed": "7", "shuffle": shuffle,
               "window": window, "epoch": 2, "next": next_sample}
    yield {"presto_state": 1, "source": "0123456789abcdef", "samples": 1000, "seed": "7", "shuffle": "none",
           "window": 0, "epoch": 6, "next": 0}
    # The mix of fuzz_state.c: 1000 and 200 samples, of which an epoch has 1000 and 500; FNV-1a over what they are.
    digest = 0xCBF29CE484222325
    for value in (0x0123456789ABCDEF, 1000, 1000, 0x0123456789ABCDEF, 200, 500):
        digest = (digest ^ value) * 0x100000001B3 % 2**64
    for shuffle, window, position, first, second in (("none", 0, 640, 427, 213), ("blocks", 100, 0, 0, 0)):
        yield {"presto_state": 1, "source": f"{digest:016x}", "samples": 1200, "seed": "7", "shuffle": shuffle,
               "window": window, "epoch": 2, "next": position, "mix": [
                   {"source": "0123456789abcdef", "samples": 1000, "share": 1000, "epoch": 2, "next": first},
                   {"source": "0123456789abcdef", "samples": 200, "share": 500, "epoch": 5 + second // 200,
                    "next": second % 200}]}


def progress():
    def shard(number, first, end, records, skipped=0):
        return {"number": number, "file": f"data-{number:05}.tfrecord", "first": first, "end": end,
                "skipped": skipped, "records": records, "stored_bytes": 1000, "raw_bytes": 2000, "crc32c": 4294967295}
    features = [{"name": "image", "encoding": 3, "dtype": 4, "rank": 3, "dims": [-1, 40, 3]},
                {"name": "label", "encoding": 1, "dtype": 9, "rank": 0, "dims": []},
                {"name": "any", "encoding": 4, "dtype": 0, "rank": -1, "dims": []}]
    job = {"codec": "none", "seed": 7, "steps": [{"step": "read-file"}]}
    yield {"format": 4, "job": job, "shards": [], "features": []}
    yield {"format": 4, "job": job, "shards": [shard(0, 0, 10, 10), shard(2, 20, 25, 3, 1), shard(4, 30, 30, 0)],
           "features": features}
    packed = [{**shard(n, 10 * n, 10 * n + 10, 50), "next": {"sample": 10 * n + 12, "token": n, "documents": 9, "tokens": 700}}
              for n in range(3)]
    yield {"format": 4, "job": job, "shards": packed, "features": features[:1]}


def parts():
    """Part 1 of 2 of three shards of ten samples, and joins of it."""
    dataset = json.loads(dataset_json("none"))
    dataset["shards"] = [{"file": f"data-{i:05}-of-00003.tfrecord", "records": 3, "stored_bytes": 1000, "raw_bytes": 2000,
                          "crc32c": "0123abcd"} for i in (1, 2)]
    dataset["totals"] = {"records": 6, "stored_bytes": 2000, "raw_bytes": 4000}
    job = {"parts": 2, "shards": 3, "samples": 10, "codec": "none", "skip_limit": None, "skip_fraction": 1.0}
    share = {"number": 1, "skipped": 1, "dropped": 0, "dictionary_crc32c": None, "stream": None, "job": job}
    yield {**dataset, "share": share}
    stream = {"counted": "0123456789abcdef", "files": "fedcba9876543210", "records": 10}
    yield {**dataset, "dictionary": "dictionary",
           "share": {**share, "dictionary_crc32c": "01234567", "stream": stream, "job": {**job, "skip_limit": 3}}}
    attempts = ["00000-of-00002.a", "00001-of-00002.0123456789abcdef"]
    moves = [[i, f"data-{i:05}-of-00002.tfrecord"] for i in range(2)]
    whole = json.loads(dataset_json("none"))
    for dictionary, name in ((None, None), (1, "dictionary")):
        yield {"format": "join-log", "version": 1, "attempts": attempts, "moves": moves, "dictionary": dictionary,
               "dataset": json.dumps({**whole, "dictionary": name})}


STRATEGY = """\
schema: 1
pipeline: cv
set: ['source.match=*.png', resize-image.min-side=48]
split: resized
codec: zstd:1
shards: 2
threads: 4
batch_samples: 32
seed: 18446744073709551615
expected:
  cold_samples_per_s: 4000
  cached_samples_per_s: 1.5e4
  total_stored_bytes: 220000000
  total_preparation_s: 0.25
"""


def put_text_files():
    """What users, trainers and sweeps leave behind: labels, states, progress, strategies."""
    for labels in LABELS:
        put("labels", labels)
    for state in states():
        put("state", json.dumps(state).encode())
    for document in progress():
        put("progress", json.dumps(document, separators=(",", ":")).encode())
    for document in parts():
        put("parts", json.dumps(document, separators=(",", ":")).encode())
    put("strategy", STRATEGY.encode())
    put("strategy", b"schema: 1\npipeline: /a/b.yaml\nsplit: unprocessed\nthreads: 0\n")
    put("strategy", b"{schema: 1, pipeline: &p cv, split: *p, codec: blosc-lz4:5, threads: 1, expected: {}}")


def png_description(flags, depth, colour, chunks, width=5, height=4):
    """What fuzz_png.c makes a file of; chunks are (number of the type, content)."""
    body = b"".join(struct.pack(">BH", kind, len(content)) + content for kind, content in chunks)
    return bytes([flags, width, height, depth, colour, 0]) + body


def put_pngs():
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
    palette = (1, bytes(range(30)))
    for number, (colour, depth) in enumerate([(0, 8), (0, 16), (2, 8), (2, 16), (3, 8), (4, 8), (4, 16), (6, 8), (6, 16), (0, 2)]):
        row = (5 * channels[colour] * depth + 7) // 8
        rows = b"".join(bytes([y % 5]) + bytes((y * 7 + x * x) % 10 for x in range(row)) for y in range(4))
        chunks = [palette] if colour == 3 else [(10, b"Title\0text"), (3, b"\0\0\xb1\x8f")]
        put("png", png_description(1 | number % 4 * 4 | number % 3 * 16, depth, colour, [*chunks, (0, rows), (9, bytes(7))]))
        for level, strategy in ((0, zlib.Z_DEFAULT_STRATEGY), (9, zlib.Z_DEFAULT_STRATEGY), (9, zlib.Z_FIXED), (9, zlib.Z_HUFFMAN_ONLY)):
            deflate = zlib.compressobj(level, zlib.DEFLATED, -15, 9, strategy)
            packed = deflate.compress(rows) + deflate.flush()
            put("png", png_description(8 | number % 2 * 2, depth, colour, [*chunks, (0, packed)]))


def field(number, message):
    return varint(number << 3 | 2) + varint(len(message)) + message


def varint(value):
    out = b""
    while value >= 128:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def example(**features):
    entries = (field(1, name.encode()) + field(2, feature) for name, feature in features.items())
    return field(1, b"".join(field(1, entry) for entry in entries))


def sequence(context, **lists):
    """A SequenceExample: of each list, the Feature messages of its steps."""
    entries = (field(1, name.encode()) + field(2, b"".join(field(1, step) for step in steps)) for name, steps in lists.items())
    return context + field(2, b"".join(field(1, entry) for entry in entries))


def put_sequences():
    def floats(*values):
        return field(2, field(1, struct.pack(f"<{len(values)}f", *values)))

    def ints(*values):
        return field(3, field(1, b"".join(map(varint, values))))

    def strings(*values):
        return field(1, b"".join(field(1, value) for value in values))

    context = example(x=ints(3), image=strings(b"\x08\x03\x12\x00"))
    put("example", sequence(context, f=[floats(1, 2), floats(3, 4)], u=[strings(b"a"), strings(b"", b"bc"), b""], x=[ints(5), ints(6)]))
    put("example", sequence(b"", f=[], x=[ints(5, 300), ints()], u=[strings()]))
    put("example", sequence(b"", f=[floats(1), ints(2)]) + sequence(context, f=[floats(1)], image=[strings(b"1")]))


def put_arrow():
    """Choices of fuzz_arrow.c: any bytes are a schema with its arrays."""
    for seed in range(40):
        put("arrow", random.Random(seed).randbytes(60 + 20 * seed))


def put_values():
    """Tables of Examples: alike, and with what may differ from record to record."""

    def floats(*values):
        return field(2, field(1, struct.pack(f"<{len(values)}f", *values)))

    def ints(*values):
        return field(3, field(1, b"".join(map(varint, values))))

    def strings(*values):
        return field(1, b"".join(field(1, value) for value in values))

    def table(settings, *examples):
        put("values", bytes([settings]) + b"".join(struct.pack("<H", len(e)) + e for e in examples))

    tensor = b"\x08\x04" + field(2, field(2, b"\x08\x02")) + field(4, b"ab")
    row = {"a": floats(1), "b": ints(5), "c": strings(b"text"), "t": strings(tensor), "x": ints(1, 300, 2**64 - 1)}
    rows = [example(**{**row, "a": floats(i), "b": ints(40**i), "c": strings(b"y" * i)}) for i in range(5)]
    turned = example(**dict(reversed(row.items())))
    odd = [example(**{**row, name: value}) for name, value in [
        ("a", b""), ("a", floats(1, 2)), ("a", floats()), ("a", field(2, b"")), ("a", field(2, b"\x0d1234")),
        ("a", ints(1)), ("b", ints(1, 2)), ("b", field(3, b"\x08\x07")), ("b", ints()), ("c", strings(b"1", b"2")),
        ("c", strings()), ("t", strings(b"no tensor")), ("z", floats(3)), ("a", floats(1) + ints(1)), ("x", b"\x28\x01")]]
    lacking = example(**{name: value for name, value in row.items() if name != "b"})
    twice = field(1, field(1, field(1, b"a") + field(2, floats(1))) * 2)
    for settings in (0, 1, 2, 6, 8, 15):
        table(settings, *rows, turned, *rows)
        table(settings, *rows[:2], lacking, twice, *rows[:2])
    for some in odd:
        table(0, *rows[:2], some, rows[2])
        table(3, some, rows[0], some)
    table(0, *rows[:2], rows[2][:-9], rows[3][:20], rows[4])


def put_replies():
    """Of a step's worker: heads and Examples, whole and wrong."""
    def nest(number, *parts):
        return bytes([number << 3 | 2]) + bytes([len(b"".join(parts))]) + b"".join(parts)

    def tensor(dtype, dims, content):
        shape = b"".join(nest(2, b"\x08" + bytes([dim])) for dim in dims)
        return nest(1, nest(1, bytes([8, dtype]) + nest(2, shape) + nest(4, content)))

    def frame(*features, number=1, more=0):
        payload = nest(1, *(nest(1, nest(1, name), nest(2, feature)) for name, feature in features)) if features else b""
        return struct.pack("<QQ", len(payload) + more, number) + payload

    value = (b"value", tensor(4, (1, 2, 3), bytes(range(6))))
    boxes = (b"boxes", tensor(1, (1, 4), bytes(16)))
    text = (b"text", nest(1, nest(1, b"a text")))
    for reply in (frame(value), frame(boxes, value, text), frame(), frame((b"error", nest(1, nest(1, b"too dark")))),
                  frame(value, number=2), frame(value, more=1), frame((b"value", tensor(1, (2, 3), bytes(24)))),
                  frame((b"value", b"")), frame((b"value", nest(2, nest(1, bytes(8))))), frame(text), frame(value, (b"x", b"")),
                  b"a line that somebody printed\n" * 3, struct.pack("<QQ", 10**10, 1), frame(value)[:-3]):
        put("reply", reply)


def put_rings():
    """What a ring's writer says of batches (loader/ring/ring_internal.h), and the memory behind it."""
    nothing = 2**64 - 1

    def feature(name, layout, dtype, dims, *, values=64, offsets=nothing, rows=nothing, shapes=nothing, rank=0):
        return name, struct.pack("<5Q8q5Q", len(name), 0, layout, dtype, len(dims), *dims, *[0] * (8 - len(dims)),
                                 values, offsets, rows, shapes, rank)

    def ring(*features, rows=2, memory=bytes(range(64)), size=None, place=0):
        head = struct.pack("<10Q", 7, place, len(memory) if size is None else size, 1, 2, rows, 0, 0, 0, len(features))
        message = head + b"".join(described for _, described in features) + b"".join(name for name, _ in features)
        put("ring", bytes([len(memory) // 64, 0]) + message + memory)

    def numbers(*values):
        packed = struct.pack(f"<{len(values)}q", *values)
        return packed + bytes(-len(packed) % 64)

    memory = bytes(64) + bytes(range(64)) + numbers(0, 2, 6) + numbers(0, 1, 3) + numbers(1, 2, 2, 2) + numbers(0, 1, 2, 6)
    dense = feature(b"image", 0, 1, (2, 3))
    ragged = feature(b"tokens", 1, 4, (6,), offsets=128, shapes=256, rank=2)
    strings = feature(b"key", 2, 4, (6,), offsets=128)
    words = feature(b"words", 2, 4, (6,), offsets=320, rows=192)
    ring(memory=memory)
    ring(dense, ragged, strings, words, memory=memory)
    ring(feature(b"a", 0, 4, (2, 2**62, 4)), memory=memory)
    ring(feature(b"a", 0, 4, (2, 0, 2**62)), memory=memory)
    ring(feature(b"a", 0, 4, (2, -1)), memory=memory)
    ring(feature(b"a", 1, 4, (6,), offsets=2**64 - 64), memory=memory)
    ring(feature(b"a", 1, 4, (5,), offsets=128), memory=memory)
    ring(feature(b"a", 1, 4, (6,), offsets=64), memory=memory)
    ring(dense, rows=2**61, memory=memory)
    ring(dense, size=len(memory) + 64, memory=memory)
    ring(dense, place=2**64 - 64, memory=memory)
    put("ring", b"\0\1" + struct.pack("<qqQQQQ", -10, 5, 4711, 12, 4, 10) + b"filethis is it")
    put("ring", b"\0\1" + struct.pack("<qqQQQQ", 3, -5, 0, 0, 2**63, 2**63) + b"x")


def put_jpegs():
    """The first byte is the request of fuzz_jpeg.c: instructions, reduction, channels, transform."""
    import io

    from PIL import Image

    kinds = [(8, 8, 0), (17, 33, 2), (48, 31, 2), (40, 16, 1), (1, 1, 0), (3, 20, 2), (64, 9, 1)]
    for number, (width, height, sampling) in enumerate(kinds * 4):
        pixels = bytes((x * 37 ^ y * 91 ^ x * y * c) & 255 if number % 3 else (x * 3 + y * 2 + c) & 255
                       for y in range(height) for x in range(width) for c in range(3))
        picture = Image.frombytes("RGB", (width, height), pixels)
        out = io.BytesIO()
        if number % 7 == 4:
            picture = picture.convert("L")
        picture.save(out, "JPEG", quality=25 + number * 3 % 75, subsampling=sampling, optimize=number % 2 == 0,
                     restart_marker_blocks=number % 4 * 2)
        put("jpeg", bytes([number * 29 & 255]) + out.getvalue())


def main():
    put_rings()
    put_jpegs()
    put_text_files()
    put_pngs()
    put_arrow()
    put_values()
    put_sequences()
    put_replies()
    label = (b"label", 9, 1, (), struct.pack("<q", 3))
    image = (b"image", 4, 3, (4, 6, 3), bytes(range(72)))
    texts = (b"words", 7, 0, (3,), [b"a", b"", b"three"])
    put("cache", cache_file([]))
    put("cache", cache_file([(0, cache_entry(0, [label]))]))
    put("cache", cache_file([(5, cache_entry(5, [label, image, texts])), (2, cache_entry(2, [(b"none", 0, 4, (), b"")])),
                             (9, cache_entry(9, [(b"empty", 1, 3, (0, 5), b""), (b"f", 1, 2, (2,), bytes(8))]))]))
    for path in sorted(GOLDEN.glob("*.tfrecord")):
        data = path.read_bytes()
        put("frame", data)
        codec = path.stem.split("records-")[1] if "records-" in path.stem else None
        for record in records(data):
            if codec and not path.stem.endswith("empty-records"):
                put(f"codec-{codec}", record)
            elif "example" in path.stem or "tensor" in path.stem or "sequence" in path.stem:
                put("example", record)
                for value in bytes_values(record):
                    if value[:1] == b"\x08":
                        put("tensor-proto", value)
    plain = (GOLDEN / "good-plain.tfrecord").read_bytes()
    offsets, at = [0], 0
    for record in records(plain):
        at += len(record) + 16
        offsets.append(at)
    index = index_of(plain, offsets)
    pad = b"\0" * max(0, len(plain) - len(index))
    put("index", index + pad[: len(plain) - len(index)] + plain)
    index = placed_index_of(plain, offsets)
    put("index", index + b"\0" * max(0, len(plain) - len(index)) + plain + b"\0" * max(0, len(index) - len(plain)))
    short = plain[:59]
    for make in (index_of, placed_index_of):
        index = make(short, [0, 26, 42, 59])
        put("index", index + short + b"\0" * (len(index) - len(short)))
    for codec in ("none", "zstd:1", "zstd+dict"):
        put("dataset", dataset_json(codec))


if __name__ == "__main__":
    sys.exit(main())
