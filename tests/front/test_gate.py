"""What every request passes: the key, a place among those in flight, the log."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from front_log import lines
from front_requests import COMPLETION, chat
from stand_in_triton import StandIn


def test_a_key_is_asked_for_everywhere_but_of_health(start: Any, triton: StandIn) -> None:
    triton.say("x")
    front = start(api_key="ключ")

    def status(**headers: str) -> int:
        return front.get("/v1/models", headers={name: value.encode() for name, value in headers.items()}).status_code

    assert [status(), status(Authorization="Bearer wrong"), status(Authorization="ключ")] == [401, 401, 401]
    assert status(Authorization="Bearer ключ") == 200
    assert chat(front).status_code == 401
    assert front.get("/health").status_code == 200
    assert not triton.bodies


def test_more_than_fit_are_told_to_come_back(front: httpx.Client, triton: StandIn) -> None:
    triton.say("a", "b")
    triton.gap_s = 0.5
    together = threading.Barrier(6)

    def ask(_: int) -> int:
        together.wait()
        return chat(front).status_code

    with ThreadPoolExecutor(6) as pool:
        statuses = list(pool.map(ask, range(6)))
    assert sorted(statuses) == [200] * 3 + [429] * 3
    assert chat(front).status_code == 200


def test_health_takes_no_place_of_a_request(front: httpx.Client, triton: StandIn) -> None:
    triton.say("a", "b")
    triton.gap_s = 0.5
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(chat, front) for _ in range(3)]
        while len(triton.bodies) < 3:
            time.sleep(0.01)
        healthy = front.get("/health").status_code
        refused = chat(front).status_code
    assert (healthy, refused, [one.result().status_code for one in asked]) == (200, 429, [200] * 3)


def test_the_log_has_a_line_a_request_and_no_text(front: httpx.Client, triton: StandIn, tmp_path: Path) -> None:
    triton.say("private answer", num_output_tokens=2)
    front.post("/v1/completions", json={**COMPLETION, "prompt": "private question"}, headers={"x-request-id": "mine"})
    refused = front.post(
        "/v1/completions", json={**COMPLETION, "prompt": ["private"]}, headers={"x-request-id": "a\tb"}
    )

    first, second = lines(tmp_path / "front.log", 2)
    assert (first["request_id"], first["status"], first["completion_tokens"]) == ("mine", 200, 2)
    assert (second["request_id"], second["status"]) == (refused.headers["x-request-id"], 400)
    assert second["request_id"] != "a\tb"
    assert triton.bodies[0]["id"] == "mine"
    assert "private" not in (tmp_path / "front.log").read_text()


def test_a_bug_tells_nobody_the_text(front: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("private")

    monkeypatch.setattr("trtpipe.front.app.read", broken)
    response = chat(front)

    assert (response.status_code, response.json()["error"]["code"]) == (500, "internal_error")
    (line,) = lines(tmp_path / "front.log", 1)
    assert line["fault"] == "RuntimeError"
    assert "private" not in (tmp_path / "front.log").read_text() + response.text
