"""A closed loop: so many clients, each of which asks again as soon as it has its answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass

from trtpipe.errors import TrtpipeError

Ask = Callable[[int], AbstractContextManager[Iterator[str]]]


@dataclass(frozen=True)
class Answered:
    """One request; times in seconds since it was sent. ``fault``: None, or why there is no whole answer."""

    text: str
    first_s: float
    last_s: float
    fault: str | None = None


@dataclass(frozen=True)
class Loop:
    """``answers``: in the order in which the requests were sent; ``seconds``: of the whole loop."""

    clients: int
    seconds: float
    answers: tuple[Answered, ...]


def run(ask: Ask, *, clients: int, requests: int, on_answer: Callable[[int], None]) -> Loop:
    """Send ``requests`` requests in all, by no more clients than these. ``ask(number)`` gives an answer's texts.

    A request that fails with an error of this program is counted as such, and the loop goes on.
    """
    done, lock = 0, threading.Lock()

    def one(number: int) -> Answered:
        nonlocal done
        answer = _timed(ask, number)
        with lock:
            done += 1
            on_answer(done)
        return answer

    clients = min(clients, requests)
    started = time.monotonic()
    with ThreadPoolExecutor(clients) as pool:
        answers = tuple(pool.map(one, range(requests)))
    return Loop(clients, time.monotonic() - started, answers)


def _timed(ask: Ask, number: int) -> Answered:
    started, first_s, last_s = time.monotonic(), 0.0, 0.0
    texts: list[str] = []
    try:
        with ask(number) as pieces:
            for text in pieces:
                if text:
                    last_s = time.monotonic() - started
                    first_s = first_s or last_s
                    texts.append(text)
    except TrtpipeError as fault:
        return Answered("".join(texts), first_s, last_s, fault.what)
    return Answered("".join(texts), first_s, last_s, None if texts else "the answer was empty")
