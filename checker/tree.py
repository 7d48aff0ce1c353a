"""Which function a model file holds: the tree of its metadata, every constant, every tensor and every size of it."""
import numpy as np

from reader import REFUTED, UNKNOWN, Verdict, need, need_keys, parse_json, whole
from rules.plash import sketch_fits

# Of every rule: its constants (w: whole and at least 1, n: whole, b: 0 or 1, f: float32, a: any number, c: a curve, l: a list of
# float32) | its tensors and their sizes (t tokens of d features come in; another letter is any size, the same everywhere) | what
# comes out.  A question mark: may be absent.
FOUR = "q.weight:d,d q.bias:d? k.weight:d,d k.bias:d? v.weight:d,d v.bias:d? o.weight:d,d o.bias:d?"
RULES = {
    "sequence": "", "mix": "keep:f mix:f", "parts": "first:w", "ask": "first:w", "linear": "tied:b | weight:e,d bias:e? | t e",
    "pixels": "height:w width:w patch_height:w patch_width:w scale:l shift:l | | patches patch",
    "prefix": "| weight:d | t+1 d", "pool": "mean:b | | 1 d", "l2pool": "| | 1 d", "concat": "| | 1 t*d", "position": "| weight:p,d",
    "tokens": "first:w? count:w? | | count d", "neighbours": "cols:w | | t near", "halve": "| | half d", "sinusoid": "",
    "scale": "factor:f", "pointwise": "curve:c factor:f", "channel": "| weight:d", "maxmin": "group:w",
    "layernorm": "eps:f centred:b | weight:d bias:d?", "centernorm": "factor:f | weight:d bias:d?",
    "mlp": "curve:c factor:f | in.weight:h,d in.bias:h? out.weight:e,h out.bias:e? | t e",
    "potential": "curve:c | weight:h,d bias:h? scale:1", "sll": "curve:c | weight:h,d bias:h? log_q:h",
    "attention": f"heads:w scale:f out:f causal:b alibi:b rope:a queries:w? | {FOUR} | asked d",
    "cosattention": f"heads:w scale:f out:f causal:b alibi:b rope:a eps:f values:b | {FOUR}",
    "l2attention": "heads:w tied:b | q.weight:d,d v.weight:d,d o.weight:d,d",
    "attlip": "heads:w eta:f tol:f reflected:b steps:a near:f rope:a | weight:r,d root:1?",
    "window": f"heads:w out:f scale:f causal:b size:w global:w? | {FOUR}",
    "cosformer": f"heads:w out:f queries:w? tokens:w eps:f | {FOUR} | asked d",
    "performer": f"heads:w out:f queries:w? scale:f directions:l | {FOUR} | asked d",
    "nystrom": f"heads:w out:f queries:w? scale:f landmarks:w steps:n | {FOUR} | asked d",
    "clustered": f"heads:w out:f queries:w? scale:f clusters:w steps:n first:b | {FOUR} | asked d",
    "probsparse": f"heads:w out:f scale:f causal:b factor:w seed:a | {FOUR}",
    "plash": f"heads:w out:f queries:w? scale:f pair:n route:f | {FOUR} prototypes:groups,d kg.weight:d,d vg.weight:d,d | asked d",
    "sketch": "floor:f tau:f degrees:l sizes:l hash:l | beta:k | t e",
    "posattention": "heads:w causal:b far:b row:w? gain:l? | v.weight:d,d o.weight:d,d o.bias:d? distance.weight:heads,k",
}
CURVES = ("gelu", "gelu_tanh", "relu", "silu", "tanh", "elu", "abs")
PARTS = {"sequence": (1, np.inf), "mix": (1, np.inf), "parts": (2, 2), "ask": (1, 1), "plash": (1, 1)}
# What else must hold of the sizes.
FITS = {
    "pixels": lambda c: c["t"] == 1 and c["patches"] * c["patch"] == c["d"] and c["height"] % c["patch_height"] == 0
    and c["width"] % c["patch_width"] == 0 and len(c["scale"]) == len(c["shift"]),
    "tokens": lambda c: c["first"] < c["t"] and c["first"] + c["count"] <= c["t"], "neighbours": lambda c: c["cols"] <= c["d"],
    "position": lambda c: c["p"] >= c["t"], "maxmin": lambda c: c["d"] % c["group"] == 0,
    "parts": lambda c: 0 < c["first"] < c["t"],
    "attention": lambda c: c["queries"] < c["t"] and not (c["queries"] and c["causal"]),
    "cosformer": lambda c: c["eps"] > 0 and c["queries"] < c["t"] and c["tokens"] >= max(c["asked"], c["t"] - c["queries"]),
    "performer": lambda c: c["scale"] >= 0 and c["queries"] < c["t"] and len(c["directions"]) % (c["d"] // c["heads"]) == 0,
    "nystrom": lambda c: c["steps"] <= 100 and c["queries"] < c["t"],
    "clustered": lambda c: c["steps"] <= 100 and c["queries"] < c["t"],
    "plash": lambda c: c["queries"] < c["t"] and c["pair"] <= (0 if c["queries"] else 2), "sketch": sketch_fits,
    "attlip": lambda c: c["r"] % c["heads"] == 0, "layernorm": lambda c: c["eps"] >= 0, "cosattention": lambda c: c["eps"] >= 0,
    "posattention": lambda c: (c["k"] == c["t"] and not c["causal"] and not c["far"] and c["t"] % c["row"] == 0 if c["row"] else
                               c["t"] <= c["context"] and (c["causal"] or c["k"] % 2 == 1))
    and (isinstance(c["gain"], int) or not c["row"] and len(c["gain"]) == c["heads"] and bool((c["gain"] > 0).all())),
}

def read_constant(kind, value, what):
    if kind == "l":
        need(isinstance(value, list) and value, f"{what} is no list")
        return np.array([read_constant("f", number, what) for number in value])
    need(value in CURVES if kind == "c" else isinstance(value, float), f"{what} is no constant of its kind")
    need(value in (0, 1) if kind == "b" else kind != "f" or float(np.float32(value)) == value, f"{what} cannot be {value!a}")
    return whole(value, kind == "w", 2 ** 31) if kind in "wnb" else value

class Module:
    """A module of the tree: `c` its constants and sizes, `t` tokens of `d` features come in, `t_out` of `d_out` go out."""

    def __init__(self, node, path, weights):
        need(isinstance(node, dict), "a module is no object")
        self.rule, self.name, self.weights, self.c, self.rows = node.get("rule"), node.get("name", ""), weights, {}, set()
        self.finite, self.joint, self.norm, self.near = True, False, np.inf, None  # the last three are learned from the proof
        named = (self.rule, node.get("name", "none"))
        need(all(isinstance(word, str) and word for word in named), "a module's rule or name is no word")
        need(self.rule in RULES, f"this checker does not know the rule {self.rule!a}", UNKNOWN)
        self.path = ".".join(word for word in (path, self.name) if word)
        words = (RULES[self.rule] + "||").split("|")
        kinds, self.tensors, self.gives = [[pair.split(":") for pair in part.split()] for part in words[:3]]
        need_keys(node, {"rule", "name", *(["of"] if self.rule in PARTS else []), *dict(kinds)}, self.path)
        for key, kind in kinds:
            self.need(key in node or "?" in kind, f"there is no {key}")
            absent = None if key == "count" else 0
            self.c[key] = read_constant(kind[0], node[key], f"{self.path}: {key}") if key in node else absent
        for i, (degree, buckets) in enumerate(zip(self.c.get("degrees", ()), self.c.get("sizes", ()))):  # a weight for each
            self.tensors.append([f"degree{degree:.0f}.weight", f"e,D{i}"])
            self.c[f"D{i}"] = buckets
        (few, many), of = PARTS.get(self.rule, (0, 0)), node.get("of", [])
        self.need(isinstance(of, list) and few <= len(of) <= many, "it has a wrong number of parts")
        self.need(len(self.path) < 64, "its path is too long")
        self.parts = [Module(part, self.path, weights) for part in of]

    def need(self, condition, why, code=2):
        need(condition, f"{self.path or 'the model'} ({self.rule}): {why}", code)

    def all(self):
        return [self] + [module for part in self.parts for module in part.all()]

    def key(self, name):
        return "embed.weight" if self.rule == "linear" and name == "weight" and self.c["tied"] else f"{self.path}.{name}"

    def get(self, name):
        """A tensor; what may be absent and is, is 0."""
        value = self.weights.get(self.key(name)) if self.key(name) in self.weights.table else np.zeros(1)
        return value[None] if name in self.rows else value

    def take_tensors(self):
        for name, shape in self.tensors:
            found, letters = self.weights.shape(self.key(name)), shape.strip("?").split(",")
            absent = self.c.get("centred") == 0 if name == "bias" else name == "root" and self.c["eta"] != 0
            if "?" in shape and (found is None or absent):
                continue
            if len(letters) == 2 and len(found or ()) == 1:  # a matrix of one row
                self.rows, found = {*self.rows, name}, (1, *found)
            self.need(found is not None and len(found) == len(letters), f"there is no tensor {name} of {len(letters)} sizes")
            for letter, size in zip(letters, found):
                self.need(size == (1 if letter == "1" else self.c.setdefault(letter, size)), f"{name} has the shape {found}")
            self.weights.used.add(self.key(name))
            self.finite = self.finite and bool(np.isfinite(self.get(name)).all())

    def fit(self, t, d):
        """Sizes and tensors, from what comes in."""
        self.t, self.d, c = t, d, self.c
        c.update({"t": t, "d": d, "asked": c.get("queries") or t, "half": (t + 1) // 2, "t+1": t + 1, "t*d": t * d, "1": 1})
        self.take_tensors()
        if self.rule == "pixels":
            c["patches"] = (c["height"] // c["patch_height"]) * (c["width"] // c["patch_width"])
            c["patch"] = c["patch_height"] * c["patch_width"] * len(c["scale"])
        c["count"] = t - c.get("first", 0) if c.get("count") is None else c["count"]
        c["near"] = d + 2 * c["cols"] if "cols" in c else c.get("near")
        c["context"] = c.get("k", 0) if c.get("causal") or c.get("row") else (c.get("k", 0) + 1) // 2
        self.need(self.rule == "attlip" or d % c.get("heads", 1) == 0, "its heads do not fit")
        self.need(c.get("rope", 0) == 0 or c["rope"] >= 1, "its rotations have no base")
        self.need(FITS.get(self.rule, lambda c: True)(c), "its sizes do not fit")
        t_out, d_out = (c[word[0]] for word in self.gives or (["t"], ["d"]))
        if self.rule == "parts":
            (a, d_out), (b, other) = self.parts[0].fit(c["first"], d), self.parts[1].fit(t - c["first"], d)
            self.need(d_out == other, "its parts have different widths")
            t_out = a + b
        if self.rule == "plash":
            self.need(self.parts[0].fit(c["groups"], 2 * d) == (c["groups"], d), "its part has another shape")
        for part in self.parts if self.rule not in ("parts", "plash") else ():
            t_out, d_out = part.fit(t_out, d_out)
            self.need(self.rule != "mix" or (t_out, d_out) == (t, d), "a part changes the shape")
        if self.rule == "ask":
            self.need((t_out, d_out) == (c["first"], d) and c["first"] <= t, "its part has another shape")
            t_out = t
        self.need(t_out > 0 and d_out > 0, "nothing comes out")
        self.need(t_out * d_out <= 2 ** 26, "too large for this checker", UNKNOWN)
        self.t_out, self.d_out = t_out, d_out
        return t_out, d_out

def build(node, t, d, weights):
    """The root, with body and perhaps head and scale; every tensor of the file is one of theirs."""
    root = Module(node, "", weights)
    rules = [part.rule for part in root.parts]
    behind = ([], ["linear"], ["linear", "scale"])  # nothing: features come out
    need(root.rule == "sequence" and rules and rules[1:] in behind, "the root is not body and head")
    need(len(rules) < 3 or root.parts[2].c["factor"] > 0, "the scale of the logits is not positive")
    root.fit(t, d)
    for name in weights.table:
        need(name in weights.used, f"the tree has no use for the tensor {name!a}")
    return root

def read_tree(weights):
    """The tree of a model file: its root, and whether it reads an image, a text or a series."""
    tree = parse_json(weights.words.get("taut.tree", "null").encode(), "taut.tree", REFUTED)
    need_keys(tree, ("version", "tokens", "width", "unit", "root"), "taut.tree")
    need(whole(tree.get("version"), 1, 2 ** 31) in (2, 3, 4), "taut.tree is of another version", UNKNOWN)
    t, d, table = whole(tree.get("tokens"), 1, 2 ** 31), whole(tree.get("width"), 1, 2 ** 31), weights.shape("embed.weight")
    need(t <= 2 ** 20 and t * d <= 2 ** 26, "inputs are too large for this checker", UNKNOWN)
    need(tree.get("unit") in ((0.0, 1.0) if table is None else (0.0,)), "unit cannot be that")
    need((table or (0, d))[1:] == (d,), "embed.weight does not fit")
    weights.used.add("embed.weight")
    try:
        root = build(tree.get("root"), t, d, weights)
    except Verdict as verdict:  # an old tree that does not fit may say the same by other words
        raise Verdict(UNKNOWN, verdict.args[1]) if tree["version"] < 4 else verdict
    return root, "image" if tree["unit"] else "series" if table is None else "text"
