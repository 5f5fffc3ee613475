#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""results.json is what docs/results.schema.json says, by the reference validator of JSON Schema.

Usage: results_schema.py TOOLS_DIR SCHEMA
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import jsonschema

TOOLS, SCHEMA = pathlib.Path(sys.argv[1]), json.loads(pathlib.Path(sys.argv[2]).read_text())


def sweep(folder, *arguments):
    command = [TOOLS / "presto-sweep", "-q", "-p", "cv", "--samples", "4", "--run-time", "0", "--decide-time", "1", *arguments, "-o",
               folder / "sweep", "--force", "--json", folder / "photos"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command}\nexit {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def main():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    validator = jsonschema.Draft202012Validator(SCHEMA)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([TOOLS / "presto-make-photos", "-q", "-n", "6", "-c", "2", "--width", "300", "--height", "260", "-o",
                        folder / "photos"], check=True)
        for arguments in (["--measure", "--runs", "2", "--codecs", "none,gzip", "--stored", "unprocessed,resized", "--threads", "0,1"],
                          ["--runs", "2", "--codecs", "lz4,gzip", "--stored", "unprocessed,resized", "--threads", "1,64", "--confirm", "1",
                           "--shards", "threads,3"],
                          ["--runs", "1", "--codecs", "none", "--threads", "1", "--target", "1/s"],
                          ["--runs", "1", "--codecs", "none", "--threads", "1", "--price-cpu", "0.04/h", "--epochs", "9"],
                          ["--runs", "1", "--codecs", "none", "--threads", "1", "--max-storage", "300KiB"],
                          ["--runs", "1", "--codecs", "none", "--stored", "resized", "--threads", "1", "--seed", str(2**64 - 1)]):
            results = sweep(folder, *arguments)
            validator.validate(results)
        # What the schema must refuse, so that it says something.
        for spoil in (lambda r: r.update(extra=1), lambda r: r["results"][0].pop("cold"),
                      lambda r: r["results"][0]["cold"]["runs"][0].update(wall_s="long"),
                      lambda r: r["recommendation"].update(limits="perhaps"),
                      lambda r: r["confidence"].pop("is_decided")):
            wrong = json.loads(json.dumps(results))
            spoil(wrong)
            assert not validator.is_valid(wrong)
        failed = json.loads(json.dumps(results))
        failed["results"][0] = {**{k: failed["results"][0][k] for k in ("stored", "codec", "threads", "shards")},
                                "status": "failed", "failure": "no room"}
        validator.validate(failed)


if __name__ == "__main__":
    main()
