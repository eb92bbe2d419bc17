"""The ids of known questions, where the second answer is computed in another way than the first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from calibration.tiny import chat_tokenizer
from trtpipe.chain.acceptance import measures
from trtpipe.chain.acceptance.steps import CheckFailed
from trtpipe.core.chat import ChatTokenizer


@pytest.fixture
def tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ChatTokenizer:
    """A tokenizer, and an engine whose answers are "yes" to who asks first and "yet" to all others."""
    tokenizer = chat_tokenizer(tmp_path)
    asked: list[list[int]] = []

    def answer(url: str, prompt: list[int], **_: Any) -> list[int]:
        asked.append(prompt)
        return tokenizer.encode("Yes, it is." if asked.count(prompt) == 1 else "Yet it was.")

    def text(url: str, messages: Any, **_: Any) -> Any:
        return measures.client.Answer("Yet it was.", 1, 0.0, 0.0)

    def ids(url: str, question: str) -> list[int]:
        return tokenizer.encode_chat([{"role": "user", "content": question}])

    monkeypatch.setattr(measures.engine_ids, "answer", answer)
    monkeypatch.setattr(measures.client, "ask", text)
    monkeypatch.setattr(measures.preprocessed, "ids", ids)
    return tokenizer


def test_with_reuse_only_the_later_answers_must_be_equal(tokenizer: ChatTokenizer) -> None:
    found = measures.golden_ids(tokenizer, "", kv_reuse=True)
    assert [answer["same_with_reuse"] for answer in found["answers"]] == [False] * 3


def test_without_reuse_all_must_be(tokenizer: ChatTokenizer) -> None:
    with pytest.raises(CheckFailed) as caught:
        measures.golden_ids(tokenizer, "", kv_reuse=False)
    assert "the same question got other ids the second time" in "\n".join(fault.what for fault in caught.value.faults)
