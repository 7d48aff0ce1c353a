"""The peer of `taut bench gpu`: the same work in PyTorch on the device.  Says "ready", then answers every line with the seconds
that one piece of the work took: the median of several rounds, each timed by events.

    product M N K fp32|tf32|bf16|fp64     copy LEN     gelu LEN     normalise ROWS D     adamw LEN     newton SIDE tf32|bf16
    attention N HEADS DH fp32|tf32        plash N HEADS DH GROUPS SIZE fp32|tf32        attlip N WIDTH HEADS        measure N WIDTH HEADS
    train VOCAB WIDTH DEPTH HEADS CONTEXT BATCH tf32|bf16        a compiled step"""
import statistics
import sys

import torch
import torch.nn.functional as F
from torch import nn


def seconds(work, rounds=7, inner=10):
    for _ in range(3):
        work()
    times = []
    for _ in range(rounds):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(inner):
            work()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1e3 / inner)
    return statistics.median(times)


def precision(how):
    torch.backends.cuda.matmul.allow_tf32 = how == "tf32"
    return {"bf16": torch.bfloat16, "fp64": torch.float64}.get(how, torch.float32)


def product(m, n, k, how):
    dtype = precision(how)
    a, b = (torch.randn(*s, device="cuda").to(dtype) for s in ((int(m), int(k)), (int(k), int(n))))
    return seconds(lambda: a @ b)


def copy(length):
    x = torch.randn(int(length), device="cuda")
    y = torch.empty_like(x)
    return seconds(lambda: y.copy_(x))


def gelu(length):
    x = torch.randn(int(length), device="cuda")
    return seconds(lambda: F.gelu(x))


def normalise(rows, d):
    x = torch.randn(int(rows), int(d), device="cuda")
    return seconds(lambda: F.layer_norm(x, (int(d),)))


def adamw(length):
    w = torch.randn(int(length), device="cuda", requires_grad=True)
    w.grad = torch.randn_like(w)
    adam = torch.optim.AdamW([w], lr=1e-3, fused=True)
    return seconds(adam.step)


def newton(side, how):
    dtype = precision(how)
    x = torch.randn(int(side), int(side), device="cuda").to(dtype)
    x = x / x.norm()

    def five():
        y = x
        for _ in range(5):
            g = y @ y.T
            y = 3.4445 * y + (-4.7750 * g + 2.0315 * g @ g) @ y
        return y

    return seconds(five, inner=2)


def attention(n, heads, dh, how):
    precision(how)
    q, k, v = (torch.randn(1, int(heads), int(n), int(dh), device="cuda") for _ in range(3))
    return seconds(lambda: F.scaled_dot_product_attention(q, k, v), inner=3)


def plash(n, heads, dh, groups, size, how):
    """Keys and values into GROUPS representatives, sketches of degree 1 and 2 with SIZE buckets mixed among them, softmax over them."""
    precision(how)
    n, heads, dh, groups, size = map(int, (n, heads, dh, groups, size))
    width = heads * dh
    q, k, v = (torch.randn(heads, n, dh, device="cuda") for _ in range(3))
    p = torch.randn(heads, groups, dh, device="cuda")
    w = [torch.randn(*s, device="cuda") / s[1] ** 0.5 for s in ((size, 2 * width), (size, 2 * width), (size, 2 * width))]
    out = torch.randn(2 * size, width, device="cuda") / size**0.5
    hidden, back = torch.randn(width, 2 * width, device="cuda") / width**0.5, torch.randn(2 * width, width, device="cuda") / width**0.5

    def layer():
        a = (k @ p.transpose(1, 2) * dh**-0.5).softmax(-1).transpose(1, 2)
        kt, vt = a @ k, a @ v
        both = F.normalize(torch.cat([kt, vt], -1).transpose(0, 1).reshape(groups, -1), dim=-1)
        one = both @ w[0].t()
        two = torch.fft.irfft(torch.fft.rfft(both @ w[1].t()) * torch.fft.rfft(both @ w[2].t()), n=size)
        mid = torch.cat([one, two], -1) @ out
        mid = mid + F.gelu(F.layer_norm(mid, (width,)) @ hidden) @ back
        vt = mid.view(groups, heads, dh).transpose(0, 1)
        return (q @ kt.transpose(1, 2) * dh**-0.5).softmax(-1) @ vt

    return seconds(layer)


def attlip(n, width, heads):
    """The paper's 20 steps with Armijo's rule."""
    precision("fp32")
    n, width, heads = int(n), int(width), int(heads)
    dh = width // heads
    scale = dh**-0.5
    x, w = torch.randn(n, width, device="cuda"), torch.randn(heads, dh, width, device="cuda") / width**0.5

    def scores(y):
        u = torch.einsum("nd,hed->hne", y, w)
        square = (u * u).sum(-1)
        return u, scale * (square[:, :, None] + square[:, None, :] + 2 * u @ u.transpose(1, 2))

    def value(y):
        return 0.5 * scores(y)[1].logsumexp(-1).sum() + ((y - x) ** 2).sum() / 2

    def solve():
        y = x
        for _ in range(20):
            u, s = scores(y)
            a = s.softmax(-1)
            g = scale * ((1 + a.sum(1))[:, :, None] * u + a @ u + a.transpose(1, 2) @ u)
            g = torch.einsum("hne,hed->nd", g, w) + y - x
            start, size, rate = value(y), (g * g).sum(), 1.0
            for _ in range(20):
                if value(y - rate * g) <= start - 1e-4 * rate * size:
                    break
                rate *= 0.5
            y = y - rate * g
        return y

    return seconds(solve, rounds=3, inner=1)


def measure(n, width, heads):
    """J^T J u of an attention layer, in double."""
    n, width, heads = int(n), int(width), int(heads)
    w = [0.02 * torch.randn(width, width, device="cuda", dtype=torch.float64) for _ in range(4)]
    x, u = (torch.randn(n, width, device="cuda", dtype=torch.float64) for _ in range(2))

    def layer(z):
        q, k, v = ((z @ m.t()).view(n, heads, width // heads).transpose(0, 1) for m in w[:3])
        p = (q @ k.transpose(1, 2) / (width // heads) ** 0.5).softmax(-1)
        return (p @ v).transpose(0, 1).reshape(n, width) @ w[3].t()

    def product():
        _, ju = torch.func.jvp(layer, (x,), (u,))
        return torch.func.vjp(layer, x)[1](ju)[0]

    return seconds(product, inner=3)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = (z.view(n, t, self.heads, d // self.heads).transpose(1, 2) for z in self.qkv(self.norm1(x)).split(d, 2))
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(o.transpose(1, 2).reshape(n, t, d))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, vocab, width, depth, heads, context):
        super().__init__()
        self.embed, self.pos = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids, target):
        x = self.norm(self.blocks(self.embed(ids) + self.pos.weight))
        return F.cross_entropy((x @ self.embed.weight.t()).flatten(0, 1), target.flatten())


def train(vocab, width, depth, heads, context, batch, how):
    """The better of two ways to compile: one records CUDA graphs."""
    precision("tf32")
    vocab, width, depth, heads, context, batch = map(int, (vocab, width, depth, heads, context, batch))
    ids = torch.randint(vocab, (batch, context + 1), device="cuda")

    def compiled(mode):
        model = GPT(vocab, width, depth, heads, context).cuda()
        fast = torch.compile(model, mode=mode)
        adam = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), fused=True)

        def step():
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=how == "bf16"):
                loss = fast(ids[:, :-1], ids[:, 1:])
            adam.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            adam.step()

        return seconds(step, rounds=5, inner=5)

    return min(compiled("default"), compiled("reduce-overhead"))


def main():
    if not torch.cuda.is_available():
        return
    print("ready", flush=True)
    for line in sys.stdin:
        name, *args = line.split()
        print(globals()[name](*args), flush=True)
        torch.cuda.empty_cache()


main()
