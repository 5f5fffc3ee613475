#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a dataset is opened with: parts for training and evaluation, strategies that must fit, plugins."""
import contextlib
import json
import os
import pickle
import shutil
import warnings

import test_reading
from case import PythonCase, cli, frozen, main, np, plain, presto
from test_reading import as_plain, npy_batches

PLUGIN = cli.TOOLS.parent / "tests" / "plugin_invert.so"


def keys(dataset):
    return [sample["key"] for sample in dataset]


class Parts(PythonCase):
    def test_a_part_is_that_of_the_programs(self):
        for split, part, seed in (("60/40", "train", 3), ("60/40", "eval", 3), ("2/1/1", "validation", 0), ("2/1/1", 3, 1)):
            options = {"split": split, "part": part, "split_seed": seed}
            wanted = npy_batches(self.load("--format", "npy", "-b", "4", "--split", split, "--part", part, "--split-seed", seed,
                                           self.stored))
            for loader in (presto.Loader(self.stored, 4, **options), presto.Loader(presto.open(self.stored), 4, **options),
                           presto.Loader(presto.open(self.stored, **options), 4)):
                found = list(loader)
                self.assertEqual(len(loader), len(found))
                self.assertEqual([{k: plain(v) for k, v in b.items()} for b in found],
                                 [{k: as_plain(v) for k, v in b.items()} for b in wanted])

    def test_parts_are_disjoint_and_complete_and_numbered_from_0(self):
        whole = presto.open(self.stored)
        for ratio in ("2/1", "2/1/1", "1/1/1/1"):
            parts = whole.split(ratio, seed=5)
            self.assertEqual(sorted(key for part in parts for key in keys(part)), sorted(keys(whole)))
            for number, part in enumerate(parts):
                self.assertIn(f"{number + 1} of {ratio}: {len(part)} samples", repr(part))
                stream = [key for batch in presto.Loader(part, 5) for key in batch["key"]]
                self.assertEqual(keys(part), stream)
                self.assertEqual(part[-1]["key"], stream[-1])
                self.assertEqual(list(part[1:3]["key"]), stream[1:3])
                for wrong in (len(part), -len(part) - 1):
                    with self.assertRaises(IndexError):
                        part[wrong]
                self.assertEqual(keys(pickle.loads(pickle.dumps(part))), stream)
        self.assertNotEqual([keys(p) for p in whole.split("1/1", seed=1)], [keys(p) for p in whole.split("1/1", seed=2)])

    def test_raw_files_keep_their_part_when_others_are_added(self):
        photos = self.new("photos")
        shutil.copytree(self.make_photos(), photos)
        before = [set(keys(part)) for part in presto.open(photos, pipeline=self.pipeline).split("1/1")]
        one = next(photos.rglob("*.jpg"))
        shutil.copy(one, one.with_name("another.jpg"))
        after = [set(keys(part)) for part in presto.open(photos, pipeline=self.pipeline).split("1/1")]
        self.assertEqual(sum(map(len, after)), sum(map(len, before)) + 1)
        for old, new in zip(before, after):
            self.assertLessEqual(old, new)

    def test_a_state_is_of_its_part(self):
        options = {"batch": 3, "shuffle": "full", "seed": 7, "epochs": 2, "split": "2/1"}
        whole = [frozen(batch) for batch in presto.Loader(self.stored, part="train", **options)]
        loader = presto.Loader(self.stored, part="train", **options)
        taken = [frozen(batch) for _, batch in zip(range(4), loader)]
        state = json.loads(json.dumps(loader.state_dict()))
        again = presto.Loader(self.stored, part=1, **options)
        again.load_state_dict(state)
        self.assertTrue(taken + [frozen(batch) for batch in again] == whole)
        for other in ({"part": "eval"}, {"part": "train", "split_seed": 1}, {"part": "train", "split": "3/1"}):
            with self.assertRaises(presto.ArgumentError):
                presto.Loader(self.stored, **{**options, **other}).load_state_dict(state)

    def test_what_is_no_part(self):
        part = presto.open(self.stored, split="2/1", part="train")
        for wrong, why in (({"split": "90/10"}, "split= needs part="), ({"part": "train"}, "part= needs split="),
                           ({"split": "resized", "part": "train"}, "^split 'resized' is no ratio of parts, such as 90/10"),
                           ({"split": "1/1", "part": "test2"}, "say train, eval, or 1 to 2"),
                           ({"split": "1/1", "part": 3}, "^part '3' is none of the 2 parts")):
            for opens in (presto.open, presto.Loader):
                with self.assertRaisesRegex(presto.ArgumentError, why):
                    opens(self.stored, **wrong)
        for again in (lambda: part.split("1/1"), lambda: presto.Loader(part, split="1/1", part=1)):
            with self.assertRaisesRegex(presto.ArgumentError, "a part already"):
                again()
        with self.assertRaises(presto.NotFoundError):
            presto.open(self.stored, split="1/1000000", part="train")
        with self.assertRaises(TypeError):
            presto.open(self.stored, split=0.9, part="train")
        with self.assertRaisesRegex(ValueError, "split_seed"):
            presto.open(self.stored, split="1/1", part=1, split_seed=-1)

    def test_a_part_is_written(self):
        photos, stored = self.make_photos(), []
        for part in ("train", "eval"):
            out = self.new(part)
            presto.write(photos, out, pipeline=self.pipeline, up_to="resized", split="2/1", part=part, sync=False)
            stored.append(keys(presto.open(out)))
        self.assertEqual(stored, [keys(p) for p in presto.open(photos, pipeline=self.pipeline).split("2/1")])
        with self.assertRaisesRegex(presto.ArgumentError, "split= and part="):
            presto.write(photos, self.new(), pipeline=self.pipeline, split="2/1")

    def test_names_of_the_version_before_are_taken_with_one_note_each(self):
        photos, stored = self.make_photos(), []
        presto._notes._told.clear()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for i in range(2):
                out = self.new(f"old-{i}")
                presto.write(photos, out, pipeline=self.pipeline, split="resized", parts="2/1", part="train", sync=False)
                stored.append(keys(presto.open(out)))
            presto.write(photos, self.new(), pipeline=self.pipeline, split="resized", limit=2, sync=False)
            strategy = presto.Strategy("resized", "none", 1, 1, 1, 0, str(self.pipeline))
            self.assertEqual((strategy.split, strategy.split), ("resized", "resized"))
            opened = [presto.open(out, pipeline=self.pipeline, start="resized") for _ in range(2)]
        said = [str(one.message) for one in told if "is now called" in str(one.message)]
        self.assertEqual(sorted(text.split(" ")[0] for text in said), ["Strategy.split", "parts=", "split=", "start="])
        self.assertEqual([keys(one) for one in opened], [keys(presto.open(out, pipeline=self.pipeline, from_="resized"))] * 2)
        with self.assertRaisesRegex(presto.ArgumentError, "leave out start="):
            presto.open(out, pipeline=self.pipeline, from_="resized", start="resized")
        self.assertEqual(stored, [keys(presto.open(photos, pipeline=self.pipeline).split("2/1")[0])] * 2)
        with self.assertRaisesRegex(presto.ArgumentError, "leave out parts="):
            presto.write(photos, self.new(), pipeline=self.pipeline, up_to="resized", split="2/1", parts="2/1", part=1)
        with self.assertRaisesRegex(presto.ArgumentError, "the representation is up_to="):
            presto.write(photos, self.new(), pipeline=self.pipeline, up_to="resized", split="resized")


class Strategies(PythonCase):
    def strategy(self, **changes):
        values = {"stored": "resized", "codec": "zstd:1", "shards": 3, "threads": 1, "batch": 4, "seed": 2,
                  "pipeline": str(self.pipeline), **changes}
        file = self.new("strategy.yaml")
        renamed = {"batch": "batch_samples"}
        file.write_text("schema: 1\n" + "".join(f"{renamed.get(k, k)}: {v}\n" for k, v in values.items() if v is not None))
        return presto.Strategy(**values), file

    def test_one_that_fits_sets_what_is_not_given(self):
        for strategy in self.strategy():
            wanted = [frozen(b) for b in presto.Loader(self.stored, 4, seed=2, shuffle="full")]
            for source in (self.stored, presto.open(self.stored), presto.open(self.stored, strategy=strategy)):
                self.assertTrue([frozen(b) for b in presto.Loader(source, strategy=strategy, shuffle="full")] == wanted)

    def test_one_of_another_form_or_pipeline_is_refused(self):
        dataset = presto.open(self.stored)
        stored = "this dataset holds resized with codec zstd:1"
        for changes, why in (({"stored": "decoded"}, f"is about decoded with codec zstd:1, but {stored}"),
                             ({"codec": "none"}, f"is about resized with codec none, but {stored}"),
                             ({"stored": "unprocessed", "codec": None, "shards": None}, f"is about unprocessed .*, but {stored}"),
                             ({"pipeline": "cv"}, "is about pipeline cv, but this dataset is of small")):
            object_, file = self.strategy(**changes)
            for strategy in (object_, file):
                for opens in (lambda s: presto.open(self.stored, strategy=s), lambda s: presto.Loader(self.stored, strategy=s),
                              lambda s: presto.Loader(dataset, strategy=s)):
                    with self.assertRaisesRegex(presto.ArgumentError, why):
                        opens(strategy)

    def test_where_nothing_is_known_nothing_is_checked(self):
        strategy, _ = self.strategy(stored="unprocessed", codec=None, shards=0)
        self.assertEqual(len(presto.open(self.make_photos(), strategy=strategy)), self.photo_count)
        file, samples = test_reading.Reading.foreign(self)
        self.assertEqual(len(presto.Loader(presto.open(file), strategy=self.strategy()[0])), len(samples) // 4)
        moved, _ = self.strategy(pipeline="/nowhere/pipeline.yaml")
        self.assertEqual(len(presto.open(self.stored, strategy=moved)), self.photo_count)


class Classes(PythonCase):
    """source.classes, as a list, a path and another dataset."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.val = cls.folder / "val"
        for name in sorted(p.name for p in cls.make_photos().iterdir())[1:]:  # the first class has no photo here
            shutil.copytree(cls.make_photos() / name, cls.val / name)

    def test_numbers_are_those_of_another_dataset(self):
        train = presto.open(self.stored)
        found = presto.open(self.val, pipeline=self.pipeline)
        self.assertEqual(found.labels, train.labels[1:])
        for given in (train, train.labels, tuple(train.labels), self.stored, str(self.stored), self.make_photos(),
                      presto.open(self.make_photos(), pipeline=self.pipeline)):
            val = presto.open(self.val, pipeline=self.pipeline, set={"source.classes": given})
            self.assertEqual(val.labels, train.labels)
            for sample in val:
                self.assertEqual(train.labels[int(sample["label"])], sample["key"].decode().split("/")[0])
            batch = next(iter(presto.Loader(val, batch=4)))
            self.assertGreater(int(batch["label"].min()), 0)
        out = self.new("written")
        presto.write(self.val, out, pipeline=self.pipeline, up_to="resized", set={"source.classes": train})
        self.assertEqual(presto.open(out).labels, train.labels)

    def test_a_class_that_is_not_there_is_an_error(self):
        train = presto.open(self.stored)
        with self.assertRaisesRegex(presto.Error, f"class '{train.labels[1]}' is not among the 1 of source.classes"):
            presto.open(self.val, pipeline=self.pipeline, set={"source.classes": train.labels[:1]}).labels
        other = self.new("written")
        presto.write(self.val, other, pipeline=self.pipeline, up_to="resized")
        with self.assertRaisesRegex(presto.Error, f"label 0 is '{train.labels[1]}' here, but '{train.labels[0]}' in source.classes"):
            presto.open(other, set={"source.classes": train}).labels
        self.assertEqual(presto.open(self.stored, set={"source.classes": train}).labels, train.labels)

    def test_names_are_quoted(self):
        names = ["it's", 'a "b"', "c: d", "# e", "null", "true", "1", "[f]", "\\g", "\u00e9"]
        for name in names:
            (self.folder / "odd" / name).mkdir(parents=True)
            shutil.copy(next(self.make_photos().rglob("*.jpg")), self.folder / "odd" / name)
        given = list(reversed(names))
        odd = presto.open(self.folder / "odd", pipeline=self.pipeline, set={"source.classes": given})
        self.assertEqual(odd.labels, given)
        self.assertEqual(sorted(int(s["label"]) for s in odd), list(range(len(names))))

    def test_paths_that_are_none_say_what_to_do(self):
        for path in "az://bucket/x", "none-*":
            for options in {}, {"pipeline": self.pipeline}:
                with self.assertRaisesRegex(presto.NotFoundError, "(?i)mount it|no file matches this pattern"):
                    presto.open(path, **options).labels
        self.assertEqual(len(presto.open(f"{self.make_photos()}/*", pipeline=self.pipeline)), self.photo_count)


class Plugins(PythonCase):
    STEPS = ('name: plug\nsource: {type: files, match: ["*.jpg"], label: parent-folder}\nsteps:\n'
             "  - {step: read-file,    yields: concatenated}\n  - {step: decode-image, yields: decoded, channels: 3}\n")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.environ["XDG_CACHE_HOME"] = str(cls.folder / "cache")
        cls.photos = cls.make_photos()
        cls.plain = presto.open(cls.photos, pipeline="cv", to="decoded")

    def inverted(self):
        path = self.new("plug.yaml")
        path.write_text(self.STEPS + "  - {step: invert, yields: inverted}\n")
        return path

    def assert_inverted(self, dataset):
        for number in (0, 7, -1):
            self.assertTrue(np.array_equal(dataset[number]["image"], 255 - self.plain[number]["image"]))

    def test_steps_of_a_plugin_run_in_python(self):
        path = self.inverted()
        for plugins in (PLUGIN, [str(PLUGIN)], os.fsencode(PLUGIN)):
            self.assert_inverted(presto.open(self.photos, pipeline=path, plugins=plugins))
        shutil.copy(PLUGIN, self.folder / "beside.so")
        with contextlib.chdir(self.folder):
            dataset = presto.open(self.photos, pipeline=path, plugins="beside.so")
        self.assert_inverted(pickle.loads(pickle.dumps(dataset)))
        self.assertIn("invert", dataset.explain())
        self.assertEqual(sum(b.rows for b in presto.Loader(dataset, 5, threads=2)), self.photo_count)
        self.assert_inverted(presto.open(self.photos, pipeline=presto.Pipeline("cv", plugins=PLUGIN).until("decoded")
                                         .append({"step": "invert", "yields": "inverted"})))
        self.assert_inverted(presto.open(self.photos, pipeline=presto.Pipeline(path, plugins=PLUGIN)))
        with self.assertRaisesRegex(presto.PipelineError, "invert"):
            presto.open(self.photos, pipeline=path)

    def test_they_are_stored_and_swept(self):
        path, out = self.inverted(), self.new("out")
        presto.write(self.photos, out, pipeline=path, plugins=PLUGIN, up_to="inverted", sync=False)
        self.assert_inverted(presto.open(out))
        result = presto.sweep(self.photos, path, plugins=[PLUGIN], stored=["inverted"], codecs=["none"], threads=[1], samples=6,
                              runs=1, run_s=0.01, decide_s=0.0, mode="measure", work_dir=self.folder)
        self.assertEqual([s.failed for s in result.strategies], [False])
        self.assertTrue(any("--plugin" in line for line in result.commands), result.commands)
        again = self.new("again")
        presto.write(self.photos, again, strategy=result.best, sync=False)
        self.assert_inverted(presto.open(again))
        self.assertEqual(pickle.loads(pickle.dumps(result)).best.plugins, ())  # somebody else's would run code here

    def test_what_a_dataset_names_is_not_loaded_unless_the_caller_does(self):
        out = self.new("out")
        path = self.inverted()
        presto.write(self.photos, out, pipeline=path, plugins=PLUGIN, up_to="decoded", sync=False)
        with self.assertRaisesRegex(presto.UnsupportedError, "invert"):
            presto.open(out)[0]
        self.assert_inverted(presto.open(out, plugins=PLUGIN))

    def test_what_is_no_plugin(self):
        text = self.new("text.so")
        text.write_text("no shared object")
        for wrong, kind in ((text, presto.StorageError), ("/nowhere.so", presto.NotFoundError),
                            (PLUGIN.parent / "plugin_old.so", presto.ArgumentError)):
            with self.assertRaisesRegex(kind, wrong.name if hasattr(wrong, "name") else "nowhere"):
                presto.open(self.photos, pipeline=self.inverted(), plugins=wrong)


if __name__ == "__main__":
    main()
