#!/usr/bin/env python3
"""Writes tests/golden/attacks.safetensors: what FGSM, PGD, APGD, FAB and Square do to a small network.

    python3 tools/dump_attacks.py            from the repository's root; needs NumPy, the tests do not

Written from the published definitions (Goodfellow et al. 2015; Madry et al. 2018; Croce and Hein 2020, 2021;
Andriushchenko et al. 2020), one example at a time and in float64; it shares nothing with src/attack but the random
numbers (SplitMix64 as a function of key and counter).  docs/howto/attack_a_model.md lists where the definitions leave a
choice.  The file holds the network, the inputs and, for every attack, norm and radius, which inputs were broken and the
first adversarial input found.
"""
import json
import math
import struct

import numpy as np

DIM, HIDDEN, CLASSES, N = 27, 10, 5, 8
CHANNELS, SIDE = 3, 3
SEED, PURPOSE = 11, 8
MASK = (1 << 64) - 1


# ---- random numbers ----
def bits(key, counter):
    z = (key + (counter + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def make_key(seed, purpose, index):
    return bits(bits(bits(0, seed), purpose), index)


def unit(key, counter):
    return (bits(key, counter) >> 11) * 2.0**-53


def normal(key, counter):
    u, v = 1 - unit(key, 2 * counter), unit(key, 2 * counter + 1)
    return math.sqrt(-2 * math.log(u)) * math.cos(6.283185307179586 * v)


def below(key, counter, n):
    return (bits(key, counter) * n) >> 64


def coin(key, counter):
    return 1.0 if bits(key, counter) >> 63 else -1.0


# ---- the network and its losses ----
class Net:
    def __init__(self, rng):
        self.w, self.b = rng.uniform(-1, 1, (HIDDEN, DIM)), rng.uniform(-1, 1, HIDDEN)
        self.v, self.c = rng.uniform(-1, 1, (CLASSES, HIDDEN)), rng.uniform(-1, 1, CLASSES)

    def logits(self, x):
        return self.v @ np.maximum(self.w @ x + self.b, 0) + self.c

    def jacobian(self, x):
        return (self.v * (self.w @ x + self.b > 0)) @ self.w


def loss_and_weights(kind, z, y, t):
    """The loss and its gradient in z."""
    order = np.argsort(-z, kind="stable")
    w = np.zeros(CLASSES)
    if kind == "ce":
        p = np.exp(z - z.max())
        p /= p.sum()
        p[y] -= 1
        return math.log(np.exp(z - z.max()).sum()) - (z[y] - z.max()), p
    if kind == "dlr":
        other = order[1] if order[0] == y else order[0]
        low = np.zeros(CLASSES)
        low[order[2]] = 1
    else:
        other = t
        low = np.zeros(CLASSES)
        low[order[2]] = low[order[3]] = 0.5
    top, diff = np.zeros(CLASSES), np.zeros(CLASSES)
    top[order[0]] = 1
    diff[other] += 1
    diff[y] -= 1
    a, b = diff @ z, (top - low) @ z + 1e-12
    return a / b, diff / b - (top - low) * a / b**2


# ---- balls in the box [0, 1] ----
def size(norm, d):
    return {"Linf": np.abs(d).max(), "L2": np.linalg.norm(d), "L1": np.abs(d).sum()}[norm]


def project(norm, x, y, eps):
    if norm == "Linf":
        return np.clip(np.clip(y, x - eps, x + eps), 0, 1)
    if norm == "L2":
        d = y - x
        length = np.linalg.norm(d)
        return np.clip(x + d * min(1, eps / length) if length > 0 else y, 0, 1)
    u = y - x
    room = np.where(u > 0, 1 - x, x)
    level = lambda l: np.minimum(np.maximum(np.abs(u) - l, 0), room)
    if level(0).sum() <= eps:
        return x + np.sign(u) * level(0)
    # the level is between two kinks: solve exactly there
    kinks = np.unique(np.concatenate([[0], np.abs(u), np.maximum(np.abs(u) - room, 0)]))
    sums = np.array([level(k).sum() for k in kinks])
    i = np.nonzero(sums > eps)[0][-1]
    l = kinks[i] + (kinks[i + 1] - kinks[i]) * (sums[i] - eps) / (sums[i] - sums[i + 1])
    return x + np.sign(u) * level(l)


def sphere_start(norm, x, eps, key):
    d = np.array([2 * unit(key, i) - 1 if norm == "Linf" else normal(key, i) for i in range(DIM)])
    if norm != "L1":
        d *= eps / size(norm, d)
    return project(norm, x, x + d, eps)


def ascent(norm, g):
    return np.sign(g) if norm == "Linf" else g / (np.linalg.norm(g) + 1e-12)


# ---- attacks: each returns the first adversarial input, or None ----
class Case:
    def __init__(self, net, x, y, key, norm, eps):
        self.net, self.x, self.y, self.key, self.norm, self.eps = net, x, y, key, norm, eps

    def wrong(self, v):
        return int(np.argmax(self.net.logits(v))) != self.y

    def slope(self, v, kind, target):
        loss, w = loss_and_weights(kind, self.net.logits(v), self.y, target)
        return loss, w @ self.net.jacobian(v)


def fill(v, g, length):
    """L1: the most a linear loss can be raised by; a hundredth of 27 entries is one, so nothing is spread."""
    v = v.copy()
    for i in np.argsort(-np.abs(g), kind="stable"):
        go = min(length, 1 - v[i] if g[i] > 0 else v[i]) if g[i] != 0 else 0
        v[i] += np.sign(g[i]) * go
        length -= go
    return v


def fgsm(c):
    if c.norm == "L1":
        v = project("L1", c.x, fill(c.x, c.slope(c.x, "ce", 0)[1], c.eps), c.eps)
        return v if c.wrong(v) else None
    v = project(c.norm, c.x, c.x + c.eps * ascent(c.norm, c.slope(c.x, "ce", 0)[1]), c.eps)
    return v if c.wrong(v) else None


def pgd(c, steps=40):
    if c.norm == "Linf":
        v = np.clip(c.x + c.eps * np.array([2 * unit(c.key, i) - 1 for i in range(DIM)]), 0, 1)
    else:
        v = sphere_start(c.norm, c.x, c.eps * unit(c.key, MASK - 1), c.key)
    for _ in range(steps):
        if c.wrong(v):
            return v
        g, step = c.slope(v, "ce", 0)[1], 2.5 / steps * c.eps
        v = project(c.norm, c.x, fill(v, g, step) if c.norm == "L1" else v + step * ascent(c.norm, g), c.eps)
    return v if c.wrong(v) else None


def checkpoints(steps):
    at, window = [], max(int(0.22 * steps + 1e-9), 1)
    step = window
    while step <= steps:
        at.append((step, window))
        window = max(window - max(int(0.03 * steps + 1e-9), 1), max(int(0.06 * steps + 1e-9), 1))
        step += window
    return dict(at)


def apgd(c, kind, target=0, steps=100):
    v = sphere_start(c.norm, c.x, c.eps, c.key)
    if c.wrong(v):
        return v
    loss, g = c.slope(v, kind, target)
    best, g_best, loss_best, loss_before = v, g, loss, loss
    losses, before, step, halved = [loss], v, 2 * c.eps, True
    check = checkpoints(steps)
    for i in range(steps):
        a = 0.75 if i else 1.0
        u = project(c.norm, c.x, v + step * ascent(c.norm, g), c.eps)
        v, before = project(c.norm, c.x, v + a * (u - v) + (1 - a) * (v - before), c.eps), v
        if c.wrong(v):
            return v
        loss, g = c.slope(v, kind, target)
        losses.append(loss)
        if loss > loss_best:
            best, g_best, loss_best = v, g, loss
        if i + 1 not in check:
            continue
        window = check[i + 1]
        rises = sum(losses[-k] > losses[-k - 1] for k in range(1, window + 1))
        halved = rises <= 0.75 * window or (not halved and loss_before >= loss_best)
        loss_before = loss_best
        if halved:
            step /= 2
            v, g = best, g_best
    return None


def apgd_sparse(c, kind, target=0, steps=100):
    """L1: 3 eps, 2 eps, eps over 30, 30 and 40 % of the steps; only the last leg counts."""
    v, third = None, math.ceil(0.3 * steps)
    for k, count in ((3, third), (2, third), (1, steps - 2 * third)):
        eps = k * c.eps
        if v is None:
            v, share, support = sphere_start("L1", c.x, eps, c.key), 0.2, DIM
        else:
            v = project("L1", c.x, best, eps)
            support = np.count_nonzero(v != c.x)
            share = support / DIM / 1.5
        if k == 1 and c.wrong(v):
            return v
        loss, g = c.slope(v, kind, target)
        best, g_best, loss_best, step, window = v, g, loss, eps, max(int(0.04 * count + 1e-9), 1)
        for i in range(count):
            least = np.sort(np.abs(g))[int(min(max((1 - share) * DIM, 0), DIM - 1))]
            moved = (np.abs(g) >= least) & (g != 0)
            v = project("L1", c.x, v + step * np.sign(g) * moved / max(moved.sum(), 1), eps)
            if k == 1 and c.wrong(v):
                return v
            loss, g = c.slope(v, kind, target)
            if loss > loss_best:
                best, g_best, loss_best = v, g, loss
            if (i + 1) % window:
                continue
            now = np.count_nonzero(best != c.x)
            sparser = now < 0.95 * support
            share, support = now / DIM / 1.5, now
            step = eps if sparser else max(step / 1.5, eps / 10)
            if sparser:
                v, g = best, g_best
    return None


def to_plane(norm, x, w, change):
    """The shortest d with w.d = change and x + d in the box, or the nearest to it."""
    way = np.sign(w) * (1 if change >= 0 else -1)
    room, a, need = np.where(way > 0, 1 - x, x), np.abs(w), abs(change)
    if norm == "L1":
        d = np.zeros(DIM)
        for i in np.argsort(-a, kind="stable"):
            if need <= 0 or a[i] == 0:
                break
            d[i] = min(need / a[i], room[i])
            need -= a[i] * d[i]
        return way * d
    speed = np.where(a > 0, 1.0, 0) if norm == "Linf" else a
    if (a * room).sum() <= need:
        return way * np.where(a > 0, room, 0)
    low, high = 0.0, 1.0
    while (a * np.minimum(high * speed, room)).sum() < need:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if (a * np.minimum(middle * speed, room)).sum() < need else (low, middle)
    return way * np.minimum(high * speed, room)


def fab(c, target=None, steps=100):
    dual = {"Linf": "L1", "L2": "L2", "L1": "Linf"}[c.norm]
    v = c.x.copy()
    for _ in range(steps):
        z, jac = c.net.logits(v), c.net.jacobian(v)
        options = [target] if target is not None else [k for k in range(CLASSES) if k != c.y]
        gaps = {k: (z[k] - z[c.y], jac[k] - jac[c.y]) for k in options}
        f, w = min(gaps.values(), key=lambda p: abs(p[0]) / (1e-12 + size(dual, p[1])))
        d1, d2 = to_plane(c.norm, v, w, -f), to_plane(c.norm, c.x, w, w @ (v - c.x) - f)
        s1, s2 = max(size(c.norm, d1), 1e-8), max(size(c.norm, d2), 1e-8)
        a = min(s1 / (s1 + s2), 0.1)
        v = np.clip((1 - a) * (v + 1.05 * d1) + a * (c.x + 1.05 * d2), 0, 1)
        if c.wrong(v):
            if size(c.norm, v - c.x) <= c.eps:
                return v
            v = c.x + 0.9 * (v - c.x)
    return None


def share(query):
    return 0.8 / 2 ** sum(query > k for k in (10, 50, 200, 500, 1000, 2000, 4000, 6000, 8000))


def search(c, best, propose, queries=300):
    """Keeps a trial when the margin falls; the first one of another class ends it."""
    margin = lambda v: (lambda z: z[c.y] - max(z[k] for k in range(CLASSES) if k != c.y))(c.net.logits(v))
    if c.wrong(best):
        return best
    least = margin(best)
    for query in range(queries):
        v = propose(best, make_key(c.key, 1, query), share(query))
        if c.wrong(v):
            return v
        now = margin(v)
        if now < least:
            best, least = v, now
    return None


SHAPE = (SIDE, SIDE, CHANNELS)


def square(c):
    """Linf: stripes, then windows flipped."""
    stripe = np.array([coin(c.key, i) for i in range(SIDE * CHANNELS)]).reshape(1, SIDE, CHANNELS)

    def flip(best, key, p):
        s = min(max(int(math.floor(math.sqrt(p * SIDE * SIDE) + 0.5)), 1), SIDE)
        top, left = below(key, 0, SIDE - s + 1), below(key, 1, SIDE - s + 1)
        v = best.reshape(SHAPE).copy()
        for ch in range(CHANNELS):
            v[top:top + s, left:left + s, ch] += 2 * c.eps * coin(key, 16 + ch)
        return project("Linf", c.x, v.ravel(), c.eps)

    return search(c, project("Linf", c.x, (c.x.reshape(SHAPE) + c.eps * stripe).ravel(), c.eps), flip)


def bump(high, wide, turned):
    """Equation (1) of the Square paper on two halves of opposite sign, above one another or, turned, side by side."""
    if turned:
        return bump(wide, high, False).T

    def hill(h, w):
        n = max(h, w) // 2
        far = lambda r, k: max(abs(r - h // 2), abs(k - w // 2))
        return np.array([[sum(1 / (n + 1 - j)**2 for j in range(n - far(r, k) + 1)) for k in range(w)] for r in range(h)])

    half = high // 2
    return np.concatenate([hill(half, wide), -hill(high - half, wide)]) if half else hill(high, wide)


def square_moved(c):
    """L2 and L1: bumps in tiles, then the mass of two windows gathered in one of them.  Tiles of a 3 x 3 image: one pixel."""
    power = 2 if c.norm == "L2" else 1
    size_of = lambda d: (np.abs(d)**power).sum()**(1 / power)
    start = np.zeros(SHAPE)
    for r in range(SIDE):
        for k in range(SIDE):
            for ch in range(CHANNELS):
                start[r, k, ch] = coin(c.key, 2 * ((ch * SIDE + r) * SIDE + k)) * bump(1, 1, False)[0, 0]

    def move(best, key, p):
        d = (best - c.x).reshape(SHAPE).copy()
        s = max(int(math.floor(math.sqrt(p * SIDE * SIDE) + 0.5)), 3)
        s = min(s + (s % 2 == 0), SIDE)
        (t1, l1), (t2, l2) = ((below(key, i, SIDE - s + 1), below(key, i + 1, SIDE - s + 1)) for i in (0, 2))
        one, two = (np.s_[t:t + s, l:l + s] for t, l in ((t1, l1), (t2, l2)))
        spare = max(c.eps**power - (np.abs(d)**power).sum(), 0) / CHANNELS
        shape = bump(s, s, coin(key, 8) > 0)
        for ch in range(CHANNELS):
            plane = d[:, :, ch]
            union = np.zeros((SIDE, SIDE), bool)
            union[one] = union[two] = True
            held = (np.abs(plane[union])**power).sum()
            mix = plane[one] / (1e-12 + size_of(plane[one])) + coin(key, 16 + ch) * shape / size_of(shape)
            plane[two] = 0
            plane[one] = mix / (1e-12 + size_of(mix)) * (held + spare)**(1 / power)
        return project(c.norm, c.x, c.x + d.ravel(), c.eps)

    return search(c, project(c.norm, c.x, c.x + (start * c.eps / size_of(start)).ravel(), c.eps), move)


# ---- the file ----
# kind and loss as src/attack numbers them: they are part of the key
NUMBER = {"fgsm": (0, 0), "pgd": (1, 0), "apgd-ce": (2, 0), "apgd-dlr": (2, 1), "apgd-t": (2, 2), "fab": (3, 0),
          "fab-t": (3, 0), "square": (4, 0)}
RADII = {"Linf": [0.02, 0.07, 0.09, 0.11, 0.14, 0.18], "L2": [0.06, 0.25, 0.33, 0.4, 0.5, 0.65],
         "L1": [0.2, 0.8, 1.1, 1.5, 2, 2.8]}


def attack(name, net, x, y, example, norm, eps):
    kind, loss = NUMBER[name]
    own = make_key(SEED, PURPOSE, example)
    z = net.logits(x)
    others = sorted((k for k in range(CLASSES) if k != y), key=lambda k: -z[k])
    for t, target in enumerate(others if name.endswith("-t") else [None]):
        c = Case(net, x, y, make_key(own, kind * 8 + loss, t), norm, eps)
        climb = apgd_sparse if norm == "L1" else apgd
        v = {"fgsm": lambda: fgsm(c), "pgd": lambda: pgd(c), "apgd-ce": lambda: climb(c, "ce"),
             "apgd-dlr": lambda: climb(c, "dlr"), "apgd-t": lambda: climb(c, "dlr_t", target), "fab": lambda: fab(c),
             "fab-t": lambda: fab(c, target),
             "square": lambda: (square if norm == "Linf" else square_moved)(c)}[name]()
        if v is not None:
            return v
    return None


def write(path, tensors):
    header, data = {}, b""
    for name, x in tensors.items():
        raw = np.ascontiguousarray(x, dtype="<f8").tobytes()
        header[name] = {"dtype": "F64", "shape": list(np.shape(x)), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def main():
    rng = np.random.default_rng(5)
    net, x = Net(rng), rng.uniform(0, 1, (N, DIM))
    label = [int(np.argmax(net.logits(v))) for v in x]
    out = {"w": net.w, "b": net.b, "v": net.v, "c": net.c, "x": x, "label": label}
    for norm, radii in RADII.items():
        out[norm + ".eps"] = radii
        for name in NUMBER:
            found = [[attack(name, net, x[e], label[e], e, norm, eps) for e in range(N)] for eps in radii]
            out[f"{norm}.{name}.broken"] = [[v is not None for v in row] for row in found]
            out[f"{norm}.{name}.adv"] = [v for row in found for v in row if v is not None]  # the broken ones in order
            print(norm, name, [sum(v is not None for v in row) for row in found])
    write("tests/golden/attacks.safetensors", out)


main()
