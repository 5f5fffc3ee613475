#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Repeats the same sweep and counts how often it recommends the same, or says that it is undecided.

A sweep should be called decided only if repeated sweeps would agree. Usage:
repeat.py PRESTO_SWEEP TIMES WORK_DIR [OPTIONS OF PRESTO-SWEEP] SOURCE...
"""
import collections
import json
import pathlib
import shutil
import subprocess
import sys


def name(strategy):
    return f"{strategy['split']}, {strategy['codec'] or '-'}, {strategy['threads']} thr"


def repeat(program, work, arguments):
    """One sweep's recommendation, whether it is decided, and the reason's sentence about that."""
    shutil.rmtree(work, ignore_errors=True)
    done = subprocess.run([program, "-q", "--json", "-o", work, *arguments], stdout=subprocess.PIPE, check=True)
    results = json.loads(done.stdout)
    reason = results["recommendation"]["reason"]
    said = [part for part in ("Decided", "Undecided") if part in reason]
    sentence = reason[reason.index(said[0]):].split(" Mind that")[0] if said else "no other is near"
    return results, sentence


def main():
    program, times, work, arguments = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4:]
    decided, undecided = collections.Counter(), collections.Counter()
    for number in range(times):
        results, sentence = repeat(program, work, arguments)
        best, sure = name(results["recommendation"]), results["confidence"]
        (decided if sure["is_decided"] else undecided)[best] += 1
        print(f"{number + 1:3} {best:32} {'decided' if sure['is_decided'] else 'undecided':9} {sure['rounds']:2} rounds, "
              f"{results['elapsed_s']:.0f} s. {sentence}", flush=True)
    agree = max(decided.values(), default=0) + sum(undecided.values())
    print(f"{agree} of {times} agree ({dict(decided)}) or are undecided ({dict(undecided)})")


if __name__ == "__main__":
    main()
