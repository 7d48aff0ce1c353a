"""Attentions in linear time: docs/certificate.md has the formulas, docs/modules/ the proofs."""
import numpy as np

from interval import Interval, interval, length, size, sqrt

JUMPS = ("nystrom", "clustered", "probsparse")
WORDS = {"q": ("query", "query_bias"), "k": ("key", "key_bias"), "v": ("value", "value_bias"), "o": ("out_norm", "bias")}

def reach(m, claim, letter, x):
    """The norm of an affine map, and how far it takes tokens up to x."""
    norm = claim.norm(WORDS[letter][0], m.get(letter + ".weight"))
    return norm, norm * x + claim.at_least(WORDS[letter][1], length(m.get(letter + ".bias")))

def leave(m, claim, lip, grown):
    out = size(m.c["out"])
    norm, far = reach(m, claim, "o", out * grown)
    return out * norm * lip, far

def counts(m):
    """Keys, and the roots of heads and of rows."""
    return float(m.t - m.c["queries"]), sqrt(float(m.c["heads"])), sqrt(float(m.c["asked"]))

def cosformer(m, claim, x, where):
    (n_q, q), (n_k, k), (n_v, v) = (reach(m, claim, letter, x) for letter in "qkv")
    keys, heads, rows = counts(m)
    steep = 2 * v / interval(m.c["eps"])
    if where.flat:
        lip = rows * n_v + steep * (keys * k * n_q + rows * sqrt(keys) * q * n_k)
    else:
        lip = heads * n_v + steep * keys * (k * n_q + q * n_k)
    return leave(m, claim, lip, heads * v)

def performer(m, claim, x, where):
    (n_q, _), (n_k, k), (n_v, v) = (reach(m, claim, letter, x) for letter in "qkv")
    w = claim.at_least("longest", length(m.c["directions"].reshape(-1, m.d // m.c["heads"])).hi.max())
    _, heads, rows = counts(m)
    s = sqrt(m.c["scale"])
    lip = (rows if where.flat else heads) * (n_v + 2 * v * s * (w + s * k) * n_k) + v * s * w * n_q
    return leave(m, claim, lip, heads * v)

def jumping(m, claim, x, where):
    """No constant; how long what comes out is."""
    claim.seen.add("reason")
    claim.need(isinstance(claim.node.get("reason", ""), str), "reason is no word")
    grown = sqrt(float(m.c["heads"])) * reach(m, claim, "v", x)[1]
    if m.c.get("first"):
        grown = grown * (1 + size(m.c["scale"]) * reach(m, claim, "q", x)[1] * reach(m, claim, "k", x)[1])
    if m.rule == "probsparse" and m.c["causal"]:
        grown = grown * float(m.t)
    for _ in range(m.c["steps"] if m.rule == "nystrom" else 0):
        grown = grown * 3.25
    return Interval(np.inf), leave(m, claim, 0.0, grown)[1]
