#!/usr/bin/env python3
"""Writes tests/golden/onnx/: a small ViT under the names of VNN-COMP 2023's, and what it answers.

    python3 tools/dump_onnx.py                 from the repository's root; needs PyTorch and onnx, the tests do not

vit.onnx holds random weights and the nodes that name its matrices (not a whole graph: nobody runs it); recipe.ini says what
they are meant for; expected.safetensors holds pixels (n, height, width, channel) in [0, 1] and the logits, computed here in
float64 with BatchNorm as it is written, not folded.
"""
import os
import sys

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import helper, numpy_helper

sys.path.insert(0, os.path.dirname(__file__))
from dump_reference import write_safetensors  # noqa: E402

FOLDER, WIDTH, HEADS, MLP, DEPTH, SIDE, PATCH, CLASSES = "tests/golden/onnx/", 8, 2, 10, 2, 4, 2, 3
EPS = float(np.float32(1e-5))


def main():
    os.makedirs(FOLDER, exist_ok=True)
    gen, weights, nodes = torch.Generator().manual_seed(8), {}, []

    def make(name, *shape, positive=False):
        x = 0.4 * torch.randn(shape, generator=gen)
        weights[name] = (x.abs() + 0.3 if positive else x).float()
        return weights[name].double()

    def matrix(path, n_in, n_out):
        """Nameless, as exporters leave a transposed weight; the node's output says which it is."""
        name = f"onnx::MatMul_{200 + len(nodes)}"
        nodes.append(helper.make_node("MatMul", [path + "_in", name], [path + "/MatMul_output_0"]))
        return make(name, n_in, n_out)

    def norm(path, x):
        g, b, mean, var = (make(path + k, WIDTH, positive=k == "running_var")
                           for k in ("weight", "bias", "running_mean", "running_var"))
        return (x - mean) / torch.sqrt(var + EPS) * g + b

    pixels = torch.rand(2, SIDE, SIDE, 3, generator=gen).double()
    x = F.conv2d(pixels.permute(0, 3, 1, 2) / 0.5 - 1, make("0.projection.weight", WIDTH, 3, PATCH, PATCH),
                 make("0.projection.bias", WIDTH), stride=PATCH).flatten(2).transpose(1, 2)
    x = torch.cat([make("0.cls_token", WIDTH).expand(2, 1, WIDTH), x], 1)
    x = x + make("0.positions", x.shape[1], WIDTH)
    for i in range(DEPTH):
        a, m = f"/1/1.{i}/1.{i}.0/fn/fn.1/", f"/1/1.{i}/1.{i}.1/fn/fn.1/"
        z = norm(f"1.{i}.0.fn.0.norm.", x)
        q, k, v = ((z @ matrix(a + n, WIDTH, WIDTH) + make(f"1.{i}.0.fn.1.{n}.bias", WIDTH))
                   .unflatten(-1, (HEADS, -1)).transpose(1, 2) for n in ("query", "key", "value"))
        o = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + o @ matrix(a + "out", WIDTH, WIDTH) + make(f"1.{i}.0.fn.1.out.bias", WIDTH)
        z = norm(f"1.{i}.1.fn.0.norm.", x)
        z = F.relu(z @ matrix(m + "fn.1.0", WIDTH, MLP) + make(f"1.{i}.1.fn.1.0.bias", MLP))
        x = x + z @ matrix(m + "fn.1.3", MLP, WIDTH) + make(f"1.{i}.1.fn.1.3.bias", WIDTH)
    logits = norm("2.1.", x.mean(1)) @ make("2.2.weight", CLASSES, WIDTH).T + make("2.2.bias", CLASSES)
    graph = helper.make_graph(nodes, "vit", [], [], [numpy_helper.from_array(v.numpy(), k) for k, v in weights.items()])
    onnx.save(helper.make_model(graph), FOLDER + "vit.onnx")
    write_safetensors(FOLDER + "expected.safetensors", {"pixels": ("F64", pixels), "logits": ("F64", logits)}, {})
    with open(FOLDER + "recipe.ini", "w") as f:
        f.write(f"[model]\narch = vit\nimage_height = {SIDE}\nimage_width = {SIDE}\nimage_channels = 3\npixel_mean = 0.5\n"
                f"pixel_std = 0.5\nclasses = {CLASSES}\npatch = {PATCH}\npool = mean\nclass_token = true\nwidth = {WIDTH}\n"
                f"depth = {DEPTH}\nheads = {HEADS}\nmlp = {MLP}\nnorm = none\nactivation = relu\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
