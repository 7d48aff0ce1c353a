"""The network at one input, and around it: in boxes, and by the confirmed constants around a centre."""
import numpy as np

from examples.around import attention_slope, mlp_slope, slope_of
from examples.run import FORWARD
from examples.shape import behind, further, mixed, moved, nothing
from interval import LOOSE, Interval, interval, least, length
from reader import UNKNOWN, need
from rules.plash import run_plash

MIXES = ("attention", "plash", "window", "cosformer", "performer", "cosattention", "l2attention", "posattention", "attlip", "pool", "l2pool", "concat", "prefix", "pixels")

def meet(a, b): return Interval(np.maximum(a.lo, b.lo), np.minimum(a.hi, b.hi))

class Point:
    """What is known of the tokens at some place: that they are in a box, and each no further (l2) than `off` from its centre.
    However the example is moved within its radius r, they are no further than `moved` from the centres, and on the way here grew
    by no more than `lip`; each by itself by no more than `shape` says."""

    def __init__(self, box, centre, off, r=np.inf, moved=np.inf, lip=1.0, shape=None):
        self.centre, self.r, self.moved, self.lip = centre, r, moved, lip
        self.shape = nothing(len(centre)) if shape is None else shape
        self.off = np.fmin(off, self.shape[:, -1])
        self.box = meet(box, centre + Interval(-1, 1) * self.off[:, None])

def around(box):
    middle, radius = box.ball()
    return Point(box, middle, length(radius).hi)

def once(m, x, apply, where):
    """Computed once: the passes of an example differ in how far it moves, and pass through the same boxes."""
    key = id(m), x.lo.tobytes(), x.hi.tobytes()
    if key not in where.boxes:
        where.boxes[key] = apply(x)
    return where.boxes[key]

def step(m, at, apply, where):
    """Through a module: at the centre itself, and what is around it by its constant; or the whole box."""
    middle, radius = once(m, interval(at.centre), apply, where).ball()
    off = at.off if m.rule not in MIXES else np.full(len(middle), float(length(at.off).hi) if where.flat else at.off.max())
    off = np.where(off == 0, 0, slope_of(m, at, at.off) * off * LOOSE)
    own, flat, far = length(radius), where.flat, moved(at)
    each = np.broadcast_to(slope_of(m, at, far), len(far))
    leaf, about = (m.parts[0], (m.c["keep"], m.c["mix"])) if m.joint else (m, ())
    if leaf.rule == "mlp" and leaf.finite and at.r < np.inf:
        each = np.fmin(each, mlp_slope(leaf, at.centre, far, *about))
    slope = interval(each.max())
    if m.near and m.finite and at.r < np.inf:
        near, shape = attention_slope(m, at.centre, far, flat, at.shape)
        slope = least(slope, near)
    else:
        shape = behind(m, at.shape, each, where)
    on = (slope * at.moved if slope.hi > 0 else slope) + (length(own.hi) if flat else own.hi.max())
    return Point(once(m, at.box, apply, where), middle, (interval(off) + own).hi, at.r, float(on.hi), float((slope * at.lip).hi),
                 further(shape, own))

def forward(m, at, where):
    if m.rule == "sequence" or m.rule == "mix" and not m.joint:
        inner = Point(at.box, at.centre, at.off, at.r, at.moved, 1.0, at.shape)
        for part in m.parts:
            inner = forward(part, inner, where)
        if m.rule == "sequence":
            inner.lip = float((interval(inner.lip) * at.lip).hi)
            return inner
        keep, mix = interval(m.c["keep"]), interval(m.c["mix"])
        middle, radius = (keep * at.centre + mix * inner.centre).ball()
        own = length(radius)
        on = abs(keep) * at.moved + abs(mix) * inner.moved + (length(own.hi) if where.flat else own.hi.max())
        return Point(keep * at.box + mix * inner.box, middle, (abs(keep) * at.off + abs(mix) * inner.off + own).hi, at.r, float(on.hi),
                     float(((abs(keep) + abs(mix) * inner.lip) * at.lip).hi),
                     further(mixed(keep, at.shape, mix, inner.shape), own))
    leaf = m.parts[0] if m.joint else m
    known = leaf.rule in (*FORWARD, "plash") and not m.c.get("queries") and m.t <= 2 ** 13
    need(known, f"{m.path}: no examples through {m.rule}", UNKNOWN)
    if m.rule == "plash":
        return step(m, at, lambda x: run_plash(m, x, lambda u: forward(m.parts[0], around(u), where).box), where)
    apply = FORWARD[leaf.rule]
    return step(m, at, (lambda x: m.c["keep"] * x + m.c["mix"] * apply(leaf, x)) if m.joint else lambda x: apply(m, x), where)
