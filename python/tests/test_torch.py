"""PyTorch: modules that are certified, modules that are refused, models as modules."""
import math

import numpy as np
import pytest

import taut

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import taut.torch  # noqa: E402
from modules import settled  # noqa: E402


def layer(norm_first, activation="gelu"):
    return nn.TransformerEncoderLayer(32, 4, 64, activation=activation, batch_first=True, norm_first=norm_first)


class ViT(nn.Module):
    """As people write it: patches, class token, positions, nn.TransformerEncoder, head."""

    def __init__(self, norm_first=True, pool="cls", odd=None):
        super().__init__()
        self.patch = nn.Conv2d(3, 32, 4, 4)
        self.cls = nn.Parameter(0.5 * torch.randn(1, 1, 32))
        self.pos = nn.Parameter(0.5 * torch.randn(1, 17, 32))
        self.encoder = nn.TransformerEncoder(layer(norm_first), 2, nn.LayerNorm(32) if norm_first else None,
                                             enable_nested_tensor=False)
        self.head, self.pool, self.odd = nn.Linear(32, 10), pool, odd

    def forward(self, x):
        h = self.patch(x).flatten(2).transpose(1, 2)
        h = torch.cat([self.cls.expand(len(x), -1, -1), h], 1) + self.pos
        h = self.encoder(h)
        h = h[:, 0] if self.pool == "cls" else h.mean(1)
        return self.head(self.odd(h) if self.odd else h)


class Text(nn.Module):
    """Embedding, positions, nn.TransformerEncoder with and without a causal mask, head."""

    def __init__(self, causal, norm_first):
        super().__init__()
        self.embed, self.pos = nn.Embedding(40, 32), nn.Embedding(12, 32)
        self.encoder = nn.TransformerEncoder(layer(norm_first, "relu"), 2, nn.LayerNorm(32) if norm_first else None,
                                             enable_nested_tensor=False)
        self.head, self.causal = nn.Linear(32, 40), causal

    def forward(self, ids):
        t = ids.shape[1]
        h = self.embed(ids) * math.sqrt(32) + self.pos(torch.arange(t))
        mask = nn.Transformer.generate_square_subsequent_mask(t) if self.causal else None
        return self.head(self.encoder(h, mask=mask, is_causal=self.causal))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(32, 32, bias=False) for _ in range(4))

    def forward(self, x):
        q, k, v = (m(x).unflatten(-1, (4, 8)).transpose(1, 2) for m in (self.q, self.k, self.v))
        return self.o(nn.functional.scaled_dot_product_attention(q, k, v, scale=0.2).transpose(1, 2).flatten(2))


class Own(nn.Module):
    """A model of parts: own attention, RMSNorm, SiLU, no positions."""

    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 32, 4, 4, bias=False)
        self.parts = nn.ModuleList(nn.ModuleList([
            nn.RMSNorm(32, eps=1e-4), Attention(), nn.RMSNorm(32, eps=1e-4),
            nn.Sequential(nn.Linear(32, 48), nn.SiLU(), nn.Dropout(0.1), nn.Linear(48, 32))]) for _ in range(2))
        self.norm, self.head = nn.RMSNorm(32, eps=1e-4), nn.Linear(32, 10, bias=False)

    def forward(self, x):
        h = self.patch(x).flatten(2).mT
        for norm1, attention, norm2, mlp in self.parts:
            h = h + attention(norm1(h))
            h = mlp(norm2(h)) + h
        return self.head(self.norm(h).mean(1))


def perceptron():
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 40), nn.ReLU(), nn.Linear(40, 30), nn.ReLU(),
                         nn.Linear(30, 10))


IMAGES = torch.rand(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))
IDS = torch.randint(0, 40, (2, 12), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("make,example", [
    (lambda: ViT(), IMAGES), (lambda: ViT(norm_first=False), IMAGES), (lambda: ViT(pool="mean"), IMAGES),
    (lambda: ViT(norm_first=False, pool="mean"), IMAGES), (Own, IMAGES), (perceptron, IMAGES),
    (lambda: Text(True, True), IDS), (lambda: Text(True, False), IDS), (lambda: Text(False, True), IDS),
    (lambda: Text(False, False), IDS)],
    ids=["vit", "vit-post", "vit-mean", "vit-post-mean", "own", "perceptron", "causal", "causal-post", "encoder",
         "encoder-post"])
def test_converted(make, example, tmp_path):
    module = settled(make())
    model = taut.torch.convert(module, example, tmp_path / "m.safetensors")
    with torch.no_grad():
        theirs = module(example).numpy()
    ours = model(taut.torch.to_numpy(example, model.kind == "images"))
    np.testing.assert_allclose(ours, theirs, atol=1e-5 * np.abs(theirs).max())
    cert = model.certify(norm="flat")
    assert cert.lipschitz > 0
    assert taut.check(cert, model).verdict == "confirmed"
    a = taut.torch.to_numpy(example, model.kind == "images")
    x = model.embed(a) if model.kind == "text" else a.astype(float)
    slope = np.linalg.norm(model(x[0]) - model(x[1])) / np.linalg.norm(x[0] - x[1])
    assert slope <= cert.lipschitz


def test_normalised_images(tmp_path):
    module, mean, std = settled(ViT()), [0.4, 0.5, 0.6], [0.2, 0.25, 0.3]
    model = taut.torch.convert(module, IMAGES, tmp_path / "m", mean=mean, std=std)
    with torch.no_grad():
        theirs = module((IMAGES - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)).numpy()
    np.testing.assert_allclose(model(taut.torch.to_numpy(IMAGES, True)), theirs, atol=1e-5 * np.abs(theirs).max())


def test_certify():
    labels = torch.tensor([1, 2])
    cert = taut.torch.certify(settled(perceptron()), IMAGES, norm="flat", x=IMAGES, y=labels, radius=0.5)
    assert 0 < cert.lipschitz < math.inf and len(cert.radii) == 2 and taut.check(cert, cert.model)


def test_dropout_is_off():
    module = settled(ViT()).train()
    assert taut.torch.convert(module, IMAGES).kind == "images" and module.training


@pytest.mark.parametrize("odd,match", [
    (nn.Softmax(-1), "softmax"), (nn.Sigmoid(), "sigmoid"), (nn.Hardtanh(), "hardtanh"),
    (nn.Linear(32, 32), "linear"), (nn.LayerNorm(32), None)], ids=str)
def test_refused(odd, match):
    """Layers behind the pool that taut does not have there: named, with their place."""
    with pytest.raises(taut.torch.Unmapped, match=match) as caught:
        taut.torch.convert(settled(ViT(pool="mean", odd=odd)), IMAGES)
    assert "\n" not in str(caught.value)


def test_a_named_layer_and_line():
    module = settled(ViT())
    module.encoder.layers[1].activation = nn.Hardtanh()
    with pytest.raises(taut.torch.Unmapped, match=r"hardtanh in encoder\.layers\.1.*line \d+"):
        taut.torch.convert(module, IMAGES)


class Twisted(nn.Module):
    """Reads like attention over patches, but mixes other axes: only the logits tell."""

    def __init__(self):
        super().__init__()
        self.inner = ViT()

    def forward(self, x):
        return self.inner(x.transpose(2, 3))


class Shifty(nn.Module):
    """Answers by what it reads: torch.export cannot write that down."""

    def __init__(self):
        super().__init__()
        self.inner = ViT()

    def forward(self, x):
        return self.inner(x) if x.sum() > 0 else x


def test_not_understood():
    with pytest.raises(taut.torch.Unmapped, match="do not agree"):
        taut.torch.convert(settled(Twisted()), IMAGES)
    with pytest.raises(taut.torch.Unmapped, match="torch.export"):
        taut.torch.convert(settled(Shifty()), IMAGES)


def test_layers_of_pytorch_are_named_where_they_are_called():
    with pytest.raises(taut.torch.Unmapped, match=r"batch_norm in odd, File .*test_torch\.py.*, line \d+"):
        taut.torch.convert(settled(ViT(pool="mean", odd=nn.BatchNorm1d(32))), IMAGES)


def test_bad_examples():
    with pytest.raises(taut.InputError, match="a torch.nn.Module is wanted, not OrderedDict"):
        taut.torch.certify(ViT().state_dict(), IMAGES)
    with pytest.raises(taut.InputError, match="not ndarray"):
        taut.torch.certify(ViT(), IMAGES.numpy())
    with pytest.raises(taut.InputError, match="a torch.nn.Module is wanted, not str"):
        taut.torch.constrain("vit")
    for module, example in ((ViT(), IMAGES[0]), (ViT(), IMAGES.long()), (ViT(), IMAGES[:0]), (ViT(), None),
                            ("module", IMAGES), (Text(True, True), IDS.float())):
        with pytest.raises(taut.Error) as caught:
            taut.torch.convert(module, example)
        assert "\n" not in str(caught.value)


def test_a_model_as_a_module(image_run):
    model = image_run.load("ref")
    net = taut.torch.module(model)
    x, y = model.data().examples("valid", 4)
    images = torch.tensor(x).movedim(-1, 1).contiguous().requires_grad_()
    labels = torch.tensor(y).long()
    loss = nn.functional.cross_entropy(net(images), labels)
    loss.backward()
    ours, gradient = model.loss(x, y)
    assert abs(loss.item() - ours) < 1e-12
    assert images.grad.is_contiguous(), "attacks of others take views of it"
    np.testing.assert_allclose(images.grad.movedim(1, -1).numpy(), gradient, atol=1e-14)
    assert torch.autograd.gradcheck(net, (images[:1].detach().requires_grad_(),), eps=1e-6, atol=1e-4, nondet_tol=0)
    assert net(images.float()).dtype == torch.float32 and len(repr(net)) < 200
    with pytest.raises(taut.InputError):
        net(torch.zeros(2, 3, 4, 4))
    with pytest.raises(taut.InputError):
        taut.torch.module("runs/a")


def test_a_foreign_attack_beats_no_certificate(image_run):
    """PGD in PyTorch on our module, against radii that are proved."""
    model = image_run.load("ref")
    net = taut.torch.module(model)
    x, y = model.data().examples("valid", 40)
    cert = model.certify(norm="flat", x=x, y=y, radius=2)
    clean, labels = torch.tensor(x).movedim(-1, 1), torch.tensor(y).long()
    radii = torch.tensor(cert.radii).view(-1, 1, 1, 1)
    moved = clean.clone()
    for _ in range(20):
        moved.requires_grad_()
        (g,) = torch.autograd.grad(nn.functional.cross_entropy(net(moved), labels, reduction="sum"), moved)
        g = g / g.flatten(1).norm(dim=1).clamp(min=1e-30).view(-1, 1, 1, 1)
        delta = moved.detach() + 0.2 * radii * g - clean
        size = delta.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
        moved = (clean + delta * (0.999 * radii / size.clamp(min=1e-30)).clamp(max=1)).clamp(0, 1)
    turned = (net(moved).argmax(1) != torch.tensor(cert.predicted)).numpy()
    assert (cert.radii > 0).sum() >= 10, "something is certified"
    assert not (turned & (cert.radii > 0)).any()


def test_hugging_face(tmp_path):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    sizes = dict(vocab_size=300, num_hidden_layers=2, hidden_size=32, num_attention_heads=4, intermediate_size=64,
                 max_position_embeddings=24)
    gpt2 = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=300, n_layer=2, n_embd=32, n_head=4,
                                                                n_positions=24, bos_token_id=0, eos_token_id=0))
    bert = transformers.BertForMaskedLM(transformers.BertConfig(**sizes))
    vit = transformers.ViTForImageClassification(transformers.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=16, patch_size=4,
        num_labels=10))
    ids = torch.randint(0, 300, (2, 24))
    for module, example in ((gpt2, ids), (bert, ids), (vit, IMAGES)):
        module = settled(module)
        model = taut.torch.convert(module, example, tmp_path / "m.safetensors")
        with torch.no_grad():
            theirs = module(example).logits.numpy()
        ours = model(taut.torch.to_numpy(example, model.kind == "images"))
        np.testing.assert_allclose(ours, theirs, atol=1e-5 * np.abs(theirs).max())
        assert taut.check(model.certify(norm="flat"), model).verdict == "confirmed"


def test_weights_that_are_no_numbers():
    module = settled(ViT())
    with torch.no_grad():
        module.head.weight[0, 0] = math.nan
    with pytest.raises(taut.InputError, match="head.weight holds NaN"):
        taut.torch.convert(module, IMAGES)


def test_small_vocabulary():
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(vocab_size=50, n_positions=12, n_embd=16, n_layer=1, n_head=2, bos_token_id=0,
                                     eos_token_id=0)
    with pytest.raises(taut.torch.Unmapped, match="a vocabulary of 50"):
        taut.torch.convert(transformers.GPT2LMHeadModel(config).eval(), IDS)
