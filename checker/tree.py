"""Which function a model file holds: the tree of its metadata, every constant, every tensor and every size of it."""
import numpy as np

from reader import UNKNOWN, need, need_keys, parse_json, whole

# Of every rule: its constants (w: whole and at least 1, n: whole, b: 0 or 1, f: float32, a: any number, c: a curve, l: a list of float32);
# its tensors and their sizes (t tokens of d features come in; another letter is any size, the same everywhere); the sizes that come out.
# A question mark: may be absent.
FOUR = "q.weight:d,d q.bias:d? k.weight:d,d k.bias:d? v.weight:d,d v.bias:d? o.weight:d,d o.bias:d?"
RULES = {
    "sequence": "", "mix": "keep:f mix:f", "parts": "first:n", "ask": "first:n", "linear": "tied:b | weight:e,d bias:e? | t e",
    "pixels": "height:w width:w patch_height:w patch_width:w scale:l shift:l | | patches patch", "prefix": "| weight:d | t+1 d",
    "pool": "mean:b | | 1 d", "concat": "| | 1 t*d", "position": "| weight:p,d", "tokens": "first:n? count:n? | | count d",
    "neighbours": "cols:n | | t d+2*cols", "halve": "| | half d", "sinusoid": "", "scale": "factor:f", "pointwise": "curve:c factor:f",
    "channel": "| weight:d", "maxmin": "group:w", "layernorm": "eps:f centred:b | weight:d bias:d?",
    "centernorm": "factor:f | weight:d bias:d?", "mlp": "curve:c factor:f | in.weight:h,d in.bias:h? out.weight:e,h out.bias:e? | t e",
    "potential": "curve:c | weight:h,d bias:h? scale:1", "sll": "curve:c | weight:h,d bias:h? log_q:h",
    "attention": f"heads:w scale:f out:f causal:b alibi:b rope:a queries:w? | {FOUR} | asked d",
    "cosattention": f"heads:w scale:f out:f causal:b alibi:b rope:a eps:f values:b | {FOUR}",
    "l2attention": "heads:w tied:b | q.weight:d,d v.weight:d,d o.weight:d,d",
    "attlip": "heads:w eta:f tol:f reflected:b steps:a near:f rope:a | weight:r,d root:1?",
    "posattention": "heads:w causal:b far:b row:w? | v.weight:d,d o.weight:d,d o.bias:d? distance.weight:heads,k",
}
CURVES = ("gelu", "gelu_tanh", "relu", "silu", "tanh", "elu", "abs")
PARTS = {"sequence": (1, 128), "mix": (1, 128), "parts": (2, 2), "ask": (1, 1)}

def read_constant(kind, value, what):
    if kind == "c":
        need(value in CURVES, f"{what} is no curve")
    elif kind == "l":
        need(isinstance(value, list) and value, f"{what} is no list")
        return np.array([read_constant("f", number, what) for number in value])
    else:
        need(isinstance(value, float), f"{what} is no number")
        need(kind != "b" or value in (0, 1), f"{what} is neither 0 nor 1")
        need(kind != "f" or np.float32(value) == value, f"{what} is no float32")
    return whole(value, kind == "w") if kind in "wnb" else value

class Module:
    """A module of the tree: `c` its constants and sizes, `t`, `d` the tokens and the width that come in, `t_out`, `d_out` that go out."""

    def __init__(self, node, path, weights):
        need(isinstance(node, dict), "a module is no object")
        self.rule, self.name, self.weights, self.finite, self.c = node.get("rule"), node.get("name", ""), weights, True, {}
        need(isinstance(self.rule, str) and isinstance(self.name, str), "a module's rule or name is no word")
        need(self.rule in RULES, f"this checker does not know the rule {self.rule!a}", UNKNOWN)
        self.path = ".".join(word for word in (path, self.name) if word)
        self.need(len(self.path) <= 63, "its path is too long")
        kinds, self.tensors, self.gives = ([word.strip().split() for word in (RULES[self.rule] + "||").split("|")])[:3]
        kinds = dict(pair.split(":") for pair in kinds)
        need_keys(node, {"rule", "name", "of", *kinds}, self.path)
        for key, kind in kinds.items():
            self.need(key in node or "?" in kind, f"there is no {key}")
            self.c[key] = read_constant(kind[0], node[key], f"{self.path}: {key}") if key in node else None
        (few, many), of = PARTS.get(self.rule, (0, 0)), node.get("of", [])
        self.need(isinstance(of, list) and few <= len(of) <= many, "it has a wrong number of parts")
        self.parts = [Module(part, self.path, weights) for part in of]

    def need(self, condition, why, code=2):
        need(condition, f"{self.path or 'the model'} ({self.rule}): {why}", code)

    def key(self, name):
        return "embed.weight" if self.rule == "linear" and name == "weight" and self.c["tied"] else f"{self.path}.{name}"

    def get(self, name):
        """A tensor; what may be absent and is, is 0."""
        return self.weights.get(self.key(name)) if self.key(name) in self.weights.table else np.zeros(1)

    def take_tensors(self):
        for name, shape in (pair.split(":") for pair in self.tensors):
            found, letters = self.weights.shape(self.key(name)), shape.strip("?").split(",")
            absent = self.c.get("centred") == 0 if name == "bias" else name == "root" and self.c["eta"] != 0
            if "?" in shape and (found is None or absent):
                continue
            self.need(found is not None and len(found) == len(letters), f"there is no tensor {name} of {len(letters)} sizes")
            for letter, size in zip(letters, found):
                self.need(size == (1 if letter == "1" else self.c.setdefault(letter, size)), f"{name} has the shape {found}")
            self.weights.used.add(self.key(name))
            self.finite = self.finite and bool(np.isfinite(self.get(name)).all())

    def fit(self, t, d):
        """Sizes and tensors, from what comes in."""
        self.t, self.d, rule = t, d, self.rule
        c = self.c = {**self.c, "t": t, "d": d, "asked": self.c.get("queries") or t, "half": (t + 1) // 2, "t+1": t + 1, "t*d": t * d, "1": 1}
        self.take_tensors()
        fits = True
        if rule == "pixels":
            rows, columns, colours = c["height"] / c["patch_height"], c["width"] / c["patch_width"], len(c["scale"])
            fits = t == 1 and c["height"] * c["width"] * colours == d and len(c["shift"]) == colours and rows % 1 == columns % 1 == 0
            c["patches"], c["patch"] = int(rows * columns), c["patch_height"] * c["patch_width"] * colours
        elif rule == "tokens":
            c["first"], c["count"] = c["first"] or 0, t - (c["first"] or 0) if c["count"] is None else c["count"]
            fits = c["first"] + c["count"] <= t
        elif rule == "neighbours":
            fits, c["d+2*cols"] = c["cols"] <= d, d + 2 * c["cols"]
        elif rule == "posattention":
            c["context"] = c["k"] if c["causal"] or c["row"] else (c["k"] + 1) // 2
            fits = c["k"] == t and not c["causal"] and not c["far"] and t % c["row"] == 0 if c["row"] else t <= c["context"] and (c["causal"] or c["k"] % 2)
        elif rule in ("position", "maxmin", "attlip"):
            fits = c["p"] >= t if rule == "position" else (d if rule == "maxmin" else c["r"]) % c["group" if rule == "maxmin" else "heads"] == 0
        elif rule == "attention":
            fits = (c["queries"] or 0) < t and not (c["queries"] and c["causal"])
        self.need(fits and (rule == "attlip" or d % c.get("heads", 1) == 0), "its sizes do not fit")
        t_out, d_out = (c[size] for size in self.gives or ("t", "d"))
        if rule == "parts":
            self.need(0 < c["first"] < t, "first must leave tokens to both parts")
            (a, d_out), (b, other) = self.parts[0].fit(c["first"], d), self.parts[1].fit(t - c["first"], d)
            t_out = a + b
            self.need(d_out == other, "its parts have different widths")
        else:
            for part in self.parts:
                t_out, d_out = part.fit(t_out, d_out)
                self.need(rule != "mix" or (t_out, d_out) == (t, d), "a part changes the shape")
            self.need(rule != "ask" or (t_out, d_out) == (c["first"], d) and c["first"] <= t, "its part has another shape")
            t_out = t if rule == "ask" else t_out
        self.need(t_out > 0 and d_out > 0, "nothing comes out")
        self.need(t_out * d_out <= 2 ** 28, "too large for this checker", UNKNOWN)
        self.t_out, self.d_out = t_out, d_out
        return t_out, d_out

def read_tree(weights):
    """The tree of a model file: its root, and whether it reads an image, a text or a series."""
    tree = parse_json(weights.words.get("taut.tree", "null").encode(), "taut.tree")
    need_keys(tree, ("version", "tokens", "width", "unit", "root"), "taut.tree")
    need(tree.get("version") in (2.0, 3.0), "taut.tree is of another version", UNKNOWN)
    t, d, table = whole(tree.get("tokens"), 1), whole(tree.get("width"), 1), weights.shape("embed.weight")
    need(tree.get("unit") in (0.0, 1.0), "unit is neither 0 nor 1")
    need(t * d <= 2 ** 28, "inputs are too large for this checker", UNKNOWN)
    need(table is None or tree["unit"] == 0 and len(table) == 2 and table[1] == d, "embed.weight does not fit")
    weights.used.add("embed.weight")
    root = Module(tree.get("root"), "", weights)
    rules = [part.rule for part in root.parts]
    need(root.rule == "sequence" and rules[1:] in (["linear"], ["linear", "scale"]), "the root is not body, head and perhaps a scale")
    need(len(rules) == 2 or root.parts[2].c["factor"] > 0, "the scale of the logits is not positive")
    root.fit(t, d)
    for name in weights.table:
        need(name in weights.used, f"the tree has no use for the tensor {name!a}")
    return root, "image" if tree["unit"] else "series" if table is None else "text"
