"""Attacks on stored models, held against their certificates."""
import ctypes
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import numpy as np

from . import _c, _show
from ._arrays import Batch, at

WHOLE = ("examples", "steps", "restarts", "targets", "queries", "batch", "gallery", "seed")
FLAGS = ("fixed_start", "no_certify")
WORDS = ("data", "folder", "state")


class Contradiction(_c.Error):
    """An attack turned a prediction inside its certified radius: one of the two is wrong.  `attack` has the results."""

    def __init__(self, line: str, attack: "Attack"):
        super().__init__(line)
        self.attack = attack


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


def _options(options: "dict[str, Any]") -> "dict[str, Any]":
    """The options of taut.h that have no argument of their own, as C takes them."""
    given: "dict[str, Any]" = {}
    for key, value in options.items():
        if key in WHOLE:
            given[key] = _c.whole(value, key, 2**64 if key == "seed" else 2**63)
        elif key in FLAGS:
            given[key] = bool(value)
        elif key in WORDS:
            given[key] = _c.encoded(value, key)
        elif key == "step_size":
            given[key] = _c.real(value, key)
        else:
            raise _c.InputError(f"attack has no option {key}")
    return given


def _radii(eps: Any) -> "bytes | None":
    """0.5, [0.25, 0.5] or "2/255,8/255" as the library reads them: with all digits."""
    if eps is None or isinstance(eps, str):
        return _c.encoded(eps, "eps")
    try:
        return ",".join(repr(float(e)) for e in np.atleast_1d(eps)).encode()
    except (TypeError, ValueError):
        raise _c.InputError(f"eps is a number or several, not {_c.shown(eps)}") from None


def attack(model: Path, b: Optional[Batch], labels: Optional[np.ndarray], attacks: str, norm: Optional[str], eps: Any,
           kernels: Optional[str], options: "dict[str, Any]") -> Attack:
    bar = _show.Bar("attack")
    watch = _show.Watch(_show.teller(options.pop("progress", None), bar))
    o = _c.AttackOptions(kernels=_c.encoded(kernels, "kernels"), attacks=_c.encoded(attacks, "attacks"),
                         norm=_c.encoded(norm, "norm"), eps=_radii(eps), **_options(options))
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
