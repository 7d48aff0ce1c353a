"""Attention by position: docs/certificate.md has the formula, docs/modules/posattention.md the proof."""
import numpy as np

from interval import Interval, interval, length, sqrt
from reader import UNKNOWN, need
from rules.attention import below, by_head, norms, read_parts, softmax

def gains(m):
    """What posattention multiplies each head by: as the tree lists it, else by where the head looks at the start."""
    if not isinstance(m.c["gain"], int):
        return list(m.c["gain"])
    starts = [min(2.0 ** min(h, 60) if m.c["far"] and h else h, m.c["context"] - 1.0) for h in range(m.c["heads"])]
    return [1.0 if m.c["row"] else float(np.float32(1 / np.sqrt(1 + start))) for start in starts]

def shares(m, h, n):
    """What n queries of head h take from n keys."""
    at, row = np.arange(n), m.c["row"]
    shift = at[:, None] - at
    if row:
        shift = (at[:, None] // row - at // row) % (n // row) * row + shift % row
    table = m.get("distance.weight")[h][shift if m.c["causal"] or row else shift + m.c["context"] - 1]
    return softmax(Interval(np.where(shift < 0, -1e300, table) if m.c["causal"] else table))

def heaviest_column(m, h):
    need(m.t <= (4096 if m.c["causal"] else 512), f"{m.path}: too many tokens for this checker", UNKNOWN)
    lengths_ = [] if m.c["row"] else [m.t] if m.c["causal"] else range(1, m.t + 1)
    return max((float(shares(m, h, n).sum(0).hi.max()) for n in lengths_), default=1.0)

def posattention(m, claim, x, where):
    live, heads, _ = read_parts(m, claim)
    value, gain = interval(by_head(m, "v.weight")), Interval(gains(m))
    out, bias = claim.norm("out_norm", m.get("o.weight")), claim.at_least("bias", length(m.get("o.bias")))
    mean = out * length(gain * norms(heads, "norm", value))
    if not where.flat:
        return mean, mean * x + bias
    column = Interval([float(head.at_least("column", heaviest_column(m, h)).lo) for h, head in zip(live, heads)])
    return out * claim.norm("joint", below(gain * sqrt(column), value)), mean * x + bias
