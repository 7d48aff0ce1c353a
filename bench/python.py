"""What Python costs: a forward pass by model(x) beside the C function with everything at hand, at batch 1 and 64; importing.
Processor time, one thread: other processes do not disturb it much.
    PYTHONPATH=python python3 bench/python.py MODEL"""
import subprocess
import sys
import time

import numpy as np

import taut
from taut import _c
from taut._arrays import at


def best(call, repeats):
    """Microseconds of the fastest of several rounds."""
    times = []
    for _ in range(7):
        start = time.process_time()
        for _ in range(repeats):
            call()
        times.append((time.process_time() - start) / repeats)
    return 1e6 * min(times)


taut.threads(1)
model = taut.load(sys.argv[1])
for n, repeats in ((1, 300), (64, 20)):
    x = np.random.default_rng(1).random((n,) + model.shape)
    b = model._batch(x)
    y = np.empty(model._out(b))
    handle, out, inputs = model._handle, at(y), b.ref
    c = best(lambda: _c.lib.taut_net_logits(handle, out, inputs), repeats)
    python = best(lambda: model(x), repeats)
    print(f"batch {n:2}: C {c:.0f} us, Python {python:.0f} us, overhead {python - c:.0f} us ({100 * (python / c - 1):.1f} %)")
code = "import {}time; t = time.process_time(); import taut; print(time.process_time() - t)"
for before in ("", "numpy, "):
    took = min(float(subprocess.check_output([sys.executable, "-c", code.format(before)])) for _ in range(7))
    print(f"import taut{' where NumPy is loaded' if before else ''}: {took:.3f} s")
