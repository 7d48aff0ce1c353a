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
from ._graph import Graph, Unmapped
from ._reader import Reader, Weights

AGREEMENT = 1e-5  # of logits, relative to the largest
_kept: "list[tempfile.TemporaryDirectory[str]]" = []  # files of models without a path, until the interpreter ends


def to_numpy(x: Any, images: bool) -> Any:
    """A tensor on the CPU as an array that shares its memory (DLPack); images (n, channels, height, width) as taut reads
    them, with the channels last.  What is no tensor stays as it is."""
    if not isinstance(x, torch.Tensor):
        return x
    x = x.detach().cpu()
    x = x.float() if x.dtype == torch.bfloat16 else x  # which NumPy does not have
    return np.from_dlpack(x.movedim(1, -1) if images and x.ndim == 4 else x)


def write(path: Path, recipe: str, vocabulary: str, weights: Weights) -> None:
    """A model's file: safetensors with the recipe in its metadata."""
    header: Dict[str, Any] = {"__metadata__": {"format": "taut", "taut.recipe": recipe, "taut.vocab": vocabulary}}
    parts: "list[bytes]" = []
    at = 0
    for name, weight in weights.items():
        weight = weight[0] if weight.ndim == 2 and len(weight) == 1 else weight  # a single row is a vector there
        raw = weight.detach().to("cpu", torch.float32).contiguous().numpy().astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(weight.shape), "data_offsets": [at, at + len(raw)]}
        parts.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def recipe_of(reader: Reader, example: torch.Tensor) -> str:
    """The [model] section of what was read."""
    spec = dict(reader.spec)
    arch, causal = spec["arch"], spec.pop("causal", False)
    if example.ndim == 4:
        spec.update(image_channels=example.shape[1], image_height=example.shape[2], image_width=example.shape[3])
        for key in ("pixel_mean", "pixel_std"):
            spec[key] = " ".join(repr(v) for v in spec[key])
    if arch == "vit":
        if causal:
            raise Unmapped("a causal mask over the patches of an image")
        spec.setdefault("pool", "concat")
        spec.setdefault("class_token", False)
        spec.setdefault("final_norm", False)
    if arch in ("gpt", "encoder"):
        rows = len(reader.weights["embed.weight"])
        if spec.pop("classes") != rows:
            raise Unmapped(f"a head of other size than the {rows} ids that are read, for every token of a text")
        spec.update(tied=False)
    if arch == "gpt" and spec.pop("final_norm", False) != (spec["norm_place"] == "pre"):
        raise Unmapped("a norm behind the last block stands there if and only if norms stand before the branches")
    if arch == "encoder":
        spec.update(transform=False)
    if arch in ("encoder", "classifier"):
        spec.setdefault("final_norm", False)
        spec.setdefault("embed_norm", False)
    if example.ndim == 2:
        spec.update(context=example.shape[1], head_bias=True)
    lines = [f"{k} = {str(v).lower() if isinstance(v, bool) else v}" for k, v in spec.items()]
    return "[model]\n" + "\n".join(lines) + "\n"


def vocabulary(rows: int, arch: str) -> str:
    """Some characters for the ids, which PyTorch has no names for; one id of an encoder hides tokens, one of a classifier
    fills texts.  Ids without a character are ids like all others."""
    count = min(rows - (arch != "gpt"), 0xd000)
    if count < 1:
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


def by_name(module: torch.nn.Module) -> bool:
    """A module of transformers' own, not of another forward by the same name, with a head that taut reads by its name."""
    own = type(module).__module__.startswith("transformers.models.")
    return own and type(module).__name__.endswith(("LMHeadModel", "ForMaskedLM", "ForImageClassification"))


def read_hugging_face(module: Any, folder: Path, mean: "list[float]", std: "list[float]", kernels: str) -> Model:
    """What save_pretrained writes is what taut reads: GPT-2, BERT, RoBERTa, ViT, DeiT."""
    module.save_pretrained(folder)
    if hasattr(module.config, "image_size"):
        c = module.config.num_channels
        how = {"image_mean": mean * (c // len(mean)), "image_std": std * (c // len(std)), "do_rescale": True,
               "rescale_factor": 1 / 255}
        folder.joinpath("preprocessor_config.json").write_text(json.dumps(how))
        return load(folder, kernels)
    if module.config.vocab_size < 256:
        raise Unmapped(f"a vocabulary of {module.config.vocab_size}: of a Hugging Face module it has at least the 256 bytes")
    return load(folder, kernels, tokenizer="bytes")


class Asked(torch.nn.Module):
    """The module, of images that are normalised first if it wants that; its logits, where it answers with more."""
    mean: Optional[torch.Tensor]
    std: Optional[torch.Tensor]

    def __init__(self, module: torch.nn.Module, mean: Optional[torch.Tensor] = None, std: Optional[torch.Tensor] = None):
        super().__init__()
        self.module = module
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)

    def forward(self, x: torch.Tensor) -> Any:
        if self.mean is not None and self.std is not None:
            x = (x - self.mean) / self.std
        y = self.module(x)
        return getattr(y, "logits", y)


def answer(asked: torch.nn.Module, x: torch.Tensor) -> "np.ndarray[Any, Any]":
    try:
        with torch.no_grad():
            y = asked(x)
    except Exception as why:
        said = (str(why).strip() or type(why).__name__).splitlines()[0]
        raise Unmapped(f"the module does not take such inputs: {said}") from None
    if not isinstance(y, torch.Tensor):
        raise Unmapped(f"the module answers with a {type(y).__name__}: one tensor of logits is wanted")
    return y.detach().numpy()


def verify(model: Model, asked: torch.nn.Module, example: torch.Tensor) -> float:
    """How far logits are apart on random inputs and the example, over the largest; an error if that is too far.  One input
    at a time: logits of long texts are many."""
    seeded = torch.Generator().manual_seed(1)
    size = (8,) + tuple(example.shape[1:])
    if model.kind == "text":
        x = torch.cat([torch.randint(0, model.vocabulary, size, generator=seeded), example])
    else:
        x = torch.cat([torch.rand(size, generator=seeded, dtype=torch.float64), example.double()])
    apart = largest = 0.0
    for one in x.split(1):
        theirs, ours = answer(asked, one), model(to_numpy(one, model.kind == "images"))
        if theirs.shape != ours.shape:
            raise Unmapped(f"the module answers in the shape {theirs.shape}, the model that was read in {ours.shape}")
        apart = float(np.maximum(apart, np.abs(theirs - ours).max()))  # NaN stays
        largest = float(np.maximum(largest, np.abs(theirs).max()))
    apart /= max(1e-30, largest)
    if not apart <= AGREEMENT:
        raise Unmapped(f"the logits do not agree, by {apart:.1e} of the largest: this module was not understood")
    return apart


def channels(values: Any, what: str, example: torch.Tensor) -> "list[float]":
    """One number for each channel."""
    try:
        found = [float(v) for v in (values if hasattr(values, "__len__") else [values])]
    except (TypeError, ValueError):
        raise _c.InputError(f"{what} is a list of numbers, not {values!r}") from None
    if example.ndim != 4 or len(found) not in (1, example.shape[1]) or not np.isfinite(found).all() or \
            (what == "std" and min(found) <= 0):
        raise _c.InputError(f"{what} = {found} is not for inputs of shape {tuple(example.shape)}: one number for each channel"
                            f"{', above 0' if what == 'std' else ''}")
    return found * (example.shape[1] // len(found))


def sample(example: Any) -> torch.Tensor:
    """The example as what modules read: float images with pixels in [0, 1], or ids."""
    if not isinstance(example, torch.Tensor):
        raise _c.InputError(f"an example is a tensor of inputs, not {type(example).__name__}")
    if example.ndim not in (2, 4) or example.is_floating_point() != (example.ndim == 4) or not example.numel() or \
            example.dtype == torch.bool or example.is_complex():
        raise _c.InputError(f"an example is images (n, channels, height, width) or ids (n, t), not {tuple(example.shape)}"
                            f" of {example.dtype}")
    example = example.detach().cpu()
    example = example.float() if example.ndim == 4 else example.long()
    low, high = float(example.min()), float(example.max())
    if example.ndim == 4 and not (0 <= low and high <= 1):
        raise _c.InputError(f"the example has pixels from {low:.3g} to {high:.3g}: they are in [0, 1], and mean and std say how"
                            " the module wants them normalised")
    return example


def convert(module: torch.nn.Module, example: torch.Tensor, path: Any = None, *, mean: Optional[Sequence[float]] = None,
            std: Optional[Sequence[float]] = None) -> Model:
    """The module as a taut model in a file (`path`, or one that is kept until the interpreter ends).

    example: one batch of inputs, images (n, channels, height, width) with pixels in [0, 1] or ids (n, t).  mean, std: if the
    module wants normalised images, how: it reads (pixels - mean) / std, and everything that is proved is in pixels.
    The weights become float32.  Logits must agree on random inputs to 1e-5 of the largest, or `Unmapped` is raised; so it is
    for a layer that taut does not have, with its name.

    >>> model = taut.torch.convert(vit, images, "vit.safetensors", mean=[0.5] * 3, std=[0.25] * 3)
    """
    if not isinstance(module, torch.nn.Module):
        raise _c.InputError(f"a torch.nn.Module is wanted, not {type(module).__name__}: load its weights into it first")
    example = sample(example)
    for name, weight in module.named_parameters():
        if not weight.isfinite().all():
            raise _c.InputError(f"{name} holds NaN or infinity")
    module = copy.deepcopy(module).cpu().float().eval()
    shift, scale = [0.0], [1.0]
    asked = Asked(module)
    if mean is not None or std is not None:
        shift = channels(0 if mean is None else mean, "mean", example)
        scale = channels(1 if std is None else std, "std", example)
        asked = Asked(module, torch.tensor(shift).view(1, -1, 1, 1), torch.tensor(scale).view(1, -1, 1, 1))
    with tempfile.TemporaryDirectory() as folder:
        if by_name(module):
            model = read_hugging_face(module, Path(folder), shift, scale, "ref")
        else:
            read_graph(asked, example, Path(folder, "first.safetensors"))
            model = load(Path(folder, "first.safetensors"), "ref")
        verify(model, asked.double(), example)
        if path is None:
            _kept.append(tempfile.TemporaryDirectory(prefix="taut-"))
            path = Path(_kept[-1].name, "model.safetensors")
        model.save(path)
    return model
