"""Certificates: what is proved of a stored model, and the check of it."""
import ctypes
import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Optional

import numpy as np

from . import _c, _show
from ._arrays import Batch, at


class Layer(NamedTuple):
    """One layer of the waterfall: its own proved constant, and how long tokens behind it are at most."""
    path: str
    rule: str
    lipschitz: float
    out: float


class Swaps(NamedTuple):
    """Of an example of `certify(swaps=k)`: tokens put into the places of others, and which of these swaps are covered, that is
    proved to leave the answer.

    >>> cert.swaps[0].covered / cert.swaps[0].all
    """
    radius: float    # other embeddings, nearer than this in cert.norm, leave the answer; 0: unknown
    all: int         # swaps of one token
    covered: int
    together: int    # swaps of which any k at different places are covered at once
    nearest: float   # how far apart the tokens of the nearest uncovered one are; place -1: all are covered
    place: int
    old: int         # ids: the token there, and the one in its place
    new: int
    tried: int       # by the search
    turned: int      # so many swaps at once were found to change the answer; 0: none
    beaten: int      # covered ones that did: contradictions, which should not be


@dataclass(frozen=True, repr=False, eq=False)
class Certificate:
    """Proved numbers of the bytes of a model's file; inf means that nothing is proved.  `Model.certify` makes one.

    >>> cert.lipschitz                # of inputs to logits, in cert.norm
    >>> cert.radii                    # of each example: moved by less, its prediction stays; 0: unknown
    >>> cert.save("c.json")           # the proof, for taut.check
    """
    model: Path
    norm: str
    lipschitz: float
    body: float       # of inputs to the last features
    radius: float     # how far inputs may be moved
    reach: float      # how long tokens of inputs are at most; NaN for images, whose region is no ball
    rows: float       # of a forecaster: how long rows of inputs may be
    defect: float     # what solvers that stop at a tolerance add to the distance of two outputs
    rounding: float   # how far logits of the ref kernels are from those of real arithmetic
    tokens: int
    sha256: str
    labels: np.ndarray = field(compare=False)
    predicted: np.ndarray  # -1: no answer
    margins: np.ndarray    # computed
    radii: np.ndarray      # proved
    local_lipschitz: np.ndarray
    local_radii: np.ndarray
    waterfall: "tuple[Layer, ...]"
    json: str              # as docs/certificate.md has it
    report: str            # and what follows from it, also as JSON: other units and norms, accuracies, why there is none
    swaps: "tuple[Swaps, ...]" = ()
    tolerance: float = 0.0            # how far from real arithmetic logits may be, wherever radii are to hold
    runs_on: Optional[str] = None     # the kernels that the tolerance was proved for

    @property
    def right(self) -> np.ndarray:
        """Which examples are predicted right.

        >>> (cert.right & (cert.radii > 0.5)).mean()       # certified accuracy at 0.5
        """
        return self.predicted == self.labels

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Writes the proof as a file for `taut.check`.

        >>> cert.save("c.json")
        """
        Path(path).write_text(self.json, encoding="utf-8")

    def __repr__(self) -> str:
        about = f", {len(self.radii)} examples" if len(self.radii) else ""
        return f"<taut certificate: {self.norm} constant <= {_c.up(self.lipschitz)} of {str(self.model)!r}{about}>"

    def _repr_html_(self) -> str:
        rows = [("model", self.model), (f"Lipschitz constant, {self.norm}, at most", _c.up(self.lipschitz)),
                ("of inputs moved by at most", _c.down(self.radius)), ("sha256", self.sha256)]
        if len(self.radii):
            rows += [("examples", len(self.radii)), ("right", int(self.right.sum())),
                     ("right, and proved to stay within some radius", int((self.right & (self.radii > 0)).sum()))]
        files = {"certificate.json": self.json, "certify.json": self.report}
        return _show.table("taut certificate", rows) + _show.pictures("", files)


def certify(model: Path, norm: str, radius: Any, b: Optional[Batch], labels: Optional[np.ndarray], examples: Any,
            data: Optional[str], rows: Any, local: bool, swaps: Any, tries: Any, tolerance: Any,
            runs_on: Optional[str], kernels: Optional[str], progress: _show.Asked) -> Certificate:
    bar = _show.Bar("certify")
    watch = _show.Watch(_show.teller(progress, bar))
    o = _c.CertifyOptions(metric=_c.choice(norm, _c.METRICS, "norm"), room=_c.real(radius, "radius"),
                          rows=_c.real(rows, "rows"), data=_c.encoded(data, "data"),
                          examples=_c.whole(examples, "examples"), local=bool(local), swaps=_c.whole(swaps, "swaps"),
                          tries=_c.whole(tries, "tries"), tolerance=_c.real(tolerance, "tolerance"),
                          runs_on=_c.encoded(runs_on, "runs_on"), kernels=_c.encoded(kernels, "kernels"))
    o.progress = _c.Progress(lambda done, _: watch(done))
    if b is not None and labels is not None:
        o.inputs, o.labels = ctypes.pointer(b.inputs), at(labels)
    with bar, watch:
        handle = _c.made("taut_certify_file", _c.encoded(model, "the model"), ctypes.byref(o))
    try:
        return _read(handle, model, o.swaps > 0)
    finally:
        _c.lib.taut_cert_free(handle)


def _read(handle: Any, model: Path, swaps: bool) -> Certificate:
    f = _c.look("taut_cert_look", _c.CertFacts, handle)
    each = [_c.look("taut_cert_example", _c.Prediction, handle, i) for i in range(f.examples)]
    swapped = [_c.look("taut_cert_swaps", _c.SwapFacts, handle, i) for i in range(f.examples if swaps else 0)]
    layers = [_c.look("taut_cert_layer", _c.LayerFacts, handle, i) for i in range(f.layers)]

    def column(name: str, dtype: Any) -> np.ndarray:
        return np.array([getattr(e, name) for e in each], dtype)

    proof = _c.text("taut_cert_json", handle)
    said = json.loads(proof)
    return Certificate(
        Path(model), _c.METRICS[f.metric], f.lip, f.body, f.room, f.reach, f.rows, f.defect, f.round, f.tokens, f.sha256.decode(),
        column("label", np.int32), column("predicted", np.int32), column("margin", float), column("radius", float),
        column("local_lip", float), column("local_radius", float),
        tuple(Layer(y.path.decode(), y.rule.decode(), y.lip, y.out) for y in layers),
        proof, _c.text("taut_cert_report", handle),
        tuple(Swaps(*(getattr(s, name) for name, _ in s._fields_)) for s in swapped),
        float(said.get("tolerance", 0)), said.get("for"))


class Verdict(NamedTuple):
    """What the independent checker says: verdict is "confirmed", "refuted" or "cannot say", and why.

    >>> taut.check("c.json", "runs/a").verdict
    """
    verdict: str
    why: str
    lipschitz: float
    numbers: int    # confirmed
    examples: int
    certified: int  # examples with a radius
    unknown: int    # examples left open

    def __bool__(self) -> bool:
        return self.verdict == "confirmed"

    def __repr__(self) -> str:
        return f"<taut check: {self.verdict}{': ' + self.why if self.why else f', {self.numbers} numbers'}>"


def check(certificate: Any, model: Any) -> Verdict:
    """Checks a certificate (a file, or a Certificate) against a model (a file, a run's folder, or a Model) with code that
    shares none with what made it.

    >>> assert taut.check("c.json", "runs/a")
    """
    if isinstance(certificate, Certificate):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "certificate.json")
            certificate.save(path)
            return check(path, model)
    if hasattr(model, "certify"):
        model = model.file()
    f = _c.CheckFacts()
    _c.call("taut_check_certificate", ctypes.byref(f), _c.encoded(certificate, "the certificate"),
            _c.encoded(model, "the model"))
    verdict, why = _c.VERDICTS[f.verdict], f.why.decode(errors="replace")
    if f.verdict and not why:
        why = f"{f.unknown} of {f.examples} examples are left open"
    return Verdict(verdict, why, f.lip, f.numbers, f.examples, f.certified, f.unknown)
