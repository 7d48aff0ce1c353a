"""Predictions: is all that an example says true?  No constant of a proof rests on any of it."""
import numpy as np

from claim import Claim
from examples.forward import Point, forward, meet
from examples.shape import at_first, every_row, rows
from interval import Interval, interval, least, length
from reader import need, need_keys, whole

def read_input(values, what, where):
    count = {"image": where.root.d, "text": where.root.t, "series": -1}[where.kind]
    need(isinstance(values, list) and len(values) == count, f"{what} are no input")
    if where.kind == "image":
        need(all(isinstance(value, float) and 0 <= value <= 1 for value in values), f"{what} are not in [0, 1]")
        return np.array([values])
    table = where.weights.get("embed.weight")
    need(all(whole(value) < len(table) for value in values), f"{what} are not in the vocabulary")
    return table[np.array(values, int)]

def moved_about(x, radius, where):
    """Behind the body, of all that is within the radius of x."""
    return forward(where.body, Point(interval(x), x, np.zeros(len(x)), radius, radius, 1.0, at_first(len(x), where.flat)), where)

def check_example(node, title, where):
    """Whether all that an example says is proved, or some of it left open; what is false refutes."""
    root, inputs, where.boxes = where.root, "pixels" if where.kind == "image" else "ids", {}
    need(len(root.parts) > 1, f"{title}: the model has no head, and predicts nothing")
    need_keys(node, (inputs, "predicted", "margin", "radius", "verdict", "lip"), title)
    claim, p = Claim({**node, "rule": ""}, "", title), whole(node.get("predicted", 0.0))
    x, radius, margin = read_input(node.get(inputs), f"{title}: {inputs}", where), claim.number("radius"), claim.number("margin")
    need(node.get("verdict") == ("certified" if radius > 0 else "unknown"), f"{title}: verdict and radius do not fit")
    need(p < root.d_out and radius <= where.room.lo, f"{title}: predicted is no class, or radius is above room")
    if node.get("lip", "inf") != "inf":  # for all that is within the room of x
        need(where.finite and not where.jumps, f"{title}: lip is stated, and there is none")
        at = moved_about(x, float(where.room.hi), where)
        lip = least(where.lip, at.lip, every_row(at.shape, where.flat))
        for part in root.parts[1:]:
            lip = lip * part.lip
        claim.at_least("lip", lip)
    if where.jumps:  # no forward pass confirms another: nothing is said of the prediction
        need(radius == 0, f"{title}: a radius, but the model has a module that jumps")
        return True
    head, scale = root.parts[1], root.parts[2].c["factor"] if len(root.parts) > 2 else 1.0
    at, w = moved_about(x, radius, where), interval(head.get("weight"))
    z, b = at.box[-1], interval(head.get("bias") + np.zeros(root.d_out))
    others = np.arange(root.d_out) != p
    ways = (w[p] - w)[others]
    apart = length(ways)
    ahead = meet(ways @ z, ways @ at.centre[-1] + apart * at.off[-1] * Interval(-1, 1)) + (b[p] - b)[others]
    slack = 1e-8 * (abs(b[p]) + abs(b) + (abs(w[p]) + abs(w)) @ abs(z))[others] + apart * where.defect / 2.0
    limits = {"margin": (margin, scale * (ahead + slack))} if where.finite else {}
    if radius > 0:
        gain = ahead - apart * where.defect / 2.0 - 2.0 * where.tolerance / interval(scale)
        moves = apart * (least(where.lip, at.lip, rows(at.shape)[-1]) if where.finite else where.lip)
        reach, still = gain / moves, moves.hi == 0
        reach = Interval(np.where(still, np.where(gain.lo > 0, np.inf, -np.inf), reach.lo),
                         np.where(still, np.where(gain.hi > 0, np.inf, -np.inf), reach.hi))
        limits["radius"] = radius, reach
    for key, (stated, limit) in limits.items():
        highest = float(limit.hi.min(initial=np.inf))
        need(stated <= highest, f"{title}: {key} is stated as {stated!r}, proved is {highest!r}")
    return all(stated <= limit.lo.min(initial=np.inf) for stated, limit in limits.values())
