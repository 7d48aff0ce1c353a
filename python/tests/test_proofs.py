"""Certificates, their check, attacks, and how they are shown."""
import json
import math
import pickle

import numpy as np
import pytest

import taut
from taut import _attack, _c


@pytest.fixture(scope="module")
def cert(image_run):
    with image_run.load() as model:
        x, y = model.data().examples("valid", 20)
        return model.certify(norm="flat", x=x, y=y, radius=0.5)


def test_certificate(cert, image_model):
    assert 0 < cert.lipschitz < math.inf and cert.norm == "flat" and cert.radius == 0.5 and len(cert.radii) == 20
    x, y = image_model.data().examples("valid", 20)
    z = image_model(x)
    assert np.array_equal(cert.predicted, z.argmax(-1)) and np.array_equal(cert.labels, y)
    top = np.sort(z, -1)
    assert np.all(cert.radii <= (top[:, -1] - top[:, -2]) * 10) and np.all(cert.radii >= 0)
    assert cert.waterfall[0].rule and cert.waterfall[0].lipschitz > 0
    assert json.loads(cert.json)["model"]["sha256"] == cert.sha256 and len(repr(cert)) < 300


def test_no_slope_is_above(cert, image_model, rng):
    """The constant against slopes that are seen: |f(x) - f(y)| / |x - y|."""
    x, y = rng.random((40,) + image_model.shape), rng.random((40,) + image_model.shape)
    slopes = np.linalg.norm(image_model(x) - image_model(y), axis=-1) / np.linalg.norm((x - y).reshape(40, -1), axis=-1)
    assert slopes.max() <= cert.lipschitz


def test_local(image_model):
    cert = image_model.certify(norm="flat", examples=2, local=True, radius=0.1)
    assert len(cert.radii) == 2 and np.all(cert.local_lipschitz <= cert.lipschitz * (1 + 1e-9))


def test_tolerance(image_model):
    """Radii for a runtime that is off are smaller, and none is left of one that is off by half a margin."""
    exact, off, worse = (image_model.certify(norm="flat", examples=8, radius=9, tolerance=e) for e in (0, 1e-3, 1e9))
    assert np.all(off.radii <= exact.radii) and (off.radii < exact.radii).any() and not worse.radii.any()
    assert [cert.tolerance for cert in (exact, off, worse)] == [0, 1e-3, 1e9] and off.runs_on is None
    with pytest.raises(taut.InputError):
        image_model.certify(norm="flat", tolerance=1)


def test_runs_on(image_model):
    """Radii for kernels that round are smaller, those of wide hardly."""
    exact, wide, cpu = (image_model.certify(norm="flat", examples=8, radius=9, runs_on=k) for k in (None, "wide", "cpu"))
    assert np.all(cpu.radii <= wide.radii) and np.all(wide.radii <= exact.radii) and (cpu.radii < exact.radii).any()
    assert [cert.runs_on for cert in (exact, wide, cpu)] == [None, "wide", "cpu"]
    assert exact.tolerance == 0 < wide.tolerance < cpu.tolerance
    with pytest.raises(taut.InputError):
        image_model.certify(norm="flat", examples=8, runs_on="gpu")


def test_swaps(recipes, tmp_path):
    """A classifier of texts: one answer each, and which of its tokens can be swapped."""
    run = taut.train(recipes / "classifier-animals.ini", tmp_path / "words",
                     set={"data.length": 600, "train.steps": 40, "train.eval_every": 40, "train.checkpoint_every": 40})
    with run.load("ref") as model:
        x, y = model.data().examples("valid", 5)
        z = model(x)
        assert z.shape == (5, 4) and y.shape == (5,)
        cert = model.certify(x=x, y=y, swaps=2, tries=8)
        assert cert.norm == "flat" and np.array_equal(cert.predicted, z.argmax(-1)) and len(cert.swaps) == 5
        table = model.weights["embed.weight"]
        for ids, answer, s in zip(x, cert.predicted, cert.swaps):
            assert s.all == 32 * (len(table) - 1) and 0 <= s.together <= s.covered <= s.all and s.beaten == 0
            apart = np.linalg.norm(table[ids][:, None] - table, axis=-1)
            others = ids[:, None] != np.arange(len(table))
            assert np.sum((apart < s.radius) & others) == s.covered
            assert s.nearest == pytest.approx(apart[others & (apart >= s.radius)].min())
            for t, new in np.argwhere((apart < s.radius) & others):
                swapped = ids.copy()
                swapped[t] = new
                assert model(swapped).argmax() == answer
        assert model.certify(x=x, y=y).swaps == ()
        with pytest.raises(taut.InputError):
            model.certify(x=x, y=y, swaps=17)


def test_check(cert, image_run, text_run, tmp_path):
    cert.save(tmp_path / "c.json")
    verdict = taut.check(tmp_path / "c.json", image_run.path)
    assert verdict and verdict.verdict == "confirmed" and verdict.why == "" and verdict.lipschitz == cert.lipschitz
    assert taut.check(cert, image_run.load())
    forged = json.loads(cert.json)
    forged["lip"] /= 2
    (tmp_path / "forged.json").write_text(json.dumps(forged))
    refuted = taut.check(tmp_path / "forged.json", image_run.path)
    assert not refuted and refuted.verdict == "refuted" and refuted.why
    other = taut.check(cert, text_run.path)
    assert not other and other.why
    with pytest.raises(taut.FileError):
        taut.check(tmp_path / "nobody.json", image_run.path)


def test_values_travel(cert):
    again = pickle.loads(pickle.dumps(cert))
    assert again.json == cert.json and np.array_equal(again.radii, cert.radii) and again.lipschitz == cert.lipschitz


@pytest.fixture(scope="module")
def attacked(image_run):
    with image_run.load() as model:
        x, y = model.data().examples("valid", 10)
        return model.attack(x, y, "pgd", norm="L2", eps=[0.01, 3.0], steps=5, restarts=1)


def test_attack(attacked):
    assert attacked.examples == 10 and attacked.contradictions == 0 and np.array_equal(attacked.eps, [0.01, 3.0])
    assert np.all(attacked.certified <= attacked.standing) and np.all(np.diff(attacked.standing) <= 0)
    right = attacked.labels == attacked.predicted
    assert np.array_equal((right & ~attacked.broken).sum(1), attacked.standing)
    assert np.all(attacked.distances[attacked.broken] > 0) and len(repr(attacked)) < 200
    assert pickle.loads(pickle.dumps(attacked)).json == attacked.json
    assert json.loads(attacked.json)


def test_contradiction_is_raised(image_model, attacked, monkeypatch):
    from dataclasses import replace
    monkeypatch.setattr(_attack, "_read", lambda *_: replace(attacked, contradictions=1))
    with pytest.raises(taut.Contradiction, match="inside a certified radius") as caught:
        image_model.attack(attacks="pgd", norm="L2", eps=0.1, examples=1, steps=1, restarts=1)
    assert caught.value.result.contradictions == 1


def test_attack_can_be_stopped(image_model):
    def never(done):
        raise ZeroDivisionError("from the callback")

    with pytest.raises(ZeroDivisionError, match="from the callback"):
        image_model.attack(attacks="pgd", norm="L2", eps=0.1, examples=4, steps=2, batch=1, progress=never)
    with pytest.raises(taut.Error, match="stopped"):
        image_model.attack(attacks="pgd", norm="L2", eps=0.1, examples=4, steps=2, batch=1, progress=lambda done: True)


def test_shown(cert, attacked, image_run, image_model):
    for what in (cert, attacked, image_run, image_model):
        page = what._repr_html_()
        assert "<table>" in page and "<svg" in page and "<script" not in page


def test_numbers_for_people():
    assert float(_c.up(1 / 3)) >= 1 / 3 >= float(_c.down(1 / 3)) and "inf" in _c.up(math.inf)
