"""Numbers through models, weights, data, threads, pickling."""
import configparser
import os
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import ROOT

import taut


def test_facts(text_model, image_model, image_run):
    assert text_model.kind == "text" and text_model.context == 16 and text_model.width == 16
    assert image_model.kind == "images" and image_model.shape[0] * image_model.shape[1] * image_model.shape[2] == \
        image_model.width
    assert image_model.info["kind"] == "images" and image_model.size == sum(w.size for w in image_model.weights.values())
    assert len(repr(image_model)) < 200 and str(image_run.path) in repr(image_model)


def test_logits(image_model, images):
    """The perceptron of the recipe, computed by NumPy from the weights; the shapes in which images may come."""
    x, w = images[0], image_model.weights
    ini = configparser.ConfigParser()
    ini.read_string(image_model.info["recipe"])
    mean, std = (np.array(ini["model"][k].split(), float) for k in ("pixel_mean", "pixel_std"))
    h = ((x - mean) / std).reshape(5, -1)
    for layer in ("layer.0", "layer.1"):
        h = np.maximum(h @ w[layer + ".weight"].T + w[layer + ".bias"], 0)
    y = image_model(x)
    np.testing.assert_allclose(y, h @ w["head.weight"].T + w["head.bias"], rtol=1e-5)  # 1 / std is rounded to float
    for same in (x.reshape(5, -1), x.reshape(x.shape[:3]) if x.shape[3] == 1 else x, np.asfortranarray(x)):
        assert np.array_equal(image_model(same), y)
    assert np.array_equal(image_model(x[2]), y[2]) and y[2].shape == (image_model.classes,)


def test_derivatives(image_model, images, rng):
    x = images[0]
    t, w = rng.standard_normal(x.shape), rng.standard_normal((5, image_model.classes))
    jt, gw = image_model.jvp(x, t), image_model.grad(x, w)
    assert jt.shape == w.shape and gw.shape == x.shape
    assert abs(np.vdot(w, jt) - np.vdot(gw, t)) < 1e-11 * (1 + abs(np.vdot(w, jt)))
    h = 1e-6
    np.testing.assert_allclose((image_model(x + h * t) - image_model(x - h * t)) / (2 * h), jt, atol=1e-6)


def test_loss(image_model, images):
    x, y = images
    z = image_model(x)
    expected = np.mean(np.log(np.exp(z).sum(-1)) - z[np.arange(5), y])
    loss, gradient = image_model.loss(x, y)
    assert abs(loss - expected) < 1e-12
    p = np.exp(z) / np.exp(z).sum(-1, keepdims=True)
    p[np.arange(5), y] -= 1
    np.testing.assert_allclose(gradient, image_model.grad(x, p / 5), atol=1e-12)


def test_text(text_model, rng):
    ids = text_model.encode(text_model.decode(np.arange(5)))
    assert np.array_equal(ids, np.arange(5))
    one, many = text_model(ids), text_model(np.stack([ids, ids[::-1]]))
    assert one.shape == (5, text_model.classes) and many.shape == (2, 5, text_model.classes)
    np.testing.assert_allclose(many[0], one, atol=1e-12)
    embedded = text_model.embed(ids)
    assert embedded.shape == (5, 16)
    np.testing.assert_allclose(text_model(embedded), one, atol=1e-12)
    w = rng.standard_normal(one.shape)
    t = rng.standard_normal(embedded.shape)
    assert abs(np.vdot(w, text_model.jvp(ids, t)) - np.vdot(text_model.grad(ids, w), t)) < 1e-10
    assert np.array_equal(text_model(text_model.decode(ids)), one)


def test_weights_become_a_file(text_model, recipes, tmp_path):
    model = taut.create(recipes / "tiny-free.ini", set={"model.width": 16, "model.depth": 1, "model.tied": True})
    name = list(model.weights)[0]
    before = model.weights[name]
    model.weights[name] = before + 0.1
    with pytest.raises(taut.InputError, match="save this model first"):
        model.certify()
    model.save(tmp_path / "m.safetensors")
    again = taut.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.weights[name], (before + 0.1).astype(np.float32).astype(float))
    with pytest.raises(KeyError):
        model.weights["nobody"]


def test_data(image_model, text_model):
    with image_model.data() as data:
        x, y = data.examples("valid", 3, first=2)
        assert x.shape == (3,) + image_model.shape and y.shape == (3,) and 0 <= x.min() and x.max() <= 1
        assert np.array_equal(x[1], data.examples("valid", 1, first=3)[0][0])
        score = image_model.score(data, examples=50)
        assert score.examples == 50 and 0 <= score.accuracy <= 1
        with pytest.raises(taut.InputError, match="has"):
            data.examples("valid", 10**9)
        again = pickle.loads(pickle.dumps(data))
        assert np.array_equal(again.examples("valid", 1)[0], data.examples("valid", 1)[0])
    x, y = text_model.data().examples("train", 2)
    assert x.dtype == np.int32 and x.shape == y.shape == (2, 16) and np.array_equal(x[0][1:], y[0][:-1])


def test_pickle_by_path(image_model, images):
    again = pickle.loads(pickle.dumps(image_model))
    assert again.kernels == "ref" and np.array_equal(again(images[0]), image_model(images[0]))


def test_closed(image_run, images):
    model = image_run.load()
    model.close()
    model.close()
    for what in (lambda: model(images[0]), lambda: model.info, lambda: model.certify(), lambda: model.data(),
                 lambda: model.weights, lambda: pickle.dumps(model)):
        with pytest.raises(taut.InputError, match="was closed"):
            what()
    assert "closed" in repr(model)


def test_threads_and_one_model(image_model, images):
    """Many threads on one handle: each gets its own answer."""
    x, expected, wrong = images[0], image_model(images[0]), []

    def ask(i):
        for _ in range(20):
            if not np.array_equal(image_model(x[i]), expected[i]):
                wrong.append(i)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(5)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_gil_is_released(image_run, images):
    """Python goes on while the library works."""
    model, ticks, done = image_run.load("ref"), [], threading.Event()
    x = np.repeat(images[0], 2000, axis=0)

    def work():
        model(x)
        done.set()

    worker = threading.Thread(target=work)
    worker.start()
    while not done.is_set():
        ticks.append(time.perf_counter())
        time.sleep(0.001)
    worker.join()
    assert len(ticks) > 3, "nothing else ran during the call"


def test_memory_is_flat(image_run, images):
    model, x = image_run.load(), images[0][:1]

    def pages():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1])

    for _ in range(2000):
        model(x)
    before = pages()
    for _ in range(10000):
        model(x)
    assert (pages() - before) * os.sysconf("SC_PAGE_SIZE") < 2 << 20


def test_import_is_quick():
    """Processor time, which other processes do not stretch as much as the clock's; NumPy's own is not ours."""
    code = "import numpy, time; t = time.process_time(); import taut; print(time.process_time() - t)"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    took = min(float(subprocess.check_output([sys.executable, "-c", code], env=env, cwd=ROOT)) for _ in range(5))
    assert took < 0.3, f"import took {took:.2f} s"


def test_nothing_heavy_is_imported():
    code = "import sys, taut; print(sorted({m.split('.')[0] for m in sys.modules} & {'torch', 'pandas', 'matplotlib'}))"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    assert subprocess.check_output([sys.executable, "-c", code], env=env, cwd=ROOT).decode().strip() == "[]"


def test_an_encoder_without_transform(recipes, tmp_path):
    """model.transform = false: blocks and head alone, as nn.TransformerEncoder has them, with a proof that checks."""
    small = {"model.arch": "encoder", "model.depth": 1, "model.width": 16, "model.heads": 2, "model.context": 8}
    for transform in (True, False):
        model = taut.create(recipes / "tiny-free.ini", set={**small, "model.transform": transform})
        assert ("transform.weight" in model.weights) == transform
        model.save(tmp_path / "m")
        assert taut.check(model.certify(), model)
    with pytest.raises(taut.InputError, match="model.transform"):
        taut.create(recipes / "tiny-free.ini", set={**small, "model.arch": "gpt", "model.transform": False})
