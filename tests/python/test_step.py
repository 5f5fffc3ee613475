#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto.step of functions of a program: what they use is taken along as it is; what they start and leave harms nobody."""
import subprocess
import sys

from case import TIMEOUT_S, PythonCase, main

HEAD = """
import collections, math, subprocess, sys, time
import numpy as np
import presto

def made(function, **options):
    step = presto.step(function, output="uint8[?,?,3]", yields="z", workers=1, **options)
    return presto.open(sys.argv[1], pipeline=presto.Pipeline("cv").after("decoded", step), to="z")
"""


class Step(PythonCase):
    def run_script(self, code):
        """As a file: the sources of its functions are there."""
        path = self.new("script").with_suffix(".py")
        path.write_text(HEAD + code)
        done = subprocess.run([sys.executable, "-B", path, self.make_photos()], capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_what_a_function_uses_is_the_same_there(self):
        out = self.run_script("""
SCALE, LOW = float("inf"), -float("inf")
NOT = float("nan")
NESTED = {"a": [1, (2.5, float("inf")), ()], "b": (b"x",)}
Size = collections.namedtuple("Size", "h w")
SIZE = Size(8, 8)
ORDERED = collections.OrderedDict(a=1)
mean = np.zeros(3)          # not what x.mean is
def infinite(x): return np.minimum(x[::8, ::8], SCALE).astype(np.uint8) * (LOW < 0) * np.uint8(math.isnan(NOT))
def nested(x):
    assert NESTED == {"a": [1, (2.5, math.inf), ()], "b": (b"x",)}
    return x[::8, ::8]
def method(x): return (x[::8, ::8] - x.mean() * 0).astype(np.uint8)
def named(x): return x[:: SIZE.h]
def ordered(x): return x[:: ORDERED["a"]]
if True:
    @(lambda given: given)
    def indented(x):
        text = '''
        8'''
        return np.full((4, 4, 3), len(text), np.uint8)
if __name__ == "__main__":
    for function in (infinite, nested, method):
        assert made(function)[0]["image"].any(), function
    assert made(indented)[0]["image"].max() == len("\\n        8")
    for function, name in ((named, "SIZE, a Size"), (ordered, "ORDERED, a OrderedDict")):
        try:
            made(function)
        except presto.StepError as error:
            assert name in str(error), error
        else:
            raise AssertionError(name)
    print("done")
""")
        self.assertEqual(out, "done\n")

    def test_programs_that_a_step_starts_read_no_requests(self):
        out = self.run_script("""
def through_cat(x):
    subprocess.run(["cat"], stdout=subprocess.DEVNULL)
    return x[::8, ::8]
def some(x):
    assert sys.stdin.read() == ""
    return x[::8, ::8]
if __name__ == "__main__":
    for function in (through_cat, some):
        print(sum(batch.rows for batch in presto.Loader(made(function, timeout=20, start_timeout=20), batch=4, threads=2)))
""")
        self.assertEqual(out, "24\n24\n")

    def test_a_traceback_belongs_to_its_failure(self):
        out = self.run_script("""
def late(x, key):
    if not key.endswith(b"00000.jpg"):
        raise ValueError("old failure")
    return x
def notes(error): return "".join(getattr(error, "__notes__", []))
if __name__ == "__main__":
    data = made(late, features=["key"])
    other = made(late, features=["key"], timeout=30)
    loader = presto.Loader(data, batch=1, threads=2)
    next(iter(loader))
    time.sleep(2)
    try:
        presto.open("/dev/null")
    except presto.Error as error:
        assert "old failure" not in notes(error), notes(error)
    loader.close()
    try:
        other[1]
    except presto.StorageError as error:
        assert notes(error).count("Traceback") == 1, notes(error)
        print("done")
""")
        self.assertEqual(out, "done\n")


if __name__ == "__main__":
    main()
