#!/bin/sh
# The Python package against the library that was just built, where there are Python, NumPy and pytest.
set -u
library=$PWD/$BUILD/libtaut.so
if nm -D "$library" | grep -q __asan_init; then echo "python: skipped, its interpreter was not built with the sanitizers"; exit 77; fi
for python in python3 /usr/bin/python3; do
    "$python" -c 'import numpy, pytest' 2>/dev/null || continue
    TAUT_LIBRARY=$library "$python" -m pytest -q -p no:cacheprovider python/tests || exit 1
    exit 0
done
echo "python: skipped, no python3 with NumPy and pytest"
exit 77
