#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast datasets are read over a network that is played: a round trip and a bandwidth per connection, on the loopback.

    bench/remote.py [BUILD] [--row NAME]

Prints a table. Rates are of this machine, which runs the server, too; processor time is that of presto-load alone.
"""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Server:
    def __init__(self, build, folder, round_trip_ms=0, mb_per_s=0):
        self.command = [build / "bench" / "range-server", folder, str(round_trip_ms), str(mb_per_s)]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{self.process.stdout.readline().strip()}"
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.counts = json.loads(self.process.stdout.readline())
        self.process.wait(10)


def load(build, url, *options):
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run([build / "tools" / "presto-load", "--json", "--format", "null", *options, url], capture_output=True, text=True,
                          env={**os.environ, "no_proxy": "127.0.0.1"}, check=False)
    wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"presto-load: {done.stderr}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout or done.stderr.splitlines()[-1]), wall, cpu, after.ru_maxrss


def make(build, folder, name, size, count, shards):
    path = folder / name
    subprocess.run([build / "tools" / "presto-write", "-q", "-p", "synthetic", "-u", "generated", "--set", f"source.size={size}",
                    "--set", f"source.count={count}", "-s", str(shards), "-o", path], check=True)
    return path


ROWS = {
    # name: (dataset, round trip in ms, MB/s a connection, options)
    "shuffled records of 100 KB, 30 ms": (("photos", 100_000, 6000, 8), 30, 0, ("--shuffle", "full", "-b", "32")),
    "windows of 1,000 records of 10 KB, 30 ms": (("small", 10_000, 60000, 8), 30, 0, ("--shuffle", "blocks:1000", "-b", "32")),
    "shuffled records of 10 KB, 30 ms": (("small", 10_000, 60000, 8), 30, 0, ("--shuffle", "full", "-b", "32", "--limit", "20000")),
    "in order, 30 ms, 90 MB/s a connection": (("photos", 100_000, 6000, 8), 30, 90, ("-b", "32", "-e", "2")),
    "in order, loopback": (("photos", 100_000, 6000, 8), 0, 0, ("-b", "32", "-e", "3")),
    "raw records in order, loopback": (("photos", 100_000, 6000, 8), 0, 0, ("--raw-records", "-b", "32", "-e", "3")),
    "first batch of 1,000 shards, 30 ms": (("shards", 100_000, 1000, 1000), 30, 0, ("--shuffle", "full", "-b", "32", "--limit", "32")),
    "one epoch of 1,000 shards, shuffled, 30 ms": (("shards", 100_000, 1000, 1000), 30, 0, ("--shuffle", "full", "-b", "32")),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--row", default="")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--folder", type=pathlib.Path)
    options = parser.parse_args()
    build = options.build.resolve()
    with tempfile.TemporaryDirectory() as temporary:
        folder, made = options.folder or pathlib.Path(temporary), {}
        folder.mkdir(exist_ok=True)
        for name, (dataset, round_trip, bandwidth, arguments) in ROWS.items():
            if options.row not in name:
                continue
            if dataset[0] not in made:
                made[dataset[0]] = folder / dataset[0] if (folder / dataset[0]).exists() else make(build, folder, *dataset)
            with Server(build, folder, round_trip, bandwidth) as server:
                _, wall, cpu, rss = load(build, f"{server.url}/{dataset[0]}", "-j", options.threads, *arguments)
            counts = server.counts
            gigabytes = counts["bytes"] / 1e9
            samples = int(arguments[arguments.index("--limit") + 1]) if "--limit" in arguments else dataset[2]
            samples *= int(arguments[arguments.index("-e") + 1]) if "-e" in arguments else 1
            print(f"{name:45} {samples / wall:9,.0f} samples/s {gigabytes * 1000 / wall:7,.0f} MB/s  {cpu / gigabytes:6.3f} CPU-s/GB  "
                  f"{counts['requests']:6} requests {counts['connections']:4} connections  {wall:6.3f} s  {rss / 1024:6.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
