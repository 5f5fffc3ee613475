#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cmake --install puts headers, library and programs in place; the programs run, and the C API's examples build against the
# library, shared and static, knowing nothing but pkg-config. All of that again after the installation was moved.
# Usage: install.sh BUILD_DIR EXAMPLE.c CC
set -euo pipefail
build=$1 example=$2 cc=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

check_programs() {
    local prefix=$1 data=$2 program
    for program in presto-write presto-load presto-sweep presto-inspect presto-make-photos; do
        "$prefix/bin/$program" --version | grep -qx "$program (Presto) [0-9.]*"
        grep -q "^\.Nd " "$prefix/share/man/man1/$program.1"
        grep -q "^complete .* $program$" "$prefix/share/bash-completion/completions/$program"
        grep -q "^#compdef $program$" "$prefix/share/zsh/site-functions/_$program"
        grep -q "^complete -c $program " "$prefix/share/fish/vendor_completions.d/$program.fish"
    done
    grep -q "^\.Nd " "$prefix/share/man/man7/presto.7"
    grep -q "^\.Nd " "$prefix/share/man/man5/presto-dataset.5"
    mkdir "$data"
    "$prefix/bin/presto-make-photos" -q -n 20 -c 2 --width 300 --height 260 -o "$data/photos"
    "$prefix/bin/presto-write" --quiet -p cv -o "$data/dataset" "$data/photos"
    "$prefix/bin/presto-inspect" verify "$data/dataset" >/dev/null
}

# Nothing names the prefix but the place where presto.pc was found.
check_library() {
    local prefix=$1 data=$2 flags libdir version
    PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name presto.pc)")
    export PKG_CONFIG_PATH
    libdir=$(pkg-config --variable=libdir presto)
    read -ra flags <<<"$(pkg-config --cflags --libs presto)"
    "$cc" -std=c11 -Wall -Werror "$example" -o "$data/stream" "${flags[@]}"
    LD_LIBRARY_PATH=$libdir "$data/stream" "$data/dataset" | tee "$data/out"
    [[ $(wc -l <"$data/out") == 4 ]] # three batches, the last once more
    # Until 1.0, a library of another second number is not taken.
    version=$(pkg-config --modversion presto)
    LD_LIBRARY_PATH=$libdir ldd "$data/stream" | grep -F "libpresto.so.${version%.*} => $libdir/libpresto.so"

    mkdir "$data/shared"
    mv "$libdir"/libpresto.so* "$data/shared"
    read -ra flags <<<"$(pkg-config --static --cflags --libs presto)"
    "$cc" -std=c11 "$example" -o "$data/stream" "${flags[@]}"
    "$data/stream" "$data/dataset" | cmp - "$data/out"
    mv "$data/shared"/libpresto.so* "$libdir"
}

# The reader of a ring, in another process than its writer.
check_ring() {
    local prefix=$1 data=$2 flags
    PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name presto.pc)")
    export PKG_CONFIG_PATH
    read -ra flags <<<"$(pkg-config --cflags --libs presto)"
    "$cc" -std=c11 -Wall -Werror "$(dirname "$example")/shm_reader.c" -o "$data/shm_reader" "${flags[@]}"
    "$prefix/bin/presto-load" --quiet --format "shm:$data/socket" "$data/dataset" &
    LD_LIBRARY_PATH=$(pkg-config --variable=libdir presto) "$data/shm_reader" "$data/socket" >"$data/found"
    wait $!
    grep -qx '20 samples, mean -\?[0-9.]*' "$data/found"
    [[ ! -e $data/socket ]]
}

# A plugin, built with nothing but what is installed. Without consent its step does not run.
check_plugin() {
    local prefix=$1 data=$2 plugin
    plugin=$(dirname "$example")/plugin
    cmake -S "$plugin" -B "$data/plugin" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" >"$data/log" 2>&1 &&
        cmake --build "$data/plugin" >>"$data/log" 2>&1 || { cat "$data/log"; return 1; }
    "$prefix/bin/presto-write" --quiet --plugin "$data/plugin/invert.so" -p "$plugin/invert.yaml" -u resized -o "$data/ours" "$data/photos"
    "$prefix/bin/presto-load" --quiet --format null --plugin "$data/plugin/invert.so" "$data/ours"
    if "$prefix/bin/presto-load" --quiet --format null "$data/ours" 2>"$data/log"; then return 1; fi
    grep -q 'unknown step .invert.\|step invert' "$data/log"
}

cmake --install "$build" --prefix "$work/first" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
mkdir "$work/elsewhere"
for prefix in "$work/first" "$work/elsewhere/moved"; do
    [[ -d $prefix ]] || mv "$work/first" "$prefix"
    echo "== $prefix"
    check_programs "$prefix" "$prefix.data"
    check_library "$prefix" "$prefix.data"
    check_ring "$prefix" "$prefix.data"
    check_plugin "$prefix" "$prefix.data"
done
