"""The peer of `taut bench train`: the same GPT in PyTorch.  Usage: train_torch.py THREADS TOKENS.

Says "ready", then for every line with a number of steps does them and answers the seconds they took."""
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, DEPTH, HEADS, CONTEXT, BATCH = 256, 3, 4, 256, 16


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def attend(self, x):
        n, t, d = x.shape
        q, k, v = (z.view(n, t, HEADS, d // HEADS).transpose(1, 2) for z in self.qkv(x).split(d, 2))
        if hasattr(F, "scaled_dot_product_attention"):
            o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            mask = torch.full((t, t), float("-inf")).triu(1)
            o = (q @ k.transpose(2, 3) / (d // HEADS) ** 0.5 + mask).softmax(-1) @ v
        return self.out(o.transpose(1, 2).reshape(n, t, d))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, tokens):
        super().__init__()
        self.embed, self.pos = nn.Embedding(tokens, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks, self.norm = nn.Sequential(*(Block() for _ in range(DEPTH))), nn.LayerNorm(WIDTH)

    def forward(self, ids):
        x = self.blocks(self.embed(ids) + self.pos.weight[: ids.shape[1]])
        return self.norm(x) @ self.embed.weight.t()


def main():
    threads, tokens = int(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model = GPT(tokens)
    adam = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95))
    print("ready", flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        for _ in range(int(line)):
            ids = torch.randint(tokens, (BATCH, CONTEXT + 1))
            loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
            adam.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            adam.step()
            loss.item()
        print(time.perf_counter() - start, flush=True)


main()
