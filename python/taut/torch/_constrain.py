"""Weight constraints for a training loop in PyTorch: after the optimiser's step, matrices are held under a norm."""
from typing import Callable, Dict

import torch

from .. import _c


def strength(cap: float, k: float) -> float:
    """alpha of the soft cap: |s (1 - 3 t^2 + 3 t^3 - t^4)| <= cap, t = alpha s^2, for all s up to k."""
    if k <= cap:
        return 0.0
    if k > 81 / 62 * cap:
        return (62 / 81) ** 2 / (3 * cap * cap)
    low, high, d = 0.0, 1 / 3, 1 - cap / k
    for _ in range(80):
        t = (low + high) / 2
        low, high = (t, high) if t * t * (3 - 3 * t + t * t) < d else (low, t)
    return high / (k * k)


def normalise(w: torch.Tensor, cap: float) -> torch.Tensor:
    """The whole matrix scaled down to the cap, if it is above."""
    return w * min(1.0, cap / max(float(torch.linalg.matrix_norm(w, 2)), 1e-30))


def hardcap(w: torch.Tensor, cap: float) -> torch.Tensor:
    """Singular values above the cap become the cap; the others stay."""
    u, s, v = torch.linalg.svd(w, full_matrices=False)
    return (u * s.clamp(max=cap)) @ v


def softcap(w: torch.Tensor, cap: float) -> torch.Tensor:
    """p2(p1(W)), odd polynomials s -/+ alpha s^3, without an SVD of more than the largest singular value."""
    largest = float(torch.linalg.matrix_norm(w, 2))
    if largest > 81 / 31 * cap:
        return normalise(w, cap)
    turned = w.shape[0] > w.shape[1]
    m = w.T if turned else w
    a = strength(cap, largest) * m @ m.T
    a2 = a @ a
    m = m - (3 * a2 - 3 * a2 @ a + a2 @ a2) @ m
    return m.T if turned else m


METHODS: Dict[str, Callable[[torch.Tensor, float], torch.Tensor]] = {
    "normalise": normalise, "hardcap": hardcap, "softcap": softcap}


@torch.no_grad()
def constrain(module: torch.nn.Module, method: str = "softcap", cap: float = 1.0) -> None:
    """Holds the spectral norm of every matrix of linear layers (of attention's stacked projections each by itself) under
    `cap`, in floating point: call it after an optimiser's step.  What is then proved is for `certify` to say.

    method: "normalise" (scale the matrix), "hardcap" (clip its singular values), "softcap" (bend them by a polynomial).

    >>> optimiser.step(); taut.torch.constrain(net, method="softcap", cap=1.6)
    """
    if not isinstance(module, torch.nn.Module):
        raise _c.InputError(f"a torch.nn.Module is wanted, not {type(module).__name__}")
    _c.choice(method, tuple(METHODS), "method")
    if not 0 < _c.real(cap, "cap") < float("inf"):
        raise _c.InputError(f"cap is {cap}")
    for layer in module.modules():
        if isinstance(layer, torch.nn.MultiheadAttention) and layer.in_proj_weight is not None:
            for part in layer.in_proj_weight.chunk(3):
                part.copy_(METHODS[method](part, float(cap)))
        if isinstance(layer, torch.nn.Linear):
            layer.weight.copy_(METHODS[method](layer.weight, float(cap)))
