#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The training examples learn the demo corpus, and the statistics are those of NumPy. Usage: train.sh TOOLS_DIR PHOTOS_PROGRAM EXAMPLES_DIR PYTHON
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

# Against NumPy's own figures for all values at once.
for options in "--limit 50" "--skip 50 --features image,label"; do
    # shellcheck disable=SC2086
    "$tools/presto-load" --quiet -b 7 --to resized --format npy $options "$folder/dataset" >"$folder/stream"
    "$python" "$examples/statistics_numpy.py" <"$folder/stream" >"$folder/found"
    PYTHONPATH=$examples "$python" - "$folder/stream" >"$folder/wanted" <<'END'
import sys
import numpy as np
from npy_stream import batches
with open(sys.argv[1], "rb") as stream:
    values = np.concatenate([np.asarray(b["image"]).reshape(-1) for b in batches(stream)])
print(f"{values.size} values from {values.min()} to {values.max()}, mean {values.mean():.6g}, standard deviation {values.std():.6g}")
END
    grep -qF "$(cat "$folder/wanted")" "$folder/found" || { cat "$folder/found" "$folder/wanted" && exit 1; }
done
