#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What people meet who come from another library: guesses that lead here, notes, tuples, short texts; and arguments of any type."""
import copy
import inspect
import os
import pathlib
import pickle
import subprocess
import sys
import warnings

from case import PythonCase, main, np, presto

# (what is written, what the message must name)
CALLS = {
    # torch.utils.data
    "Loader(d, batch_size=32)": "batch=",
    "Loader(d, num_workers=8)": "threads=",
    "Loader(d, pin_memory=True)": "presto.torch.Loader",
    "Loader(d, collate_fn=list)": "collate=",
    "Loader(d, sampler=None)": "shuffle=",
    "Loader(d, batch_sampler=None)": "rank=",
    "Loader(d, worker_init_fn=None)": "no worker processes",
    "Loader(d, persistent_workers=True)": "no worker processes",
    "Loader(d, multiprocessing_context='spawn')": "no worker processes",
    "Loader(d, prefetch_factor=2)": "prefetch=",
    "Loader(d, generator=None)": "seed=",
    "Loader(d, timeout=3)": "no worker processes",
    "Loader(d, transform=None)": "presto.step()",
    "Loader(d, num_replicas=2)": "world=",
    "open('photos', transform=None)": "pipeline=",
    "open('photos', target_transform=None)": "pipeline=",
    "open(root='photos')": "first argument",
    "Loader(d, 32, True)": "by name",
    "Loader(d, shuffle=1000)": '"buffer:1000"',
    "Loader(d, shuffle='1000')": '"buffer:1000"',
    "Loader(d, shuffle=1000.0)": '"buffer:1000"',
    "DataLoader(d, batch_size=32)": "presto.Loader",
    "ImageFolder('photos')": "presto.open",
    "DistributedSampler(d)": "rank=",
    "random_split(d, [1, 2])": "split",
    "transforms": "steps",
    # tf.data
    "Loader(d, num_parallel_calls=4)": "threads=",
    "Loader(d, drop_remainder=True)": "drop_last=",
    "Loader(d, buffer_size=1000)": "buffer:N",
    "Loader(d, reshuffle_each_iteration=True)": "shuffle=",
    "Loader(d, deterministic=False)": "order=",
    "Loader(d, padded_shapes=None)": "pad=",
    "open('x', compression_type='GZIP')": "by itself",
    "open('x', num_parallel_reads=4)": "threads",
    "TFRecordDataset('x')": "presto.open",
    "AUTOTUNE": "threads=",
    # WebDataset
    "Loader(d, shardshuffle=100)": "shuffle=",
    "Loader(d, nodesplitter=None)": "rank=",
    "Loader(d, handler=None)": "on_error=",
    "Loader(d, resampled=True)": "leave it out",
    "WebDataset('x.tar')": "presto.open",
    "WebLoader(d)": "presto.Loader",
    "Writer('w', maxcount=3)": "shard",
    "Writer('w', maxsize=3)": "shard_bytes=",
    # Hugging Face, LitData, MosaicML, Grain
    "load_dataset('x')": "presto.open",
    "open('x', streaming=True)": "leave it out",
    "open('x', split='train')": 'split="90/10", part="train"',
    "open('x', data_files='x')": "first argument",
    "open('x', columns=['a'])": "features=",
    "write('x', 'y', num_proc=3)": "threads=",
    "write('x', 'y', output_dir='z')": "output=",
    "write('x', 'y', chunk_bytes='64MB')": "shard_bytes=",
    "write('x', 'y', compression='zstd')": "codec=",
    "write('x', 'y', fn=None)": "pipeline=",
    "optimize(None)": "presto.write",
    "StreamingDataset('x')": "presto.open",
    "MDSWriter('x')": "presto.Writer",
    "sample_from_datasets([])": "presto.mix",
    "Loader(d, num_shards=3)": "world=",
    "Loader(d, shard_index=3)": "rank=",
    "Loader(d, num_epochs=3)": "epochs=",
    "Loader(d, repeat=3)": "epochs=",
    "sweep('x', 'cv', num_workers=3)": "threads=",
    "inspect('x', verfy=True)": "verify=",
    "torch": "import presto.torch",
    "tf": "import presto.tf",
    # what is here, elsewhere
    "open('x', batch=32)": "presto.Loader",
    "open('x', shuffle='full')": "presto.Loader",
    "Loader(d, shufle='full')": "shuffle=",
    "open('az://bucket/x')": "object storage",
    "open('abfs://datasets/x')": "object storage",
    "open('pipe:aws s3 cp x -')": "npy_stream",
    "open('file:///tmp/none')": "'/tmp/none'",
    "open('~/photos-none')": "expanduser",
    "open('$HOME/none')": "expandvars",
    "open('train-{000..099}.tar', pipeline='cv')": "braces",
    "open('none/*.tfrecord')": "no file matches this pattern",
    "open(['none/[0-9].tfrecord'])": "no file matches this pattern",
    "open(pathlib.Path('none') / '**' / '*.jpg')": "no file matches this pattern",
    "Loader('az://bucket/x')": "object storage",
    "write('az://bucket/x', 'y', pipeline='cv')": "object storage",
    "write('photos', 'hf://datasets/a/b', pipeline='cv')": "nothing is written to hf://",
    "Writer('az://bucket/x')": "object storage",
    "inspect('x/*.tfrecord')": "no file matches this pattern",
    "mix({'az://bucket/x': 1})": "object storage",
    "sweep('az://bucket/x', 'cv')": "object storage",
}
METHODS = {
    "d": ("map", "filter", "shuffle", "batch", "batched", "prefetch", "repeat", "cache", "take", "skip", "shard", "padded_batch", "interleave",
          "decode", "to_tuple", "with_epoch", "train_test_split", "with_format", "set_format", "set_transform", "select", "map_tuple",
          "column_names", "element_spec", "targets", "samples", "cardinality", "num_rows", "to_pandas", "save_to_disk", "apply", "unbatch"),
    "l": ("map", "shuffle", "prefetch", "set_epoch", "batch_size", "num_workers", "repeat", "take", "to", "next"),
}  # fmt: skip

ODD = (None, True, -1, 0, 1, 1.5, float("nan"), 1 << 70, "", "x", "\0", "\udc80", b"x", (), (1, 2), [1], [None], ["x", 2], {1}, {"a": 1}, {1: 2},
       object(), int, len, np.float32(1), np.arange(3), np.array("x"), range(3), iter(()), slice(1), Ellipsis, pathlib.Path("none"),
       [[1]], {"x": None}, frozenset("a"))  # fmt: skip
ALLOWED = (TypeError, ValueError, OSError, presto.Error, OverflowError)


class Newcomers(PythonCase):
    def setUp(self):
        place = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, place)
        self.d = presto.open(self.stored)
        self.l = presto.Loader(self.d, 4)

    def test_guesses_lead_here(self):
        for call, named in CALLS.items():
            with self.subTest(call), self.assertRaises((TypeError, AttributeError, ValueError, presto.Error)) as caught:
                eval(f"presto.{call}", {"presto": presto, "d": self.d, "pathlib": pathlib})
            with self.subTest(call):
                self.assertIn(named, str(caught.exception))
                self.assertEqual(str(caught.exception).count("\n"), 0)
        for of, names in METHODS.items():
            for name in names:
                with self.subTest(of=of, name=name):
                    self.assertFalse(hasattr(getattr(self, of), name))
                    with self.assertRaisesRegex(AttributeError, f"has no '{name}': .{{10,}}"):
                        getattr(getattr(self, of), name)

    def test_what_is_no_guess_is_told_as_ever(self):
        with self.assertRaises(presto.NotFoundError):
            presto.open("none")
        odd = self.new("odd [1]{a}*")
        os.rename(self.write("-u", "resized", "--limit", "3"), odd)
        self.assertEqual(len(presto.open(odd)), 3)  # a path that is there
        self.assertEqual(len(list(presto.Loader(self.d, 24, shuffle=True))), 1)
        self.assertEqual(len(list(presto.Loader(self.d, 24, shuffle=np.True_))), 1)
        for one in (self.d, self.l):
            self.assertFalse(hasattr(one, "_nothing"))
            self.assertFalse(hasattr(one, "__array__"))
            copy.copy(one)
            pickle.loads(pickle.dumps(one))
        self.assertIn("batch", inspect.signature(presto.Loader).parameters)
        self.assertIn("features", inspect.signature(presto.open).parameters)

    # ---- tuples ----

    def test_a_loop_gets_tuples_and_what_collate_makes(self):
        whole = [(batch["image"].tobytes(), batch["label"].tolist()) for batch in presto.Loader(self.d, 7, seed=3, shuffle="full", epochs=2)]
        options = {"seed": 3, "shuffle": "full", "epochs": 2}
        pairs = [(images.tobytes(), labels.tolist()) for images, labels in presto.Loader(self.d, 7, as_tuple=("image", "label"), **options)]
        self.assertEqual(pairs, whole)
        sums = list(presto.Loader(self.d, 7, collate=lambda batch: sum(batch["label"].tolist()), **options))
        self.assertEqual(sums, [sum(labels) for _, labels in whole])
        both = list(presto.Loader(self.d, 7, as_tuple=["label", "image"], collate=lambda label, image: (image.tobytes(), label.tolist()), **options))
        self.assertEqual(both, whole)
        loader = presto.Loader(self.d, 7, as_tuple=("image", "label"), **options)
        first = [next(iter(loader))[1].tolist()]
        again = presto.Loader(self.d, 7, as_tuple=("image", "label"), **options)
        again.load_state_dict(loader.state_dict())
        copied = pickle.loads(pickle.dumps(loader))
        for other in (again, copied):
            self.assertEqual(first + [labels.tolist() for _, labels in other], [labels for _, labels in whole])
        calls = []

        def fails(batch):
            calls.append(batch.first)
            if len(calls) == 2:
                raise KeyError("once")
            return batch.first

        loader = presto.Loader(self.d, 7, collate=fails)
        with self.assertRaises(KeyError):
            list(loader)
        self.assertEqual(list(loader), [7, 14, 21])  # the batch that was not delivered comes again
        for wrong in ({"as_tuple": "image"}, {"as_tuple": [1]}, {"collate": 3}):
            with self.assertRaises(TypeError):
                presto.Loader(self.d, 7, **wrong)
        for wrong in ({"as_tuple": ["imag"]}, {"as_tuple": []}, {"as_tuple": ["label"], "features": ["image"]}):
            with self.assertRaises(presto.ArgumentError):
                presto.Loader(self.d, 7, **wrong)

    # ---- texts ----

    def test_what_is_printed_is_short(self):
        batch = next(iter(presto.Loader(self.d, 24)))
        for text in (repr(batch), str(batch), f"{batch}"):
            self.assertLess(len(text), 300)
            self.assertIn("24 rows", text)
            self.assertIn("image: float32[24,32,40,3]", text)
            self.assertIn("label: int64[24]", text)
        with self.assertRaisesRegex(KeyError, "it has image, key, label. .*as_tuple"):
            batch[0]
        with self.assertRaisesRegex(KeyError, "'imag' is no feature"):
            batch["imag"]
        self.assertIsNone(batch.get("imag"))
        self.assertIn("image", repr(presto.Batch({"image": np.zeros((2, 3)), "text": ["a" * 1000]})))
        self.assertLess(len(repr(presto.Batch({"text": ["a" * 1000]}))), 200)
        for one in (self.d, self.l, batch, presto.mix({self.d: 1}), presto.Loader(self.d, rank=1, world=2, shuffle="buffer:3")):
            page = one._repr_html_()
            self.assertIn("<table>", page)
            self.assertLess(len(page), 5000)
        odd = self.new("odd <b>&")
        with presto.Writer(odd) as writer:
            writer.add({"<i>": 1})
        for one in (presto.open(odd), next(iter(presto.Loader(odd))), presto.Loader(odd)):
            self.assertNotIn("<b>", one._repr_html_())
            self.assertNotIn("<i>", one._repr_html_())

    def test_sizes_in_powers_of_ten_too(self):
        from presto._process import size

        for text, wanted in (("100MB", 10**8), ("1.5GB", 1500 * 10**6), ("64MiB", 64 << 20), ("12", 12), ("0.5KiB", 512), ("3b", 3), (np.int64(7), 7),
                             (1e6, 10**6), ("2 tb", 2 * 10**12), ("1kB", 1000)):
            self.assertEqual(size(text, "hold"), wanted)
        for wrong in ("1.5", "100M", "x", "", "-1", -1, True, None, 1.5, float("nan"), float("inf"), [1], "1e9", "MB"):
            with self.assertRaises(ValueError):
                size(wrong, "hold")
        self.assertEqual(len(list(presto.Loader(self.d, 4, hold="100MB", prefetch="10MB", cache="memory:1GB"))), 6)

    def test_labels_are_classes_too(self):
        self.assertEqual(self.d.classes, self.d.labels)
        self.assertEqual(self.d.class_to_idx, {name: i for i, name in enumerate(self.d.labels)})
        self.assertEqual(self.l.dataset.classes, self.d.labels)
        self.assertEqual(self.d.split("50/50")[0].classes, self.d.labels)

    def test_what_moves_batches_keeps_numbers(self):
        class Tensor:
            def __init__(self, at):
                self.at = at

            def to(self, where, non_blocking=False):
                return Tensor(where)

        batch = next(iter(presto.Loader(self.d, 4)))
        batch["made"] = Tensor("cpu")
        batch["ragged"] = presto.Ragged(Tensor("cpu"), np.array([0, 1]))
        moved = batch.to("cuda", non_blocking=True)
        self.assertEqual((moved["made"].at, moved["ragged"].values.at), ("cuda", "cuda"))
        self.assertEqual(moved.numbers.tolist(), [0, 1, 2, 3])
        self.assertEqual((moved.rows, moved.epoch, moved.first), (4, 0, 0))
        self.assertIs(moved["image"], batch["image"])
        self.assertEqual(copy.copy(batch).numbers.tolist(), [0, 1, 2, 3])

    # ---- notes ----

    def test_what_was_left_out_is_told_once(self):
        photos = self.new("photos")
        os.mkdir(photos)
        for i, path in enumerate(sorted(self.make_photos().rglob("*.jpg"))[:6]):
            os.link(path, photos / f"{i}.jpg")
        for i in range(3):
            (photos / f"{i}.webp").write_bytes(b"x")
        code = ("import sys, pickle, presto\n"
                "d = presto.open(sys.argv[1], pipeline=sys.argv[2])\n"
                "for _ in range(3): presto.open(sys.argv[1], pipeline=sys.argv[2]); list(presto.Loader(d)); pickle.loads(pickle.dumps(d)); d.split('50/50'); len(d)\n"
                "print(repr(d)); print(d._repr_html_()); presto.mix({d: 1})\n"
                "s = presto.write(sys.argv[1], sys.argv[3], pipeline=sys.argv[2], progress=False)\nprint(s)\n")
        done = subprocess.run([sys.executable, "-B", "-W", "always", "-c", code, photos, self.pipeline, self.new()], capture_output=True, text=True, check=True)
        told = [line for line in done.stderr.splitlines() if "NoteWarning" in line]
        self.assertEqual(len(told), 2, done.stderr)  # of the paths as they are opened, and as they are written
        self.assertIn("<string>:2", told[0])
        self.assertIn("3 files left out: 3 .webp", told[0])
        self.assertEqual(done.stdout.count("3 files left out: 3 .webp"), 3)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for part in presto.open(self.stored).split("50/50"):  # what was asked for is no warning
                self.assertEqual(repr(part).count("note"), 0)
            presto.mix({self.d: 1})
        self.assertTrue(issubclass(presto.NoteWarning, presto.Warning))

    def test_what_steps_tell_of_samples_is_a_warning_once_and_a_figure(self):
        pages, pipeline = self.new("pages"), self.new("pages.yaml")
        pages.mkdir()
        for number in range(3):
            (pages / f"{number}.html").write_text('<meta charset="x-foo"><p>The ferry leaves the harbour at nine in the morning.</p>')
        pipeline.write_text('name: pages\nsource: {type: files, match: ["*.html"], feature: page}\nsteps:\n'
                            "  - {step: read-file, yields: read}\n  - {step: extract-text, yields: text}\n")
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            dataset = presto.open(pages, pipeline=pipeline)
            loader = presto.Loader(dataset, 2, epochs=2)
            counts = [len(loader.stats()["notes"]) for _ in loader]
            loader.close()
            dataset[0]
        text = f"extract-text: unknown charset 'x-foo', read as utf-8: 6 samples, e.g. {pages}/0.html"
        self.assertEqual([(note.category, str(note.message), note.filename) for note in told], [(presto.NoteWarning, text, __file__)])
        self.assertEqual((loader.stats()["notes"], counts[-1]), ([text], 1))
        with presto.Loader(presto.open(pages, pipeline=pipeline), 1, epochs=None) as endless, warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            next(iter(endless))
        self.assertEqual(len(told), 0)  # it has been told of these files
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with self.assertRaisesRegex(presto.NoteWarning, "1 sample, e.g."):
                presto.open(pages / "1.html", pipeline=pipeline)[0]

    # ---- samples by number draw anew ----

    def test_an_epoch_of_samples_by_number_can_be_chosen(self):
        d = presto.open(self.stored)
        stream = {(batch.epoch, int(batch.numbers[0])): batch["image"][0].tobytes() for batch in presto.Loader(d, 1, epochs=3, seed=5)}
        for epoch in (2, 0, 1):
            d.set_epoch(epoch, seed=5)
            other = pickle.loads(pickle.dumps(d))
            for number in (0, 7, 23):
                self.assertEqual(d[number]["image"].tobytes(), stream[epoch, number])
                self.assertEqual(other[[number]]["image"][0].tobytes(), stream[epoch, number])
        self.assertNotEqual(stream[0, 7], stream[1, 7])

    # ---- arguments of any type ----

    def test_wrong_types_are_errors_of_the_right_class(self):
        d, out = self.d, self.new
        made = {"n": 0}

        def each(function, given, tried):
            """Each parameter with each odd value, the others as they should be."""
            for name in inspect.signature(function).parameters:
                if name in ("self", "more", "progress", "on_skip", "collate", "as_tuple") or name not in tried:
                    continue
                for value in ODD:
                    made["n"] += 1
                    with self.subTest(function=function.__qualname__, name=name, value=repr(value)):
                        try:
                            found = function(**{**given(), name: value})
                            if hasattr(found, "abort"):
                                found.abort()
                        except ALLOWED as error:
                            self.assertNotIsInstance(error, (UnicodeDecodeError, RecursionError))
                            self.assertTrue(str(error))
                        except presto.StoppedError:
                            raise

        everything = {**inspect.signature(presto.Loader).parameters, **inspect.signature(presto.open).parameters}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            each(presto.open, lambda: {"paths": self.stored}, everything)
            each(presto.Loader, lambda: {"dataset": d, "threads": 0}, {*everything} - {"hold"})
            each(presto.mix, lambda: {"inputs": {d: 1.0}}, ("inputs", "epoch", "features"))
            each(presto.inspect, lambda: {"paths": self.stored}, ("paths", "samples"))
            each(presto.Writer, lambda: {"dir": out("w")}, inspect.signature(presto.Writer).parameters.keys() - {"dir"})
            each(presto.write, lambda: {"source": self.make_photos(), "output": out("w"), "pipeline": self.pipeline, "limit": 1, "progress": False},
                 inspect.signature(presto.write).parameters.keys() - {"output", "sync"})
            each(presto.sweep, lambda: {"source": "none", "pipeline": self.pipeline, "progress": False},
                 inspect.signature(presto.sweep).parameters.keys() - {"output", "work_dir"})
            each(presto.Pipeline, lambda: {"definition": "cv"}, ("definition", "plugins"))
            each(d.split, lambda: {"ratio": "50/50"}, ("ratio", "seed"))
            each(d.set_epoch, lambda: {"epoch": 1}, ("epoch", "seed"))
            for value in ODD:
                for call in (lambda: d[value], lambda: d.pick(value) if hasattr(d, "pick") else None, lambda: self.l.load_state_dict(value),
                             lambda: presto.load_strategy(value), lambda: presto.npy_stream(value), lambda: presto.shm_stream(value),
                             lambda: presto.step(value), lambda: presto.mix({d: 1}).input_of(value)):
                    with self.subTest(value=repr(value)):
                        try:
                            call()
                        except (*ALLOWED, IndexError, KeyError):
                            pass


if __name__ == "__main__":
    main()
