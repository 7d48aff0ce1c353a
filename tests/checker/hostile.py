"""Files that nobody's taut wrote, for both checkers: python3 tests/checker/hostile.py FOLDER TAUT

Models and certificates are made by hand, each with one thing in it that is not so; neither checker may confirm it, fall, or take long.
Where it can be had, a twin without that thing is confirmed by both, so that it is this thing that is refused.
"""
import hashlib
import json
import os
import struct
import subprocess
import sys

import numpy as np

FOLDER, TAUT = sys.argv[1], sys.argv[2]
CHECKERS = {"first": [TAUT, "check"], "second": [sys.executable, "checker/check.py"]}
fails, tried = [], 0


def model(name, tensors, root, tokens, width, version=4):
    """A model file; returns its path and what certificates say of it."""
    header = {"__metadata__": {"taut.tree": json.dumps({"version": version, "tokens": tokens, "width": width, "unit": 0, "root": root})}}
    data = b""
    for key, value in tensors.items():
        array = np.asarray(value, np.float32)
        header[key] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    whole = struct.pack("<Q", len(text)) + text + data
    path = os.path.join(FOLDER, name + ".safetensors")
    with open(path, "wb") as file:
        file.write(whole)
    return path, {"bytes": len(whole), "sha256": hashlib.sha256(whole).hexdigest()}


def ask(what, want, made, lip, proof, tokens, **more):
    """Both checkers must end with one of the codes of `want`."""
    path, about = made
    cert = {"format": "taut-certificate", "version": 3, "model": about, "norm": "flat", "tokens": tokens,
            "region": {"room": 0.0, "reach": 1.00001}, "lip": lip, "proof": proof, **more}
    file = os.path.join(FOLDER, "hostile.json")
    with open(file, "w", encoding="utf-8") as to:
        json.dump(cert, to)
    verdict(what, want, file, path)


def verdict(what, want, cert, path):
    global tried
    tried += 1
    for name, command in CHECKERS.items():
        try:
            run = subprocess.run([*command, cert, path], capture_output=True, text=True, check=False, timeout=60)
            code, said = run.returncode, (run.stdout + run.stderr).strip()
        except subprocess.TimeoutExpired:
            code, said = "nothing", "after a minute"
        if code not in want:
            fails.append(what)
            print(f"FAIL {what}: the {name} checker ends with {code}, not with one of {want}: {said}")


def within(lip, out, *parts):
    return {"rule": "sequence", "lip": lip, "out": out, "of": list(parts)}


def cosine(eps, values, lip, out, want, bias):
    """Queries and keys that are the same everywhere: only their lengths speak, and those are as far as eps lets them be."""
    d, t, none = 4, 64, np.zeros((4, 4))
    length = float(np.nextafter(np.float32(1), np.float32(2))) if bias else 0.0
    at = np.array([0, length, 0, 0])
    tensors = {"embed.weight": np.eye(2, d), "a.q.weight": none, "a.k.weight": none, "a.v.weight": np.eye(d), "a.o.weight": np.eye(d),
               **({"a.q.bias": at, "a.k.bias": -at} if bias else {})}
    leaf = {"name": "a", "rule": "cosattention", "heads": 1, "scale": 0.5, "out": 1, "causal": 1, "alibi": 0, "rope": 10000, "eps": eps,
            "values": values}
    made = model("cosine", tensors, {"rule": "sequence", "of": [{"rule": "sequence", "of": [leaf]}]}, t, d)
    count = 64.0 if lip == "inf" else float(sum(1 / (1 + i * np.exp(-1.0000001)) for i in range(t))) * (1 + 1e-9)
    lip = float(np.sqrt(count)) * (1 + 1e-6) if lip is None else lip
    stated = {"rule": "head", "index": 0, "query": 0, "query_bias": length * (1 + 1e-9), "key": 0, "key_bias": length * (1 + 1e-9)}
    family = {"rule": "family", "weights": [1.0], "out_norm": 1 + 1e-9, "query_norm": 0, "key_norm": 0, "key_norm_near": 0}
    if values:
        stated.update({"value": 1 + 1e-9, "value_bias": 0})
        family.update({"value_norm": 1 + 1e-9})
    node = {"name": "a", "rule": "cosattention", "count": count, "of": [stated, family], "lip": lip, "out": out}
    ask(f"cosattention, eps {eps}, values {values}", want, made, lip, within(lip, out, within(lip, out, node)), t)


def norm_layer(eps, lip, want):
    d, t, out = 4, 3, 2.00001
    made = model("norm", {"embed.weight": np.eye(2, d), "a.weight": np.ones(d)},
                 {"rule": "sequence", "of": [{"rule": "sequence", "of": [{"name": "a", "rule": "layernorm", "eps": eps, "centred": 0}]}]}, t, d)
    node = {"name": "a", "rule": "layernorm", "norm": 1.0, "lip": lip, "out": out}
    ask(f"layernorm, eps {eps}", want, made, lip, within(lip, out, within(lip, out, node)), t)


def jumps(positions, want):
    """Behind a module that jumps there are as many tokens as ask, and the table that follows has a row for each."""
    d, t, words = 8, 20000, 3
    eye = np.eye(d)
    tensors = {"embed.weight": np.eye(words, d), **{f"a.{side}.weight": eye for side in "qkvo"}, "p.weight": np.ones((positions, d)),
               "head.weight": np.ones((words, d))}
    leaf = {"name": "a", "rule": "nystrom", "heads": 1, "out": 1, "scale": 1, "landmarks": 1, "steps": 0, "queries": positions}
    made = model("jump", tensors, {"rule": "sequence", "of": [{"rule": "sequence", "of": [leaf, {"name": "p", "rule": "position"}]},
                                                              {"name": "head", "rule": "linear", "tied": 0}]}, t, d)
    node = {"name": "a", "rule": "nystrom", "value": 1.001, "value_bias": 0, "out_norm": 1.001, "bias": 0, "lip": "inf", "out": 1.1}
    behind = {"name": "p", "rule": "position", "longest": 3, "lip": 1, "out": 4.2}
    head = {"name": "head", "rule": "linear", "norm": 10, "bias": 0, "lip": 10, "out": 42.1}
    ask("a jump with queries", want, made, "inf", within("inf", 42.1, within("inf", 4.2, node, behind), head), t,
        examples=[{"ids": [0] * t, "predicted": 0, "margin": 0, "radius": 0, "verdict": "unknown"}])


def crowd(tokens, want):
    """Rows of attention are counted, and there may be more of them than anybody counts."""
    eye, none = np.eye(2), np.zeros((2, 2))
    made = model("crowd", {"embed.weight": eye, "a.q.weight": none, "a.k.weight": none, "a.v.weight": eye, "a.o.weight": eye},
                 {"rule": "sequence", "of": [{"rule": "sequence", "of": [
                     {"name": "a", "rule": "attention", "heads": 1, "scale": 1, "out": 1, "causal": 0, "alibi": 0, "rope": 0}]}]}, tokens, 2)
    family = {"rule": "family", "weights": [1.0], "out_norm": 1 + 1e-9, "logit_norm": 0, "query_norm": 0}
    node = {"name": "a", "rule": "attention", "count": 1.00001, "of": [{"rule": "head", "index": 0}, family], "lip": 1.0001, "out": 1.0001}
    ask(f"{tokens} tokens", want, made, 1.0001, within(1.0001, 1.0001, within(1.0001, 1.0001, node)), tokens)


def line(positions, causal, want):
    """Attention by position over a line of tokens: where it is not causal, checkers add up the columns of every length."""
    d = 2
    eye, table = np.eye(d), np.zeros((1, positions if causal else 2 * positions - 1))
    made = model("line", {"embed.weight": eye, "a.v.weight": eye, "a.o.weight": eye, "a.distance.weight": table},
                 {"rule": "sequence", "of": [{"rule": "sequence", "of": [
                     {"name": "a", "rule": "posattention", "heads": 1, "causal": int(causal), "far": 0}]}]}, positions, d)
    column = (sum(1 / (1 + i) for i in range(positions)) if causal else 1) * (1 + 1e-6)
    root, near = float(np.sqrt(column)) * (1 + 1e-6), 1 + 1e-7
    node = {"name": "a", "rule": "posattention", "of": [{"rule": "head", "index": 0, "norm": near, "column": column}], "joint": root,
            "out_norm": near, "bias": 0, "lip": root * (1 + 1e-6), "out": 1.001}
    lip = root * (1 + 1e-5)
    ask(f"{positions} tokens on a line, causal {causal}", want, made, lip, within(lip, 1.001, within(lip, 1.001, node)), positions)


def leaf(what, want, rule, tensors, node, tokens=3, shown=None, embed=None, **constants):
    """A body of one module `a` of four features; `node` is what the proof says of it."""
    tensors = {"embed.weight": np.eye(2, 4) if embed is None else embed, **{"a." + key: value for key, value in tensors.items()}}
    made = model("leaf", tensors, {"rule": "sequence", "of": [{"rule": "sequence", "of": [
        {"name": "a", "rule": rule, **constants}]}]}, tokens, 4, **(shown or {}))
    lip, out = 3.0, 9.0
    ask(what, want, made, lip, within(lip, out, within(lip, out, {"name": "a", "rule": rule, **node, "lip": lip, "out": out})), tokens)


def shapes():
    """Sizes, parts and words on which two readers of docs/certificate.md might differ, beside the twin that is so."""
    one, eps = np.ones(4), {"eps": 0.25, "centred": 0}
    leaf("channel", (0,), "channel", {"weight": one}, {"norm": 1.0})
    leaf("channel of one row", (2,), "channel", {"weight": one[None]}, {"norm": 1.0})
    affine = {"norm": 2.001}
    leaf("a matrix of one row", (0,), "linear", {"weight": one[None]}, affine, tied=0)
    leaf("a matrix of one row, as a vector", (0,), "linear", {"weight": one}, affine, tied=0)
    leaf("a bias of one row", (2,), "linear", {"weight": np.eye(4), "bias": np.zeros((1, 4))}, affine, tied=0)
    leaf("rmsnorm", (0,), "layernorm", {"weight": one}, {"norm": 1.0}, **eps)
    leaf("rmsnorm with a bias", (2,), "layernorm", {"weight": one, "bias": one}, {"norm": 1.0}, **eps)
    leaf("layernorm with one", (0,), "layernorm", {"weight": one, "bias": one}, {"norm": 1.0001}, eps=0.25, centred=1)
    leaf("a longer table of positions", (0,), "position", {"weight": np.ones((7, 4))}, {"longest": 2.001})
    leaf("a shorter one", (2,), "position", {"weight": np.ones((2, 4))}, {"longest": 2.001})
    leaf("its longest row behind the last token", (2,), "position", {"weight": np.diag([1., 1, 1, 5])}, {"longest": 2.001})
    leaf("tokens without count", (0,), "tokens", {}, {}, first=1)
    leaf("tokens, none of them", (2,), "tokens", {}, {}, first=3)
    leaf("an embedding of one word", (0,), "channel", {"weight": one}, {"norm": 1.0}, embed=np.eye(1, 4))
    leaf("as a vector", (2,), "channel", {"weight": one}, {"norm": 1.0}, embed=np.eye(4)[0])
    leaf("count 0", (2,), "tokens", {}, {}, first=1, count=0)
    leaf("first 0", (2,), "tokens", {}, {}, first=0, count=1)
    leaf("groups of four", (0,), "maxmin", {}, {}, group=4)
    leaf("groups of three", (2,), "maxmin", {}, {}, group=3)
    for version, want in ((4, (0,)), (5, (3,)), (1e308, (2,)), (4.5, (2,)), ("4", (2,))):
        leaf(f"tree of version {version}", want, "sinusoid", {}, {}, shown={"version": version})
    leaf("an old tree", (0,), "channel", {"weight": one}, {"norm": 1.0}, shown={"version": 3})
    leaf("an old tree with another constant", (3,), "channel", {"weight": one}, {"norm": 1.0}, shown={"version": 3}, extra=1)
    leaf("an old tree with another shape", (3,), "channel", {"weight": one[None]}, {"norm": 1.0}, shown={"version": 3})
    embed, wave = {"embed.weight": np.eye(2, 4)}, {"rule": "sinusoid"}

    def tree(what, want, body, proof, **more):
        ask(what, want, model("tree", embed, {"rule": "sequence", "of": [body]}, 3, 4), 3.0, within(3.0, 9.0, proof), 3, **more)

    said = {"rule": "sinusoid", "lip": 1.0, "out": 8.0}
    body, proof = {"rule": "sequence", "of": [wave]}, within(3.0, 9.0, said)
    tree("a wave", (0,), body, proof)
    for version, want in ((4, (3,)), (2 ** 52, (3,)), (1e308, (2,)), (3.5, (2,)), (1, (2,))):
        tree(f"version {version}", want, body, proof, version=version)
    tree("no part", (2,), {"rule": "sequence", "of": []}, {**within(3.0, 9.0), "of": []})
    tree("a mix of nothing", (2,), {"rule": "mix", "keep": 1, "mix": 1, "of": []}, {"rule": "mix", "of": [], "lip": 3.0, "out": 9.0})
    tree("many parts", (0,), {"rule": "sequence", "of": [{"rule": "scale", "factor": 1}] * 200},
         within(3.0, 9.0, *[{"rule": "scale", "lip": 1.0, "out": 1.00001}] * 200))
    for first, want in ((2, (0,)), (3, (2,)), (0, (2,))):
        tree(f"parts, first {first}", want, {"rule": "parts", "first": first, "of": [wave, wave]},
             {"rule": "parts", "of": [said, said], "lip": 3.0, "out": 9.0})
    tree("a name", (0,), {"rule": "sequence", "name": "?", "of": [wave]}, {**proof, "name": "?"})
    tree("an empty name", (2,), {"rule": "sequence", "name": "", "of": [wave]}, proof)
    tree("an empty name in the proof", (2,), body, {**proof, "name": ""})
    tree("an empty name in both", (2,), {"rule": "sequence", "name": "", "of": [wave]}, {**proof, "name": ""})
    tree("an empty rule", (2,), {"rule": "", "of": [wave]}, {**proof, "rule": ""})


def words():
    """What is no number, no word, or no JSON, around a true proof."""
    d, t, out = 4, 3, 2.00001
    made = model("words", {"embed.weight": np.eye(2, d), "a.weight": np.ones(d)},
                 {"rule": "sequence", "of": [{"rule": "sequence", "of": [{"name": "a", "rule": "layernorm", "eps": 0.25, "centred": 0}]}]}, t, d)
    node = {"name": "a", "rule": "layernorm", "norm": 1.0, "lip": 2.00001, "out": out}
    proof = within(2.00002, out, within(2.00002, out, node))
    ask("as it is", (0,), made, 2.0001, proof, t)
    ask("for kernels", (0,), made, 2.0001, proof, t, **{"for": "cpu", "tolerance": 0})
    for name in ("cpu\n\x1b[31mok", "", "a name of more than fifteen letters", 7, None):
        ask(f"for {name!a}", (2,), made, 2.0001, proof, t, **{"for": name, "tolerance": 0})
    ask("tokens are true", (2,), made, 2.0001, proof, True)
    for defect in (None, -5, "much"):
        ask(f"defect {defect}", (2,), made, "inf", proof, t, defect=defect)
    file = os.path.join(FOLDER, "endless.json")
    with open(file, "w", encoding="utf-8") as to:
        to.write('"' + '\\"' * 60000)
    verdict("a string without end", (1, 2), file, made[0])


cosine(1.0, 0, None, 1.00002, (0,), True)
cosine(-1.0, 0, None, 1.00002, (2,), True)
cosine(0.0, 0, None, 1.00002, (2,), False)
cosine(0.0, 0, "inf", 1.00002, (0,), True)
cosine(-1.0, 1, "inf", 1.001, (2,), True)
norm_layer(0.25, 2.00001, (0,))
norm_layer(-0.25, "inf", (2,))
norm_layer(0.0, "inf", (0,))
jumps(1, (0, 3))
crowd(64, (0,))
crowd(2 ** 31 - 1, (3,))
line(64, False, (0,))
line(1025, False, (3,))
line(4096, True, (0,))
line(2 ** 17, True, (0, 3))
shapes()
words()
print(f"hostile      {tried} files by hand, for both checkers  {'ok' if not fails else str(len(fails)) + ' FAILED'}")
sys.exit(bool(fails))
