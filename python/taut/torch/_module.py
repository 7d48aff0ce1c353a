"""A taut model as a PyTorch module: forward and backward are ours."""
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from .. import _c
from .._model import Model
from ._convert import to_numpy


class Through(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, model: Model) -> torch.Tensor:
        ctx.model = model
        ctx.save_for_backward(x)
        y = torch.from_dlpack(model(to_numpy(x, model.kind == "images")))
        return y.to(x.device, x.dtype if x.is_floating_point() else torch.float32)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gy: torch.Tensor) -> Any:
        (x,) = ctx.saved_tensors
        images = ctx.model.kind == "images"
        gx = torch.from_dlpack(ctx.model.grad(to_numpy(x, images), to_numpy(gy, False)))
        gx = gx.movedim(-1, 1).contiguous() if images and x.ndim == 4 else gx  # others take views of it
        return gx.to(x.device, x.dtype), None


class TautModule(torch.nn.Module):
    """What `taut.torch.module` makes.  It has no parameters: the weights are the model's."""

    def __init__(self, model: Model):
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not isinstance(x, torch.Tensor):
            raise _c.InputError(f"a tensor is wanted, not {type(x).__name__}")
        return Through.apply(x, self.model)

    def extra_repr(self) -> str:
        return repr(self.model)


def module(model: Model) -> TautModule:
    """A taut model as an nn.Module, whose backward gives gradients with respect to inputs.  Images are tensors
    (n, channels, height, width) with pixels in [0, 1], texts ids (n, t) or embeddings (n, t, width).

    >>> net = taut.torch.module(taut.load("runs/a"))
    >>> torchattacks.PGDL2(net, eps=0.5)(images, labels)
    """
    if not isinstance(model, Model):
        raise _c.InputError(f"a taut model is wanted, not {type(model).__name__}")
    return TautModule(model)
