#!/usr/bin/env python3
"""Where more devices stop paying: seconds a step of data-parallel training, from measured points and stated link rates.

    T(n) = M a / n + O / n + C / n + 2 G (n - 1) / n / W + 2 (n - 1) L

M  seconds of a micro-batch: its FLOPs over the rate of the measured training on one device
a  micro-batches of a step, a multiple of n (one subtree a rank: see docs/howto/run_on_a_cluster.md)
O  the optimiser: its state moved once, divided since each rank owns a share; C: Muon's products, divided likewise
G  bytes of gradients; W bytes a second that a device can send to others, L seconds a message

A step's tokens are either fixed (524288, one example of 1024 a micro-batch) or grow with n (16 examples a device).
Nothing is overlapped, as in src/train/sum_tree.c.  A micro-batch of one example is taken to be as fast per token as one of 16,
and nothing hangs on who talks to whom: both flatter large n.

    python3 bench/ranks/scale.py [--tokens-per-s 322000] [--inside 450e9] [--between 50e9] [--latency 10e-6]
"""
import argparse

MODELS = {  # weights, depth, width
    "GPT-2 124M": (124.4e6, 12, 768),
    "GPT-2 1.5B": (1557.6e6, 48, 1600),
}
CONTEXT, MACHINE = 1024, 8  # tokens of an example, devices of a machine


def flops(weights, depth, width):  # of a token, forward and backward
    return 6 * weights + 12 * depth * width * CONTEXT


def muon(depth, width, steps=6):  # FLOPs of Newton-Schulz: each step 2 products with the smaller side's square, 1 of squares
    total = 0
    for rows, cols in [(width, width)] * 4 + [(4 * width, width)] * 2:
        side, other = min(rows, cols), max(rows, cols)
        total += steps * (2 * 2 * side * side * other + 2 * side**3)
    return depth * total


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tokens-per-s", type=float, default=322e3, help="measured: 12 blocks of width 768, 40 words, bf16, one H200")
    p.add_argument("--memory", type=float, default=4.0e12, help="bytes a second of the device's memory")
    p.add_argument("--inside", type=float, default=450e9, help="bytes a second that a device sends inside a machine (NVLink 4)")
    p.add_argument("--between", type=float, default=50e9, help="and to other machines (400 Gbit/s a device)")
    p.add_argument("--latency", type=float, default=10e-6, help="seconds a message")
    o = p.parse_args()
    rate = o.tokens_per_s * flops(12 * 12 * 768 * 768, 12, 768)
    print(f"rate of one device: {rate / 1e12:.0f} TFLOP/s, from {o.tokens_per_s:.0f} tokens/s")

    def step(model, n, tokens):
        weights, depth, width = MODELS[model]
        gradients = 4 * weights
        link = o.inside if n <= MACHINE else o.between
        compute = tokens * flops(weights, depth, width) / rate / n
        optimise = (16 * weights / o.memory + muon(depth, width) / rate) / n
        send = 2 * gradients * (n - 1) / n / link + 2 * (n - 1) * o.latency
        return compute, optimise, send

    for grows in (False, True):
        print("\n" + ("16 examples a device and step" if grows else "524,288 tokens a step"))
        print(f"{'':12}{'devices':>8}{'compute ms':>12}{'optimise':>10}{'messages':>10}{'step ms':>10}{'efficiency':>12}")
        for model in MODELS:
            for n in (1, 8, 64, 512):
                tokens = 16 * CONTEXT * n if grows else 524288
                parts = step(model, n, tokens)
                ideal = sum(step(model, 1, 16 * CONTEXT)[:2]) if grows else sum(step(model, 1, tokens)[:2]) / n
                print(f"{model if n == 1 else '':12}{n:8}" + "".join(f"{1e3 * x:{w}.1f}" for x, w in zip(parts, (12, 10, 10)))
                      + f"{1e3 * sum(parts):10.1f}{100 * ideal / sum(parts):11.0f} %")
            if not grows:
                best = min(range(1, 513), key=lambda n: sum(step(model, n, 524288)))
                half = max((n for n in range(9, 513) if sum(step(model, 1, 524288)[:2]) / n / sum(step(model, n, 524288)) >= 0.5), default=8)
                print(f"{'':12}half of the devices' time is messages from {half + 1} devices on; the shortest step is at {best}")


if __name__ == "__main__":
    main()
