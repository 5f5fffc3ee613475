#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pipeline nilm on HDF5 files that h5py makes: windows, splits, options, bad files."""
import json
import struct

import h5py
import numpy as np

from cli import Case, a_sweep, example, fields, frames, main, run

WINDOW = 1280
VALUES = 4 * WINDOW + 77


class Recordings(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.source = cls.folder / "recordings"
        cls.signals = {}
        for day, name, storage in (("day1", "08.h5", {}),
                                   ("day1", "09.hdf5", {"chunks": (1000,), "compression": "gzip", "shuffle": True}),
                                   ("day2", "08.h5", {"chunks": (3000,), "compression": "gzip"})):
            path = cls.source / day / name
            path.parent.mkdir(parents=True, exist_ok=True)
            cls.signals[f"{day}/{name}"] = cls.make(path, **storage)

    @classmethod
    def make(cls, path, values=VALUES, names=("voltage", "current"), **storage):
        """A file of two sines with noise; both as they are read."""
        random = np.random.default_rng(abs(hash(str(path))) % 1000)
        time = np.arange(values) / 6400
        signals = np.stack([325 * np.sin(100 * np.pi * time), 5 * np.sin(100 * np.pi * time + 0.3)])
        signals = np.round(signals + random.normal(0, 0.1, signals.shape), 3)
        with h5py.File(path, "w") as file:
            for name, signal in zip(names, signals):
                file.create_dataset(name, data=signal, **storage)
        return signals

    def options(self):
        return ["-p", "nilm", "--set", f"source.samples={WINDOW}"]

    def signal_of(self, sample):
        """The main feature of a stored sample: the bytes of a TensorProto's content."""
        return np.frombuffer(dict(fields(sample["signal"][0]))[4], "<f8")

    def test_windows_come_file_by_file_with_their_keys(self):
        samples = [example(f) for f in frames(self.load("-q", *self.options(), "--to", "decoded", self.source))]
        keys = [s["key"][0].decode() for s in samples]
        self.assertEqual(keys, [f"{name}#{i}" for name in sorted(self.signals) for i in range(4)])
        for sample in samples:
            name, window = sample["key"][0].decode().split("#")
            wanted = self.signals[name][:, int(window) * WINDOW:(int(window) + 1) * WINDOW]
            np.testing.assert_array_equal(self.signal_of(sample), wanted.ravel())

    def test_many_files_are_looked_at_at_once_and_put_in_order(self):
        folder = self.new("many")
        folder.mkdir()
        for i in range(40):  # chunks of many sizes: an index, and values, at many places
            self.make(folder / f"{i:02}.h5", values=WINDOW * (i % 3) + i + 1, chunks=(min(30 + 7 * i, WINDOW * (i % 3) + 1),))
        (folder / "20.h5").write_bytes((folder / "20.h5").read_bytes()[:500])
        arguments = ("--format", "tfrecord", "--on-error", "skip", *self.options(), "--to", "decoded", folder)
        here, played = (run("presto-load", *arguments, *storage) for storage in ((), ("--storage", "open=5ms,latency=1ms")))
        self.assertEqual((here.returncode, played.returncode), (0, 0), here.stderr + played.stderr)
        self.assertEqual(here.stdout, played.stdout)
        self.assertEqual([example(f)["key"][0].decode() for f in frames(here.stdout)],
                         [f"{i:02}.h5#{w}" for i in range(40) if i != 20 for w in range(i % 3)])
        for said in (here.stderr, played.stderr):
            self.assertIn(f"note: {sum(i + 1 for i in range(40) if i != 20)} values at the end of 39 files left out", said)

    def test_each_split_stored_and_loaded_is_the_online_stream(self):
        online = self.load("-q", *self.options(), "--format", "npy", "-b", "5", self.source)
        tried = []
        for split in ("decoded", "aggregated"):
            for codec in ("none", "zstd:1", "blosc-lz4"):
                out = self.new("dataset")
                done = run("presto-write", "-q", *self.options(), "-u", split, "-c", codec, "-o", out, self.source)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.load("-q", "--format", "npy", "-b", "5", out), online, (split, codec))
                info = json.loads((out / "dataset.json").read_text())
                tried.append((info["stored"], info["pipeline"]["source"]["yields"]))
        self.assertEqual(tried, [("decoded", "decoded")] * 3 + [("aggregated", "decoded")] * 3)

    def test_an_option_of_the_source_cannot_change_behind_what_is_stored(self):
        out = self.new("dataset")
        run("presto-write", "-q", *self.options(), "-u", "decoded", "-o", out, self.source)
        self.assert_fails(run("presto-load", "--set", "source.samples=640", out), 2,
                          "--set changes a step that", "it holds 'decoded'")
        periods = self.load("-q", "--set", "aggregate.period=64", "--format", "npy", "-b", "1", out)
        self.assertTrue(b"'shape': (1, 3, 20" in periods)

    @a_sweep
    def test_a_pipeline_of_a_source_of_values_needs_no_steps(self):
        pipeline = self.new("pipeline").with_suffix(".yaml")
        pipeline.write_text(f"name: windows\nsource: {{type: hdf5, samples: {WINDOW}, yields: windows}}\nsteps: []\n")
        out = self.new("dataset")
        self.assertEqual(run("presto-write", "-q", "-p", pipeline, "-o", out, self.source).returncode, 0)
        self.assertEqual(json.loads((out / "dataset.json").read_text())["stored"], "windows")
        online = self.load("-q", "-p", pipeline, self.source)
        self.assertEqual(self.load("-q", out), online)
        sweep = run("presto-sweep", "-q", "-p", pipeline, "--codecs", "none", "--threads", "1", "--decide-time", "0", "-o", self.new(),
                    self.source)
        self.assertEqual(sweep.returncode, 0, sweep.stderr)
        for row in (b"unprocessed ", b"windows "):
            self.assertIn(row, sweep.stdout)

    def test_what_is_left_over_is_told(self):
        note = f"231 values at the end of 3 files left out: less than a window of {WINDOW}"
        done = run("presto-load", *self.options(), "--format", "null", "--json", self.source)
        self.assertIn(f"presto-load: note: {note}\n", done.stderr)
        explained = run("presto-load", *self.options(), "--explain", self.source).stdout.decode()
        self.assertIn(f"note: {note}", explained)
        self.assertIn(f"float64[2,{WINDOW}]", explained)

    def test_folders_are_labels(self):
        arguments = [*self.options(), "--set", "source.label=parent-folder", "--to", "decoded"]
        samples = [example(f) for f in frames(self.load("-q", *arguments, self.source))]
        self.assertEqual([s["label"] for s in samples], [[0]] * 8 + [[1]] * 4)
        out = self.new("dataset")
        run("presto-write", "-q", *arguments[:-2], "-u", "aggregated", "-o", out, self.source)
        self.assertEqual([example(f)["label"] for f in frames(self.load("-q", out))], [s["label"] for s in samples])

    def test_other_names_and_one_dataset(self):
        path = self.new("one").with_suffix(".h5")
        wanted = self.make(path, names=("U", "I"))
        done = run("presto-load", *self.options(), path)
        self.assert_fails(done, 1, path, "'voltage' cannot be opened", "there is: I, U")
        pipeline = self.new("pipeline").with_suffix(".yaml")
        pipeline.write_text(f"name: p\nsource: {{type: hdf5, datasets: [I], samples: {WINDOW}}}\nsteps: []\n")
        first = example(frames(self.load("-q", "-p", pipeline, path))[0])
        np.testing.assert_array_equal(self.signal_of(first), wanted[1][:WINDOW])

    def test_bad_files_end_the_run_or_are_left_out(self):
        folder = self.new("mixed")
        folder.mkdir()
        self.make(folder / "1.h5")
        self.make(folder / "3.h5", chunks=(500,), compression="gzip")
        whole = (folder / "3.h5").read_bytes()
        for name, content in (("nothing", b""), ("text", b"text\n" * 200), ("cut", whole[:-500]), ("magic", b"\x89HDF\r\n\x1a\n")):
            (folder / "2.h5").write_bytes(content)
            done = run("presto-load", "-q", *self.options(), folder)
            self.assertEqual(done.returncode, 3, name)
            self.assertIn("2.h5: a text file, but an HDF5 file is needed" if name == "text" else "2.h5: cannot be read as HDF5: ", done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)  # the library itself is silent
            done = run("presto-load", "-q", "--on-error", "skip", *self.options(), "--format", "null", "--json", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual((json.loads(done.stdout)["samples"], json.loads(done.stdout)["skipped"]), (8, 1))

    def test_a_damaged_chunk_names_file_window_and_byte(self):
        path = self.new("damaged").with_suffix(".h5")
        self.make(path, chunks=(WINDOW,), compression="gzip")
        with h5py.File(path) as file:
            place = file["current"].id.get_chunk_info(2).byte_offset
        with open(path, "r+b") as file:
            file.seek(place + 30)
            file.write(b"\xff" * 40)
        done = run("presto-load", "-q", *self.options(), "--format", "null", path)
        self.assert_fails(done, 3, path, "record 2", f"at byte {place}")

    def test_a_dataset_of_windows_goes_on_to_aggregated_as_the_source_would_have(self):
        first, second, direct = self.new("dataset"), self.new("dataset"), self.new("dataset")
        run("presto-write", "-q", *self.options(), "-u", "decoded", "-o", first, self.source)
        done = run("presto-write", "-q", *self.options(), "-u", "aggregated", "-s", "1", "-o", second, first)
        self.assertEqual(done.returncode, 0, done.stderr)
        run("presto-write", "-q", *self.options(), "-u", "aggregated", "-s", "1", "-o", direct, self.source)
        name = "data-00000-of-00001.tfrecord"
        self.assertEqual((second / name).read_bytes(), (direct / name).read_bytes())


if __name__ == "__main__":
    main()
