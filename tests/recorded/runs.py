# SPDX-License-Identifier: Apache-2.0
"""The runs whose bytes are recorded, and the inputs that they read. A new format, option or source: a line here."""
import pathlib
from dataclasses import dataclass

# Figures of time and of this machine, in JSON and in sentences.
MASKS = [
    (rb'"(\w*(?:_s|_ns|_per_s|seconds|rate|created|cpu\w*|\w*bytes_per\w*|memory\w*|rss\w*|time\w*|mtime\w*))":\s*[-0-9.e+]+', rb'"\1": N'),
    (rb'"(created|host|machine|date)":\s*"[^"]*"', rb'"\1": "N"'),
    (rb"in [0-9.,]+ (?:s|ms|min|h)\b.*", b"in TIME"),
    (rb"limited by .*", b"limited by SOMETHING"),
]
TEXTS = {".json", ".jsonl", ".yaml", ".csv", ".html", ".txt"}
NOT_COMPARED = r"^(first|listed)$|\.lock$|sweep/(trials|results|report|strategy)|/trial-|\.stats$|\.pyc$"

PIPELINE = """\
name: small
source: {type: files, match: ["*.jpg"], label: parent-folder}
steps:
  - {step: read-file,     yields: concatenated}
  - {step: decode-image,  yields: decoded, channels: 3}
  - {step: resize-image,  yields: resized, min-side: 48}
  - {step: center-pixels, yields: pixel-centered}
  - {step: random-crop,   height: 32, width: 40}
"""
FOREIGN = """\
name: foreign
source: {type: tfrecord, feature: image/encoded, label: image/class/label}
steps:
  - {step: decode-image, yields: decoded, channels: 3}
  - {step: resize-image, yields: resized, min-side: 32}
  - {step: random-crop,  height: 24, width: 24}
"""
TARS = "name: tars\nsource: {type: tar}\nsteps:\n  - {step: read-file, yields: concatenated}\n" \
       "  - {step: decode-image, yields: decoded, channels: 3}\n" \
       "  - {step: resize-image, yields: resized, min-side: 32}\n"
TABLE = "name: table\nsource: {type: manifest, path: file}\nsteps:\n  - {step: read-file, yields: concatenated}\n"
PYTHON = """\
import sys, hashlib, presto
digest = hashlib.sha256()
for batch in presto.Loader("resized", batch=5, shuffle="full", seed=3, epochs=2, threads=2):
    for name in sorted(batch):
        digest.update(name.encode())
        value = batch[name]
        digest.update(bytes(value) if isinstance(value, (bytes, bytearray)) else repr(getattr(value, "tolist", lambda: value)()).encode())
print(digest.hexdigest())
"""


def make_inputs(desk):
    (desk / "small.yaml").write_text(PIPELINE)
    (desk / "foreign.yaml").write_text(FOREIGN)
    (desk / "tars.yaml").write_text(TARS)
    (desk / "table.yaml").write_text(TABLE)
    (desk / "loader.py").write_text(PYTHON)
    (desk / "finish.py").write_text(FINISH)


# Runs after the photos are there, with Python alone: what other programs would have made of them.
FINISH = '''\
import io, pathlib, sys, tarfile
sys.path.insert(0, %r)
from records import framed, serialized
photos = sorted(pathlib.Path("photos").rglob("*.jpg"))
pathlib.Path("foreign").mkdir()
for shard in range(2):
    chosen = list(enumerate(photos))[shard::2]
    pathlib.Path(f"foreign/train-{shard:05}-of-00002").write_bytes(b"".join(framed(serialized(
        {"image/encoded": p.read_bytes(), "image/class/label": n %% 3, "image/name": p.name.encode()})) for n, p in chosen))
pathlib.Path("values").write_bytes(b"".join(framed(serialized(
    {"x": [n / 4, n / 2, float(n)], "y": n, "name": str(n).encode()})) for n in range(100)))
pathlib.Path("texts").write_bytes(b"".join(framed(f"line {n}".encode()) for n in range(50)))
with tarfile.open("photos.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
    for n, p in enumerate(photos):
        for end, data in ((".jpg", p.read_bytes()), (".cls", str(n %% 3).encode())):
            info = tarfile.TarInfo(f"{n:04}{end}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
pathlib.Path("table.csv").write_text("file,score\\n" + "".join(f"{p},{n / 8}\\n" for n, p in enumerate(photos)))
damaged = bytearray(pathlib.Path("values").read_bytes())
damaged[len(damaged) // 2] ^= 255
pathlib.Path("damaged").write_bytes(damaged)
''' % str(pathlib.Path(__file__).resolve().parents[1] / "corpora")


@dataclass
class Run:
    name: str
    command: str
    code: int = 0           # expected; None: any
    is_text: bool = False   # standard output is text with figures
    is_needed: bool = False  # others read what it writes


def needed(name, command):
    return Run(name, command, is_needed=True)


RUNS = [
    needed("photos", "presto-make-photos -q -n 24 -c 3 --width 90 --height 70 -o photos"),
    needed("finish", '"$PYTHON" finish.py'),
    needed("write resized", "presto-write -q -p small.yaml -u resized -s 3 -j 2 -o resized photos"),
    Run("write default", "presto-write -q -p small.yaml -o whole -s 2 photos"),
    *(Run(f"write {codec}", f"presto-write -q -p small.yaml -u resized -c {codec} -s 2 -o out-{codec} photos")
      for codec in ("zstd:1", "lz4", "zlib", "gzip", "snappy", "blosc-lz4")),
    Run("write gzip files", "presto-write -q -p small.yaml -u decoded --file-compression gzip -s 2 -o gz photos"),
    Run("write shard bytes", "presto-write -q -p small.yaml -u resized --shard-bytes 64KiB -o cut photos"),
    Run("write part", "presto-write -q -p small.yaml -u resized --split 80/20 --part train -s 2 -o part photos"),
    Run("write limit", "presto-write -q -p small.yaml -u concatenated --limit 5 -s 1 -o five photos"),
    Run("write foreign", "presto-write -q -p foreign.yaml -u resized -s 2 -o foreign-resized foreign"),
    Run("write from", "presto-write -q -p small.yaml --from concatenated --feature image/encoded -u resized -s 2 -o from foreign", None),
    Run("write tar", "presto-write -q -p tars.yaml -s 2 -o tars photos.tar"),
    Run("write table", "presto-write -q -p table.yaml -s 1 -o table table.csv", None),
    Run("write on", "presto-write -q -p small.yaml -u pixel-centered -s 2 -o centered resized"),
    Run("write synthetic", "presto-write -q -p synthetic --set source.count=20 --set source.size=1KiB -s 2 -o made", None),
    Run("write explain", "presto-write -p small.yaml -u resized --explain -o x photos", is_text=True),
    Run("write wrong representation", "presto-write -p small.yaml -u nothing -o x photos", 2),
    Run("write random representation", "presto-write -p small.yaml -u random-crop -o x photos", 2),
    Run("write twice", "presto-write -q -p small.yaml -u resized -s 3 -o resized photos", None),
    Run("write resume", "cp -r resized again && rm again/dataset.json && presto-write -q -p small.yaml -u resized -s 3 -j 2 --resume "
        "-o again photos", None),
    *(Run(f"load {order} {threads}", f"presto-load -q -e 2 --seed 5 {order} -j {threads} resized")
      for order in ("", "--shuffle full", "--shuffle buffer:7", "--shuffle blocks:4") for threads in (0, 2)),
    *(Run(f"load {kind}", f"presto-load -q -b 5 --seed 1 --format {kind} resized") for kind in ("tfrecord", "npy", "arrow", "raw", "null")),
    *(Run(f"load {kind} features", f"presto-load -q -b 4 --format {kind} --features label,key,image resized", None)
      for kind in ("npy", "arrow", "raw")),
    *(Run(f"load values {kind}", f"presto-load -q -b 8 --format {kind} values") for kind in ("tfrecord", "npy", "arrow")),
    *(Run(f"load raw records {kind}", f"presto-load -q -b 8 --raw-records --format {kind} texts") for kind in ("tfrecord", "npy", "arrow")),
    *(Run(f"load rank {rank}", f"presto-load -q --shuffle full --seed 2 --rank {rank} --world 3 resized") for rank in range(3)),
    Run("load skip", "presto-load -q -e 2 --shuffle full --skip 13 --limit 9 resized"),
    Run("load drop last", "presto-load -q -b 7 --drop-last --format npy resized"),
    Run("load state", "presto-load -q -e 2 --limit 10 --shuffle full --state s.state resized >first; "
        "presto-load -q -e 2 --shuffle full --state s.state resized"),
    Run("load memory cache", "presto-load -q -e 3 --cache memory:64MiB --shuffle full --format npy resized"),
    Run("load disk cache", "presto-load -q -e 2 --cache disk:kept:64MiB --seed 4 --format npy resized | sha256sum; "
        "presto-load -q -e 2 --cache disk:kept:64MiB --seed 4 --format npy resized; rm -rf kept"),
    Run("load online", "presto-load -q -p small.yaml --seed 9 --format npy -b 3 photos"),
    Run("load to", "presto-load -q -p small.yaml --to decoded photos"),
    Run("load foreign", "presto-load -q -p foreign.yaml --seed 1 foreign"),
    Run("load foreign plain", "presto-load -q foreign"),
    Run("load from", "presto-load -q -p small.yaml --from concatenated --feature image/encoded --seed 1 foreign"),
    Run("load tar", "presto-load -q -p tars.yaml photos.tar"),
    Run("load part", "presto-load -q --split 70/30 --part eval resized"),
    Run("load mix", "presto-load -q --mix resized=2 --mix out-lz4=1 --shuffle full --seed 6 --limit 60"),
    Run("load pad", "presto-load -q -b 4 --format npy --pad image=0 whole", None),
    Run("load damaged", "presto-load -q damaged", 3),
    Run("load damaged skip", "presto-load -q --on-error skip:10 --error-report report.jsonl damaged"),
    Run("load explain", "presto-load --explain resized", is_text=True),
    Run("load explain json", "presto-load --explain --json resized", is_text=True),
    Run("load wrong to", "presto-load --to nothing resized", 1),
    Run("load wrong from", "presto-load --from nothing resized", None),
    Run("load wrong from of pipeline", "presto-load -p small.yaml --from nothing foreign", None),
    Run("load other pipeline", "presto-load -p foreign.yaml --format null resized", None),
    Run("load nothing", "presto-load missing", None),
    Run("load text file", "presto-load small.yaml", None),
    Run("inspect info", "presto-inspect info --json resized", is_text=True),
    Run("inspect info foreign", "presto-inspect info foreign values", is_text=True),
    Run("inspect verify", "presto-inspect verify resized", is_text=True),
    Run("inspect verify damaged", "presto-inspect verify --json damaged", 3, is_text=True),
    Run("inspect cat", "presto-inspect cat --json values"),
    Run("inspect cat full", "presto-inspect cat --json --full --record 3 resized/data-00000-of-00003.tfrecord"),
    Run("inspect repair", "presto-inspect repair -q damaged -o repaired", None),
    Run("inspect recode", "presto-inspect recode -q -c lz4 -s 2 -o recoded resized"),
    Run("inspect index", "cp values indexed && presto-inspect index -q indexed && presto-inspect index --dali -q indexed"),
    Run("sweep strategies", "presto-sweep -q -p small.yaml --codecs none,lz4 --threads 1 --samples 6 --runs 1 --decide-time 0 --run-time 0 "
        "-o sweep photos >listed && cut -d, -f1-4 sweep/results.csv | sort"),
    Run("sweep records", "presto-sweep -q -p small.yaml --from concatenated --feature image/encoded --set source.label=image/class/label "
        "--stored resized --codecs none --threads 1 --samples 6 --runs 1 --decide-time 0 --run-time 0 -o records-sweep foreign >listed && "
        "grep -A4 '^set' records-sweep/strategy.yaml"),
    *(Run(f"help {program}", f"presto-{program} --help") for program in ("load", "write", "inspect", "sweep", "make-photos")),
    Run("help steps", "presto-load --help-steps"),
    Run("python loader", '"$PYTHON" loader.py'),
]
