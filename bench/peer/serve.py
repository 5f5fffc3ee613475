# SPDX-License-Identifier: Apache-2.0
"""One peer with one workload, in a process of its own: does what bench/peers asks for, a line of JSON each.

    python serve.py PEER WORKLOAD FOLDER CORPUS THREADS QUICK

A peer is a module of this folder with:
    versions()                  -> {"package": "version"}
    supports(work)              -> None, or why not
    write(work, folder, corpus) makes its own files below `folder`
    Reader(work, folder, corpus, threads): begin() gives batches of an epoch, size_of(batch), samples_of(batch) gives dicts;
        begin_endless(), if there, gives those of one epoch after the other: what is measured, then
"""
import importlib
import json
import os
import pathlib
import shutil
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import common  # noqa: E402
import numpy as np  # noqa: E402


def reply(out, answer):
    out.write(json.dumps(answer) + "\n")
    out.flush()


def write(peer, work, folder, corpus):
    """Into a new folder: once for reading, again and again if writing is what is measured."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    start, busy = time.perf_counter(), common.processor_seconds()
    peer.write(work, folder, corpus)
    seconds, busy = time.perf_counter() - start, common.processor_seconds() - busy
    count = common.count_of(work, corpus)
    stored = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {"rate": count / seconds, "busy": busy / count, "stored": stored, "first": 0, "peak": common.memory_bytes()}


def summary(reader):
    """Of an epoch of random values: mean and deviation of each channel of an image [height, width, channels]."""
    arrived = {int(one["id"]): np.asarray(one["x"], np.float64) for batch in reader.begin() for one in reader.samples_of(batch)}
    shapes = sorted({value.shape for value in arrived.values()})
    means = np.mean([value.mean((0, 1)) for value in arrived.values()], 0)
    deviations = np.mean([value.std((0, 1)) for value in arrived.values()], 0)
    return {"count": len(arrived), "shapes": shapes, "values": [*means.tolist(), *deviations.tolist()]}


def check(reader, work, folder):
    """A digest of the epoch; of values that need not be equal to the bit, the first ones; of random ones, two epochs."""
    if work.random:
        return {**summary(reader), "again": summary(reader)["values"]}
    arrived = (one for batch in reader.begin() for one in reader.samples_of(batch))
    if work.exact:
        return common.digest(arrived)
    found = {int(one["id"]): np.asarray(one["x"], np.float32) for one in arrived}
    np.savez(folder / "check.npz", **{str(number): value for number, value in found.items() if number < 16})
    return {"count": len(found), "file": str(folder / "check.npz")}


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print
    name, workload, folder, corpus, threads, quick = sys.argv[1:]
    folder, corpus = pathlib.Path(folder), pathlib.Path(corpus)
    work = common.scaled(common.WORKLOADS[workload], quick == "quick")
    peer = importlib.import_module(f"peer_{name}")
    reply(out, {"versions": peer.versions(), "refuses": peer.supports(work)})
    reader = None
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["do"] == "write":
            reply(out, write(peer, work, folder, corpus))
            continue
        if reader is None:
            reader = peer.Reader(work, folder, corpus, int(threads))
        if asked["do"] == "check":
            reply(out, check(reader, work, folder))
        else:
            begin = getattr(reader, "begin_endless", reader.begin)
            reply(out, common.measure(begin, reader.size_of, asked["seconds"], asked["memory"]))


if __name__ == "__main__":
    main()
