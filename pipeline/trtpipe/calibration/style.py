"""What a prompt is like, beyond its length: read off the text by rules, no model involved."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

from trtpipe.calibration.row import Row

SCRIPTS = {
    "ja": re.compile(r"[\u3040-\u30ff]"),
    "ko": re.compile(r"[\uac00-\ud7af]"),
    "zh": re.compile(r"[\u3400-\u9fff]"),
    "cyrillic": re.compile(r"[\u0400-\u04ff]"),
    "arabic": re.compile(r"[\u0600-\u06ff]"),
    "devanagari": re.compile(r"[\u0900-\u097f]"),
}
LETTER = re.compile(r"[^\W\d_]")
SCRIPT_SHARE_MIN = 0.2  # of the letters; kana are fewer than the kanji beside them
CODE = re.compile(
    r"```|^\s*(?:def|class|import|from|public|private|func|fn|var|let|const|#include|package)\b.*[\s:;{(]"
    r"|\bSELECT\b.+\bFROM\b|[;{}]\s*$|=>|\bfunction\s*\(",
    re.MULTILINE,
)
JSON_TEXT = re.compile(r'\bJSON\b|[{\[]\s*"[^"]+"\s*[:,]')
LIST_ITEM = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s", re.MULTILINE)
LOOKED_AT = 8000  # characters of a prompt: enough to tell, and no prompt takes long


@dataclass(frozen=True)
class Style:
    """``turns``: messages of the user. Shares are of the characters of what was asked."""

    language: str
    code: bool
    json: bool
    tools: bool
    system_prompt: bool
    question: bool
    list_items: bool
    turns: int
    lines: int
    digits_share: float
    capitals_share: float
    words: int

    def document(self) -> dict[str, Any]:
        return asdict(self)


FLAGS = ("code", "json", "tools", "system_prompt", "question", "list_items")
NUMBERS = ("turns", "lines", "digits_share", "capitals_share", "words")


def of(row: Row) -> Style:
    text = row.asked[:LOOKED_AT]
    size = max(len(text), 1)
    return Style(
        language=language(text),
        code=CODE.search(text) is not None,
        json=JSON_TEXT.search(text) is not None,
        tools=bool(row.tools),
        system_prompt=any(message.role == "system" for message in row.messages),
        question="?" in text or "？" in text,
        list_items=LIST_ITEM.search(text) is not None,
        turns=sum(message.role == "user" for message in row.messages),
        lines=text.count("\n") + 1,
        digits_share=sum(map(str.isdigit, text)) / size,
        capitals_share=sum(map(str.isupper, text)) / size,
        words=len(text.split()),
    )


def language(text: str) -> str:
    """Return the script that a fifth of the letters are of, named by its commonest language; else latin."""
    letters = len(LETTER.findall(text))
    for name, pattern in SCRIPTS.items():
        if letters and len(pattern.findall(text)) >= SCRIPT_SHARE_MIN * letters:
            return name
    return "latin"
