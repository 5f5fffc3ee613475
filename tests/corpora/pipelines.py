# SPDX-License-Identifier: Apache-2.0
"""What tests need to run every built-in pipeline: its corpus, and the options that it cannot run without."""
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "tests" / "golden" / "tokenizers" / "bpe.model"

# name: (corpus of tests/corpora/make, or None: it needs none or makes its own; --set arguments)
PIPELINES = {
    "cv": ("cv", []),
    "cv2-jpg": ("cv2-jpg", []),
    "cv2-png": ("cv2-png", []),
    "cv-grey-early": ("cv", []),
    "cv-grey-late": ("cv", []),
    "nlp": ("nlp", [f"bpe-encode.model={MODEL}"]),
    "mp3": ("mp3", []),
    "flac": ("flac", []),
    "nilm": ("nilm", []),
    "npy": (None, []),
    "synthetic": (None, ["source.size=6000", "source.count=30"]),
}


def make_arrays(folder):
    """A few small .npy files."""
    import numpy

    folder.mkdir(exist_ok=True)
    for i in range(8):
        numpy.save(folder / f"{i}.npy", numpy.arange(12, dtype=numpy.float32).reshape(3, 4) + i)
    return folder


class Pipeline:
    """A built-in pipeline over a few small samples in a folder of the caller's."""

    def __init__(self, name, folder, photos):
        corpus, settings = PIPELINES[name]
        self.name = name
        self.sets = [part for setting in settings for part in ("--set", setting)]
        self.sources = []
        if name == "npy":
            self.sources = [make_arrays(folder / "corpus-npy")]
        elif corpus is not None:
            source = folder / f"corpus-{corpus}"
            subprocess.run([ROOT / "tests" / "corpora" / "make", corpus, "--tiny", "-o", source, "--photos", photos],
                           check=True, capture_output=True)
            self.sources = [source]
        text = re.sub(r"#.*", "", (ROOT / "pipelines" / f"{name}.yaml").read_text())
        self.representations = re.findall(r"yields: ([\w-]+)", text)

    def arguments(self, *more):
        """Of presto-load and presto-write, for the raw samples."""
        return ["--quiet", "--pipeline", self.name, *self.sets, *more, *self.sources]


def built_in(presto_load):
    """The names that this build knows."""
    done = subprocess.run([presto_load, "--pipeline", "none-of-them", "."], capture_output=True, text=True)
    return re.search(r"built in: (.*?);", done.stderr)[1].split(", ")
