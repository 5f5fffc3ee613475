#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the seeds of the fuzz targets tar, npy and manifest: tests/fuzz/corpus/<target>/. Running it again changes nothing."""
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


if __name__ == "__main__":
    put_tars()
    put_manifests()
    put_arrays()
