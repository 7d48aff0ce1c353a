#!/usr/bin/env python3
"""Writes tests/golden/*.safetensors: what PyTorch computes for three small transformers and for Muon.

    python3 tools/dump_reference.py            from the repository's root; needs PyTorch, the tests do not

Each model file holds the recipe (metadata "taut.recipe"), the weights under taut's names, one batch
(ids, targets; -1: no target), its logits, mean loss, correct and gradients ("grad.<weight>"), ten training
batches (train.ids, train.targets), the loss before each of the ten AdamW steps on them (losses) and how
far each weight went in those steps ("moved.<weight>", l2).

Everything is float64, except that weights start as float32 numbers, so that float and double kernels start
from the same point.  taut rounds the constants of an architecture (eps, scales, residual factors) to
float32, so that kernels and bounds speak of the same number; f32() below is that rounding.
"""
import json
import struct
from fractions import Fraction

import torch
import torch.nn.functional as F
from torch import nn

FOLDER = "tests/golden/"
VOCAB, BATCH, STEPS = 37, 3, 10
TRAIN = dict(optimiser="adamw", lr="0.001", beta1="0.9", beta2="0.95", eps="1e-8", weight_decay="0.1",
             schedule="constant", batch=str(BATCH), steps=str(STEPS))
CLIP = {"gpt": "1", "gpt_rope": "1", "bert": "10"}  # 1 cuts every gradient here, 10 some and not others

# Every key is written out, so that a changed default in taut does not change what is compared.
COMMON = dict(width="32", depth="2", context="16", norm_eps="1e-5", rope_base="10000", dropout="0")
RECIPES = {
    "gpt": dict(COMMON, arch="gpt", heads="4", mlp="64", norm="layernorm", norm_place="pre",
                embed_norm="false", positions="learned", bias="true", tied="true", activation="gelu",
                activation_factor="1", residual="plain", attention_scale="inv_sqrt_head", attention_out="1",
                logit_scale="1"),
    "gpt_rope": dict(COMMON, arch="gpt", heads="2", mlp="48", norm="rmsnorm", norm_place="pre",
                     embed_norm="false", positions="rope", bias="false", tied="false", activation="silu",
                     activation_factor="8/9", residual="convex", residual_alpha="0.3",
                     attention_scale="inv_head", attention_out="1/3", logit_scale="2"),
    "bert": dict(COMMON, arch="encoder", heads="4", mlp="64", norm="layernorm", norm_place="post",
                 embed_norm="true", positions="learned", bias="true", tied="true", activation="gelu",
                 activation_factor="1", residual="plain", attention_scale="inv_sqrt_head", attention_out="1",
                 logit_scale="1"),
}
# The encoder's batches are shorter than its context: the last positions must then get gradient 0.
TOKENS = {"gpt": 16, "gpt_rope": 16, "bert": 13}


def f32(x):
    return struct.unpack("<f", struct.pack("<f", float(x)))[0]


class Config:
    """A recipe's strings as numbers."""

    def __init__(self, r):
        self.encoder = r["arch"] == "encoder"
        self.width, self.depth, self.heads, self.context, self.mlp = (
            int(r[k]) for k in ("width", "depth", "heads", "context", "mlp"))
        self.bias, self.tied, self.embed_norm = (r[k] == "true" for k in ("bias", "tied", "embed_norm"))
        self.pre, self.rope = r["norm_place"] == "pre", r["positions"] == "rope"
        self.base = float(r["rope_base"])
        self.norm = {"layernorm": nn.LayerNorm, "rmsnorm": nn.RMSNorm}[r["norm"]]
        self.eps = f32(r["norm_eps"])
        self.curve = {"gelu": F.gelu, "silu": F.silu}[r["activation"]]
        self.curve_factor = f32(Fraction(r["activation_factor"]))
        dh = self.width // self.heads
        self.scale = f32({"inv_sqrt_head": dh**-0.5, "inv_head": 1 / dh}[r["attention_scale"]])
        self.attention_out = f32(Fraction(r["attention_out"]))
        self.logit_scale = f32(r["logit_scale"])
        a = float(r["residual_alpha"]) if r["residual"] == "convex" else None
        self.keep, self.mix = (1.0, 1.0) if a is None else (f32(1 - a), f32(a))
        self.vocab = VOCAB + 1 if self.encoder else VOCAB  # an encoder's last token is the mask

    def make_norm(self):
        return self.norm(self.width, eps=self.eps)

    def act(self, x):
        return self.curve_factor * self.curve(x)


def rotate(x, base):
    """Rotary positions: (i, i + dh/2) is a complex number, turned by position * base^(-2i/dh)."""
    t, half = x.shape[-2], x.shape[-1] // 2
    angle = torch.outer(torch.arange(t, dtype=x.dtype), base ** (-torch.arange(half, dtype=x.dtype) / half))
    z = torch.complex(x[..., :half], x[..., half:]) * torch.polar(torch.ones_like(angle), angle)
    return torch.cat([z.real, z.imag], -1)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.q, self.k, self.v, self.o = (nn.Linear(c.width, c.width, bias=c.bias) for _ in range(4))

    def forward(self, x):
        c = self.c
        q, k, v = (f(x).unflatten(-1, (c.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        if c.rope:
            q, k = rotate(q, c.base), rotate(k, c.base)
        o = F.scaled_dot_product_attention(q, k, v, is_causal=not c.encoder, scale=c.scale)
        return self.o(c.attention_out * o.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, self.attn, self.norm1, self.norm2 = c, Attention(c), c.make_norm(), c.make_norm()
        self.mlp = nn.ModuleDict({"in": nn.Linear(c.width, c.mlp, bias=c.bias),
                                  "out": nn.Linear(c.mlp, c.width, bias=c.bias)})

    def feed(self, x):
        return self.mlp["out"](self.c.act(self.mlp["in"](x)))

    def branch(self, x, f, norm):
        c = self.c
        return c.keep * x + c.mix * f(norm(x)) if c.pre else norm(c.keep * x + c.mix * f(x))

    def forward(self, x):
        return self.branch(self.branch(x, self.attn, self.norm1), self.feed, self.norm2)


class Head(nn.Module):
    """Scores of the tokens; a tied head borrows the embedding and owns at most a bias."""

    def __init__(self, c):
        super().__init__()
        if not c.tied:
            self.weight = nn.Parameter(torch.empty(c.vocab, c.width))
        self.bias = nn.Parameter(torch.empty(c.vocab)) if c.encoder and c.bias else None

    def forward(self, x, table):
        return F.linear(x, getattr(self, "weight", table), self.bias)


class Transformer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.embed = nn.Embedding(c.vocab, c.width)
        if not c.rope:
            self.pos = nn.Embedding(c.context, c.width)
        if c.embed_norm:
            self.embed_norm = c.make_norm()
        self.block = nn.ModuleList(Block(c) for _ in range(c.depth))
        if c.pre:
            self.norm = c.make_norm()
        if c.encoder:
            self.transform, self.transform_norm = nn.Linear(c.width, c.width, bias=c.bias), c.make_norm()
        self.head = Head(c)

    def forward(self, ids):
        return self.finish(self.begin(ids), self.block)

    def begin(self, ids):
        x = self.embed(ids)
        if not self.c.rope:
            x = x + self.pos(torch.arange(ids.shape[1]))
        return self.embed_norm(x) if self.c.embed_norm else x

    def finish(self, x, blocks):
        for f in blocks:
            x = f(x)
        if self.c.pre:
            x = self.norm(x)
        if self.c.encoder:
            x = self.transform_norm(self.c.act(self.transform(x)))
        return self.c.logit_scale * self.head(x, self.embed.weight)

    def loss(self, ids, targets):
        logits = self(ids)
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)


def is_matrix(name, p):
    return p.dim() == 2 and not name.startswith(("embed.", "pos."))


@torch.no_grad()
def randomise(model, gen):
    """Larger than a usual start, gains and biases too: every term then matters and no gradient is tiny."""
    for name, p in model.named_parameters():
        std = 0.25 if is_matrix(name, p) else 0.5 if p.dim() == 2 else 0.3
        mean = 1.0 if p.dim() == 1 and name.endswith("weight") else 0.0
        p.copy_((mean + std * torch.randn(p.shape, generator=gen)).float().double())


def batches(c, count, tokens, gen):
    """GPT: the next token of random text.  Encoder: a third of the tokens masked, no target elsewhere."""
    text = torch.randint(VOCAB, (count, BATCH, tokens + 1), generator=gen)
    if not c.encoder:
        return text[..., :-1].contiguous(), text[..., 1:].contiguous()
    ids, targets = text[..., :-1].clone(), text[..., :-1].clone()
    masked = torch.rand(ids.shape, generator=gen) < 1 / 3
    masked[..., 0, 0] = True
    ids[masked], targets[~masked] = VOCAB, -1
    return ids, targets


@torch.no_grad()
def check_against_torch_layers(model, ids, logits):
    """The same weights in PyTorch's own transformer layer; its scale is not rounded to float32: 1e-6."""
    c, layers = model.c, []
    for b in model.block:
        layer = nn.TransformerEncoderLayer(c.width, c.heads, c.mlp, dropout=0.0, activation="gelu",
                                           layer_norm_eps=c.eps, batch_first=True, norm_first=c.pre)
        qkv = (b.attn.q, b.attn.k, b.attn.v)
        parts = {"self_attn.out_proj": b.attn.o, "linear1": b.mlp["in"], "linear2": b.mlp["out"],
                 "norm1": b.norm1, "norm2": b.norm2}
        state = {f"{name}.{key}": v for name, part in parts.items() for key, v in part.state_dict().items()}
        for key in ("weight", "bias"):
            state[f"self_attn.in_proj_{key}"] = torch.cat([getattr(f, key) for f in qkv])
        layer.load_state_dict(state)
        layers.append(layer.train())  # eval would take another, fused path
    mask = None if c.encoder else nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
    theirs = model.finish(model.begin(ids), [lambda x, f=f: f(x, src_mask=mask) for f in layers])
    assert (theirs - logits).abs().max() < 1e-6 * logits.abs().max(), "our torch model is not torch's"


def train(model, ids, targets, clip):
    lr, beta1, beta2, eps, decay = (float(TRAIN[k]) for k in ("lr", "beta1", "beta2", "eps", "weight_decay"))
    groups = [{"params": [p for n, p in model.named_parameters() if is_matrix(n, p) == matrix],
               "weight_decay": decay if matrix else 0.0} for matrix in (True, False)]
    opt = torch.optim.AdamW(groups, lr=lr, betas=(beta1, beta2), eps=eps, foreach=False)
    losses, norms = [], []
    for x, y in zip(ids, targets):
        opt.zero_grad()
        _, loss = model.loss(x, y)
        loss.backward()
        # Not clip_grad_norm_: it divides by norm + 1e-6, so it cuts to a little less than asked.
        norm = torch.linalg.vector_norm(torch.stack([p.grad.norm() for p in model.parameters()]))
        for p in model.parameters():
            p.grad *= min(1.0, clip / norm.item())
        opt.step()
        losses.append(loss.item())
        norms.append(norm.item())
    return losses, norms


def dump_model(name, recipe, seed):
    gen, c = torch.Generator().manual_seed(seed), Config(recipe)
    model = Transformer(c)
    randomise(model, gen)
    start = {n: p.detach().clone() for n, p in model.named_parameters()}
    ids, targets = (b[0] for b in batches(c, 1, TOKENS[name], gen))
    logits, loss = model.loss(ids, targets)
    loss.backward()
    if not c.rope:
        check_against_torch_layers(model, ids, logits)
    tensors = {n: ("F32", p) for n, p in start.items()}
    tensors |= {"grad." + n: ("F64", p.grad.clone()) for n, p in model.named_parameters()}
    tensors |= {"ids": ("I32", ids), "targets": ("I32", targets), "logits": ("F64", logits.detach()),
                "loss": ("F64", loss.detach().view(1)),
                "correct": ("I32", (logits.argmax(-1) == targets).sum().view(1))}
    ids, targets = batches(c, STEPS, TOKENS[name], gen)
    losses, norms = train(model, ids, targets, float(CLIP[name]))
    tensors |= {"train.ids": ("I32", ids), "train.targets": ("I32", targets),
                "losses": ("F64", torch.tensor(losses))}
    tensors |= {"moved." + n: ("F64", (p.detach() - start[n]).norm().view(1))
                for n, p in model.named_parameters()}
    text = "".join(f"[{section}]\n" + "".join(f"{k} = {v}\n" for k, v in keys.items())
                   for section, keys in (("model", recipe), ("train", dict(TRAIN, clip=CLIP[name]))))
    write_safetensors(FOLDER + name + ".safetensors", tensors, {"taut.recipe": text})
    print(f"{name}: loss {loss.item():.4f}, training {losses[0]:.4f} .. {losses[-1]:.4f}, "
          f"gradient norms {min(norms):.2f} .. {max(norms):.2f}")


POLYNOMIALS = {
    "you6": [[v / 1024 for v in row] for row in (
        (3955, -8306, 5008), (3735, -6681, 3463), (3799, -6499, 3211), (4019, -6385, 2906),
        (2677, -3029, 1162), (2172, -1833, 682))],
    "nanogpt5": [(4.0848, -6.8946, 2.9270), (3.9505, -6.3029, 2.6377), (3.7418, -5.5913, 2.3037),
                 (2.8769, -3.1427, 1.2046), (2.8366, -3.0525, 1.2012)],
    "classic5": [(3.4445, -4.7750, 2.0315)] * 5,
}


def dump_muon(seed):
    """By the singular values, which is what the polynomials mean; taut multiplies matrices instead."""
    gen, tensors = torch.Generator().manual_seed(seed), {}
    for name, shape in {"tall": (24, 10), "wide": (9, 20), "square": (12, 12)}.items():
        x = torch.randn(shape, generator=gen).float().double()
        tensors[name] = ("F32", x)
        for polynomial, steps in POLYNOMIALS.items():
            u, s, vt = torch.linalg.svd(x / x.norm(), full_matrices=False)
            for a, b, c in steps:
                s = a * s + b * s**3 + c * s**5
            tensors[f"{name}.{polynomial}"] = ("F64", (u * s) @ vt)
    write_safetensors(FOLDER + "muon.safetensors", tensors, {})


def write_safetensors(path, tensors, metadata):
    """8 bytes of header length, a JSON header padded to 8 bytes, then the numbers; F64 first: aligned."""
    types = {"F64": "<f8", "F32": "<f4", "I32": "<i4"}
    header, body = {"__metadata__": metadata} if metadata else {}, b""
    for name, (dtype, t) in sorted(tensors.items(), key=lambda item: (item[1][0] != "F64", item[0])):
        data = t.contiguous().numpy().astype(types[dtype]).tobytes()
        header[name] = {"dtype": dtype, "shape": list(t.shape), "data_offsets": [len(body), len(body + data)]}
        body += data
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + body)


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)  # one order of sums: the same bytes every time
    for seed, (name, recipe) in enumerate(RECIPES.items(), 1):
        dump_model(name, recipe, seed)
    dump_muon(4)
