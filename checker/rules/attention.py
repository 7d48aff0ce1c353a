"""Attention by softmax, of products, in windows and of cosines: docs/certificate.md has the formulas, docs/modules/ the proofs."""
from types import SimpleNamespace

import numpy as np

from interval import Interval, exp, interval, least, length, sqrt
from reader import need

def by_head(m, name):
    """A tensor by heads: rows, of the output matrix columns; a bias that is not there is 0."""
    tensor = m.get(name).T if name == "o.weight" else m.get(name)
    tensor = np.broadcast_to(tensor, m.d) if tensor.ndim == 1 else tensor
    blocks = tensor.reshape(m.c["heads"], m.d // m.c["heads"], *tensor.shape[1:])
    return blocks.swapaxes(1, 2) if name == "o.weight" else blocks

def softmax(logits):
    weights = exp(logits - logits.hi.max(-1, keepdims=True))
    return weights / weights.sum()[..., None]

def alibi_slopes(m):
    return 2.0 ** (-8.0 * np.arange(1, m.c["heads"] + 1) / m.c["heads"]) * Interval(1 - 2.0 ** -48, 1 + 2.0 ** -48)

def read_parts(m, claim, some=False):
    """The heads that are stated, their numbers, and the families."""
    heads = [claim.part(node, "head") for node in claim.of if node.get("rule") != "family"]
    families = [claim.part(node, "family") for node in claim.of[len(heads):]]
    live = list(range(len(heads))) if m.rule == "l2attention" else [head.number("index") for head in heads]
    need(all(h in range(m.c["heads"]) for h in live) and sorted(set(live)) == live, f"{claim.title}: the heads are not in order")
    need(some or len(live) == m.c["heads"] and not families, f"{claim.title}: it must have its heads as parts and nothing else")
    return [int(h) for h in live], heads, families

def live_heads(m, claim, plain):
    """The same; heads that are left out give nothing.  And what becomes of values, F_h."""
    live, heads, families = read_parts(m, claim, some=True)
    out, value = by_head(m, "o.weight"), by_head(m, "v.weight")
    for h in set(range(m.c["heads"])) - set(live):
        some = np.abs(out[h]) @ np.abs(value[h]) if plain else out[h]
        need(m.finite and not some.any(), f"{claim.title}: head {h} is missing")
    weights = [Interval(family.numbers("weights", len(live), lambda t: t > 0)) for family in families]
    return live, heads, list(zip(families, weights)), interval(out[live]) @ value[live] if plain else interval(out[live])

# What every head states, as a vector; scaled matrices below or beside each other; the least of each term over the families.
def norms(heads, key, matrices): return Interval([float(head.norm(key, matrices[i]).lo) for i, head in enumerate(heads)])
def lengths(heads, key, vectors): return Interval([float(h.at_least(key, length(vectors[i])).lo) for i, h in enumerate(heads)])
def below(by, matrices): return (by[:, None, None] * matrices).each(lambda end: end.reshape(-1, end.shape[-1]))
def beside(by, matrices): return below(by, matrices.T).T

def reached(norm, x):
    """norm x, and 0 where the norm is 0 even if x has no bound."""
    return Interval(np.where(norm.hi == 0, 0, (norm * x).hi))

def smallest(rows, count, live):
    """Without heads there is nothing to bound."""
    return [least(*column) for column in zip(*rows)] if rows else [Interval(np.inf if live else 0.0)] * count

def most_collected(m, live, spread):
    """The most that one key gets from all queries, the logits of each head being within its spread of each other."""
    asked, keys = m.c["asked"], m.t - (m.c.get("queries") or 0)
    if m.rule == "window":  # so many rows can meet a key, and none of them sees fewer keys than that
        asked = m.t if m.c["global"] else min(m.t, (2 if m.c["causal"] else 3) * m.c["size"])
        keys = 1 if m.c["causal"] else min(m.t, m.c["size"] + 1 + m.c["global"])
    growing = m.c["causal"] and m.rule != "window"
    rivals = np.broadcast_to(np.arange(float(asked)) if growing else keys - 1.0, (len(live), asked))
    if m.c.get("alibi"):
        sums = np.cumsum(exp(-alibi_slopes(m)[live][:, None] * np.arange(1.0, m.t + 1)).lo, 1) * (1 - (m.t + 4) * 2.0 ** -52)
        rivals = np.take_along_axis(np.pad(sums, ((0, 0), (1, 0))), rivals.astype(int), 1)
    others = (exp(-spread)[:, None] * rivals).lo.min(0, initial=np.inf)
    return (1 / (1 + interval(np.maximum(others, 0)))).sum() if live else 0.0

def biases(m, claim):
    value = 0.0 if m.c.get("values") else length(interval(m.get("o.weight")) @ np.broadcast_to(m.get("v.bias"), m.d))
    return claim.at_least("value_bias", value), claim.at_least("bias", length(m.get("o.bias")))

def attention(m, claim, x, where):
    live, heads, families, value = live_heads(m, claim, plain=True)
    s, c, turned, one = abs(interval(m.c["scale"])), abs(interval(m.c["out"])), bool(m.c.get("rope")), Interval(np.ones(len(live)))
    q, k, bq, bk = (interval(by_head(m, name)[live]) for name in ("q.weight", "k.weight", "q.bias", "k.bias"))
    ask, ask_bias = (q, bq) if turned else (k.T @ q, (k.T @ bq[:, :, None])[:, :, 0])
    query, query_bias = norms(heads, "query", ask), lengths(heads, "query_bias", ask_bias)
    key, key_bias = (norms(heads, "key", k), lengths(heads, "key_bias", bk)) if turned else (one, 0 * one)
    keys, queries = reached(key, x) + key_bias, reached(query, x) + query_bias
    count = claim.at_least("count", most_collected(m, live, 2 * s * reached(queries, keys)))
    keys = Interval(np.where(query.hi == 0, 0, keys.hi))
    rows, weighed = [], []
    for family, t in families:
        out = family.norm("out_norm", beside(t, value))
        weighed.append((out, 1 / t))
        inside = reached(reached(family.norm("logit_norm", below(key / t, ask)), x) + length(key * query_bias / t), s * x)
        query_norm, sigma = family.norm("query_norm", below(keys / t, ask)), length(1 / t)
        joint = Interval(np.inf) if turned else out * sqrt(sigma * sigma + inside * inside)
        rows.append((out * sigma, joint, out * inside, reached(out * s * query_norm, x)))
    mean, joint, apart, queries = smallest(rows, 4, live)
    if "o_norm" in claim.node and not m.c.get("queries"):  # what forward.py needs around an example
        m.near = SimpleNamespace(out=claim.norm("o_norm", m.get("o.weight")), live=live, query=query, key=key, mean=mean, count=count,
                                 families=weighed)
    keys, (value_bias, bias) = least(joint, mean + apart), biases(m, claim)
    lip = (sqrt(count) if where.flat else 1) * keys + queries
    if where.flat and m.c.get("queries"):
        lip = sqrt(count * keys * keys + queries * queries)
    return c * lip, c * (mean * x + value_bias) + bias

def cosattention(m, claim, x, where):
    values, eps, flat = m.c["values"], interval(m.c["eps"]), where.flat
    live, heads, families, value = live_heads(m, claim, plain=not values)
    s, c, steep, far = abs(interval(m.c["scale"])), abs(interval(m.c["out"])), 1 / sqrt(eps), Interval(1.0) if values else x
    w, norm, near = {}, {}, {}
    for name, word in [("q", "query"), ("k", "key")] + [("v", "value")] * values:
        w[name] = interval(by_head(m, name + ".weight")[live])
        norm[name] = norms(heads, word, w[name])
        z = reached(norm[name], x) + lengths(heads, word + "_bias", by_head(m, name + ".bias")[live])
        ratio = z / sqrt(z * z + eps)
        near[name] = Interval(np.minimum(ratio.hi, 1))
    count = claim.at_least("count", most_collected(m, live, 2 * s * near["q"] * near["k"]))
    root, rows = sqrt(count) if flat else Interval(1.0), []
    for family, t in families:
        r, u = 1 / t, near["v"] / t if values else 1 / t
        out, query = family.norm("out_norm", beside(t, value)), family.norm("query_norm", below(u * near["k"], w["q"]))
        key, key_near = family.norm("key_norm", below(u, w["k"])), family.norm("key_norm_near", below(u * near["q"], w["k"]))
        middle = length(r)
        if values:
            value_norm = family.norm("value_norm", below(r, w["v"]))
            middle = steep * (value_norm if flat else length(r * norm["v"]))
        if flat:
            bends = least(sqrt(count * key * key + query * query), root * key_near + query)
        else:
            a, larger = length(u * norm["k"]), Interval(np.maximum(norm["k"].hi, norm["q"].hi))
            bends = least(length(u * larger), sqrt(a * a + query * query), length(u * near["q"] * norm["k"]) + query)
        rows.append((out * middle, out * s * steep * far * bends, out * length(u) * far))
    (mean, logits, grown), (value_bias, bias) = smallest(rows, 3, live), biases(m, claim)
    lip = c * (root * mean + logits) if m.c["eps"] > 0 else Interval(np.inf)  # 0/0 where a query or a key is 0
    return lip, c * (grown + value_bias) + bias
