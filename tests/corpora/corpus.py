# SPDX-License-Identifier: Apache-2.0
"""What the makers of corpora share."""
import concurrent.futures
import dataclasses
import os
import shutil
import subprocess


class MissingTool(Exception):
    """A program or module that a corpus is made with is not installed."""


@dataclasses.dataclass(frozen=True)
class Size:
    count: int  # samples
    tiny: bool  # small ones, for tests


def tool(name, package):
    """The path of a program that is on the PATH."""
    path = shutil.which(name)
    if path is None:
        raise MissingTool(f"the program {name} is missing; Debian has it in the package {package}")
    return path


def run(command, data=None):
    """stdout of a program; its failure is ours."""
    done = subprocess.run([str(part) for part in command], input=data, capture_output=True)
    if done.returncode != 0:
        raise SystemExit(f"make: {command[0]} failed ({done.returncode}): {done.stderr.decode(errors='replace')[-500:]}")
    return done.stdout


def for_each(work, arguments):
    """work(*a) for all arguments, on all processors; the results in order."""
    with concurrent.futures.ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return [future.result() for future in [pool.submit(work, *a) for a in arguments]]
