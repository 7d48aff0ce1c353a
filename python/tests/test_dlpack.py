"""Arrays of other packages, by DLPack: read where they lie, and given back without a copy."""
import numpy as np
import pytest

import taut


class Foreign:
    """An array that only knows DLPack; on another device if asked."""

    def __init__(self, a, device=(1, 0)):
        self.a, self.device = a, device

    def __dlpack__(self, **options):
        if self.device != (1, 0):
            raise BufferError("not on this machine's processor")
        return self.a.__dlpack__()

    def __dlpack_device__(self):
        return self.device


def test_read_where_they_lie(image_model, images):
    x = images[0]
    b = image_model._batch(Foreign(x))
    assert np.shares_memory(b.x, x), "no copy"
    assert np.array_equal(image_model(Foreign(x)), image_model(x))
    assert np.array_equal(image_model(Foreign(x.astype(np.float32))), image_model(x.astype(np.float32)))
    w = np.ones((len(x), image_model.classes))
    assert np.array_equal(image_model.grad(Foreign(x), Foreign(w)), image_model.grad(x, w))


def test_given_back(image_model, images):
    y = image_model(images[0])
    again = np.from_dlpack(y)
    assert np.shares_memory(y, again)


@pytest.mark.parametrize("bad,match", [
    (Foreign(np.zeros(3), (2, 0)), "processor|device"), (Foreign(np.zeros(3)), "has shape"),
    (Foreign(np.zeros((2, 2), complex)), "not of numbers"), (Foreign("text"), "input")])
def test_refused(image_model, bad, match):
    with pytest.raises(taut.InputError, match=match) as caught:
        image_model(bad)
    assert "\n" not in str(caught.value)


def test_tensors(image_model, text_model, images):
    torch = pytest.importorskip("torch")
    import taut.torch
    x = torch.tensor(images[0])
    assert image_model._batch(x).x.ctypes.data == x.data_ptr(), "no copy of float64 in C's order"
    assert np.array_equal(image_model(x), image_model(images[0]))
    last = x.movedim(-1, 1)  # (n, channels, height, width) with the channels last in memory
    assert last.shape[1] == image_model.shape[2]
    assert image_model._batch(taut.torch.to_numpy(last, True)).x.ctypes.data == x.data_ptr(), "no copy"
    assert np.array_equal(taut.torch.module(image_model)(last).numpy(), image_model(images[0]))
    ids = torch.tensor([[1, 2, 3]], dtype=torch.int32)
    assert text_model._batch(ids).x.ctypes.data == ids.data_ptr(), "no copy"
    half = taut.torch.module(image_model)(last.bfloat16())
    assert half.dtype == torch.bfloat16
    for bad in (x.requires_grad_(), x.detach().bfloat16(), x.detach().to_sparse(), torch.zeros(2, 2, device="meta")):
        with pytest.raises(taut.InputError) as caught:
            image_model(bad)
        assert "\n" not in str(caught.value)
