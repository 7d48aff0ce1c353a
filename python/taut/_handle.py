"""What belongs to the library: used by one thread at a time, and freed once."""
import threading
from contextlib import contextmanager
from typing import Any, Iterator

from . import _c


class Handle:
    """A handle of the library's, until it is closed.  `_free` names the function that frees it."""
    _free = ""

    def __init__(self, handle: Any):
        self._handle, self._lock = handle, threading.RLock()

    @contextmanager
    def _held(self) -> Iterator[Any]:
        """The handle for one call: no other thread uses or closes it meanwhile."""
        with self._lock:
            if self._handle is None:
                raise _c.InputError(f"this {type(self).__name__.lower()} was closed")
            yield self._handle

    def close(self) -> None:
        """Gives the memory back; what is asked afterwards is an error.

        >>> with taut.load("runs/a") as model:            # closed at the end of the block
        ...     model(x)
        """
        with self._lock:
            handle, self._handle = self._handle, None
            if handle is not None:
                getattr(_c.lib, self._free)(handle)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None and _c is not None:
            self.close()
