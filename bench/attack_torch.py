"""The peer of `taut bench attack`: PGD and AutoAttack standard in PyTorch, from the published definitions, on a ViT that
taut stored.

THREADS: how many, or cuda.

    attack_torch.py THREADS MODEL                       says "ready", then for every line "pgd N" or "aa N" attacks N random
                                                        images with a radius too small to succeed, so that every step is
                                                        made, and answers the seconds
    attack_torch.py THREADS MODEL CIFAR NORM EPS N      clean accuracy and the accuracy after each attack of AutoAttack on
                                                        the first N images of CIFAR's test_batch.bin(.gz): reference figures
"""
import gzip
import json
import math
import struct
import sys
import time

import torch
import torch.nn.functional as F


DEVICE = "cuda" if sys.argv[1] == "cuda" else "cpu"


def load(path):
    with open(path, "rb") as f:
        (size,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(size))
        data = f.read()
    meta = header.pop("__metadata__")
    recipe = dict(line.split(" = ", 1) for line in meta["taut.recipe"].splitlines() if " = " in line)
    read = lambda e: torch.frombuffer(bytearray(data[e["data_offsets"][0]:e["data_offsets"][1]]), dtype=torch.float32).to(DEVICE)
    return recipe, {k: read(e).reshape(e["shape"]) for k, e in header.items()}


class ViT:
    def __init__(self, path):
        r, self.w = load(path)
        self.h, self.width, self.c = (int(r["image_" + k]) for k in ("height", "width", "channels"))
        self.patch, self.heads, self.depth = int(r["patch"]), int(r["heads"]), int(r["depth"])
        stretch = lambda t: torch.tensor([float(v) for v in t.split()] * (self.c if len(t.split()) == 1 else 1))
        self.mean, self.std = stretch(r["pixel_mean"]), stretch(r["pixel_std"])
        self.act = {"gelu": F.gelu, "relu": F.relu}[r["activation"]]
        self.norm, self.eps, self.pool = r["norm"], float(r["norm_eps"]), r["pool"]
        self.dim, self.classes = self.h * self.width * self.c, int(r["classes"])

    def layer_norm(self, x, name):
        if self.norm == "none" or name + ".weight" not in self.w:
            return x
        return F.layer_norm(x, x.shape[-1:], self.w[name + ".weight"], self.w[name + ".bias"], self.eps)

    def linear(self, x, name):
        return F.linear(x, self.w[name + ".weight"], self.w.get(name + ".bias"))

    def __call__(self, x):
        n, p = x.shape[0], self.patch
        x = (x.view(n, self.h, self.width, self.c) - self.mean) / self.std
        x = x.view(n, self.h // p, p, self.width // p, p, self.c).permute(0, 1, 3, 2, 4, 5).reshape(n, -1, p * p * self.c)
        x = self.linear(x, "patch")
        if "cls.weight" in self.w:
            x = torch.cat([self.w["cls.weight"].view(1, 1, -1).expand(n, 1, -1), x], 1)
        x = x + self.w["pos.weight"]
        for i in range(self.depth):
            b = f"block.{i}."
            z, d = self.layer_norm(x, b + "norm1"), x.shape[2]
            q, k, v = (self.linear(z, b + "attn." + s).view(n, -1, self.heads, d // self.heads).transpose(1, 2) for s in "qkv")
            o = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, -1, d)
            x = x + self.linear(o, b + "attn.o")
            x = x + self.linear(self.act(self.linear(self.layer_norm(x, b + "norm2"), b + "mlp.in")), b + "mlp.out")
        x = self.layer_norm(x, "norm")
        return self.linear(x[:, 0] if self.pool == "class" else x.mean(1), "head")


def gradient(model, x, loss):
    x = x.detach().requires_grad_()
    z = model(x)
    value = loss(z)
    (g,) = torch.autograd.grad(value.sum(), x)
    return z.detach(), value.detach(), g


def length(norm, d):
    return d.abs().amax(1, True) if norm == "Linf" else d.norm(dim=1, keepdim=True)


def project(norm, x, y, eps):
    if norm == "Linf":
        return torch.clamp(torch.minimum(torch.maximum(y, x - eps), x + eps), 0, 1)
    d = y - x
    size = length(norm, d)
    return torch.clamp(x + d / (size + 1e-12) * size.clamp(max=eps), 0, 1)


def ascent(norm, g):
    return g.sign() if norm == "Linf" else g / (length(norm, g) + 1e-12)


def pgd(model, norm, x, y, eps, steps=40):
    v = torch.clamp(x + eps * (2 * torch.rand_like(x) - 1), 0, 1)
    broken = torch.zeros(len(x), dtype=torch.bool)
    for _ in range(steps):
        z, _, g = gradient(model, v, lambda z: F.cross_entropy(z, y, reduction="none"))
        broken |= z.argmax(1) != y
        v = project(norm, x, v + 2.5 / steps * eps * ascent(norm, g), eps)
    with torch.no_grad():
        return broken | (model(v).argmax(1) != y)


def targeted_dlr(z, y, t):
    s = z.sort(1).values
    return -(z.gather(1, y[:, None]) - z.gather(1, t[:, None]))[:, 0] / (s[:, -1] - (s[:, -3] + s[:, -4]) / 2 + 1e-12)


def apgd(model, norm, x, y, eps, loss, steps=100):
    d = 2 * torch.rand_like(x) - 1 if norm == "Linf" else torch.randn_like(x)
    v = torch.clamp(x + eps * d / length(norm, d), 0, 1)
    z, value, g = gradient(model, v, loss)
    broken = z.argmax(1) != y
    best, g_best, top, before = v.clone(), g.clone(), value.clone(), value.clone()
    last, old = value.clone(), v.clone()
    step, halved = torch.full((len(x), 1), 2 * eps), torch.ones(len(x), dtype=torch.bool)
    window, since, rises = max(int(0.22 * steps), 1), 0, torch.zeros(len(x))
    for i in range(steps):
        a = 0.75 if i else 1.0
        u = project(norm, x, v + step * ascent(norm, g), eps)
        v, old = project(norm, x, v + a * (u - v) + (1 - a) * (v - old), eps), v
        z, value, g = gradient(model, v, loss)
        broken |= z.argmax(1) != y
        rises += value > last
        last, up = value, value > top
        best[up], g_best[up], top[up] = v[up], g[up], value[up]
        since += 1
        if since < window:
            continue
        now = (rises <= 0.75 * window) | (~halved & (before >= top))
        halved, before = now, top.clone()
        step[now] /= 2
        v, g = torch.where(now[:, None], best, v), torch.where(now[:, None], g_best, g)
        window, since, rises = max(window - max(int(0.03 * steps), 1), max(int(0.06 * steps), 1)), 0, torch.zeros(len(x))
    return broken


def to_plane(norm, x, w, change):
    """The shortest move with w.d = change inside the box, by bisection on its multiplier."""
    way = w.sign() * torch.where(change >= 0, 1.0, -1.0)
    room, a, need = torch.where(way > 0, 1 - x, x), w.abs(), change.abs()
    speed = (a > 0).float() if norm == "Linf" else a
    low, high = torch.zeros_like(need), (room / speed.clamp(min=1e-30)).where(a > 0, 0).amax(1, True)
    for _ in range(30):
        middle = (low + high) / 2
        less = (a * torch.minimum(middle * speed, room)).sum(1, True) < need
        low, high = torch.where(less, middle, low), torch.where(less, high, middle)
    return way * torch.minimum(high * speed, room)


def fab(model, norm, x, y, eps, target, steps=100):
    v, broken = x.clone(), torch.zeros(len(x), dtype=torch.bool)
    for _ in range(steps):
        _, f, w = gradient(model, v, lambda z: (z.gather(1, target[:, None]) - z.gather(1, y[:, None]))[:, 0])
        f = f[:, None]
        both = to_plane(norm, torch.cat([v, x]), torch.cat([w, w]), torch.cat([-f, (w * (v - x)).sum(1, True) - f]))
        d1, d2 = both[:len(x)], both[len(x):]
        s1, s2 = length(norm, d1).clamp(min=1e-8), length(norm, d2).clamp(min=1e-8)
        a = (s1 / (s1 + s2)).clamp(max=0.1)
        v = torch.clamp((1 - a) * (v + 1.05 * d1) + a * (x + 1.05 * d2), 0, 1)
        with torch.no_grad():
            out = model(v).argmax(1) != y
        broken |= out & (length(norm, v - x)[:, 0] <= eps)
        v = torch.where(out[:, None], x + 0.9 * (v - x), v)
    return broken


def square(model, norm, x, y, eps, queries=5000):
    """Linf; each image has its own window."""
    n, h, w, c = len(x), model.h, model.width, model.c
    margin = lambda z: z.gather(1, y[:, None])[:, 0] - z.scatter(1, y[:, None], -math.inf).amax(1)
    with torch.no_grad():
        stripe = torch.randint(0, 2, (n, 1, w, c)) * 2.0 - 1
        best = project(norm, x, (x.view(n, h, w, c) + eps * stripe).view(n, -1), eps)
        least = margin(model(best))
        for query in range(queries):
            p = 0.8 / 2 ** sum(query > k for k in (10, 50, 200, 500, 1000, 2000, 4000, 6000, 8000))
            s = min(max(round(math.sqrt(p * h * w)), 1), h, w)
            top, left = torch.randint(0, h - s + 1, (n, 1)), torch.randint(0, w - s + 1, (n, 1))
            rows, cols = torch.arange(h)[None], torch.arange(w)[None]
            inside = ((rows >= top) & (rows < top + s))[:, :, None] & ((cols >= left) & (cols < left + s))[:, None, :]
            flip = (torch.randint(0, 2, (n, 1, 1, c)) * 2.0 - 1) * 2 * eps * inside[..., None]
            v = project(norm, x, best + flip.reshape(n, -1), eps)
            now = margin(model(v))
            better = (now < least) | (now <= 0)
            best, least = torch.where(better[:, None], v, best), torch.where(better, now, least)
    return least <= 0


def autoattack(model, norm, x, y, eps):
    """Yields the name of each attack and which examples still stand after it."""
    with torch.no_grad():
        ranked = model(x).scatter(1, y[:, None], -math.inf).argsort(1, True)
    stand = torch.ones(len(x), dtype=torch.bool)

    def go(run):
        left = stand.nonzero()[:, 0]
        if len(left):
            stand[left] &= ~run(x[left], y[left], ranked[left])

    go(lambda x, y, r: apgd(model, norm, x, y, eps, lambda z: F.cross_entropy(z, y, reduction="none")))
    yield "APGD-CE", stand
    for t in range(min(9, model.classes - 1)):
        go(lambda x, y, r: apgd(model, norm, x, y, eps, lambda z: targeted_dlr(z, y, r[:, t])))
    yield "APGD-T", stand
    for t in range(min(9, model.classes - 1)):
        go(lambda x, y, r: fab(model, norm, x, y, eps, r[:, t]))
    yield "FAB-T", stand
    if norm == "Linf":
        go(lambda x, y, r: square(model, norm, x, y, eps))
        yield "Square", stand


def reference(model, path, norm, eps, count):
    raw = (gzip.open if path.endswith(".gz") else open)(path, "rb").read()[: count * 3073]
    data = torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(-1, 3073)
    y = data[:, 0].long()
    x = data[:, 1:].view(-1, 3, 1024).transpose(1, 2).reshape(-1, 3072).float() / 255
    with torch.no_grad():
        right = torch.cat([model(part).argmax(1) for part in x.split(500)]) == y
    out = {"n": len(x), "clean_acc": right.float().mean().item(), "eps": eps, "norm": norm}
    for name, stand in autoattack(model, norm, x[right], y[right], eps) if eps > 0 else ():
        out[name] = stand.sum().item() / len(x)
    print(json.dumps(out))


def wait():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def main():
    if DEVICE == "cpu":
        torch.set_num_threads(int(sys.argv[1]))
    torch.set_default_device(DEVICE)
    torch.manual_seed(1)
    model = ViT(sys.argv[2])
    if len(sys.argv) > 3:
        top, _, bottom = sys.argv[5].partition("/")
        reference(model, sys.argv[3], sys.argv[4], float(top) / float(bottom or 1), int(sys.argv[6]))
        return
    print("ready", flush=True)
    for line in sys.stdin:
        kind, count = line.split()
        x = torch.rand(int(count), model.dim)
        with torch.no_grad():
            y = model(x).argmax(1)
        wait()
        start = time.perf_counter()
        if kind == "pgd":
            pgd(model, "Linf", x, y, 1e-7)
        else:
            for _ in autoattack(model, "Linf", x, y, 1e-7):
                pass
        wait()
        print(time.perf_counter() - start, flush=True)


main()
