"""PyTorch: models as plain layers, constraints and penalties for a training loop."""
import numpy as np
import pytest

import taut

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import taut.torch  # noqa: E402

SMALL = {"model.width": 16, "model.depth": 2, "model.heads": 2, "model.context": 12}


@pytest.mark.parametrize("recipe,given", [
    ("tiny-free.ini", SMALL), ("tiny-free.ini", {**SMALL, "model.arch": "encoder"}),
    ("tiny-free.ini", {**SMALL, "model.norm": "rmsnorm"}),
    ("tiny-free.ini", {**SMALL, "model.attention": "position", "model.norm": "centernorm", "model.residual": "convex"}),
    ("tiny-free.ini", {**SMALL, "model.attention": "position", "model.norm": "none", "model.fade": 0.25}),
    ("tiny-free.ini", {**SMALL, "model.tied": False, "model.attention_out": 0.5, "model.logit_scale": 3}),
    ("vit-shapes-small.ini", {}), ("vit-shapes-small.ini", {"model.pool": "class", "model.activation_factor": 0.5}),
    ("vit-fashion-lip.ini", {"data.source": "shapes"}), ("mlp-shapes-small.ini", {})])
def test_export(recipe, given, recipes):
    model = taut.create(recipes / recipe, set=given, kernels="ref")
    rng = np.random.default_rng(1)
    for name, w in model.weights.items():  # norms, biases and tables that are not what they start from
        model.weights[name] = w + 0.1 * rng.standard_normal(w.shape)
    net = taut.torch.export(model)
    x = rng.integers(0, model.vocabulary, (3, 7)) if model.kind == "text" else rng.random((3,) + model.shape)
    with torch.no_grad():
        theirs = net(torch.tensor(x) if model.kind == "text" else torch.tensor(x).float().movedim(-1, 1)).numpy()
    ours = model(x)
    np.testing.assert_allclose(theirs, ours, atol=2e-5 * np.abs(ours).max())
    assert sum(p.numel() for p in net.parameters()) == model.size


def test_not_exported(recipes):
    for given, match in (({"model.positions": "rope"}, "rotations"), ({"model.arch": "encoder", "model.attention": "l2"}, "l2")):
        with pytest.raises(taut.torch.Unmapped, match=match):
            taut.torch.export(taut.create(recipes / "tiny-free.ini", set={**SMALL, **given}))


def test_there_and_back(recipes, tmp_path):
    """What is exported is understood: the same constant to the last bits."""
    model = taut.create(recipes / "vit-shapes-small.ini", set={"model.norm_eps": 0.01}, kernels="ref")
    model.save(tmp_path / "a")
    net = taut.torch.export(model)
    with torch.no_grad():
        x = torch.rand(1, 3, 16, 16)
        patches = nn.Conv2d(3, 48, 4, 4)
        patches.weight.copy_(net[0][1].weight.reshape(48, 4, 4, 3).permute(0, 3, 1, 2))
        patches.bias.copy_(net[0][1].bias)

    class Back(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch, self.rest = patches, nn.ModuleList([net[0][2], *net[0][3], *net[0][4:], net[1]])
            self.register_buffer("mean", -net[0][0].shift[0] / net[0][0].scale[0])
            self.register_buffer("std", 1 / net[0][0].scale[0])

        def forward(self, x):
            h = self.patch((x - self.mean) / self.std).flatten(2).transpose(1, 2)
            for part in self.rest:
                h = part(h)
            return h

    again = taut.torch.certify(Back(), x, norm="flat")
    assert abs(again.lipschitz / model.certify(norm="flat").lipschitz - 1) < 1e-5


@pytest.mark.parametrize("method", ["normalise", "hardcap", "softcap"])
@pytest.mark.parametrize("size", [0.5, 1.1, 1.5, 2.2, 4.0])
def test_constrain(method, size):
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 10)).double()
    with torch.no_grad():
        for layer in (net[0], net[2]):
            layer.weight.mul_(size / torch.linalg.matrix_norm(layer.weight, 2))
    before = net[0].weight.detach().clone()
    taut.torch.constrain(net, method=method, cap=1.0)
    u, s, v = torch.linalg.svd(before, full_matrices=False)
    kept = u.T @ net[0].weight.detach() @ v.T
    assert torch.linalg.matrix_norm(net[0].weight, 2) <= 1 + 1e-9
    assert torch.linalg.matrix_norm(net[2].weight, 2) <= 1 + 1e-9
    assert (kept - torch.diag(torch.diag(kept))).abs().max() < 1e-9, "the singular vectors stay"
    if size <= 1:
        assert torch.equal(net[0].weight, before) or method == "hardcap"
    if method == "hardcap":
        torch.testing.assert_close(torch.diag(kept), s.clamp(max=1.0))
    if method == "softcap" and 1 < size < 81 / 31:
        assert torch.diag(kept)[-1] > 0.9 * s[-1], "small singular values hardly move"


def test_constrain_attention():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    with torch.no_grad():
        layer.self_attn.in_proj_weight.mul_(10)
    taut.torch.constrain(layer, method="hardcap", cap=0.7)
    for w in (*layer.self_attn.in_proj_weight.chunk(3), layer.self_attn.out_proj.weight, layer.linear1.weight):
        assert torch.linalg.matrix_norm(w, 2) <= 0.7 + 1e-5
    for method, cap in (("nobody", 1), ("softcap", 0), ("softcap", float("nan")), ("softcap", "far")):
        with pytest.raises(taut.InputError):
            taut.torch.constrain(layer, method=method, cap=cap)


def test_jasmin():
    """g_1 is above the norm of softmax's Jacobian, g_k above its k-th singular value; the gradient is the derivative."""
    torch.manual_seed(1)
    logits = (3 * torch.randn(2, 2, 3, 6, dtype=torch.float64)).requires_grad_()
    x = logits.softmax(-1).detach()
    s = torch.linalg.svdvals(torch.diag_embed(x) - x[..., :, None] * x[..., None, :])
    one = torch.stack([taut.torch.penalty.jasmin(x[n:n + 1, h:h + 1, i:i + 1], eps=0) for n in range(2) for h in range(2)
                       for i in range(3)]).view(2, 2, 3)
    assert torch.all(one >= s[..., 0].log() - 1e-12) and torch.all(one <= 0)
    expected = one.amax(-1).sum(1).mean()
    torch.testing.assert_close(taut.torch.penalty.jasmin(x, eps=0), expected)
    assert torch.autograd.gradcheck(lambda z: taut.torch.penalty.jasmin(z.softmax(-1), k=3, reduce="mean"), (logits,))
    for bad in (x[0], x[..., :1], logits, 2 * x, x * float("nan"), None):  # logits are no probabilities
        with pytest.raises(taut.InputError, match="jasmin"):
            taut.torch.penalty.jasmin(bad)
