#!/usr/bin/env python3
"""Confirms or refutes a certificate of taut: python3 checker/check.py CERT MODEL

It shares nothing with `taut check` but docs/certificate.md.  Exit code 0: confirmed; 1: a file cannot be read; 2: it does not
check; 3: neither, because an example is left open, a module is not known or something is too large.
"""
import os
import re
import sys
from types import SimpleNamespace

import numpy as np

from claim import Claim
from examples import check_example
from interval import Interval, length, sqrt
from proof import confirm
from reader import UNKNOWN, UNREADABLE, Verdict, Weights, need, need_keys, parse_json, read_bytes, whole
from rules.rivals import JUMPS
from tree import read_tree

FIELDS = ("format", "version", "tool", "model", "norm", "tokens", "region", "lip", "defect", "tolerance", "for", "proof", "examples")
REGIONS = {"text": ("room", "reach"), "image": ("box", "room"), "series": ("rows", "room", "reach")}

def read_region(table, kind, root, weights):
    """Room, and the size of what enters."""
    need_keys(table, REGIONS[kind], "region")
    region = Claim({**table, "rule": ""}, "", "region")
    room = Interval(region.number("room"))
    if kind == "image":
        need(repr(table.get("box")) == "[0.0, 1.0]", "region: box is not [0, 1]")
        return room, sqrt(float(root.d)) + room
    longest = region.number("rows") if kind == "series" else length(weights.get("embed.weight")).hi.max()
    return room, region.at_least("reach", Interval(longest) + room)

def check(cert_path, model_path):
    cert = parse_json(read_bytes(cert_path), cert_path)
    need(isinstance(cert, dict) and cert.get("format") == "taut-certificate", f"{cert_path} is no certificate", UNREADABLE)
    model_path = os.path.join(model_path, "model.safetensors") if os.path.isdir(model_path) else model_path
    weights = Weights(read_bytes(model_path))
    need(whole(cert.get("version"), 2) == 3, "it is of another version", UNKNOWN)
    need_keys(cert, FIELDS, "the certificate")
    need(cert.get("model") == {"bytes": weights.size, "sha256": weights.hash}, "it is about another model file")
    table = cert.get("for", "-")
    need(cert.get("norm") in ("tokens", "flat") and isinstance(cert.get("tool", ""), str) and isinstance(table, str)
         and re.fullmatch("[!-~]{1,15}", table), "norm, tool or for is no such word")
    need("for" not in cert or "tolerance" in cert, "it is for kernels and states no tolerance of theirs")
    weights.open()
    root, kind = read_tree(weights)
    need(whole(cert.get("tokens")) == root.t, "tokens are not the model's")
    need(isinstance(cert.get("examples", []), list), "examples are no list")
    room, x = read_region(cert.get("region"), kind, root, weights)
    first = root
    while first.rule == "sequence":
        first = first.parts[0]
    where = SimpleNamespace(root=root, body=root.parts[0], first=first if kind == "image" else None, kind=kind, weights=weights,
                            flat=cert["norm"] == "flat", room=room, jumps=any(m.rule in JUMPS for m in root.all()))
    lip, _, defect = confirm(root, cert.get("proof"), x, where)
    claim = Claim({**cert, "rule": ""}, "", "the certificate")
    where.finite = all(np.isfinite(weights.get(name)).all() for name in weights.table)
    lip = claim.at_least("lip", lip if where.finite else np.inf)
    claim.at_least("defect", defect if lip.hi < np.inf else 0.0)
    where.tolerance = Interval(claim.number("tolerance"))
    proved = [check_example(node, f"example {i}", where) for i, node in enumerate(cert.get("examples", []))]
    need(all(proved), f"{proved.count(False)} of {len(proved)} examples are left open", UNKNOWN)
    off = f", for logits that are within {cert['tolerance']!r}, which is not confirmed" if "tolerance" in cert else ""
    nothing = ", which promises nothing," if lip.hi == np.inf else ","
    return f"confirmed: lip {float(lip.hi)!r} in norm {cert['norm']}{nothing} and {len(proved)} examples{off}"

def main(arguments):
    try:
        need(len(arguments) == 2, "usage: python3 checker/check.py CERT MODEL", UNREADABLE)
        print(check(*arguments))
        return 0
    except Verdict as verdict:
        code, why = verdict.args
    except MemoryError:
        code, why = UNKNOWN, "it is too large for this checker"
    except Exception as error:  # no file should come here
        code, why = UNKNOWN, f"this checker failed: {error!a}"
    print(f"check.py: {why}", file=sys.stderr)
    return code

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
