"""Penalties for a training loop in PyTorch."""
import torch

from .. import _c


def jasmin(attention: torch.Tensor, k: int = 0, reduce: str = "max", eps: float = 1e-6) -> torch.Tensor:
    """How steep softmax is at these rows of attention (examples, heads, queries, keys), each a row of probabilities:
    ln(g_1 + eps), minus ln(g_k + eps) for k > 1, where g_m = x_m (1 - x_m + x_{m+1}) of the row's m-th largest entry is
    above the m-th singular value of softmax's Jacobian.  The largest ("max") or the mean ("mean") over the queries, summed over
    heads, as a mean over examples.

    >>> loss = F.cross_entropy(logits, y) + 0.1 * sum(taut.torch.penalty.jasmin(a) for a in attentions)
    """
    _c.choice(reduce, ("max", "mean"), "reduce")
    if not isinstance(attention, torch.Tensor):
        raise _c.InputError(f"jasmin: a tensor is wanted, not {type(attention).__name__}")
    if attention.ndim != 4 or attention.shape[-1] < 2 or not (k == 0 or 1 < k < attention.shape[-1]):
        raise _c.InputError(f"jasmin: rows of shape {tuple(attention.shape)} and k = {k}")
    rows = attention.detach()
    if not (rows >= 0).all() or not ((rows.sum(-1) - 1).abs() <= 0.01).all():  # half precision is off by less
        raise _c.InputError("jasmin: rows of attention are probabilities, which sum to 1 (behind softmax, not before it)")
    x = attention.topk(max(k, 1) + 1, dim=-1).values

    def bound(m: int) -> torch.Tensor:
        return (x[..., m - 1] * (1 - x[..., m - 1] + x[..., m]) + eps).log()

    steep = bound(1) - bound(k) if k else bound(1)
    return (steep.amax(-1) if reduce == "max" else steep.mean(-1)).sum(1).mean()
