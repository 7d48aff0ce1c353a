"""What a move of the example does to every token by itself: N of docs/certificate.md, "Examples".

A row for each token.  The last column is apart from the others: how far the real token of the example is from its centre, at most."""
import numpy as np

from interval import Interval, interval, length

APART = ("linear", "position", "sinusoid", "scale", "pointwise", "channel", "maxmin", "layernorm", "centernorm", "mlp", "potential", "sll", "sketch")

def nothing(tokens): return np.full((tokens, 2), np.inf)

def at_first(tokens, flat):
    if flat and tokens > 1024:
        return nothing(tokens)
    return np.hstack((np.eye(tokens) if flat else np.ones((tokens, 1)), np.zeros((tokens, 1))))

def mixed(keep, shape, mix, inner):
    same = shape.shape == inner.shape  # else one of them says nothing
    return (abs(keep) * shape + abs(mix) * inner).hi if same else nothing(len(shape))

def rows(shape): return Interval(length(shape[:, :-1]).hi)

def every_row(shape, flat): return length(rows(shape)) if flat else rows(shape).hi.max()

def moved(at):
    """How far each token is from its centre, wherever the example is moved to."""
    return np.fmin(at.moved, (at.r * rows(at.shape) + at.shape[:, -1]).hi)

def further(shape, own):
    """What rounding adds to how far the real tokens are from their centres."""
    return np.hstack((shape[:, :-1], (shape[:, -1] + own).hi[:, None]))

def behind(m, shape, each, where):
    """The shape behind a module that is no attention; each: a constant for every token."""
    if m.rule in APART or m.rule == "mix":  # one that its perceptron answers for
        return (interval(shape) * each[:, None]).hi
    if m.rule == "pool":
        return (interval(shape).sum(0)[None] / float(m.t)).hi if m.c["mean"] else shape[:1]
    if m.rule in ("l2pool", "concat"):
        return length(shape.T).hi[None]
    if m.rule == "prefix":
        return np.vstack((np.zeros((1, shape.shape[1])), shape))
    if m.rule == "pixels" and m is where.first:  # the parts of an image, as long together as it is
        return (interval(at_first(m.t_out, True)) * each[0]).hi
    return nothing(m.t_out)
