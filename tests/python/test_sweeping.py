#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto.write, presto.sweep, presto.inspect and presto.step: the same as the programs make, and functions as steps."""
import contextlib
import copy
import hashlib
import html.parser
import io
import json
import os
import pathlib
import pickle
import shutil
import sys
import textwrap
import threading

from case import PythonCase, cli, main, np, presto

SIZE = 2


def double(image):
    return np.minimum(image.astype(np.uint16) * SIZE, 255).astype(np.uint8)


class Pages(html.parser.HTMLParser):
    """Tags of a page that are not its own."""

    def __init__(self):
        super().__init__()
        self.tags = []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)


class Sweeping(PythonCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.photos = cls.make_photos()
        os.environ["XDG_CACHE_HOME"] = str(cls.folder / "cache")

    def bytes_of(self, folder):
        """Digest of the shards, one after the other; their sizes."""
        shards = [path.read_bytes() for path in sorted(pathlib.Path(folder).glob("*.tfrecord"))]
        return hashlib.sha256(b"".join(shards)).hexdigest(), [len(shard) for shard in shards]

    # ---- write ----

    def test_it_writes_what_the_program_writes(self):
        out = self.new("written")
        told = []
        summary = presto.write(self.photos, out, pipeline=self.pipeline, up_to="resized", codec="zstd:1", shards=3, sync=False,
                               progress=told.append)
        self.assertEqual((summary.samples, summary.shards, summary.skipped), (24, 3, 0))
        self.assertEqual(self.bytes_of(out), self.bytes_of(self.stored))
        self.assertEqual(json.loads((out / "dataset.json").read_text())["id"],
                         json.loads((self.stored / "dataset.json").read_text())["id"])
        self.assertEqual((told[0].samples_done, told[-1].samples_done, told[-1].samples_total), (0, 24, 24))
        again = self.new("again")
        self.assertEqual(presto.write(out, again, shards=2, sync=False).shards, 2)  # the records as they are
        self.assertEqual(self.bytes_of(again)[0], self.bytes_of(out)[0])
        self.assertEqual(presto.inspect(again).codec, "zstd:1")

    def test_samples_that_fail(self):
        photos = self.new("damaged")
        shutil.copytree(self.photos, photos)
        bad = sorted(photos.rglob("*.jpg"))[5]
        bad.write_bytes(b"no photo")
        with self.assertRaises(presto.Error) as raised:
            presto.write(photos, self.new(), pipeline="cv", up_to="decoded", sync=False)
        self.assertEqual(raised.exception.file, str(bad))
        told = []
        summary = presto.write(photos, self.new(), pipeline="cv", up_to="decoded", on_error="skip:1", sync=False,
                               on_skip=lambda *what: told.append(what))
        self.assertEqual((summary.samples, summary.skipped), (23, 1))
        self.assertEqual([(epoch, sample, error.file) for epoch, sample, error in told], [(0, 5, str(bad))])

        def refuse(*_):
            raise KeyError("not this one")
        for option in ({"on_skip": refuse}, {"progress": refuse}):
            out = self.new("refused")
            with self.assertRaises(KeyError):
                presto.write(photos, out, pipeline="cv", up_to="decoded", on_error="skip", sync=False, **option)
            self.assertFalse((out / "dataset.json").exists())

    def test_what_cannot_be_written(self):
        for wrong, kind in (({"pipeline": "cv", "split": "unprocessed"}, presto.ArgumentError),
                            ({"pipeline": "cv", "split": "nothing"}, presto.NotFoundError),
                            ({"pipeline": "none-such"}, presto.NotFoundError),
                            ({"pipeline": "cv", "codec": "rar"}, presto.NotFoundError),
                            ({"pipeline": "cv", "split": "random-crop"}, presto.Error),
                            ({"pipeline": "cv", "threads": "some"}, ValueError),
                            ({"pipeline": "cv", "set": {"resize-image.nothing": 3}}, presto.PipelineError)):
            out = self.new("never")
            with self.assertRaises(kind, msg=wrong):
                presto.write(self.photos, out, **wrong)
            self.assertFalse(out.exists())
        with self.assertRaises(presto.ArgumentError):
            presto.write(self.photos, self.stored, pipeline="cv")

    def test_ctrl_c_ends_it_and_it_can_be_resumed(self):
        out = self.new("interrupted")
        wanted = self.new("wanted")
        options = {"pipeline": "cv", "split": "resized", "shards": 12, "threads": 0, "sync": False}
        presto.write(self.photos, wanted, **options)

        code = """if True:
            import os, presto, signal, sys
            def strike(progress):  # the first report comes before anything is written
                os.kill(os.getpid(), signal.SIGINT)
            try:
                presto.write(sys.argv[1], sys.argv[2], pipeline="cv", up_to="resized", shards=12, threads=0, sync=False,
                             progress=strike)
            except KeyboardInterrupt:
                print("interrupted")
            """
        self.assertEqual(self.python(code, self.photos, out).strip(), "interrupted")
        self.assertFalse((out / "dataset.json").exists())
        presto.write(self.photos, out, resume=True, **options)
        self.assertEqual(self.bytes_of(out), self.bytes_of(wanted))

    # ---- sweep ----

    def swept(self, **options):
        defaults = {"stored": ["unprocessed", "resized"], "codecs": ["none"], "threads": [1], "samples": 6, "runs": 1,
                    "run_s": 0.01, "decide_s": 0.0, "mode": "measure", "work_dir": self.folder}
        return presto.sweep(self.photos, "cv", **{**defaults, **options})

    def test_a_sweep_and_what_follows(self):
        told = []
        result = self.swept(progress=told.append)
        self.assertEqual([s.stored for s in result.strategies], ["unprocessed", "resized"])
        self.assertIn(result.best, result.strategies)
        self.assertFalse(result.stopped)
        self.assertTrue(result.reason and result.commands)
        self.assertEqual({trial.stored for trial in told}, {"unprocessed", "resized"})
        self.assertEqual([p for p in os.listdir(self.folder) if p.startswith(".presto-sweep")], [])
        frame = result.to_pandas()
        self.assertEqual(len(frame), 2)
        folder, other = self.new("saved"), self.new("other")
        folder.mkdir()
        other.write_text("mine")
        (folder / ".results.json.partial").symlink_to(other)  # which somebody else has put there
        paths = result.save(folder)
        self.assertEqual(other.read_text(), "mine")
        (folder / ".results.json.partial").unlink()
        self.assertEqual(set(map(str, folder.iterdir())), set(paths))
        self.assertEqual({pathlib.Path(path).name for path in paths} - {"report.html"},
                         {"results.json", "results.csv", "strategy.yaml"})
        self.assertEqual(json.loads((folder / "results.json").read_text()), result.json)
        stored = next(s for s in result.strategies if s.stored == "resized")
        out = self.new("by-strategy")
        summary = presto.write(self.photos, out, strategy=stored, sync=False)
        self.assertEqual((summary.samples, summary.shards), (24, stored.shards))
        self.assertEqual(presto.inspect(out).codec, "none")
        loaded = presto.load_strategy(folder / "strategy.yaml")
        self.assertEqual((loaded.stored, loaded.codec, loaded.threads, loaded.batch),
                         (result.best.stored, result.best.codec, result.best.threads, 32))
        loader = presto.Loader(out, strategy=stored)
        self.assertEqual((loader.batch, next(iter(loader)).rows), (32, 24))
        raw = next(s for s in result.strategies if s.stored == "unprocessed")
        with self.assertRaisesRegex(presto.ArgumentError, "nothing to write"):
            presto.write(self.photos, self.new(), strategy=raw)
        self.assertEqual(presto.open(self.photos, strategy=raw).pipeline, "cv")
        with_plugins = presto.SweepResult(result._files, result._pipeline, result._set, ("/a/plugin.so",), is_own=True)
        for one in (result, with_plugins):
            for again in (copy.copy(one), copy.deepcopy(one)):
                self.assertEqual((again.best, again.reason), (one.best, one.reason))
                self.assertEqual((again.best.plugins, again.best.is_own), (one.best.plugins, True))
            again = pickle.loads(pickle.dumps(one))
            self.assertEqual((again.best.stored, again.reason), (one.best.stored, one.reason))
            self.assertEqual((again.best.plugins, again.best.is_own), ((), False))

    def test_a_prediction(self):
        result = self.swept(mode="predict", stored=None, codecs=["none", "zstd:1"], threads=[1, 2], samples=0,
                            confirm_runs=1, storage={"bytes_per_s": 50e6, "latency_s": 1e-4})
        measured = [s.figures["measured"] for s in result.strategies if not s.failed]
        self.assertIn(True, measured)
        self.assertIn("(predicted)" if False in measured else "<table>", result._repr_html_())

    def test_html_is_escaped(self):
        result = self.swept(stored=["unprocessed"])
        evil = '<script>alert("x")</script><img src=x onerror=alert(1)>'
        files = dict(result._files)
        found = json.loads(files["results.json"])
        found["recommendation"]["reason"] = found["recommendation"]["load_command"] = evil
        found["notes"] = [evil]
        found["results"][0]["stored"] = evil
        files["results.json"] = json.dumps(found).encode()
        page = presto.SweepResult(files, "cv", ())._repr_html_()
        pages = Pages()
        pages.feed(page)
        self.assertNotIn("script", pages.tags)
        self.assertNotIn("img", pages.tags)
        self.assertIn("&lt;script&gt;", page)
        found["recommendation"]["reason"] = "fast\x1b[31m\u202e"
        files["results.json"] = json.dumps(found).encode()
        self.assertTrue(repr(presto.SweepResult(files, "cv", ())).endswith("\nfast\\x1b[31m\\u202e"))

    def test_options_of_a_sweep(self):
        with self.assertRaisesRegex(TypeError, "no option 'nothing'"):
            self.swept(nothing=1)
        with self.assertRaises(presto.NotFoundError):
            self.swept(stored=["nothing"])
        with self.assertRaises(presto.ArgumentError):
            self.swept(prices={"cpu_h": 1.0})
        with self.assertRaises(presto.ArgumentError):
            self.swept(prices={"gold": 1.0, "epochs": 1})
        with self.assertRaises(ValueError):
            self.swept(mode="guess")
        with self.assertRaises(presto.ArgumentError):
            self.swept(storage={"bytes_per_s": -1.0})
        with self.assertRaisesRegex(TypeError, "storage_speed"):
            self.swept(storage={"speed": 1.0})
        with self.assertRaisesRegex(TypeError, "runs"):
            self.swept(runs="many")

        def refuse(_):
            raise KeyError("enough")
        with self.assertRaises(KeyError):
            self.swept(progress=refuse)
        self.assertEqual([p for p in os.listdir(self.folder) if p.startswith(".presto-sweep")], [])
        folder = self.new("with-output")
        result = self.swept(output=folder, work_dir=None)
        self.assertEqual(json.loads((folder / "results.json").read_text()), result.json)
        with self.assertRaisesRegex(presto.ArgumentError, "earlier sweep"):
            self.swept(output=folder, work_dir=None)
        for name in ("results.json", "results.csv", "strategy.yaml", "report.html"):
            (folder / name).unlink(missing_ok=True)
        journal = (folder / "trials.jsonl").read_bytes()  # as a killed sweep leaves it
        with self.assertRaisesRegex(presto.ArgumentError, "earlier sweep"):
            self.swept(output=folder, work_dir=None)
        self.assertEqual((folder / "trials.jsonl").read_bytes(), journal)

    def test_one_sweep_at_a_time_writes_to_a_folder(self):
        folder, refused = self.new("shared"), []

        def again(_):
            if not refused:
                with self.assertRaises(presto.BusyError) as caught:
                    self.swept(output=folder, work_dir=None, resume=True)
                refused.append(str(caught.exception))
        result = self.swept(output=folder, work_dir=None, progress=again)
        self.assertIn("is being written to by", refused[0])
        self.assertEqual(json.loads((folder / "results.json").read_text()), result.json)
        self.assertEqual([p.name for p in folder.iterdir() if p.name.startswith(".")], [])

    def test_progress_in_a_terminal_and_in_a_notebook(self):
        from presto import _progress

        with contextlib.redirect_stderr(io.StringIO()) as shown:
            line = _progress.Line(True)
            line.show("one", now=True)
            line.show("longer than one", now=True)
            line.end()
            quiet = _progress.Line(None)
            quiet.show("never", now=True)
        self.assertTrue(shown.getvalue().startswith("\rone\rlonger than one\r"))
        self.assertNotIn("never", shown.getvalue())
        told = []

        class Handle:
            def update(self, data, raw):
                told.append(data["text/plain"])

        def display(data, raw, display_id):
            told.append(data["text/plain"])
            return Handle()
        before, _progress._notebook = _progress._notebook, lambda: display
        try:
            line = _progress.Line(None)
            line.show("one", now=True)
            line.show("two", now=True)
            line.end()
        finally:
            _progress._notebook = before
        self.assertEqual(told, ["one", "two", ""])

    # ---- inspect ----

    def test_inspect(self):
        info = presto.inspect(self.stored)
        self.assertEqual((info.records, len(info.files), info.codec, info.record_kind, info.faults),
                         (24, 3, "zstd:1", "Example", None))
        self.assertEqual((info.features["image"].dtype, info.features["label"].shape), ("uint8", ()))
        self.assertIn("24 records", repr(info))
        self.assertEqual(presto.inspect(self.stored, verify=True).damage, [])
        folder = self.new("broken")
        shutil.copytree(self.stored, folder)
        shard = sorted(folder.glob("*.tfrecord"))[1]
        data = bytearray(shard.read_bytes())
        data[40] ^= 1
        shard.write_bytes(data)
        checked = presto.inspect(folder, verify=True)
        self.assertGreater(checked.faults, 0)
        self.assertEqual({damage.file for damage in checked.damage}, {str(shard)})
        self.assertIn((0, "damaged record"), {(damage.record, damage.kind) for damage in checked.damage})
        with self.assertRaises(presto.NotFoundError):
            presto.inspect(self.folder / "nowhere")

    # ---- step ----

    def test_a_function_is_a_step_like_any_other(self):
        """The functions stand in a program of their own: here, unittest's module is not __main__ when it is imported."""
        step = presto.step(double, output="uint8[?,?,3]", yields="doubled", workers=2)
        pipeline = presto.Pipeline("cv").after("decoded", step)
        self.assertEqual(pipeline.representations[:3], ["concatenated", "decoded", "doubled"])
        out = self.new("doubled")
        self.assertEqual(presto.write(self.photos, out, pipeline=pipeline, up_to="doubled", sync=False).samples, 24)
        stored, online = presto.open(out, to="doubled"), presto.open(self.photos, pipeline=pipeline, to="doubled")
        plain = presto.open(self.photos, pipeline="cv", to="decoded")
        for i in (0, 11, 23):
            wanted = double(plain[i]["image"])
            self.assertEqual((stored[i]["image"] == wanted).all() and (online[i]["image"] == wanted).all(), True)
            self.assertEqual(stored[i]["label"], plain[i]["label"])
        # What is stored needs no consent; what would have to run does.
        self.assertEqual(len(presto.open(out)), 24)
        later = self.new("later")
        presto.write(self.photos, later, pipeline=pipeline, up_to="decoded", sync=False)
        with self.assertRaises(presto.UnsupportedError):
            presto.open(later)[0]
        result = presto.sweep(self.photos, pipeline, stored=["doubled"], codecs=["none"], threads=[1], samples=4, runs=1,
                              run_s=0.01, decide_s=0.0, mode="measure", work_dir=self.folder)
        self.assertEqual(result.best.stored, "doubled")
        self.assertEqual(presto.write(self.photos, self.new(), strategy=result.best, limit=3, sync=False).samples, 3)
        self.assertEqual(step(np.full((1, 1, 3), 200, np.uint8)).max(), 255)

    def module(self, text):
        folder = self.new("modules")
        folder.mkdir()
        name = f"steps_{len(sys.path)}_{id(text)}"
        (folder / f"{name}.py").write_text(textwrap.dedent(text))
        sys.path.insert(0, str(folder))
        self.addCleanup(sys.path.remove, str(folder))
        return folder / f"{name}.py", __import__(name)

    def test_functions_of_modules_and_their_changes(self):
        path, module = self.module("""
            import numpy as np
            import presto

            @presto.step(output="int64[?]", yields="counts", features=["label"], sets={"twice": "int64"})
            def count(image, label):
                return np.bincount(image.reshape(-1) // 64, minlength=4), {"twice": 2 * label}

            def text(image) -> str:
                return f"{image.shape[0]} rows"

            def shout(text: str) -> bytes:
                return text.upper().encode()

            def noise(image, seed):
                return np.random.default_rng(seed % 2**63).integers(0, 256, 4, np.uint8)

            def some(image):
                return None if image[0, 0, 0] % 2 else image
            """)
        cv = presto.Pipeline("cv").until("decoded")
        dataset = presto.open(self.photos, pipeline=cv.append(module.count))
        plain = presto.open(self.photos, pipeline=cv)
        sample = dataset[7]
        self.assertEqual(sample["image"].tolist(), np.bincount(plain[7]["image"].reshape(-1) // 64, minlength=4).tolist())
        self.assertEqual(sample["twice"], 2 * plain[7]["label"])
        texts = cv.append(presto.step(module.text, yields="text"), presto.step(module.shout, yields="loud"))
        self.assertEqual(presto.open(self.photos, pipeline=texts)[3]["image"],
                         f"{plain[3]['image'].shape[0]} ROWS".encode())
        noisy = cv.append(presto.step(module.noise, output="uint8[4]", random=True))
        first, second = ([b["image"].tobytes() for b in presto.Loader(presto.open(self.photos, pipeline=noisy), 8, threads=n)]
                         for n in (1, 3))
        self.assertEqual(first, second)
        self.assertGreater(len(set(first)), 1)
        fewer = cv.append(presto.step(module.some, output="uint8[?,?,3]", yields="some", drops=True))
        kept = sum(plain[i]["image"][0, 0, 0] % 2 == 0 for i in range(24))
        self.assertEqual(presto.write(self.photos, self.new(), pipeline=fewer, up_to="some", sync=False).samples, kept)
        before = presto.step(module.text).definition["run"][1]
        self.assertEqual(presto.step(module.text).definition["run"][1], before)
        path.write_text(path.read_text() + "\n# changed\n")
        self.assertNotEqual(presto.step(module.text).definition["run"][1], before)

    def test_source_as_a_step(self):
        source = "import numpy as np\ndef halve(image):\n    return np.ascontiguousarray(image[::2, ::2])\n"
        step = presto.step(source, output="uint8[?,?,3]", yields="halved")
        pipeline = presto.Pipeline({"name": "mine", "source": {"type": "files", "match": ["*.jpg"], "label": "parent-folder"},
                                    "steps": [{"step": "read-file"}, {"step": "decode-image", "channels": 3}, step]})
        plain = presto.open(self.photos, pipeline="cv", to="decoded")
        self.assertTrue((presto.open(self.photos, pipeline=pipeline)[2]["image"] == plain[2]["image"][::2, ::2]).all())
        with self.assertRaises(presto.PipelineError):
            presto.Pipeline({"name": "mine", "source": {"type": "files"}, "steps": [{"step": "nothing"}]})

    def test_what_a_function_raises(self):
        _, module = self.module("""
            import presto

            def deep(image):
                raise ArithmeticError("no good")

            def bad(image):
                return deep(image)

            def picky(image):
                raise presto.BadSample("too dark")
            """)
        cv = presto.Pipeline("cv").until("decoded")
        with self.assertRaises(presto.StorageError) as raised:
            presto.write(self.photos, self.new(), pipeline=cv.append(presto.step(module.bad, output="uint8[?]", yields="x")),
                         sync=False, threads=0, on_error="skip")
        self.assertTrue(raised.exception.file.endswith(".jpg"))
        self.assertIn("ArithmeticError: no good", str(raised.exception))
        (note,) = raised.exception.__notes__
        self.assertIn("in bad", note)
        self.assertIn("in deep", note)
        picky = cv.append(presto.step(module.picky, output="uint8[?]", yields="x"))
        with self.assertRaisesRegex(presto.CorruptError, "too dark"):
            presto.write(self.photos, self.new(), pipeline=picky, sync=False)
        told = []
        presto.write(self.photos, self.new(), pipeline=picky, sync=False, on_error="skip", on_skip=lambda *w: told.append(w))
        self.assertEqual(len(told), 24)

    def test_what_is_no_step(self):
        offset = 3

        def closure(image):
            return image + offset

        class Callable:
            def __call__(self, image):
                return image

            def method(self, image):
                return image

        lock = threading.Lock()
        scope = {"__name__": "__main__", "lock": lock}
        for wrong, why in ((lambda image: image, "lambda"), (closure, "closure: it keeps offset"), (Callable(), "no function"),
                           (Callable().method, "no function"), (print, "no function"), ("x = 1", "defines a function"),
                           ("def f(:", "source"), (3, "no function")):
            with self.assertRaisesRegex(presto.StepError, why, msg=wrong):
                presto.step(wrong, output="string")
        del scope
        with self.assertRaisesRegex(TypeError, "output="):
            presto.step(double)
        with self.assertRaises(ValueError):
            presto.step(double, output="string", takes="pictures")

    def test_functions_of_a_program(self):
        """A script: its functions are those of __main__."""
        script = self.new("script.py")
        script.write_text(textwrap.dedent("""
            import sys, threading
            import numpy as np
            import numpy.linalg as algebra
            from math import floor as down
            import presto

            FACTOR = 2
            lock = threading.Lock()

            def helper(x, k=FACTOR):
                return helper(x, 1) if k > 1 else down(x)

            def measure(image: np.ndarray) -> np.ndarray:
                return np.array([helper(algebra.norm(image.astype(np.float64))), FACTOR], np.int64)

            def locked(image):
                with lock:
                    return image

            if __name__ == "__main__":
                cv = presto.Pipeline("cv").until("decoded")
                step = presto.step(measure, output="int64[2]", yields="measured")
                plain = presto.open(sys.argv[1], pipeline=cv)[5]["image"]
                got = presto.open(sys.argv[1], pipeline=cv.append(step))[5]["image"]
                assert got.tolist() == measure(plain).tolist(), got
                try:
                    presto.step(locked, output="string")
                except presto.StepError as error:
                    print(error)
            """))
        shown = self.python(f"import runpy, sys; sys.argv = [{str(script)!r}, {str(self.photos)!r}]; "
                            f"runpy.run_path({str(script)!r}, run_name='__main__')", check=False)
        if shown.returncode == 0:
            self.assertIn("uses the global lock", shown.stdout)
        import subprocess

        done = subprocess.run([sys.executable, "-B", script, self.photos], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("it uses the global lock, a lock", done.stdout)


if __name__ == "__main__":
    main()
