#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does presto-load --storage deliver what the figures of the storage promise?

    bench/storage.py                   # about two minutes on two idle cores
    bench/storage.py --build build/release --mib 64

A dataset of records that cost nothing to parse is read from storages that are slower than the machine, in order and shuffled, by one
to eight threads. The figures promise the least of: the bandwidth; the reads per second; what the threads can do if each of them
waits for its own reads, of which --stats tells the number. Printed are what was measured, what was promised, and the difference. Reads that
are shuffled have the size of one record. What opening takes is left out: the first epoch does not count. A storage that promises more than a
tenth of what this machine reads without one is left out, too: there the machine's own work shows.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# name, --storage, its figures: bytes/s, bytes/s and thread, reads/s, s a read.
STORAGES = [
    ("bandwidth", "bandwidth=50MB/s", (50e6, 0, 0, 0)),
    ("per thread", "per-thread=10MB/s", (0, 10e6, 0, 0)),
    ("reads", "iops=200", (0, 0, 200, 0)),
    ("latency", "latency=10ms", (0, 0, 0, 10e-3)),
    ("network disk", "network-disk,open=0s", (131.072e6, 0, 3000, 1e-3)),
    ("a tenth of ceph-hdd", "bandwidth=91MB/s,per-thread=21.9MB/s,iops=22200,latency=614us", (91e6, 21.9e6, 22200, 614e-6)),
]


def promised(figures, threads, stats):
    """Bytes per second."""
    total, each, reads_per_s, latency = figures
    size, reads = stats["read_bytes"], stats["storage_reads"]
    alone = max(size / total if total else 0, size / each if each else 0, reads / reads_per_s if reads_per_s else 0)
    limits = [threads * size / (alone + reads * latency)]
    if total:
        limits.append(total)
    if reads_per_s:
        limits.append(reads_per_s * size / reads)
    return min(limits)


KEYS = ("wall_s", "read_bytes", "storage_reads")


def load(args, dataset, storage, threads, shuffle, epochs):
    plays = ["--storage", storage] if storage else []
    done = subprocess.run([args.build / "tools" / "presto-load", "-q", "--json", "--format", "null", "--raw-records", "-j", str(threads),
                           "-e", str(epochs), "--shuffle", shuffle, *plays, dataset], check=True, capture_output=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--mib", type=int, default=64, help="size of the dataset [default: 64]")
    args = parser.parse_args()
    print("| storage | order | threads | MB/s | promised | difference |\n| --- | --- | --- | --- | --- | --- |")
    worst = 0
    with tempfile.TemporaryDirectory() as folder:
        dataset = pathlib.Path(folder) / "dataset"
        samples = args.mib * 16  # of 64 kB
        subprocess.run([args.build / "tools" / "presto-write", "-q", "-p", "synthetic", "--set", f"source.count={samples}",
                        "--set", "source.size=64000", "-u", "generated", "-s", "8", "-o", dataset], check=True)
        most = {(shuffle, threads): load(args, dataset, None, threads, shuffle, 10)["read_bytes_per_s"]
                for shuffle in ("none", "full") for threads in (1, 2, 8)}
        for name, storage, figures in STORAGES:
            for shuffle in ("none", "full"):
                for threads in (1, 2, 8):
                    first = load(args, dataset, storage, threads, shuffle, 1)
                    stats = load(args, dataset, storage, threads, shuffle, 1 + max(1, round(2 / first["wall_s"])))
                    stats = {key: stats[key] - first[key] for key in KEYS}  # of the epochs behind the first one
                    wanted, got = promised(figures, threads, stats), stats["read_bytes"] / stats["wall_s"]
                    if wanted > most[shuffle, threads] / 10:
                        continue
                    worst = max(worst, abs(got / wanted - 1))
                    order = "in order" if shuffle == "none" else "shuffled"
                    print(f"| {name} | {order} | {threads} | {got / 1e6:.1f} | {wanted / 1e6:.1f} | {100 * (got / wanted - 1):+.1f} % |", flush=True)
    print(f"\nThe largest difference: {100 * worst:.1f} %")


if __name__ == "__main__":
    main()
