"""The order of what goes to Triton, which loses or crashes on some orders; Triton's own part is recorded here."""

import importlib
import sys
from types import SimpleNamespace
from typing import Any

import pytest

FINAL = 1


class Sender:
    """Records responses as (error or tensors, final)."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, bool]] = []
        self.asked = 0

    def send(self, response: Any = None, flags: int = 0) -> None:
        self.sent.append((response, flags == FINAL))

    def is_cancelled(self) -> bool:
        self.asked += 1
        return True


def ids(*values: int) -> dict[str, Any]:
    return {"output_ids": [[list(values)]], "sequence_length": [[len(values)]]}


@pytest.fixture
def sender() -> Sender:
    return Sender()


@pytest.fixture
def reply(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> Any:
    backend = SimpleNamespace(
        TRITONSERVER_RESPONSE_COMPLETE_FINAL=FINAL,
        Tensor=SimpleNamespace(from_dlpack=lambda name, tensor: SimpleNamespace(name=name, values=tensor.tolist())),
        TritonError=lambda reason, code: reason,
        InferenceResponse=lambda tensors=None, error=None: error or {row.name: row.values for row in tensors},
    )
    backend.TritonError.CANCELLED = 9  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", backend)  # type: ignore[arg-type]
    monkeypatch.delitem(sys.modules, "reply", raising=False)
    made = importlib.import_module("reply").Reply(sender, "7")
    sys.modules.pop("reply")
    return made


def test_an_answer_ends_with_tensors_also_where_nothing_new_has_come(reply, sender):
    reply.send([5, 6], {})
    reply.finish([], {})

    assert sender.sent == [(ids(5, 6), False), (ids(), True)]


def test_facts_are_tensors_of_their_own(reply, sender):
    reply.finish([5, 6], {"num_output_tokens": [3]})

    assert sender.sent == [({**ids(5, 6), "num_output_tokens": [[3]]}, True)]


def test_log_probabilities_are_fractions(reply, sender):
    reply.finish([5], {"output_log_probs": [[-0.5]], "cum_log_probs": [-1.25]})

    assert sender.sent == [({**ids(5), "output_log_probs": [[[-0.5]]], "cum_log_probs": [[-1.25]]}, True)]


def test_a_first_error_is_one_with_the_end(reply, sender):
    reply.fail("too long", 3)

    assert sender.sent == [("too long", True)]


def test_a_later_error_comes_before_the_end(reply, sender):
    reply.send([5], {})
    reply.fail("died", 3)

    assert sender.sent == [(ids(5), False), ("died", False), (None, True)]


def test_an_unwanted_answer_ends_where_it_stands(reply, sender):
    reply.send([5], {})
    reply.break_off()

    assert sender.sent == [(ids(5), False), (ids(), True)]


def test_an_unwanted_answer_that_has_not_begun_ends_with_an_error(reply, sender):
    reply.break_off()

    assert sender.sent == [("cancelled", True)]


@pytest.mark.parametrize("end", [lambda reply: reply.finish([5], {}), lambda reply: reply.fail("died", 3)])
def test_triton_is_never_asked_about_an_ended_request(reply, sender, end):
    assert reply.is_cancelled()
    end(reply)

    assert not reply.is_cancelled()
    assert sender.asked == 1
