"""The proof, node by node: what a module states of itself is what its rule makes of its numbers and of its parts."""
import numpy as np

from claim import Claim
from interval import Interval, most, size, sqrt
from rules import LEAVES
from rules.plash import plash

ONE, NONE, NOTHING = Interval(1.0), Interval(np.inf), Interval(0.0)

def confirm_leaf(m, claim, x, where, scope):
    claim.seen |= {"scope"} if scope else set()
    lip, out = (NONE, NONE) if claim.says_nothing else LEAVES[m.rule](m, claim, x, where, *scope)
    defect = NOTHING if m.rule != "attlip" else NONE if claim.says_nothing else Interval(claim.number("defect"))
    return *((lip, out) if m.finite else (NONE, NONE)), defect

def confirm_parts(m, claim, x, where):
    if m.rule == "plash":
        return plash(m, claim, x, where, confirm)
    claim.need(len(claim.of) == len(m.parts), f"it must have {len(m.parts)} parts")
    joint = m.joint = m.rule == "mix" and [part.rule for part in m.parts] == ["mlp"] and claim.of[0].get("scope") == "mix"
    lip, out, defect, apart = ONE, x, NOTHING, []
    for part, node in zip(m.parts, claim.of):
        own = confirm(part, node, x if m.rule == "parts" else out, where, (m.c["keep"], m.c["mix"]) if joint else ())
        lip, out, defect = lip * own[0], own[1], own[0] * defect + own[2] if defect.hi > 0 else own[2]
        apart.append(own)
    if m.rule == "parts":
        (lip, out, a), (other_lip, other_out, b) = apart
        return most(lip, other_lip), most(out, other_out), sqrt(a * a + b * b)
    if m.rule == "ask":
        return 1 + lip, x + out, defect
    if m.rule == "mix" and not joint:
        keep, mix = size(m.c["keep"]), size(m.c["mix"])
        return keep + mix * lip, keep * x + mix * out, mix * defect
    return lip, out, defect

def confirm(m, node, x, where, scope=()):
    """The stated constant and size of a module, and the defect that it adds, once all of them are proved."""
    has_parts = bool(m.parts) or m.rule.endswith("attention") or m.rule == "window"
    claim = Claim(node, m.rule, m.path or "the model", ("rule", "name", "lip", "out") + ("of",) * has_parts)
    claim.need(node.get("name", "") == m.name and node.get("name") != "", f"its name must be {m.name!a}")
    lip, out, defect = confirm_parts(m, claim, x, where) if m.parts else confirm_leaf(m, claim, x, where, scope)
    lip, out = claim.at_least("lip", lip), claim.at_least("out", out)
    claim.end()
    m.lip, m.reach = float(lip.hi), float(x.lo)
    if m is where.body:
        where.lip, where.defect = lip, defect
    return lip, out, defect
