"""Models: numbers through them, their weights, their proofs and attacks."""
import configparser
import ctypes
import json
import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Iterator, Mapping, Optional, Sequence, Union

import numpy as np

from . import _c, _show
from ._answers import Answers
from ._arrays import Batch, at, batch, ids, reals
from ._attack import Attack, attack
from ._certificate import Certificate, certify
from ._data import Data, Score
from ._handle import Handle

Path_ = Union[str, "os.PathLike[str]"]


class Weights(Mapping[str, np.ndarray]):
    """The weights of a model by name, as float64 arrays (rows, cols).

    >>> model.weights["head.weight"].shape
    >>> model.weights["head.bias"] = np.zeros((1, 10))     # then model.save(path), before it is certified
    """

    def __init__(self, model: "Model"):
        self._model = model
        with model._held() as handle:
            count = _c.look("taut_net_look", _c.NetFacts, handle).tensors
            facts = [_c.look("taut_net_tensor", _c.TensorFacts, handle, i) for i in range(count)]
            self._shapes = {f.name.decode(): (f.rows, f.cols) for f in facts}

    def __getitem__(self, name: str) -> np.ndarray:
        w = np.empty(self._shapes[name])
        with self._model._held() as handle:
            _c.call("taut_net_read", handle, name.encode(), at(w), w.size)
        return w

    def __setitem__(self, name: str, value: Any) -> None:
        w = reals(value, name, self._shapes[name])
        if not np.isfinite(w).all():
            raise _c.InputError(f"{name}: a weight is NaN or infinite")
        with self._model._held() as handle:
            _c.call("taut_net_write", handle, name.encode(), at(w), w.size)
        self._model.changed = True

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)

    def __repr__(self) -> str:
        return f"<{len(self)} tensors of {self._model!r}>"


class Model(Handle, Answers):
    """A network: logits, derivatives, weights, certificates, attacks.  `taut.load` and `taut.create` make one.

    >>> model = taut.load("runs/a")
    >>> model(x), model.grad(x, w), model.jvp(x, t)
    """
    _free = "taut_net_free"

    def __init__(self, handle: Any, path: Optional[Path], kernels: Optional[str]):
        super().__init__(handle)
        self.path, self.kernels, self.changed = path, kernels, path is None
        facts = _c.look("taut_net_look", _c.NetFacts, handle)
        self.kind: str = _c.KINDS[facts.kind]
        self.context, self.width, self.vocabulary = facts.context, facts.width, facts.vocabulary
        self.answers, self.classes, self.size = facts.answers, facts.classes, facts.weights
        self.shape: "tuple[int, ...]" = (self.context, self.width)  # of one input of reals
        if self.kind == "images":
            self.shape = tuple(int(self._model_key(k)) for k in ("image_height", "image_width", "image_channels"))

    def _model_key(self, key: str) -> str:
        ini = configparser.ConfigParser(interpolation=None)
        ini.read_string(self.info["recipe"])
        return ini["model"][key]

    @property
    def info(self) -> "dict[str, Any]":
        """What the model is, as `taut info --json` says it: recipe, tree of modules, tensors.

        >>> print(model.info["recipe"])
        """
        with self._held() as handle:
            return json.loads(_c.text("taut_net_json", handle))

    @property
    def weights(self) -> Weights:
        """Its weights by name; what is assigned is rounded to float32.

        >>> sorted(model.weights)
        """
        return Weights(self)

    # ---- numbers through it

    def _batch(self, x: Any) -> Batch:
        if isinstance(x, str):
            x = self.encode(x)
        return batch(x, self.shape, self.kind == "text", self.context)

    def _out(self, b: Batch) -> "tuple[int, int, int]":
        return (b.n, self.answers or b.t, self.classes)

    def _shaped(self, y: np.ndarray, b: Batch) -> np.ndarray:
        """(n, rows, classes) as people expect it: images, classified texts and features have one row, a single input no n."""
        y = y[:, 0] if self.answers == 1 and self.kind != "series" else y
        return y[0] if b.single else y

    def __call__(self, x: Any) -> np.ndarray:
        """Logits, forecasts, or features.  Images (n, height, width, channels) with pixels in [0, 1] give (n, classes); ids
        (n, t), embeddings (n, t, width) or a text give (n, t, classes).  A single input gives results without n.

        >>> model(images).argmax(-1)
        """
        b = self._batch(x)
        y = np.empty(self._out(b))
        with self._held() as handle:
            _c.call("taut_net_logits", handle, at(y), b.ref)
        return self._shaped(y, b)

    def _room(self, b: Batch) -> np.ndarray:
        """Room for numbers in the shape of the inputs as reals."""
        return np.empty((b.n, b.t, self.width) if b.x.dtype == np.int32 else b.x.shape)

    def grad(self, x: Any, w: Any) -> np.ndarray:
        """J^T w: the gradient of <w, model(x)> with respect to x (of a text: to the embeddings).  w has the shape of
        model(x).

        >>> model.grad(x, np.eye(model.classes)[3])        # how class 3 grows
        """
        b = self._batch(x)
        gy = reals(w, "w", self._shaped(np.empty(self._out(b)), b).shape)
        gx = self._room(b)
        with self._held() as handle:
            _c.call("taut_net_vjp", handle, at(gx), at(gy), b.ref)
        return gx[0] if b.single and b.x.dtype == np.int32 else gx

    def jvp(self, x: Any, t: Any) -> np.ndarray:
        """J t: how model(x) moves when x moves along t, which has the shape of x (of ids: of their embeddings).

        >>> model.jvp(x, np.ones_like(x))
        """
        b = self._batch(x)
        room = self._room(b)
        tx = reals(t, "t", room.shape[1:] if b.single and b.x.dtype == np.int32 else room.shape)
        y = np.empty(self._out(b))
        with self._held() as handle:
            _c.call("taut_net_jvp", handle, at(y), at(tx), b.ref)
        return self._shaped(y, b)

    def loss(self, x: Any, y: Any) -> "tuple[float, np.ndarray]":
        """The mean cross-entropy of the labels y (below 0: not asked), and its gradient with respect to x.

        >>> loss, gradient = model.loss(images, labels)
        """
        b = self._batch(x)
        labels = ids(y, "y", self._shaped(np.empty(self._out(b)), b).shape[:-1])
        gx, loss = self._room(b), ctypes.c_double()
        with self._held() as handle:
            _c.call("taut_net_grad", handle, at(gx), ctypes.byref(loss), at(labels), b.ref)
        return loss.value, gx[0] if b.single and b.x.dtype == np.int32 else gx

    def embed(self, x: Any) -> np.ndarray:
        """The embeddings of ids or of a text, which `__call__`, `grad` and `jvp` also take.

        >>> model(model.embed("to be"))
        """
        b = self._batch(x)
        if b.x.dtype != np.int32:
            raise _c.InputError("only ids are embedded")
        e = np.empty((b.n, b.t, self.width))
        with self._held() as handle:
            _c.call("taut_net_embed", handle, at(e), b.ref)
        return e[0] if b.single else e

    def features(self, texts: "Sequence[str]", pool: Optional[str] = None, unit: bool = False) -> np.ndarray:
        """Features of texts by an encoder, (n, width): pooled by "mean" or "class" (the first token), default as the model
        says; unit: each divided by its length.

        >>> a, b = model.features(["a cat", "a dog"], unit=True)
        >>> a @ b
        """
        raw = [_c.encoded(t, "a text") for t in texts]
        o = _c.FeaturesOptions(pool=_c.encoded(pool, "pool"), unit=bool(unit))
        y = np.empty((len(raw), self.width))
        with self._held() as handle:
            _c.call("taut_net_features", handle, at(y), None, (ctypes.c_char_p * len(raw))(*raw), len(raw),
                    ctypes.byref(o))
        return y

    def encode(self, text: str) -> np.ndarray:
        """The ids of a text.

        >>> model.encode("to be")
        """
        out, count = _c.Ids(), ctypes.c_int64()
        raw = _c.encoded(text, "the text")
        with self._held() as handle:
            _c.call("taut_net_encode", handle, ctypes.byref(out), ctypes.byref(count), raw)
        try:
            return np.array(out[:count.value], dtype=np.int32)
        finally:
            _c.lib.taut_ids_free(out)

    def decode(self, x: Any) -> str:
        """The text of ids (t).

        >>> model.decode(model(prompt).argmax(-1))
        """
        a = ids(x, "the ids")
        if a.ndim != 1:
            raise _c.InputError(f"ids of one text have shape (t), not {a.shape}")
        if a.size and not (0 <= a.min() and a.max() < self.vocabulary):
            raise _c.InputError(f"an id is not in 0 .. {self.vocabulary - 1}")
        out = ctypes.c_void_p()
        with self._held() as handle:
            _c.call("taut_net_decode", handle, ctypes.byref(out), at(a), a.size)
        return _c.taken(out)

    def sample(self, prompt: Optional[str] = None, length: int = 200, **options: Any) -> str:
        """Goes on with a text.  options: temperature, likeliest, top_k, seed, as in taut.h.

        >>> print(model.sample("to be", length=100, temperature=0.5))
        """
        o = _c.filled(_c.ContinueOptions, {"prompt": prompt, "length": length, **options}, "sample")
        with self._held() as handle:
            out = ctypes.c_void_p()
            _c.call("taut_net_continue", handle, None, None, ctypes.byref(out), ctypes.byref(o))
        return json.loads(_c.taken(out))["text"]

    # ---- data

    def data(self, name: Optional[str] = None) -> "Data":
        """The data that it was trained on, or others of the kind that it reads, by name or path.

        >>> images, labels = model.data().examples("valid", 100)
        """
        return Data(self, name)

    def score(self, data: Optional["Data"] = None, split: str = "valid", examples: int = 0) -> Score:
        """Loss and accuracy on a split, on all of it or so many examples spread over it.

        >>> model.score().accuracy
        """
        with self.data() if data is None else nullcontext(data) as d, self._held() as handle, d._held() as held:
            f = _c.Score()
            _c.call("taut_net_score", handle, ctypes.byref(f), held, _c.choice(split, _c.SPLITS, "split"),
                    _c.whole(examples, "examples"))
        return Score(f.loss, f.accuracy, f.mae, f.targets, f.examples)

    # ---- proofs and attacks

    def file(self) -> Path:
        """The file or folder that the proofs of this model are about; an error if it is not what is in memory."""
        if self._handle is None:
            raise _c.InputError("this model was closed")
        if self.path is None or self.changed:
            raise _c.InputError("proofs are about files: save this model first, as in model.save('model.safetensors')")
        return self.path

    def save(self, path: Path_) -> None:
        """Writes it as model.safetensors, which certificates are about.

        >>> model.save("model.safetensors")
        """
        with self._held() as handle:
            _c.call("taut_net_save", handle, _c.encoded(path, "the path"))
        self.path, self.changed = Path(path), False

    def certify(self, norm: str = "own", x: Any = None, y: Any = None, radius: float = 0, *, examples: int = 0,
                data: Optional[str] = None, rows: float = 0, local: bool = False, swaps: int = 0, tries: int = 0,
                tolerance: float = 0, runs_on: Optional[str] = None, kernels: Optional[str] = None,
                progress: _show.Asked = None) -> Certificate:
        """Proves a Lipschitz constant from inputs to logits, and radii within which predictions cannot change.

        norm: "tokens" (a change is as large as its largest token), "flat" (l2 over everything), or "own": that of the target
        which the model was trained under, else flat for images and tokens for all others.  radius: inputs may be moved by so
        much, and no radius of an example is larger.  x, y: inputs whose predictions are certified, and their classes; or
        `examples` of the validation split.  local: also constants around each example.  rows: how long a forecaster's rows may
        be.  swaps: of a text, which swaps of up to so many tokens leave each answer; tries: how many are tried.
        tolerance: radii are to hold for a runtime whose logits are within so much of those in real arithmetic.  runs_on: for
        what taut computes on these kernels, "cpu", "wide", "ref", "cuda" or "cuda64".  kernels: "cuda64" makes the proof with
        the help of a device.

        >>> cert = model.certify(norm="flat", x=images, y=labels, radius=2)
        >>> cert.lipschitz, cert.radii, cert.waterfall
        """
        b, labels = self._examples(x, y)
        return certify(self.file(), norm, radius, b, labels, examples, data, rows, local, swaps, tries, tolerance, runs_on,
                       kernels, progress)

    def attack(self, x: Any = None, y: Any = None, attacks: str = "aa-standard", norm: Optional[str] = None,
               eps: Any = None, **options: Any) -> Attack:
        """Attacks predictions of x, or of the validation split, and holds what it finds against what is certified.

        attacks: "pgd", "aa-standard", or several with commas.  norm: "Linf", "L2", "L1".  eps: a radius or several, in the
        units of the input.  options: examples, data, steps, restarts, targets, queries, step_size, fixed_start, seed,
        no_certify, runs_on, folder, state, batch, gallery, progress, as in taut.h.

        >>> model.attack(images, labels, "aa-standard", norm="L2", eps=0.5).standing
        """
        b, labels = self._examples(x, y)
        return attack(self.file(), b, labels, attacks, norm, eps, self.kernels, options)

    def _examples(self, x: Any, y: Any) -> "tuple[Optional[Batch], Optional[np.ndarray]]":
        if (x is None) != (y is None):
            raise _c.InputError("x and y go together: inputs and their classes")
        if x is None:
            return None, None
        b = self._batch(x)
        labels = ids(np.atleast_1d(y) if b.single else y, "y", (b.n,))
        if labels.min() < 0 or labels.max() >= self.classes:
            raise _c.InputError(f"a class in y is not in 0 .. {self.classes - 1}")
        return b, labels

    # ---- seen and sent

    def __reduce__(self) -> Any:
        return load, (str(self.file()), self.kernels)

    def __repr__(self) -> str:
        where = f" {str(self.path)!r}" if self.path else ""
        return f"<taut model{where}: {self.kind}, {self.size} weights{', closed' if self._handle is None else ''}>"

    def _repr_html_(self) -> str:
        rows = [("reads", f"{self.kind}, {self.shape}"), ("answers", f"{self.classes} numbers"),
                ("weights", f"{self.size}"), ("file", self.path or "only in memory")]
        drawn = _show.pictures(self.path) if self.path and self.path.is_dir() else ""
        return _show.table("taut model", rows) + drawn


def load(path: Path_, kernels: Optional[str] = None, *, seed: int = 0, tokenizer: Optional[Path_] = None,
         recipe: Optional[Path_] = None, ignore_unknown: bool = False, prefix: Optional[str] = None,
         map: "Mapping[str, str] | None" = None, set: "Mapping[str, Any] | None" = None) -> Model:
    """A model: its file, a run's folder, a checkpoint of another program, or a built-in shape ("gpt2", "bert-base") with
    random weights.  kernels: "cpu" (float), "wide" (products in double), "ref" (double), "cuda", "cuda64".  Of a
    checkpoint: set {"model.heads": 4} says what no tensor tells, map {"norm.weight": "ln.w"} where a tensor is, prefix which
    of several prefixes is meant.

    >>> model = taut.load("runs/a")
    >>> model = taut.load("nanogpt.safetensors", set={"model.heads": 6}, tokenizer="input.txt")
    """
    maps, sets = [f"{mine}={theirs}" for mine, theirs in (map or {}).items()], overrides(set)
    options = _c.OpenOptions(kernels=_c.encoded(kernels, "kernels"), seed=_c.whole(seed, "seed", 2**64),
                             tokenizer=_c.encoded(tokenizer, "tokenizer"), recipe=_c.encoded(recipe, "recipe"),
                             ignore_unknown=bool(ignore_unknown), prefix=_c.encoded(prefix, "prefix"),
                             map=_c.strings(maps, "a map"), set=_c.strings(sets, "a setting"), maps=len(maps),
                             sets=len(sets))
    handle = _c.made("taut_net_open", _c.encoded(path, "the model's path"), ctypes.byref(options))
    own = os.path.isfile(path) or os.path.isfile(os.path.join(path, "model.safetensors"))
    model = Model(handle, None, kernels)
    if own and "checkpoint" not in model.info:  # proofs are about files of taut's own
        model.path, model.changed = Path(path), False
    return model


def create(recipe: Path_, set: "Mapping[str, Any] | None" = None, kernels: Optional[str] = None, *,
           seed: int = 0) -> Model:
    """The untrained model of a recipe, with overrides {"section.key": value}.

    >>> taut.create("recipes/tiny.ini", set={"model.depth": 1})
    """
    options = _c.OpenOptions(kernels=_c.encoded(kernels, "kernels"), seed=_c.whole(seed, "seed", 2**64))
    given = overrides(set)
    handle = _c.made("taut_net_create", _c.encoded(recipe, "recipe"), _c.strings(given, "an override"), len(given),
                     ctypes.byref(options))
    return Model(handle, None, kernels)


def overrides(given: "Mapping[str, Any] | None") -> "list[str]":
    """{"train.steps": 500} as the words that recipes know."""
    if not isinstance(given, (Mapping, type(None))):
        raise _c.InputError(f'set is a dict, as in {{"train.steps": 500}}, not {_c.shown(given)}')
    return [f"{key}={_word(value)}" for key, value in (given or {}).items()]


def _word(value: Any) -> str:
    """True as recipes write it, a list with commas, a run by its folder."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(_word, value))
    return str(value).lower() if isinstance(value, bool) else str(getattr(value, "path", value))
