"""The notebooks of examples/, cell by cell, in a folder of their own; their stored outputs are small."""
import json

import pytest
from conftest import ROOT

BOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


@pytest.mark.parametrize("book", BOOKS, ids=[b.stem for b in BOOKS])
def test_notebook(book, tmp_path, monkeypatch):
    text = book.read_text()
    cells = ["".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
    assert len(text) < 20000 and len(cells) > 2
    if "torch" in cells[0]:
        pytest.importorskip("torch")
    (tmp_path / "recipes").symlink_to(ROOT / "recipes")
    monkeypatch.chdir(tmp_path)
    space = {}
    for i, cell in enumerate(cells):
        exec(compile(cell, f"{book.name}, cell {i}", "exec"), space)
