"""The peer of `taut bench measure`: J^T J u of one attention layer in PyTorch.  Usage: measure_torch.py THREADS WIDTH HEADS.

Says "ready", then for every line "N TIMES KEPT" does that many products on N tokens and answers the seconds they took.
KEPT 0: torch.func.jvp, then torch.func.vjp, each from the function.  KEPT 1: the linearised function and the pullback are
made once, before the clock starts, and only applied."""
import sys
import time

import torch


def main():
    threads, width, heads = (int(a) for a in sys.argv[1:4])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    w = [torch.randn(width, width) * 0.02 for _ in range(4)]
    print("ready", flush=True)

    def layer(x):
        q, k, v = ((x @ m.t()).view(-1, heads, width // heads).transpose(0, 1) for m in w[:3])
        p = (q @ k.transpose(1, 2) / (width // heads) ** 0.5).softmax(-1)
        return (p @ v).transpose(0, 1).reshape(-1, width) @ w[3].t()

    for line in sys.stdin:
        n, times, kept = (int(a) for a in line.split())
        x, u = torch.randn(n, width), torch.randn(n, width)
        if kept:
            pull = torch.func.vjp(layer, x)[1]
            push = torch.func.linearize(layer, x)[1]
        start = time.perf_counter()
        for _ in range(times):
            if kept:
                u = pull(push(u))[0]
            else:
                _, ju = torch.func.jvp(layer, (x,), (u,))
                u = torch.func.vjp(layer, x)[1](ju)[0]
            u = u / u.norm()
        print(time.perf_counter() - start, flush=True)


main()
