"""The script of docs/howto/bring_my_model.md, run as it is printed on PyTorch's own files: taut answers as the modules do."""
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors.torch")

import taut
from test_convert import DEPTH, HEADS, NanoGPT, Plain, ids, near, randomised

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "bring_my_model.md"


def script(folder):
    """The indented block that begins with the script's own line."""
    lines = PAGE.read_text().split("\n")
    first = next(i for i, line in enumerate(lines) if "state_dict.py checkpoint.pt" in line)
    last = next(i for i in range(first, len(lines)) if lines[i] and not lines[i].startswith("    "))
    path = folder / "state_dict.py"
    path.write_text("\n".join(line[4:] for line in lines[first:last]))
    return path


def run(folder, saved, name="checkpoint.pt"):
    torch.save(saved, folder / name)
    return subprocess.run([sys.executable, script(folder), folder / name, folder / "model.safetensors"], capture_output=True,
                          text=True)


def test_nanogpt_with_its_arguments(tmp_path):
    m, x = randomised(NanoGPT(True), 1), ids()
    said = run(tmp_path, {"model": m.state_dict(), "optimizer": {"lr": 0.1}, "iter_num": 7,
                          "model_args": {"n_head": HEADS, "n_layer": DEPTH, "bias": True, "path": None}}, "ckpt.pt")
    assert said.returncode == 0 and said.stdout == f"{len(m.state_dict())} tensors\n", said.stderr
    with taut.load(tmp_path, tokenizer="bytes") as model:  # the heads are in its config.json
        near(model(x), m.double()(torch.tensor(x).long()))


@pytest.mark.parametrize("wrap", [lambda d: d, lambda d: {"net": {"state_dict": d, "epoch": 3}}])
def test_plain_modules(tmp_path, wrap):
    m, x = randomised(Plain(False), 2), ids()
    said = run(tmp_path, wrap(m.state_dict()), "pytorch_model.bin")
    assert said.returncode == 0, said.stderr
    with taut.load(tmp_path / "model.safetensors", tokenizer="bytes", set={"model.heads": HEADS}) as model:
        near(model(x), m.double()(torch.tensor(x).long()))


def test_no_tensors(tmp_path):
    said = run(tmp_path, {"epoch": 3})
    assert said.returncode == 1 and "no state_dict among ['epoch']" in said.stderr
    assert not (tmp_path / "model.safetensors").exists()
