"""Constants around an input: docs/certificate.md, "Examples"."""
import numpy as np

from examples.run import CUBIC, PI, attending, centre, seen, together
from interval import Interval, erf, exp, interval, least, length, sqrt, stack, tanh
from norm import norm_is_at_most
from rules.attention import by_head
from rules.simple import SLOPES

def slope_of(m, at, off):
    """The stated constant; of layernorm token by token: around the centre no deviation is smaller than the centre's less off."""
    lip = m.lip if length(at.centre).hi.max() <= m.reach else np.inf  # it holds in the region alone
    if m.rule != "layernorm" or not (m.lip > 0 and m.finite and m.c["eps"] >= 0):
        return lip
    z = centre(m, interval(at.centre)) if m.c["centred"] else interval(at.centre)
    least = np.maximum((length(z) - off).lo, 0)
    return np.minimum(lip, (m.norm / sqrt(interval(least) * least / float(m.d) + m.c["eps"])).hi)

def attention_slope(m, x, moved, flat, shape):
    """Softmax attention where token t is within moved[t] of x: its constant, and the shape behind it: docs/certificate.md, "Examples"."""
    near, s, best, collected = m.near, abs(interval(m.c["scale"])), np.zeros((m.t, m.t)), Interval(np.zeros(m.t))
    keys, queries, x, see = Interval(np.zeros(m.t)), Interval(np.zeros(m.t)), interval(x), seen(m)
    by_keys, by_means = interval(best), [interval(best) for _ in near.families]
    for group in together(m, range(len(near.live))):
        heads, q_norm, k_norm = [near.live[i] for i in group], near.query[group][:, None], near.key[group][:, None]
        q, k, v, share = attending(m, x, heads)
        u, w = (q, k * q_norm[..., None]) if m.c.get("rope") else (q @ by_head(m, "k.weight")[heads], k @ by_head(m, "q.weight")[heads])
        u, n, value = k_norm * length(u), q_norm * k_norm, length(by_head(m, "v.weight")[heads].reshape(len(heads), 1, 1, -1))
        far, middle = length(w - w.ball()[0].mean(1, keepdims=True)), share.ball()[0] @ v.ball()[0]
        block = max(1, 2 ** 20 // middle.size)
        off = stack([length(v[:, None] - middle[:, i:i + block, None]) for i in range(0, m.t, block)], 1) + value * moved
        bend = moved[:, None] * far[:, None] + moved * (u + n * moved)[..., None]
        rounded = length(share @ v - middle)
        grow, share = exp(s * Interval(np.where(see, bend.hi, 0).max(2))), Interval(share.hi)
        twice = Interval((grow * grow).hi)[..., None]
        def spread(a):
            a = Interval(np.where(see, a.hi, 0))
            return Interval(np.minimum(a.hi.max(2), (grow * sqrt((share * a * a).sum())).hi))
        v_off, k_off, mean_off = spread(off), spread((far + n * moved)[:, None]), (share * Interval(np.where(see, off.hi, 0))).sum()
        by_key, by_query = s * (u + n * moved), s * v_off * k_off
        most = Interval(np.where(see, np.fmin(1, (twice * share / (1 + (twice - 1) * share)).hi), 0))
        wander = (twice[..., 0] - 1) * mean_off + value[..., 0] * np.where(see, moved, 0).max(1) + rounded
        reach = by_key[..., None] * most * (off + np.fmin(v_off.hi, wander.hi)[..., None])
        by_keys = by_keys + (reach * reach).sum(0)
        weighed = [most * r[group][:, None, None] for _, r in near.families]
        by_means = [mean + (a * a).sum(0) for mean, a in zip(by_means, weighed)]
        by_key = by_key * v_off
        by_key = by_key * by_key
        keys, queries = keys + by_key.sum(0), queries + (by_query * by_query).sum(0)
        best, collected = np.maximum(best, most.hi.max(0)), collected + (most * by_key[..., None]).sum(1).sum(0)
    rows, queries, c = sqrt(queries) + sqrt(keys), sqrt(queries), abs(interval(m.c["out"]))
    mean = np.fmin.reduce([np.where(best > 0, np.inf, 0)] + [(out * sqrt(mean)).hi for mean, (out, _) in zip(by_means, near.families)])
    shape = c * (mean + near.out * (sqrt(by_keys) + np.diag(queries.hi))) @ shape
    if not flat:
        return c * (near.mean + near.out * rows.hi.max()), shape.hi
    share = least(Interval(best).sum(0).hi.max(), near.count)
    return c * (sqrt(share) * near.mean + near.out * (sqrt(collected.hi.max()) + queries.hi.max())), shape.hi

def slope_at(curve, z):
    """f' at some numbers: an interval."""
    root = sqrt(2 / PI)
    if curve == "gelu":
        return (1 + erf(z / sqrt(2.0))) / 2.0 + z * exp(-z * z / 2.0) * root / 2.0
    if curve == "gelu_tanh":
        t = tanh(root * (z + CUBIC * z * z * z))
        return (1 + t) / 2.0 + z * (1 - t * t) * (1 + 3 * CUBIC * z * z) * root / 2.0
    if curve == "silu":
        s = 1 / (1 + exp(-z))
        return s + z * s * (1 - s)
    if curve == "tanh":
        return 1 - tanh(z) * tanh(z)
    return exp(Interval(np.minimum(z.lo, 0), np.minimum(z.hi, 0)))  # elu

def norm_from_above(matrix):
    found = float(np.linalg.norm(matrix.ball()[0], 2)) if np.isfinite(matrix.ball()[0]).all() else np.inf
    tries = (found * (1 + more) + 1e-290 for more in (1e-9, 1e-7, 1e-5))
    return next((t for t in tries if norm_is_at_most(matrix, t)), np.inf)

def mlp_slope(m, x, moved, keep=0.0, mix=1.0):
    """A perceptron where token t is within moved[t] of x, and the mix around it if it answers for that: of every token."""
    to, back, by = interval(m.get("in.weight")), interval(m.get("out.weight")), interval(m.c["factor"]) * mix
    if m.t * m.c["h"] * m.d * m.d_out > 2 ** 23:
        return np.full(m.t, np.inf)
    rows, columns = length(to), length(back.T)
    middle, half = SLOPES[m.c["curve"]]
    far, (at, off) = rows * moved[:, None], (interval(x) @ to.T + m.get("in.bias")).ball()
    if m.c["curve"] in ("relu", "abs"):
        turns = ~(np.abs(at) > (far + off).hi)
        slope, apart = np.where(turns, middle, np.where(at > 0, middle + half, middle - half)), Interval(np.where(turns, half, 0.0))
    else:
        slope, wide = slope_at(m.c["curve"], interval(np.clip(at, -40, 40))).ball()  # beyond 40 it is the same to 1e-15
        wide = wide + 1e-15
        apart = Interval(np.minimum((far + off + wide).hi, 2 * half * (1 + 1e-9)))
    joint = by * (back @ (slope[..., None] * to)) + (keep * np.eye(m.d) if keep else 0.0)
    apart = abs(by) * (apart * rows * columns).sum()
    return np.array([float((norm_from_above(joint[i]) + apart[i]).hi) for i in range(len(at))])
