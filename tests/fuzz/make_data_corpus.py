#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the seeds of the fuzz targets tar, npy, manifest, content and encodings: tests/fuzz/corpus/<target>/. Running it again changes nothing."""
import hashlib
import io
import pathlib
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
    put_arrays()
