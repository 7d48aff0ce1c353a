"""Constants around an input: docs/certificate.md, "Examples"."""
import numpy as np

from examples.run import attending, centre, seen
from interval import Interval, exp, interval, least, length, sqrt, stack
from rules.attention import by_head

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
