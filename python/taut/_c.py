"""include/taut.h for ctypes: where the library is, its structs and functions, and its errors as exceptions.

`tests/test_abi.py` holds every declaration here against include/taut.abi.  ctypes releases the GIL during a call.
"""
import ctypes
import operator
import os
from ctypes import CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t
from ctypes import c_uint64, c_void_p
from pathlib import Path
from typing import Any, Sequence

from ._errors import STATUS, DeviceError, Error, FileError, InputError, NoMemoryError, NotFiniteError  # noqa: F401

SPLITS = ("train", "valid", "test")  # taut_split
METRICS = ("own", "tokens", "flat")  # taut_metric
VERDICTS = ("confirmed", "refuted", "cannot say")  # taut_verdict
KINDS = ("text", "images", "series")  # taut_kind
MEASUREMENTS = ("layers", "lengths", "network", "maps", "deviation")  # taut_measurement

StepProgress = CFUNCTYPE(c_int, c_void_p, c_void_p)
Progress = CFUNCTYPE(c_int, c_double, c_void_p)
Ids, Doubles, Strings = POINTER(c_int32), POINTER(c_double), POINTER(c_char_p)


class Inputs(Structure):
    _fields_ = [("n", c_int64), ("t", c_int64), ("ids", Ids), ("reals", Doubles)]


class Options(Structure):
    """Begins with its size; what is not given stays zero, which means the default."""

    def __init__(self, **given: Any):
        super().__init__(size=ctypes.sizeof(self), **given)


class OpenOptions(Options):
    _fields_ = [("size", c_size_t), ("kernels", c_char_p), ("seed", c_uint64), ("tokenizer", c_char_p), ("recipe", c_char_p),
                ("ignore_unknown", c_int), ("prefix", c_char_p), ("map", Strings), ("set", Strings), ("maps", c_int),
                ("sets", c_int)]


class NetFacts(Structure):
    _fields_ = [("kind", c_int), ("context", c_int64), ("width", c_int64), ("vocabulary", c_int64), ("answers", c_int64),
                ("classes", c_int64), ("weights", c_int64), ("tensors", c_int)]


class TensorFacts(Structure):
    _fields_ = [("name", c_char_p), ("rows", c_int64), ("cols", c_int64)]


class DataFacts(Structure):
    _fields_ = [("t", c_int64), ("width", c_int64), ("asked", c_int64), ("wanted", c_int64), ("count", c_int64 * 3)]


class Sample(Structure):
    _fields_ = [("ids", Ids), ("reals", Doubles), ("targets", Ids), ("wanted", Doubles)]


class StepFacts(Structure):
    _fields_ = [("step", c_int64), ("steps", c_int64), ("loss", c_double), ("lr", c_double), ("grad_norm", c_double),
                ("tokens_per_s", c_double), ("seconds", c_double)]


class TrainOptions(Options):
    _fields_ = [("size", c_size_t), ("kernels", c_char_p), ("overrides", Strings), ("count", c_int), ("resume", c_int),
                ("overwrite", c_int), ("progress", StepProgress), ("arg", c_void_p)]


class Result(Structure):
    _fields_ = [("steps", c_int64), ("tokens", c_int64), ("weights", c_int64), ("train_loss", c_double),
                ("val_loss", c_double), ("val_acc", c_double), ("val_mae", c_double), ("test_loss", c_double),
                ("test_mae", c_double), ("tokens_per_s", c_double), ("seconds", c_double), ("best_step", c_int64),
                ("stopped", c_int)]


class RecipeOptions(Options):
    _fields_ = [("size", c_size_t), ("overrides", Strings), ("count", c_int), ("run", c_char_p)]


class Score(Structure):
    _fields_ = [("loss", c_double), ("accuracy", c_double), ("mae", c_double), ("targets", c_int64), ("examples", c_int64)]


class CertifyOptions(Options):
    _fields_ = [("size", c_size_t), ("metric", c_int), ("room", c_double), ("rows", c_double), ("data", c_char_p),
                ("examples", c_int64), ("inputs", POINTER(Inputs)), ("labels", Ids), ("local", c_int), ("progress", Progress),
                ("arg", c_void_p), ("swaps", c_int64), ("tries", c_int64), ("tolerance", c_double), ("join", c_char_p),
                ("runs_on", c_char_p), ("kernels", c_char_p)]


class CertFacts(Structure):
    _fields_ = [("lip", c_double), ("body", c_double), ("room", c_double), ("reach", c_double), ("rows", c_double),
                ("defect", c_double), ("round", c_double), ("tokens", c_int64), ("examples", c_int64), ("layers", c_int),
                ("sha256", c_char * 65), ("metric", c_int)]


class Prediction(Structure):
    _fields_ = [("label", c_int32), ("predicted", c_int32), ("margin", c_double), ("radius", c_double),
                ("local_lip", c_double), ("local_radius", c_double)]


class SwapFacts(Structure):
    _fields_ = [("radius", c_double), ("all", c_int64), ("covered", c_int64), ("together", c_int64), ("nearest", c_double),
                ("place", c_int64), ("from", c_int32), ("to", c_int32), ("tried", c_int64), ("turned", c_int64),
                ("beaten", c_int64)]


class LayerFacts(Structure):
    _fields_ = [("path", c_char_p), ("rule", c_char_p), ("lip", c_double), ("out", c_double)]


class CheckFacts(Structure):
    _fields_ = [("verdict", c_int), ("why", c_char * 512), ("lip", c_double), ("numbers", c_int64), ("examples", c_int64),
                ("certified", c_int64), ("unknown", c_int64)]


class AttackOptions(Options):
    _fields_ = [("size", c_size_t), ("kernels", c_char_p), ("attacks", c_char_p), ("norm", c_char_p), ("eps", c_char_p),
                ("examples", c_int64), ("data", c_char_p), ("inputs", POINTER(Inputs)), ("labels", Ids), ("steps", c_int64),
                ("restarts", c_int64), ("targets", c_int64), ("queries", c_int64), ("step_size", c_double),
                ("fixed_start", c_int), ("seed", c_uint64), ("no_certify", c_int), ("folder", c_char_p), ("state", c_char_p),
                ("batch", c_int64), ("gallery", c_int64), ("progress", Progress), ("arg", c_void_p), ("join", c_char_p),
                ("runs_on", c_char_p)]


class AttackFacts(Structure):
    _fields_ = [("examples", c_int64), ("right", c_int64), ("contradictions", c_int64), ("radii", c_int), ("attacks", c_int),
                ("certified", c_int)]


class AttackRadius(Structure):
    _fields_ = [("eps", c_double), ("standing", c_int64), ("certified", c_int64)]


class AttackExample(Structure):
    _fields_ = [("label", c_int32), ("predicted", c_int32), ("broken", c_int), ("distance", c_double), ("radius", c_double)]


class DescribeOptions(Options):
    _fields_ = [("size", c_size_t), ("recipe", c_char_p), ("seed", c_uint64), ("bound", c_int)]


class FeaturesOptions(Options):
    _fields_ = [("size", c_size_t), ("pool", c_char_p), ("unit", c_int)]


class ContinueOptions(Options):
    _fields_ = [("size", c_size_t), ("prompt", c_char_p), ("length", c_int64), ("temperature", c_double), ("likeliest", c_int),
                ("top_k", c_int64), ("seed", c_uint64)]


class EvaluateOptions(Options):
    _fields_ = [("size", c_size_t), ("kernels", c_char_p), ("seed", c_uint64), ("data", c_char_p), ("split", c_char_p),
                ("examples", c_int64), ("slide", c_int64), ("batch", c_int64), ("noise", c_double), ("page", c_char_p)]


class ForecastOptions(Options):
    _fields_ = [("size", c_size_t), ("data", c_char_p), ("noise", c_double), ("csv", c_char_p), ("overrides", Strings),
                ("count", c_int)]


class PredictOptions(Options):
    _fields_ = [("size", c_size_t), ("file", Strings), ("files", c_int), ("metric", c_int), ("room", c_double),
                ("resize", c_int), ("text", c_char_p), ("progress", Progress), ("arg", c_void_p)]


class MeasureOptions(Options):
    _fields_ = [("size", c_size_t), ("what", c_int), ("kernels", c_char_p), ("seed", c_uint64), ("data", c_char_p),
                ("tokens", c_int64), ("from", c_int64), ("one_layer", c_int), ("layer", c_int64), ("map", c_char_p),
                ("ball", c_double), ("exact", c_int), ("lengths", c_int64 * 3), ("samples", c_int64), ("adversarial", c_int),
                ("head", c_int64), ("radius", c_double), ("castin", c_int), ("method", c_char_p), ("steps", c_int64),
                ("tolerance", c_double), ("csv", c_char_p), ("progress", Progress), ("arg", c_void_p)]


class PlanOptions(Options):
    _fields_ = [("size", c_size_t), ("target", c_double), ("depth", c_int64), ("width", c_int64), ("heads", c_int64),
                ("mlp", c_int64), ("vocab", c_int64), ("units", c_char_p), ("attention", c_char_p), ("activation", c_char_p),
                ("out", c_double), ("factor", c_double), ("alpha", c_double), ("embed", c_double), ("position", c_double),
                ("qk", c_double), ("head", c_double), ("logit", c_double), ("rope", c_int)]


class PageOptions(Options):
    _fields_ = [("size", c_size_t), ("title", c_char_p), ("svg", c_char_p), ("frontier", c_int), ("radius", c_double)]


def functions() -> "dict[str, tuple[Any, list[Any]]]":
    """Every function of taut.h: what it returns (`int` is a taut_status) and what it takes."""
    at, h, hs, text, strings = POINTER, c_void_p, POINTER(c_void_p), c_char_p, POINTER(c_void_p)
    return {
        "taut_version": (text, []),
        "taut_last_error": (text, []),
        "taut_threads_set": (None, [c_int]),
        "taut_string_free": (None, [h]),
        **{f"taut_number_{how}": (text, [c_char * 32, c_double]) for how in ("up", "down", "print")},
        "taut_number_int": (c_int, [at(c_int64), text]),
        "taut_number_real": (c_int, [at(c_double), text]),
        "taut_nearest": (text, [text, Strings, c_int]),
        "taut_build_json": (c_int, [strings, text]),
        "taut_net_open": (c_int, [hs, text, at(OpenOptions)]),
        "taut_net_create": (c_int, [hs, text, Strings, c_int, at(OpenOptions)]),
        "taut_net_save": (c_int, [h, text]),
        "taut_net_free": (None, [h]),
        "taut_net_look": (c_int, [h, at(NetFacts)]),
        "taut_net_json": (c_int, [h, strings]),
        "taut_describe_file": (c_int, [strings, text, at(DescribeOptions)]),
        "taut_checkpoint_json": (c_int, [strings, text, at(OpenOptions)]),
        "taut_net_tensor": (c_int, [h, c_int, at(TensorFacts)]),
        "taut_net_read": (c_int, [h, text, Doubles, c_int64]),
        "taut_net_write": (c_int, [h, text, Doubles, c_int64]),
        "taut_net_logits": (c_int, [h, Doubles, at(Inputs)]),
        "taut_net_vjp": (c_int, [h, Doubles, Doubles, at(Inputs)]),
        "taut_net_jvp": (c_int, [h, Doubles, Doubles, at(Inputs)]),
        "taut_net_grad": (c_int, [h, Doubles, at(c_double), Ids, at(Inputs)]),
        "taut_net_embed": (c_int, [h, Doubles, at(Inputs)]),
        "taut_net_encode": (c_int, [h, at(Ids), at(c_int64), text]),
        "taut_net_decode": (c_int, [h, strings, Ids, c_int64]),
        "taut_ids_free": (None, [Ids]),
        "taut_net_features": (c_int, [h, Doubles, at(c_int64), Strings, c_int64, at(FeaturesOptions)]),
        "taut_net_continue": (c_int, [h, strings, at(c_size_t), strings, at(ContinueOptions)]),
        "taut_data_open": (c_int, [hs, h, text]),
        "taut_data_free": (None, [h]),
        "taut_data_look": (c_int, [h, at(DataFacts)]),
        "taut_data_get": (c_int, [h, c_int, c_int64, at(Sample)]),
        "taut_train_recipe": (c_int, [at(Result), text, text, at(TrainOptions)]),
        "taut_recipe_json": (c_int, [strings, text, at(RecipeOptions)]),
        "taut_net_score": (c_int, [h, at(Score), h, c_int, c_int64]),
        "taut_evaluate_file": (c_int, [strings, text, at(EvaluateOptions)]),
        "taut_forecast_file": (c_int, [strings, text, at(ForecastOptions)]),
        "taut_predict_file": (c_int, [strings, text, at(PredictOptions)]),
        "taut_certify_file": (c_int, [hs, text, at(CertifyOptions)]),
        "taut_cert_free": (None, [h]),
        "taut_cert_look": (c_int, [h, at(CertFacts)]),
        "taut_cert_example": (c_int, [h, c_int64, at(Prediction)]),
        "taut_cert_swaps": (c_int, [h, c_int64, at(SwapFacts)]),
        "taut_cert_layer": (c_int, [h, c_int, at(LayerFacts)]),
        "taut_cert_json": (c_int, [h, strings]),
        "taut_cert_save": (c_int, [h, text]),
        "taut_cert_report": (c_int, [h, strings]),
        "taut_check_certificate": (c_int, [at(CheckFacts), text, text]),
        "taut_check_json": (c_int, [strings, text, text]),
        "taut_attack_file": (c_int, [hs, text, at(AttackOptions)]),
        "taut_attacked_free": (None, [h]),
        "taut_attacked_look": (c_int, [h, at(AttackFacts)]),
        "taut_attacked_at": (c_int, [h, c_int, at(AttackRadius)]),
        "taut_attacked_one": (c_int, [h, c_int, c_int64, at(AttackExample)]),
        "taut_attacked_json": (c_int, [h, strings]),
        "taut_attack_replay": (c_int, [strings, text, text]),
        "taut_measure_file": (c_int, [strings, text, at(MeasureOptions)]),
        "taut_plan_caps": (c_int, [strings, at(PlanOptions)]),
        "taut_plan_table": (c_int, [strings]),
        "taut_report_runs": (c_int, [text, text, Strings, c_int, text]),
        "taut_report_page": (c_int, [at(c_int), text, Strings, c_int, at(PageOptions)]),
        "taut_run_json": (c_int, [strings, text]),
    }


def _find() -> str:
    """$TAUT_LIBRARY; the package's own; the one built beside it in a source tree; where the loader looks."""
    here = Path(__file__).resolve().parent
    own = [here / "lib" / "libtaut.so", here.parents[1] / "build" / "libtaut.so"]
    for path in ([Path(os.environ["TAUT_LIBRARY"])] if os.environ.get("TAUT_LIBRARY") else own):
        if path.exists():
            return str(path)
    from ctypes.util import find_library  # slow to import, seldom needed
    return find_library("taut") or "libtaut.so"


def _load() -> ctypes.CDLL:
    path = _find()
    try:
        library = ctypes.CDLL(path)
        for name, (returns, takes) in functions().items():
            function = getattr(library, name)
            function.restype, function.argtypes = returns, takes
    except (OSError, AttributeError) as why:
        raise ImportError(f"{path} is not a library of this taut: {why}") from None
    return library


lib = _load()


def call(name: str, *args: Any) -> None:
    """Calls a function that returns a status; anything but TAUT_OK is raised with the library's line."""
    status = getattr(lib, name)(*args)
    if status:
        kind = STATUS[status] if status < len(STATUS) else None
        raise (kind or Error)(lib.taut_last_error().decode(errors="replace"))


def made(name: str, *args: Any) -> c_void_p:
    """The handle that a function of the form f(&handle, ...) makes."""
    handle = c_void_p()
    call(name, ctypes.byref(handle), *args)
    return handle


def text(name: str, *args: Any, first: bool = False) -> str:
    """The text that a function hands out by its last argument (or its first)."""
    out = c_void_p()
    call(name, *((ctypes.byref(out),) + args if first else args + (ctypes.byref(out),)))
    return taken(out)


def taken(out: c_void_p) -> str:
    """Text that the library handed out, which is freed."""
    try:
        return ctypes.string_at(out.value or 0).decode(errors="replace")
    finally:
        lib.taut_string_free(out)


def look(name: str, struct: type, *args: Any) -> Any:
    """The facts that a function writes into its last argument."""
    facts = struct()
    call(name, *args, ctypes.byref(facts))
    return facts


def encoded(value: Any, what: str) -> "bytes | None":
    """A path or a word for C, None stays NULL.  A NUL inside would end it early, so it is refused."""
    if value is None:
        return None
    try:
        raw = os.fsencode(value)
    except (TypeError, UnicodeEncodeError):
        raise InputError(f"{what} is text or a path, not {type(value).__name__}") from None
    if b"\0" in raw:
        raise InputError(f"{what} has a NUL inside")
    return raw


def strings(values: Sequence[Any], what: str) -> Any:
    return (c_char_p * max(len(values), 1))(*[encoded(v, what) for v in values])


def shown(value: Any) -> str:
    """A value inside a line: short, and itself one line."""
    return " ".join(repr(value).split())[:60]


def whole(value: Any, what: str, limit: int = 2**63) -> int:
    """A whole number from 0 to below `limit`: ctypes would cut a larger one without a word."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{what} is a whole number, not {shown(value)}") from None
    if not 0 <= number < limit:
        raise InputError(f"{what} is {number}")
    return number


def choice(value: Any, among: Sequence[str], what: str) -> int:
    if not isinstance(value, str) or value not in among:
        raise InputError(f"{what} is {', '.join(among[:-1])} or {among[-1]}, not {shown(value)}")
    return list(among).index(value)


def real(value: Any, what: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{what} is a number, not {shown(value)}") from None


def up(value: float) -> str:
    """Six digits for people, rounded up: of what is concluded."""
    return lib.taut_number_up(ctypes.create_string_buffer(32), value).decode()


def down(value: float) -> str:
    """Six digits for people, rounded down: of what is assumed."""
    return lib.taut_number_down(ctypes.create_string_buffer(32), value).decode()


def filled(struct: type, given: "dict[str, Any]", function: str) -> Any:
    """The options of a function from keywords, each as the type of its field asks."""
    kinds = {name: kind for name, kind, *_ in struct._fields_ if name not in ("size", "arg")}  # type: ignore[attr-defined]
    values: "dict[str, Any]" = {}
    for key, value in given.items():
        kind = kinds.get(key)
        if kind is None:
            raise InputError(f"{function} has no option {key}")
        if kind is c_char_p:
            values[key] = encoded(value, key)
        elif kind is c_double:
            values[key] = real(value, key)
        elif kind is c_int:
            values[key] = bool(value)
        elif kind in (c_int64, c_uint64):
            values[key] = whole(value, key, 2**64 if kind is c_uint64 else 2**63)
        elif isinstance(value, (list, tuple)) and len(value) == kind._length_:
            values[key] = kind(*[whole(v, key) for v in value])
        else:
            raise InputError(f"{key} is {kind._length_} whole numbers, not {shown(value)}")
    return struct(**values)
