"""PyTorch: layers as people write them by hand and as packages have them, and text classifiers, each with its logits compared."""
import math

import numpy as np
import pytest

import taut

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import taut.torch  # noqa: E402
from modules import settled  # noqa: E402

IMAGES = torch.rand(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))
IDS = torch.randint(0, 40, (2, 12), generator=torch.Generator().manual_seed(0))
SIZES = dict(vocab_size=300, num_hidden_layers=2, hidden_size=32, num_attention_heads=4, intermediate_size=64,
             max_position_embeddings=24)


def agrees(module, example, tmp_path, **options):
    """Converted with equal logits, certified, and the proof confirmed; the model."""
    model = taut.torch.convert(module, example, tmp_path / "m.safetensors", **options)
    with torch.no_grad():
        theirs = module(example)
    theirs = getattr(theirs, "logits", theirs).numpy()
    ours = model(taut.torch.to_numpy(example, model.kind == "images"))
    np.testing.assert_allclose(ours, theirs, atol=1e-5 * np.abs(theirs).max())
    cert = model.certify(norm="flat")
    assert cert.lipschitz > 0 and taut.check(cert, model).verdict == "confirmed"
    return model


class Written(nn.Module):
    """Attention without any layer of attention: how scores are scaled and masked is `score`."""

    def __init__(self, score, heads=4):
        super().__init__()
        self.qkv, self.out, self.score, self.heads = nn.Linear(32, 96), nn.Linear(32, 32), score, heads
        self.register_buffer("mask", torch.tril(torch.ones(1, 1, 12, 12)))
        self.tau = nn.Parameter(torch.tensor(0.7))

    def forward(self, x):
        n, t, w = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        if self.heads > 1:
            q, k, v = (m.view(n, t, self.heads, w // self.heads).transpose(1, 2) for m in (q, k, v))
        y = self.score(self, q, k, q.shape[-1]) @ v
        return self.out(y.transpose(1, 2).reshape(n, t, w) if self.heads > 1 else y)


def plain(m, q, k, d): return F.softmax(q @ k.transpose(-2, -1) / math.sqrt(d), dim=-1)
def early(m, q, k, d): return torch.softmax(torch.matmul(q * d**-0.5, k.mT), -1)
def twice(m, q, k, d): return F.dropout(torch.softmax((q / d**0.25) @ (k / d**0.25).transpose(2, 3), 3), 0.1, m.training)
def tempered(m, q, k, d): return torch.softmax(m.tau * (q @ k.transpose(-2, -1)), -1)
def unscaled(m, q, k, d): return torch.softmax(q @ k.transpose(-2, -1), -1)
def shared(m, q, k, d): return torch.softmax(q @ q.transpose(-2, -1) / math.sqrt(d), -1)
def filled(m, q, k, d): return ((q @ k.mT) * d**-0.5).masked_fill(m.mask == 0, float("-inf")).softmax(-1)
def low(m, q, k, d): return ((q @ k.mT) / math.sqrt(d)).masked_fill(m.mask[0] == 0, -1e9).softmax(-1)
def added(m, q, k, d): return torch.softmax(q @ k.mT / math.sqrt(d) + torch.full((12, 12), -torch.inf).triu(1), -1)
def chosen(m, q, k, d): return torch.softmax(torch.where(m.mask > 0, q @ k.mT / math.sqrt(d), -torch.inf), -1)


def window(m, q, k, d): return (q @ k.mT).masked_fill(torch.ones(12, 12).triu(3) > 0, -torch.inf).softmax(-1)
def halfway(m, q, k, d): return (q @ k.mT + torch.full((12, 12), -3.0).triu(1)).softmax(-1)
def asked(m, q, k, d): return (q @ k.mT).masked_fill(q.mean() > 0, -torch.inf).softmax(-1)
def columns(m, q, k, d): return (q @ k.mT / math.sqrt(d)).softmax(-2)
def squared(m, q, k, d): return ((q @ k.mT) * (q @ k.mT)).softmax(-1)


class Text(nn.Module):
    """Pre-norm blocks around any attention; `ends` makes logits of tokens."""

    def __init__(self, attention, ends, answers=40, scale=None):
        super().__init__()
        self.embed, self.pos = nn.Embedding(40, 32), nn.Parameter(torch.randn(1, 12, 32))
        self.parts = nn.ModuleList(nn.ModuleList([
            nn.LayerNorm(32), attention(), nn.LayerNorm(32), nn.Sequential(nn.Linear(32, 48), nn.GELU(), nn.Linear(48, 32))])
            for _ in range(2))
        self.scale = scale and nn.ParameterList([nn.Parameter(torch.full((32,), scale)) for _ in range(4)])
        self.norm, self.dense, self.head, self.ends = nn.LayerNorm(32), nn.Linear(32, 20), nn.Linear(32, answers), ends

    def forward(self, ids):
        h = self.embed(ids) + self.pos
        for i, (norm1, attention, norm2, mlp) in enumerate(self.parts):
            a = attention(norm1(h))
            h = h + (a * self.scale[2 * i] if self.scale else a)
            b = mlp(norm2(h))
            h = h + (self.scale[2 * i + 1] * b if self.scale else b)
        return self.ends(self, h)


def tokens(m, h): return m.head(m.norm(h))


@pytest.mark.parametrize("score,causal", [
    (plain, False), (early, False), (twice, False), (tempered, False), (unscaled, False), (shared, False), (filled, True),
    (low, True), (added, True), (chosen, True)], ids=lambda f: getattr(f, "__name__", None))
def test_written_attention(score, causal, tmp_path):
    for heads in (4, 1):
        if heads == 4 or score in (plain, added):
            model = agrees(settled(Text(lambda: Written(score, heads), tokens)), IDS, tmp_path)
            assert f"arch = {'gpt' if causal else 'encoder'}" in model.info["recipe"]


@pytest.mark.parametrize("score,match", [
    (window, "neither causal nor empty"), (halfway, "neither causal nor empty"), (asked, "gt|depends on the input"),
    (columns, "softmax of something else"), (squared, "softmax of something else")],
    ids=lambda f: getattr(f, "__name__", None))
def test_attention_that_is_refused(score, match):
    with pytest.raises(taut.torch.Unmapped, match=match) as caught:
        taut.torch.convert(settled(Text(lambda: Written(score), tokens)), IDS)
    assert "\n" not in str(caught.value)
    assert "test_torch_layers.py" in str(caught.value), "the line is named"


class Stacked(nn.Module):
    """nn.MultiheadAttention as people call it: three times the same, weights asked for by default."""

    def __init__(self, weights=True):
        super().__init__()
        self.inner, self.weights = nn.MultiheadAttention(32, 4, batch_first=True), weights

    def forward(self, x):
        return self.inner(x, x, x, need_weights=self.weights)[0]


@pytest.mark.parametrize("weights", [True, False])
def test_multihead_attention(weights, tmp_path):
    agrees(settled(Text(lambda: Stacked(weights), tokens)), IDS, tmp_path)


@pytest.mark.parametrize("scale", [0.3, None])
def test_strengths_of_channels(scale, tmp_path):
    model = agrees(settled(Text(lambda: Written(plain), tokens, scale=scale)), IDS, tmp_path)
    assert ("block.1.scale2.weight" in model.weights) == bool(scale)
    back = taut.torch.export(model)
    with torch.no_grad():
        np.testing.assert_allclose(back(IDS).numpy(), model(IDS.numpy()), atol=1e-5)


def mean(m, h): return m.head(m.norm(h).mean(1))
def bare(m, h): return m.head(h.mean(dim=1))
def first(m, h): return m.head(m.norm(h)[:, 0])
def pooler(m, h): return nn.functional.linear(torch.tanh(m.dense(m.norm(h)[:, 0])), m.head.weight[:, :20])
def last(m, h): return m.head(m.norm(h)[:, -1])
def most(m, h): return m.head(m.norm(h).amax(1))


@pytest.mark.parametrize("ends", [mean, bare, first, pooler], ids=lambda f: f.__name__)
def test_text_classifiers(ends, tmp_path):
    module = settled(Text(lambda: Written(plain), ends, answers=5))
    model = agrees(module, IDS, tmp_path)
    assert "arch = classifier" in model.info["recipe"] and model.classes == 5
    x = model.embed(IDS.numpy())
    cert = model.certify(norm="flat", x=IDS.numpy(), y=model(IDS.numpy()).argmax(-1), radius=0.5)
    slope = np.linalg.norm(model(x[0]) - model(x[1])) / np.linalg.norm(x[0] - x[1])
    assert slope <= cert.lipschitz and len(cert.radii) == 2
    net = taut.torch.export(model)
    with torch.no_grad():
        np.testing.assert_allclose(net(IDS).numpy(), module(IDS).numpy(), atol=1e-5)


@pytest.mark.parametrize("score,ends,match", [
    (plain, last, "not another one"), (plain, most, "amax"), (filled, mean, "causal mask in a model that answers once"),
    (plain, lambda m, h: m.head(F.relu(m.norm(h))), "relu"),
    (plain, lambda m, h: m.head(m.norm(h)).mean(1), "not that of a linear")])
def test_ends_that_are_refused(score, ends, match):
    with pytest.raises(taut.torch.Unmapped, match=match) as caught:
        taut.torch.convert(settled(Text(lambda: Written(score), ends)), IDS)
    assert "line " in str(caught.value) and "\n" not in str(caught.value)


def test_hugging_face_classifiers(tmp_path):
    transformers = pytest.importorskip("transformers")
    ids = torch.randint(0, 300, (2, 10), generator=torch.Generator().manual_seed(1))
    bert = settled(transformers.BertForSequenceClassification(transformers.BertConfig(**SIZES, num_labels=3)))
    model = agrees(bert, ids, tmp_path)
    assert model.classes == 3 and "head_activation = tanh" in model.info["recipe"]
    for module, match in ((transformers.BertModel(transformers.BertConfig(**SIZES)), "answers"),
                          (transformers.RobertaForSequenceClassification(transformers.RobertaConfig(**SIZES)), "line|answers")):
        with pytest.raises(taut.torch.Unmapped, match=match) as caught:
            taut.torch.convert(module, ids)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("options", [{}, {"init_values": 0.1}, {"pos_embed": "none", "class_token": False, "global_pool": "avg",
                                                                 "fc_norm": False}], ids=["plain", "layerscale", "mean"])
def test_timm(options, tmp_path):
    timm = pytest.importorskip("timm")
    module = timm.models.VisionTransformer(img_size=16, patch_size=4, num_classes=10, embed_dim=32, depth=2, num_heads=4,
                                           **options)
    model = agrees(settled(module), IMAGES, tmp_path)
    assert ("residual = channel" in model.info["recipe"]) == ("init_values" in options)


@pytest.mark.parametrize("options,match", [({"global_pool": "avg"}, "line"), ({"qk_norm": True}, "line"),
                                           ({"reg_tokens": 2}, "line")])
def test_timm_refused(options, match):
    timm = pytest.importorskip("timm")
    module = timm.models.VisionTransformer(img_size=16, patch_size=4, num_classes=10, embed_dim=32, depth=2, num_heads=4,
                                           **options)
    with pytest.raises(taut.torch.Unmapped, match=match):
        taut.torch.convert(settled(module), IMAGES)


def test_torchvision(tmp_path):
    torchvision = pytest.importorskip("torchvision")
    module = torchvision.models.VisionTransformer(16, 4, 2, 4, 32, 64, num_classes=10)
    agrees(settled(module), IMAGES, tmp_path)


class Images(nn.Module):
    """Positions of the patches alone, a norm before the first block (as CLIP has it), a head with a hidden layer."""

    def __init__(self):
        super().__init__()
        self.patch, self.cls = nn.Conv2d(3, 32, 4, 4), nn.Parameter(torch.randn(1, 1, 32))
        self.pos, self.norm = nn.Parameter(torch.randn(16, 32)), nn.LayerNorm(32)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True), 2,
                                             enable_nested_tensor=False)
        self.head = nn.Sequential(nn.Linear(32, 24), nn.Tanh(), nn.Linear(24, 10))

    def forward(self, x):
        h = self.patch(x).flatten(2).transpose(1, 2) + self.pos
        h = self.norm(torch.cat([self.cls.expand(len(x), -1, -1), h], 1))
        return self.head(self.encoder(h)[:, 0])


def test_images(tmp_path):
    agrees(settled(Images()), IMAGES, tmp_path)


def test_units_of_examples():
    module = settled(Images())
    for example, options, match in (
            (2 * IMAGES - 1, {}, "mean and std say"), (IMAGES * float("nan"), {}, "pixels from nan"),
            (255 * IMAGES, {}, "in \\[0, 1\\]"), (IMAGES, {"mean": [0.5, 0.5]}, "one number for each channel"),
            (IMAGES, {"std": [0.5, 0, 0.5]}, "above 0"), (IMAGES, {"mean": "half"}, "list of numbers"),
            (IMAGES, {"std": 0.5, "mean": [[1]]}, "list of numbers"), (IDS, {"mean": 0.5}, "one number for each channel"),
            (IMAGES[:, :1], {}, "torch.export cannot"), (IMAGES.bool(), {}, "of torch.bool")):
        with pytest.raises(taut.InputError, match=match) as caught:
            taut.torch.convert(module, example, **options)
        assert "\n" not in str(caught.value)


def test_numbers_that_do_not_agree(tmp_path, monkeypatch):
    """Whatever was read wrongly, the logits tell: one weight that is off by a thousandth is refused, and nothing is written."""
    from taut.torch import _reader
    put = _reader.Reader.put

    def wrong(self, name, weight, bias=None):
        put(self, name, weight * 1.001 if name.endswith("mlp.out") else weight, bias)
    monkeypatch.setattr(_reader.Reader, "put", wrong)
    with pytest.raises(taut.torch.Unmapped, match="the logits do not agree"):
        taut.torch.convert(settled(Images()), IMAGES, tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())
