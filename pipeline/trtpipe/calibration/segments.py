"""Segments of rows that give none: by task, language, code, JSON, tools, turns and system prompt."""

from __future__ import annotations

import re
from collections import Counter

from trtpipe.calibration import style
from trtpipe.calibration.row import Row

# What the request asks for, the first that fits; looked for where requests stand: at the ends of the text.
TASKS = {
    "translation": re.compile(r"\btranslat|翻译|翻譯|übersetz|\btradui|\btraduc", re.IGNORECASE),
    "summary": re.compile(r"\bsummar|\btl;?dr\b|总结|總結|摘要|概括|zusammenfass|\brésum", re.IGNORECASE),
    "extraction": re.compile(r"\bextract|提取|抽取", re.IGNORECASE),
    "classification": re.compile(r"\bclassif|\bcategori[sz]e|\bsentiment\b|分类|分類", re.IGNORECASE),
    "rewriting": re.compile(r"\brewrite|\brephrase|\bproofread|改写|润色", re.IGNORECASE),
    "calculation": re.compile(r"\bcalculate|\bhow (?:many|much)\b|\bsolve\b|计算", re.IGNORECASE),
}
END_CHARACTERS = 400
OTHER, ALL = "other", "all"


def derive(row: Row, looks: style.Style) -> str:
    """Return a name such as "coding", "summary zh" or "chat, many turns"."""
    text = row.messages[-1].content
    ends = text[:END_CHARACTERS] + "\n" + text[-END_CHARACTERS:]
    task = next((name for name, pattern in TASKS.items() if pattern.search(ends)), None)
    if looks.tools:
        kind = "tools"
    elif task is None and looks.code:
        kind = "coding"
    elif task is None and looks.json:
        kind = "json"
    else:
        kind = task or ("chat" if looks.system_prompt or looks.turns > 1 else "plain")
    language = "" if looks.language == "latin" else f" {looks.language}"
    return kind + language + (", many turns" if looks.turns > 2 else "")


def assign(rows: list[Row], looks: list[style.Style], rows_min: int) -> list[str]:
    """Return each row's segment: the given one, else the derived one; small derived ones become "other".

    ``rows_min``: a derived segment of fewer rows is small. Where "other" would be the only one it is called "all".
    """
    derived = [None if row.segment else derive(row, look) for row, look in zip(rows, looks, strict=True)]
    sizes = Counter(derived)
    merged = [name if name is None or sizes[name] >= rows_min else OTHER for name in derived]
    only_other = {*merged, *(row.segment for row in rows)} <= {OTHER, None}
    return [row.segment or (ALL if only_other else name or OTHER) for row, name in zip(rows, merged, strict=True)]
