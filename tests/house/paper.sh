#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# docs/paper.md says what was measured and nothing else: it is what bench/paper makes of the kept figures. Parts that were not
# measured are told. Usage: paper.sh ROOT
set -euo pipefail
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$root/bench/paper" --figures "$root/bench/paper_measured.json" -o "$work/page.md"
diff "$root/docs/paper.md" "$work/page.md"
if grep -n '{{' "$work/page.md"; then
    exit 1
fi
python3 - "$root/bench/paper_measured.json" "$work/fewer.json" <<'PYTHON'
import json
import sys

figures = json.load(open(sys.argv[1]))
for part in set(figures) - {"date", "load", "load_after", "cpus", "machine", "elapsed_s", "pipelines"}:
    del figures[part]
json.dump(figures, open(sys.argv[2], "w"))
PYTHON
"$root/bench/paper" --figures "$work/fewer.json" -o "$work/fewer.md"
[ "$(grep -c 'Not measured yet' "$work/fewer.md")" -eq 4 ]
grep -q 'Not all of it is measured' "$work/fewer.md"
