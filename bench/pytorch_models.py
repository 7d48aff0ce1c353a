"""PyTorch's own models, built from their configs and not trained, through taut.torch: how far our logits are from theirs, the
constant that is proved, the seconds that converting and certifying take.  Needs PyTorch, transformers, timm and torchvision.
    PYTHONPATH=python python3 bench/pytorch_models.py [full] [NAME...]"""
import sys
import tempfile
import time

import timm
import torch
import torchvision
import transformers
from torch import nn

import taut
import taut.torch
from taut import _c


class Encoder(nn.Module):
    """Patches, positions, nn.TransformerEncoder, the mean of its tokens, a head."""
    def __init__(self, width, depth, heads, image, patch):
        super().__init__()
        self.patch = nn.Conv2d(3, width, patch, patch)
        self.pos = nn.Parameter(0.02 * torch.randn(1, (image // patch) ** 2, width))
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        return self.head(self.encoder(self.patch(x).flatten(2).transpose(1, 2) + self.pos).mean(1))


def models(full):
    """name -> (how it is made, an input)"""
    width, depth, heads, vocab = (768, 12, 12, 50257) if full else (64, 3, 4, 500)
    image, patch = (224, 16) if full else (32, 8)
    tokens = 128 if full else 32
    ids, images = torch.randint(0, vocab if vocab < 30522 else 30522, (1, tokens)), torch.rand(1, 3, image, image)
    bert = dict(vocab_size=min(vocab, 30522), hidden_size=width, num_hidden_layers=depth, num_attention_heads=heads,
                intermediate_size=4 * width, max_position_embeddings=512 if full else tokens)
    vit = dict(image_size=image, patch_size=patch, hidden_size=width, num_hidden_layers=depth, num_attention_heads=heads,
               intermediate_size=4 * width, num_labels=10)
    t = transformers
    return {
        "bert": (lambda: t.BertForMaskedLM(t.BertConfig(**bert)), ids),
        "gpt2": (lambda: t.GPT2LMHeadModel(t.GPT2Config(vocab_size=vocab, n_layer=depth, n_embd=width, n_head=heads,
                                                        n_positions=1024 if full else tokens)), ids),
        "hf-vit": (lambda: t.ViTForImageClassification(t.ViTConfig(**vit)), images),
        "timm-vit": (lambda: timm.models.VisionTransformer(img_size=image, patch_size=patch, num_classes=10, embed_dim=width,
                                                           depth=depth, num_heads=heads), images),
        "torchvision-vit": (lambda: torchvision.models.VisionTransformer(image, patch, depth, heads, width, 4 * width,
                                                                         num_classes=10), images),
        "encoder": (lambda: Encoder(width, depth, heads, image, patch), images),
    }


full = "full" in sys.argv[1:]
wanted = [a for a in sys.argv[1:] if a != "full"]
for name, (make, example) in models(full).items():
    if wanted and name not in wanted:
        continue
    torch.manual_seed(1)
    module = make().eval()
    for p in module.parameters():  # biases, and torchvision's head, start at 0
        if not p.any():
            nn.init.normal_(p, std=0.02)
    weights = sum(p.numel() for p in module.parameters())
    with tempfile.TemporaryDirectory() as folder:
        start = time.time()
        model = taut.torch.convert(module, example, folder + "/model")
        converted = time.time()
        with torch.no_grad():
            theirs = module(example)
        theirs = getattr(theirs, "logits", theirs).double().numpy()
        ours = model(taut.torch.to_numpy(example, model.kind == "images")).reshape(theirs.shape)
        asked = time.time()
        cert = model.certify(norm="flat")
        print(f"{name}: {weights / 1e6:.1f}M weights, logits within {abs(ours - theirs).max():.1e}, converted in "
              f"{converted - start:.1f} s, constant {_c.up(cert.lipschitz)} proved in {time.time() - asked:.1f} s", flush=True)
