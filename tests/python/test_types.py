#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Types: mypy --strict has nothing to say of the package, nor of a program that uses it, and finds a wrong one."""
import importlib.util
import json
import pathlib
import subprocess
import sys
import tomllib

from case import PythonCase, cli, main

PROGRAM = """
import json
import numpy
import presto

dataset = presto.open("photos", pipeline="cv", features=["image", "label"])
feature: presto.Feature = dataset.features["image"]
loader = presto.Loader(dataset, batch=32, shuffle="full", epochs=3, pad={"tokens": (0, 512)}, hold="1GiB")
for batch in loader:
    rows: int = batch.rows
    print(batch["image"].shape, batch.epoch, rows, feature.dtype)
state: str = json.dumps(loader.state_dict())
loader.load_state_dict(json.loads(state))
try:
    print(dataset[3]["label"], dataset[[1, 2]].numbers, dataset[numpy.array([2, 1])].rows, dataset[range(3)], dataset[(True, False)])
except presto.CorruptError as error:
    print(error.file, error.record, error.offset)
mix: presto.Mix = presto.mix({dataset: 0.7, presto.open("few"): 0.3}, epoch="shortest")
paths: presto.Mix = presto.mix([("photos", 1), (dataset, 2.5)])
for batch in presto.Loader(mix, batch=16):
    print(mix.input_of(batch.numbers).sum(), mix.inputs[0].epoch_samples, presto.mix({"few": 1}).epoch_samples)
limit: str = loader.limit
with presto.Writer("digits", codec="zstd:1", shard_bytes="64MiB") as writer:
    writer.add({"image": [1, 2], "label": 3})
summary: presto.Summary | None = writer.summary


@presto.step(output="float32[3]", yields="means", workers=2)
def means(image: object) -> object:
    return image


pipeline: presto.Pipeline = presto.Pipeline("cv").after("resized", means)
result: presto.SweepResult = presto.sweep("photos", pipeline, codecs=["none"], runs=1, run_s=0.1)
written: presto.Summary = presto.write("photos", "out", strategy=result.best, on_error="skip:1%")
stored: int = written.stored_bytes + presto.inspect("out", verify=True).records
"""
WRONG = PROGRAM.replace("batch=32", 'batch="32"').replace("limit: str", "limit: int").replace("[[1, 2]]", "[{1, 2}]")


class Types(PythonCase):
    @classmethod
    def setUpClass(cls):
        cli.Case.setUpClass.__func__(cls)  # no datasets

    def check(self, *paths):
        return subprocess.run([sys.executable, "-m", "mypy", "--strict", "--config-file", cli.ROOT / "pyproject.toml",
                               "--cache-dir", self.folder / "cache", *paths],
                              cwd=cli.ROOT, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "MYPYPATH": "python"})

    def test_the_package_and_programs_are_clean(self):
        good, wrong = self.folder / "good.py", self.folder / "wrong.py"
        good.write_text(PROGRAM)
        wrong.write_text(WRONG)
        done = self.check(pathlib.Path("python/presto"), pathlib.Path("python/presto_programs"), good)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = self.check(wrong)
        self.assertEqual(done.stdout.count("error:"), 3, done.stdout)

    def test_pyright_says_the_same(self):
        """Where pyright is installed, with its Node.js: 300 MB, which tests/requirements.txt leaves out."""
        for name in ("pyright", "jax", "tensorflow", "datasets", "torch"):
            if importlib.util.find_spec(name) is None:
                self.skipTest(f"{name} is not installed")
        program, settings = self.folder / "program.py", self.folder / "pyrightconfig.json"
        settings.write_text(json.dumps({"include": [program.name], "extraPaths": [str(cli.ROOT / "python")]}))
        for text, project, wanted in ((PROGRAM, cli.ROOT, 0), (PROGRAM, settings, 0), (WRONG, settings, 3)):
            program.write_text(text)
            done = subprocess.run([sys.executable, "-m", "pyright", "-p", project, "--pythonpath", sys.executable, "--outputjson"],
                                  capture_output=True, text=True)
            found = json.loads(done.stdout)["generalDiagnostics"]
            self.assertEqual(len([one for one in found if one["severity"] == "error"]), wanted, done.stdout)


if __name__ == "__main__":
    main()
