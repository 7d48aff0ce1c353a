"""The peer of `taut bench attlip`: the paper's solver, 20 steps of descent with Armijo's rule, in PyTorch.
Usage: attlip_torch.py THREADS WIDTH HEADS.

Says "ready", then for every line with a number of tokens behind "forward" or "both" answers the seconds of a pass
forward, or of one and of the way back through its steps.  The gradient is the right one, with the paper's own products.  Above 256 tokens the backward
pass keeps one step at a time (checkpoints): 20 steps of N x N matrices would not fit."""
import sys
import time

import torch
from torch.utils.checkpoint import checkpoint

THREADS, WIDTH, HEADS = (int(a) for a in sys.argv[1:4])
STEPS, HALVINGS, ETA = 20, 20, 1.0
HEAD = WIDTH // HEADS
SCALE = HEAD**-0.5


def scores(y, w):
    v = torch.einsum("nd,hed->hne", y, w)
    square = (v * v).sum(-1)
    return v, SCALE * (square[:, :, None] + square[:, None, :] + 2 * v @ v.transpose(1, 2))


def phi(y, x, w):
    return 0.5 * scores(y, w)[1].logsumexp(-1).sum() + ((y - x) ** 2).sum() / (2 * ETA)


def gradient(y, x, w):
    v, s = scores(y, w)
    a = s.softmax(-1)
    column = a.sum(1)
    g = SCALE * ((1 + column)[:, :, None] * v + a @ v + a.transpose(1, 2) @ v)
    return torch.einsum("hne,hed->nd", g, w) + (y - x) / ETA


def step(y, x, w):
    g = gradient(y, x, w)
    with torch.no_grad():
        start, size, rate = phi(y, x, w), (g * g).sum(), 1.0
        for _ in range(HALVINGS):
            if phi(y - rate * g, x, w) <= start - 1e-4 * rate * size:
                break
            rate *= 0.5
    return y - rate * g


def solve(x, w, saving):
    y = x
    for _ in range(STEPS):
        y = checkpoint(step, y, x, w, use_reentrant=False) if saving else step(y, x, w)
    return y


def main():
    torch.set_num_threads(THREADS)
    torch.manual_seed(1)
    w = (torch.randn(HEADS, HEAD, WIDTH) / WIDTH**0.5).requires_grad_()
    print("ready", flush=True)
    for line in sys.stdin:
        what, n = line.split()
        x = torch.randn(int(n), WIDTH, requires_grad=True)
        begin = time.perf_counter()
        if what == "both":
            y = solve(x, w, int(n) > 256)
            y.backward(torch.ones_like(y))
        else:
            with torch.no_grad():
                solve(x, w, False)
        print(time.perf_counter() - begin, flush=True)
        w.grad = None


main()
