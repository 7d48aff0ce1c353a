"""Training a recipe into a folder, and pages about runs."""
import ctypes
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence, Union

from . import _c, _show
from ._model import Model, Path_, load, overrides


class Step(NamedTuple):
    """What a progress function is told after every step."""
    step: int
    steps: int
    loss: float
    lr: float
    grad_norm: float
    tokens_per_s: float
    seconds: float


@dataclass(frozen=True, repr=False)
class Run:
    """A trained run: its folder and what training gave.  `taut.train` makes one.

    >>> run.val_acc, run.load()
    """
    path: Path
    steps: int
    tokens: int
    weights: int
    train_loss: float    # mean of the last 32 steps
    val_loss: float      # of the saved model, on the whole validation split
    val_acc: float       # NaN for a forecaster
    val_mae: float       # of a forecaster, as the next two
    test_loss: float
    test_mae: float
    tokens_per_s: float
    seconds: float
    best_step: int       # the step that the model is of; 0: the last
    stopped: bool        # by progress, before the last step

    def load(self, kernels: Optional[str] = None) -> Model:
        """The trained model.

        >>> model = run.load()
        """
        return load(self.path, kernels)

    def __repr__(self) -> str:
        score = f", accuracy {self.val_acc:.3f}" if not math.isnan(self.val_acc) else ""
        return f"<taut run {str(self.path)!r}: {self.steps} steps, loss {self.val_loss:.4g}{score}>"

    def _repr_html_(self) -> str:
        rows = [("folder", self.path), ("steps", self.steps), ("validation loss", f"{self.val_loss:.4g}"),
                ("seconds", f"{self.seconds:.1f}")]
        return _show.table("taut run", rows) + _show.pictures(self.path)


def _teller(progress: Union[bool, Callable[[Step], Any], None], bar: _show.Bar) -> Callable[[Step], Any]:
    if callable(progress):
        return progress
    if not progress:
        return lambda now: None
    return lambda now: bar.draw(now.step / now.steps, f"{now.step}/{now.steps} loss {now.loss:.4f}")


def train(recipe: Path_, run: Path_, set: "Mapping[str, Any] | None" = None,
          progress: Union[bool, Callable[[Step], Any], None] = False, *, resume: bool = False,
          overwrite: bool = False, kernels: Optional[str] = None) -> Run:
    """Trains a recipe (.ini file) into the folder `run`.

    set: overrides {"section.key": value}; a list is written with commas, a run by its folder, as in
    {"train.teachers": [run, "runs/b"]}.  progress: True for a bar in terminals and notebooks, or a function that is
    told a `Step` and stops the training by returning something true.  Ctrl-C stops after a step: all is saved, and
    KeyboardInterrupt is raised; resume=True goes on from there to the bits of a run that was never stopped.

    >>> run = taut.train("recipes/vit-fashion-lip.ini", "runs/a", set={"train.steps": 500}, progress=True)
    """
    bar = _show.Bar("train")
    watch = _show.Watch(_teller(progress, bar))
    given = overrides(set)
    o = _c.TrainOptions(kernels=_c.encoded(kernels, "kernels"), overrides=_c.strings(given, "an override"),
                        count=len(given), resume=bool(resume), overwrite=bool(overwrite))
    names = Step._fields

    def told(facts: int, _: Any) -> int:
        now = _c.StepFacts.from_address(facts)
        return watch(Step(*(getattr(now, name) for name in names)))

    o.progress = _c.StepProgress(told)
    result = _c.Result()
    try:
        with bar, watch:
            _c.call("taut_train_recipe", ctypes.byref(result), _c.encoded(recipe, "recipe"), _c.encoded(run, "run"),
                    ctypes.byref(o))
    except _c.FileError as why:  # what the program calls --resume is resume=True here
        raise _c.FileError(str(why).replace("--resume", "resume=True").replace("--overwrite", "overwrite=True")) from None
    values = {field[0]: getattr(result, field[0]) for field in result._fields_}
    return Run(Path(run), **{**values, "stopped": bool(result.stopped)})


def report(runs: Union[Path_, Run, Sequence[Any]], page: Path_ = "report.html", title: Optional[str] = None,
           svg: Optional[Path_] = None) -> Path:
    """Writes one HTML page about runs (folders or Runs); with svg, each chart also as a file in that folder.

    >>> taut.report(["runs/a", "runs/b"], "report.html")
    """
    given = [runs] if isinstance(runs, (str, os.PathLike, Run)) else list(runs)
    folders = [r.path if isinstance(r, Run) else r for r in given]
    _c.call("taut_report_runs", _c.encoded(page, "page"), _c.encoded(title, "title"), _c.strings(folders, "a run"),
            len(folders), _c.encoded(svg, "svg"))
    return Path(page)
