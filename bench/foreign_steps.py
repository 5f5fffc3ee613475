# SPDX-License-Identifier: Apache-2.0
"""Rows of foreign.py about steps in Python: the same function in processes of `step: command` and of PyTorch's DataLoader."""
import json
import os
import pathlib
import subprocess
import sys

from foreign import Row, Timed, Way

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIDE = 224
BATCH = 32

# What both call for each sample: a gamma curve, in the range of a network's input.
FUNCTION = f"""
import numpy as np

def step(image):
    return (np.power(image.reshape({SIDE}, {SIDE}, 3).astype(np.float32) * np.float32(1 / 255), np.float32(0.8)) * 2 - 1)
"""

WORKER = f"""
import sys
sys.path.insert(0, {str(ROOT / "examples" / "own_steps")!r})
import presto_worker
from function import step
presto_worker.serve(lambda sample: step(sample["value"]))
"""

PIPELINE = """\
name: gamma
source: {{type: synthetic, count: {count}, size: {size}, yields: images}}
steps:
  - {{step: command, run: ["{python}", worker.py], output: "float32[{side},{side},3]", workers: {workers}}}
"""

# With torch, in a process of its own: the times of an epoch, and the samples if asked for. Importing torch is left out.
THEIRS = f"""
import json, os, sys, time
import numpy as np
import torch
from function import step

class Images(torch.utils.data.Dataset):
    def __init__(self):
        self.images = np.load("images.npy", mmap_mode="r")
    def __len__(self):
        return len(self.images)
    def __getitem__(self, i):
        return torch.from_numpy(step(np.asarray(self.images[i])))

torch.set_num_threads(1)
start, busy, count, kept = time.perf_counter(), sum(os.times()[:4]), 0, []
for batch in torch.utils.data.DataLoader(Images(), batch_size={BATCH}, num_workers=int(sys.argv[1])):
    count += len(batch)
    if len(sys.argv) > 2:
        kept.append(batch.numpy())
seconds, busy = time.perf_counter() - start, sum(os.times()[:4]) - busy  # the workers have been joined
if len(sys.argv) > 2:
    np.save(sys.argv[2], np.concatenate(kept))
print(json.dumps([count, seconds, busy]))
"""


def python_with_torch():
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0:
            return python
    raise ModuleNotFoundError("no Python has it", name="torch")


def python_step(bench):
    """A function in Python on each image, in as many processes as threads: `step: command` and torch's DataLoader."""
    import npy_stream
    import numpy as np

    count, python, folder = 256 if bench.quick else 2_048, python_with_torch(), bench.folder
    (folder / "function.py").write_text(FUNCTION)
    (folder / "worker.py").write_text(WORKER)
    (folder / "theirs.py").write_text(THEIRS)
    pipeline = folder / "gamma.yaml"
    pipeline.write_text(PIPELINE.format(count=count, size=SIDE * SIDE * 3, python=python, side=SIDE, workers=bench.threads))
    raw = subprocess.run(bench.presto_load("--format", "raw", "--to", "images", "-p", pipeline), capture_output=True, check=True).stdout
    np.save(folder / "images.npy", np.frombuffer(raw, np.uint8).reshape(count, -1))
    subprocess.run([bench.tools / "presto-write", "-q", "-p", pipeline, "-u", "images", "-o", folder / "stored"], check=True)
    ours = ["-p", pipeline, "-b", BATCH, folder / "stored"]

    def batches():
        return npy_stream.load(*bench.presto_load(*ours)[1:], program=bench.tools / "presto-load")

    def theirs(*arguments):
        done = subprocess.run([python, "theirs.py", str(bench.threads), *arguments], cwd=folder, capture_output=True, check=True)
        return Timed(*json.loads(done.stdout))

    def compare():
        theirs("theirs.npy")
        wanted = np.load(folder / "theirs.npy")
        got = np.concatenate([next(iter(batch.values())) for batch in batches()])
        assert got.dtype == wanted.dtype and np.array_equal(got, wanted)
        return f"{count} images of float32[{SIDE},{SIDE},3] are equal, {bench.threads} processes"

    def load_to_nowhere():
        with open(os.devnull, "wb") as nowhere:
            subprocess.run(bench.presto_load("--format", "npy", *ours), stdout=nowhere, check=True)
        return count

    return Row("samples", [Way("presto-load", load_to_nowhere),
                           Way("presto-load, arrays in another process", lambda: sum(len(next(iter(b.values()))) for b in batches())),
                           Way("torch DataLoader", theirs)], compare)
