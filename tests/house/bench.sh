#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every benchmark runs, as small as it goes, in a work folder that does not exist yet. No figure is looked at.
# Usage: bench.sh BENCH_DIR PHOTOS_PROGRAM
set -euo pipefail
bench=$1 photos=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$photos" -q -n 4 -c 2 -o "$work/photos"
"$bench/bench_images" -n 4 -t 1 -r 1 -w "$work/images/new" "$work/photos"
"$bench/bench_loader" -m 32 -r 1 -s 100 -w "$work/loader/new"
"$bench/bench_convert" -m 1 -r 1 -s 100 -w "$work/convert/new"
"$bench/bench_records" -m 1 -r 1 -w parse -d "$work/records/new"
ls -d "$work"/{images,loader,convert,records}/new
