#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An augmentation: noise and a square that is cut out (Cutout, DeVries and Taylor 2017). All its random numbers come from
`random`, so a sample gets the same ones whichever process serves it, and a resumed run goes on with the same bytes."""
import numpy as np
import presto_worker


def step(sample):
    rng = np.random.default_rng(sample["random"].view(np.uint64)[0])
    image = sample["value"].astype(np.float32)
    image += rng.normal(0, 0.02, image.shape).astype(np.float32)
    side = min(image.shape[:2]) // 4
    y, x = (rng.integers(0, size - side + 1) for size in image.shape[:2])
    image[y : y + side, x : x + side] = 0
    return image


presto_worker.serve(step)
