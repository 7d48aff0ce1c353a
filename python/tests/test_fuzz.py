"""Arguments that nobody thought of: an answer of the right shape or one of our exceptions, never anything else."""
import numpy as np
import pytest

import taut

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, given, settings, strategies as st  # noqa: E402
from hypothesis.extra import numpy as hnp  # noqa: E402

DTYPES = st.sampled_from(["f2", "f4", "f8", ">f8", "i1", "i4", "i8", "u1", "u8", "?", "c16", "S3", "U2", "O", "M8[s]"])
ARRAYS = DTYPES.flatmap(lambda d: hnp.arrays(d, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=6)) if d != "O"
                        else st.just(np.array([object(), None])))
THINGS = st.one_of(ARRAYS, st.none(), st.text(max_size=5), st.integers(), st.floats(), st.lists(st.floats(), max_size=3),
                   st.binary(max_size=4))
MANY = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def answers(call):
    try:
        return call()
    except (taut.Error, KeyError) as why:
        assert "\n" not in str(why)


@MANY
@given(x=THINGS, w=THINGS)
def test_numbers(text_model, image_model, x, w):
    for model in (text_model, image_model):
        y = answers(lambda: model(x))
        assert y is None or (y.shape[-1] == model.classes and y.dtype == np.float64)
        for call in (model.grad, model.jvp, model.loss):
            answers(lambda: call(x, w))
        answers(lambda: model.embed(x))
        answers(lambda: model.decode(x))
        answers(lambda: model.encode(x))


@MANY
@given(ids=hnp.arrays("i8", hnp.array_shapes(max_dims=3, max_side=20), elements=st.integers(-2, 70)))
def test_ids(text_model, ids):
    y = answers(lambda: text_model(ids))
    inside = ids.ndim in (1, 2) and ids.shape[-1] <= 16 and ids.min() >= 0 and ids.max() < text_model.vocabulary
    assert (y is not None) == inside and (y is None or y.shape == ids.shape + (text_model.classes,))


@MANY
@given(norm=THINGS, x=THINGS, y=THINGS, radius=THINGS, examples=st.one_of(st.integers(-3, 2), st.floats(), st.none()),
       rows=THINGS)
def test_certify(image_model, norm, x, y, radius, examples, rows):
    cert = answers(lambda: image_model.certify(norm, x, y, radius, examples=examples, rows=rows))
    assert cert is None or cert.lipschitz > 0


@MANY
@given(name=THINGS, value=THINGS, path=THINGS)
def test_names(image_model, name, value, path):
    answers(lambda: image_model.data(name))
    answers(lambda: image_model.score(split=name, examples=value))
    answers(lambda: taut.check(path, value))
    answers(lambda: image_model.attack(attacks=name, eps=value, norm=path, examples=1, steps=1))
