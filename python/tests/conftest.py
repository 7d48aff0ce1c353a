"""Small runs that the tests share: a text model and an image model, trained for a few steps."""
import os
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
if not os.environ.get("TAUT_INSTALLED"):  # else the package that pip installed
    sys.path.insert(0, str(ROOT / "python"))
import taut  # noqa: E402

TEXT = {"model.width": 16, "model.depth": 1, "model.heads": 2, "model.context": 16, "model.norm": "none",
        "train.steps": 6, "train.batch": 2}
IMAGES = {"train.steps": 20, "train.eval_every": 20, "train.checkpoint_every": 20}


@pytest.fixture(scope="session")
def recipes():
    return ROOT / "recipes"


@pytest.fixture(scope="session")
def text_run(recipes, tmp_path_factory):
    return taut.train(recipes / "tiny-free.ini", tmp_path_factory.mktemp("runs") / "text", set=TEXT)


@pytest.fixture(scope="session")
def image_run(recipes, tmp_path_factory):
    return taut.train(recipes / "mlp-shapes-small.ini", tmp_path_factory.mktemp("runs") / "images", set=IMAGES)


@pytest.fixture
def text_model(text_run):
    with text_run.load("ref") as model:
        yield model


@pytest.fixture
def image_model(image_run):
    with image_run.load("ref") as model:
        yield model


@pytest.fixture
def images(image_model):
    return image_model.data().examples("valid", 5)


@pytest.fixture
def rng():
    return np.random.default_rng(1)
