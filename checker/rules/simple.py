"""Rules that are a matrix or less, norm layers, perceptrons and what moves tokens: docs/certificate.md, "The rules"."""
import numpy as np

from interval import Interval, exp, interval, least, length, most, size, sqrt

# Of each curve: middle and half width of its slopes.  Those of f(z)/z are 1/2 and 1/2, of abs 0 and 1.
SLOPES = {"gelu": (0.5, 0.628904145185155), "gelu_tanh": (0.5, 0.628993068658772), "silu": (0.5, 0.599839320128867),
          "relu": (0.5, 0.5), "tanh": (0.5, 0.5), "elu": (0.5, 0.5), "abs": (0.0, 1.0)}
SECANTS = {curve: (middle, 1 - middle) for curve, (middle, _) in SLOPES.items()}
ONE, NONE = Interval(1.0), Interval(np.inf)

def affine(norm, x, bias=0.0): return norm, norm * x + bias
def bias_of(m, claim): return claim.at_least("bias", length(m.get("bias")))
def linear(m, claim, x, where): return affine(claim.norm("norm", m.get("weight")), x, bias_of(m, claim))
def channel(m, claim, x, where): return affine(claim.at_least("norm", np.abs(m.get("weight")).max()), x)
def prefix(m, claim, x, where): return ONE, most(x, claim.at_least("longest", length(m.get("weight"))))
def position(m, claim, x, where): return ONE, x + claim.at_least("longest", length(m.get("weight")).hi.max())
def pool(m, claim, x, where): return 1 / sqrt(float(m.t)) if where.flat and m.c["mean"] else ONE, x
def l2pool(m, claim, x, where): return ONE if where.flat else sqrt(float(m.t)), sqrt(float(m.t)) * x
def concat(m, claim, x, where): return ONE if where.flat else sqrt(float(m.t)), sqrt(float(m.t)) * x
def unchanged(m, claim, x, where): return ONE, x
def neighbours(m, claim, x, where): return affine(sqrt(3.0), x)
def sinusoid(m, claim, x, where): return ONE, x + sqrt(float((m.d + 1) // 2))
def scale(m, claim, x, where): return affine(size(m.c["factor"]), x)
def steepest(curve): return interval(SLOPES[curve][0]) + SLOPES[curve][1]
def pointwise(m, claim, x, where): return size(m.c["factor"]) * steepest(m.c["curve"]), size(m.c["factor"]) * x

def halve(m, claim, x, where):
    grown = sqrt(float(min(3, m.t)))
    return sqrt(2.0 if m.t > 2 else 1.0) if where.flat else grown, grown * x

def pixels(m, claim, x, where):
    by, shift, copies = m.c["scale"], interval(m.c["shift"]), m.d_out // len(m.c["scale"])
    norm = claim.at_least("norm", np.abs(by).max())
    if where.first is not m:
        return affine(norm, x, claim.at_least("shift", length(np.tile(m.c["shift"], copies))))
    corner = np.maximum(abs(shift).hi, abs(shift + by).hi)
    return affine(norm, where.room, claim.at_least("corner", length(np.tile(corner, copies))))

def centred(m):
    """diag(g) (I - 11^T/d)"""
    return -(interval(m.get("weight")[:, None]) @ (1 / interval(np.full((1, m.d), float(m.d))))) + np.diag(m.get("weight"))

def layernorm(m, claim, x, where):
    eps, d, bias = interval(m.c["eps"]), float(m.d), length(m.get("bias")) if m.c["centred"] else 0.0
    norm = claim.norm("norm", centred(m)) if m.c["centred"] else claim.at_least("norm", np.abs(m.get("weight")).max())
    m.norm = norm
    grown = Interval(least(sqrt(d), x / sqrt(x * x / d + eps)).hi)
    if not m.c["eps"] > 0:  # 0/0 at a constant token
        return NONE, norm * grown + bias
    return norm if norm.hi == 0 else norm / sqrt(eps), norm * grown + bias

def centernorm(m, claim, x, where):
    return affine(size(m.c["factor"]) * claim.norm("norm", centred(m)), x, bias_of(m, claim))

def mlp(m, claim, x, where, keep=0.0, mix=1.0):
    to, back, by, hidden = interval(m.get("in.weight")), interval(m.get("out.weight")), interval(m.c["factor"]) * mix, m.c["h"]
    units = claim.numbers("units", hidden, lambda e: e.is_integer() and abs(e) < 999) if "units" in claim.node else [0.0] * hidden
    unit, product = np.ldexp(1.0, np.array(units, int)), back @ to
    joint = lambda key, middle: claim.norm(key, by * middle * product + (keep * np.eye(m.d) if keep else 0.0))
    both = claim.norm("scaled_in", unit[:, None] * to) * claim.norm("scaled_out", back * (1 / unit)) * abs(by)
    bias = abs(by) * claim.norm("norm_out", back) * claim.at_least("bias_in", length(m.get("in.bias")))
    bias = bias + size(mix) * claim.at_least("bias_out", length(m.get("out.bias")))
    (middle, half), (middle0, half0) = SLOPES[m.c["curve"]], SECANTS[m.c["curve"]]
    lip = least(joint("joint", middle) + both * half, size(keep) + both * steepest(m.c["curve"]))
    return lip, x * least(joint("joint_half", middle0) + both * half0, size(keep) + both) + bias

def scales_of(m):
    """T of potential and sll, x - 2 W^T T^-1 f(W x + b)."""
    weight, logs = interval(m.get("weight")), interval(m.get("log_q"))
    if m.rule == "potential":
        return interval(m.get("scale"))
    return 2.0 ** -40 + (abs(weight @ weight.T) * exp(logs - logs[:, None])).sum()

def residual(m, claim, x, where):
    scales, sign, ratio = size(scales_of(m)), 1.0, ONE
    if m.rule == "potential":
        norm, sign = claim.norm("norm", m.get("weight")), -1.0 if m.get("scale")[0] < 0 else 1.0
        ratio = norm * norm / scales[0]
    bias = claim.at_least("bias", length(m.get("bias") / sqrt(scales)))
    def spread(middle, half):
        lo, hi = interval(sign * middle) - half, interval(sign * middle) + half
        return most(1.0, 2 * ratio * hi - 1, 1 - 2 * ratio * lo)
    return spread(*SLOPES[m.c["curve"]]), x * spread(*SECANTS[m.c["curve"]]) + 2 * sqrt(ratio) * bias
