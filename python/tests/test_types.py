"""The annotations hold, as mypy sees them by pyproject.toml; skipped where mypy is missing."""
import os
import subprocess
import sys

import pytest
from conftest import ROOT


def test_types(tmp_path):
    pytest.importorskip("mypy")
    try:
        import torch  # noqa: F401
        left_out = []
    except ImportError:
        left_out = ["--exclude", "taut/torch"]
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), *left_out], cwd=ROOT, text=True,
                          capture_output=True, env={**os.environ, "TERM": "dumb"})
    assert done.returncode == 0, done.stdout + done.stderr
