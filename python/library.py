"""How pip builds the package: make builds the library, which goes inside, and one wheel serves every Python 3."""
import os
import re
import shutil
import subprocess
from pathlib import Path

from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parents[1]
VERSION = re.search(r'TAUT_VERSION +"(.*)"', (ROOT / "include" / "taut.h").read_text())[1]


class BuildWithMake(build_py):
    def run(self):
        super().run()
        try:
            subprocess.run(["make", f"-j{os.cpu_count()}", "build/libtaut.so"], cwd=ROOT, check=True)
        except (OSError, subprocess.CalledProcessError):
            raise SystemExit("taut: make could not build the library; tools/deps installs what it needs") from None
        if not self.editable_mode:  # else the package finds build/libtaut.so by itself
            into = Path(self.build_lib, "taut", "lib", "libtaut.so")
            into.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / "build" / "libtaut.so", into)
            subprocess.run(["strip", "--strip-unneeded", into], check=False)  # smaller, if there is such a tool


class AnyPython(bdist_wheel):
    """ctypes needs no interpreter's own interface: py3-none-PLATFORM."""

    def finalize_options(self):
        self.distribution.has_ext_modules = lambda: True  # a library is inside: not the same for every machine
        super().finalize_options()

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]
