"""taut and PyTorch: certify modules, use models as modules, take models out as plain layers.

    import taut.torch
    cert = taut.torch.certify(vit, images, norm="flat", radius=1)
    module = taut.torch.module(taut.load("runs/a"))         # for attacks and pipelines of others
"""
from typing import Any, Optional, Sequence

import torch

from .._certificate import Certificate
from . import penalty
from ._constrain import constrain
from ._convert import convert, to_numpy
from ._export import export
from ._graph import Unmapped
from ._module import TautModule, module

__all__ = ["TautModule", "Unmapped", "certify", "constrain", "convert", "export", "module", "penalty", "to_numpy"]


def certify(module: torch.nn.Module, example: torch.Tensor, norm: str = "flat", x: Any = None, y: Any = None,
            radius: float = 0, *, path: Any = None, mean: Optional[Sequence[float]] = None,
            std: Optional[Sequence[float]] = None, **options: Any) -> Certificate:
    """Proves a Lipschitz constant of a PyTorch module from inputs to logits: `convert`, then `Model.certify`, whose other
    arguments it takes.  Images are tensors (n, channels, height, width) with pixels in [0, 1].

    >>> taut.torch.certify(vit, images, norm="flat", x=images, y=labels, radius=0.5).radii
    """
    with convert(module, example, path, mean=mean, std=std) as model:
        images = model.kind == "images"
        return model.certify(norm, to_numpy(x, images), to_numpy(y, False), radius, **options)
