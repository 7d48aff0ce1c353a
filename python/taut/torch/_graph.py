"""A PyTorch module as what taut knows: torch.export writes it down as a graph, which is read from its answer backwards.

The reader knows linear maps, norms, activations, attention, residuals, patches, class tokens and positions, and how they
stand in a transformer; changes of shape it only passes through.  What it does not know it names.  Whether it understood is
not for it to say: _convert.py compares logits.
"""
from typing import Any, Dict, List, NoReturn, Optional, Tuple

import torch

from .. import _c

Weights = Dict[str, torch.Tensor]
SHAPES = ("view", "reshape", "_unsafe_view", "transpose", "permute", "flatten", "unflatten", "unsqueeze", "squeeze",
          "contiguous", "clone", "expand", "alias", "detach", "dropout", "identity", "mT", "t")
PARTS = ("select", "getitem")
CUTS = ("unbind", "split", "split_with_sizes", "chunk")
CURVES = {"relu": "relu", "relu_": "relu", "silu": "silu", "silu_": "silu", "tanh": "tanh", "gelu": "gelu"}


KNOWN = {*SHAPES, *PARTS, *CUTS, *CURVES, "linear", "addmm", "layer_norm", "rms_norm", "scaled_dot_product_attention", "add",
         "add_", "sub", "sub_", "mul", "mul_", "div", "div_", "cat", "conv2d", "mean", "embedding"}


class Unmapped(_c.InputError):
    """A part of a module for which taut has no place."""


def op(node: Any) -> str:
    """aten.linear.default is "linear"; what is no call has no name."""
    if not isinstance(node, torch.fx.Node) or node.op != "call_function":
        return ""
    return getattr(node.target, "overloadpacket", node.target).__name__


def refuse(node: Any, why: str) -> NoReturn:
    stack = list((getattr(node, "meta", {}).get("nn_module_stack") or {}).values())
    lines = [s.strip() for s in str(getattr(node, "meta", {}).get("stack_trace") or "").splitlines() if "File" in s]
    layer = stack[-1][0] if stack and stack[-1][0] else "the module itself"
    raise Unmapped(f"{why}: {op(node) or node} in {layer}{', ' + lines[-1] if lines else ''}")


class Graph:
    """The exported graph of a module, with the numbers of its constants."""

    def __init__(self, module: torch.nn.Module, example: torch.Tensor):
        try:
            self.program = torch.export.export(module, (example,), strict=False)
        except Exception as why:
            raise Unmapped(f"torch.export cannot write this module down: {str(why).splitlines()[0]}") from None
        given, signature = self.program.state_dict, self.program.graph_signature
        self._known: Dict[Any, Any] = {}
        names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
        constants = dict(signature.inputs_to_lifted_tensor_constants)
        for node in self.program.graph.nodes:
            if node.name in names:
                name = names[node.name]
                self._known[node] = given[name] if name in given else self.program.constants[name]
            elif node.name in constants:
                self._known[node] = self.program.constants[constants[node.name]]
        self.input = next(n for n in self.program.graph.nodes if n.name in signature.user_inputs)
        answers = next(n for n in self.program.graph.nodes if n.op == "output").args[0]
        if len(answers) != 1:
            raise Unmapped(f"the module gives {len(answers)} answers: one tensor of logits is wanted")
        self.answer = answers[0]
        for node in self.program.graph.nodes:
            if node.op == "call_function" and op(node) not in KNOWN and self.known(node) is None:
                refuse(node, "taut has no such layer")

    def known(self, node: Any) -> Optional[torch.Tensor]:
        """The value of what does not depend on the input; None of what does."""
        if not isinstance(node, torch.fx.Node):
            return node
        if node not in self._known:
            inside = [self.known(n) for n in node.all_input_nodes]
            settled = node.op == "call_function" and all(v is not None for v in inside)
            value = None
            if settled:
                args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), self.known)
                value = node.target(*args, **kwargs)
            self._known[node] = value
        return self._known[node]

    def plain(self, node: Any) -> Any:
        """The node behind changes of shape, and dropout that is off."""
        while op(node) in SHAPES and self.known(node) is None:
            if op(node) == "dropout" and node.args[2]:
                refuse(node, "dropout is on: certify a module in eval mode")
            node = node.args[0]
        return node

    def linear(self, node: Any) -> Optional[Tuple[torch.Tensor, torch.Tensor, Any]]:
        """(weight, bias, what it reads) of a linear map."""
        node = self.plain(node)
        if op(node) == "linear":
            x, w, b = node.args[0], self.known(node.args[1]), self.known(node.args[2]) if len(node.args) > 2 else None
        elif op(node) == "addmm":
            x, w, b = node.args[1], self.known(node.args[2]), self.known(node.args[0])
            w = None if w is None else w.T
        else:
            return None
        if w is None:
            refuse(node, "the weights of a linear map depend on the input")
        return w, torch.zeros(len(w)) if b is None else b, x

    def norm(self, node: Any) -> Optional[Tuple[str, torch.Tensor, torch.Tensor, float, Any]]:
        """(kind, weight, bias, epsilon, what it reads) of a norm over the features."""
        node = self.plain(node)
        if op(node) not in ("layer_norm", "rms_norm"):
            return None
        args = list(node.args) + [None] * 5
        if len(args[1]) != 1:
            refuse(node, "a norm over more than the features")
        weight = torch.ones(args[1][0]) if args[2] is None else self.known(args[2])
        if op(node) == "rms_norm":
            eps = node.kwargs.get("eps", args[3])
            return "rmsnorm", weight, torch.zeros(0), torch.finfo(torch.float32).eps if eps is None else eps, args[0]
        bias = torch.zeros(args[1][0]) if args[3] is None else self.known(args[3])
        return "layernorm", weight, bias, 1e-5 if args[4] is None else args[4], args[0]

    def curve(self, node: Any) -> Optional[Tuple[str, Any]]:
        node = self.plain(node)
        if op(node) not in CURVES:
            return None
        tanh = op(node) == "gelu" and node.kwargs.get("approximate", "none") == "tanh"
        return "gelu_tanh" if tanh else CURVES[op(node)], node.args[0]

    def part(self, node: Any) -> Tuple[int, Any]:
        """Which of several stacked maps is read (0 where there is one), and the node of all of them."""
        found: List[int] = []
        while op(node) in SHAPES + PARTS:
            if op(node) == "select":
                found.append(node.args[2])
            if op(node) == "getitem":
                found.append(node.args[1])
                node = node.args[0]
                if op(node) not in CUTS:
                    refuse(node, "a part of something that is not cut in parts")
            node = node.args[0]
        return sum(found), node


Spec = Dict[str, Any]


def agree(spec: Spec, node: Any, **found: Any) -> None:
    """All blocks of a model have the same sizes and curves."""
    for key, value in found.items():
        if spec.setdefault(key, value) != value:
            refuse(node, f"{key} is {value} here and {spec[key]} elsewhere")


class Reader:
    """A transformer or a perceptron, as the keys of a recipe and weights by name."""

    def __init__(self, graph: Graph):
        self.g, self.spec, self.weights = graph, {}, {}

    def put(self, name: str, weight: torch.Tensor, bias: Optional[torch.Tensor] = None) -> None:
        self.weights[name + ".weight"] = weight
        if bias is not None and bias.numel():
            self.weights[name + ".bias"] = bias

    def put_norm(self, name: str, found: Tuple[str, torch.Tensor, torch.Tensor, float, Any], node: Any) -> Any:
        kind, weight, bias, eps, x = found
        agree(self.spec, node, norm=kind, norm_eps=float(eps))
        self.put(name, weight, bias)
        return x

    def mlp(self, name: str, node: Any) -> Optional[Any]:
        """out(f(in(x))): what it reads, or None if it is something else."""
        last = self.g.linear(node)
        bent = self.g.curve(last[2]) if last else None
        first = self.g.linear(bent[1]) if bent else None
        if not (last and bent and first):
            return None
        agree(self.spec, node, activation=bent[0], mlp=len(first[0]))
        self.put(name + ".in", first[0], first[1])
        self.put(name + ".out", last[0], last[1])
        return first[2]

    def attention(self, name: str, node: Any) -> Optional[Any]:
        last = self.g.linear(node)
        heart = self.g.plain(last[2]) if last else None
        if op(heart) != "scaled_dot_product_attention":
            return None
        args = list(heart.args) + [None] * 6
        heads, tokens, head = args[0].meta["val"].shape[-3], args[0].meta["val"].shape[-2], args[0].meta["val"].shape[-1]
        scale = heart.kwargs.get("scale")
        agree(self.spec, heart, heads=heads, causal=self.causal(heart, args, tokens),
              attention_factor=1.0 if scale is None else float(scale) * head**0.5)
        reads = set()
        for letter, source in zip("qkv", args):
            index, at = self.g.part(source)
            found = self.g.linear(at)
            if not found:
                refuse(at, "queries, keys and values come from linear maps")
            rows, reads = heads * head, reads | {self.g.plain(found[2])}
            if len(found[0]) < rows * (index + 1):
                refuse(at, "keys or values of another size than queries")
            self.put(f"{name}.{letter}", found[0][index * rows:(index + 1) * rows],
                     found[1][index * rows:(index + 1) * rows])
        if len(reads) != 1:
            refuse(heart, "queries, keys and values of different tokens")
        self.put(name + ".o", last[0], last[1])
        return reads.pop()

    def causal(self, heart: Any, args: List[Any], tokens: int) -> bool:
        mask, causal = heart.kwargs.get("attn_mask", args[3]), bool(heart.kwargs.get("is_causal", args[5]))
        if heart.kwargs.get("dropout_p", args[4]):
            refuse(heart, "dropout inside attention is on: certify a module in eval mode")
        if mask is None or causal:
            return causal
        mask = self.g.known(mask)
        if mask is None:
            refuse(heart, "a mask that depends on the input")
        seen = mask if mask.dtype == torch.bool else mask == 0
        hidden = torch.ones_like(seen) if mask.dtype == torch.bool else seen | (mask == -torch.inf)
        lower = torch.ones(tokens, tokens, dtype=torch.bool).tril()
        if bool(hidden.all()) and bool(seen.all()):
            return False
        if bool(hidden.all()) and bool((seen == lower).all()):
            return True
        refuse(heart, "a mask that is neither causal nor empty")

    def branch(self, node: Any, name: str, read: Any) -> Optional[Tuple[Any, Any]]:
        """node = x + f(...): x, and what f reads."""
        node = self.g.plain(node)
        if op(node) not in ("add", "add_") or node.kwargs.get("alpha", 1) != 1:
            return None
        for skip, inner in (node.args[:2], node.args[1::-1]):
            if self.g.known(skip) is None and self.g.known(inner) is None:
                found = read(name, inner)
                if found is not None:
                    return self.g.plain(skip), found
        return None

    def half(self, node: Any, place: str, norm: str, name: str, read: Any) -> Optional[Any]:
        """Half a block: x + f(norm(x)) before, norm(x + f(x)) after; x, or None if it is something else."""
        ended = self.g.norm(node) if place == "post" else None
        if place == "post" and not ended:
            return None
        found = self.branch(ended[4] if ended else node, name, read)
        if not found:
            return None
        begun = self.g.norm(found[1]) if place == "pre" else None
        if place == "pre" and not begun:
            return None
        if self.g.plain(begun[4] if begun else found[1]) is not found[0]:
            return None
        self.put_norm(norm, begun or ended, node)
        return found[0]

    def blocks(self, node: Any) -> Any:
        """Every block from the last one back; the tokens that go in."""
        stack: List[Weights] = []
        before, own = self.weights, {}
        while True:
            self.weights = own = {}
            kept = dict(self.spec)
            for place in [self.spec["norm_place"]] if "norm_place" in self.spec else ["pre", "post"]:
                middle = self.half(node, place, "norm2", "mlp", self.mlp)
                below = self.half(middle, place, "norm1", "attn", self.attention) if middle is not None else None
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

    def read(self) -> None:
        """From the logits back to the input."""
        head = self.g.linear(self.g.answer)
        if not head:
            refuse(self.g.plain(self.g.answer), "the answer is not that of a linear map")
        self.put("head", head[0], head[1])
        self.spec["classes"] = len(head[0])
        if self.layers(head[2]):
            return
        node = self.pool(head[2])
        first = self.blocks(node)
        if not self.spec["depth"]:  # or there is a norm behind the last block
            last = self.g.norm(node)
            if not last:
                refuse(self.g.plain(node), "no block of a transformer ends here")
            first = self.blocks(self.put_norm("norm", last, node))
            self.spec["final_norm"] = True
        if not self.spec["depth"]:
            refuse(self.g.plain(first), "no block of a transformer ends here")
        self.tokens(first)

    def layers(self, node: Any) -> bool:
        """A perceptron: linear maps with the same curve between them, down to the pixels."""
        found = []
        bent = self.g.curve(node)
        while bent:
            map_ = self.g.linear(bent[1])
            if not map_:
                return False
            found.append((bent[0], map_))
            node = map_[2]
            bent = self.g.curve(node)
        if not found or not self.pixels(node, may=True):
            return False
        for i, (curve, (w, b, _)) in enumerate(reversed(found)):
            agree(self.spec, node, activation=curve)
            self.put(f"layer.{i}", w, b)
        self.spec.update(arch="mlp", hidden=" ".join(str(len(m[0])) for _, m in reversed(found)))
        return True

    def pool(self, node: Any) -> Any:
        at = node
        while op(at) in ("dropout", "identity", "clone", "contiguous", "squeeze"):
            at = at.args[0]
        if op(at) == "select" and at.args[1] in (1, -2) and at.args[2] == 0:
            self.spec["pool"] = "class"
            return at.args[0]
        if op(at) == "mean" and list(at.args[1]) in ([1], [-2]):
            self.spec["pool"] = "mean"
            return at.args[0]
        ended = self.g.norm(at)
        if ended and op(self.g.plain(ended[4])) == "select":  # a norm of the token that is read: of all is the same
            self.put_norm("norm", ended, at)
            self.spec["final_norm"] = True
            return self.pool(ended[4])
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
        mean, std = torch.as_tensor(mean).flatten(), torch.as_tensor(std).flatten()
        self.spec["pixel_mean"] = mean.tolist()
        self.spec["pixel_std"] = std.tolist()
        return True

    def tokens(self, node: Any) -> None:
        """Class token and positions, then patches of an image or the embedding of ids."""
        node = self.g.plain(node)
        self.spec["positions"] = "none"
        if op(node) in ("add", "add_"):
            constants = [self.g.known(a) for a in node.args[:2]]
            if (constants[0] is None) == (constants[1] is None):
                refuse(node, "a sum before the first block that does not add positions")
            where = constants[0] if constants[1] is None else constants[1]
            node = self.g.plain(node.args[0] if constants[0] is None else node.args[1])
            self.spec["positions"] = "learned"
            self.put("pos", where.reshape(-1, where.shape[-1]))
        if op(node) == "cat" and len(node.args[0]) == 2 and self.g.known(node.args[0][0]) is not None:
            token = self.g.known(node.args[0][0])
            if token.shape[-2] != 1:
                refuse(node, "more than one token stands before the patches")
            self.put("cls", token.reshape(-1, token.shape[-1])[:1])
            self.spec["class_token"], node = True, self.g.plain(node.args[0][1])
        if op(node) == "conv2d":
            self.patches(node)
        elif op(node) in ("embedding", "mul", "mul_"):
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
        factor = 1.0
        if op(node) in ("mul", "mul_"):
            factor, node = self.g.known(node.args[1]), self.g.plain(node.args[0])
        table = self.g.known(node.args[0]) if op(node) == "embedding" else None
        if table is None or self.g.plain(node.args[1]) is not self.g.input or factor is None:
            refuse(node, "this stands before the embedding of ids")
        self.spec.update(arch="gpt" if self.spec["causal"] else "encoder", width=table.shape[1])
        self.put("embed", table * factor)
