#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The training examples learn the demo corpus. Usage: train.sh TOOLS_DIR PHOTOS_PROGRAM EXAMPLES_DIR PYTHON
set -euo pipefail
tools=$1 photos=$2 examples=$3 python=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$photos" -n 600 -o "$folder/photos"
"$tools/presto-write" --quiet -p cv -u resized -c lz4 -o "$folder/dataset" "$folder/photos"
"$tools/presto-load" --quiet -e 2 -b 32 --shuffle full --format npy --features image,label,key "$folder/dataset" |
    "$python" "$examples/train_numpy.py" --least-accuracy 0.5
if "$python" -c 'import torch' 2>/dev/null; then
    "$python" "$examples/train_torch.py" --load "$tools/presto-load" --least-accuracy 0.5 "$folder/dataset"
    "$python" "$examples/train_torch.py" --load "$tools/presto-load" --workers 2 --least-accuracy 0.5 "$folder/dataset"
else
    echo "PyTorch is not installed: train_torch.py not run"
fi
