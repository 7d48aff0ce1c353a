"""The constant and the size of every module, from numbers that are proved first: docs/certificate.md, "The rules"."""
import numpy as np

from attention import attention, attlip, cosattention, l2attention, posattention, scales_of
from claim import Claim
from interval import Interval, interval, least, length, most, sqrt
from reader import need

# Of each curve: middle and half width of its slopes.  Those of f(z)/z are 1/2 and 1/2, of abs 0 and 1.
SLOPES = {"gelu": (0.5, 0.628904145185155), "gelu_tanh": (0.5, 0.628993068658772), "silu": (0.5, 0.599839320128867),
          "relu": (0.5, 0.5), "tanh": (0.5, 0.5), "elu": (0.5, 0.5), "abs": (0.0, 1.0)}
SECANTS = {curve: (middle, 1 - middle) for curve, (middle, _) in SLOPES.items()}
ONE, NONE = Interval(1.0), Interval(np.inf)

def size(number):
    return abs(interval(number))

def linear(m, claim, x, where):
    norm = claim.norm("norm", m.get("weight"))
    return norm, norm * x + claim.at_least("bias", length(m.get("bias")))

def pixels(m, claim, x, where):
    scale, shift, copies = m.c["scale"], interval(m.c["shift"]), m.d_out // len(m.c["scale"])
    norm = claim.at_least("norm", np.abs(scale).max())
    if where.first is not m:
        return norm, norm * x + claim.at_least("shift", length(np.tile(m.c["shift"], copies)))
    corner = np.maximum(abs(shift).hi, abs(shift + scale).hi)
    return norm, claim.at_least("corner", length(np.tile(corner, copies))) + norm * where.room

def centred(m):
    """diag(g) (I - 11^T/d)"""
    gains = m.get("weight")
    return -(interval(gains[:, None]) @ (1 / interval(np.full((1, m.d), float(m.d))))) + np.diag(gains)

def layernorm(m, claim, x, where):
    eps, d, bias = interval(m.c["eps"]), float(m.d), length(m.get("bias")) if m.c["centred"] else 0.0
    norm = claim.norm("norm", centred(m)) if m.c["centred"] else claim.at_least("norm", np.abs(m.get("weight")).max())
    grown = least(sqrt(d), x / sqrt(x * x / d + eps)) if eps.lo >= 0 else NONE
    return norm if norm.hi == 0 else norm / sqrt(eps), norm * grown + bias

def centernorm(m, claim, x, where):
    norm = size(m.c["factor"]) * claim.norm("norm", centred(m))
    return norm, norm * x + claim.at_least("bias", length(m.get("bias")))

def mlp(m, claim, x, where, keep=0.0, mix=1.0):
    to, back, by, hidden = interval(m.get("in.weight")), interval(m.get("out.weight")), interval(m.c["factor"]) * mix, m.c["h"]
    units = claim.numbers("units", hidden, lambda e: e == int(e) and abs(e) < 999) if "units" in claim.node else np.zeros(hidden)
    scale, product = np.ldexp(1.0, units.astype(int)), back @ to
    joint = lambda key, middle: claim.norm(key, by * middle * product + (keep * np.eye(m.d) if keep else 0.0))
    both = claim.norm("scaled_in", scale[:, None] * to) * claim.norm("scaled_out", back * (1 / scale)) * abs(by)
    bias = abs(by) * claim.norm("norm_out", back) * claim.at_least("bias_in", length(m.get("in.bias")))
    bias = bias + size(mix) * claim.at_least("bias_out", length(m.get("out.bias")))
    (middle, half), (middle0, half0) = SLOPES[m.c["curve"]], SECANTS[m.c["curve"]]
    lip = least(joint("joint", middle) + both * half, size(keep) + both * (interval(middle) + half))
    return lip, x * least(joint("joint_half", middle0) + both * half0, size(keep) + both) + bias

def residual(m, claim, x, where):
    """potential and sll: x - 2 W^T T^-1 f(W x + b)"""
    weight, sign = interval(m.get("weight")), 1.0
    if m.rule == "potential":
        s, norm = m.get("scale")[0], claim.norm("norm", weight)
        scales, ratio, sign = size(s), norm * norm / size(s), -1.0 if s < 0 else 1.0
    else:
        scales, ratio = scales_of(m), ONE
    bias = claim.at_least("bias", length(m.get("bias") / sqrt(scales)))
    spread = lambda middle, half: most(1.0, 2 * ratio * (interval(sign * middle) + half) - 1, 1 - 2 * ratio * (interval(sign * middle) - half))
    return spread(*SLOPES[m.c["curve"]]), x * spread(*SECANTS[m.c["curve"]]) + 2 * sqrt(ratio) * bias

def channel(m, claim, x, where):
    norm = claim.at_least("norm", np.abs(m.get("weight")).max())
    return norm, norm * x

def halve(m, claim, x, where):
    grown = sqrt(float(min(3, m.t)))
    return sqrt(2.0 if m.t > 2 else 1.0) if where.flat else grown, grown * x

LEAVES = {
    "linear": linear, "pixels": pixels, "layernorm": layernorm, "centernorm": centernorm, "mlp": mlp, "potential": residual,
    "sll": residual, "channel": channel, "halve": halve, "attention": attention, "cosattention": cosattention,
    "l2attention": l2attention, "attlip": attlip, "posattention": posattention,
    "prefix": lambda m, claim, x, where: (ONE, most(x, claim.at_least("longest", length(m.get("weight"))))),
    "position": lambda m, claim, x, where: (ONE, x + claim.at_least("longest", length(m.get("weight")).hi.max())),
    "pool": lambda m, claim, x, where: (1 / sqrt(float(m.t)) if where.flat and m.c["mean"] else ONE, x),
    "concat": lambda m, claim, x, where: (ONE if where.flat else sqrt(float(m.t)), sqrt(float(m.t)) * x),
    "tokens": lambda m, claim, x, where: (ONE, x), "maxmin": lambda m, claim, x, where: (ONE, x),
    "neighbours": lambda m, claim, x, where: (sqrt(3.0), sqrt(3.0) * x),
    "sinusoid": lambda m, claim, x, where: (ONE, x + sqrt(float((m.d + 1) // 2))),
    "scale": lambda m, claim, x, where: (size(m.c["factor"]), size(m.c["factor"]) * x),
    "pointwise": lambda m, claim, x, where: (size(m.c["factor"]) * (interval(SLOPES[m.c["curve"]][0]) + SLOPES[m.c["curve"]][1]), size(m.c["factor"]) * x),
}

def confirm_leaf(m, claim, x, where, scope):
    if claim.says_nothing:
        return NONE, NONE, NONE if m.rule == "attlip" else Interval(0.0)
    claim.seen |= {"scope"} if scope else set()
    lip, out = LEAVES[m.rule](m, claim, x, where, *scope)
    return *((lip, out) if m.finite else (NONE, NONE)), Interval(claim.number("defect") if m.rule == "attlip" else 0.0)

def confirm_parts(m, claim, x, where):
    need(len(claim.of) == len(m.parts), f"{claim.title}: it must have {len(m.parts)} parts")
    joint = m.rule == "mix" and [part.rule for part in m.parts] == ["mlp"] and claim.of[0].get("scope") == "mix"
    lip, out, defect = ONE, x, Interval(0.0)
    for part, node in zip(m.parts, claim.of):
        enters = x if m.rule == "parts" else out
        own_lip, own_out, own_defect = confirm(part, node, enters, where, (m.c["keep"], m.c["mix"]) if joint else ())
        if m.rule == "parts":
            first = part is m.parts[0]
            lip, out = (own_lip, own_out) if first else (most(lip, own_lip), most(out, own_out))
            defect = sqrt(defect * defect + own_defect * own_defect)
        else:
            lip, out, defect = lip * own_lip, own_out, own_lip * defect + own_defect
        if part is where.body:
            where.lip, where.defect = lip, defect
    if m.rule == "ask":
        return 1 + lip, x + out, defect
    if m.rule == "mix" and not joint:
        return size(m.c["keep"]) + size(m.c["mix"]) * lip, size(m.c["keep"]) * x + size(m.c["mix"]) * out, size(m.c["mix"]) * defect
    return lip, out, defect

def confirm(m, node, x, where, scope=()):
    """The stated constant and size of a module, and the defect that it adds, once all of them are proved."""
    claim = Claim(node, m.rule, m.path or "the model")
    need(node.get("name", "") == m.name, f"{claim.title}: its name must be {m.name!a}")
    lip, out, defect = confirm_parts(m, claim, x, where) if m.parts else confirm_leaf(m, claim, x, where, scope)
    lip, out = claim.at_least("lip", lip), claim.at_least("out", out)
    claim.end()
    return lip, out, defect
