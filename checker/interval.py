"""Intervals of doubles that hold the truth: every operation is rounded outward, and what is not a number may be anything.

Assumed: IEEE double, to nearest; an entry of NumPy's matrix product is k products and sums of doubles in any order, fused or not,
and its sum k sums; exp, expm1, log, tanh, erf, sin and cos are within 2^-50 of the truth, relatively (sin and cos absolutely)."""
import math
from functools import reduce

import numpy as np

np.seterr(all="ignore")
UNIT, LOOSE = 2.0 ** -53, 1 + 2.0 ** -20  # LOOSE covers the rounding of any error term

def choose(first, a, b):
    """np.where, which takes long for single numbers: they are many here."""
    return np.where(first, a, b) if first.ndim else a if first else b

def add_toward(a, b, end):
    """a + b, or its neighbour towards `end` unless the sum is exact (Knuth's test)."""
    s = a + b
    part = s - a
    return choose((a - (s - part)) + (b - part) == 0, s, np.nextafter(s, end))

def widen(lo, hi, exact=None):
    wide = np.nextafter(lo, -np.inf), np.nextafter(hi, np.inf)
    return Interval(*wide) if exact is None else Interval(choose(exact, lo, wide[0]), choose(exact, hi, wide[1]))

def meets(a, b):
    """Where a product has a term that is not 0."""
    return (a != 0).astype(np.float64) @ (b != 0).astype(np.float64) > 0

def slices(a, axis, bits, count=3):
    """Arrays of few bits, a row (or column) in one unit, which add up to `a` but for a rest; and the largest entries."""
    parts, top = [], np.abs(a).max(axis, keepdims=True)
    large = np.ldexp(1.5, np.frexp(top)[1] + 52 - bits)
    for _ in range(count):
        parts.append((a + large) - large)  # to a multiple of 2^-bits times a power of two above the row's largest entry, 2^-2bits, ...
        a, large = a - parts[-1], large * 2.0 ** -bits
    return parts, top

def close_product(a, b):
    """A product of matrices, and an error beside it.  Products of the first slices are so short that no sum of them is rounded, in any
    order; the rest is 5k terms, each 2^-bits or less of the largest, so that its own rounding is as small as what is left out."""
    k = a.shape[-1]
    if math.prod(np.broadcast_shapes(a.shape[:-2], b.shape[:-2])) * a.shape[-2] * b.shape[-1] > 2 ** 27:
        raise MemoryError
    bits = (53 - max(1, math.ceil(math.log2(k)))) // 2  # k is at most 2^(53 - 2bits)
    ((a0, a1, a2), a_top), ((b0, b1, b2), b_top) = slices(a, -1, bits), slices(b, -2, bits)
    product = a0 @ b0 + np.concatenate((a1, a0, a2, a1, a0), -1) @ np.concatenate((b0, b1, b0, b1, b2), -2)
    # slices that are left out: 5 k 2^-3bits; 5k roundings of a sum of 2.01 k 2^-bits: 10.1 k 2^-3bits; the last sum
    return product, 16 * k * 2.0 ** (-3 * bits) * (a_top * b_top) + UNIT * np.abs(product)

class Interval:
    __array_ufunc__ = None  # so that array * Interval is Interval's affair

    def __init__(self, lo, hi=None):
        self.lo = np.asarray(lo, np.float64)
        self.hi = self.lo if hi is None else np.asarray(hi, np.float64)
        ordered = self.lo <= self.hi
        if not (ordered.all() if ordered.ndim else ordered):
            bad = np.isnan(self.lo) | np.isnan(self.hi)
            self.lo, self.hi = np.where(bad, -np.inf, self.lo), np.where(bad, np.inf, self.hi)
        self.shape = self.lo.shape

    def ends(self):
        return (self.lo,) if self.lo is self.hi else (self.lo, self.hi)

    def simple(self):
        """Exactly 0, 1 or -1: such a factor rounds nothing."""
        simple = (np.abs(self.lo) == 1) | (self.lo == 0)
        return simple if self.lo is self.hi else simple & (self.lo == self.hi)

    def __add__(self, other):
        other = interval(other)
        return Interval(add_toward(self.lo, other.lo, -np.inf), add_toward(self.hi, other.hi, np.inf))

    def __mul__(self, other):
        other = interval(other)
        ends = [a * b for a in self.ends() for b in other.ends()]
        return widen(reduce(np.minimum, ends), reduce(np.maximum, ends), self.simple() | other.simple())

    def __truediv__(self, other):
        other = interval(other)
        known = (other.lo > 0) | (other.hi < 0)
        ends = [a / choose(known, b, np.nan) for a in self.ends() for b in other.ends()]
        return widen(reduce(np.minimum, ends), reduce(np.maximum, ends), other.simple() | (self.lo == 0) & (self.hi == 0))

    def __matmul__(self, other):
        other = interval(other)
        if other.lo.ndim == 1:
            return (self @ other[:, None])[..., 0]
        if self.lo.ndim == 1:
            return (self[None] @ other)[0]
        (a, da), (b, db) = self.ball(), other.ball()
        middle, error = close_product(a, b)
        a, b = np.abs(a), np.abs(b) + db
        for left, right in ((a, db), (da, b)):
            if left.any() and right.any():
                error = error + left @ right * LOOSE
        error = (error + 2.0 ** -1000) * meets(a + da, b)  # the least of it is for underflow
        return widen(middle - error, middle + error, error == 0)

    def ball(self):
        """Middle and radius."""
        if self.lo is self.hi:
            return self.lo, np.zeros(self.shape)
        middle = self.lo / 2 + self.hi / 2
        return middle, np.nextafter(np.maximum(self.hi - middle, middle - self.lo), np.inf) * (self.lo != self.hi)

    def __abs__(self):
        if self.lo is self.hi:
            return Interval(np.abs(self.lo))
        return Interval(np.maximum(np.maximum(self.lo, -self.hi), 0), np.maximum(-self.lo, self.hi))

    def sum(self, axis=-1):
        (a, radius), k = self.each(lambda end: np.moveaxis(end, axis, -1)).ball(), self.shape[axis]
        bits = 50 - math.ceil(math.log2(k))  # no sum of such slices is rounded; the rest is small, and k^2 2^-bits roundings of it
        (first,), top = slices(a, -1, bits, 1)
        total, wide, top = first.sum(-1) + (a - first).sum(-1), radius.sum(-1) * LOOSE, top[..., 0]
        error = (k * 2.0 ** (-2 * bits) * top + UNIT * np.abs(total) + wide + 2.0 ** -1000) * (top + wide > 0)
        return widen(total - error, total + error, error == 0)

    def each(self, change):
        """A rearrangement of the entries, or what rises with them: no entry becomes NaN, and none is looked at again."""
        new = object.__new__(Interval)
        new.lo = new.hi = np.asarray(change(self.lo))
        if self.lo is not self.hi:
            new.hi = np.asarray(change(self.hi))
        new.shape = new.lo.shape
        return new

    __radd__, __rmul__ = __add__, __mul__
    __neg__ = lambda self: Interval(*(-end for end in self.ends()[::-1]))
    __sub__ = lambda self, other: self + -interval(other)
    __rsub__ = lambda self, other: interval(other) + -self
    __rtruediv__ = lambda self, other: interval(other) / self
    __rmatmul__ = lambda self, other: interval(other) @ self
    __getitem__ = lambda self, where: self.each(lambda end: end[where])
    T = property(lambda self: self.each(lambda end: np.swapaxes(end, -1, -2)))

def interval(value): return value if isinstance(value, Interval) else Interval(value)
def least(*values): return Interval(min(float(interval(v).lo) for v in values), min(float(interval(v).hi) for v in values))
def most(*values): return -least(*(-interval(v) for v in values))
def size(value): return abs(interval(value))

def stack(parts, axis=0):
    return Interval(*(np.concatenate([getattr(interval(part), end) for part in parts], axis) for end in ("lo", "hi")))

def rising(function, floor=-np.inf):
    """A function that rises: each end is moved outward by its error, never below the floor."""
    def apply(x):
        ends = [function(end) for end in interval(x).ends()]
        lo, hi = ends[0], ends[-1]
        y = widen(lo - np.abs(lo) * 2.0 ** -50, hi + np.abs(hi) * 2.0 ** -50)
        return Interval(np.maximum(y.lo, floor), y.hi)
    return apply

exp, expm1, tanh, log = rising(np.exp, 0.0), rising(np.expm1), rising(np.tanh), rising(np.log)
erf = rising(np.vectorize(math.erf, otypes=[np.float64]))

def sqrt(x):
    x = interval(x)
    y = widen(np.sqrt(np.maximum(x.lo, 0)), np.sqrt(np.maximum(x.hi, 0)), x.simple())
    return Interval(np.maximum(y.lo, 0), y.hi)

def wave(function, x):
    """sin or cos."""
    middle, radius = x.ball()
    return function(middle) + Interval(-1, 1) * (interval(radius) + 2.0 ** -50)

def length(x):
    """The l2 norm along the last axis."""
    x = size(x)
    top, off = float(x.hi.max(initial=0)), (x.shape[-1] + 8) * 2 * UNIT
    if not 0 < top < np.inf:
        return Interval(np.zeros(x.shape[:-1]), np.full(x.shape[:-1], top))
    by = math.frexp(top)[1]  # so that squares neither overflow nor vanish
    ends = [np.sqrt((np.ldexp(end, -by) ** 2).sum(-1)) for end in x.ends()]
    y = widen(np.ldexp(ends[0] * (1 - off) - 2.0 ** -500, by), np.ldexp(ends[-1] * (1 + off) + 2.0 ** -500, by))
    return Interval(np.maximum(y.lo, 0), y.hi * (x.hi.max(-1) > 0))
