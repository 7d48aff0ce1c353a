"""What people see: a bar while something runs, tables and the report's own pictures in notebooks."""
import html
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Callable, Iterable, Optional, Union

from . import _c

Asked = Union[bool, Callable[..., Any], None]


class Watch:
    """A callback for C, and the block in which C runs.  What is raised in it, Ctrl-C too, stops the work and is raised again
    when C has returned: an exception cannot pass through C, and one that Python raises by itself on the way would be lost."""

    def __init__(self, tell: Optional[Callable[..., Any]]):
        self.tell = tell
        self.raised: Optional[BaseException] = None
        self._before: Any = None

    def __call__(self, *now: Any) -> int:
        try:
            return 1 if self.raised or (self.tell is not None and self.tell(*now)) else 0
        except BaseException as why:
            self.raised = why
            return 1

    def _interrupt(self, *_: Any) -> None:
        self.raised = KeyboardInterrupt()

    def __enter__(self) -> "Watch":
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if self.raised is not None:
            raise self.raised


def seen() -> bool:
    """Is somebody looking?  A terminal or a notebook."""
    return sys.stderr is not None and (sys.stderr.isatty() or "ipykernel" in sys.modules)


class Bar:
    """A bar on stderr, drawn at most ten times a second."""

    def __init__(self, label: str):
        self.label, self.last, self.drawn = label, 0.0, False

    def draw(self, done: float, say: str = "") -> None:
        now = time.monotonic()
        if not seen() or (now - self.last < 0.1 and done < 1):
            return
        full = int(24 * min(max(done, 0), 1))
        sys.stderr.write(f"\r{self.label} {'#' * full}{'.' * (24 - full)} {100 * done:3.0f} %  {say}\x1b[K")
        sys.stderr.flush()
        self.last, self.drawn = now, True

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *_: Any) -> None:
        if self.drawn:
            sys.stderr.write("\n")


def teller(progress: Asked, bar: Bar) -> Optional[Callable[..., Any]]:
    """What to call with the share that is done: nothing, a bar, or the caller's function."""
    return (lambda done: bar.draw(done)) if progress is True else progress if callable(progress) else None


def table(title: str, rows: Iterable["tuple[str, Any]"]) -> str:
    cells = "".join(f"<tr><th style='text-align:left'>{html.escape(str(k))}</th>"
                    f"<td style='text-align:left'>{html.escape(str(v))}</td></tr>" for k, v in rows)
    return f"<table><caption>{html.escape(title)}</caption>{cells}</table>"


def pictures(folder: "str | Path", files: "dict[str, str] | None" = None) -> str:
    """The report's charts of a run's folder, or of a folder made of `files` (name: text)."""
    with tempfile.TemporaryDirectory() as temp:
        run, svg = Path(temp, "run"), Path(temp, "svg")
        svg.mkdir()
        if files is not None:
            run.mkdir()
            for name, text in files.items():
                run.joinpath(name).write_text(text, encoding="utf-8")
        runs = _c.strings([folder if files is None else run], "a run")
        try:
            _c.call("taut_report_runs", bytes(Path(temp, "page.html")), None, runs, 1, bytes(svg))
        except _c.Error:
            return ""  # nothing to draw there
        return "".join(f"<div>{p.read_text(encoding='utf-8')}</div>" for p in sorted(svg.glob("*.svg")))
