"""A closed loop against answers of known timing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from trtpipe.errors import ToolFailed
from trtpipe.load import closed_loop, figures
from trtpipe.load.closed_loop import Answered, Loop


def test_so_many_clients_ask_at_once_and_each_request_is_sent_once() -> None:
    lock, at_once, most, sent = threading.Lock(), 0, 0, []

    @contextmanager
    def ask(number: int) -> Iterator[Iterator[str]]:
        nonlocal at_once, most
        with lock:
            sent.append(number)
            at_once += 1
            most = max(most, at_once)
        time.sleep(0.05)
        yield iter(("", f"answer {number}"))
        with lock:
            at_once -= 1

    assert closed_loop.run(ask, clients=8, requests=2, on_answer=lambda done: None).clients == 2
    sent.clear()
    told: list[int] = []
    loop = closed_loop.run(ask, clients=3, requests=9, on_answer=told.append)
    assert (most, sorted(sent), told) == (3, list(range(9)), list(range(1, 10)))
    assert [answer.text for answer in loop.answers] == [f"answer {number}" for number in range(9)]


def test_a_failed_and_an_empty_answer_are_counted_as_such() -> None:
    @contextmanager
    def ask(number: int) -> Iterator[Iterator[str]]:
        if number == 1:
            raise ToolFailed("it broke", where="there", fix="mend it")
        yield iter(["text"] if number else [])

    loop = closed_loop.run(ask, clients=1, requests=3, on_answer=lambda done: None)
    assert [answer.fault for answer in loop.answers] == ["the answer was empty", "it broke", None]


def test_the_figures_are_those_of_whole_answers_and_say_how_many() -> None:
    answers = (
        Answered("a b c d e", 0.1, 0.5),
        Answered("a b c", 0.2, 0.3),
        Answered("a", 0.3, 0.3),
        Answered("", 0.0, 0.0, "it broke"),
    )
    found = figures.of(Loop(2, 2.0, answers), lambda text: len(text.split()))
    assert (found["requests"], found["failed"], found["faults"]) == (4, 1, {"it broke": 1})
    assert (found["answer_tokens"], found["answer_tokens_per_second"], found["requests_per_second"]) == (9, 4.5, 1.5)
    assert found["ttft_ms"] == {"samples": 3, "p50": 200.0, "p95": pytest.approx(290.0)}
    assert found["tpot_ms"] == {"samples": 2, "p50": pytest.approx(75.0), "p95": pytest.approx(97.5)}
