#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# docs/paper.md says what was measured and nothing else: it is what bench/paper makes of the kept figures. Parts that were not
# measured are told. With BUILD_DIR, bench/paper --quick runs, and its page has all figures. Usage: paper.sh ROOT [BUILD_DIR]
set -euo pipefail
root=$1 build=${2:-}
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
    figures.pop(part)
figures["pipelines"].pop("cv")
json.dump(figures, open(sys.argv[2], "w"))
PYTHON
"$root/bench/paper" --figures "$work/fewer.json" -o "$work/fewer.md"
[ "$(grep -c 'Not measured yet' "$work/fewer.md")" -ge 4 ]
grep -q 'Not all of it is measured' "$work/fewer.md"

if [ -z "$build" ]; then
    exit 0
fi
"$root/bench/paper" --quick --build "$build" --work "$work" --keep "$work/figures.json" -o "$work/quick.md"
"$root/bench/paper" --figures "$work/figures.json" -o "$work/again.md"
cmp "$work/quick.md" "$work/again.md"
python3 "$root/tests/house/paper.py" "$root/bench/paper_figures.json" "$work/quick.md"
