"""A taut model in plain PyTorch layers: the tree that its file holds, node by node, with the same weights."""
from typing import Any, Callable, Dict, List

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from .. import _c
from .._model import Model
from ._convert import AGREEMENT, to_numpy
from ._graph import Unmapped

Node = Dict[str, Any]
CURVES: Dict[str, Callable[[], nn.Module]] = {
    "gelu": nn.GELU, "gelu_tanh": lambda: nn.GELU(approximate="tanh"), "relu": nn.ReLU, "silu": nn.SiLU, "tanh": nn.Tanh}


class Abs(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.abs()


class Scale(nn.Module):
    """c x"""

    def __init__(self, factor: float):
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.factor * x


class Channels(nn.Module):
    """w x, a number for each channel"""

    def __init__(self, weight: torch.Tensor):
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * x


class Mix(nn.Module):
    """a x + b f(x)"""

    def __init__(self, keep: float, mix: float, inner: nn.Module):
        super().__init__()
        self.keep, self.mix, self.inner = keep, mix, inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.inner(x) if self.keep == self.mix == 1 else self.keep * x + self.mix * self.inner(x)


class Positions(nn.Module):
    def __init__(self, weight: torch.Tensor):
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.weight[:x.shape[1]]


class Prefix(nn.Module):
    """A token before all others."""

    def __init__(self, weight: torch.Tensor):
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.weight.expand(len(x), 1, -1), x], 1)


class Pixels(nn.Module):
    """Images (n, channels, height, width) as normalised patches (n, patches, numbers of a patch)."""
    scale: torch.Tensor
    shift: torch.Tensor

    def __init__(self, node: Node):
        super().__init__()
        self.register_buffer("scale", torch.tensor(node["scale"]))
        self.register_buffer("shift", torch.tensor(node["shift"]))
        self.size = node["patch_height"], node["patch_width"]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.movedim(1, -1) * self.scale + self.shift
        n, h, w, c = x.shape
        ph, pw = self.size
        return x.reshape(n, h // ph, ph, w // pw, pw, c).transpose(2, 3).reshape(n, -1, ph * pw * c)


class Pool(nn.Module):
    def __init__(self, kind: str):
        super().__init__()
        self.kind = kind

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(1) if self.kind == "mean" else x.flatten(1) if self.kind == "concat" else x[:, 0]


class CenterNorm(nn.Module):
    """c (x - mean(x)) w + b"""

    def __init__(self, factor: float, weight: torch.Tensor, bias: Any):
        super().__init__()
        self.factor, self.weight = factor, nn.Parameter(weight)
        self.bias = None if bias is None else nn.Parameter(bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.factor * (x - x.mean(-1, keepdim=True)) * self.weight
        return y if self.bias is None else y + self.bias


class Attention(nn.Module):
    def __init__(self, node: Node, q: nn.Linear, k: nn.Linear, v: nn.Linear, o: nn.Linear):
        super().__init__()
        self.q, self.k, self.v, self.o = q, k, v, o
        self.heads, self.scale, self.causal = node["heads"], node["scale"], bool(node["causal"])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (m(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for m in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal, scale=self.scale)
        return self.o(y.transpose(1, 2).flatten(2))


class PositionAttention(nn.Module):
    """Heads that look by position alone: rows of the softmax of a table, by distance or by shift round a torus."""
    at: torch.Tensor
    gains: torch.Tensor

    def __init__(self, node: Node, table: torch.Tensor, v: nn.Linear, o: nn.Linear):
        super().__init__()
        self.table, self.v, self.o, self.causal = nn.Parameter(table), v, o, bool(node["causal"])
        heads, cols, row = len(table), table.shape[1], node.get("row", 0)
        t = torch.arange(cols if row or self.causal else (cols + 1) // 2)
        i, j = t[:, None], t[None, :]
        rows = cols // row if row else 0
        at = (i // row - j // row) % rows * row + (i % row - j % row) % row if row else \
            (i - j).clamp(min=0) if self.causal else i - j + cols // 2
        self.register_buffer("at", at)
        away = [min((1 << min(h, 40)) if node["far"] and h else h, len(t) - 1) for h in range(heads)]
        gains = node.get("gain") or [1.0 if row else float(np.float32(1 / np.sqrt(1 + a))) for a in away]
        self.register_buffer("gains", torch.tensor(gains).view(heads, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        at = self.at[:x.shape[1], :x.shape[1]]
        logits = self.table[:, at]
        if self.causal:
            logits = logits.masked_fill(torch.ones_like(at, dtype=torch.bool).triu(1), -torch.inf)
        v = self.v(x).unflatten(-1, (len(self.table), -1)).transpose(1, 2)
        return self.o((self.gains * logits.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Builder:
    def __init__(self, model: Model):
        self.w = {name: torch.tensor(w, dtype=torch.float32) for name, w in model.weights.items()}
        self.embed: Any = None
        if model.kind == "text":
            self.embed = nn.Embedding.from_pretrained(self.w["embed.weight"], freeze=False)

    def vector(self, name: str) -> Any:
        return self.w[name][0] if name in self.w else None

    def linear(self, path: str, factor: float = 1, tied: bool = False) -> nn.Linear:
        weight, bias = self.w["embed.weight" if tied else path + ".weight"], self.vector(path + ".bias")
        layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
        if tied:
            layer.weight = self.embed.weight
        else:
            layer.weight.data = factor * weight
        if bias is not None:
            layer.bias.data = bias
        return layer

    def curve(self, name: str, factor: float) -> List[nn.Module]:
        if name != "abs" and name not in CURVES:
            raise Unmapped(f"PyTorch's layers have no {name}")
        return [Abs() if name == "abs" else CURVES[name]()] + ([Scale(factor)] if factor != 1 else [])

    def norm(self, node: Node, path: str) -> nn.Module:
        weight, bias = self.vector(path + ".weight"), self.vector(path + ".bias")
        if node["rule"] == "centernorm":
            return CenterNorm(node["factor"], weight, bias)
        if not node["centred"] and bias is not None:
            raise Unmapped(f"{path}: PyTorch's RMSNorm has no bias")
        norm = nn.LayerNorm(len(weight), node["eps"]) if node["centred"] else nn.RMSNorm(len(weight), node["eps"])
        norm.weight.data = weight
        if node["centred"]:
            norm.bias.data = torch.zeros_like(weight) if bias is None else bias
        return norm

    def attention(self, node: Node, path: str) -> nn.Module:
        if node.get("rope") or node.get("alibi") or node.get("queries"):
            raise Unmapped(f"{path}: PyTorch's attention has no rotations, ALiBi or tokens that only ask")
        q, k, v = (self.linear(f"{path}.{x}") for x in "qkv")
        return Attention(node, q, k, v, self.linear(path + ".o", node["out"]))

    def build(self, node: Node, before: str = "") -> nn.Module:
        rule, path = node["rule"], ".".join(filter(None, (before, node.get("name"))))
        parts = [self.build(part, path) for part in node.get("of", [])]
        simple: Dict[str, Callable[[], nn.Module]] = {
            "sequence": lambda: nn.Sequential(*parts),
            "mix": lambda: Mix(node["keep"], node["mix"], nn.Sequential(*parts)),
            "linear": lambda: self.linear(path, tied=bool(node["tied"])),
            "position": lambda: Positions(self.w[path + ".weight"]),
            "prefix": lambda: Prefix(self.w[path + ".weight"]),
            "scale": lambda: Scale(node["factor"]),
            "channel": lambda: Channels(self.vector(path + ".weight")),
            "layernorm": lambda: self.norm(node, path), "centernorm": lambda: self.norm(node, path),
            "pointwise": lambda: nn.Sequential(*self.curve(node["curve"], node["factor"])),
            "mlp": lambda: nn.Sequential(self.linear(path + ".in"), *self.curve(node["curve"], node["factor"]),
                                         self.linear(path + ".out")),
            "attention": lambda: self.attention(node, path),
            "posattention": lambda: PositionAttention(node, self.w[path + ".distance.weight"],
                                                      self.linear(path + ".v"), self.linear(path + ".o")),
            "pixels": lambda: Pixels(node), "pool": lambda: Pool("mean" if node["mean"] else "first"),
            "concat": lambda: Pool("concat")}
        if rule not in simple:
            raise Unmapped(f"{path or 'the model'}: PyTorch's layers have no {rule}")
        return simple[rule]()


def export(model: Model) -> nn.Module:
    """The same network in plain PyTorch layers with the same weights.  Images are (n, channels, height, width).  Logits are
    compared on random inputs; were they apart by more than 1e-5 of the largest, this would be an error.

    >>> net = taut.torch.export(taut.load("runs/a"))
    """
    if not isinstance(model, Model):
        raise _c.InputError(f"a taut model is wanted, not {type(model).__name__}")
    if model.kind == "series":
        raise Unmapped("forecasters are not exported")
    builder = Builder(model)
    net = builder.build(model.info["tree"]["root"])
    if model.kind == "text":
        net = nn.Sequential(builder.embed, net)
    elif not any(isinstance(part, Pool) for part in net.modules()):
        net = nn.Sequential(*net.children(), Pool("first"))  # a perceptron reads one token, the image
    seeded = torch.Generator().manual_seed(1)
    if model.kind == "text":
        x = torch.randint(0, model.vocabulary, (8, model.context), generator=seeded)
    else:
        x = torch.rand((8, model.shape[2]) + model.shape[:2], generator=seeded, dtype=torch.float64)
    with torch.no_grad():
        theirs = net.double().eval()(x).numpy()
    ours = model(to_numpy(x, model.kind == "images"))
    apart = float(np.abs(theirs - ours).max() / max(1e-30, np.abs(ours).max())) if theirs.shape == ours.shape else np.inf
    if not apart <= AGREEMENT:
        raise Unmapped(f"the logits of the exported network are apart by {apart:.1e} of the largest")
    return net.float()
