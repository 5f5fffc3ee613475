# SPDX-License-Identifier: Apache-2.0
"""The end of the interpreter, and Ctrl-C: in the middle of every call that reads or writes files."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from case import TIMEOUT_S, PythonCase, cli, main, np, presto

# What a large library does at the exit takes a while; so does each read of a slow disk.
SLOW_EXIT = """
#include <unistd.h>
__attribute__((destructor)) static void slow(void) { usleep(200000); }
"""
SLOW_READS = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
volatile int reads_are_slow;
__attribute__((constructor)) static void begin(void) { reads_are_slow = getenv("READS_ARE_SLOW") != NULL; }
#define SLOWLY(name) static __typeof__(&name) real; if (real == NULL) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
    if (reads_are_slow) usleep(12000)
ssize_t pread(int fd, void *data, size_t bytes, off_t at) { SLOWLY(pread); return real(fd, data, bytes, at); }
ssize_t pread64(int fd, void *data, size_t bytes, off64_t at) { SLOWLY(pread64); return real(fd, data, bytes, at); }
struct dirent *readdir(DIR *folder) { SLOWLY(readdir); return real(folder); }
struct dirent64 *readdir64(DIR *folder) { SLOWLY(readdir64); return real(folder); }
"""
# Not while Python looks for modules, which takes a thousand reads.
SLOW = "import ctypes\nslow = ctypes.c_int.in_dll(ctypes.CDLL(None), 'reads_are_slow')\nslow.value = 1\n"
RAW = '{name: raw, source: {type: %s, match: ["*.bin"]}, steps: [{step: read-file, yields: c}]}'
TORCH_PYTHON = os.environ.get("PRESTO_TORCH_PYTHON", sys.executable)
IN_A_THREAD = "import threading, time\nthreading.Thread(target=work, daemon=True).start()\ntime.sleep(float(sys.argv[2]))\n"


def library(folder, name, text):
    """A library to be preloaded, or None without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    source, made = folder / f"{name}.c", folder / f"{name}.so"
    source.write_text(text)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", made, source, "-ldl"], check=True)
    return str(made)


class Ending(PythonCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.made = cls.folder / "ending"
        cls.made.mkdir()
        cls.slow_exit = library(cls.made, "slow_exit", SLOW_EXIT)
        cls.slow_reads = library(cls.made, "slow_reads", SLOW_READS)
        cls.addClassCleanup(os.chdir, os.getcwd())
        os.chdir(cls.made)
        shutil.copy(cls.pipeline, "small.yaml")
        for kind in ("files", "tar", "manifest"):
            pathlib.Path(f"{kind}.yaml").write_text(RAW % kind)
        os.mkdir("many")
        for i in range(750):
            pathlib.Path(f"many/{i}.bin").write_bytes(b"x")
        pathlib.Path("list.csv").write_text("path\n" + "".join(f"many/{i}.bin\n" for i in range(750)))
        with open("huge.tar", "wb") as file:  # a broken header, behind which the next one is searched for
            for _ in range(128):
                file.write(b"x" * (1 << 20))
        with presto.Writer("records", shards=2, samples=1000, codec="none", sync=False) as writer:
            for i in range(1000):
                writer.add({"x": np.zeros(20000, np.float32), "label": i})
        os.mkdir("foreign")
        for file in pathlib.Path("records").glob("data*.tfrecord"):
            os.link(file, f"foreign/{file.name}")

    def run_in(self, code, *arguments, preload=None, python=sys.executable):
        environment = dict(os.environ, **({"LD_PRELOAD": preload} if preload else {}))
        return subprocess.run([python, "-B", "-c", code, *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=TIMEOUT_S, env=environment, cwd=self.made)

    # ---- the end of the interpreter ----

    INSIDE = {
        "write": "presto.write(sys.argv[1], f'{t}/o', pipeline='small.yaml', progress=False)",
        "write with a function": "presto.write(sys.argv[1], f'{t}/o', pipeline='small.yaml', progress=lambda p: time.sleep(0.01))",
        "open": "while True:\n        try: presto.open('huge.tar', pipeline='tar.yaml')\n        except Exception: pass",
        "inspect": "while True: presto.inspect('foreign', verify=True)",
        "sweep": "presto.sweep(sys.argv[1], 'small.yaml', progress=False, samples=20)",
        "loader": "for _ in presto.Loader(presto.open(sys.argv[1], pipeline='small.yaml'), 4, epochs=None, threads=2): pass",
        "inline": "for _ in presto.Loader(presto.open(sys.argv[1], pipeline='small.yaml'), 4, epochs=None, threads=0): pass",
        "on_skip": "for _ in presto.Loader('foreign', 4, epochs=None, on_error='skip', on_skip=print): pass",
        "pick": "d = presto.open(sys.argv[1], pipeline='small.yaml')\n    while True: d[[1, 2, 3]]",
        "writer": "w = presto.Writer(f'{t}/o')\n    while True: w.add({'x': bytes(100000)})",
        "a loop that goes on": "d = presto.open(sys.argv[1], pipeline='small.yaml')\n    while True:\n"
                               "        try: d[0]\n        except Exception: pass",
    }

    def test_a_thread_inside_of_a_call_ends_with_the_interpreter(self):
        for name, call in self.INSIDE.items():
            for i in range(int(os.environ.get("PRESTO_TEST_ENDS", 1))):
                code = f"import presto, sys, tempfile, time\nt = tempfile.mkdtemp(dir='.')\ndef work():\n    {call}\n" + IN_A_THREAD
                with self.subTest(name, i=i):
                    done = self.run_in(code, self.make_photos(), self.random.random() * (0.05 if i % 2 else 0.6), preload=self.slow_exit)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_thread_that_ends_may_go_on(self):
        """What was registered before the package comes after its end."""
        code = ("import atexit, sys\ndef last():\n"
                "    with presto.Writer('last') as writer: writer.add({'x': 1})\n"
                "    print(len(presto.open(sys.argv[1])), next(iter(presto.Loader('last'))).rows)\n"
                "atexit.register(last)\nimport presto\n")
        done = self.run_in(code, self.stored)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "24 1\n", ""))

    ALIVE = {
        "Dataset": "kept = presto.open(sys.argv[1])",
        "Loader": "kept = presto.Loader(sys.argv[1], 4); it = iter(kept); batch = next(it)",
        "Loader of files": "kept = presto.Loader(presto.open(sys.argv[2], pipeline='small.yaml'), 4, epochs=None); it = iter(kept); batch = next(it)",
        "Mix": "kept = presto.Loader(presto.mix({sys.argv[1]: 1}), 4, shuffle='full'); it = iter(kept); next(it)",
        "Writer": "kept = presto.Writer('alive-%d' % os.getpid()); kept.add({'x': 1})",
        "npy_stream": "kept = presto.npy_stream([*load, '--format', 'npy', sys.argv[1]]); it = iter(kept); next(it)",
        "npy_stream of a file": "subprocess.run([*load, '--format', 'npy', sys.argv[1]], stdout=open('a.npy', 'wb'), check=True); "
                                "kept = presto.npy_stream('a.npy'); it = iter(kept); next(it)",
        "shm_stream": "kept = presto.shm_stream([*load, '--format', 'shm', sys.argv[1]]); it = iter(kept); batch = next(it)",
        "Pipeline": "kept = presto.Pipeline('small.yaml')",
        "arrow": "import pyarrow; kept = pyarrow.RecordBatchReader.from_stream(presto.Loader(sys.argv[1], 4)); one = next(kept)",
        "torch": "import presto.torch; kept = presto.torch.Loader(sys.argv[1], 4); it = iter(kept); batch = next(it)",
        "torch, unused": "import presto.torch; kept = presto.torch.Loader(sys.argv[1], 4)",
        "torch, ahead": "import presto.torch; kept = presto.torch.Loader(sys.argv[1], 4, device='cpu'); it = iter(kept); batch = next(it)",
        "torch, workers": "import presto.torch, warnings; warnings.simplefilter('ignore'); from torch.utils.data import DataLoader\n"
                          "kept = presto.torch.Loader(sys.argv[1], 4); other = DataLoader(kept, batch_size=None, num_workers=2, "
                          "persistent_workers=True); it = iter(other); batch = next(it)",
        "jax": "import presto.jax; kept = presto.jax.Loader(sys.argv[1], 4); it = iter(kept); batch = next(it)",
        "huggingface": "kept = presto.open(sys.argv[1]).to_iterable_dataset(); it = iter(kept); one = next(it)",
    }
    # Held in ways that outlive the names of modules.
    HOLDERS = ("", "ring = [kept]; ring.append(ring)", "import builtins; builtins.kept = kept", "os.kept = kept",
               "import presto._loader; presto._loader.kept = kept")  # fmt: skip

    def test_nothing_is_said_of_what_is_alive_at_the_end(self):
        load = [str(pathlib.Path(cli.TOOLS) / "presto-load"), "-q", "-b", "4"]
        for i, (name, code) in enumerate(self.ALIVE.items()):
            # A library that takes seconds to be imported comes once: each run of the tests holds what it makes in another way.
            once = any(library in name for library in ("arrow", "torch", "jax", "huggingface"))
            for holder in {self.random.choice(self.HOLDERS)} if once else {"", self.HOLDERS[1 + i % (len(self.HOLDERS) - 1)]}:
                with self.subTest(name, holder=holder):
                    done = self.run_in(f"import os, presto, subprocess, sys, threading\nload = {load!r}\n{code}\n{holder}\n",
                                       self.stored, self.make_photos(), python=TORCH_PYTHON if "torch" in name else sys.executable)
                    if "No module named" in done.stderr:
                        continue
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertNotIn("Exception ignored", done.stderr)
                    self.assertNotIn("Traceback", done.stderr)

    # ---- Ctrl-C ----

    CALLS = {
        "open tar": "presto.open('huge.tar', pipeline='tar.yaml')",
        "open folder": "presto.open('many', pipeline='files.yaml')",
        "open folder in parts": "presto.open('many', pipeline='files.yaml', split='50/50', part='1')",
        "open manifest": "presto.open('list.csv', pipeline='manifest.yaml')",
        "len": "d = presto.open('foreign'); print('ready', flush=True); len(d)",
        "split": "d = presto.open('foreign'); print('ready', flush=True); d.split('90/10')",
        "sample": "d = presto.open('foreign'); print('ready', flush=True); d[999]",
        "loader": "for _ in presto.Loader('foreign', 4, shuffle='full'): pass",
        "loader of a rank": "for _ in presto.Loader('foreign', 4, rank=0, world=2): pass",
        "loader's length": "l = presto.Loader('foreign', 4); print('ready', flush=True); len(l)",
        "state": "l = presto.Loader('foreign', 4, shuffle='full'); print('ready', flush=True); l.state_dict()",
        "mix": "presto.Loader(presto.mix({'foreign': 1}), 4, shuffle='full')",
        "inspect": "presto.inspect('foreign')",
        "verify": "presto.inspect('foreign', verify=True)",
        "write": "presto.write('many', 'w%d' % os.getpid(), pipeline='files.yaml')",
        "write records": "presto.write('foreign', 'v%d' % os.getpid())",
        "sweep": "presto.sweep('many', 'files.yaml', progress=False)",
        "sweep of a tar": "presto.sweep('huge.tar', 'tar.yaml', progress=False)",
    }

    def test_ctrl_c_ends_every_call(self):
        if self.slow_reads is None:
            self.skipTest("there is no compiler")
        for name, call in self.CALLS.items():
            with self.subTest(name):
                code = f"import os, presto, signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n{SLOW}print('begun', flush=True)\n{call}\n"
                with subprocess.Popen([sys.executable, "-B", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      cwd=self.made, env=dict(os.environ, LD_PRELOAD=self.slow_reads)) as running:
                    for line in ("begun", "ready")[: 1 + ("ready" in call)]:
                        self.assertEqual(running.stdout.readline().strip(), line)
                    time.sleep(0.4)
                    self.assertIsNone(running.poll(), f"{name} is too fast to be interrupted")
                    begun = time.monotonic()
                    running.send_signal(signal.SIGINT)
                    _, told = running.communicate(timeout=TIMEOUT_S)
                    self.assertIn("KeyboardInterrupt", told)
                    self.assertLess(time.monotonic() - begun, 5)

    def test_a_dataset_whose_count_was_interrupted_goes_on(self):
        code = ("import os, presto, signal, threading, time\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n" + SLOW +
                "d = presto.open('foreign')\nthreading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
                "try:\n    len(d); print('whole')\nexcept KeyboardInterrupt:\n    print('interrupted')\nslow.value = 0\n"
                "print(len(d), int(d[999]['label']))\n")
        done = self.run_in(code, preload=self.slow_reads)
        self.assertEqual(done.stdout, "interrupted\n1000 999\n", done.stderr)

    def test_a_program_that_sweeps_ends_at_the_first_signal(self):
        for pipeline, source in (("tar.yaml", "huge.tar"), ("files.yaml", "many")):
            command = [str(pathlib.Path(cli.TOOLS) / "presto-sweep"), "-q", "-p", pipeline, "-o", f"s-{pipeline}", source]
            with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=self.made,
                                  env=dict(os.environ, LD_PRELOAD=self.slow_reads or "", READS_ARE_SLOW="1")) as running:
                time.sleep(0.5)
                self.assertIsNone(running.poll())
                begun = time.monotonic()
                running.terminate()
                running.communicate(timeout=TIMEOUT_S)
                self.assertEqual(running.returncode, -signal.SIGTERM)
                self.assertLess(time.monotonic() - begun, 5)


if __name__ == "__main__":
    main()
