"""What a client may write into ``text_input``, and the ids that the engine gets for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from parameters import RequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chat import ChatTokenizer
    from token_bytes import TokenBytes


def encode(text: str, tokenizer: ChatTokenizer) -> list[int]:
    """Return the prompt's ids.

    ``text`` is a JSON document ``{"messages": [...]}``, or plain text: one user message where the model has a
    chat template, the prompt itself where it has none. Raises RequestError or ChatError.
    """
    messages = _messages(text)
    if messages is None and not tokenizer.has_template:
        ids: list[int] = tokenizer.encode_plain(text)
    else:
        ids = tokenizer.encode_chat(messages or [{"role": "user", "content": text}])
    return ids


def _messages(text: str) -> list[dict[str, Any]] | None:
    """Return the conversation if ``text`` is one; any other JSON is plain text."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or "messages" not in document:
        return None
    if unknown := sorted(document.keys() - {"messages"}):
        raise RequestError(f"the JSON document has unknown keys: {', '.join(unknown)}; only `messages` is read")
    messages = document["messages"]
    if not isinstance(messages, list) or not messages:
        raise RequestError("`messages` must be a list with at least one message")
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or not all(isinstance(message.get(key), str) for key in ("role", "content")):
            raise RequestError(f"messages[{index}] must be an object with the texts `role` and `content`")
    return messages


def word_lists(words: Sequence[str], table: TokenBytes, tokens: Sequence[int] = ()) -> list[list[int]]:
    """Return TensorRT-LLM's two rows: the ids of all words, then where each word ends, filled up with -1.

    A word with a character that no tokens spell is left out: no answer has it. ``tokens``: ids that are words of their
    own.
    """
    ids: list[int] = []
    ends: list[int] = []
    spellings = [(word, table.spell(word)) for word in words if word]
    whole = [spelling for word, spelling in spellings if table.written_text(spelling) == word]
    for spelled in (*whole, *([token] for token in tokens)):
        ids += spelled
        ends.append(len(ids))
    return [ids, ends + [-1] * (len(ids) - len(ends))]


def guide_bytes(guide_type: str, guide: str) -> list[int]:
    """Return what an answer must look like in the form of the contract's ``guide_bytes``; empty where nothing is."""
    return list(f"{guide_type}\n{guide}".encode()) if guide_type or guide else []
