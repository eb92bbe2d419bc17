"""One prompt of a log, whatever it was written as, and what makes two prompts the same."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

ROLES = ("system", "user", "assistant", "tool")
UNIT, RECORD = "\x1f", "\x1e"
IDENTITY_BYTES = 16
BLANKS = " \t\r\n"


class Message(NamedTuple):
    """``more``: JSON of what a template may read besides, such as tool calls; empty where there is nothing."""

    role: str
    content: str
    more: str = ""

    @property
    def document(self) -> dict[str, Any]:
        more: dict[str, Any] = json.loads(self.more) if self.more else {}
        return {"role": self.role, "content": self.content, **more}


@dataclass(frozen=True)
class Row:
    """``messages`` ends with what the model answers to. ``tools``: JSON list of tool definitions, or empty.

    ``segment``: as given; None where the row has none. ``place``: file and line, or file and row.
    """

    id: str
    segment: str | None
    messages: tuple[Message, ...]
    response: str | None
    place: str = field(compare=False)
    tools: str = ""

    @property
    def chat(self) -> list[dict[str, Any]]:
        return [message.document for message in self.messages]

    @property
    def tool_definitions(self) -> list[Any] | None:
        found: list[Any] | None = json.loads(self.tools) if self.tools else None
        return found

    @property
    def asked(self) -> str:
        """What was said for this prompt alone: every message but the system's."""
        return "\n".join(message.content for message in self.messages if message.role != "system")

    @property
    def prompt_characters(self) -> int:
        return sum(len(message.content) for message in self.messages)

    @property
    def asked_characters(self) -> int:
        """Length of what was said for this prompt alone, blanks around each message left out."""
        return sum(len(message.content.strip(BLANKS)) for message in self.messages if message.role != "system")

    @property
    def canonical(self) -> str:
        """The prompt as one text; each content has its length in front, so that no two prompts share a text.

        ``frames.canonical`` builds the same text inside polars.
        """
        messages = RECORD.join(
            f"{message.role}{UNIT}{len(message.content)}{UNIT}{message.content}{message.more and UNIT + message.more}"
            for message in self.messages
        )
        return messages + (self.tools and RECORD + self.tools)


def rank(canonical: str, seed: int) -> bytes:
    """Return a prompt's identity and its place in every order: a keyed hash, so that adding rows moves no others."""
    key = seed.to_bytes(8, "big")
    return hashlib.blake2b(canonical.encode(), key=key, digest_size=IDENTITY_BYTES).digest()
