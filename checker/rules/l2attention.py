"""Attention over distances: docs/certificate.md has the formula, docs/modules/l2attention.md the proof."""
import numpy as np

from interval import Interval, exp, length, sqrt
from reader import need
from rules.attention import by_head, norms, read_parts

def l2attention(m, claim, x, where):
    if not m.c["tied"]:
        return Interval(np.inf), Interval(np.inf)
    _, heads, _ = read_parts(m, claim)
    query, value = norms(heads, "query", by_head(m, "q.weight")), norms(heads, "value", by_head(m, "v.weight"))
    c, t = Interval(claim.number("lambert")), float(m.t)
    need(t == 1 or (c * exp(c + 1)).lo >= t - 1, f"{claim.title}: lambert is stated as {float(c.lo)!r}, which is too small")
    both = length(query * query * value) / sqrt(float(m.d // m.c["heads"])) * claim.norm("out_norm", m.get("o.weight"))
    return (sqrt(t) + 2 * c + 2 * sqrt(c * t * 0.27846454276107383) if where.flat else 1 + 4 * c) * both, both * x
