"""Arrays on their way into the library: checked, and copied only where type or layout ask for it."""
import ctypes
import math
from typing import Any

import numpy as np

from . import _c


def array(x: Any, what: str) -> np.ndarray:
    """What NumPy makes of it; arrays of other packages by DLPack, where they lie."""
    try:
        a = np.from_dlpack(x) if hasattr(x, "__dlpack__") and not isinstance(x, (np.ndarray, np.generic)) else np.asarray(x)
    except Exception as why:  # a tensor on another device, one that needs a gradient, a ragged list
        raise _c.InputError(f"{what}: {str(why).splitlines()[0] if str(why) else type(why).__name__}") from None
    if a.dtype.kind not in "fiu":
        raise _c.InputError(f"{what} is an array of {a.dtype}, not of numbers")
    return a


def reals(x: Any, what: str, shape: "tuple[int, ...] | None" = None) -> np.ndarray:
    """As float64, in C's order.  Whole numbers are refused: pixels of 0 .. 255 are no pixels of [0, 1]."""
    a = array(x, what)
    if a.dtype.kind != "f":
        raise _c.InputError(f"{what} is an array of {a.dtype}: real numbers are wanted (pixels are in [0, 1])")
    if shape is not None and a.shape != shape:
        raise _c.InputError(f"{what} has shape {a.shape}, not {shape}")
    return np.ascontiguousarray(a, dtype=np.float64).reshape(a.shape)


def ids(x: Any, what: str, shape: "tuple[int, ...] | None" = None) -> np.ndarray:
    """As int32, in C's order.  A number that does not fit is refused, not cut."""
    a = array(x, what)
    if a.dtype.kind not in "iu":
        raise _c.InputError(f"{what} is an array of {a.dtype}: whole numbers are wanted")
    if a.size and (a.min() < -(2**31) or a.max() >= 2**31):
        raise _c.InputError(f"{what} has numbers that are not of 32 bits")
    if shape is not None and a.shape != shape:
        raise _c.InputError(f"{what} has shape {a.shape}, not {shape}")
    return np.ascontiguousarray(a, dtype=np.int32).reshape(a.shape)


def at(a: np.ndarray) -> Any:
    """The array's memory for C; the array must outlive the call."""
    return a.ctypes.data_as(_c.Ids if a.dtype == np.int32 else _c.Doubles)


class Batch:
    """Inputs of a model as C takes them, with the shapes that results get."""

    def __init__(self, x: np.ndarray, n: int, t: int, single: bool):
        self.x, self.n, self.t, self.single = x, n, t, single
        self.inputs = _c.Inputs(n=n, t=t)
        setattr(self.inputs, "ids" if x.dtype == np.int32 else "reals", at(x))

    @property
    def ref(self) -> Any:
        return ctypes.byref(self.inputs)


def batch(x: Any, shape: "tuple[int, ...]", text: bool, t: int) -> Batch:
    """One input or n of them.  `shape` is that of one input of reals; a text is ids (t) or reals (t, width), t at most."""
    a = array(x, "the input")
    if text and a.dtype.kind in "iu":
        if a.ndim not in (1, 2) or a.size == 0:
            raise _c.InputError(f"ids have shape (t) or (n, t), not {a.shape}")
        return Batch(ids(a, "the input"), 1 if a.ndim == 1 else a.shape[0], a.shape[-1], a.ndim == 1)
    a = reals(a, "the input")
    if text and a.ndim in (2, 3) and a.size and a.shape[-1] == shape[-1]:
        return Batch(a, 1 if a.ndim == 2 else a.shape[0], a.shape[-2], a.ndim == 2)
    flat = math.prod(shape)
    for one in (shape, shape[:-1] if shape[-1] == 1 else shape, (flat,)):
        if not text and a.size and a.shape == one:
            return Batch(a, 1, t, True)
        if not text and a.size and a.shape[1:] == one:
            return Batch(a, a.shape[0], t, False)
    lead = "(t) or (n, t) of ids, or (t, {1}) or (n, t, {1}) of reals" if text else "{0} or (n, ...)"
    raise _c.InputError(f"the input has shape {a.shape}, not {lead.format(shape, shape[-1])}")
