"""Measurements and evaluations of stored models, plans of new ones: the library's answers as dictionaries."""
import ctypes
import json
from pathlib import Path
from typing import Any, Dict

from . import _c, _show
from ._attack import Contradiction

Answer = Dict[str, Any]


def settled(name: str, model: Path, options: Any) -> Answer:
    """The JSON of a function f(&json, model, &options); what beats a proof is raised."""
    answer = json.loads(_c.text(name, _c.encoded(model, "the model"), ctypes.byref(options), first=True))
    if answer.get("contradiction"):
        raise Contradiction(f"something was found above what is proved of {model}", answer)
    return answer


def measure(model: Path, what: str, options: "dict[str, Any]") -> Answer:
    bar = _show.Bar("measure")
    watch = _show.Watch(_show.teller(options.pop("progress", None), bar))
    options["one_layer"] = "layer" in options
    o = _c.filled(_c.MeasureOptions, options, "measure")
    o.what, o.progress = _c.choice(what, _c.MEASUREMENTS, "what"), _c.Progress(lambda done, _: watch(done))
    with bar, watch:
        return settled("taut_measure_file", model, o)


def evaluate(model: Path, options: "dict[str, Any]") -> Answer:
    return settled("taut_evaluate_file", model, _c.filled(_c.EvaluateOptions, options, "evaluate"))


def forecast(model: Path, options: "dict[str, Any]", rules: Any) -> Answer:
    o = _c.filled(_c.ForecastOptions, options, "forecast")
    if not isinstance(rules, (dict, type(None))):
        raise _c.InputError(f'set is a dict, as in {{"data.missing": "hold"}}, not {_c.shown(rules)}')
    given = [f"{key}={value}" for key, value in (rules or {}).items()]
    o.overrides, o.count = _c.strings(given, "a rule"), len(given)
    return settled("taut_forecast_file", model, o)


def predict(model: Path, files: "list[Any]", norm: str, radius: float, resize: bool, text: Any, progress: Any) -> Answer:
    bar = _show.Bar("predict")
    watch = _show.Watch(_show.teller(progress, bar))
    o = _c.PredictOptions(file=_c.strings(files, "a file"), files=len(files), metric=_c.choice(norm, _c.METRICS, "norm"),
                          room=_c.real(radius, "radius"), resize=bool(resize), text=_c.encoded(text, "text"),
                          progress=_c.Progress(lambda done, _: watch(done)))
    with bar, watch:
        return settled("taut_predict_file", model, o)


def plan(target: float, **options: Any) -> Answer:
    """The caps of matrices under which every such transformer stays at or under a Lipschitz constant, proved.

    options: depth, width, heads, mlp, vocab, units, attention, activation, out, factor, alpha, embed, position, qk, head,
    logit, rope, as in taut.h.

    >>> taut.plan(10, depth=3, width=256, heads=4)["caps"]
    """
    o = _c.filled(_c.PlanOptions, {"target": target, **options}, "plan")
    return json.loads(_c.text("taut_plan_caps", ctypes.byref(o), first=True))
