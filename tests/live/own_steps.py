#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/own-steps.md's worker, with TensorFlow's classes, against the one of examples/own_steps: same requests, same replies; and its
step for web pages against trafilatura, called here. Usage: own_steps.py TOOLS ROOT"""
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

TOOLS, ROOT = map(pathlib.Path, sys.argv[1:3])
EXAMPLES = ROOT / "examples" / "own_steps"

PIPELINE = """\
name: half
source: {{type: synthetic, count: 12, size: 10000, dtype: uint8}}
steps:
  - {{step: command, run: [{python}, {script}], output: "uint8[5000]", start-timeout: 10m}}
"""


def load(folder, script):
    pipeline = folder / "half.yaml"
    pipeline.write_text(PIPELINE.format(python=sys.executable, script=script))
    done = subprocess.run([TOOLS / "presto-load", "-q", "--format", "raw", "-j", "1", "-p", pipeline], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return np.frombuffer(done.stdout, np.uint8).reshape(12, 5000)


def check_pages(folder):
    """Each page's text is what the library gives here; pages without text are left out."""
    import trafilatura

    pages = sorted((ROOT / "tests" / "golden" / "html").glob("*.html"))
    out = folder / "texts"
    subprocess.run([TOOLS / "presto-write", "-q", "-p", EXAMPLES / "newspaper.yaml", "-u", "decoded", "-j", "2", "-s", "1", "--set",
                    f"command.run=[{sys.executable}, {EXAMPLES / 'newspaper_text.py'}]", "-o", out, *pages], check=True)
    import tensorflow as tf
    got = {}
    for record in tf.data.TFRecordDataset(sorted(str(path) for path in out.glob("*.tfrecord"))):
        feature = tf.train.Example.FromString(record.numpy()).features.feature
        got[feature["key"].bytes_list.value[0].decode()] = feature["text"].bytes_list.value[0].decode()
    wanted = {page.name: trafilatura.extract(page.read_bytes()) for page in pages}
    wanted = {page: text for page, text in wanted.items() if text}
    differ = [page for page in wanted if got.get(page) != wanted[page]]
    assert not differ and len(got) == len(wanted) >= 5, (differ, len(got))
    print(f"{len(got)} texts of {len(pages)} web pages equal trafilatura's")


def main():
    page = (ROOT / "docs" / "own-steps.md").read_text()
    tensorflow = next(block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "tensorflow" in block)
    mine = next(block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "serve" in block)
    with tempfile.TemporaryDirectory(prefix="presto-own-steps-") as name:
        folder = pathlib.Path(name)
        # The pages' steps halve images; these halve vectors.
        (folder / "tensorflow_worker.py").write_text(tensorflow.replace("[::2, ::2]", "[::2]"))
        (folder / "worker.py").write_text(f"import sys\nsys.path.insert(0, {str(EXAMPLES)!r})\n" + mine.replace("[::2, ::2]", "[::2]"))
        theirs, ours = (load(folder, script) for script in ("tensorflow_worker.py", "worker.py"))
        assert (theirs == ours).all() and len(np.unique(ours)) == 256
        whole = subprocess.run([TOOLS / "presto-load", "-q", "--format", "raw", "--to", "generated", "-p", "synthetic", "--set", "source.count=12", "--set",
                                "source.size=10000"], capture_output=True).stdout
        assert (np.frombuffer(whole, np.uint8).reshape(12, -1)[:, ::2] == ours).all()
        check_pages(folder)
        print("12 samples equal through tf.train.Example, presto_worker and NumPy")


if __name__ == "__main__":
    main()
