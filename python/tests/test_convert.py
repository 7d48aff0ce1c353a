"""Checkpoints that PyTorch wrote, named by different programs: taut answers what PyTorch answers.

Weights are larger than a usual start, gains and biases too, so that every term matters.  Skipped where PyTorch, or the program
itself, is missing.
"""
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import taut

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")

VOCAB, WIDTH, DEPTH, HEADS, CONTEXT = 300, 16, 2, 4, 12
MEAN, STD = [0.5, 0.25, 0.375], [0.25, 0.5, 0.5]


@torch.no_grad()
def randomised(module, seed):
    gen = torch.Generator().manual_seed(seed)
    for name, p in module.named_parameters():
        mean = 1.0 if p.dim() == 1 and name.endswith(("weight", "gamma")) else 0.0
        p.copy_(mean + 0.3 * torch.randn(p.shape, generator=gen))
    return module.eval()


def write(folder, module, prefix="", name="model.safetensors"):
    os.makedirs(folder, exist_ok=True)
    state = {prefix + k: v.clone().contiguous() for k, v in module.state_dict().items()}
    safetensors.save_file(state, os.path.join(folder, name))
    return Path(folder) / name


def ids(n=2, t=CONTEXT, seed=0):
    return np.random.default_rng(seed).integers(2, 250, (n, t)).astype(np.int32)


def images(side=8, n=2):
    return np.random.default_rng(1).random((n, side, side, 3))


def near(ours, theirs):
    theirs = theirs.detach().double().numpy()
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() <= 1e-5 * np.abs(theirs).max()


def normalised(x):
    mean, std = (torch.tensor(v, dtype=torch.float64).view(1, 3, 1, 1) for v in (MEAN, STD))
    return (torch.tensor(x).permute(0, 3, 1, 2) - mean) / std


PIXELS = {"model.pixel_mean": " ".join(map(str, MEAN)), "model.pixel_std": " ".join(map(str, STD))}


class NanoGPT(torch.nn.Module):
    """As nanoGPT names its parts."""

    def __init__(self, bias):
        super().__init__()
        nn, linear = torch.nn, lambda i, o: torch.nn.Linear(i, o, bias=bias)

        def block():
            return nn.ModuleDict({
                "ln_1": nn.LayerNorm(WIDTH, bias=bias),
                "attn": nn.ModuleDict({"c_attn": linear(WIDTH, 3 * WIDTH), "c_proj": linear(WIDTH, WIDTH)}),
                "ln_2": nn.LayerNorm(WIDTH, bias=bias),
                "mlp": nn.ModuleDict({"c_fc": linear(WIDTH, 4 * WIDTH), "c_proj": linear(4 * WIDTH, WIDTH)})})

        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(VOCAB, WIDTH), "wpe": nn.Embedding(CONTEXT, WIDTH),
            "h": nn.ModuleList([block() for _ in range(DEPTH)]), "ln_f": nn.LayerNorm(WIDTH, bias=bias)})
        self.lm_head = nn.Linear(WIDTH, VOCAB, bias=False)
        self.lm_head.weight = self.transformer.wte.weight

    def forward(self, x):
        f, t = torch.nn.functional, self.transformer
        z = t.wte(x) + t.wpe(torch.arange(x.shape[1]))
        for b in t.h:
            q, k, v = (u.unflatten(-1, (HEADS, -1)).transpose(1, 2)
                       for u in b.attn.c_attn(b.ln_1(z)).split(WIDTH, -1))
            a = f.scaled_dot_product_attention(q, k, v, is_causal=True)
            z = z + b.attn.c_proj(a.transpose(1, 2).flatten(2))
            z = z + b.mlp.c_proj(f.gelu(b.mlp.c_fc(b.ln_2(z))))
        return self.lm_head(t.ln_f(z))


class Plain(torch.nn.Module):
    """nn.TransformerEncoder between an embedding and a head."""

    def __init__(self, first, head=True):
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 24, dropout=0, batch_first=True, norm_first=first,
                                                 activation="gelu" if first else "relu")
        self.embedding = torch.nn.Embedding(VOCAB, WIDTH)
        self.pos_embed = torch.nn.Parameter(torch.zeros(1, CONTEXT, WIDTH))
        self.encoder = torch.nn.TransformerEncoder(layer, DEPTH, norm=torch.nn.LayerNorm(WIDTH) if first else None,
                                                   enable_nested_tensor=False)
        self.fc = torch.nn.Linear(WIDTH, VOCAB) if head else None

    def forward(self, x):
        z = self.encoder(self.embedding(x) + self.pos_embed[:, :x.shape[1]])
        return self.fc(z) if self.fc else z.mean(1)


@pytest.mark.parametrize("prefix", ["", "_orig_mod.", "module.model."])
@pytest.mark.parametrize("bias", [True, False])
def test_nanogpt(tmp_path, prefix, bias):
    m, x = randomised(NanoGPT(bias), 1), ids()
    with taut.load(write(tmp_path, m, prefix), tokenizer="bytes", set={"model.heads": HEADS}) as model:
        near(model(x), m.double()(torch.tensor(x).long()))


def test_heads_in_a_config(tmp_path):
    m, x = randomised(NanoGPT(True), 2), ids()
    path = write(tmp_path, m)
    (tmp_path / "config.json").write_text(json.dumps({"n_head": HEADS}))
    for where in (path, tmp_path):
        with taut.load(where, tokenizer="bytes") as model:
            near(model(x), m.double()(torch.tensor(x).long()))


@pytest.mark.parametrize("shard", ["1GB", "8KB"])
def test_gpt2(tmp_path, shard):
    t = pytest.importorskip("transformers")
    m = randomised(t.GPT2LMHeadModel(t.GPT2Config(vocab_size=VOCAB, n_embd=WIDTH, n_layer=DEPTH, n_head=HEADS,
                                                  n_positions=CONTEXT, bos_token_id=0, eos_token_id=0)), 3)
    m.save_pretrained(tmp_path, max_shard_size=shard)
    x = ids()
    where = [tmp_path] + list(tmp_path.glob("*.index.json"))
    assert len(where) == (1 if shard == "1GB" else 2)
    for path in where:
        with taut.load(path, tokenizer="bytes") as model:
            near(model(x), m.double()(torch.tensor(x).long()).logits)


@pytest.mark.parametrize("scale", [None, 0.5])
def test_timm(tmp_path, scale):
    timm = pytest.importorskip("timm")
    m = randomised(timm.models.vision_transformer.VisionTransformer(
        img_size=8, patch_size=4, embed_dim=WIDTH, depth=DEPTH, num_heads=HEADS, num_classes=5, init_values=scale), 4)
    (tmp_path / "config.json").write_text(json.dumps({"architecture": "vit_of_ours", "num_heads": HEADS,
                                                      "pretrained_cfg": {"mean": MEAN, "std": STD}}))
    write(tmp_path, m, "module.")
    with taut.load(tmp_path) as model:
        near(model(images()), m.double()(normalised(images())))


def test_torchvision(tmp_path):
    tv = pytest.importorskip("torchvision")
    m = randomised(tv.models.VisionTransformer(image_size=8, patch_size=4, num_layers=DEPTH, num_heads=HEADS,
                                               hidden_dim=WIDTH, mlp_dim=24, num_classes=5), 5)
    path = write(tmp_path, m, "backbone.", "v.safetensors")
    with taut.load(path, set={"model.heads": HEADS, **PIXELS}) as model:
        near(model(images()), m.double()(normalised(images())))


@pytest.mark.parametrize("saved", [True, False])
def test_vit(tmp_path, saved):
    t = pytest.importorskip("transformers")
    m = randomised(t.ViTForImageClassification(t.ViTConfig(
        hidden_size=WIDTH, num_hidden_layers=DEPTH, num_attention_heads=HEADS, intermediate_size=24, image_size=8,
        patch_size=4, num_labels=5)), 6)
    m.save_pretrained(tmp_path)
    if not saved:  # the names that the module itself has
        write(tmp_path, m)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"image_mean": MEAN, "image_std": STD}))
    with taut.load(tmp_path) as model:
        near(model(images()), m.double()(normalised(images())).logits)


@pytest.mark.parametrize("first", [False, True])
def test_transformer_encoder(tmp_path, first):
    m, x = randomised(Plain(first), 7), ids()
    given = {"model.heads": HEADS, **({"model.norm_place": "pre", "model.activation": "gelu"} if first else {})}
    with taut.load(write(tmp_path, m, "net."), tokenizer="bytes", set=given) as model:
        near(model(x), m.double()(torch.tensor(x).long()))


def test_transformer_encoder_without_a_head(tmp_path):
    m, x = randomised(Plain(False, head=False), 8), ids(t=7)
    with taut.load(write(tmp_path, m), tokenizer="bytes", set={"model.heads": HEADS}) as model:
        near(model(x), m.double()(torch.tensor(x).long()))


def test_names_of_ones_own(tmp_path):
    m, x = randomised(NanoGPT(True), 9), ids()
    odd = {"transformer.wte": "a", "transformer.wpe": "b", "transformer.h": "body", "ln_1": "n1", "attn.c_attn": "three",
           "attn.c_proj": "back", "ln_2": "n2", "mlp.c_fc": "wide", "mlp.c_proj": "narrow", "transformer.ln_f": "end"}
    state = {}
    for k, v in m.state_dict().items():
        for old, new in odd.items():
            k = k.replace(old, new)
        state[k] = v.clone()
    safetensors.save_file({k: v for k, v in state.items() if k != "lm_head.weight"}, tmp_path / "odd.safetensors")
    names = {"embed": "a", "pos": "b", "block.#.norm1": "body.#.n1", "block.#.attn.qkv": "body.#.three",
             "block.#.attn.o": "body.#.back", "block.#.norm2": "body.#.n2", "block.#.mlp.in": "body.#.wide",
             "block.#.mlp.out": "body.#.narrow", "norm": "end"}
    map_ = {f"{mine}.{w}": f"{theirs}.{w}" for mine, theirs in names.items() for w in ("weight", "bias")
            if w == "weight" or mine not in ("embed", "pos")}
    recipe = tmp_path / "own.ini"
    recipe.write_text(f"[model]\narch = gpt\nwidth = {WIDTH}\ndepth = {DEPTH}\nheads = {HEADS}\ncontext = {CONTEXT}\n"
                      f"mlp = {4 * WIDTH}\nactivation = gelu\n")
    with taut.load(tmp_path / "odd.safetensors", tokenizer="bytes", recipe=recipe, map=map_) as model:
        near(model(x), m.double()(torch.tensor(x).long()))
    with pytest.raises(taut.Error, match="no weight nobody.weight"):
        taut.load(tmp_path / "odd.safetensors", tokenizer="bytes", recipe=recipe, map={**map_, "nobody.weight": "a.weight"})


def test_two_prefixes(tmp_path):
    m = randomised(NanoGPT(True), 10)
    state = {p + k: v.clone() for p in ("student.", "teacher.") for k, v in m.state_dict().items()}
    safetensors.save_file(state, tmp_path / "two.safetensors")
    given = {"tokenizer": "bytes", "set": {"model.heads": HEADS}}
    with pytest.raises(taut.Error, match='under "student.transformer." and under "teacher.transformer."'):
        taut.load(tmp_path / "two.safetensors", **given)
    with taut.load(tmp_path / "two.safetensors", prefix="teacher.transformer.", **given) as model:
        near(model(ids()), m.double()(torch.tensor(ids()).long()))


def tokenizer_of(folder, words):
    lines = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + words
    (folder / "vocab.txt").write_text("\n".join(lines) + "\n")
    return len(lines)


@pytest.mark.parametrize("pooling", [None, {"pooling_mode_mean_tokens": True}, {"pooling_mode": "cls"}])
def test_sentence_encoder(tmp_path, pooling):
    t = pytest.importorskip("transformers")
    size = tokenizer_of(tmp_path, "the quick brown fox jump ##s over lazy dog".split())
    m = randomised(t.BertModel(t.BertConfig(vocab_size=size, hidden_size=WIDTH, num_hidden_layers=DEPTH,
                                            num_attention_heads=HEADS, intermediate_size=24,
                                            max_position_embeddings=CONTEXT)), 11)
    m.save_pretrained(tmp_path)
    if pooling:
        (tmp_path / "1_Pooling").mkdir()
        (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": WIDTH, **pooling}))
    first = bool(pooling) and "cls" in pooling.values()
    with taut.load(tmp_path) as model:
        model.save(tmp_path / "ours.safetensors")
    text = "The quick fox jumps"
    row = torch.tensor([[2, 5, 6, 8, 9, 10, 3]])
    theirs = m.double()(row).last_hidden_state
    theirs = theirs[:, 0] if first else theirs.mean(1)
    with taut.load(tmp_path / "ours.safetensors") as model:
        near(model.features([text]), theirs)
        near(model(row.numpy().astype(np.int32)), theirs)
        near(model.features([text], pool="mean" if first else "class"),
             m(row).last_hidden_state.mean(1) if first else m(row).last_hidden_state[:, 0])
        assert np.abs(np.linalg.norm(model.features([text], unit=True)) - 1) < 1e-12
        with pytest.raises(taut.Error, match="no head"):
            model.evaluate(data=str(tmp_path / "vocab.txt"))


def test_minilm(tmp_path):
    """A sentence encoder of MiniLM's shape with BERT's own vocabulary: tokens as transformers has them, features as PyTorch."""
    t = pytest.importorskip("transformers")
    vocab = Path(os.environ.get("TAUT_DATA", "")) / "tokenizers" / "bert-base-uncased" / "vocab.txt"
    if not vocab.is_file():
        pytest.skip("no tokenizers/bert-base-uncased among the data")
    m = randomised(t.BertModel(t.BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12,
                                            intermediate_size=1536)), 12)
    with torch.no_grad():
        for p in m.parameters():
            p.mul_(0.2 if p.dim() == 2 else 1)  # about as large as trained ones
    m.save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_bytes(vocab.read_bytes())
    theirs = t.BertTokenizer(str(vocab))
    texts = ["This framework generates embeddings for each input sentence.", "Sentences are passed as a list of strings.",
             "Caf\u00e9s, na\u00efvet\u00e9 & \u4e2d\u6587: 1,234.5 tokens?!"]
    with taut.load(tmp_path) as model:
        for text in texts:
            row = [101] + model.encode(text).tolist() + [102]
            assert row == theirs(text)["input_ids"]
            near(model.features([text]), m.double()(torch.tensor([row])).last_hidden_state.mean(1))


def test_failures_are_lists(tmp_path):
    program = os.environ.get("TAUT_PROGRAM", "build/taut")
    if not Path(program).is_file():
        pytest.skip("the program is not built")
    m = randomised(NanoGPT(True), 13)
    state = {k: v.clone() for k, v in m.state_dict().items()}
    state["transformer.h.1.mlp.c_fc.weight"] = torch.zeros(5, WIDTH)
    state["extra"] = torch.zeros(3)
    del state["transformer.ln_f.weight"]
    safetensors.save_file(state, tmp_path / "bad.safetensors")
    out = tmp_path / "out.safetensors"
    done = subprocess.run([program, "convert", str(tmp_path / "bad.safetensors"), "--tokenizer", "bytes", "--set",
                           f"model.heads={HEADS}", "--out", str(out)], capture_output=True, text=True)
    assert done.returncode == 1 and not out.exists()
    for line in (r"transformer.h.1.mlp.c_fc.weight", "64 x 16", "found 5 x 16", "transformer.ln_f.weight", "found nothing",
                 "extra"):
        assert line in done.stderr
