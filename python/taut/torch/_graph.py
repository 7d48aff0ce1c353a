"""A PyTorch module as a graph of operations, which torch.export writes down, and the layers that are seen in it.

Changes of shape are only passed through.  What taut does not know is named, with the line where the module calls it.
Whether all was understood is not for this file to say: _convert.py compares logits.
"""
import operator
from typing import Any, Dict, List, NamedTuple, NoReturn, Optional, Set, Tuple

import torch

from .. import _c

SHAPES = ("view", "reshape", "_unsafe_view", "transpose", "permute", "flatten", "unflatten", "unsqueeze", "squeeze",
          "contiguous", "clone", "expand", "expand_as", "alias", "detach", "dropout", "identity", "mT", "t", "to",
          "_to_copy", "swapaxes", "movedim", "repeat", "view_as")
PARTS = ("select", "getitem")
CUTS = ("unbind", "split", "split_with_sizes", "chunk")
CURVES = {"relu": "relu", "relu_": "relu", "silu": "silu", "silu_": "silu", "tanh": "tanh", "gelu": "gelu"}
PRODUCTS = ("matmul", "bmm", "baddbmm")

KNOWN = {*SHAPES, *PARTS, *CUTS, *CURVES, *PRODUCTS, "linear", "addmm", "layer_norm", "rms_norm",
         "scaled_dot_product_attention", "softmax", "masked_fill", "masked_fill_", "where", "add", "add_", "sub", "sub_",
         "mul", "mul_", "div", "div_", "cat", "conv2d", "mean", "embedding"}


class Unmapped(_c.InputError):
    """A part of a module for which taut has no place."""


class Linear(NamedTuple):
    weight: torch.Tensor
    bias: torch.Tensor
    reads: Any


class Norm(NamedTuple):
    kind: str
    weight: torch.Tensor
    bias: torch.Tensor
    eps: float
    reads: Any


def op(node: Any) -> str:
    """aten.linear.default is "linear"; what is no call has no name."""
    if not isinstance(node, torch.fx.Node) or node.op != "call_function":
        return ""
    target: Any = node.target
    return str(getattr(target, "overloadpacket", target).__name__)


def shape(node: Any) -> Tuple[int, ...]:
    return tuple(int(n) for n in node.meta["val"].shape)


def refuse(node: Any, why: str) -> NoReturn:
    meta = getattr(node, "meta", {})
    stack = [name for name, _ in (meta.get("nn_module_stack") or {}).values()]
    lines = [s.strip() for s in str(meta.get("stack_trace") or "").splitlines() if s.strip().startswith("File")]
    lines = [s for s in lines if "taut/torch/_convert" not in s]
    lines = [s for s in lines if "torch/nn/modules/" not in s] or lines  # where a layer is called, not PyTorch's inside of it
    layer = stack[-1].partition(".")[2] if stack else ""  # behind the name that _convert.py's wrapper has for it
    raise Unmapped(f"{why}: {op(node) or node} in {layer or 'the module itself'}{', ' + lines[-1] if lines else ''}")


class Graph:
    """The exported graph of a module, with the numbers of its constants."""

    def __init__(self, module: torch.nn.Module, example: torch.Tensor):
        try:
            self.program = torch.export.export(module, (example,), strict=False)
        except Exception as why:
            said = (str(why).strip() or type(why).__name__).splitlines()[0]
            raise Unmapped(f"torch.export cannot write this module down: {said}") from None
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
        if len(answers) != 1 or not isinstance(answers[0], torch.fx.Node):
            raise Unmapped(f"the module gives {len(answers)} answers: one tensor of logits is wanted")
        self.answer = answers[0]
        self._look()

    def _look(self) -> None:
        """Names the first operation on the way to the answer that taut has no layer for."""
        used: Set[Any] = set()
        ahead = [self.answer]
        while ahead:
            node = ahead.pop()
            if node not in used:
                used.add(node)
                ahead.extend(node.all_input_nodes)
        for node in self.program.graph.nodes:
            if node in used and node.op == "call_function" and op(node) not in KNOWN and self.known(node) is None:
                refuse(node, "taut has no such layer")

    def known(self, node: Any) -> Any:
        """The value of what does not depend on the input; None of what does."""
        if not isinstance(node, torch.fx.Node):
            return node
        if node not in self._known:
            inside = [self.known(n) for n in node.all_input_nodes]
            settled = node.op == "call_function" and all(v is not None for v in inside)
            value = None
            if settled:
                args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), self.known)
                value = node.target(*args, **kwargs)  # type: ignore[operator]
            self._known[node] = value
        return self._known[node]

    def plain(self, node: Any) -> Any:
        """The node behind changes of shape, dropout that is off and rows of one."""
        while self.known(node) is None and (op(node) in SHAPES or (op(node) == "cat" and len(node.args[0]) == 1)):
            if op(node) == "dropout" and node.args[2]:
                refuse(node, "dropout is on: certify a module in eval mode")
            node = node.args[0][0] if op(node) == "cat" else node.args[0]
        return node

    def linear(self, node: Any) -> Optional[Linear]:
        """A linear map: x W^T + b, also as a product with a matrix that is known."""
        node = self.plain(node)
        if op(node) == "linear":
            x, w, b = node.args[0], self.known(node.args[1]), self.known(node.args[2]) if len(node.args) > 2 else None
        elif op(node) == "addmm":
            x, w, b = node.args[1], self.known(node.args[2]), self.known(node.args[0])
            w = None if w is None else w.T
        else:
            b, inner = self.terms(node)  # x @ W + b
            w = self.known(inner.args[1]) if op(inner) == "matmul" else None
            if w is None or w.ndim != 2 or (b is not None and b.shape != w.shape[1:]):
                return None
            x, w = inner.args[0], w.T
        if w is None:
            refuse(node, "the weights of a linear map depend on the input")
        return Linear(w, torch.zeros(len(w)) if b is None else b, x)

    def norm(self, node: Any) -> Optional[Norm]:
        """A norm over the features."""
        node = self.plain(node)
        if op(node) not in ("layer_norm", "rms_norm"):
            return None
        args = list(node.args) + [None] * 5
        if len(args[1]) != 1:
            refuse(node, "a norm over more than the features")
        weight = torch.ones(args[1][0]) if args[2] is None else self.known(args[2])
        if op(node) == "rms_norm":
            eps = node.kwargs.get("eps", args[3])
            return Norm("rmsnorm", weight, torch.zeros(0), torch.finfo(torch.float32).eps if eps is None else eps, args[0])
        bias = torch.zeros(args[1][0]) if args[3] is None else self.known(args[3])
        return Norm("layernorm", weight, bias, 1e-5 if args[4] is None else args[4], args[0])

    def curve(self, node: Any) -> Optional[Tuple[str, Any]]:
        node = self.plain(node)
        if op(node) not in CURVES:
            return None
        tanh = op(node) == "gelu" and node.kwargs.get("approximate", "none") == "tanh"
        return "gelu_tanh" if tanh else CURVES[op(node)], node.args[0]

    def factor(self, node: Any) -> Tuple[Any, Any]:
        """(c, x) of c x and of x / c, for c that is known; (1, node) of everything else."""
        node = self.plain(node)
        if op(node) not in ("mul", "mul_", "div", "div_") or node.kwargs:
            return 1.0, node
        left, right = (self.known(a) for a in node.args[:2])
        if right is not None:
            return (1 / right if op(node) in ("div", "div_") else right), node.args[0]
        if left is not None and op(node) in ("mul", "mul_"):
            return left, node.args[1]
        return 1.0, node

    def scaled(self, node: Any) -> Tuple[float, Any]:
        """The same with numbers, through as many of them as stand there."""
        total = 1.0
        while True:
            c, inner = self.factor(node)
            if inner is self.plain(node) or (isinstance(c, torch.Tensor) and c.numel() != 1):
                return total, node
            total, node = total * float(c), inner

    def terms(self, node: Any) -> Tuple[Optional[torch.Tensor], Any]:
        """A sum of things that are known and one that is not: (their sum, the other); None where nothing known is added."""
        node, total = self.plain(node), None
        while op(node) in ("add", "add_") and node.kwargs.get("alpha", 1) == 1:
            left, right = (self.known(a) for a in node.args[:2])
            if (left is None) == (right is None):
                break
            value = torch.as_tensor(right if left is None else left)
            total = value if total is None else total + value
            node = self.plain(node.args[0] if left is None else node.args[1])
        return total, node

    def part(self, node: Any) -> Tuple[int, Any]:
        """Which of several stacked maps is read (0 where there is one), and the node of all of them."""
        found: List[int] = []
        while op(node) in SHAPES + PARTS:
            if op(node) == "select":
                found.append(int(node.args[2]))
            if node.target is operator.getitem:
                found.append(int(node.args[1]))
                node = node.args[0]
                if op(node) not in CUTS:
                    refuse(node, "a part of something that is not cut in parts")
            node = node.args[0]
        return sum(found), node
