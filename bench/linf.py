#!/usr/bin/env python3
"""How far an image that moves by at most 1 in every number can move what leaves a model's patch embedding W.
Usage: bench/linf.py MODEL.safetensors ...

With e in the cube, |W e| is at most sqrt(d) ||W|| (what a radius in l2 over sqrt(d) rests on), at most the root of the sum of the
squares of the rows' l1 norms, and at most sqrt(sum D) ||W D^-1/2|| for any D > 0, here improved from D = I.  Found: the largest
|W e| at a corner, by steps to the corner that W^T W e points to.  All in double, to nearest: a comparison, no proof."""
import json
import struct
import sys

import numpy as np


def patch_embedding(path):
    with open(path, "rb") as file:
        data = file.read()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    for name, entry in json.loads(data[8:start]).items():
        if name in ("patch.weight", "patch_embed.proj.weight"):
            first, last = entry["data_offsets"]
            values = np.frombuffer(data[start + first:start + last], "<f4").astype(float)
            return values.reshape(entry["shape"][0], -1)
    sys.exit(f"{path} has no patch embedding in float32")


def scaled(w, rounds=300):
    """min over D of sqrt(sum D) ||W D^-1/2||, as far as it is found: at the least one D is as the square of the top vector."""
    d, best = np.ones(w.shape[1]), np.inf
    for _ in range(rounds):
        _, size, right = np.linalg.svd(w / np.sqrt(d), full_matrices=False)
        best = min(best, size[0] * np.sqrt(d.sum()))
        d = np.maximum(0.9 * d + 0.1 * right[0] ** 2 * d.sum(), 1e-6 * d.mean())
    return best


def corner(w, starts=50):
    random, best = np.random.default_rng(0), 0.0
    for _ in range(starts):
        e = np.sign(random.standard_normal(w.shape[1]))
        for _ in range(100):
            to = np.where(w.T @ (w @ e) < 0, -1.0, 1.0)
            if (to == e).all():
                break
            e = to
        best = max(best, float(np.linalg.norm(w @ e)))
    return best


for model in sys.argv[1:]:
    W = patch_embedding(model)
    rows = np.sqrt((np.abs(W).sum(1) ** 2).sum())
    print(f"{model}: {W.shape[0]} x {W.shape[1]}  sqrt(d) ||W|| {np.sqrt(W.shape[1]) * np.linalg.norm(W, 2):.4g}  "
          f"rows' l1 {rows:.4g}  scaled {scaled(W):.4g}  found {corner(W):.4g}")
