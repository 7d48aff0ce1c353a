"""The second checker against taut and taut check: python3 tests/checker/second.py FOLDER TAUT EFFORT

FOLDER has a run for each architecture.  Its weights are replaced by random ones, certified in both norms and checked by both; then
numbers of the certificate are bent in its favour, and bits of the model flipped, and both must refuse.
"""
import copy
import io
import json
import os
import random
import struct
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from fractions import Fraction
from types import SimpleNamespace

import numpy

sys.path.insert(0, "checker")
import check  # noqa: E402  the second checker
from interval import Interval  # noqa: E402
from norm import norm_is_at_most  # noqa: E402
from reader import REFUTED  # noqa: E402
import tree  # noqa: E402

FOLDER, TAUT, EFFORT = sys.argv[1], sys.argv[2], float(sys.argv[3])
CHOICES = {"weights", "units", "room", "rows", "ids", "pixels", "tool", "sha256", "verdict", "box"}  # any of them may be as true
RAISED = {"radius", "margin"}
fails, counts = [], dict.fromkeys(("confirmed", "certified", "bent", "flipped", "fuzzed", "tolerant"), 0)


def second(cert, model):
    """Exit code and line of the second checker; it must never fail otherwise."""
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = check.main([cert, model])
    return code, said.getvalue().strip()


def first(cert, model):
    run = subprocess.run([TAUT, "check", cert, model], capture_output=True, text=True, check=False)
    return run.returncode, (run.stdout + run.stderr).strip()


def expect(what, want, cert, model, checkers=(first, second)):
    for checker in checkers:
        code, line = checker(cert, model)
        if code not in want or "failed" in line:
            fails.append(what)
            print(f"FAIL {what}: the {checker.__name__} checker ends with {code}: {line}")


def put(path, cert):
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(cert))  # which is in C, and json.dump is not


def randomise(path, size):
    """Random float32 in the place of every weight; an odd one stays: the scale of a potential layer must be large."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    start = 8 + struct.unpack("<Q", data[:8])[0]
    for name, tensor in json.loads(data[8:start]).items():
        if name != "__metadata__":
            for at in range(start + tensor["data_offsets"][0], start + tensor["data_offsets"][1], 4):
                data[at:at + 4] = struct.pack("<f", 3.0 if name.endswith("mlp.scale") else size * random.uniform(-1, 1))
    with open(path, "wb") as file:
        file.write(data)


def numbers(value, key=""):
    """Every number of a certificate that claims something: its holder, its place there, its key."""
    for place, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        name = place if isinstance(place, str) else key
        if isinstance(part, (int, float)) and part != 0 and name not in CHOICES:
            yield value, place, name
        yield from numbers(part, name)


def bend(cert, path, model, most):
    """One number after the other by a thousandth or a half, down, or up where more is claimed by more."""
    places = list(numbers(cert))
    for holder, place, key in random.sample(places, min(most, len(places))):
        true = holder[place]
        up = key in RAISED
        slight = true / 2 if key == "out" and cert["lip"] == "inf" else true * (1 - 1e-3)  # of what jumps no rounding is bounded
        if key == "lip" and "predicted" in holder:
            slight = 0.95 * true  # around an example rounding is let grow
        holder[place] = random.choice([1.5 * true + 1e-3, 3 * true + 1] if up else [slight, true / 2])
        put(path, cert)
        expect(f"{model}: {key} bent from {true} to {holder[place]}", (2,), path, model)
        counts["bent"] += 1
        holder[place] = true
    infinite = [node for node in (cert, *nodes(cert["proof"])) if node.get("lip") == "inf"]
    for node in random.sample(infinite, min(2, len(infinite))):
        node["lip"] = 1e200
        put(path, cert)
        expect(f"{model}: an infinite lip bent", (2,), path, model)
        node["lip"] = "inf"
    rules = [part for part in nodes(cert["proof"]) if part["rule"] != "family"]
    node = random.choice(rules)
    node["rule"], word = "linear" if node["rule"] == "scale" else "scale", node["rule"]
    put(path, cert)
    expect(f"{model}: {word} called {node['rule']}", (2,), path, model)
    node["rule"] = word


def unnumbered(cert, path, model):
    """A number that is absent is 0: so is the index of the first head, and no other one's."""
    heads = [node for node in nodes(cert["proof"]) if "index" in node]
    for node in heads[:2]:
        true = node.pop("index")
        put(path, cert)
        expect(f"{model}: head {true} without its index", (2,) if true else (0,), path, model)
        node["index"] = true


def jump(cert, path, model):
    assert cert["lip"] == "inf" and cert["examples"]
    cert["examples"][0].update(radius=1e-9, verdict="certified")
    put(path, cert)
    expect(f"{model}: a radius of a network that jumps", (2,), path, model)


def silence(cert, path, model):
    """The last norm layer states nothing: all is true but the radii, and the constants around examples."""
    last = [node for node in nodes(cert["proof"]) if node["rule"] == "layernorm"][-1]
    order = list(nodes(cert["proof"]))
    behind = order[[node is last for node in order].index(True):]
    for node in order:
        if any(node is one for one in behind) or any(part is last for part in nodes(node)):
            node.update(lip="inf", out="inf")
    del last["norm"]
    cert["lip"] = "inf"
    put(path, cert)
    expect(f"{model}: radii without the norm of a layer", (2,), path, model)
    for example in cert["examples"]:
        example.update(radius=0, verdict="unknown", lip="inf")
    put(path, cert)
    expect(f"{model}: the same without radii", (0,), path, model)


def overstate(cert, path, model):
    """Radii that are the largest around their examples, but for 2 %: a twentieth more, more than the room, or those of another."""
    examples, what = cert["examples"], "pixels" if "pixels" in cert["examples"][0] else "ids"
    true = [example["radius"] for example in examples]
    for example, radius in zip(examples, true):
        if radius == 0:
            continue
        for more in (1.05 * radius, 0.25 * (1 + 1e-9)) if radius < 0.23 else (0.25 * (1 + 1e-9),):
            example["radius"] = more
            put(path, cert)
            expect(f"{model}: a radius around an example bent from {radius} to {more}", (2,), path, model)
            counts["bent"] += 1
        example["radius"] = radius
    if len(true) == 2 and max(true) > 1.05 * min(true):
        examples[0][what], examples[1][what] = examples[1][what], examples[0][what]
        put(path, cert)
        expect(f"{model}: the inputs of two examples for each other", (2,), path, model)
        counts["bent"] += 1


def nodes(node):
    yield node
    for part in node.get("of", []):
        yield from nodes(part)


def flip(path, model, file):
    with open(file, "rb") as original:
        data = bytearray(original.read())
    at, bit = random.randrange(len(data)), 1 << random.randrange(8)
    data[at] ^= bit
    bad = os.path.join(model, "flipped.safetensors")
    with open(bad, "wb") as out:
        out.write(data)
    expect(f"{model}: bit {bit} of byte {at} flipped", (2,), path, bad)
    counts["flipped"] += 1


def fuzz(text, header, model, file, path):
    """Scribbles on both files: any exit code but a failure; of the model with the hash set right, so that its header is read."""
    data = bytearray(text.encode())
    for _ in range(random.randint(1, 3)):
        data[random.randrange(len(data))] = random.choice(b'0123456789-+.eE"{}[],: \\nul\x00\xff')
    with open(path, "wb") as out:
        out.write(data)
    expect(f"{model}: scribbled", (0, 1, 2, 3), path, model, (second,))
    with open(file, "rb") as original:
        weights = bytearray(original.read())
    for _ in range(random.randint(1, 3)):
        weights[random.randrange(8 if random.random() < 0.2 else header)] = random.randrange(256)
    bad = os.path.join(model, "scribbled.safetensors")
    with open(bad, "wb") as out:
        out.write(weights)
    cert = json.loads(text)
    cert["model"] = {"bytes": len(weights), "sha256": check.Weights(bytes(weights)).hash}
    put(path, cert)
    expect(f"{model}: a scribbled model", (0, 1, 2, 3), path, bad, (second,))
    counts["fuzzed"] += 2


def tolerate(model, cert_path, norm):
    """Radii for a runtime that is off: confirmed by both; refused by both once it is off by half a margin, or nearly with the radii of f itself."""
    with open(cert_path, encoding="utf-8") as text:
        exact = json.load(text)
    best = max((example["margin"] for example in exact["examples"] if example["radius"] > 0), default=0)
    path = os.path.join(model, "tolerant.json")
    if not best:
        return
    subprocess.run([TAUT, "certify", model, "--norm", norm, "--radius", "0.25", "--n-ex", "2", "--local", "--tolerance", repr(best / 64),
                    "--out", path], check=True, stdout=subprocess.DEVNULL)
    with open(path, encoding="utf-8") as text:
        cert = json.load(text)
    assert cert["tolerance"] == best / 64
    expect(f"{model}, {norm}: tolerant", (0,), path, model)
    for off in (0.51 * best, "inf"):
        cert["tolerance"] = off
        put(path, cert)
        expect(f"{model}, {norm}: tolerance bent to {off}", (2,), path, model)
    cert["tolerance"], cert["examples"] = 0.45 * best, exact["examples"]  # constants jump with the radius: some of a margin may be spare
    put(path, cert)
    bound = any(1e-6 < example["radius"] < 0.24 for example in exact["examples"])
    expect(f"{model}, {norm}: the radii of no tolerance", (2,) if bound else (0, 2), path, model)
    counts["tolerant"] += 1


def judge(name):
    model = os.path.join(FOLDER, name)
    file, path = os.path.join(model, "model.safetensors"), os.path.join(model, "bent.json")
    randomise(file, 0.5)
    with open(file, "rb") as weights:
        header = 8 + struct.unpack("<Q", weights.read(8))[0]
    for norm in ("tokens", "flat"):
        cert_path = os.path.join(model, norm + ".json")
        examples = [] if name.startswith(("encoder", "series")) else ["--n-ex", "2", "--local"]
        subprocess.run([TAUT, "certify", model, "--norm", norm, "--radius", "0.25", "--out", cert_path] + examples, check=True,
                       stdout=subprocess.DEVNULL)
        with open(cert_path, encoding="utf-8") as text:
            cert = json.load(text)
        expect(f"{name}, {norm}: true", (0,), cert_path, model)
        counts["confirmed"] += 1
        counts["certified"] += sum(example["radius"] > 0 for example in cert.get("examples", []))
        if name.startswith("jumping"):  # nothing is said of examples, but a radius is refused
            jump(copy.deepcopy(cert), path, model)
            del cert["examples"]
        if examples and "layernorm" in name:
            assert all(example["radius"] > 0 for example in cert["examples"])
            silence(copy.deepcopy(cert), path, model)
        if examples and any(node["rule"] == "layernorm" or "o_norm" in node for node in nodes(cert["proof"])):
            overstate(copy.deepcopy(cert), path, model)
        unnumbered(copy.deepcopy(cert), path, model)
        bend(copy.deepcopy(cert), path, model, max(1, round(3 * EFFORT)))
        if examples:
            tolerate(model, cert_path, norm)
        for _ in range(max(1, round(EFFORT))):
            flip(cert_path, model, file)
            fuzz(json.dumps(cert), header, model, file, path)


def arithmetic(rounds):
    """Sums, products, quotients and matrix products, of several matrices too, hold the exact value; norms are never called smaller than they are."""
    for _ in range(rounds):
        n, k = random.randint(1, 9), random.choice([1, 2, 3, 20, 300])
        entry = lambda: random.gauss(0, 1) * 10 ** random.uniform(-9, 9)  # noqa: E731
        a, b = (numpy.array([[entry() for _ in range(k)] for _ in range(n)]) for _ in "ab")
        exact = [[sum(Fraction(x) * Fraction(y) for x, y in zip(row, other)) for other in b] for row in a]
        for got, true in [(Interval(a) @ b.T, exact), ((Interval(numpy.stack([b, a])) @ b.T)[1], exact),
                          (Interval(a).sum()[:, None], [[sum(map(Fraction, row))] for row in a])] + [
                (apply(Interval(a), Interval(b)), [[apply(Fraction(x), Fraction(y)) for x, y in zip(*two)] for two in zip(a, b)])
                for apply in (lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x / y)]:
            held = all(Fraction(lo) <= value <= Fraction(hi) for row in zip(got.lo, got.hi, true) for lo, hi, value in zip(*row))
            scale = numpy.abs(a).max() * max(1, numpy.abs(b).max() * k, (1 / numpy.abs(b)).max()) + numpy.abs(b).max()
            narrow = (got.hi - got.lo <= 1e-13 * scale).all()
            if not held or not narrow:
                fails.append("arithmetic")
                print("FAIL an interval is too narrow" if not held else "FAIL an interval is far too wide")
        a = a / numpy.abs(a).max()
        top = numpy.linalg.norm(a, 2)
        if norm_is_at_most(a, top * (1 - 1e-9)) or not norm_is_at_most(a, top * (1 + 1e-9)):
            fails.append("norm")
            print(f"FAIL the norm of a matrix of {n} by {k}, {top!r}")


def refusal(read, *arguments):
    """Why it is refuted; None: it is read.  What ends in another way ends this test."""
    try:
        read(*arguments)
    except check.Verdict as verdict:
        code, why = verdict.args
        return why if code == REFUTED else f"exit {code}: {why}"
    return None


def constants():
    """A constant that is no float32 number makes another function."""
    for kind, value, want in (("f", 0.5, None), ("f", 0.1, "it cannot be 0.1"), ("l", [0.5, 0.1], "it cannot be 0.1"), ("a", 0.1, None)):
        why = refusal(tree.read_constant, kind, value, "it")
        if why != want:
            fails.append("constants")
            print(f"FAIL {value} read as {kind}: {why}")


def leaves():
    """A module without parts says nothing of them, not even that there are none."""
    for node, want in (({"rule": "sinusoid"}, None), ({"rule": "sinusoid", "of": []}, "wave has the unknown key 'of'")):
        why = refusal(tree.Module, {**node, "name": "wave"}, "", SimpleNamespace(old=False))
        if why != want:
            fails.append("leaves")
            print(f"FAIL {node}: {why}")


def rewrite(name, old, new, code, words, sayers):
    """A certificate of the same model with another word or number in its tree: both end with the code, sayers with these words."""
    model = os.path.join(FOLDER, name)
    with open(os.path.join(model, "model.safetensors"), "rb") as file:
        data = file.read()
    assert old in data and len(old) == len(new)
    data = data.replace(old, new)
    bad, path = os.path.join(model, "rewritten.safetensors"), os.path.join(model, "bent.json")
    with open(bad, "wb") as file:
        file.write(data)
    with open(os.path.join(model, "tokens.json"), encoding="utf-8") as text:
        cert = json.load(text)
    cert["model"] = {"bytes": len(data), "sha256": check.Weights(data).hash}
    put(path, cert)
    expect(f"{name}: {new!r} for {old!r}", (code,), path, bad)
    if any(words not in checker(path, bad)[1] for checker in sayers):
        fails.append("rewrite")
        print(f"FAIL {new!r} for {old!r} is not refused for its own sake")


def unreadable(name):
    """What is no JSON is no certificate (1), whatever else is wrong with it; a model file whose hash is right and that is none refutes (2)."""
    model = os.path.join(FOLDER, name)
    with open(os.path.join(model, "model.safetensors"), "rb") as file:
        data = file.read()
    bad, path = os.path.join(model, "rewritten.safetensors"), os.path.join(model, "bent.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"format": "taut-certificate", "lip": 1e999, "lip": 1')
    expect(f"{name}: a certificate that is cut short", (1,), path, model)
    with open(os.path.join(model, "tokens.json"), encoding="utf-8") as text:
        cert = json.load(text)
    for what, wrong in ("no JSON", data[:8] + b"[" + data[9:]), ("NaN", data[:9] + b"NaN," + data[13:]), ("cut short", b"\xff" * 8 + data[8:]):
        with open(bad, "wb") as file:
            file.write(wrong)
        cert["model"] = {"bytes": len(wrong), "sha256": check.Weights(wrong).hash}
        put(path, cert)
        expect(f"{name}: a model file: {what}", (2,), path, bad)


random.seed(1)
constants()
leaves()
arithmetic(round(20 * EFFORT) + 1)
for run in sorted(os.listdir(FOLDER)):
    judge(run)
unreadable("image-plash")
rewrite("image-plash", b'\\"plash\\"', b'\\"blash\\"', 3, "not know the rule", (first, second))
for base in (b"0.999", b"1e-99", b"-9999"):
    rewrite("text-rope", b'\\"rope\\":10000', b'\\"rope\\":' + base, 2, "no base", (second,))
print(f"{len(os.listdir(FOLDER))} architectures: " + ", ".join(f"{count} {word}" for word, count in counts.items()))
sys.exit(bool(fails))
