"""PLASH and its sketch: docs/certificate.md has the formulas, docs/modules/plash.md and sketch.md the proofs."""
import numpy as np

from rules.attention import by_head, softmax
from interval import Interval, interval, least, length, size, sqrt, stack
from reader import UNKNOWN
from rules.rivals import WORDS, leave

ROLES = ("qkv", "kqv", "vqk")  # by pair: the map that asks, is routed, is read

def hash_tables(m):
    """Of every degree: its number, its buckets, and by factor the bucket and the sign of each feature."""
    at = 0
    for degree, buckets in zip(m.c["degrees"].astype(int), m.c["sizes"].astype(int)):
        table = m.c["hash"][at:at + degree * m.d].reshape(degree, m.d)
        at += degree * m.d
        yield degree, buckets, np.where(table < 0, -1 - table, table).astype(int), np.where(table < 0, -1.0, 1.0)

def sketch_fits(c):
    degrees, sizes, table = c["degrees"], c["sizes"], c["hash"]
    if not (len(degrees) == len(sizes) == c["k"] <= 4 and all(k in range(1, 17) for k in degrees) and c["floor"] > 0 and c["tau"] > 0):
        return False
    counts = (degrees * c["d"]).astype(int)
    high = np.repeat(sizes, counts) if counts.sum() == len(table) else np.zeros(len(table))
    return bool(((table >= -high) & (table < high) & (table == np.floor(table))).all())

def sketch(m, claim, x, where):
    floor, tau, lip, out = interval(m.c["floor"]), interval(m.c["tau"]), Interval(0.0), Interval(0.0)
    r = least(1.0, x / floor) / tau
    for i, (degree, buckets, table, _) in enumerate(hash_tables(m)):
        gain = size(m.get("beta")[i]) * claim.norm(f"norm_{i}", m.get(f"degree{degree}.weight"))
        full = sqrt(float(max(np.bincount(row).max() for row in table)))
        peak, others = least(sqrt(float(m.d)), sqrt(float(buckets)) * full) * r, Interval(1.0)
        for _ in range(degree - 1):
            others = others * peak
        lip, out = lip + gain * float(degree) * full * others, out + gain * full * r * others
    return lip / floor / tau, out

def plash(m, claim, x, where, confirm):
    reached = []
    for word, letter in zip("qkv", ROLES[m.c["pair"]]):
        norm = claim.norm(WORDS[word][0], m.get(letter + ".weight"))
        reached.append((norm, norm * x + claim.at_least(WORDS[word][1], length(m.get(letter + ".bias")))))
    (n_q, q), (n_k, k), (n_v, v) = reached
    heads, keys, scale = sqrt(float(m.c["heads"])), float(m.t - m.c["queries"]), size(m.c["scale"])
    longest = claim.at_least("longest", length(m.get("prototypes").reshape(-1, m.d // m.c["heads"])).hi.max())
    turn = 2 * size(m.c["route"]) * longest
    g = n_k * (1 + turn * k), n_v + turn * v * n_k
    claim.need(len(claim.of) == 1, "it must have one part")
    lip, z, defect = confirm(m.parts[0], claim.of[0], keys * sqrt(k * k + v * v), where)
    n_kg, n_vg = (claim.norm(key, m.get(name)) for key, name in (("group_key", "kg.weight"), ("group_value", "vg.weight")))
    rows = sqrt(float(m.c["asked"]) * interval(keys)) if where.flat else keys
    group = lip * rows * sqrt(g[0] * g[0] + g[1] * g[1]) * ((1.0 if where.flat else heads) * n_vg + scale * n_vg * z * q * n_kg)
    lip, out = leave(m, claim, scale * n_vg * z * n_kg * z * n_q + group, heads * n_vg * z)
    nothing = Interval(np.inf)
    return *((lip, out) if m.finite else (nothing, nothing)), nothing if defect.hi > 0 else defect

def run_sketch(m, x):
    far = length(x)
    g = x / (Interval(np.maximum(far.lo, m.c["floor"]), np.maximum(far.hi, m.c["floor"])) * m.c["tau"])[:, None]
    y = interval(0.0)
    for i, (degree, buckets, table, sign) in enumerate(hash_tables(m)):
        m.need(len(x.lo) * degree * buckets * buckets <= 2 ** 24, "its sketch is too large for this checker", UNKNOWN)
        turn, z = (np.arange(buckets)[:, None] - np.arange(buckets)) % buckets, None  # where b - a falls
        for row, signs in zip(table, sign):
            c = g @ (np.eye(buckets)[row] * signs[:, None])
            around = c[:, turn]  # convolution as a matrix for every token
            z = c if z is None else stack([z[t][None] @ around[t].T for t in range(len(x.lo))])
        y = y + m.get("beta")[i] * (z @ m.get(f"degree{degree}.weight").T)
    return y

def run_plash(m, x, middle):
    kt, vt, asked, out = [], [], [], []
    for h in range(m.c["heads"]):
        q, k, v = (x @ by_head(m, name + ".weight")[h].T + by_head(m, name + ".bias")[h] for name in ROLES[m.c["pair"]])
        share = softmax(k @ np.split(m.get("prototypes"), m.c["heads"], 1)[h].T * m.c["route"]).T
        kt, vt, asked = kt + [share @ k], vt + [share @ v], asked + [q]
    z = middle(stack(kt + vt, 1))
    for q, to_key, to_value in zip(asked, by_head(m, "kg.weight"), by_head(m, "vg.weight")):
        out.append(softmax(q @ (z @ to_key.T).T * m.c["scale"]) @ (z @ to_value.T))
    return m.c["out"] * (stack(out, 1) @ m.get("o.weight").T) + m.get("o.bias")
