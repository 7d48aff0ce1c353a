"""Intervals of doubles that hold the truth: every operation is rounded outward, and what is not a number may be anything.

Assumed: IEEE double, to nearest; an entry of NumPy's matrix product is k products and sums of doubles in any order, fused or not;
exp, expm1, log, tanh, erf, sin and cos are within 2^-48 of the truth, relatively (sin and cos absolutely)."""
import math

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

class Interval:
    __array_ufunc__ = None  # so that array * Interval is Interval's affair

    def __init__(self, lo, hi=None):
        self.lo = np.asarray(lo, np.float64)
        self.hi = self.lo if hi is None else np.asarray(hi, np.float64)
        bad = np.isnan(self.lo) | np.isnan(self.hi)
        if bad.any():
            self.lo, self.hi = np.where(bad, -np.inf, self.lo), np.where(bad, np.inf, self.hi)
        self.shape = self.lo.shape

    def simple(self):
        """Exactly 0, 1 or -1: such a factor rounds nothing."""
        return (self.lo == self.hi) & ((np.abs(self.lo) == 1) | (self.lo == 0))

    def __add__(self, other):
        other = interval(other)
        return Interval(add_toward(self.lo, other.lo, -np.inf), add_toward(self.hi, other.hi, np.inf))

    def __mul__(self, other):
        other = interval(other)
        ends = np.broadcast_arrays(*(a * b for a in (self.lo, self.hi) for b in (other.lo, other.hi)))
        return widen(np.min(ends, 0), np.max(ends, 0), self.simple() | other.simple())

    def __truediv__(self, other):
        other = interval(other)
        ends = np.broadcast_arrays(*(a / b for a in (self.lo, self.hi) for b in (other.lo, other.hi)))
        ends = np.where((other.lo > 0) | (other.hi < 0), ends, np.nan)
        return widen(np.min(ends, 0), np.max(ends, 0), other.simple() | (self.lo == 0) & (self.hi == 0))

    def __matmul__(self, other):
        (a, da), (b, db) = self.ball(), interval(other).ball()
        if a.size // a.shape[-1] * (b.shape[-1] if b.ndim > 1 else 1) > 2 ** 27:
            raise MemoryError
        error, middle = (a.shape[-1] + 2) * UNIT * (np.abs(a) @ np.abs(b)), a @ b
        if da.any() or db.any():
            error = error + np.abs(a) @ db + da @ (np.abs(b) + db)
        tiny = [min(np.abs(z)[z != 0].min(initial=np.inf) for z in pair) for pair in ((a, da), (b, db))]
        error = error * LOOSE + (0.0 if tiny[0] * tiny[1] > 2.0 ** -900 else a.shape[-1] * 2.0 ** -1072)  # of underflow
        return widen(middle - error, middle + error, error == 0)

    def ball(self):
        """Middle and radius."""
        middle = self.lo / 2 + self.hi / 2
        return middle, np.nextafter(np.maximum(self.hi - middle, middle - self.lo), np.inf) * (self.lo != self.hi)

    def sum(self, axis=-1):
        lost = self.shape[axis] * UNIT * LOOSE * np.maximum(np.abs(self.lo), np.abs(self.hi)).sum(axis)
        return widen(self.lo.sum(axis) - lost, self.hi.sum(axis) + lost)

    def each(self, change):
        """A rearrangement of the entries."""
        return Interval(change(self.lo), change(self.hi))

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
        y = widen(lo - np.abs(lo) * 2.0 ** -48, hi + np.abs(hi) * 2.0 ** -48)
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
    return function(middle) + Interval(-1, 1) * (interval(radius) + 2.0 ** -48)

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
