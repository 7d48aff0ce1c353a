"""Where the time of a training step goes on a device: every kernel's milliseconds and launches a step, by CUPTI's records
(torch.profiler) of the steps after a warm-up, and what is left between kernels.

    PYTHONPATH=python python3 bench/gpu_trace.py recipes/vit-cifar10-lip.ini train.matmul=bf16 [--warm 40] [--steps 40]"""
import argparse
import collections
import re
import tempfile
import time

import torch
from torch.autograd import DeviceType

import taut


def traced(recipe, settings, warm, steps):
    """The profile of `steps` steps behind `warm` others, and the seconds that they took."""
    profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
    clock = []

    def watch(now):
        if now.step in (warm, warm + steps):
            torch.cuda.synchronize()
            clock.append(time.perf_counter())
            profile.start() if now.step == warm else profile.stop()
        return now.step >= warm + steps

    torch.zeros(1, device="cuda")  # CUPTI must know the device before the library opens it
    with tempfile.TemporaryDirectory() as folder:
        taut.train(recipe, f"{folder}/run", {**settings, "train.eval_every": 0}, watch, kernels="cuda")
    return profile, clock[1] - clock[0]


def short(name):
    """A kernel's name without its types, arguments and namespaces."""
    name = re.sub(r"\((anonymous namespace|.*\bunnamed\b.*?)\)::", "", name)
    return re.sub(r"^(void|.*\s) ", "", name.split("<")[0].split("(")[0])[:60]


def covered(spans):
    """The length of what the spans cover together."""
    total, end = 0.0, float("-inf")
    for first, last in sorted(spans):
        total += max(0.0, last - max(first, end))
        end = max(end, last)
    return total


def main():
    read = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    read.add_argument("recipe")
    read.add_argument("settings", nargs="*", metavar="SECTION.KEY=VALUE")
    read.add_argument("--warm", type=int, default=40)
    read.add_argument("--steps", type=int, default=40)
    given = read.parse_args()
    settings = dict(word.split("=", 1) for word in given.settings)
    profile, seconds = traced(given.recipe, settings, given.warm, given.steps)
    events = [e for e in profile.events() if e.device_type == DeviceType.CUDA]
    kernels = collections.defaultdict(list)
    for e in events:
        kernels[short(e.name)].append((e.time_range.start, e.time_range.end))
    busy = covered([span for spans in kernels.values() for span in spans])
    print(f"{1e3 * seconds / given.steps:9.3f} ms a step, {len(events) / given.steps:.1f} kernels and copies; "
          f"nothing runs in {1e3 * seconds / given.steps - busy / 1e3 / given.steps:.3f} ms of it")
    for name, spans in sorted(kernels.items(), key=lambda item: -sum(b - a for a, b in item[1])):
        print(f"{sum(b - a for a, b in spans) / 1e3 / given.steps:9.3f} ms {len(spans) / given.steps:8.1f} times   {name}")


if __name__ == "__main__":
    main()
