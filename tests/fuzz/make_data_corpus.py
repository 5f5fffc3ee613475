#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the seeds of the fuzz targets tar, npy, manifest, lines, rows, content and encodings: tests/fuzz/corpus/<target>/. Running it again changes nothing."""
import hashlib
import io
import pathlib
import struct
import tarfile

import numpy as np

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"


def put(target, data):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)


def tar_of(form, members, **header):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form, **header) as tar:
        for name, kind, content in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return file.getvalue().rstrip(b"\0") + bytes(1024)


def put_tars():
    plain = [("a/1.jpg", tarfile.REGTYPE, b"photo"), ("a/1.cls", tarfile.REGTYPE, b"7"), ("b", tarfile.DIRTYPE, b""),
             ("2.jpg", tarfile.SYMTYPE, b"")]
    for form in tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT:
        data = tar_of(form, plain)
        data += bytes(-len(data) % 512)
        put("tar", data)
        put("tar", data[:-1024])
        put("tar", data[:700])
        put("tar", data + data)
    for form in tarfile.GNU_FORMAT, tarfile.PAX_FORMAT:
        data = tar_of(form, [("long/" * 30 + "1.jpg", tarfile.REGTYPE, b"x"), ("ä.txt", tarfile.REGTYPE, b"")])
        put("tar", data + bytes(-len(data) % 512))
    data = tar_of(tarfile.PAX_FORMAT, plain[:1], pax_headers={"comment": "global"})
    put("tar", data + bytes(-len(data) % 512))
    put("tar", tar_of(tarfile.GNU_FORMAT, [("1.jpg", tarfile.GNUTYPE_SPARSE, b"")]))
    put("tar", b"")


def put_arrays():
    arrays = [np.float32(1.5), np.arange(6, dtype="<i8").reshape(2, 3), np.zeros((0, 4), np.uint8), np.asfortranarray(np.eye(2)),
              np.array([1, 2], ">f4"), np.array(["a"]), np.array([b"b"]), np.zeros(1, [("x", "<f4"), ("y", "<i2", (2,))]),
              np.array([True]), np.zeros(1, np.complex64)]
    for array in arrays:
        for version in (1, 0), (2, 0), (3, 0):
            file = io.BytesIO()
            np.lib.format.write_array(file, np.asanyarray(array), version=version)
            put("npy", file.getvalue())
    put("npy", file.getvalue()[:-1])
    put("npy", file.getvalue() + b"x")


CRC = [0] * 256
for byte in range(256):
    value = byte
    for _ in range(8):
        value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    CRC[byte] = value


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def index_of_lines(marks, records):
    """An index of lines (docs/format.md) of 300 bytes of data."""
    header = struct.pack("<8sIIIIQQQQQI", b"PRESTOLX", 1, 0, 0, 0, 300, 300, records, 0, len(marks), 0)
    body = b"".join(struct.pack("<QQQ", *mark) for mark in marks)
    rest = struct.pack("<4Q", 0, 94, 188, 284)
    if marks:
        rest += struct.pack("<QII", marks[0][1], crc32c(body, crc32c(header)), 0)
    header += struct.pack("<II", crc32c(rest), 0)
    return header + struct.pack("<I", crc32c(header)) + rest + body


def put_lines():
    put("lines", b"one\n\ntwo\r\nthree")
    put("lines", b'a,"b\n""c""",d\r\n\r\n"e" x,"f')
    put("lines", b'{"a": 1}\n \t\r\n{"b": 2}\n')
    put("lines", index_of_lines([(0, 0, 0), (100, 4, 5)], 9))
    put("lines", index_of_lines([], 0))


def put_rows():
    put("rows", b'{"text": "a \\u00e9", "label": 3, "n": -4, "x": 1e3, "list": [1, 2], "any": {"b": [null, true]}}')
    put("rows", b'{"text": "a", "label": 1.0, "n": 12345678901234567890, "x": NaN, "list": [], "any": -Infinity}')
    put("rows", b'3,"a ""b""\n",-4, .5')
    put("rows", b'3,a\xff,"1"2,nan')


def put_manifests():
    """The first byte says the form: 0 CSV, 1 TSV, 2 JSON Lines."""
    put("manifest", b"\0path,age,score,note\na.jpg,3,.5,\"x, \"\"y\"\"\"\nb.jpg,-4,1e3,\n")
    put("manifest", b"\1path\tage\r\na.jpg\t3\r\n\r\nb.jpg\t\n")
    put("manifest", b'\2{"path": "a", "n": 1, "f": 0.5, "t": true, "l": [1], "z": null}\n\n{"path": "b", "n": 2}\n')
    put("manifest", b"\0\xef\xbb\xbfpath\na\n\"b")
    put("manifest", b"\2[]")


def put_contents():
    put("content", tar_of(tarfile.USTAR_FORMAT, [("GIF89a", tarfile.REGTYPE, b"x")]))
    for start in (b"\xff\xd8\xff\xe0", b"RIFF\x24\0\0\0WAVEfmt ", b"PK\3\4" + bytes(22) + b"\5\0\0\0a.npy", b"\xff\xf1\x50\x80\x01\x1f\xfc\xff\xf1",
                  b"\0\0\0\x1cftypmif1\0\0\0\0mif1avif", b"BM\x36\x10\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0", b"\x40\0\0\0\0\0\0\0{\"a\":", b"P6\n2 2\n255\n"):
        put("content", start + bytes(range(64)))
    for text in (b'{"a": 1}\n{"a": 2}\n', b"<!-- a --> <html>", b"<?xml?><Error>", b"a,b\n1,2\n", b"", b"\xff\xfea\0b\0\x3d\xd8\0\xde", b"\xfe\xff\xd8\x3d\0a\xdc\0\xd8"):
        put("content", text)
    put("content", "text without a mark".encode("utf-16-le"))


def put_encodings():
    for page in ('<meta charset=koi8-r>', '<!--> <meta http-equiv="Content-Type" content="text/html; charset = \'big5\' x">', "<?xml encoding='koi8-r'?><p a='>'/b=c>",
                 "<meta charset=none><meta content='charset charset=gbk' http-equiv=content-type>", "</a b=c><!x><?y><script>'<meta charset=big5>'</script>", "<meta/charset"):
        put("encodings", page.encode())
        put("encodings", b"<p x='" + bytes(1100) + b"'>" + page.encode())


if __name__ == "__main__":
    put_contents()
    put_encodings()
    put_tars()
    put_manifests()
    put_lines()
    put_rows()
    put_arrays()
