"""Data of the kind that a model reads, and scores on them."""
import ctypes
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

import numpy as np

from . import _c
from ._arrays import at
from ._handle import Handle

if TYPE_CHECKING:
    from ._model import Model


class Score(NamedTuple):
    """Means over the targets of a split.  A forecaster has a mean squared error and a mae, all others an accuracy."""
    loss: float
    accuracy: float
    mae: float
    targets: int
    examples: int


class Data(Handle):
    """Examples of the kind that a model reads; `model.data()` opens them.

    >>> images, labels = model.data().examples("valid", 100)
    """
    _free = "taut_data_free"

    def __init__(self, model: "Model", name: Optional[str] = None):
        with model._held() as net:
            super().__init__(_c.made("taut_data_open", net, _c.encoded(name, "the data's name")))
        self._model, self.name = model, name
        self._facts = _c.look("taut_data_look", _c.DataFacts, self._handle)
        self.count = dict(zip(_c.SPLITS, self._facts.count))

    def examples(self, split: str = "valid", count: int = 1, first: int = 0) -> "tuple[np.ndarray, np.ndarray]":
        """Inputs and targets of `count` examples from `first` on, in the shapes that the model takes.

        >>> x, y = data.examples("train", 64)
        """
        f, which = self._facts, _c.choice(split, _c.SPLITS, "split")
        first, count = _c.whole(first, "first"), _c.whole(count, "count")
        if first + count > self.count[split]:
            raise _c.InputError(f"examples {first} to {first + count - 1}: {split} has {self.count[split]}")
        x = np.empty((count, f.t) if f.width == 0 else (count,) + self._model.shape, np.float64 if f.width else np.int32)
        y = np.empty((count, f.asked, f.wanted)) if f.wanted else np.empty((count, f.asked), np.int32)
        with self._held() as handle:
            for i in range(count):
                into = _c.Sample()
                setattr(into, "reals" if f.width else "ids", at(x[i]))
                setattr(into, "wanted" if f.wanted else "targets", at(y[i]))
                _c.call("taut_data_get", handle, which, first + i, ctypes.byref(into))
        one = self._model.answers == 1 and self._model.kind != "series"
        return x, y[:, 0] if one else y

    def __reduce__(self) -> Any:
        return Data, (self._model, self.name)

    def __repr__(self) -> str:
        return f"<taut data: {', '.join(f'{n} {split}' for split, n in self.count.items() if n)}>"
