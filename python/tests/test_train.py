"""Training: progress, stopping, resuming, Ctrl-C, reports."""
import os
import signal

import pytest
from conftest import TEXT

import taut
from taut import _show


def test_run(text_run):
    assert text_run.steps == 6 and not text_run.stopped and text_run.val_loss > 0 and len(repr(text_run)) < 300
    assert (text_run.path / "model.safetensors").exists()


def test_stop_and_resume(text_run, recipes, tmp_path):
    seen = []

    def stop(now):
        seen.append(now.step)
        return now.step == 3

    run = taut.train(recipes / "tiny-free.ini", tmp_path / "a", set=TEXT, progress=stop)
    assert run.stopped and run.steps == 3 and seen == [1, 2, 3]
    with pytest.raises(taut.Error):
        taut.train(recipes / "tiny-free.ini", tmp_path / "a", set=TEXT)
    run = taut.train(recipes / "tiny-free.ini", tmp_path / "a", set=TEXT, resume=True)
    assert run.steps == 6
    assert (run.path / "model.safetensors").read_bytes() == (text_run.path / "model.safetensors").read_bytes()


def test_teachers(text_run, recipes, tmp_path):
    other = {**TEXT, "train.seed": 2}
    alone = taut.train(recipes / "tiny-free.ini", tmp_path / "a", other)
    taught = taut.train(recipes / "tiny-free.ini", tmp_path / "b",
                        {**other, "train.teachers": [text_run, str(text_run.path)]})
    assert f"\nteachers = {text_run.path},{text_run.path}\n" in (taught.path / "recipe.ini").read_text()
    assert (taught.path / "model.safetensors").read_bytes() != (alone.path / "model.safetensors").read_bytes()


def test_exceptions_pass(recipes, tmp_path):
    def fail(now):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        taut.train(recipes / "tiny-free.ini", tmp_path / "a", set=TEXT, progress=fail)


def test_ctrl_c_saves(recipes, tmp_path):
    """A signal during a step: the run stops, is saved, and can be resumed.  Afterwards Ctrl-C is Python's again."""
    def interrupt(now):
        if now.step == 2:
            os.kill(os.getpid(), signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where pytest runs in the background
    with pytest.raises(KeyboardInterrupt):
        taut.train(recipes / "tiny-free.ini", tmp_path / "a", set=TEXT, progress=interrupt)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    run = taut.train(recipes / "tiny-free.ini", tmp_path / "a", set=TEXT, resume=True)
    assert run.steps == 6


def test_bar(recipes, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_show, "seen", lambda: True)
    taut.train(recipes / "tiny-free.ini", tmp_path / "a", set=TEXT, progress=True)
    assert "100 %  6/6 loss" in capsys.readouterr().err
    monkeypatch.setattr(_show, "seen", lambda: False)
    taut.train(recipes / "tiny-free.ini", tmp_path / "a", set=TEXT, progress=True, overwrite=True)
    assert capsys.readouterr().err == ""


def test_report(text_run, image_run, tmp_path):
    page = taut.report([text_run, image_run.path], tmp_path / "r.html", title="two runs", svg=tmp_path)
    assert "two runs" in page.read_text() and list(tmp_path.glob("*.svg"))
    with pytest.raises(taut.FileError, match="no such folder"):
        taut.report("nowhere", tmp_path / "r.html")
    with pytest.raises(taut.InputError):
        taut.report([], tmp_path / "r.html")
