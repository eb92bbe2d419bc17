"""Nothing that a client writes or gets is in a log: that of Triton, its models and vLLM, or the front's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from front_log import lines
from mixed_routes import ROUTES, asker
from served_front import listening
from served_metrics import Metrics
from trtpipe.chain import fronted
from trtpipe.config.load import workspace as read_workspace
from trtpipe.core.chat import ChatTokenizer
from trtpipe.core.store import Store
from trtpipe.errors import ToolFailed
from trtpipe.release.current import require_current
from trtpipe.triton_repo import client, exchange
from trtpipe.triton_repo.server import Server

pytestmark = pytest.mark.e2e

KEY = "a-key-for-tests"
MARK = "Xylothrapiz"
PROMPT = f"Say {MARK} and then its letters, one by one."
LIMIT_S = 120.0
# Each is refused by another model or check, and in words that have the mark in them or near them.
REFUSED: tuple[tuple[str, dict[str, Any]], ...] = (
    (f"{MARK} " * 3000, {}),
    (PROMPT, {"guided_decoding_guide_type": MARK}),
    (PROMPT, {"guided_decoding_guide_type": "regex", "guided_decoding_guide": f"({MARK}"}),
    (PROMPT, {MARK: 1}),
    (f'{{"messages": [], "{MARK}": 1}}', {}),
)


async def ask_on_all_routes(running: Server, front_url: str) -> list[str]:
    async with asker(running, front_url, KEY) as asking:
        found = [await asking.ask(route, PROMPT, 24, exactly=True, time_limit_s=LIMIT_S) for route in ROUTES]
    return [got.text for got in found]


def refuse_and_leave(url: str, front_url: str) -> None:
    for model in exchange.MODELS:
        for prompt, options in REFUSED:
            with pytest.raises(ToolFailed):
                client.ask(url, prompt, max_tokens=8, model=model, options=options)  # type: ignore[arg-type]
    with openai.OpenAI(base_url=f"{front_url}/v1", api_key=KEY, max_retries=0) as asking:
        with pytest.raises(openai.BadRequestError):
            asking.completions.create(model="sample", prompt=f"{MARK} " * 3000, max_tokens=8)
        with pytest.raises(openai.BadRequestError):
            asking.completions.create(model="sample", prompt=PROMPT, extra_body={MARK: MARK})
    with client.Client(url) as leaving, leaving.stream(PROMPT, max_tokens=500, end_id=-1) as texts:
        next(texts)


def test_no_text_of_a_client_is_in_a_log(settled: Metrics, running: Server, workspace: Path, tmp_path: Path) -> None:
    release = require_current(Store(workspace))
    ids = ChatTokenizer.load(release.path / "engine").encode_chat([{"role": "user", "content": PROMPT}])
    url, front_log = running.addresses.http_url, tmp_path / "front.log"
    served = fronted.served(read_workspace(workspace / "trtpipe.yaml"), release, url, KEY)
    with listening(served, front_log) as front_url:
        answers = asyncio.run(ask_on_all_routes(running, front_url))
        refuse_and_leave(url, front_url)
        direct = {"input_ids": ids, "input_lengths": len(ids), "request_output_len": 4, "id": "asked-by-ids"}
        httpx.post(
            f"{url}/v2/models/tensorrt_llm/generate", json=direct, timeout=60, trust_env=False
        ).raise_for_status()
    settled.until_free(limit_s=30)

    beginnings = {answer.strip()[:20] for answer in answers}
    assert min(map(len, beginnings)) > 10
    for log in (running.log, front_log):
        text = log.read_text(errors="replace")
        assert MARK not in text
        assert not [beginning for beginning in beginnings if beginning in text]
        assert ", ".join(map(str, ids[:6])) not in text
    assert "request asked-by-ids answered: " in running.log.read_text(errors="replace")
    assert lines(front_log, 6)
