#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps of one's own: programs (`step: command`) and plugins, in all programs, and who may start them."""
import ctypes
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

import numpy as np
from cli import ROOT, SANITIZED, TOOLS, Case, a_sweep, example, frames, main, run

PLUGIN = pathlib.Path(os.environ.get("PRESTO_PLUGIN", ROOT / "build" / "release" / "tests" / "plugin_invert.so"))
OLD_PLUGIN = PLUGIN.parent / "plugin_old.so"
TAKEN_PLUGIN = PLUGIN.parent / "plugin_taken.so"

HEAD = """\
name: own
source: {type: files, match: ["*.jpg"], label: parent-folder}
steps:
  - {step: read-file,    yields: concatenated}
  - {step: decode-image, yields: decoded, channels: 3}
"""

WORKER = """\
import os, sys
sys.path.insert(0, {examples!r})
import numpy as np
import presto_worker
"""


class OwnSteps(Case):
    photo_count = 12

    def worker(self, name, body):
        """A program beside the pipelines, which presto_worker.py serves."""
        path = self.folder / name
        path.write_text(WORKER.format(examples=str(ROOT / "examples" / "own_steps")) + body)
        return path

    def write_pipeline(self, *steps, head=HEAD):
        path = self.new("own.yaml")
        path.write_text(head + "".join(f"  - {{step: {step}}}\n" for step in steps))
        return path

    def command(self, name, options, body):
        self.worker(name, body)
        return f"command, run: [{sys.executable}, {name}], {options}"

    def load(self, *arguments, code=0):
        done = run("presto-load", "-q", *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return done if code else done.stdout

    def darker(self):
        return self.command("darker.py", 'output: "uint8[72,96,3]", yields: darker',
                            "presto_worker.serve(lambda sample: sample['value'] // 2)\n")

    # ---- programs ----

    def test_stored_online_and_split_it_gives_the_same_for_any_threads(self):
        pipeline = self.write_pipeline(self.darker(), "center-pixels, yields: centered")
        streams = {self.load("--format", "npy", "-b", "5", "-p", pipeline, "-j", threads, self.make_photos())
                   for threads in ("0", "1", "4")}
        for split in ("decoded", "darker", "centered"):
            out = self.new(split)
            done = run("presto-write", "-q", "-p", pipeline, "-u", split, "-j", "3", "-s", "2", "-o", out, self.make_photos(),
                       cwd="/")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            consent = ("--allow-commands",) if split == "decoded" else ()
            streams.add(self.load("--format", "npy", "-b", "5", *consent, out))
            streams.add(self.load("--format", "npy", "-b", "5", "-p", pipeline, out))
        self.assertEqual(len(streams), 1)
        definition = json.loads((out / "dataset.json").read_text())["pipeline"]["steps"][2]
        self.assertEqual(definition["run"], [sys.executable, str(self.folder / "darker.py")])
        self.assertEqual(definition["timeout"], 30)

    def test_a_dataset_of_somebody_starts_nothing(self):
        mark = self.new("started")
        step = self.command("mark.py", "output: string, yields: marked",
                            f"open({str(mark)!r}, 'w')\npresto_worker.serve(lambda s: s['value'], text=True)\n")
        out = self.new("theirs")
        pipeline = self.write_pipeline(step, head=HEAD.rsplit("\n", 2)[0] + "\n")
        run("presto-write", "-q", "-p", pipeline, "-u", "concatenated", "-o", out, self.make_photos())
        self.assertFalse(mark.exists())
        for arguments in ((), ("--explain",), ("--cache", "memory:1MiB"), ("-j", "0")):
            done = self.load("--format", "null", *arguments, out, code=1)
            self.assertIn("step command: it runs a program", done.stderr)
            self.assertIn("--allow-commands", done.stderr)
        self.load("--format", "null", "--to", "concatenated", out)  # what runs no program needs no consent
        run("presto-inspect", "info", out)
        strategy = self.new("strategy.yaml")
        strategy.write_text(f"schema: 1\npipeline: {pipeline}\nstored: unprocessed\nthreads: 1\n")
        self.load("--format", "null", "--strategy", strategy, self.make_photos(), code=1)
        strategy.write_text(f"schema: 1\npipeline: {pipeline}\nstored: marked\ncodec: none\nshards: 1\nthreads: 1\n")
        done = run("presto-write", "-q", "--strategy", strategy, "-o", self.new("no"), self.make_photos())
        self.assertEqual(done.returncode, 1)
        self.assertIn("--allow-commands", done.stderr)
        self.assertFalse(mark.exists())
        self.load("--format", "null", "--explain", "-p", pipeline, self.make_photos())  # explaining starts nothing
        self.assertFalse(mark.exists())
        self.load("--format", "null", "--allow-commands", out)
        self.assertTrue(mark.exists())

    def test_random_steps_are_online_and_the_same_in_every_run(self):
        step = self.command("noise.py", 'output: "uint8[72,96,3]", random: true, yields: noise', """
def step(sample):
    rng = np.random.default_rng(sample["random"].view(np.uint64)[0])
    return sample["value"] ^ rng.integers(0, 256, (72, 96, 3), np.uint8)
presto_worker.serve(step)
""")
        pipeline = self.write_pipeline(step)
        done = run("presto-write", "-q", "-p", pipeline, "-u", "noise", "-o", self.new("no"), self.make_photos())
        self.assertEqual(done.returncode, 2)
        self.assertIn("random step", done.stderr)
        arguments = ("--format", "raw", "-p", pipeline, "-e", "2", "--shuffle", "full", "--seed", "3", self.make_photos())
        whole = self.load("-j", "1", *arguments)
        self.assertEqual(self.load("-j", "4", *arguments), whole)
        size = 72 * 96 * 3
        images = {whole[at : at + size] for at in range(0, len(whole), size)}
        self.assertEqual(len(images), 2 * self.photo_count)  # other draws in the second epoch
        state, pieces = self.new("state"), []
        for _ in range(5):
            pieces.append(self.load("--state", state, "--limit", "5", *arguments))
        self.assertEqual(b"".join(pieces), whole)

    def test_features_go_along_come_back_and_samples_are_left_out(self):
        step = self.command("pick.py", 'output: "uint8[?,?,3]", features: [label, key], sets: ["note=string", "box=int32[4]"], '
                            "drops: true", """
def step(sample):
    if sample["label"][0] == 1:
        return None
    return {"value": sample["value"], "note": sample["key"][-9:].decode() + " %d" % sample["label"][0],
            "box": np.array([1, 2, 3, -4], np.int32)}
presto_worker.serve(step)
""")
        records = [example(payload) for payload in frames(self.load("-p", self.write_pipeline(step), self.make_photos()))]
        self.assertEqual(len(records), self.photo_count * 3 // 4)
        for record in records:
            label, key = record["label"][0], record["key"][0]
            self.assertNotEqual(label, 1)
            self.assertEqual(record["note"], [key[-9:] + b" %d" % label])
            self.assertTrue(record["box"][0].endswith(struct.pack("<4i", 1, 2, 3, -4)))
        out = self.new("left")
        done = run("presto-write", "-q", "-p", self.write_pipeline(step + ", yields: left"), "-u", "left", "-j", "3", "-o", out,
                   self.make_photos())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(sorted(self.load(out)), sorted(self.load("-p", self.write_pipeline(step), self.make_photos())))

    def test_bad_samples_go_by_the_policy_and_print_does_no_harm(self):
        step = self.command("bad.py", 'output: "uint8[?,?,3]", features: [label]', """
def step(sample):
    print("a line that nobody should print")
    if sample["label"][0] == 2:
        raise presto_worker.BadSample("this one is\\ntoo dark")
    return sample["value"]
presto_worker.serve(step)
""")
        arguments = ("--format", "null", "-p", self.write_pipeline(step), self.make_photos())
        done = self.load(*arguments, code=3)
        self.assertIn("command: bad sample: this one is\\ntoo dark", done.stderr)
        self.assertIn(".jpg", done.stderr)
        report, stats = self.new("report"), self.new("stats")
        self.load("--on-error", "skip", "--error-report", report, "--stats", stats, *arguments)
        self.assertEqual(json.loads(stats.read_text())["skipped"], self.photo_count // 4)
        self.assertEqual(report.read_text().count("too dark"), self.photo_count // 4)

    def test_a_worker_that_fails_ends_the_run_with_its_last_lines(self):
        failures = (
            ("raise KeyError('my mistake')", "has ended with code 1; its last lines: ", "KeyError: 'my mistake'"),
            ("os.kill(os.getpid(), 11)", "was killed by signal 11", ""),
            ("os._exit(0)", "has ended with code 0", ""),
            ("import time; time.sleep(1000)", "has not answered for", ""),
            ("return np.zeros(3, np.float64)", 'feature \\"value\\" is float64[3], must be uint8[?,?,3]'.replace("\\", ""), ""),
            ("os.write(replies, b'garbage' * 9); return sample['value']", "is no worker of a step", ""),
            ("return {'value': sample['value'], 'more': 1}", 'feature "more", which `sets` lacks', ""),
            ("return None", "drops a sample without `drops: true`", ""),
        )
        for number, (body, text, line) in enumerate(failures):
            with self.subTest(body=body):
                late = "timeout: 200ms, start-timeout: 5s" if "sleep" in body else "timeout: 60s"
                step = self.command(f"fails{number}.py", f'output: "uint8[?,?,3]", {late}', f"""
done = 0
def step(sample):
    global done, replies
    replies = os.dup(presto_worker_replies())
    done += 1
    if done < 3:
        return sample["value"]
    {body}
def presto_worker_replies():
    return next(int(f) for f in os.listdir("/proc/self/fd") if int(f) > 2 and os.readlink("/proc/self/fd/" + f).startswith("pipe"))
presto_worker.serve(step)
""")
                for threads, policy in (("0", "fail"), ("2", "skip")):
                    done = self.load("--format", "null", "-j", threads, "--on-error", policy, "-p", self.write_pipeline(step),
                                     self.make_photos(), code=1)
                    self.assertIn(text, done.stderr)
                    self.assertIn(line, done.stderr)
                self.assertEqual(self.left_over(f"fails{number}.py"), [])

    def left_over(self, name):
        """Processes that still run this worker. Another run of these tests has its own, in a folder of its own."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and name.encode() in (entry / "cmdline").read_bytes() and \
                        (entry / "cwd").resolve() == self.folder.resolve():
                    found.append(entry.name)
            except OSError:
                pass
        return found

    def test_a_signal_ends_the_program_and_its_processes(self):
        for number, threads in ((signal.SIGINT, "0"), (signal.SIGINT, "3"), (signal.SIGTERM, "3"), (signal.SIGKILL, "3")):
            with self.subTest(signal=number, threads=threads):
                name, mark = f"hangs{number}{threads}.py", self.new("mark")
                # It never looks at its stdin again, and its child has left its session.
                step = self.command(name, "output: string, timeout: 1h", f"""
import subprocess, time
if "child" not in sys.argv:
    subprocess.Popen([sys.executable, __file__, "child"], start_new_session=True)
else:
    open({str(mark)!r}, "w").close()
while True:
    pass
""")
                pipeline = self.write_pipeline(step, head=HEAD.rsplit("\n", 2)[0] + "\n")
                process = subprocess.Popen([TOOLS / "presto-load", "-q", "--format", "null", "-e", "1000", "-j", threads, "-p",
                                            pipeline, self.make_photos()], stderr=subprocess.PIPE)
                while not mark.exists():
                    self.assertIsNone(process.poll())
                    time.sleep(0.01)
                process.send_signal(number)
                _, errors = process.communicate(timeout=120)
                self.assertEqual(process.returncode, -number, errors)
                self.assertEqual(errors, b"")
                while self.left_over(name):  # a guard ends those of a killed parent
                    self.assertEqual(number, signal.SIGKILL)
                    time.sleep(0.01)

    @a_sweep
    def test_a_signal_ends_a_sweep_that_waits_for_a_sample(self):
        mark = self.new("mark")
        step = self.command("sleeps.py", "output: string, timeout: 1h", f"""
import time
open({str(mark)!r}, "w").close()
time.sleep(1000)
""")
        process = subprocess.Popen([TOOLS / "presto-sweep", "-q", "-o", self.new("sweep"), "-p",
                                    self.write_pipeline(step, head=HEAD.rsplit("\n", 2)[0] + "\n"), self.make_photos()],
                                   stderr=subprocess.PIPE)
        while not mark.exists():
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, -signal.SIGINT, errors)
        self.assertEqual(self.left_over("sleeps.py"), [])

    def test_the_cache_on_disk_knows_the_program_by_its_files(self):
        step = self.command("cached.py", 'output: "uint8[72,96,3]"',
                            "presto_worker.serve(lambda sample: sample['value'] // 2)\n")
        cache = self.new("cache")
        arguments = ("--format", "raw", "--cache", f"disk:{cache}:1GiB", "-p", self.write_pipeline(step), self.make_photos())
        hits = lambda: json.loads(stats.read_text())["cached_samples"]
        stats = self.new("stats")
        first = self.load("--stats", stats, *arguments)
        self.assertEqual(hits(), 0)
        self.assertEqual(self.load("--stats", stats, *arguments), first)
        self.assertEqual(hits(), self.photo_count)
        self.worker("cached.py", "presto_worker.serve(lambda sample: sample['value'] // 3)\n")
        other = self.load("--stats", stats, *arguments)
        self.assertEqual(hits(), 0)
        self.assertNotEqual(other, first)

    @a_sweep
    def test_a_sweep_measures_it_like_any_step(self):
        out = self.new("sweep")
        done = run("presto-sweep", "-q", "-p", self.write_pipeline(self.darker(), "center-pixels, yields: centered"), "--stored",
                   "decoded,darker", "--codecs", "none", "--threads", "2", "--samples", "6", "--runs", "1", "--run-time", "0.01",
                   "--decide-time", "0", "-o", out, self.make_photos())
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads((out / "results.json").read_text())
        busy = {s["stored"]: [r["machine_busy_s"] for r in s["cold"]["runs"] + s["cached"]["runs"]] for s in results["results"]}
        self.assertEqual(set(busy), {"decoded", "darker"})
        # Its program is no other process that disturbs.
        self.assertEqual(set(busy["decoded"]), {None})
        self.assertNotIn(None, busy["darker"])

    # ---- the examples ----

    def test_the_examples_run(self):
        examples = self.folder / "examples"
        shutil.copytree(ROOT / "examples" / "own_steps", examples)
        sizes = "resize-image.min-side=40", "random-crop.height=32", "random-crop.width=32"
        sets = [word for size in sizes for word in ("--set", size)]
        done = run("presto-load", "-q", "--format", "raw", "-p", examples / "augment.yaml", *sets, "--set",
                   "command.output=float32[32,32,3]", "--set", f"command.run=[{sys.executable}, {examples / 'augment.py'}]",
                   self.make_photos())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        images = np.frombuffer(done.stdout, np.float32).reshape(-1, 32, 32, 3)
        self.assertEqual(len(images), self.photo_count)
        plain = run("presto-load", "-q", "--format", "raw", "-p", "cv", *sets, self.make_photos())
        difference = np.abs(images - np.frombuffer(plain.stdout, np.float32).reshape(-1, 32, 32, 3))
        for image, changed in zip(images, difference):
            self.assertGreaterEqual((image == 0).all(axis=2).sum(), 64)  # the square
            self.assertLess(np.median(changed), 0.05)  # the noise

    # ---- plugins ----

    def plugin_pipeline(self, *lines):
        path = self.new("plugin.yaml")
        path.write_text("\n".join(lines) + HEAD.replace("name: own", "\nname: plug") +
                        "  - {step: invert, yields: inverted}\n  - {step: center-pixels, yields: centered}\n")
        return path

    def test_a_plugin_is_named_by_the_user_or_by_the_pipeline(self):
        beside = self.folder / "invert.so"
        shutil.copy(PLUGIN, beside)
        pipelines = (self.plugin_pipeline("plugin: invert.so"), self.plugin_pipeline("plugin: [invert.so]"),
                     self.plugin_pipeline(f"plugin: {beside}"))
        unnamed = self.plugin_pipeline("")
        load = lambda *which: self.load("--format", "raw", "--to", "inverted", *which, self.make_photos())
        streams = {load("-p", path) for path in pipelines} | {load("--plugin", PLUGIN, "-p", unnamed)}
        self.assertEqual(len(streams), 1)
        plain = self.load("--format", "raw", "-p", self.write_pipeline(), self.make_photos())
        self.assertEqual(streams.pop(), bytes(255 - byte for byte in plain))
        done = self.load("--format", "null", "-p", unnamed, self.make_photos(), code=1)
        self.assertIn("unknown step 'invert'", done.stderr)

    def test_a_dataset_records_its_plugin_and_opens_it_only_with_consent(self):
        beside = self.new("mine.so")
        shutil.copy(PLUGIN, beside)
        pipeline = self.plugin_pipeline(f"plugin: {beside.name}")
        for split in ("decoded", "inverted"):
            out = self.new(split)
            done = run("presto-write", "-q", "-p", pipeline, "-u", split, "-o", out, self.make_photos())
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            definition = json.loads((out / "dataset.json").read_text())["pipeline"]
            self.assertEqual([p["file"] for p in definition["plugin"]], [str(beside)])
            self.assertRegex(definition["plugin"][0]["digest"], "^[0-9a-f]{32}$")
            if split == "inverted":  # its step has run: nobody needs it
                self.load("--format", "null", out)
                continue
            done = self.load("--format", "null", out, code=1)
            self.assertIn(f"step invert: it is a step of the plugin {beside}", done.stderr)
            streams = {self.load("--format", "npy", *consent, out)
                       for consent in (("--allow-commands",), ("--plugin", PLUGIN), ("-p", pipeline))}
            self.assertEqual(len(streams), 1)
            with open(beside, "ab") as file:
                file.write(b"changed")
            done = self.load("--format", "null", "--allow-commands", out, code=2)
            self.assertIn("it is another file than the one", done.stderr)
            self.load("--format", "null", "--plugin", beside, out)
            shutil.copy(PLUGIN, beside)

    def test_a_changed_plugin_makes_other_samples_for_caches_and_resumed_runs(self):
        beside = self.new("cached.so")
        shutil.copy(PLUGIN, beside)
        pipeline, cache, stats = self.plugin_pipeline(f"plugin: {beside.name}"), self.new("cache"), self.new("stats")
        arguments = ("--format", "raw", "--stats", stats, "--cache", f"disk:{cache}:1GiB", "-p", pipeline, self.make_photos())
        self.load(*arguments)
        self.load(*arguments)
        self.assertEqual(json.loads(stats.read_text())["cached_samples"], self.photo_count)
        with open(beside, "ab") as file:
            file.write(b"changed")
        self.load(*arguments)
        self.assertEqual(json.loads(stats.read_text())["cached_samples"], 0)

    @unittest.skipIf(SANITIZED, "Python does not load sanitizers")
    def test_a_plugin_finds_the_functions_of_a_library_that_python_opened_for_itself(self):
        script, pipeline = self.new("open.py"), self.plugin_pipeline("")
        script.write_text(f"""
import ctypes
size, pointer = ctypes.c_size_t, ctypes.c_void_p
class Options(ctypes.Structure):
    _fields_ = [("struct_bytes", size), ("set", pointer), ("set_count", size), ("steps", pointer), ("step_count", size),
                ("plugins", pointer), ("plugin_count", size), ("code", ctypes.c_int)]
presto = ctypes.CDLL({str(TOOLS.parent / "libpresto.so")!r}, ctypes.RTLD_LOCAL)
plugins = (ctypes.c_char_p * 1)({str(PLUGIN).encode()!r})
options = Options(plugins=ctypes.cast(plugins, pointer), plugin_count=1, struct_bytes=ctypes.sizeof(Options))
pipeline = pointer()
error = ctypes.create_string_buffer(8192)
status = presto.presto_pipeline_load({str(pipeline).encode()!r}, ctypes.byref(options), ctypes.byref(pipeline), error)
assert status == 0, (status, error.raw.replace(bytes(1), b""))
presto.presto_pipeline_free(pipeline)
""")
        done = subprocess.run([sys.executable, script], capture_output=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_what_is_no_plugin_is_refused(self):
        text = self.new("text.so")
        text.write_text("not a shared object")
        cases = ((OLD_PLUGIN, "it is made for version 3 of the step interface, this Presto has version"),
                 (TAKEN_PLUGIN, "a step 'random-crop' is built in: an own step needs another name"),
                 (text, "the plugin"), ("/nowhere.so", "No such file"), ("libm.so.6", "No such file"))
        for path, message in cases:
            with self.subTest(path=path):
                for program in ("presto-load", "presto-write", "presto-sweep"):
                    output = () if program == "presto-load" else ("-o", self.new("no"))
                    done = run(program, "-q", "--plugin", path, "-p", "cv", *output, self.make_photos())
                    self.assertIn(done.returncode, (1, 2), done.stderr)
                    self.assertIn(message, done.stderr)
        done = self.load("--format", "null", "-p", self.plugin_pipeline("plugin: {file: x, more: 1}"), self.make_photos(), code=1)
        self.assertIn("line 1: a plugin has the keys file and digest only", done.stderr)


if __name__ == "__main__":
    main()
