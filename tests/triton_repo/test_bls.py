"""The BLS model's own part, with recorded calls in place of Triton: what it sends, and when it stops the engine."""

import importlib.util
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from trtpipe.triton_repo import contract, repository


class Sender:
    def __init__(self, cancelled_after=None, deaf=1):
        self.asked, self.deaf = 0, deaf
        self.texts = []
        self.counts = []
        self.cancelled_after = cancelled_after

    def take(self, text_output, **counts):
        self.texts.append(text_output)
        self.counts.append({name: count.tolist() for name, count in counts.items()})

    def is_cancelled(self):
        """Triton is asked once before the engine is, and then with each of the engine's responses."""
        self.asked += 1
        return self.cancelled_after is not None and len(self.texts) >= self.cancelled_after and self.asked > self.deaf


@pytest.fixture
def bls(monkeypatch, byte_level):
    """Return a function that answers a request from given chunks of text: what was sent, and how often stopped."""
    from token_bytes import TokenBytes

    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", SimpleNamespace())
    spec = importlib.util.spec_from_file_location("bls", repository.MODELS / "tensorrt_llm_bls" / "model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("steps", "cancellation", "counts", "log_probs"):
        monkeypatch.delitem(sys.modules, name)
    table = TokenBytes(byte_level.tokenizer)
    model = module.TritonPythonModel()
    model.table, model.opens_text, model.steps = table, True, contract.STEPS
    scored_ids = []

    def called(step, given):
        return {"text_output": table.text(module.ids_of(given))} if step.model == "postprocessing" else {}

    def produced(ids, counted, scored, local):
        scored_ids.extend(ids)
        new = np.array([[len(ids)]])
        counts = {"num_input_tokens": np.array([[9]]), "num_output_tokens": new}
        # TensorRT-LLM tells those of all tokens so far with each response, the local engine the new ones.
        told = np.array([[ids if local else scored_ids]]) / -1000
        log_probs = {"output_log_probs": told, "cum_log_probs": np.array([[-7.0]])}
        log_probs |= {"log_prob_ids": np.array([[ids]])} if local else {}
        return module.answer_of(ids) | (counts if counted else {}) | (log_probs if scored else {})

    def answer(chunks, sender, *, stream, counted=False, scored=False, local=False, **tensors):
        stops = []
        model.guided = local
        monkeypatch.setattr(module, "call", called)
        monkeypatch.setattr(module, "stream", lambda *_: (produced(ids, counted, scored, local) for ids in chunks))
        monkeypatch.setattr(module, "stop", stops.append)
        monkeypatch.setattr(module, "_send", lambda to, sent: to.take(**sent))
        model._answer(sender, {"stream": np.array([[stream]]), **tensors}, "engine-id")
        return sender.texts, len(stops)

    return answer


def counts_module():
    found = importlib.import_module("counts")
    sys.modules.pop("counts")
    return found


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


def test_a_request_that_was_left_while_it_waited_does_not_reach_the_engine(bls):
    def unasked():
        pytest.fail("the engine was asked")
        yield []

    assert bls(unasked(), Sender(cancelled_after=0, deaf=0), stream=True) == ([], 0)


def test_each_token_is_counted_once_with_the_response_after_it(bls, byte_level):
    """The first token of a character brings no text, that of a stop word neither."""
    sender = Sender()
    chunks = [[token] for token in byte_level.encode("a语.")]
    bls(chunks, sender, stream=True, counted=True, **words("."))

    assert sender.texts == ["a", "语", ""]
    assert sender.counts == [{"num_input_tokens": [[9]], "num_output_tokens": [[new]]} for new in (1, 3, 1)]


def test_the_engine_is_asked_for_the_counts_that_the_client_wants():
    ask = counts_module().ask
    text, yes, no = np.array([[b"x"]]), np.array([True]), np.array([False])

    asked = ask({"text_input": text, "return_num_output_tokens": yes, "return_num_input_tokens": no})

    assert asked.keys() == {"text_input", "return_num_output_tokens"}
    assert asked["return_num_output_tokens"].tolist() == [[True]]


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("stream", [False, True])
def test_each_token_is_told_once_with_its_log_probability(bls, byte_level, stream, local):
    """Also of tokens that are not shown: those of a stop word."""
    sender = Sender()
    tokens = byte_level.encode("a语.")
    bls([[token] for token in tokens], sender, stream=stream, scored=True, local=local, **words("."))

    told = [value for facts in sender.counts for value in facts["output_log_probs"][0][0]]
    assert told == [token / -1000 for token in tokens]
    assert [token for facts in sender.counts for token in facts["log_prob_ids"][0][0]] == tokens
    assert {tuple(facts["cum_log_probs"][0]) for facts in sender.counts} == {(-7.0,)}
    assert len(sender.counts) == (3 if stream else 1)
