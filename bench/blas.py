#!/usr/bin/env python3
"""Products of matrices at the shapes of `taut bench train`, by the libraries that are named and by taut's own kernels.
Usage: bench/blas.py [--rounds N] [NAME=LIBRARY.so ...]

A library is opened by its path and needs cblas_sgemm (with scipy_ before it: scipy-openblas's) or dnnl_sgemm; nothing of it is
built or linked.  Each has a process of its own, and they take turns, shape by shape, so that they share what the machine gives.
taut's kernels join where build/inside.a is there: a few lines are compiled against it.  OpenBLAS as the loader finds it is always
there.  One thread each, as taut calls a library for each of its pieces, and the least processor seconds of the rounds: what runs
beside it takes caches from it, but no time.  Prints the GFLOP/s of every library and shape, and the times of all shapes of a
training together against OpenBLAS's."""
import argparse
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time
from array import array

# what, m, n, k, A turned, B turned: one GPT of width 256, 16 x 256 tokens
SHAPES = [
    ("qkv", 4096, 768, 256, False, True),
    ("mlp up", 4096, 1024, 256, False, True),
    ("mlp down", 4096, 256, 1024, False, True),
    ("slope of x", 4096, 256, 1024, False, False),
    ("slope of W", 1024, 256, 4096, True, False),
    ("large", 1536, 1536, 1536, False, False),
]
SHIM = """#include "kernels/kernels.h"
__attribute__((visibility("default"))) void taut_sgemm(float *c, const float *a, const float *b, long m, long n, long k,
                                                       int ta, int tb);
void taut_sgemm(float *c, const float *a, const float *b, long m, long n, long k, int ta, int tb)
{
    taut_kernels_find("cpu")->gemm((taut_real *)c, (const taut_real *)a, (const taut_real *)b, m, n, k, ta, tb, 1, 0);
}
"""
LIBS = ["-lkissfft-float", "-lm", "-ldl"]


def product_of(path):
    """A function of (c, a, b, m, n, k, ta, tb), row by row."""
    lib = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    i64, f32 = ctypes.c_int64, ctypes.c_float
    if hasattr(lib, "taut_sgemm"):
        return lambda c, a, b, m, n, k, ta, tb: lib.taut_sgemm(c, a, b, i64(m), i64(n), i64(k), int(ta), int(tb))
    if hasattr(lib, "dnnl_sgemm"):
        letter = {False: ctypes.c_char(b"N"), True: ctypes.c_char(b"T")}
        return lambda c, a, b, m, n, k, ta, tb: lib.dnnl_sgemm(
            letter[ta], letter[tb], i64(m), i64(n), i64(k), f32(1), a, i64(m if ta else k), b, i64(k if tb else n), f32(0), c, i64(n))
    call = lib.scipy_cblas_sgemm if hasattr(lib, "scipy_cblas_sgemm") else lib.cblas_sgemm
    return lambda c, a, b, m, n, k, ta, tb: call(
        101, 112 if ta else 111, 112 if tb else 111, m, n, k, f32(1), a, m if ta else k, b, k if tb else n, f32(0), c, n)


def numbers(count, seed):
    some = [((i * 7919 + seed) % 2003 - 1001) / 1001 for i in range(2003)]
    return (ctypes.c_float * count).from_buffer(array("f", (some * (count // 2003 + 1))[:count]))


def right(c, a, b, m, n, k, ta, tb):
    i, j = m // 2, n // 3
    exact = sum(a[l * m + i if ta else i * k + l] * b[j * k + l if tb else l * n + j] for l in range(k))
    return abs(c[i * n + j] - exact) <= 1e-4 * k


def work(path):
    """Answers lines that name a shape with the processor seconds of one product."""
    ctypes.CDLL("libgomp.so.1", mode=ctypes.RTLD_GLOBAL)
    product = product_of(path)
    kept = {}
    print("ready", flush=True)
    for line in sys.stdin:
        at = int(line)
        what, m, n, k, ta, tb = SHAPES[at]
        if at not in kept:
            kept[at] = (numbers(m * n, 0), numbers(m * k, 1), numbers(k * n, 2))
            product(*kept[at], m, n, k, ta, tb)
            if not right(*kept[at], m, n, k, ta, tb):
                sys.exit(f"{path}: {what}: a wrong product")
        start = time.process_time()
        product(*kept[at], m, n, k, ta, tb)
        print(time.process_time() - start, flush=True)


def build_ours(folder):
    """The shared object with taut's own products; None where it cannot be made."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    inside, out = os.path.join(root, "build/inside.a"), os.path.join(folder, "ours.so")
    if not os.path.exists(inside) or not shutil.which("cc"):
        return None
    found = subprocess.run(["pkg-config", "--libs", "openblas", "libcjson", "inih"], capture_output=True, text=True)
    command = ["cc", "-shared", "-fPIC", "-fopenmp", "-I" + root + "/src", "-I" + root + "/include", "-o", out, "-x", "c", "-",
               "-x", "none", inside, *found.stdout.split(), *LIBS]
    made = subprocess.run(command, input=SHIM, text=True, cwd=root, capture_output=True)
    if made.returncode:
        print("taut's own products are left out:", made.stderr.splitlines()[-1], file=sys.stderr)
    return None if made.returncode else out


def start(path):
    one = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS", "MKL_NUM_THREADS")}
    quiet = dict(os.environ, MKL_THREADING_LAYER="SEQUENTIAL", MKL_INTERFACE_LAYER="LP64", **one)
    p = subprocess.Popen([sys.executable, __file__, "--work", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                         env=quiet)
    if p.stdout.readline().strip() != "ready":
        sys.exit(f"{path}: cannot be opened")
    return p


def ask(p, at):
    p.stdin.write(f"{at}\n")
    p.stdin.flush()
    return float(p.stdout.readline() or "nan")


def main():
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    reader.add_argument("--rounds", type=int, default=15)
    reader.add_argument("--work", help=argparse.SUPPRESS)
    reader.add_argument("libraries", nargs="*", metavar="NAME=LIBRARY")
    options = reader.parse_args()
    if options.work:
        work(options.work)
        return
    with tempfile.TemporaryDirectory() as folder:
        ours = build_ours(folder)
        paths = {"OpenBLAS": "libopenblas.so.0"} | ({"taut": ours} if ours else {})
        paths |= dict(text.split("=", 1) for text in options.libraries)
        peers = {name: start(path) for name, path in paths.items()}
        seconds = {(name, at): [] for name in peers for at in range(len(SHAPES))}
        for at in range(len(SHAPES)):
            for _ in range(options.rounds):
                for name, p in peers.items():
                    seconds[name, at].append(ask(p, at))
        for p in peers.values():
            p.stdin.close()
            p.wait()
    middle = {key: min(times) for key, times in seconds.items()}
    print(f"GFLOP a processor second, one thread, the best of {options.rounds}")
    print("| shape m n k | " + " | ".join(paths) + " |\n|" + "---|" * (len(paths) + 1))
    for at, (what, m, n, k, *_) in enumerate(SHAPES):
        rates = [f"{2e-9 * m * n * k / middle[name, at]:.0f}" for name in paths]
        print(f"| {what}: {m} {n} {k} | " + " | ".join(rates) + " |")
    whole = {name: sum(middle[name, at] for at in range(len(SHAPES) - 1)) for name in paths}
    print("| training's shapes, times OpenBLAS | " + " | ".join(f"{whole['OpenBLAS'] / whole[n]:.2f}" for n in paths) + " |")


if __name__ == "__main__":
    main()
