"""Read prompt logs (JSONL): plain prompts and OpenAI chat rows, every fault with file, line and column.

Row text never appears in a message: a log may hold anything.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trtpipe.errors import ConfigError, TrtpipeError, raise_all

if TYPE_CHECKING:
    from pathlib import Path

BOM = b"\xef\xbb\xbf"
PROBLEMS_SHOWN = 20
ROLES = ("system", "user", "assistant", "tool")

Message = dict[str, str]


@dataclass(frozen=True)
class Row:
    """One prompt of the log. ``messages`` ends with what the model answers to; ``place``: file and line."""

    id: str
    segment: str
    messages: tuple[tuple[str, str], ...]
    response: str | None
    place: str = field(compare=False)

    @property
    def chat(self) -> list[Message]:
        return [{"role": role, "content": content} for role, content in self.messages]


@dataclass
class Reading:
    """What was read: the rows, and counts of what was passed over."""

    rows: list[Row] = field(default_factory=list)
    blank_lines: int = 0
    boms_removed: int = 0
    plain_prompts: int = 0
    duplicates: int = 0


def read(paths: list[Path]) -> Reading:
    """Read all files. Raises ConfigError (all faults at once, the first 20 shown) or returns every row."""
    reading = Reading()
    problems: list[TrtpipeError] = []
    seen: set[tuple[tuple[str, str], ...]] = set()
    places: dict[str, str] = {}
    for file_number, path in enumerate(paths, start=1):
        for row in _read_file(path, file_number, reading, problems):
            if row.messages in seen:
                reading.duplicates += 1
                continue
            seen.add(row.messages)
            reading.rows.append(row)
            if places.setdefault(row.id, row.place) != row.place:
                problems.append(_id_used_twice(row.place, places[row.id]))
    if not problems and not reading.rows:
        problems.append(
            ConfigError(
                "no prompts in the file(s)",
                where=", ".join(map(str, paths)),
                fix='write one JSON object a line, such as {"prompt": "..."} or {"messages": [...]}',
            )
        )
    hidden = len(problems) - PROBLEMS_SHOWN
    if hidden > 0:
        problems = [
            *problems[:PROBLEMS_SHOWN],
            ConfigError(f"and {hidden} more problems", fix="correct the file"),
        ]
    raise_all(problems)
    return reading


def _id_used_twice(place: str, first: str) -> ConfigError:
    return ConfigError(
        f"the row's id is used before, at {first}",
        where=place,
        fix="give each row an `id` of its own; rows without one are called by the numbers of file and line, as in 1:7",
    )


def _read_file(path: Path, file_number: int, reading: Reading, problems: list[TrtpipeError]) -> list[Row]:
    try:
        content = path.read_bytes()
    except OSError as fault:
        problems.append(
            ConfigError(f"can't read the prompts: {fault.strerror}", where=str(path), fix="check prompts.files")
        )
        return []
    offset = 0
    if content.startswith(BOM):
        reading.boms_removed += 1
        offset = len(BOM)
    rows = []
    for number, line in enumerate(content[offset:].split(b"\n"), start=1):
        if not line.strip():
            if offset < len(content):  # what follows the last newline is no line
                reading.blank_lines += 1
        else:
            try:
                rows.append(_row(line, path, (file_number, number), offset, reading))
            except ConfigError as problem:
                problems.append(problem)
        offset += len(line) + 1
    return rows


def _row(line: bytes, path: Path, numbers: tuple[int, int], offset: int, reading: Reading) -> Row:
    """Read one line; ``numbers``: of the file and of the line. A file's name decides nothing: logs are renamed."""
    file_number, line_number = numbers
    where = f"{path}:{line_number}"
    try:
        value = json.loads(line.rstrip(b"\r").decode("utf-8"))
    except UnicodeDecodeError as fault:
        found = fault.object[fault.start]
        raise ConfigError(
            f"not UTF-8: byte {found:02X} at byte offset {offset + fault.start} of the file",
            where=f"{where}:{fault.start + 1}",
            fix="save the file as UTF-8",
        ) from None
    except json.JSONDecodeError as fault:
        raise ConfigError(
            f"not JSON: {fault.msg}",
            where=f"{where}:{fault.colno}",
            fix="one JSON object a line; correct that row",
        ) from None
    except (RecursionError, ValueError):  # thousands of brackets, or of digits in one integer
        raise ConfigError("nested too deeply, or a number too long", where=where, fix="correct that row") from None
    if not isinstance(value, dict):
        raise ConfigError("the row is not a JSON object", where=where, fix='for instance {"prompt": "..."}')
    messages, response = _conversation(value, where, reading)
    return Row(
        id=_id(value, where) or f"{file_number}:{line_number}",
        segment=_text(value, "segment", where) or "all",
        messages=tuple((message["role"], message["content"]) for message in messages),
        response=response,
        place=where,
    )


def _id(value: dict[str, Any], where: str) -> str | None:
    found = value.get("id")
    if isinstance(found, int) and not isinstance(found, bool):
        return str(found)
    return _text(value, "id", where)


def _conversation(value: dict[str, Any], where: str, reading: Reading) -> tuple[list[Message], str | None]:
    if value.get("messages") is not None:
        if value.get("prompt") is not None:
            raise ConfigError("both `prompt` and `messages`", where=where, fix="keep the one that was sent")
        messages = [_message(message, index, where) for index, message in enumerate(_list(value, "messages", where))]
        response = _text(value, "response", where)
        if response is None and messages and messages[-1]["role"] == "assistant":
            response = messages.pop()["content"]
        if not messages:
            raise ConfigError("`messages` holds no prompt", where=where, fix="add a user message")
        return messages, response
    prompt = _text(value, "prompt", where)
    if not prompt:
        raise ConfigError("neither `prompt` nor `messages`", where=where, fix="add one of them, not empty")
    reading.plain_prompts += 1
    return [{"role": "user", "content": prompt}], _text(value, "response", where)


def _message(message: Any, index: int, where: str) -> Message:
    place = f"{where} messages[{index}]"
    if not isinstance(message, dict):
        raise ConfigError(
            "a message is not an object", where=place, fix='for instance {"role": "user", "content": "..."}'
        )
    role, content = message.get("role"), message.get("content")
    if role not in ROLES:
        raise ConfigError("unknown role", where=f"{place}.role", fix=f"one of {', '.join(ROLES)}")
    if not isinstance(content, str):
        raise ConfigError("the content is not text", where=f"{place}.content", fix="give a string")
    _refuse_surrogates(content, f"{place}.content")
    return {"role": role, "content": content}


def _list(value: dict[str, Any], name: str, where: str) -> list[Any]:
    found = value[name]
    if not isinstance(found, list):
        raise ConfigError(f"`{name}` is not a list", where=where, fix="give a list of messages")
    return found


def _text(value: dict[str, Any], name: str, where: str) -> str | None:
    found = value.get(name)
    if found is None:
        return None
    if not isinstance(found, str):
        raise ConfigError(f"`{name}` is not text", where=where, fix="give a string")
    _refuse_surrogates(found, f"{where} {name}")
    return found


def _refuse_surrogates(text: str, where: str) -> None:
    """JSON can escape half a character; no tokenizer can encode it."""
    try:
        text.encode()
    except UnicodeEncodeError as fault:
        raise ConfigError(
            f"half a surrogate pair at character {fault.start}",
            where=where,
            fix="correct the escape in that row",
        ) from None
