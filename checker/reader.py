"""Files, read so strictly that nobody can read them in two ways: JSON by RFC 8259, safetensors, SHA-256."""
import hashlib
import json
import math
import os
import re
import struct

import numpy as np

UNREADABLE, REFUTED, UNKNOWN = 1, 2, 3

class Verdict(Exception):
    """Why a certificate is not confirmed, after the exit code."""

def need(condition, why, code=REFUTED):
    if not condition:
        raise Verdict(code, why)

def need_keys(table, known, what):
    need(isinstance(table, dict), f"{what} is no object")
    for key in table:
        need(key in known, f"{what} has the unknown key {key!a}")

def whole(value, least=0, end=2 ** 53):
    """That number as an integer, if it is one."""
    need(isinstance(value, float) and value.is_integer() and least <= value < end, f"{value!a} is no such whole number")
    return int(value)

def read_bytes(path):
    """A whole file, if it is a plain one: pipes and devices may have no end."""
    try:
        need(os.path.isfile(path), f"{path}: no such file", UNREADABLE)
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError) as error:
        raise Verdict(UNREADABLE, f"{path}: {error}") from None

def parse_json(data, what, code=UNREADABLE):
    """The value of a JSON text, every number a float; `code` says what it is if it is none."""
    depth = deepest = 0
    for bracket in re.findall(rb"[][{}]", re.sub(rb'(?s)"(?:[^"\\]|\\.)*(?:"|\\?\Z)', b"", data)):  # a string may have no end
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    need(deepest <= 100, f"{what}: more than 100 objects and lists inside each other", code)
    faults = []  # of what is JSON to its end

    def number(text):
        if text[-1] in "Ny":  # NaN and Infinity
            raise ValueError(f"{text} is no JSON")
        faults.extend([f"{text[:40]} is too large a number"] * math.isinf(float(text)))
        return float(text)

    def table(pairs):
        faults.extend(["a key is there twice"] * (len(dict(pairs)) < len(pairs)))
        return dict(pairs)

    try:
        value = json.loads(data.decode(), parse_int=number, parse_float=number, parse_constant=number, object_pairs_hook=table)
        written = json.dumps(value, ensure_ascii=False)
        written.encode()  # fails for half a surrogate pair
    except (ValueError, RecursionError) as error:
        raise Verdict(code, f"{what}: {error}") from None
    need("\\u0000" not in written.replace("\\\\", ""), f"{what}: a string with \\u0000", code)
    need(not faults, f"{what}: {faults[:1]}")
    return value

class Weights:
    """The tensors and the words of a model file; `used` are the names that the tree has asked for."""

    def __init__(self, data):
        self.data, self.size, self.hash, self.used = data, len(data), hashlib.sha256(data).hexdigest(), set()

    def open(self):
        self.start = 8 + struct.unpack("<Q", self.data[:8].ljust(8))[0]
        need(self.start <= self.size, "the model file is cut short")
        header = parse_json(self.data[8:self.start], "the model's header", REFUTED)
        need(isinstance(header, dict), "the model's header is no object")
        self.words, self.table, at = header.pop("__metadata__", {}), {}, 0
        need_keys(self.words, self.words, "the metadata")
        need(all(isinstance(word, str) for word in self.words.values()), "the metadata are not words")
        for name, entry in header.items():
            need_keys(entry, ("dtype", "shape", "data_offsets"), f"tensor {name!a}")
            shape, ends = entry.get("shape"), entry.get("data_offsets")
            lists = isinstance(shape, list) and isinstance(ends, list) and len(ends) == 2
            need(entry.get("dtype") == "F32" and lists, f"{name!a} is no tensor of float32")
            self.table[name] = whole(ends[0]), whole(ends[1]), tuple(whole(n, 1) for n in shape)
        for first, last, shape in sorted(self.table.values()):
            need(first == at and last == at + 4 * math.prod(shape), "the tensors leave holes, overlap or have other sizes")
            at = last
        need(self.start + at == self.size, "the tensors do not fill the file")

    def shape(self, name): return self.table[name][2] if name in self.table else None

    def get(self, name):
        """A tensor in double, exactly; the file's float32 may be infinite or NaN."""
        first, last, shape = self.table[name]
        return np.frombuffer(self.data, "<f4", (last - first) // 4, self.start + first).astype(np.float64).reshape(shape)
