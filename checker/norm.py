"""Is the spectral norm of a matrix at most t?  Proved by a Cholesky factor of t^2 I - A A^T that is tested afterwards."""
import math

import numpy as np

from interval import LOOSE, UNIT, interval, length

def norm_is_at_most(matrix, t):
    """True only if every matrix of the interval has a norm of at most t."""
    middle, radius = interval(matrix).ball()
    top, rest = float(np.abs(middle).max()), float((t - length(radius.ravel())).lo) if radius.any() else t
    if t == np.inf or top == 0 and rest >= 0:
        return True
    if not (rest >= 0 and 0 < top < np.inf):
        return False
    by = math.frexp(top)[1]  # entries below 1; what underflows is in `lost`
    a, t = np.ldexp(middle, -by), float(np.ldexp(rest, -by))
    a, size = a if a.shape[0] <= a.shape[1] else a.T, float(length(a.ravel()).hi)
    n, k = a.shape
    if t >= size * LOOSE or t < 0.5:
        return t >= size * LOOSE
    if n * n > 2 ** 27:
        raise MemoryError
    gram, square, unit = a @ a.T, t * t * (1 - 2 * UNIT), np.eye(n)
    lost = (k + 2) * UNIT * size * size * LOOSE + n * k * 2.0 ** -1000
    away = square * unit - gram
    shift = square - 2 * lost - (2 * n + 8) * UNIT * (square + np.linalg.norm(away) + max(np.trace(away), 0))
    away = shift * unit - gram
    try:
        factor = np.linalg.cholesky(away)
    except np.linalg.LinAlgError:
        return False
    # a a^T is at most shift I - away + lost and the rounding of away's diagonal; away is at least -|away - factor factor^T|
    rest = np.linalg.norm(away - factor @ factor.T) + UNIT * np.abs(away).max()
    rest += (n + 3) * UNIT * (np.linalg.norm(away) + np.linalg.norm(factor) ** 2)
    return bool(shift + (lost + rest) * LOOSE + 4 * UNIT * square <= square)
