"""What is refused, each with one line; and arguments that a fuzzer makes up."""
import numpy as np
import pytest

import taut

LONG = 2**63


def refused(call, match=None):
    with pytest.raises(taut.Error, match=match) as caught:
        call()
    assert "\n" not in str(caught.value) and len(str(caught.value)) > 5


@pytest.mark.parametrize("x,match", [
    (np.zeros((2, 3, 4)), "has shape"), (np.zeros(0), "has shape"), (np.zeros((0, 5)), "has shape"),
    (np.float64(1), "has shape"), ("images", "does not read text"), (None, "not of numbers"), ([[1.0], [2.0, 3.0]], "input"),
    (np.array(["a"]), "not of numbers"), (np.array([1j]), "not of numbers"), (np.array([True]), "not of numbers")])
def test_no_images(image_model, x, match):
    refused(lambda: image_model(x), match)


def test_values_of_images(image_model, images):
    x, y = images
    refused(lambda: image_model((255 * x).astype(np.uint8)), "uint8")
    for bad in (np.nan, np.inf, -np.inf):
        broken = x.copy()
        broken.flat[3] = bad
        refused(lambda: image_model(broken), "number 3 of the inputs")
        refused(lambda: image_model.certify(x=broken, y=y))
    refused(lambda: image_model.certify(x=x * 3, y=y))  # pixels outside [0, 1]
    refused(lambda: image_model.certify(x=x, y=y + 1000), "a class in y")
    refused(lambda: image_model.certify(x=x, y=y[:2]), "y has shape")
    refused(lambda: image_model.certify(x=x), "go together")
    refused(lambda: image_model.certify(norm="l2"), "norm is own, tokens or flat")
    refused(lambda: image_model.certify(radius=-1), "room")
    refused(lambda: image_model.certify(radius=float("nan")), "room")
    refused(lambda: image_model.certify(radius="far"), "radius is a number")
    refused(lambda: image_model.certify(examples=-1), "examples is -1")
    refused(lambda: image_model.certify(examples=2.5), "whole number")
    refused(lambda: image_model.certify(local=True), "local")
    refused(lambda: image_model.grad(x, np.zeros((5, 3))), "w has shape")
    refused(lambda: image_model.jvp(x, np.zeros(5)), "t has shape")
    refused(lambda: image_model.loss(x, y + 1000), "label")
    refused(lambda: image_model.loss(x, y.astype(float)), "whole numbers")


def test_layout_does_not_matter(image_model, images):
    x = images[0]
    every_other = np.repeat(x, 2, axis=0)[::2]
    assert not every_other.flags["C_CONTIGUOUS"] and np.array_equal(image_model(every_other), image_model(x))
    swapped = x.astype(x.dtype.newbyteorder())
    assert np.array_equal(image_model(swapped), image_model(x))
    frozen = x.copy()
    frozen.flags.writeable = False
    assert np.array_equal(image_model(frozen), image_model(x))


def test_texts(text_model):
    refused(lambda: text_model(np.array([10**6])), "not in 0")
    refused(lambda: text_model(np.array([2**32 + 1])), "32 bits")
    refused(lambda: text_model(np.array([-1])), "not in 0")
    refused(lambda: text_model(np.zeros((2, 0), int)), "ids have shape")
    refused(lambda: text_model(np.zeros(17, int)), "17 tokens")
    refused(lambda: text_model(np.zeros((3, 4))), "has shape")
    refused(lambda: text_model.encode("a\0b"), "NUL")
    refused(lambda: text_model.decode(np.array([10**6])), "an id")
    refused(lambda: text_model.decode(np.array([[1]])), "shape")
    refused(lambda: text_model.attack(attacks="pgd", examples=1), "eps")


def test_attacks(image_model, images):
    x, y = images
    attack = image_model.attack
    refused(lambda: attack(x, y, "nobody"), "nobody")
    refused(lambda: attack(x, y, "pgd", norm="L3"), "L3")
    refused(lambda: attack(x, y, "pgd", eps="far"))
    refused(lambda: attack(x, y, "pgd", eps=[]))
    refused(lambda: attack(x, y, "pgd", eps=object()), "eps is a number")
    refused(lambda: attack(x, y, "pgd", eps=-1))
    refused(lambda: attack(x, y, "pgd", stepps=3), "no option stepps")
    refused(lambda: attack(x, y, "pgd", steps=LONG), "steps is")
    refused(lambda: attack(x, y, "pgd", step_size=float("nan")), "step_size")


def test_files(tmp_path, recipes, image_run):
    refused(lambda: taut.load(tmp_path / "nobody"), "nobody")
    refused(lambda: taut.load(tmp_path), "neither model.safetensors nor config.json")
    refused(lambda: taut.load("a\0b"), "NUL")
    refused(lambda: taut.load(3), "not int")
    refused(lambda: taut.load(image_run.path, "nobody"), "nobody")
    (tmp_path / "m.safetensors").write_bytes(b"no model")
    refused(lambda: taut.load(tmp_path / "m.safetensors"), "m.safetensors")
    refused(lambda: taut.train(tmp_path / "nobody.ini", tmp_path / "a"), "nobody.ini")
    refused(lambda: taut.train(recipes / "tiny.ini", tmp_path / "a", set={"train.stepps": 3}), "train.stepps")
    refused(lambda: taut.create(recipes / "tiny.ini", set={"model.width": -3}), "model.width")
    refused(lambda: taut.create(recipes / "tiny.ini", seed=-1), "seed is -1")
    refused(lambda: taut.create(recipes / "tiny.ini", set=["train.steps=3"]), "set is a dict")
    refused(lambda: taut.train(recipes / "tiny.ini", image_run.path), "resume=True, or start anew with overwrite=True")
    refused(lambda: taut.threads(2**40), "threads is")
    assert isinstance(pytest.raises(OSError, taut.load, tmp_path / "nobody").value, taut.FileError)


def test_weights_are_numbers(image_run):
    model = image_run.load()
    name = list(model.weights)[0]
    shape = model.weights[name].shape

    def put(value):
        model.weights[name] = value

    refused(lambda: put(np.zeros(3)), "has shape")
    refused(lambda: put(np.full(shape, np.nan)), "NaN")
    refused(lambda: put("text"), "not of numbers")
    assert not model.changed
