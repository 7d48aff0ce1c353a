"""What a stored model answers with a dictionary: methods of Model."""
from pathlib import Path
from typing import Any, Optional

from ._measure import evaluate, forecast, measure, predict


class Answers:
    """The part of Model that asks the library about its file."""

    kernels: Optional[str]

    def file(self) -> Path:
        raise NotImplementedError

    def measure(self, what: str = "layers", **options: Any) -> "dict[str, Any]":
        """Slopes that are found, beside what is proved: "layers" (attention at an input), "lengths", "network", "maps",
        "deviation".  options: tokens, layer, map, ball, samples, ..., as in taut.h; docs/measure.md says what the answer has.

        >>> model.measure("layers", tokens=32, map="residual")
        """
        return measure(self.file(), what, {"kernels": self.kernels, **options})

    def evaluate(self, **options: Any) -> "dict[str, Any]":
        """How good it is on its data, as `taut eval --json` says it; of a forecaster also how far noise can move it.  options:
        data, split, examples, slide, batch, noise, page, as in taut.h.

        >>> model.evaluate(split="test", noise=0.1)["moves"]
        """
        return evaluate(self.file(), {"kernels": self.kernels, **options})

    def forecast(self, data: Any = None, noise: float = 0, csv: Any = None,
                 set: "Optional[dict[str, str]]" = None) -> "dict[str, Any]":
        """What a forecaster says of the rows behind the newest of a table (default: of its own data), in the table's units, as
        `taut forecast --json` says it; with noise, low and high of each column are proved.  csv: a file to write it to, too.
        set: rules for holes in this table, as {"data.missing": "hold"}, in the place of the model's.

        >>> model.forecast("plant.csv", noise=0.01)["columns"][0]["high"]
        """
        return forecast(self.file(), {"data": data, "noise": noise, "csv": csv}, set)

    def predict(self, *files: Any, norm: str = "own", radius: float = 1, resize: bool = False, text: Any = None,
                progress: Any = None) -> "dict[str, Any]":
        """Classes of images (PNG, JPEG, .npy, .npz, folders) or texts (lines, .csv, .tsv) in files, as `taut predict --json` says
        them: each with its probabilities, and the radius in which it is proved to stay.

        >>> [p["class"] for p in model.predict("photo.png", "holiday")["predictions"]]
        """
        return predict(self.file(), list(files), norm, radius, resize, text, progress)
