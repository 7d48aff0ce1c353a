"""A graph as what taut knows: a transformer or a perceptron, read from its logits back to its input."""
import math
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from . import _attention
from ._graph import Graph, Linear, Norm, op, refuse, shape

Spec = Dict[str, Any]
Weights = Dict[str, torch.Tensor]
Branch = Callable[[str, Any], Optional[Any]]


def agree(spec: Spec, node: Any, **found: Any) -> None:
    """All blocks of a model have the same sizes and curves."""
    for key, value in found.items():
        if spec.setdefault(key, value) != value:
            refuse(node, f"{key} is {value} here and {spec[key]} elsewhere")


class Reader:
    """The keys of a recipe and weights by name."""

    def __init__(self, graph: Graph):
        self.g = graph
        self.spec: Spec = {}
        self.weights: Weights = {}

    def put(self, name: str, weight: torch.Tensor, bias: Optional[torch.Tensor] = None) -> None:
        self.weights[name + ".weight"] = weight
        if bias is not None and bias.numel():
            self.weights[name + ".bias"] = bias

    def put_norm(self, name: str, found: Norm, node: Any) -> Any:
        agree(self.spec, node, norm=found.kind, norm_eps=float(found.eps))
        self.put(name, found.weight, found.bias)
        return found.reads

    # ---- blocks

    def mlp(self, name: str, node: Any) -> Optional[Any]:
        """out(f(in(x))): what it reads, or None if it is something else."""
        last = self.g.linear(node)
        bent = self.g.curve(last.reads) if last else None
        first = self.g.linear(bent[1]) if bent else None
        if not (last and bent and first):
            return None
        agree(self.spec, node, activation=bent[0], mlp=len(first.weight))
        self.put(name + ".in", first.weight, first.bias)
        self.put(name + ".out", last.weight, last.bias)
        return first.reads

    def attention(self, name: str, node: Any) -> Optional[Any]:
        last = self.g.linear(node)
        found = _attention.read(self.g, last.reads) if last else None
        if not (last and found):
            return None
        rows, reads = last.weight.shape[1], set()
        agree(self.spec, found.heart, heads=found.heads, causal=found.causal)
        usual = 1 / math.sqrt(rows / found.heads)
        strength = {"q": 1.0 if abs(found.scale / usual - 1) < 1e-12 else found.scale / usual}  # another scale goes into q
        for letter, source in zip("qkv", found):
            index, at = self.g.part(source)
            map_ = self.g.linear(at)
            if not map_:
                refuse(at, "queries, keys and values come from linear maps")
            reads.add(self.g.plain(map_.reads))
            if len(map_.weight) % rows or len(map_.weight) < rows * (index + 1) or index < 0:
                refuse(at, "queries, keys and values of other sizes")
            cut = slice(index * rows, (index + 1) * rows)
            weight, bias = (w[cut].double() * strength.get(letter, 1) for w in (map_.weight, map_.bias))
            self.put(f"{name}.{letter}", weight, bias)
        if len(reads) != 1:
            refuse(found.heart, "queries, keys and values of different tokens")
        self.put(name + ".o", last.weight, last.bias)
        return reads.pop()

    def branch(self, node: Any, name: str, strength: str, read: Branch) -> Optional[Tuple[Any, Any]]:
        """node = x + f(...), or x + a * f(...) with a number for each channel (LayerScale): x, and what f reads."""
        node = self.g.plain(node)
        if op(node) not in ("add", "add_") or node.kwargs.get("alpha", 1) != 1:
            return None
        for skip, inner in (node.args[:2], node.args[1::-1]):
            if self.g.known(skip) is not None or self.g.known(inner) is not None:
                continue
            weight, f = self.g.factor(inner)
            found = read(name, f)
            if found is None:
                continue
            weighed = f is not self.g.plain(inner)
            agree(self.spec, node, residual="channel" if weighed else "plain")
            if weighed:
                self.put(strength, torch.as_tensor(weight, dtype=torch.float32).flatten().expand(shape(node)[-1]))
            return self.g.plain(skip), found
        return None

    def half(self, node: Any, place: str, which: str, name: str, read: Branch) -> Optional[Any]:
        """Half a block: x + f(norm(x)) before, norm(x + f(x)) after; x, or None if it is something else."""
        ended = self.g.norm(node) if place == "post" else None
        if place == "post" and not ended:
            return None
        found = self.branch(ended.reads if ended else node, name, "scale" + which, read)
        if not found:
            return None
        norm = self.g.norm(found[1]) if place == "pre" else ended
        if not norm or self.g.plain(norm.reads if place == "pre" else found[1]) is not found[0]:
            return None
        self.put_norm("norm" + which, norm, node)
        return found[0]

    def blocks(self, node: Any) -> Any:
        """Every block from the last one back; the tokens that go in."""
        stack: List[Weights] = []
        before = self.weights
        while True:
            own: Weights = {}
            self.weights = own
            kept = dict(self.spec)
            for place in [self.spec["norm_place"]] if "norm_place" in self.spec else ["pre", "post"]:
                middle = self.half(node, place, "2", "mlp", self.mlp)
                below = self.half(middle, place, "1", "attn", self.attention) if middle is not None else None
                if below is not None:
                    agree(self.spec, node, norm_place=place)
                    break
                own.clear()
                self.spec = dict(kept)
            else:
                break
            stack.append(own)
            node = below
        self.weights = before
        for i, block in enumerate(reversed(stack)):
            self.weights.update({f"block.{i}.{name}": w for name, w in block.items()})
        self.spec["depth"] = len(stack)
        return node

    # ---- from the logits back to the input

    def read(self) -> None:
        head = self.g.linear(self.g.answer)
        if not head:
            refuse(self.g.plain(self.g.answer), "the answer is not that of a linear map")
        self.put("head", head.weight, head.bias)
        self.spec["classes"] = len(head.weight)
        hidden, node = self.layers(head.reads)
        if hidden and self.pixels(node, may=True):
            self.put_layers(hidden, "activation", "hidden")
            self.spec["arch"] = "mlp"
            return
        node = self.pool(node)
        if hidden and "pool" not in self.spec:
            refuse(self.g.plain(head.reads), "hidden layers of a head for every token")
        first = self.blocks(node)
        if not self.spec["depth"]:  # or there is a norm behind the last block
            last = self.g.norm(node)
            if not last:
                refuse(self.g.plain(node), "no block of a transformer ends here")
            first = self.blocks(self.put_norm("norm", last, node))
            self.spec["final_norm"] = True
        if not self.spec["depth"]:
            refuse(self.g.plain(first), "no block of a transformer ends here")
        if hidden:
            self.put_layers(hidden, "head_activation", "head_hidden")
        self.tokens(first)

    def layers(self, node: Any) -> "Tuple[List[Tuple[str, Linear, Any]], Any]":
        """Linear maps with a curve behind each, the first one first; and what they read."""
        found: List[Tuple[str, Linear, Any]] = []
        while True:
            bent = self.g.curve(node)
            map_ = self.g.linear(bent[1]) if bent else None
            if not (bent and map_):
                return found[::-1], node
            found.append((bent[0], map_, self.g.plain(node)))
            node = map_.reads

    def put_layers(self, found: "List[Tuple[str, Linear, Any]]", curve: str, widths: str) -> None:
        for i, (bent, map_, node) in enumerate(found):
            agree(self.spec, node, **{curve: bent})
            self.put(f"layer.{i}", map_.weight, map_.bias)
        self.spec[widths] = " ".join(str(len(map_.weight)) for _, map_, _ in found)

    def pool(self, node: Any) -> Any:
        at = node
        while op(at) in ("dropout", "identity", "clone", "contiguous", "squeeze", "to", "_to_copy"):
            at = at.args[0]
        if op(at) == "select" and at.args[1] in (1, -2):
            if at.args[2] != 0:
                refuse(at, "of all tokens the first is read, or their mean, not another one")
            self.spec["pool"] = "class"
            return at.args[0]
        if op(at) == "mean" and len(at.args) > 1 and list(at.args[1]) in ([1], [-2]):
            self.spec["pool"] = "mean"
            return at.args[0]
        ended = self.g.norm(at)
        if ended and op(self.g.plain(ended.reads)) == "select":  # a norm of the token that is read: of all is the same
            self.put_norm("norm", ended, at)
            self.spec["final_norm"] = True
            return self.pool(ended.reads)
        return node

    def pixels(self, node: Any, may: bool = False) -> bool:
        """(x - mean) / std with numbers per channel, or the input itself."""
        node, mean, std = self.g.plain(node), torch.zeros(1), torch.ones(1)
        if op(node) in ("div", "div_"):
            std, node = self.g.known(node.args[1]), self.g.plain(node.args[0])
        if op(node) in ("sub", "sub_"):
            mean, node = self.g.known(node.args[1]), self.g.plain(node.args[0])
        if node is not self.g.input or mean is None or std is None:
            if may:
                return False
            refuse(node, "this stands before the first layer")
        self.spec["pixel_mean"] = torch.as_tensor(mean).flatten().tolist()
        self.spec["pixel_std"] = torch.as_tensor(std).flatten().tolist()
        return True

    def tokens(self, node: Any) -> None:
        """A norm behind them, positions, class token, then patches of an image or the embedding of ids."""
        ended = self.g.norm(node)
        if ended:
            self.spec["embed_norm"], node = True, self.put_norm("embed_norm", ended, node)
        size = shape(self.g.plain(node))
        where, node = self.g.terms(node)
        positions = None if where is None else where.expand(1, *size[-2:])[0]
        if op(node) == "cat" and len(node.args[0]) == 2 and self.g.known(node.args[0][0]) is not None:
            token = self.g.known(node.args[0][0])
            if token.shape[-2] != 1:
                refuse(node, "more than one token stands before the patches")
            self.put("cls", token.reshape(-1, token.shape[-1])[:1])
            self.spec["class_token"] = True
            where, node = self.g.terms(node.args[0][1])
            if where is not None:  # positions of the patches alone
                patches = torch.cat([torch.zeros(1, size[-1]), where.expand(1, size[-2] - 1, size[-1])[0]])
                positions = patches if positions is None else positions + patches
        self.spec["positions"] = "none" if positions is None else "learned"
        if positions is not None:
            self.put("pos", positions)
        if op(node) == "conv2d":
            self.patches(node)
        elif op(node) in ("embedding", "mul", "mul_", "div", "div_"):
            self.embedding(node)
        else:
            refuse(node, "neither patches of an image nor an embedding of ids")

    def patches(self, node: Any) -> None:
        args = list(node.args) + [None] * 7
        w, b = self.g.known(args[1]), self.g.known(args[2])
        stride, padding, dilation = args[3] or [1, 1], args[4] or [0, 0], args[5] or [1, 1]
        if w is None or list(w.shape[2:]) != list(stride) or stride[0] != stride[1] or any(padding) or \
                any(d != 1 for d in dilation) or (args[6] or 1) != 1:
            refuse(node, "patches are a convolution whose stride is its square kernel")
        self.spec.update(arch="vit", patch=stride[0], width=len(w))
        self.put("patch", w.permute(0, 2, 3, 1).reshape(len(w), -1), torch.zeros(len(w)) if b is None else b)
        self.pixels(args[0])

    def embedding(self, node: Any) -> None:
        factor, inner = self.g.scaled(node)
        inner = self.g.plain(inner)
        table = self.g.known(inner.args[0]) if op(inner) == "embedding" else None
        if table is None or self.g.plain(inner.args[1]) is not self.g.input:
            refuse(inner, "this stands before the embedding of ids")
        pooled = "pool" in self.spec
        if pooled and self.spec["causal"]:
            refuse(inner, "a causal mask in a model that answers once")
        self.spec.update(arch="classifier" if pooled else "gpt" if self.spec["causal"] else "encoder", width=table.shape[1])
        self.put("embed", table * factor)
