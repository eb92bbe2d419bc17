"""The BLS model's own part, with recorded calls in place of Triton: what it sends, and when it stops the engine."""

import importlib.util
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from trtpipe.triton_repo import repository


class Sender:
    def __init__(self, cancelled_after=None):
        self.texts = []
        self.cancelled_after = cancelled_after

    def is_cancelled(self):
        return self.cancelled_after is not None and len(self.texts) >= self.cancelled_after


@pytest.fixture
def bls(monkeypatch, byte_level):
    """Return a function that answers a request from given chunks of text: what was sent, and how often stopped."""
    from token_bytes import TokenBytes

    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", SimpleNamespace())
    spec = importlib.util.spec_from_file_location("bls", repository.MODELS / "tensorrt_llm_bls" / "model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("steps", "cancellation"):
        monkeypatch.delitem(sys.modules, name)
    table = TokenBytes(byte_level.tokenizer)
    model = module.TritonPythonModel()
    model.table = table

    def called(step, given):
        return table.text(module.ids_of(given)) if step.model == "postprocessing" else {}

    def answer(chunks, sender, *, stream, **tensors):
        stops = []
        monkeypatch.setattr(module, "call", called)
        monkeypatch.setattr(module, "stream", lambda *_: (module.answer_of(ids) for ids in chunks))
        monkeypatch.setattr(module, "stop", stops.append)
        monkeypatch.setattr(module, "_send", lambda to, text: to.texts.append(text))
        model._answer(sender, {"stream": np.array([[stream]]), **tensors})
        return sender.texts, len(stops)

    return answer


def words(*texts):
    return {"stop_words": np.array([[text.encode() for text in texts]], dtype=np.object_)}


def test_tokens_as_tensorrt_llm_sends_them_become_whole_characters(bls, byte_level):
    chunks = [[token] for token in byte_level.encode("a语")]

    assert bls(chunks, Sender(), stream=True) == (["a", "语"], 0)
    assert bls(chunks, Sender(), stream=False) == (["a语"], 0)


def test_a_stop_word_on_the_text_ends_the_answer_and_the_engines_work(bls, byte_level):
    chunks = [byte_level.encode(text) for text in ("one E", "ND two", " three")]

    assert bls(chunks, Sender(), stream=True, **words("END")) == (["one "], 1)
    assert bls(chunks, Sender(), stream=False, **words("END")) == (["one "], 1)


def test_an_answer_without_text_is_one_response(bls):
    assert bls([[]], Sender(), stream=True) == ([""], 0)


def test_a_cancelled_answer_is_stopped_once_and_sends_nothing_more(bls, byte_level):
    chunks = [byte_level.encode(text) for text in ("a", "b", "c")]

    assert bls(chunks, Sender(cancelled_after=1), stream=True) == (["a"], 1)
    assert bls(chunks, Sender(cancelled_after=0), stream=False) == ([], 1)
