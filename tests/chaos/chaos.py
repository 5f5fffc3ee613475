# SPDX-License-Identifier: Apache-2.0
"""What the chaos tests share: seeded moments, a watchdog, datasets compared byte by byte.

PRESTO_TEST_SEED repeats a run, PRESTO_CHAOS_MOMENTS sets how many random moments are tried,
PRESTO_CHAOS_LIGHT=1 (sanitizers) leaves out what takes long.
"""
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))

from cli import PHOTOS, SANITIZED, TOOLS, Case, crc32c, frames, main, run  # noqa: E402,F401  (the tests import them from here)

LIGHT = os.environ.get("PRESTO_CHAOS_LIGHT", "") not in ("", "0")
# What is synced hundreds of times is better off in memory.
if "TMPDIR" not in os.environ and os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 2 << 30:
    tempfile.tempdir = "/dev/shm"
# Generous: it ends a hang, it measures nothing.
WATCHDOG_S = 120


def moments(default):
    """How many random moments to try."""
    wanted = os.environ.get("PRESTO_CHAOS_MOMENTS")
    return int(wanted) if wanted else max(3, default // 4) if LIGHT else default


def seeded(name):
    """This run's random numbers; the seed is printed once."""
    seed = int(os.environ.get("PRESTO_TEST_SEED", time.time_ns() % 1000000))
    print(f"{name}: PRESTO_TEST_SEED={seed}", flush=True)
    return random.Random(seed)


def start(program, *arguments, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen([TOOLS / program, *map(str, arguments)], **options)


def stop(process):
    """Returns when all its threads have stopped, or it has ended. A signal alone may take effect later."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)


def shards(folder):
    """The dataset's data files, without indexes and temporary ones."""
    return sorted(p for p in folder.glob("data-*") if p.suffix != ".index")


def unnamed_shards(folder):
    """Whole shards of an unfinished run that will have their names at its end, when their number is known."""
    return sorted(p for p in folder.glob(".data-*") if p.suffix not in (".index", ".partial"))


def snapshot(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def stale_indexes(folder):
    """Indexes whose size, or bytes at four places, are not their shard's."""
    stale = []
    for path in folder.glob("*.index"):
        shard, index = path.with_suffix(""), path.read_bytes()
        (size,), places = struct.unpack_from("<Q", index, 24), struct.unpack_from("<4Q", index, 48)
        data = shard.read_bytes() if shard.exists() else b""
        if len(data) != size or index[36:40] != struct.pack("<I", crc32c(b"".join(data[at:at + 16] for at in places))):
            stale.append(path.name)
    return stale


def status_bytes(pid, key):
    """A figure of /proc/PID/status, e.g. VmHWM; None once the process has ended."""
    try:
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def as_nobody():
    """What runs a command as another user; the test is skipped, visibly, where that cannot be."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        raise unittest.SkipTest("needs root and setpriv: another user cannot be had")
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


class ChaosCase(Case):
    def finish(self, process, stdin=None):
        """stdout and stderr of a process that must end by itself; a hang is shown and fails."""
        try:
            out, err = process.communicate(timeout=WATCHDOG_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)
            process.communicate()
            self.fail(f"hangs: {process.args}")
        return out, err.decode() if err is not None else ""

    def assert_clean_failure(self, returncode, err, codes=(1, 3), message=""):
        """One line that starts with the program's name, and a documented exit code."""
        self.assertIn(returncode, codes, (message, err))
        self.assertRegex(err, r"^presto-\w+: [^\n]+\n$", message)

    def assert_same_dataset(self, folder, whole, message=""):
        got = snapshot(folder)
        self.assertEqual(sorted(got), sorted(whole), message)
        self.assertEqual([name for name in whole if got[name] != whole[name]], [], message)
        self.assertEqual(stale_indexes(folder), [], message)

    def assert_nothing_false(self, folder, whole, message=""):
        """What stands under a final name is what belongs there; without all of it there is no dataset.json."""
        if not folder.exists():
            return
        names = {p.name for p in folder.iterdir()}
        for path in shards(folder):
            self.assertIn(path.name, whole, message)
            self.assertEqual(path.read_bytes(), whole[path.name], f"{path.name}: {message}")
        for path in unnamed_shards(folder):  # .data-00003.tfrecord for data-00003-of-00007.tfrecord
            number, ending = path.name[1:].split(".", 1)
            final = [name for name in whole if name.startswith(number + "-of-") and name.endswith("." + ending)]
            self.assertEqual(len(final), 1, f"{path.name}: {message}")
            self.assertEqual(path.read_bytes(), whole[final[0]], f"{path.name}: {message}")
        if "dataset.json" in names:
            self.assertEqual(unnamed_shards(folder), [], message)
            self.assertEqual(set(whole) - names, set(), message)
            self.assertEqual((folder / "dataset.json").read_bytes(), whole["dataset.json"], message)
            json.loads((folder / "dataset.json").read_text())


class FaultCase(ChaosCase):
    """Programs of which one call of the C library fails: fault.c says how it is chosen."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shim = cls.folder / "fault.so"
        subprocess.run([os.environ.get("CC") or "cc", "-std=c11", "-O1", "-shared", "-fPIC", "-o", cls.shim,
                        pathlib.Path(__file__).with_name("fault.c"), "-ldl"], check=True)

    def run_with(self, fault, program, *arguments, **options):
        environment = {**os.environ, "LD_PRELOAD": str(self.shim), "PRESTO_FAULT": fault}
        try:
            return run(program, *arguments, env=environment, timeout=WATCHDOG_S, **options)
        except subprocess.TimeoutExpired:
            self.fail(f"{fault}: hangs: {program} {arguments}")

    def count(self, program, *arguments):
        """How often it calls what, when nothing fails."""
        counts = self.new("counts")
        done = run(program, *arguments, env={**os.environ, "LD_PRELOAD": str(self.shim),
                                             "PRESTO_FAULT_COUNTS": str(counts)})
        self.assertEqual(done.returncode, 0, done.stderr)
        return {call: int(number) for call, number in (line.split() for line in counts.read_text().splitlines())}
