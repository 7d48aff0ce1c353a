#!/usr/bin/env python3
"""Writes tests/golden/hf_*/: small checkpoints as Hugging Face transformers stores them, and what its models answer.

    python3 tools/dump_huggingface.py          from the repository's root; needs PyTorch and transformers, the tests do not

Each folder is a checkpoint with random weights (config.json, model.safetensors or shards) and expected.safetensors
beside it: ids (n, t) and the logits of transformers' own model class, computed in float64 from the stored weights.
Weights are larger than a usual start, gains and biases too, so that every term matters.
"""
import json
import os
import shutil
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file

sys.path.insert(0, os.path.dirname(__file__))
from dump_reference import write_safetensors  # noqa: E402

FOLDER, VOCAB = "tests/golden/", 29
MEAN = torch.tensor([0.5, 0.25, 0.375], dtype=torch.float64).view(1, 3, 1, 1)
STD = torch.tensor([0.25, 0.5, 0.5], dtype=torch.float64).view(1, 3, 1, 1)


@torch.no_grad()
def randomise(model, gen):
    for name, p in model.named_parameters():
        mean = 1.0 if p.dim() == 1 and name.endswith("weight") else 0.0
        p.copy_(mean + 0.3 * torch.randn(p.shape, generator=gen))


def tidy(folder):
    """What the tests do not read, and what names a version of somebody else's program."""
    path = os.path.join(folder, "config.json")
    with open(path) as f:
        config = json.load(f)
    config.pop("transformers_version", None)
    with open(path, "w") as f:
        json.dump(config, f, indent=1, sort_keys=True)
        f.write("\n")
    for name in os.listdir(folder):
        if name.startswith("generation_config"):
            os.remove(os.path.join(folder, name))
        else:
            os.chmod(os.path.join(folder, name), 0o644)


def dump(name, model, seed, dtype=torch.float32, shard="1GB", inputs=None):
    gen, folder = torch.Generator().manual_seed(seed), FOLDER + name
    shutil.rmtree(folder, ignore_errors=True)
    randomise(model, gen)
    model = model.to(dtype).eval()
    model.save_pretrained(folder, max_shard_size=shard)
    tidy(folder)
    model = model.double()
    x = inputs(gen) if inputs else torch.randint(2, VOCAB, (2, 7), generator=gen)
    with torch.no_grad():
        logits = model((x - MEAN) / STD if inputs else x).logits
    # pixels as taut reads them: (n, height, width, channel) in [0, 1]
    given = {"pixels": ("F64", x.permute(0, 2, 3, 1))} if inputs else {"ids": ("I32", x)}
    write_safetensors(folder + "/expected.safetensors", given | {"logits": ("F64", logits)}, {})
    if inputs:
        with open(folder + "/preprocessor_config.json", "w") as f:
            json.dump({"image_mean": MEAN.flatten().tolist(), "image_std": STD.flatten().tolist()}, f)
    print(name, sorted(os.listdir(folder)), f"largest logit {logits.abs().max():.3f}")


def images(gen):
    return torch.rand(2, 3, 8, 8, generator=gen).double()


def rename(folder, change):
    """The same numbers under other names, as older programs stored them."""
    path = FOLDER + folder + "/model.safetensors"
    save_file({change(k): v.contiguous() for k, v in load_file(path).items()}, path)
    os.chmod(path, 0o644)


if __name__ == "__main__":
    torch.set_num_threads(1)
    t = transformers
    gpt2 = dict(vocab_size=VOCAB, n_embd=16, n_layer=2, n_head=4, n_positions=8, resid_pdrop=0.0, embd_pdrop=0.0,
                attn_pdrop=0.0, bos_token_id=0, eos_token_id=0)
    bert = dict(vocab_size=VOCAB, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24,
                hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    dump("hf_gpt2", t.GPT2LMHeadModel(t.GPT2Config(**gpt2)), 1)
    dump("hf_gpt2_shards", t.GPT2LMHeadModel(t.GPT2Config(**gpt2, tie_word_embeddings=False, n_inner=20,
                                                         activation_function="relu")), 2, torch.float16, "8KB")
    dump("hf_bert", t.BertForMaskedLM(t.BertConfig(**bert, max_position_embeddings=8)), 3)
    rename("hf_bert", lambda k: k.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias",
                                                                                       "LayerNorm.beta"))
    vit = dict(bert, image_size=8, patch_size=4, num_channels=3, num_labels=5)
    vit.pop("vocab_size")
    dump("hf_vit", t.ViTForImageClassification(t.ViTConfig(**vit, layer_norm_eps=1e-6)), 5, inputs=images)
    dump("hf_deit", t.DeiTForImageClassification(t.DeiTConfig(**vit, hidden_act="gelu_new")), 6, inputs=images)
    dump("hf_roberta", t.RobertaForMaskedLM(t.RobertaConfig(**bert, max_position_embeddings=10, type_vocab_size=1,
                                                            pad_token_id=1)), 4, torch.bfloat16)
