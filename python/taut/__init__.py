"""taut: train, certify and attack Lipschitz-bounded transformers.

    import taut
    run = taut.train("recipes/vit-shapes-small.ini", "runs/a", progress=True)
    model = taut.load("runs/a")
    cert = model.certify(norm="flat", examples=100, radius=1)
    taut.check(cert, model)

NumPy in, NumPy out.  Proved numbers hold for the bytes of the model's file under the assumptions of docs/guarantees.md; inf
means that nothing is proved.  One model is used by one thread at a time, others at the same time.  `taut.torch` joins it
with PyTorch.
"""
from . import _c
from ._attack import Attack, Contradiction, replay
from ._c import DeviceError, Error, FileError, InputError, NoMemoryError, NotFiniteError
from ._certificate import Certificate, Layer, Swaps, Verdict, check
from ._data import Data, Score
from ._measure import plan
from ._model import Model, Weights, create, load
from ._run import Run, Step, report, train

__version__ = _c.lib.taut_version().decode()
__all__ = ["Attack", "Certificate", "Contradiction", "Data", "DeviceError", "Error", "FileError", "InputError", "Layer",
           "Model", "NoMemoryError", "NotFiniteError", "Run", "Score", "Step", "Swaps", "Verdict", "Weights", "check",
           "create", "load", "plan", "replay", "report", "threads", "train"]


def threads(count: int) -> None:
    """How many threads the library uses; 0: one per processor.  Results do not depend on it.

    >>> taut.threads(2)
    """
    _c.lib.taut_threads_set(_c.whole(count, "threads", 2**31))
