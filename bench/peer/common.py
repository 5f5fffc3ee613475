# SPDX-License-Identifier: Apache-2.0
"""What all peers share: the samples of each workload, the loop that measures, and the digest of what arrived.

A sample is a dict of NumPy arrays, numbers and bytes, with its number as `id`. The same samples are made anew in every process.
"""
from __future__ import annotations

import dataclasses
import hashlib
import os
import pathlib
import time

import numpy as np

FLOATS, INTS = 20, 8  # of a table's row; with id and a short text these are 30 features
PHOTO_SIDE = 224
RECIPE = {"area": (0.08, 1.0), "ratio": (3 / 4, 4 / 3), "mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}  # torchvision's, of ImageNet
MEL = {"rate": 16000, "fft": 1024, "window": 320, "stride": 160, "bands": 80, "low": 125.0, "high": 3800.0, "offset": 1e-8}


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    kind: str  # raw, tensor, table, photo, recipe, resized, text, speech
    what: str  # for the page
    count: int  # samples
    size: int  # bytes a sample of raw and tensor
    batch: int
    mode: str = "read"  # read, access (random batches), shuffle (a full shuffle), write
    exact: bool = True  # values are equal to the bit; else within `tolerance`
    tolerance: float = 0.0
    random: bool = False  # other values in each epoch: those of an epoch are alike within `tolerance`, on average


def sized(name, kind, size, what, mode="read", total=200_000_000, most=100_000):
    count = max(8, min(most, total // size))
    return Workload(name, kind, what, count, size, max(1, min(4096, 4_000_000 // size)), mode)


WORKLOADS = {
    work.name: work
    for work in [
        sized("raw-100B", "raw", 100, "raw records of 100 B"),
        sized("raw-1KB", "raw", 1_000, "raw records of 1 KB"),
        sized("raw-10KB", "raw", 10_000, "raw records of 10 KB"),
        sized("raw-100KB", "raw", 100_000, "raw records of 100 KB"),
        sized("tensor-10KB", "tensor", 10_000, "float32 tensors of 0.01 MB"),
        sized("tensor-100KB", "tensor", 100_000, "float32 tensors of 0.1 MB"),
        sized("tensor-1MB", "tensor", 1_000_000, "float32 tensors of 1 MB"),
        sized("tensor-20MB", "tensor", 20_000_000, "float32 tensors of 20 MB"),
        Workload("table", "table", "rows of 30 features", 65_536, 200, 2048),
        Workload("photos", "photo", "photos, decoded and resized online", 600, 0, 32, exact=False, tolerance=0.06),
        Workload("recipe", "recipe", "photos, torchvision's ImageNet recipe", 600, 0, 32, exact=False, tolerance=0.15, random=True),
        Workload("resized", "resized", "photos stored resized, as uint8", 600, 0, 32, exact=False, tolerance=0.06),
        Workload("text", "text", "text to token ids", 6_000, 2_000, 64),
        Workload("speech", "speech", "speech (FLAC) to mel spectrograms", 60, 0, 4, exact=False, tolerance=0.05),
        sized("access", "tensor", 10_000, "random batches of 0.01 MB tensors", "access"),
        sized("shuffle", "tensor", 10_000, "a full shuffle of 0.01 MB tensors", "shuffle"),
        sized("write", "tensor", 10_000, "writing float32 tensors of 0.01 MB", "write", total=100_000_000),
    ]
}


def scaled(work, quick):
    """As small as it goes, to see that all works."""
    if not quick:
        return work
    least = {"photo": 48, "recipe": 48, "resized": 48, "speech": 6, "text": 200}.get(work.kind, 3 * work.batch)
    return dataclasses.replace(work, count=min(work.count, max(8, least)))


# ---- the samples ----

_pool = None


def _noise(number, size):
    """`size` bytes of noise, other ones for each number."""
    global _pool
    if _pool is None or len(_pool) < size + (1 << 20):
        _pool = np.random.default_rng(11).integers(0, 256, size + (1 << 22), dtype=np.uint8)
    first = number * 7919 % (len(_pool) - size + 1)
    return _pool[first : first + size]


def _raw(number, size):
    return {"record": number.to_bytes(8, "little") + _noise(number, size - 8).tobytes()}


def _tensor(number, size):
    values = _noise(number, size).view(np.uint8).astype(np.float32)[: size // 4] / np.float32(255)
    return {"id": number, "x": values}


def _row(number, _):
    chance = np.random.Generator(np.random.PCG64(number))
    row = {f"float_{i:02}": value for i, value in enumerate(chance.standard_normal(FLOATS, dtype=np.float32))}
    row |= {f"int_{i:02}": int(value) for i, value in enumerate(chance.integers(0, 1 << 20, INTS))}
    return {"id": number, **row, "text": bytes(chance.integers(97, 123, chance.integers(4, 24), dtype=np.uint8))}


_WORDS = ("where is my training bottleneck hidden trade offs in deep learning preprocessing pipelines throughput storage "
          "the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which "
          "you were her all she there would their we him been has when who will more no if out so said what up its about").split()


_SYLLABLES = [c + v for c in "bcdfghjklmnprstvwz" for v in "aeiou"]
_SHARES = np.cumsum(1 / np.arange(1, 20_001))  # of 20,000 words: the n-th one is n times rarer than the first (Zipf)


def _word(rank):
    """The common words, and behind them rarer ones, which are longer."""
    if rank < len(_WORDS):
        return _WORDS[rank]
    word = ""
    while rank:
        word += _SYLLABLES[rank % len(_SYLLABLES)]
        rank //= len(_SYLLABLES)
    return word


def _text(number, size):
    """Words as often as in a language."""
    chance = np.random.Generator(np.random.PCG64(number))
    chosen = np.searchsorted(_SHARES, chance.random(size // 4) * _SHARES[-1])
    return {"id": number, "text": " ".join(_word(int(i)) for i in chosen).encode()[:size].rstrip()}


_files = {}


def files_of(folder, pattern):
    """The files of a corpus, in order."""
    key = str(folder), pattern
    if key not in _files:
        _files[key] = sorted(pathlib.Path(folder).rglob(pattern))
    return _files[key]


def sample(work, number, corpus):
    """Sample `number`, as it is stored. Photos and speech are files of the corpus."""
    if work.kind in ("raw", "tensor", "table", "text"):
        return {"raw": _raw, "tensor": _tensor, "table": _row, "text": _text}[work.kind](number, work.size)
    if work.kind == "resized":
        return {"id": number, "image": np.load(corpus / "resized.npy", mmap_mode="r")[number]}
    path = files_of(corpus, "*.flac" if work.kind == "speech" else "*.jpg")[number]
    return {"id": number, "bytes": path.read_bytes(), "path": str(path)}


def count_of(work, corpus):
    if work.kind in ("photo", "recipe"):
        return min(work.count, len(files_of(corpus, "*.jpg")))
    if work.kind == "resized":
        return min(work.count, len(np.load(corpus / "resized.npy", mmap_mode="r")))
    if work.kind == "speech":
        return min(work.count, len(files_of(corpus, "*.flac")))
    return work.count


def samples(work, corpus):
    for number in range(count_of(work, corpus)):
        yield sample(work, number, corpus)


def mel_weights():
    """[bins, bands], triangles on HTK's scale, as tf.signal.linear_to_mel_weight_matrix has them."""
    to_mel = lambda hz: 1127.0 * np.log1p(np.asarray(hz) / 700.0)  # noqa: E731
    bins = MEL["fft"] // 2 + 1
    mels = to_mel(np.linspace(0.0, MEL["rate"] / 2, bins)[1:])[:, None]
    edges = np.linspace(to_mel(MEL["low"]), to_mel(MEL["high"]), MEL["bands"] + 2)
    low, center, high = edges[:-2], edges[1:-1], edges[2:]
    weights = np.maximum(0.0, np.minimum((mels - low) / (center - low), (high - mels) / (high - center)))
    return np.concatenate([np.zeros((1, MEL["bands"])), weights]).astype(np.float32)


# ---- what arrived ----


def _part(value):
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    return np.ascontiguousarray(value).tobytes()


def _number(name, value):
    """Numbers of all widths and kinds as one."""
    if isinstance(value, (bytes, str)) or np.ndim(value) > 0:
        return value
    return np.float32(value) if name.startswith("float") else np.int64(value)


def digest(arrived):
    """Of all samples of an epoch, whatever their order: how many, and the sum of their hashes."""
    total = count = 0
    for one in arrived:
        state = hashlib.blake2b(digest_size=8)
        for name in sorted(one):
            state.update(name.encode())
            state.update(_part(_number(name, one[name])))
        total = (total + int.from_bytes(state.digest(), "little")) % (1 << 64)
        count += 1
    return {"count": count, "digest": f"{total:016x}"}


# ---- measuring ----


def _tree():
    """This process and those below it."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = pathlib.Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue
            fields = stat.rpartition(") ")[2].split()
            children.setdefault(int(fields[1]), []).append((int(entry), fields))
    found, todo = [], [os.getpid()]
    mine = pathlib.Path("/proc/self/stat").read_text().rpartition(") ")[2].split()
    found.append((os.getpid(), mine))
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += [pid for pid, _ in below]
    return found


def processor_seconds():
    """Of this process, all its threads, its children, and those children's that have ended."""
    ticks = sum(sum(int(field) for field in fields[11:15]) for _, fields in _tree())
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_bytes():
    """Proportional set size: memory that processes share counts once."""
    total = 0
    for pid, _ in _tree():
        try:
            for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) << 10
        except OSError:
            pass
    return total


def measure(begin, size_of, seconds, looks_at_memory):
    """Samples between the first batch and `seconds` later. Begins again at the end of an epoch."""
    started = time.perf_counter()
    batches = iter(begin())
    next(batches)
    start, busy = time.perf_counter(), processor_seconds()
    count, peak, looked = 0, 0, start
    while True:
        try:
            count += size_of(next(batches))
        except StopIteration:
            batches = iter(begin())
            continue
        now = time.perf_counter()
        if looks_at_memory and now - looked > 0.2:
            peak, looked = max(peak, memory_bytes()), now
        if now - start >= seconds:
            break
    busy = processor_seconds() - busy
    if looks_at_memory:
        peak = max(peak, memory_bytes())
    del batches
    return {"rate": count / (now - start), "busy": busy / count, "first": start - started, "peak": peak}
