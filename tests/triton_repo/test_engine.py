"""The engine model's own part: what it sends, counts and logs, with stand-ins for vLLM and Triton's backend."""

import importlib
import re
import sys
import time
from types import SimpleNamespace

import pytest

import stand_in_vllm
from stand_in_vllm import ClientError, Record, Sender

OWN = ("engine", "engine_metrics", "facts", "metric_families", "pace", "reply")


@pytest.fixture
def record():
    return Record()


@pytest.fixture
def engine(record, monkeypatch, tmp_path, byte_level):
    for name, module in stand_in_vllm.modules(record).items():
        monkeypatch.setitem(sys.modules, name, module)
    for name in OWN:
        monkeypatch.delitem(sys.modules, name, raising=False)
    module = importlib.import_module("engine")
    tokenizer = SimpleNamespace(tokenizer=byte_level.tokenizer, eos_ids=frozenset({2}), has_template=True)
    monkeypatch.setattr(module, "ChatTokenizer", SimpleNamespace(load=lambda folder: tokenizer))
    made = module.Engine(tmp_path, {}, "tensorrt_llm", "1", queue_requests_max=1)
    yield made
    made.shutdown()
    for name in OWN:
        sys.modules.pop(name)


def ask(engine, request_id="r-1", **values):
    """Ask the engine, as ``execute`` does, and return the sender."""
    from generation import read

    sender = Sender()
    request = SimpleNamespace(get_response_sender=lambda: sender, request_id=lambda: request_id)
    values = {"input_ids": [5, 6, 7], "input_lengths": [3], "request_output_len": [10]} | values
    engine.submit(engine.reply_to(request), read(values, engine.limits))
    return sender


def ended(sender):
    assert sender.ended.wait(10)
    return sender.sent


def settled(record):
    """Wait until the engine has counted what it has sent."""
    deadline = time.monotonic() + 10
    while record.last("nv_trt_llm_request_metrics", "active") != 0:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_answer_is_counted(engine, record):
    ended(ask(engine))
    settled(record)

    assert record.total("nv_llm_input_token_len", "total_input_tokens") == 1
    assert record.last("nv_llm_input_token_len", "total_input_tokens") == 3
    assert record.last("nv_llm_output_token_len", "total_output_tokens") == 3
    assert record.last("trtpipe_queue_seconds") == 0.5
    assert 0 < record.last("trtpipe_time_to_first_token_seconds") < 5
    assert 0 <= record.last("trtpipe_time_per_output_token_seconds") < 5
    assert record.total("trtpipe_tokens", "prompt") == record.total("trtpipe_tokens", "answer") == 3
    assert record.total("trtpipe_prefix_cache_tokens", "hit") == 3 * 32
    assert record.last("nv_trt_llm_kv_cache_block_metrics", "reused") == 3
    assert record.last("nv_trt_llm_general_metrics", "iteration_counter") == 4  # with the one that frees its blocks
    assert record.total("trtpipe_request_outcomes", "answered") == 1


def test_the_engine_shows_how_things_stand_while_it_works(engine, record, monkeypatch):
    monkeypatch.setattr(stand_in_vllm.Engine, "endless", True)
    sender = ask(engine)
    deadline = time.monotonic() + 10
    while not record.metrics["nv_trt_llm_request_metrics", "waiting"][-1][1]:
        assert time.monotonic() < deadline
        time.sleep(0.01)

    assert record.last("nv_trt_llm_request_metrics", "active") == 1
    assert record.last("nv_trt_llm_request_metrics", "scheduled") == 1
    assert record.last("nv_trt_llm_request_metrics", "waiting") == 3
    assert record.last("nv_trt_llm_kv_cache_block_metrics", "used") == 3
    assert record.last("nv_trt_llm_kv_cache_block_metrics", "free") == 7

    sender.gone = True
    assert ended(sender)
    settled(record)
    assert record.last("nv_trt_llm_request_metrics", "scheduled") == 0
    assert record.total("trtpipe_request_outcomes", "cancelled") == 1


def test_what_vllm_still_holds_is_shown_when_nobody_waits_for_it(engine, record, monkeypatch):
    """An abort that gets lost is seen: the gauges are vLLM's own, not what they ought to be."""
    monkeypatch.setattr(stand_in_vllm.Engine, "endless", True)
    monkeypatch.setattr(stand_in_vllm.Engine, "forgets_aborts", True)
    sender = ask(engine)
    sender.gone = True
    assert ended(sender)
    settled(record)

    assert record.last("nv_trt_llm_request_metrics", "scheduled") == 1
    assert record.last("nv_trt_llm_kv_cache_block_metrics", "used") == 3


def test_one_thread_alone_touches_the_metrics_and_sends_only_what_has_changed(engine, record):
    for _ in range(3):
        ended(ask(engine))
    settled(record)
    time.sleep(0.3)  # three times as long as nothing is published unless it has changed

    assert record.metric_threads == {engine._thread.ident}
    assert len(record.metrics["nv_trt_llm_request_metrics", "max"]) == 1


def test_a_request_that_vllm_refuses_is_the_clients_fault(engine, record, monkeypatch):
    monkeypatch.setattr(stand_in_vllm.Engine, "answers", ())
    monkeypatch.setattr(stand_in_vllm.Engine, "fault", ClientError("too many bad words"))

    assert ended(ask(engine)) == [(("invalid", "too many bad words"), True)]
    settled(record)
    assert record.total("trtpipe_request_outcomes", "refused") == 1
    assert not record.metrics["nv_llm_output_token_len", "total_output_tokens"]


def test_a_word_without_text_is_refused_and_does_not_end_every_answer(engine, record):
    """Ids above those of the tokenizer are the engine's too: its vocabulary is often padded."""
    for name in ("stop_words_list", "bad_words_list"):
        (((code, reason), final),) = ended(ask(engine, **{name: [299, 1]}))

        assert (code, final) == ("invalid", True)
        assert f"{name}: the tokenizer has no text for [299]" in reason


def test_more_than_may_wait_are_told_to_come_back(engine, record, monkeypatch):
    """The stand-in takes 4 in a step; 1 may wait."""
    monkeypatch.setattr(stand_in_vllm.Engine, "endless", True)
    taken = [ask(engine) for _ in range(5)]

    (((code, reason), final),) = ended(ask(engine))
    assert (code, final) == ("unavailable", True)
    assert reason == "5 requests are being served or wait; come back later"
    assert not any(sender.ended.is_set() for sender in taken)

    for sender in taken:
        sender.gone = True
        ended(sender)
    settled(record)
    monkeypatch.setattr(stand_in_vllm.Engine, "endless", False)
    assert ended(ask(engine))[-1][0]["sequence_length"] == [[3]]


def test_a_failure_is_logged_with_the_clients_id(engine, record, monkeypatch):
    monkeypatch.setattr(stand_in_vllm.Engine, "fault", RuntimeError("no memory"))

    assert ended(ask(engine, "order-17"))[-1] == (("internal", "no memory"), True)
    assert ended(ask(engine, ""))[-1] == (("internal", "no memory"), True)
    assert record.logged == ["request order-17 failed: no memory", "request without an id failed: no memory"]


def test_each_request_has_a_line_in_the_log_by_its_id_and_without_text(engine, record, monkeypatch):
    ended(ask(engine, "order-17"))
    settled(record)
    monkeypatch.setattr(stand_in_vllm.Engine, "endless", True)
    sender = ask(engine, "two\nlines")
    sender.gone = True
    ended(sender)
    settled(record)

    answered, cancelled = record.told[:2]
    assert re.fullmatch(r"request order-17 answered: 3 tokens in, 3 out, \d+ ms", answered)
    assert re.fullmatch(r"request two\\nlines cancelled: 3 tokens in, \d out, \d+ ms", cancelled)


def test_what_is_refused_has_a_line_without_the_reason(engine, record):
    reply = engine.reply_to(SimpleNamespace(get_response_sender=Sender, request_id=lambda: "order-17"))
    engine.refuse(reply, "the guide is `my secret`")
    deadline = time.monotonic() + 10
    while not record.told:
        assert time.monotonic() < deadline
        time.sleep(0.01)

    assert record.told == ["request order-17 refused"]


def test_what_vllm_wraps_into_an_exception_without_words_is_told(engine, record, monkeypatch):
    fault = RuntimeError()
    fault.__cause__ = ValueError("the grammar is broken")
    monkeypatch.setattr(stand_in_vllm.Engine, "fault", fault)

    assert ended(ask(engine))[-1] == (("internal", "the grammar is broken"), True)


@pytest.mark.parametrize("reason", ["error", "abort"])
def test_a_request_that_vllm_gives_up_is_no_answer(engine, record, monkeypatch, reason):
    monkeypatch.setattr(stand_in_vllm.Engine, "finish_reason", reason)

    (_, said), final = ended(ask(engine))[-1]
    assert final
    assert f"gave the request up ({reason})" in said
    settled(record)
    assert record.total("trtpipe_request_outcomes", "failed") == 1


def test_vllm_hears_the_clients_id_made_unique(engine, record):
    for request_id in ("order-17", "order-17", ""):
        ended(ask(engine, request_id))

    assert [request_id for _, request_id in record.asked] == ["order-17-0", "order-17-1", "2"]


def test_a_dead_engine_is_unloaded_also_when_nobody_asks_it(engine, record):
    engine._llm.errored = True
    deadline = time.monotonic() + 10
    while not record.unloaded:
        assert time.monotonic() < deadline
        time.sleep(0.01)

    assert record.unloaded == ["tensorrt_llm"]
    assert "died" in record.logged[0]


def test_a_request_that_the_engine_dies_with_is_told(engine, record, monkeypatch):
    monkeypatch.setattr(stand_in_vllm.Engine, "fault", RuntimeError("EngineCore encountered an issue"))
    engine._llm.errored = True

    assert ended(ask(engine))[-1] == (("unavailable", "the engine has died; load the model again"), True)


def test_log_probabilities_come_with_their_tokens_where_they_are_asked_for(engine, record):
    sent = ended(ask(engine, streaming=[True], return_log_probs=[True]))

    assert [response["output_log_probs"] for response, _ in sent] == [[[[-0.5]]]] * 3
    assert [response["cum_log_probs"] for response, _ in sent] == [[[-0.5]], [[-1.0]], [[-1.5]]]
    assert [response["log_prob_ids"] for response, _ in sent] == [response["output_ids"] for response, _ in sent]
    assert record.asked[0][0]["logprobs"] == 0


def test_nobody_gets_log_probabilities_unasked(engine, record):
    ((response, final),) = ended(ask(engine))

    assert response.keys() == {"output_ids", "sequence_length"}
    assert final
    assert record.asked[0][0]["logprobs"] is None


def test_a_guide_reaches_vllm(engine, record):
    ended(ask(engine, guide_bytes=list(b"regex\n[0-9]+")))
    ended(ask(engine))

    assert [sampling["structured_outputs"] for sampling, _ in record.asked] == [{"regex": "[0-9]+"}, None]
