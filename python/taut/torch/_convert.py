"""A PyTorch module as a file of ours, and the proof that it is the same function: logits on random inputs."""
import copy
import json
import struct
import tempfile
from pathlib import Path
from typing import Any, Dict, Optional, Sequence

import numpy as np
import torch

from .. import _c
from .._model import Model, load
from ._graph import Graph, Reader, Unmapped, Weights

AGREEMENT = 1e-5  # of logits, relative to the largest
_kept: "list[tempfile.TemporaryDirectory[str]]" = []  # files of models without a path, until the interpreter ends


def to_numpy(x: Any, images: bool) -> Any:
    """A tensor as NumPy has it; images (n, channels, height, width) as taut reads them, with the channels last."""
    if not isinstance(x, torch.Tensor):
        return x
    x = x.detach().cpu()
    return x.movedim(1, -1).numpy() if images and x.ndim == 4 else x.numpy()


def write(path: Path, recipe: str, vocabulary: str, weights: Weights) -> None:
    """A model's file: safetensors with the recipe in its metadata."""
    header: Dict[str, Any] = {"__metadata__": {"format": "taut", "taut.recipe": recipe, "taut.vocab": vocabulary}}
    parts, at = [], 0
    for name, weight in weights.items():
        weight = weight[0] if weight.ndim == 2 and len(weight) == 1 else weight  # a single row is a vector there
        raw = weight.detach().to("cpu", torch.float32).contiguous().numpy().astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(weight.shape), "data_offsets": [at, at + len(raw)]}
        parts, at = parts + [raw], at + len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def recipe_of(reader: Reader, example: torch.Tensor) -> str:
    """The [model] section of what was read."""
    spec, text = dict(reader.spec), example.ndim == 2
    causal = spec.pop("causal", False)
    if not text:
        spec.update(image_channels=example.shape[1], image_height=example.shape[2], image_width=example.shape[3])
        for key in ("pixel_mean", "pixel_std"):
            spec[key] = " ".join(repr(v) for v in spec[key])
    if spec["arch"] == "vit":
        if causal:
            raise Unmapped("a causal mask over the patches of an image")
        spec.setdefault("pool", "concat")
        spec.setdefault("class_token", False)
        spec.setdefault("final_norm", False)
    if text:
        rows = len(reader.weights["embed.weight"])
        if spec.pop("classes") != rows:
            raise Unmapped(f"a head of other size than the {rows} ids that are read: taut's text models predict tokens")
        if "pool" in spec or "class_token" in spec:
            raise Unmapped("a text model that answers once: taut's text models answer per token")
        if spec.pop("final_norm", False) != (spec["norm_place"] == "pre"):
            raise Unmapped("a norm behind the last block stands there if and only if norms stand before the branches")
        spec.update(context=example.shape[1], tied=False, head_bias=True)
        spec.update({} if causal else {"transform": False, "embed_norm": False})
    lines = [f"{k} = {str(v).lower() if isinstance(v, bool) else v}" for k, v in spec.items()]
    return "[model]\n" + "\n".join(lines) + "\n"


def vocabulary(rows: int, arch: str) -> str:
    """Some characters for the ids, which PyTorch has no names for; one id of an encoder hides tokens."""
    count = rows - (arch == "encoder")
    if not 1 <= count <= 0xd000:
        raise Unmapped(f"an embedding of {rows} ids")
    return f"chars:100-{0xff + count:x}" if count > 1 else "chars:100"


def read_graph(module: torch.nn.Module, example: torch.Tensor, path: Path) -> None:
    reader = Reader(Graph(module, example[:1]))
    with torch.no_grad():
        reader.read()
        weights = reader.weights
        if reader.spec["arch"] == "mlp":  # its first layer reads pixels with the channels last
            c, h, w = example.shape[1:]
            first = weights["layer.0.weight"]
            weights["layer.0.weight"] = first.reshape(-1, c, h, w).permute(0, 2, 3, 1).reshape(len(first), -1)
        rows = len(weights["embed.weight"]) if "embed.weight" in weights else 0
        if reader.spec.get("positions") == "learned":
            weights["pos.weight"] = weights["pos.weight"][:example.shape[1] if rows else None]
        write(path, recipe_of(reader, example), vocabulary(rows, reader.spec["arch"]) if rows else "", weights)


def read_hugging_face(module: Any, folder: Path, mean: Any, std: Any, kernels: str) -> Model:
    """What save_pretrained writes is what taut reads: GPT-2, BERT, RoBERTa, ViT, DeiT."""
    module.save_pretrained(folder)
    if hasattr(module.config, "image_size"):
        how = {"image_mean": list(mean), "image_std": list(std), "do_rescale": True, "rescale_factor": 1 / 255}
        folder.joinpath("preprocessor_config.json").write_text(json.dumps(how))
        return load(folder, kernels)
    return load(folder, kernels, tokenizer="bytes")


def answer(module: torch.nn.Module, x: torch.Tensor, mean: torch.Tensor, std: torch.Tensor) -> np.ndarray:
    """The module's logits, in double."""
    with torch.no_grad():
        y = module((x - mean) / std if x.is_floating_point() else x)
    y = getattr(y, "logits", y)
    return y.detach().numpy()


def verify(model: Model, module: torch.nn.Module, example: torch.Tensor, mean: torch.Tensor, std: torch.Tensor) -> float:
    """How far logits are apart on random inputs and the example, over the largest; an error if that is too far."""
    seeded = torch.Generator().manual_seed(1)
    shape = (8,) + tuple(example.shape[1:])
    if model.kind == "text":
        x = torch.cat([torch.randint(0, model.vocabulary, shape, generator=seeded), example.long()])
    else:
        x = torch.cat([torch.rand(shape, generator=seeded, dtype=torch.float64), example.double().clamp(0, 1)])
    theirs = answer(module, x, mean, std)
    ours = model(to_numpy(x, model.kind == "images"))
    if theirs.shape != ours.shape:
        raise Unmapped(f"the module answers in the shape {theirs.shape}, the model that was read in {ours.shape}")
    apart = float(np.abs(theirs - ours).max() / max(1e-30, np.abs(theirs).max()))
    if not apart <= AGREEMENT:
        raise Unmapped(f"the logits do not agree, by {apart:.1e} of the largest: this module was not understood")
    return apart


def channels(values: Optional[Sequence[float]], default: float) -> torch.Tensor:
    return torch.as_tensor([default] if values is None else values, dtype=torch.float64).reshape(1, -1, 1, 1)


def convert(module: torch.nn.Module, example: torch.Tensor, path: Any = None, *, mean: Optional[Sequence[float]] = None,
            std: Optional[Sequence[float]] = None) -> Model:
    """The module as a taut model in a file (`path`, or one that is kept until the interpreter ends).

    example: one batch of inputs, images (n, channels, height, width) with pixels in [0, 1] or ids (n, t).  mean, std: if the
    module wants normalised images, how: it reads (pixels - mean) / std, and everything that is proved is in pixels.
    The weights become float32.  Logits must agree on random inputs to 1e-5 of the largest, or `Unmapped` is raised; so it is
    for a layer that taut does not have, with its name.

    >>> model = taut.torch.convert(vit, images, "vit.safetensors", mean=[0.5] * 3, std=[0.25] * 3)
    """
    if not isinstance(module, torch.nn.Module) or not isinstance(example, torch.Tensor):
        raise _c.InputError("convert takes a torch.nn.Module and a tensor of inputs")
    if example.ndim not in (2, 4) or example.is_floating_point() != (example.ndim == 4) or not len(example):
        raise _c.InputError(f"an example is images (n, channels, height, width) or ids (n, t), not {tuple(example.shape)}"
                            f" of {example.dtype}")
    example = example.detach().cpu()
    module = copy.deepcopy(module).cpu().float().eval()
    shift, scale = channels(mean, 0), channels(std, 1)
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder, "first.safetensors")
        if type(module).__module__.startswith("transformers.models."):  # not of another forward by the same name
            c = example.shape[1] if example.ndim == 4 else 1
            model = read_hugging_face(module, Path(folder), shift.expand(1, c, 1, 1).flatten().tolist(),
                                      scale.expand(1, c, 1, 1).flatten().tolist(), "ref")
        else:
            read_graph(torch.nn.Sequential(Normalise(shift, scale), module) if example.ndim == 4 and (mean or std)
                       else module, example, first)
            model = load(first, "ref")
        verify(model, module.double(), example, shift, scale)
        if path is None:
            _kept.append(tempfile.TemporaryDirectory(prefix="taut-"))
            path = Path(_kept[-1].name, "model.safetensors")
        model.save(path)
    return model


class Normalise(torch.nn.Module):
    """(pixels - mean) / std, per channel."""

    def __init__(self, mean: torch.Tensor, std: torch.Tensor):
        super().__init__()
        self.register_buffer("mean", mean.float())
        self.register_buffer("std", std.float())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x - self.mean) / self.std
