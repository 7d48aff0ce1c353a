"""Every module at one input, in intervals: what comes out holds its value in real arithmetic."""
import math

import numpy as np

from interval import Interval, erf, exp, expm1, interval, length, log, sqrt, stack, tanh, wave
from reader import UNKNOWN, need
from rules.attention import alibi_slopes, by_head, softmax
from rules.attlip import eta_of
from rules.plash import run_sketch
from rules.posattention import gains, shares
from rules.simple import scales_of

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
    a, b, cos, sin = v[..., :half], v[..., half:2 * half], wave(np.cos, angle), wave(np.sin, angle) * sign
    return stack([a * cos - b * sin, a * sin + b * cos, v[..., 2 * half:]], -1)

def seen(m):
    """Which keys a query sees."""
    at, first = np.arange(m.t), m.c.get("global", 0)
    blocks = (at - first) // m.c.get("size", m.t)
    near = (at < first) | (at < first)[:, None] | (np.abs(blocks - blocks[:, None]) <= 1)
    return near & (at <= at[:, None]) if m.c["causal"] else near

def together(m, heads):
    """Heads in groups: all of a small model at once, each of a large one by itself."""
    count = max(1, 2 ** 20 // m.t ** 2)
    return [heads[first:first + count] for first in range(0, len(heads), count)]

def attending(m, x, heads):
    """Queries, keys and values of some heads, as they are turned and normalised, and every key's share of a query."""
    at = np.arange(float(m.t))
    q, k, v = (x @ interval(by_head(m, name + ".weight")[heads]).T + by_head(m, name + ".bias")[heads][:, None] for name in "qkv")
    unit = (lambda z: z / sqrt((z * z).sum()[..., None] + m.c["eps"])) if m.rule == "cosattention" else lambda z: z
    q, k, v = unit(rotate(m, q)), unit(rotate(m, k)), unit(v) if m.c.get("values") else v
    logits = q @ k.T * m.c["scale"]
    if m.c.get("alibi"):
        logits = logits - alibi_slopes(m)[heads][:, None, None] * np.abs(at[:, None] - at)
    see = seen(m)
    return q, k, v, softmax(logits.each(lambda end: np.where(see, end, -1e300)))

def softmax_attention(m, x):
    heads = []
    for group in together(m, range(m.c["heads"])):
        _, _, v, share = attending(m, x, group)
        heads.append(share @ v)
    beside = stack(heads).each(lambda end: end.swapaxes(0, 1).reshape(m.t, m.d))
    return m.c["out"] * (beside @ m.get("o.weight").T) + m.get("o.bias")

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
    total, at, by_heads = 0.0 * y, np.arange(float(m.t)), m.get("weight").reshape(m.c["heads"], -1, m.d)
    for group in together(m, range(m.c["heads"])):
        to = by_heads[group]
        v = rotate(m, y @ interval(to).T)
        square, near = (v * v).sum(), exp(np.array(group) / -2.0 * log(2.0)) * m.c["near"]
        logits = (v @ v.T * 2.0 + square[:, None] + square[..., None]) * s
        share = softmax(logits - near[:, None, None] * np.abs(at[:, None] - at))
        bend = (share + share.T) @ v + v * (1 + share.sum(1))[..., None]
        total = total + (rotate(m, bend * s, -1.0) @ to).sum(0)
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
