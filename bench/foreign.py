#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Presto beside the programs that people have, on files that those programs wrote.

    build/venv/bin/python bench/foreign.py                  # all rows, minutes on two idle cores
    build/venv/bin/python bench/foreign.py tables           # one of them
    build/venv/bin/python bench/foreign.py --list

Each row is one job done in several ways. First, all ways must deliver equal values. Then they run in turn, round after
round, in rotating order: a ratio is taken within a round. Printed are the median over the rounds and its spread: half the
distance between the quartiles, relative to the median. Time by the clock includes all that a user waits for, from the start of
presto-load or the making of a pipeline to the last sample; importing packages is left out. Processor time (user and system, all
threads and programs) is what can be compared while others use the machine.

To add a row, write a function, here or in a file beside this one, and list it in ROWS. It gets a Bench and returns a Row:

    def my_row(bench):
        # Make the files below bench.folder, with the other program. bench.quick: as small as it goes.
        return Row(
            unit="samples",
            ways=[Way("presto-load", run_ours), Way("theirs", run_theirs)],   # the first one is compared with the others
            check=compare)

`run_...()` does the whole job once and returns how many units it did; or a Timed(units, seconds), if the time that counts is
not that of the call (the time to the first sample, or without importing a package). `compare()` returns a line that says what was found equal, and
raises AssertionError otherwise. bench.presto_load(...) is the command line of presto-load; bench.threads the number of threads
for every way.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))  # npy_stream


# ---- the frame ----

@dataclasses.dataclass
class Bench:
    """What a row is given."""

    folder: pathlib.Path  # its own, empty; removed afterwards
    tools: pathlib.Path  # where presto-load and the others are
    threads: int
    quick: bool

    def presto_load(self, *arguments):
        return [str(self.tools / "presto-load"), "--quiet", "-j", str(self.threads), *map(str, arguments)]


@dataclasses.dataclass
class Timed:
    units: float
    seconds: float
    busy: float | None = None  # seconds of processor time, if the call's are not those that count, either


@dataclasses.dataclass
class Way:
    name: str
    run: typing.Callable[[], float | Timed]


@dataclasses.dataclass
class Row:
    unit: str
    ways: list[Way]
    check: typing.Callable[[], str]


def figure(values):
    """Median and spread, as in docs/bench.md."""
    values = sorted(values)
    median = statistics.median(values)
    if len(values) < 4:
        return median, (values[-1] - values[0]) / 2 / median
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return median, (high - low) / 2 / median


def processor_time():
    """Of this process, all its threads, and of the programs that it has waited for."""
    return sum(os.times()[:4])


def run_once(way):
    """Units a second: by the clock, and by processor time."""
    start, start_busy = time.perf_counter(), processor_time()
    done = way.run()
    seconds, busy = time.perf_counter() - start, processor_time() - start_busy
    if isinstance(done, Timed):
        done, seconds, busy = done.units, done.seconds, busy if done.busy is None else done.busy
    return done / seconds, done / max(busy, 0.01)


def measure(name, row, rounds, out):
    print(f"{name}: {row.check()}", flush=True)
    rates = [[] for _ in row.ways]
    for way in row.ways:
        run_once(way)  # the page cache is filled, TensorFlow's functions are traced
    for turn in range(rounds):
        for step in range(len(row.ways)):
            at = (turn + step) % len(row.ways)
            rates[at].append(run_once(row.ways[at]))
    ours = row.ways[0].name
    for at, way in enumerate(row.ways):
        rate = figure([clock for clock, _ in rates[at]])
        print(f"  {way.name}: {rate[0]:,.{0 if rate[0] >= 100 else 1}f} {row.unit}/s +- {100 * rate[1]:.0f} %", flush=True)
        note(out, name, way.name, f"{row.unit}/s", rate)
        for by, what in enumerate(("by the clock", "by processor time") if at > 0 else ()):
            ratio = figure([mine[by] / theirs[by] for mine, theirs in zip(rates[0], rates[at])])
            print(f"    {ours} is {ratio[0]:.2f} +- {100 * ratio[1]:.0f} % times as fast {what}", flush=True)
            note(out, name, way.name, f"{ours} / this, {what}", ratio)


def note(out, row, way, column, found):
    if out is not None:
        figure = {"table": f"foreign.{row}", "row": way, "column": column, "median": found[0], "spread": found[1]}
        out.write(json.dumps(figure) + "\n")


# ---- tables: tf.train.Examples of many small features ----

FLOATS, INT64S = 20, 9
BATCH = 4096


def write_tables(folder, shards, records, distinct):
    """TFRecords by TensorFlow: `distinct` different rows, again and again."""
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(7)
    rows = []
    for _ in range(distinct):
        feature = {f"float_{i:02}": tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
                   for i, value in enumerate(rng.standard_normal(FLOATS, dtype=np.float32))}
        for i, value in enumerate(rng.integers(0, 1 << 21, INT64S) >> rng.integers(0, 21, INT64S)):
            feature[f"int64_{i:02}"] = tf.train.Feature(int64_list=tf.train.Int64List(value=[int(value)]))
        text = bytes(rng.integers(97, 123, rng.integers(4, 24), dtype=np.uint8))
        feature["text"] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[text]))
        rows.append(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    paths = []
    for shard in range(shards):
        paths.append(str(folder / f"table-{shard}.tfrecord"))
        with tf.io.TFRecordWriter(paths[-1]) as writer:
            for i in range(records // shards):
                writer.write(rows[(i * 7 + shard) % distinct])
    return paths


def tables_spec():
    import tensorflow as tf

    spec = {f"float_{i:02}": tf.io.FixedLenFeature([], tf.float32) for i in range(FLOATS)}
    spec |= {f"int64_{i:02}": tf.io.FixedLenFeature([], tf.int64) for i in range(INT64S)}
    return spec | {"text": tf.io.FixedLenFeature([], tf.string)}


def tf_batches(bench, paths):
    """The batched form, which TensorFlow's guide calls the fast one."""
    import tensorflow as tf

    spec = tables_spec()
    dataset = tf.data.TFRecordDataset(paths).batch(BATCH)
    dataset = dataset.map(lambda batch: tf.io.parse_example(batch, spec), num_parallel_calls=bench.threads)
    options = tf.data.Options()
    options.threading.private_threadpool_size = bench.threads
    return dataset.prefetch(tf.data.AUTOTUNE).with_options(options)


def same_batch(ours, theirs):
    import numpy as np

    assert set(ours) == set(theirs), set(ours) ^ set(theirs)
    for name, values in theirs.items():
        if name == "text":
            assert [ours[name][i] for i in range(len(ours[name]))] == list(values.numpy())
        else:
            assert ours[name].dtype == values.numpy().dtype and np.array_equal(ours[name], values.numpy()), name


def tables(bench):
    """Rows of 20 floats, 9 int64s and a short text, in batches of 4096."""
    import npy_stream

    import presto

    records, distinct = (8_192, 512) if bench.quick else (786_432, 16_384)
    paths = write_tables(bench.folder, 4, records, distinct)
    indexed = bench.folder / "indexed"
    indexed.mkdir()
    for path in map(pathlib.Path, paths):
        (indexed / path.name).hardlink_to(path)
    subprocess.run([bench.tools / "presto-inspect", "index", "--quiet", indexed], check=True)

    def load_in_process(what=paths):
        return presto.Loader(presto.open(what), batch=BATCH, threads=bench.threads)

    def load_by_pipe():
        return npy_stream.load(*bench.presto_load("-b", BATCH, *paths)[1:], program=bench.tools / "presto-load")

    def compare():
        count = 0
        for mine, piped, theirs in zip(load_in_process(), load_by_pipe(), tf_batches(bench, paths), strict=True):
            same_batch(mine, theirs)
            same_batch(piped, theirs)
            count += len(mine["text"])
        assert count == records, count
        return f"{count} rows of {FLOATS + INT64S + 1} features are equal"

    def rows_of(batches):
        return sum(len(batch["text"]) for batch in batches)

    return Row("rows", [Way("presto.Loader", lambda: rows_of(load_in_process())),
                        Way("presto.Loader, files indexed before", lambda: rows_of(load_in_process(indexed))),
                        Way("presto-load --format npy, read by Python", lambda: rows_of(load_by_pipe())),
                        Way("tf.data, parse_example", lambda: rows_of(tf_batches(bench, paths)))], compare)


def prototype(row, what):
    """A row of foreign_prototype.py."""

    def make(bench):
        import foreign_prototype

        return foreign_prototype.ROWS[row](bench)

    make.__doc__ = what
    return make


def files(row, what):
    """A row of foreign_files.py."""

    def make(bench):
        import foreign_files

        return foreign_files.ROWS[row](bench)

    make.__doc__ = what
    return make


def python_step(bench):
    """A function in Python on each image, in as many processes as threads: `step: command` and torch's DataLoader."""
    import foreign_steps

    return foreign_steps.python_step(bench)


ROWS = {
    "tables": tables,
    "tars": files("tars", "Tars that webdataset wrote: keys, the bytes of images, classes."),
    "raw": files("raw", "Records of 1,000 bytes that are no Examples: tf.data's TFRecordDataset."),
    "first-batch": files("first-batch", "The first batch of a file of 2 GB without an index: tf.data."),
    "first-shuffled": files("first-shuffled", "The first batch of 1 GB without an index: through a buffer, in order, fully shuffled."),
    "python-step": python_step,
    "web-pages": prototype("web_pages", "The main text of web pages: newspaper4k, which the paper's prototype used. One thread."),
    "png16": prototype("png16", "16-bit PNGs of 17 MB to 8 bits: TensorFlow's decoder. One thread."),
    "hdf5": prototype("hdf5", "Windows of HDF5 files: h5py. One thread."),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="where the programs are built")
    parser.add_argument("--work", type=pathlib.Path, help="folder for scratch data [default: that of temporary files]")
    parser.add_argument("rows", nargs="*", metavar="ROW", help="measure these rows only")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="see that all works; the figures mean nothing")
    parser.add_argument("--list", action="store_true", help="say what the rows are")
    parser.add_argument("-o", "--output", type=pathlib.Path, help="append the figures to this file, a line of JSON each")
    args = parser.parse_args()
    if args.list:
        for name, function in ROWS.items():
            print(f"{name}: {function.__doc__}")
        return
    for name in args.rows:
        if name not in ROWS:
            parser.error(f"there is no row '{name}', only {', '.join(ROWS)}")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    sys.path.insert(0, str(args.build.resolve() / "python"))  # the package presto
    out = args.output.open("a") if args.output else None
    for name in args.rows or ROWS:
        with tempfile.TemporaryDirectory(dir=args.work, prefix="foreign-") as folder:
            bench = Bench(pathlib.Path(folder), args.build.resolve() / "tools", args.threads, args.quick)
            try:
                row = ROWS[name](bench)
            except ImportError as error:
                print(f"{name}: left out: no module {error.name}", flush=True)
                continue
            measure(name, row, 1 if args.quick else args.rounds, out)


if __name__ == "__main__":
    sys.modules["foreign"] = sys.modules["__main__"]  # rows in other files use the classes of this one
    main()
