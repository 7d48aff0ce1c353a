"""Measurements, evaluations, plans and texts."""
import pytest

import taut
from taut import _measure


def test_measure(text_model):
    seen = text_model.measure("layers", tokens=8, map="attention")
    layers = seen["layers"]
    assert len(layers) == 1
    done = []
    network = text_model.measure("network", samples=2, progress=done.append)
    assert done and 0 <= done[0] <= 1 and network["max"] <= network["proved"] and not network["contradiction"]
    assert text_model.measure("layers", tokens=8, layer=0, map="attention")["layers"] == layers
    for options, match in (({"what": "nobody"}, "what is layers"), ({"tokens": -1}, "tokens is"), ({"tokns": 3}, "no option"),
                           ({"map": "nobody"}, "nobody"), ({"lengths": (1, 2, 3, 4)}, "lengths"),
                           ({"lengths": 3}, "lengths"), ({"layer": 99}, "layer")):
        with pytest.raises(taut.Error, match=match):
            text_model.measure(**options)


def test_evaluate(image_run, image_model):
    seen = image_model.evaluate()
    assert seen["accuracy"] == pytest.approx(image_run.val_acc, abs=1e-12)
    with pytest.raises(taut.Error):
        image_model.evaluate(noise=0.1)


def test_forecast(recipes, image_model, tmp_path):
    small = {"model.width": 8, "model.heads": 2, "model.mlp": 8, "model.depth": 1, "model.seq": 12, "model.label": 6,
             "model.ahead": 4, "model.norm": "none", "train.steps": 4, "train.batch": 4, "train.warmup": 1,
             "train.eval_every": 0, "data.length": 400, "constrain.method": "normalise", "constrain.cap": 0.5}
    run = taut.train(recipes / "forecast-waves.ini", tmp_path / "waves", set=small)
    with run.load() as model:
        said = model.forecast(noise=0.01, csv=tmp_path / "future.csv")
        assert [c["name"] for c in said["columns"]] == ["day", "week", "both"] and len(said["dates"]) == 4
        for c in said["columns"]:
            assert all(low < v < high for low, v, high in zip(c["low"], c["values"], c["high"]))
        assert (tmp_path / "future.csv").read_text().startswith("date,day,day low,day high,week")
        assert "low" not in model.forecast()["columns"][0]
        assert model.forecast(set={"data.missing": "hold"}) == model.forecast()
        for bad in ({"data": tmp_path / "none.csv"}, {"noise": -1}, {"noise": float("nan")}, {"set": {"data.columns": "day"}},
                    {"set": 3}):
            with pytest.raises(taut.Error):
                model.forecast(**bad)
    with pytest.raises(taut.Error, match="forecaster"):
        image_model.forecast()


def test_predict(image_model, text_model, tmp_path):
    import numpy as np
    images = np.arange(2 * 16 * 16 * 3).reshape(2, 16, 16, 3).astype(np.uint8)
    np.save(tmp_path / "x.npy", images)
    done = []
    said = image_model.predict(tmp_path / "x.npy", progress=done.append)
    cert = image_model.certify(x=images.reshape(2, -1) / 255.0, y=[0, 0], norm="own", radius=1)
    for p, proved in zip(said["predictions"], cert.radii):
        assert 0 < p["radius"] == proved
        assert p["class"] == said["classes"][p["predicted"]] and sum(p["probabilities"]) == pytest.approx(1, abs=1e-12)
    assert len(said["predictions"]) == 2 and done[-1] == 1
    for bad in ((), (tmp_path / "none.png",)):
        with pytest.raises(taut.Error):
            image_model.predict(*bad)
    for bad in ({"norm": "l7"}, {"radius": -1}, {"radius": float("nan")}, {"text": "a"}):
        with pytest.raises(taut.Error):
            image_model.predict(tmp_path / "x.npy", **bad)
    with pytest.raises(taut.Error, match="gpt"):
        text_model.predict(tmp_path / "x.npy")


def test_contradictions_are_raised(image_model, monkeypatch):
    monkeypatch.setattr(_measure.json, "loads", lambda text: {"contradiction": True, "found": 2})
    with pytest.raises(taut.Contradiction, match="above what is proved") as caught:
        image_model.evaluate()
    assert caught.value.result["found"] == 2


def test_plan():
    plan = taut.plan(10, depth=3, width=256, heads=4)
    assert plan["lipschitz"] <= 10 and "[model]" in plan["recipe"]
    for bad in ({"target": -1}, {"target": float("nan")}, {"target": 10, "depth": 2.5}, {"target": 10, "nobody": 1},
                {"target": 10, "units": "miles"}):
        with pytest.raises(taut.InputError):
            taut.plan(**bad)


def test_sample(text_model, image_model):
    prompt = text_model.decode([1, 2, 3])
    text = text_model.sample(prompt, length=5, seed=3)
    assert text.startswith(prompt) and len(text_model.encode(text)) == 8
    assert text == text_model.sample(prompt, length=5, seed=3)
    assert text_model.sample(prompt, length=9, likeliest=True) == text_model.sample(prompt, length=9, likeliest=True, seed=9)
    for model, options in ((image_model, {}), (text_model, {"prompt": "a\0"}), (text_model, {"length": -1}),
                           (text_model, {"temperature": float("nan")})):
        with pytest.raises(taut.Error):
            model.sample(**options)


def test_weights_that_are_not_finite(recipes, tmp_path):
    def spoiled(arch):
        path = tmp_path / f"{arch}.safetensors"
        with taut.create(recipes / "tiny-free.ini", {"model.width": 16, "model.heads": 2, "model.arch": arch}) as model:
            model.save(path)
        raw = path.read_bytes()
        start = 8 + int.from_bytes(raw[:8], "little")
        path.write_bytes(raw[:start] + b"\xff\xff\xff\x7f" * ((len(raw) - start) // 4))
        return taut.load(path)

    with spoiled("gpt") as model:
        for options in ({}, {"likeliest": True}, {"top_k": 2}):
            with pytest.raises(taut.NotFiniteError, match="token 2: a logit is not finite"):
                model.sample(length=3, **options)
    with spoiled("encoder") as model:
        for unit in (False, True):
            with pytest.raises(taut.NotFiniteError, match="a feature is not finite"):
                model.features(["to be"], unit=unit)
