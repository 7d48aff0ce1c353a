"""Attacks on stored models, held against their certificates."""
import ctypes
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import numpy as np

from . import _c, _show
from ._arrays import Batch, at

class Contradiction(_c.Error):
    """What was found (an attack, a slope, noise) beats what is proved: one of the two is wrong.  `result` has all of it."""

    def __init__(self, line: str, result: Any):
        super().__init__(line)
        self.result = result


@dataclass(frozen=True, repr=False, eq=False)
class Attack:
    """What attacks found at each radius `eps`, beside what is certified.  `Model.attack` makes one.

    >>> result.standing / result.examples       # right answers that no attack turned, per radius
    >>> result.broken[0]                        # examples that are turned at the first radius
    """
    model: Path
    examples: int
    right: int                        # answered right, unattacked
    eps: np.ndarray                   # the radii
    standing: np.ndarray              # per radius: right answers that no attack turned
    certified: Optional[np.ndarray]   # per radius: right answers that are proved to stand; None: not asked
    contradictions: int
    labels: np.ndarray
    predicted: np.ndarray
    broken: np.ndarray                # (radii, examples)
    distances: np.ndarray             # (radii, examples): of the nearest input that broke it, in the attack's norm
    radii: np.ndarray                 # certified, l2; 0: none
    json: str

    def __repr__(self) -> str:
        proved = "" if self.certified is None else f", {self.certified[-1]} certified"
        return (f"<taut attack: {self.standing[-1]} of {self.examples} stand at eps {_c.down(self.eps[-1])}"
                f" ({self.right} right unattacked{proved})>")

    def _repr_html_(self) -> str:
        rows = [("model", self.model), ("examples", self.examples), ("right, unattacked", self.right)]
        for i, eps in enumerate(self.eps):
            proved = "" if self.certified is None else f", {self.certified[i]} certified"
            rows.append((f"stand at {_c.down(eps)}", f"{self.standing[i]}{proved}"))
        return _show.table("taut attack", rows) + _show.pictures("", {"attack.json": self.json})


def _radii(eps: Any) -> "str | None":
    """0.5, [0.25, 0.5] or "2/255,8/255" as the library reads them: with all digits."""
    if eps is None or isinstance(eps, str):
        return eps
    try:
        return ",".join(repr(float(e)) for e in np.atleast_1d(eps))
    except (TypeError, ValueError):
        raise _c.InputError(f"eps is a number or several, not {_c.shown(eps)}") from None


def attack(model: Path, b: Optional[Batch], labels: Optional[np.ndarray], attacks: str, norm: Optional[str], eps: Any,
           kernels: Optional[str], options: "dict[str, Any]") -> Attack:
    bar = _show.Bar("attack")
    watch = _show.Watch(_show.teller(options.pop("progress", None), bar))
    o = _c.filled(_c.AttackOptions, {"kernels": kernels, "attacks": attacks, "norm": norm, "eps": _radii(eps), **options},
                  "attack")
    o.progress = _c.Progress(lambda done, _: watch(done))
    if b is not None and labels is not None:
        o.inputs, o.labels = ctypes.pointer(b.inputs), at(labels)
    with bar, watch:
        handle = _c.made("taut_attack_file", _c.encoded(model, "the model"), ctypes.byref(o))
    try:
        result = _read(handle, model)
    finally:
        _c.lib.taut_attacked_free(handle)
    if result.contradictions:
        raise Contradiction(f"{result.contradictions} attacks succeeded inside a certified radius of {model}", result)
    return result


def _read(handle: Any, model: Path) -> Attack:
    f = _c.look("taut_attacked_look", _c.AttackFacts, handle)
    radii = [_c.look("taut_attacked_at", _c.AttackRadius, handle, r) for r in range(f.radii)]
    each = [[_c.look("taut_attacked_one", _c.AttackExample, handle, r, i) for i in range(f.examples)]
            for r in range(f.radii)]

    def column(name: str, dtype: Any) -> np.ndarray:
        return np.array([[getattr(e, name) for e in row] for row in each], dtype)

    return Attack(Path(model), f.examples, f.right, np.array([r.eps for r in radii]),
                  np.array([r.standing for r in radii]),
                  np.array([r.certified for r in radii]) if f.certified else None, f.contradictions,
                  column("label", np.int32)[0], column("predicted", np.int32)[0], column("broken", bool),
                  column("distance", float), column("radius", float)[0], _c.text("taut_attacked_json", handle))


def replay(model: Any, file: Any) -> "dict[str, Any]":
    """Looks at a saved contradiction again, with the certificate proved anew.

    >>> taut.replay("runs/a", "runs/a/contradiction-0.json")["contradiction"]
    """
    path = model.file() if hasattr(model, "certify") else model
    return json.loads(_c.text("taut_attack_replay", _c.encoded(path, "the model"), _c.encoded(file, "the file"),
                              first=True))
