"""Intervals of doubles that hold the truth: every operation is rounded outward, and what is not a number may be anything.

Assumed: IEEE double, to nearest; an entry of NumPy's matrix product is k products and sums of doubles in any order, fused or not;
exp, expm1, log, tanh, erf, sin and cos are within 2^-50 of the truth, relatively (sin and cos absolutely)."""
import math
from functools import reduce

import numpy as np

np.seterr(all="ignore")
UNIT, LOOSE = 2.0 ** -53, 1 + 2.0 ** -20  # LOOSE covers the rounding of any error term

def add_toward(a, b, end):
    """a + b, or its neighbour towards `end` unless the sum is exact (Knuth's test)."""
    s = a + b
    part = s - a
    return np.where((a - (s - part)) + (b - part) == 0, s, np.nextafter(s, end))

def widen(lo, hi, exact=False):
    return Interval(np.where(exact, lo, np.nextafter(lo, -np.inf)), np.where(exact, hi, np.nextafter(hi, np.inf)))

def meets(a, b):
    """Where a product has a term that is not 0."""
    return (a != 0).astype(np.float64) @ (b != 0).astype(np.float64) > 0

def slices(a, axis, bits):
    """Three arrays of few bits, a row (or column) in one unit, which add up to `a` but for a rest; and the largest entries."""
    parts, tops = [], np.abs(a).max(axis, keepdims=True)
    for _ in range(3):
        top = np.abs(a).max(axis, keepdims=True)
        large = 1.5 * np.ldexp(1.0, np.frexp(top)[1] + 52 - bits)
        parts.append((a + large) - large)  # to a multiple of 2^-bits times a power of two above the row's largest entry
        a = a - parts[-1]
    return parts, tops

def exact_product(a, b):
    """An Interval and an error beside it: products of slices are so short that no sum of them is rounded, in any order."""
    k = a.shape[-1]
    if a.size // k * b.shape[-1] > 2 ** 27:
        raise MemoryError
    bits = (53 - max(1, math.ceil(math.log2(k)))) // 2
    (a_parts, a_tops), (b_parts, b_tops) = slices(a, -1, bits), slices(b, -2, bits)
    total = Interval(a_parts[2] @ b_parts[0])
    for i, j in ((1, 1), (0, 2), (1, 0), (0, 1), (0, 0)):
        if b_parts[j].any():  # of ones, in a sum, only the first slice is
            total = total + a_parts[i] @ b_parts[j]
    error = 8 * k * 2.0 ** (-3 * bits) * (a_tops * b_tops) + 2.0 ** -1000  # of slices that are left out, and of underflow
    return total, error * meets(a, b)

class Interval:
    __array_ufunc__ = None  # so that array * Interval is Interval's affair

    def __init__(self, lo, hi=None):
        self.lo = np.asarray(lo, np.float64)
        self.hi = self.lo if hi is None else np.asarray(hi, np.float64)
        if not (self.lo <= self.hi).all():
            bad = np.isnan(self.lo) | np.isnan(self.hi)
            self.lo, self.hi = np.where(bad, -np.inf, self.lo), np.where(bad, np.inf, self.hi)
        self.shape = self.lo.shape

    def ends(self):
        return (self.lo,) if self.lo is self.hi else (self.lo, self.hi)

    def simple(self):
        """Exactly 0, 1 or -1: such a factor rounds nothing."""
        return (self.lo == self.hi) & ((np.abs(self.lo) == 1) | (self.lo == 0))

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
        ends = [np.where(known, a / b, np.nan) for a in self.ends() for b in other.ends()]
        return widen(reduce(np.minimum, ends), reduce(np.maximum, ends), other.simple() | (self.lo == 0) & (self.hi == 0))

    def __matmul__(self, other):
        other = interval(other)
        if other.lo.ndim == 1:
            return (self @ other[:, None])[..., 0]
        if self.lo.ndim == 1:
            return (self[None] @ other)[0]
        (a, da), (b, db) = self.ball(), other.ball()
        middle, error = exact_product(a, b)
        b = np.abs(b) + db
        for left, right in ((np.abs(a), db), (da, b)):
            if left.any() and right.any():
                error = error + left @ right * LOOSE + 2.0 ** -1000 * meets(left, right)
        return middle + Interval(-error, error)

    def ball(self):
        """Middle and radius."""
        if self.lo is self.hi:
            return self.lo, np.zeros(self.shape)
        middle = self.lo / 2 + self.hi / 2
        return middle, np.nextafter(np.maximum(self.hi - middle, middle - self.lo), np.inf) * (self.lo != self.hi)

    def sum(self, axis=-1):
        return self.each(lambda end: np.moveaxis(end, axis, -1)) @ np.ones(self.shape[axis])

    def each(self, change):
        """A rearrangement of the entries."""
        return Interval(*(change(end) for end in self.ends()))

    __radd__, __rmul__ = __add__, __mul__
    __abs__ = lambda self: Interval(np.maximum(np.maximum(self.lo, -self.hi), 0), np.maximum(-self.lo, self.hi))
    __neg__ = lambda self: Interval(-self.hi, -self.lo)
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
        lo, hi = function(interval(x).lo), function(interval(x).hi)
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
    lo, hi = (np.sqrt((np.ldexp(end, -by) ** 2).sum(-1)) for end in (x.lo, x.hi))
    y = widen(np.ldexp(lo * (1 - off) - 2.0 ** -500, by), np.ldexp(hi * (1 + off) + 2.0 ** -500, by))
    return Interval(np.maximum(y.lo, 0), y.hi * (x.hi.max(-1) > 0))
