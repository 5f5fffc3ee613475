#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs in examples/python train: each in an interpreter that has its library. One that none has is told, and left out.

PRESTO_TORCH_PYTHON is an interpreter that may have PyTorch.
"""
import os
import re
import socket
import subprocess
import sys

from case import PythonCase, cli, main

EXAMPLES = cli.ROOT / "examples" / "python"
TIMEOUT_S = 240
# The programs reach about 90 % of ten classes. Chance is 10 %.
LEAST = 60


class Examples(PythonCase):
    @classmethod
    def setUpClass(cls):
        cli.Case.setUpClass.__func__(cls)
        photos, cls.stored = cls.folder / "many", cls.folder / "photos-resized"
        subprocess.run([cli.PHOTOS, "-q", "-n", "600", "-o", photos], check=True)
        cli.run("presto-write", "--quiet", "-p", "cv", "-u", "resized", "-c", "zstd:1", "-o", cls.stored, photos, check=True)

    def interpreter(self, library):
        for python in (sys.executable, os.environ.get("PRESTO_TORCH_PYTHON")):
            if python and subprocess.run([python, "-c", f"import {library}"], capture_output=True, check=False).returncode == 0:
                return python
        self.skipTest(f"{library} is not installed")

    def start(self, name, python, **environment):
        return subprocess.Popen([python, "-B", EXAMPLES / name, self.stored], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True,
                                env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "HF_HUB_OFFLINE": "1", **environment})

    def finish(self, process):
        out, errors = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 0, errors)
        return out

    def check_accuracy(self, name, library):
        shown = self.finish(self.start(name, self.interpreter(library)))
        self.assertGreaterEqual(int(re.findall(r"accuracy\D* (\d+)%", shown)[-1]), LEAST, shown)
        return shown

    def test_torch(self):
        self.check_accuracy("train_torch.py", "torch")

    def test_jax(self):
        self.check_accuracy("train_jax.py", "jax")

    def test_tensorflow(self):
        shown = self.check_accuracy("train_tensorflow.py", "tensorflow")
        self.assertIn("'image': TensorSpec(shape=(None, 224, 224, 3), dtype=tf.float32", shown)

    def test_hugging_face(self):
        shown = self.check_accuracy("train_huggingface.py", "datasets")
        self.assertIn("1800 samples", shown)

    def test_two_processes(self):
        """What torchrun does: one process a rank, told by the environment."""
        python = self.interpreter("torch")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        ranks = [self.start("train_ddp.py", python, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2",
                            MASTER_ADDR="127.0.0.1", MASTER_PORT=port) for rank in range(2)]
        shown = [self.finish(process) for process in ranks]
        self.assertRegex(shown[0], r"^1200 samples on 2 ranks")


if __name__ == "__main__":
    main()
