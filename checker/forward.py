"""The network itself, at one input, in intervals: what comes out holds the value of f in real arithmetic."""
import math

import numpy as np

from attention import alibi_slopes, by_head, eta_of, gains, shares, softmax
from interval import LOOSE, Interval, erf, exp, expm1, interval, least, length, log, sqrt, stack, tanh, wave
from plash import run_plash, run_sketch
from reader import UNKNOWN, need
from rules import scales_of

CUBIC, PI = interval(44715.0) / 1e6, Interval(math.pi, np.nextafter(math.pi, 4))
CURVES = {
    "gelu": lambda x: x * (1 + erf(x / sqrt(2.0))) / 2.0, "silu": lambda x: x / (1 + exp(-x)), "tanh": tanh, "abs": abs,
    "gelu_tanh": lambda x: x * (1 + tanh(sqrt(2 / PI) * (x + CUBIC * x * x * x))) / 2.0, "relu": lambda x: (x + abs(x)) / 2.0,
    "elu": lambda x: Interval(np.where(x.lo > 0, x.lo, expm1(x).lo), np.where(x.lo > 0, x.lo, expm1(x).hi)),
}

def activate(m, x):
    """factor f(x): f at the middle, and no slope is steeper than 2."""
    middle, radius = x.ball()
    return (m.c.get("factor", 1.0)) * (CURVES[m.c["curve"]](interval(middle)) + Interval(-2, 2) * radius)

def rotate(m, v, sign=1.0):
    """RoPE: the features i and i + half of token t turned by t base^(-2i/width)."""
    if not m.c.get("rope"):
        return v
    width, half = v.shape[-1], v.shape[-1] // 2
    angle = np.arange(float(m.t))[:, None] * exp(np.arange(half) * -2.0 / interval(float(width)) * log(m.c["rope"]))
    a, b, cos, sin = v[:, :half], v[:, half:2 * half], wave(np.cos, angle), wave(np.sin, angle) * sign
    return stack([a * cos - b * sin, a * sin + b * cos, v[:, 2 * half:]], 1)

def seen(m):
    """Which keys a query sees."""
    at, first = np.arange(m.t), m.c.get("global", 0)
    blocks = (at - first) // m.c.get("size", m.t)
    near = (at < first) | (at < first)[:, None] | (np.abs(blocks - blocks[:, None]) <= 1)
    return near & (at <= at[:, None]) if m.c["causal"] else near

def attending(m, x, h):
    """Queries, keys and values of a head, as they are turned and normalised, and every key's share of a query."""
    at = np.arange(float(m.t))
    q, k, v = (x @ by_head(m, name + ".weight")[h].T + by_head(m, name + ".bias")[h] for name in "qkv")
    unit = (lambda z: z / sqrt((z * z).sum()[:, None] + m.c["eps"])) if m.rule == "cosattention" else lambda z: z
    q, k, v = unit(rotate(m, q)), unit(rotate(m, k)), unit(v) if m.c.get("values") else v
    logits = q @ k.T * m.c["scale"]
    if m.c.get("alibi"):
        logits = logits - alibi_slopes(m)[h] * np.abs(at[:, None] - at)
    return q, k, v, softmax(logits.each(lambda end: np.where(seen(m), end, -1e300)))

def softmax_attention(m, x):
    heads = []
    for h in range(m.c["heads"]):
        _, _, v, share = attending(m, x, h)
        heads.append(share @ v)
    return m.c["out"] * (stack(heads, 1) @ m.get("o.weight").T) + m.get("o.bias")

def cosformer(m, x):
    at, heads = np.arange(float(m.t)), []
    near = wave(np.cos, PI / 2.0 * (at[:, None] - at) / float(m.c["tokens"]))
    near = Interval(np.maximum(near.lo, 0), near.hi)
    for h in range(m.c["heads"]):
        q, k, v = (x @ by_head(m, name + ".weight")[h].T + by_head(m, name + ".bias")[h] for name in "qkv")
        relu = lambda z: z.each(lambda end: np.maximum(end, 0))
        share = relu(q) @ relu(k).T * near
        share = Interval(np.maximum(share.lo, 0), share.hi)
        whole = share.sum()
        heads.append(share @ v / sqrt(whole * whole + interval(m.c["eps"]) * m.c["eps"])[:, None])
    return m.c["out"] * (stack(heads, 1) @ m.get("o.weight").T) + m.get("o.bias")

def performer(m, x):
    heads, ways, by = [], m.c["directions"].reshape(-1, m.d // m.c["heads"]), sqrt(m.c["scale"])
    for h in range(m.c["heads"]):
        q, k, v = (x @ by_head(m, name + ".weight")[h].T + by_head(m, name + ".bias")[h] for name in "qkv")
        q, k = by * q, by * k
        logits = ways @ k.T - (k * k).sum() / 2.0
        top = logits.hi.max(-1)
        total = top + log(exp(logits - top[:, None]).sum())
        heads.append(softmax(q @ ways.T + total) @ (softmax(logits) @ v))
    return m.c["out"] * (stack(heads, 1) @ m.get("o.weight").T) + m.get("o.bias")

def l2attention(m, x):
    width, heads = float(m.d // m.c["heads"]), []
    for to, value in zip(by_head(m, "q.weight"), by_head(m, "v.weight")):
        q = x @ to.T
        square = (q * q).sum()
        share = softmax((q @ q.T * 2.0 - square - square[:, None]) * (np.float32(2 / np.sqrt(width)) / 2.0))
        heads.append(share @ (q @ to @ value.T / sqrt(width) if m.c["tied"] else x @ value.T))
    return stack(heads, 1) @ m.get("o.weight").T

def posattention(m, x):
    heads = [shares(m, h, m.t) @ (x @ value.T) * gains(m)[h] for h, value in enumerate(by_head(m, "v.weight"))]
    return stack(heads, 1) @ m.get("o.weight").T + m.get("o.bias")

def potential_slope(m, y, s):
    """The gradient of attlip's potential."""
    total, at = 0.0 * y, np.arange(float(m.t))
    for h, to in enumerate(np.split(m.get("weight"), m.c["heads"])):
        v = rotate(m, y @ to.T)
        square, near = (v * v).sum(), exp(interval(-h / 2.0) * log(2.0)) * m.c["near"]
        share = softmax((v @ v.T * 2.0 + square + square[:, None]) * s - near * np.abs(at[:, None] - at))
        bend = (share + share.T) @ v + v * (1 + share.sum(0))[:, None]
        total = total + rotate(m, bend * s, -1.0) @ to
    return total

def attlip(m, x):
    """A point near the solution by steps of Barzilai and Borwein; its residual times eta says how near it is."""
    weight, eta = m.get("weight"), eta_of(m)
    need(m.c["steps"] <= 0 and eta.lo > 0, f"{m.path}: what its solver finds is not known", UNKNOWN)
    s, step, middle = float(np.float32(1 / np.sqrt(len(weight) / m.c["heads"]))), float(eta.hi), x.ball()[0]
    metric = np.eye(m.d) / step + 4 * s * weight.T @ weight
    inverse = np.linalg.inv(metric)
    best, y, go = (np.inf, middle), middle, middle / step @ inverse - middle
    for _ in range(500):
        y = y + go
        slope = potential_slope(m, interval(y), s).ball()[0] + (y - middle) / step
        bend, before, size = np.sum(go * (slope - before)) if best[0] < np.inf else 0.0, slope, np.linalg.norm(slope)
        best = (size, y) if size < best[0] else best
        if not 1e-14 * (1 + np.linalg.norm(middle)) < size < np.inf:
            break
        go = -(np.sum(go @ metric * go) / bend if bend > 0 else 1.0) * slope @ inverse
    y = interval(best[1])
    off = (eta * length((potential_slope(m, y, s) + (y - x) / eta).each(np.ravel))).hi
    return 2.0 * (y + Interval(-off, off)) - x if m.c["reflected"] else y + Interval(-off, off)

def centre(m, x):
    return x - (x.sum() / float(m.d))[:, None]

def layernorm(m, x):
    z = centre(m, x) if m.c["centred"] else x
    z = z / sqrt((z * z).sum() / float(m.d) + m.c["eps"])[:, None] * m.get("weight")
    return z + m.get("bias") if m.c["centred"] else z

def residual(m, x):
    return x - 2.0 * (activate(m, x @ m.get("weight").T + m.get("bias")) / scales_of(m)) @ m.get("weight")

def pixels(m, x):
    c = m.c
    image = x.each(lambda end: end.reshape(c["height"], c["width"], -1)) * c["scale"] + c["shift"]
    cut = (c["height"] // c["patch_height"], c["patch_height"], c["width"] // c["patch_width"], c["patch_width"], -1)
    return image.each(lambda end: end.reshape(cut).transpose(0, 2, 1, 3, 4).reshape(m.t_out, m.d_out))

FORWARD = {
    "linear": lambda m, x: x @ m.get("weight").T + m.get("bias"), "pixels": pixels, "layernorm": layernorm,
    "maxmin": lambda m, x: x.each(lambda end: -np.sort(-end.reshape(m.t, -1, m.c["group"])).reshape(m.t, m.d)),
    "prefix": lambda m, x: stack([m.get("weight")[None], x]), "position": lambda m, x: x + m.get("weight")[:m.t],
    "pool": lambda m, x: x.sum(0)[None] / float(m.t) if m.c["mean"] else x[:1],
    "l2pool": lambda m, x: sqrt((x * x).sum(0))[None],
    "concat": lambda m, x: x.each(lambda end: end.reshape(1, -1)),
    "scale": lambda m, x: m.c["factor"] * x, "channel": lambda m, x: x * m.get("weight"), "pointwise": activate,
    "centernorm": lambda m, x: m.c["factor"] * centre(m, x) * m.get("weight") + m.get("bias"),
    "mlp": lambda m, x: activate(m, x @ m.get("in.weight").T + m.get("in.bias")) @ m.get("out.weight").T + m.get("out.bias"),
    "potential": residual, "sll": residual, "attention": softmax_attention, "cosattention": softmax_attention,
    "l2attention": l2attention, "posattention": posattention, "attlip": attlip, "window": softmax_attention,
    "cosformer": cosformer, "performer": performer, "sketch": run_sketch,
}

MIXES = ("attention", "plash", "window", "cosformer", "performer", "cosattention", "l2attention", "posattention", "attlip", "pool", "l2pool", "concat", "prefix", "pixels")

def meet(a, b): return Interval(np.maximum(a.lo, b.lo), np.minimum(a.hi, b.hi))

class Point:
    """What is known of the tokens at some place: that they are in a box, and each no further (l2) than `off` from its centre.
    However the example is moved within its radius, they are no further than `moved` from the centres, and on the way here grew
    by no more than `lip`."""

    def __init__(self, box, centre, off, moved=np.inf, lip=1.0):
        self.box, self.centre, self.off = meet(box, centre + Interval(-1, 1) * off[:, None]), centre, off
        self.moved, self.lip = moved, lip

def around(box):
    middle, radius = box.ball()
    return Point(box, middle, length(radius).hi)

def slope_of(m, at, off):
    """The stated constant; of layernorm token by token: around the centre no deviation is smaller than the centre's less off."""
    lip = m.lip if length(at.centre).hi.max() <= m.reach else np.inf  # it holds in the region alone
    if m.rule != "layernorm" or not (m.lip > 0 and m.finite and m.c["eps"] >= 0):
        return lip
    z = centre(m, interval(at.centre)) if m.c["centred"] else interval(at.centre)
    least = np.maximum((length(z) - off).lo, 0)
    return np.minimum(lip, (m.norm / sqrt(interval(least) * least / float(m.d) + m.c["eps"])).hi)

def attention_slope(m, x, moved, flat):
    """Softmax attention where every token is within `moved` of x: docs/certificate.md, "Examples"."""
    near, s, best, collected = m.near, abs(interval(m.c["scale"])), np.zeros((m.t, m.t)), Interval(np.zeros(m.t))
    keys, queries, x = Interval(np.zeros(m.t)), Interval(np.zeros(m.t)), interval(x)
    for i, h in enumerate(near.live):
        q, k, v, share = attending(m, x, h)
        u, w = (q, k * near.query[i]) if m.c.get("rope") else (q @ by_head(m, "k.weight")[h], k @ by_head(m, "q.weight")[h])
        u, n, value = near.key[i] * length(u), near.query[i] * near.key[i], length(by_head(m, "v.weight")[h].ravel())
        far, middle = length(w - w.ball()[0].mean(0)), share.ball()[0] @ v.ball()[0]
        off = stack([length(v - row)[None] for row in middle]) + value * moved
        grow = exp(s * moved * (u + np.where(seen(m), far.hi, 0).max(1) + n * moved))
        def spread(a):
            a = Interval(np.where(seen(m), a.hi, 0))
            return Interval(np.minimum(a.hi.max(1), (grow * sqrt((Interval(share.hi) * a * a).sum())).hi))
        v_off, k_off = spread(off), spread((far + n * moved)[None])
        by_key, by_query = s * (u + n * moved) * v_off, s * v_off * k_off
        keys, queries = keys + by_key * by_key, queries + by_query * by_query
        most = Interval(np.where(seen(m), np.fmin(1, ((grow * grow)[:, None] * Interval(share.hi)).hi), 0))
        best, collected = np.maximum(best, most.hi), collected + (most * (by_key * by_key)[:, None]).sum(0)
    rows, queries = sqrt(queries) + sqrt(keys), sqrt(queries)
    if not flat:
        return abs(interval(m.c["out"])) * (near.mean + near.out * rows.hi.max())
    share = least(Interval(best).sum(0).hi.max(), near.count)
    return abs(interval(m.c["out"])) * (sqrt(share) * near.mean + near.out * (sqrt(collected.hi.max()) + queries.hi.max()))

def step(m, at, apply, where):
    """Through a module: at the centre itself, and what is around it by its constant; or the whole box."""
    middle, radius = apply(interval(at.centre)).ball()
    off = at.off if m.rule not in MIXES else np.full(len(middle), float(length(at.off).hi) if where.flat else at.off.max())
    off = np.where(off == 0, 0, slope_of(m, at, at.off) * off * LOOSE)
    slope, own = interval(np.max(slope_of(m, at, at.moved))), length(radius)
    if m.near and m.finite and at.moved < np.inf:
        slope = least(slope, attention_slope(m, at.centre, at.moved, where.flat))
    moved = (slope * at.moved if slope.hi > 0 else slope) + (length(own.hi) if where.flat else own.hi.max())
    return Point(apply(at.box), middle, (interval(off) + own).hi, float(moved.hi), float((slope * at.lip).hi))

def forward(m, at, where):
    if m.rule == "sequence" or m.rule == "mix" and not m.joint:
        inner = Point(at.box, at.centre, at.off, at.moved)
        for part in m.parts:
            inner = forward(part, inner, where)
        if m.rule == "sequence":
            inner.lip = float((interval(inner.lip) * at.lip).hi)
            return inner
        keep, mix = interval(m.c["keep"]), interval(m.c["mix"])
        middle, radius = (keep * at.centre + mix * inner.centre).ball()
        own = length(radius)
        moved = abs(keep) * at.moved + abs(mix) * inner.moved + (length(own.hi) if where.flat else own.hi.max())
        return Point(keep * at.box + mix * inner.box, middle, (abs(keep) * at.off + abs(mix) * inner.off + own).hi, float(moved.hi),
                     float(((abs(keep) + abs(mix) * inner.lip) * at.lip).hi))
    leaf = m.parts[0] if m.joint else m
    known = leaf.rule in (*FORWARD, "plash") and not m.c.get("queries") and m.t <= 2 ** 13
    need(known, f"{m.path}: no examples through {m.rule}", UNKNOWN)
    if m.rule == "plash":
        return step(m, at, lambda x: run_plash(m, x, lambda u: forward(m.parts[0], around(u), where).box), where)
    apply = FORWARD[leaf.rule]
    return step(m, at, (lambda x: m.c["keep"] * x + m.c["mix"] * apply(leaf, x)) if m.joint else lambda x: apply(m, x), where)
