"""The second checker's constants of softmax attention and of a perceptron around an input, against slopes that are found there:
python3 tests/checker/slopes.py ROUNDS"""
import os
import sys
from types import SimpleNamespace

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "checker"))
from examples import around, run  # noqa: E402
from interval import Interval  # noqa: E402

rng = np.random.default_rng(1)


def attention(tokens, width, heads, rope):
    weights = {name + ".weight": rng.normal(size=(width, width)) * rng.choice([0.3, 1, 2]) for name in "qkvo"}
    weights.update({name + ".bias": rng.normal(size=width) * rng.choice([0, 0.3]) for name in "qkvo"})
    c = {"heads": heads, "scale": float(rng.choice([-0.5, 0.3, 1])), "out": 0.75, "causal": int(rng.integers(2)),
         "alibi": int(rng.integers(2)), "rope": rope}
    m = SimpleNamespace(t=tokens, d=width, c=c, rule="attention", finite=True, get=weights.__getitem__)
    heads = [slice(h * width // heads, (h + 1) * width // heads) for h in range(heads)]
    q, k, v, o = (weights[name + ".weight"] for name in "qkvo")
    norm = lambda matrix: np.linalg.norm(matrix, 2)  # noqa: E731
    means = [o[:, h] @ v[h] for h in heads]
    families = [(Interval(norm(np.hstack([mean * t for mean, t in zip(means, by)]))), 1 / Interval(by))
                for by in (np.ones(len(heads)), rng.uniform(0.5, 2, len(heads)))]
    m.near = SimpleNamespace(
        out=Interval(norm(o)), live=range(len(heads)), count=Interval(float(tokens)), families=families,
        mean=Interval(norm(np.hstack(means)) * np.sqrt(len(heads))),
        query=Interval([norm(q[h]) if rope else norm(k[h].T @ q[h]) for h in heads]),
        key=Interval([norm(k[h]) if rope else 1.0 for h in heads]))
    return m


def jacobian(m, x):
    """By differences of what run.py itself computes, whose boxes are far narrower."""
    at = lambda x: run.softmax_attention(m, Interval(x)).ball()[0].ravel()  # noqa: E731
    return np.stack([(at(x + e) - at(x - e)) / 2e-5 for e in (1e-5 * np.eye(x.size)).reshape(-1, *x.shape)], 1)


def steepest(j, m, flat):
    """A slope that is found: over everything, or of the token that moves most if every token moves by 1."""
    if flat:
        return np.linalg.norm(j, 2)
    found = 0.0
    for row in j.reshape(m.t, m.d, m.t, m.d):
        g = rng.normal(size=m.d)
        for _ in range(20):
            e = np.einsum("k,ktd->td", g, row)
            g = np.einsum("ktd,td->k", row, e / np.maximum(np.linalg.norm(e, axis=1, keepdims=True), 1e-300))
            found, g = max(found, np.linalg.norm(g)), g / max(np.linalg.norm(g), 1e-300)
    return found


def perceptron(curve):
    d, h = int(rng.integers(1, 5)), int(rng.integers(1, 9))
    shapes = {"in.weight": (h, d), "in.bias": h, "out.weight": (d, h), "out.bias": d}
    weights = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    return SimpleNamespace(t=2, d=d, d_out=d, c={"curve": curve, "factor": 0.75, "h": h}, get=weights.__getitem__)


def along(m, x, keep, mix):
    """The slope of every token, by differences of what run.py computes."""
    at = lambda x: keep * x + mix * run.FORWARD["mlp"](m, Interval(x)).ball()[0]  # noqa: E731
    j = np.stack([(at(x + e) - at(x - e)) / 2e-6 for e in 1e-6 * np.eye(m.d)], 2)
    return np.linalg.norm(j, 2, axis=(1, 2))


def perceptrons(rounds):
    worst, above = 0.0, 0
    for curve in run.CURVES:
        for _ in range(rounds):
            m, moved, mixed = perceptron(curve), rng.choice([1e-3, 0.05, 0.5], 2), ((0.0, 1.0), (0.5, -0.5))[rng.integers(2)]
            x = rng.normal(size=(m.t, m.d)) * rng.choice([0.1, 1, 3])
            stated = around.mlp_slope(m, x, moved, *mixed)
            for _ in range(20):
                by = rng.normal(size=x.shape)
                by *= moved[:, None] / np.linalg.norm(by, axis=1, keepdims=True)
                ratio = (along(m, x + by, *mixed) / stated).max()
                worst, above = max(worst, ratio), above + (ratio > 1 + 1e-5)
    print(f"perceptrons around an input: slopes up to {worst:.3f} of the constant, {above} above it")
    return above > 0 or worst < 0.9


worst, entries, above = 0.0, 0.0, 0
for _ in range(int(sys.argv[1])):
    width = int(rng.choice([2, 4]))
    m = attention(int(rng.integers(2, 5)), width, int(rng.choice([1, width // 2])), float(rng.choice([0, 100])))
    x, moved = rng.normal(size=(m.t, m.d)) * rng.choice([0.1, 1, 3]), rng.choice([0, 1e-3, 0.05, 0.3]) * rng.uniform(size=m.t)
    for flat in (False, True):
        stated, reach = around.attention_slope(m, x, moved, flat, np.eye(m.t))
        for _ in range(3):
            by = rng.normal(size=x.shape)
            by *= moved[:, None] / np.linalg.norm(by, axis=1, keepdims=True)
            j = jacobian(m, x + by)
            blocks = np.linalg.norm(j.reshape(m.t, m.d, m.t, m.d), 2, axis=(1, 3))  # token by token
            apart = (blocks / np.maximum(reach, 1e-6)).max()  # differences are off by 1e-10 or so
            ratio = steepest(j, m, flat) / float(stated.hi)
            worst, entries, above = max(worst, ratio), max(entries, apart), above + (ratio > 1 + 1e-6 or apart > 1 + 1e-4)
print(f"attention around an input: slopes up to {worst:.3f} of the constant, of one token to another {entries:.3f}, {above} above it")
sys.exit(bool(perceptrons(int(sys.argv[1])) or above > 0 or worst < 0.3 or entries < 0.5))
