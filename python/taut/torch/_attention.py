"""Attention in a graph: torch's own call, or softmax(c q k^T + mask) v written out, with the mask that it has."""
import math
from typing import Any, NamedTuple, Optional, Tuple

import torch

from ._graph import PRODUCTS, Graph, op, refuse, shape

HIDDEN = -1e9  # what is added to a logit that is not to be seen, or less: its weight is below all that double has


class Attention(NamedTuple):
    q: Any
    k: Any
    v: Any
    heads: int  # all axes before tokens: the example has one input
    scale: float
    causal: bool
    heart: Any  # the node that refusals name


def read(g: Graph, node: Any) -> Optional[Attention]:
    """What stands before the last linear map of attention, or None if that is something else."""
    node = g.plain(node)
    if op(node) == "scaled_dot_product_attention":
        return called(g, node)
    if op(node) in PRODUCTS[:2] and op(g.plain(node.args[0])) == "softmax":
        return written(g, node)
    return None


def called(g: Graph, heart: Any) -> Attention:
    args = list(heart.args) + [None] * 6
    if heart.kwargs.get("dropout_p", args[4]):
        refuse(heart, "dropout inside attention is on: certify a module in eval mode")
    if heart.kwargs.get("enable_gqa"):
        refuse(heart, "keys and values that several heads share")
    size = shape(args[0])
    causal, mask = bool(heart.kwargs.get("is_causal", args[5])), heart.kwargs.get("attn_mask", args[3])
    if mask is not None and not causal:
        causal = is_causal(g, heart, g.known(mask), size[-2])
    scale = heart.kwargs.get("scale")
    scale = size[-1]**-0.5 if scale is None else float(scale)
    return Attention(args[0], args[1], args[2], math.prod(size[:-2]), scale, causal, heart)


def written(g: Graph, node: Any) -> Attention:
    """softmax(logits) v"""
    heart = g.plain(node.args[0])
    size = shape(heart)
    axis = heart.args[1] if len(heart.args) > 1 else heart.kwargs["dim"]
    if axis % len(size) != len(size) - 1 or size[-1] != size[-2]:
        refuse(heart, "softmax of something else than the logits of each token with all tokens")
    scale, causal, product = logits(g, heart, size[-1])
    if op(product) not in PRODUCTS:
        refuse(heart, "softmax of something else than queries with keys")
    left, right = product.args[-2:]
    if op(product) == "baddbmm":
        if product.kwargs.get("alpha", 1) != 1 or product.kwargs.get("beta", 1) != 1:
            refuse(product, "a product with factors of its own")
        causal = is_causal(g, heart, g.known(product.args[0]), size[-1]) or causal
    (a, q), (b, k) = g.scaled(left), g.scaled(right)
    return Attention(q, k, node.args[1], math.prod(size[:-2]), scale * a * b, causal, heart)


def logits(g: Graph, heart: Any, tokens: int) -> Tuple[float, bool, Any]:
    """(scale, causal, the product) of what softmax reads, behind masks and factors."""
    node, scale, causal = g.plain(heart.args[0]), 1.0, False
    while op(node) not in PRODUCTS:
        before = node
        mask: Any = None
        if op(node) in ("masked_fill", "masked_fill_"):
            hide = g.known(node.args[1])
            mask = None if hide is None else torch.zeros(hide.shape).masked_fill(hide, float(g.known(node.args[2])))
            node = g.plain(node.args[0])
        elif op(node) == "where":
            see, other = g.known(node.args[0]), g.known(node.args[2])
            mask = None if see is None or other is None else torch.where(see, torch.zeros(()), torch.as_tensor(other))
            node = g.plain(node.args[1])
        else:
            mask, node = g.terms(node)
            if mask is None:
                factor, node = g.scaled(node)
                if g.plain(node) is before:
                    return scale, causal, node
                scale, node = scale * factor, g.plain(node)
                continue
        causal = is_causal(g, before, mask, tokens) or causal
    return scale, causal, node


def is_causal(g: Graph, node: Any, mask: Any, tokens: int) -> bool:
    """A mask that is known hides what comes later, or nothing; others are refused."""
    if mask is None:
        refuse(node, "a mask that depends on the input")
    mask = torch.as_tensor(mask)
    seen = mask if mask.dtype == torch.bool else mask == 0
    hidden = ~mask if mask.dtype == torch.bool else mask <= HIDDEN
    later = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    if bool(seen.all()):
        return False
    if bool((seen | hidden).all()) and bool((hidden == later).all()):
        return True
    refuse(node, "a mask that is neither causal nor empty")
