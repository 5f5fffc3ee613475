#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every benchmark runs, as small as it goes, and bench/run makes the page of their figures: each table of the template is
# there, with numbers. No figure is looked at. foreign.py needs more packages than the tests have, so its tables stay empty.
# Usage: bench.sh ROOT BUILD_DIR
set -euo pipefail
root=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

programs=(bench_loader bench_raw bench_images bench_convert bench_records bench_steps threads.py)
"$root/bench/run" --quick --build "$build" --work "$work" --keep "$work/figures" -o "$work/page.md" "${programs[@]}"
tables=$(grep '^{{figures ' "$root/bench/bench.md.in" | grep -vc 'figures foreign\.')
filled=$(($(grep -c '^| --- ' "$work/page.md") - $(grep -c '^| --- ' "$root/bench/bench.md.in")))
if grep -n '{{' "$work/page.md" || [ "$tables" -lt 10 ] || [ "$filled" -ne "$tables" ]; then
    echo "bench.sh: $tables tables in the template, $filled in the page" >&2
    exit 1
fi
for program in "${programs[@]}"; do
    grep -qE "^\`$program .*\`, [0-9]{4}-[0-9]{2}-[0-9]{2}, .* CPUs, .*:$" "$work/page.md"
done
# The kept figures give the same page again; without one table's figures it says so.
"$root/bench/run" --figures "$work/figures" -o "$work/again.md"
cmp "$work/page.md" "$work/again.md"
grep -v '"loader.clock"' "$work/figures" > "$work/fewer"
"$root/bench/run" --figures "$work/fewer" -o "$work/fewer.md"
if [ "$(grep -c 'Not measured yet' "$work/page.md")" -ge "$(grep -c 'Not measured yet' "$work/fewer.md")" ]; then
    echo "bench.sh: a table without figures is not told" >&2
    exit 1
fi
# What is measured again replaces its own figures, and no other.
"$root/bench/run" --quick --build "$build" --work "$work" --keep "$work/figures" -o "$work/page.md" bench_raw
"$root/bench/run" --figures "$work/figures" -o "$work/again.md"
[ "$(grep -c '"program"' "$work/figures")" -eq "${#programs[@]}" ]
[ "$(grep -c '^| --- ' "$work/page.md")" -eq "$(grep -c '^| --- ' "$work/again.md")" ]
