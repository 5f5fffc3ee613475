#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the seeds of the fuzz target exif: tests/fuzz/corpus/exif/. Running it again changes nothing."""
import struct
import zlib
from pathlib import Path

CORPUS = Path(__file__).resolve().parent / "corpus" / "exif"


def tiff(order, orientation, kind=3, count=1, directory=8, others=2):
    entries = [struct.pack(order + "HHII", 0x010F + i, 4, 1, i) for i in range(others)]
    value = struct.pack(order + {1: "Bxxx", 3: "Hxx", 4: "I"}[kind], orientation)
    entries.append(struct.pack(order + "HHI", 0x0112, kind, count) + value)
    start = {"<": b"II*\0", ">": b"MM\0*"}[order] + struct.pack(order + "I", directory)
    return start + bytes(directory - 8) + struct.pack(order + "H", len(entries)) + b"".join(entries) + bytes(4)


def segment(marker, content, length=None):
    return struct.pack(">BBH", 0xFF, marker, (len(content) if length is None else length) + 2) + content


def jpeg(*segments):
    return b"\xff\xd8" + b"".join(segments) + b"\xff\xda\0\x0c"


def chunk(name, content):
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png(*chunks):
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)) + b"".join(chunks)


def main():
    jfif = segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0")
    seeds = {f"jpeg-{o}-{'little' if o % 2 else 'big'}":
             jpeg(jfif, segment(0xE1, b"Exif\0\0" + tiff("<" if o % 2 else ">", o))) for o in range(0, 10)}
    seeds |= {
        "jpeg-byte": jpeg(segment(0xE1, b"Exif\0\0" + tiff("<", 6, kind=1))),
        "jpeg-long": jpeg(segment(0xE1, b"Exif\0\0" + tiff(">", 7, kind=4))),
        "jpeg-two-values": jpeg(segment(0xE1, b"Exif\0\0" + tiff("<", 6, count=2))),
        "jpeg-far-directory": jpeg(segment(0xE1, b"Exif\0\0" + tiff("<", 5, directory=100))),
        "jpeg-no-directory": jpeg(segment(0xE1, b"Exif\0\0" + tiff("<", 5)[:9])),
        "jpeg-cut-entry": jpeg(segment(0xE1, b"Exif\0\0" + tiff("<", 5)[:-9])),
        "jpeg-offset-beyond": jpeg(segment(0xE1, b"Exif\0\0II*\0\xff\xff\xff\xff")),
        "jpeg-length-beyond": jpeg(segment(0xE1, b"Exif\0\0" + tiff("<", 6), length=60000)),
        "jpeg-length-0": jpeg(segment(0xE1, b"", length=-2), segment(0xE1, b"Exif\0\0" + tiff("<", 6))),
        "jpeg-after-fill": jpeg(b"\xff\xff\xff" + segment(0xE1, b"Exif\0\0" + tiff("<", 6))),
        "jpeg-other-app1": jpeg(segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0<x/>"),
                                segment(0xE1, b"Exif\0\0" + tiff(">", 8))),
        "png": png(chunk(b"eXIf", tiff(">", 6)), chunk(b"IEND", b"")),
        "png-after-pixels": png(chunk(b"IDAT", zlib.compress(b"\0\0")), chunk(b"eXIf", tiff("<", 3)), chunk(b"IEND", b"")),
        "png-cut": png(chunk(b"eXIf", tiff(">", 6)))[:-20],
        "empty": b"",
    }
    CORPUS.mkdir(parents=True, exist_ok=True)
    for name, data in seeds.items():
        (CORPUS / name).write_bytes(data)


if __name__ == "__main__":
    main()
