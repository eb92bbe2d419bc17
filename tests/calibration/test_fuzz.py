"""Ten thousand damaged rows: nothing crashes, the ledger adds up, and what is wrong is located without its text."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from calibration.read_logs import counted, read
from calibration.tiny import write_log

ROWS = 10_000
SECRET = "secretword"  # noqa: S105 - the text that must not leak
Damage = Callable[[random.Random, bytes], bytes]


def good(rng: random.Random, number: int) -> bytes:
    text = f"{SECRET} {number} " + "x" * rng.randint(0, 80)
    user = {"role": "user", "content": text}
    document = rng.choice(
        [
            {"prompt": text, "response": SECRET},
            {"messages": [{"role": "system", "content": SECRET}, user]},
            {"conversations": [{"from": "human", "value": text}, {"from": "gpt", "value": SECRET}]},
            {"text_input": text},
            {"request": json.dumps({"messages": [user]})},
        ]
    )
    return json.dumps(document).encode()


def mistyped(rng: random.Random, row: bytes) -> bytes:
    values = [None, 7, -1.5, True, [], {}, [SECRET], {"a": SECRET}]
    return json.dumps({rng.choice(["prompt", "messages", "inputs", "id"]): rng.choice(values)}).encode()


def deep(rng: random.Random, row: bytes) -> bytes:
    depth = rng.choice([300, 5_000, 100_000])
    open_, close = rng.choice([(b"[", b"]"), (b'{"a":', b"}")])
    return b'{"prompt": "x", "n": ' + open_ * depth + b"1" + close * depth + b"}"


DAMAGES: dict[str, Damage] = {
    "none": lambda rng, row: row,
    "truncated": lambda rng, row: row[: rng.randint(1, len(row) - 1)],
    "wrong types": mistyped,
    "huge": lambda rng, row: json.dumps({"prompt": SECRET * rng.randint(1, 30_000)}).encode(),
    "deep": deep,
    "latin-1": lambda rng, row: row.replace(b"x", b"\xe9", 1) if b"x" in row else b"\xff" + row,
    "utf-16": lambda rng, row: row.decode().encode("utf-16-le").replace(b"\n", b""),
    "NUL": lambda rng, row: row[: len(row) // 2] + b"\0" + row[len(row) // 2 :],
    "escaped NUL": lambda rng, row: row.replace(SECRET.encode(), b"\\u0000", 1),
    "surrogate": lambda rng, row: row.replace(SECRET.encode(), rng.choice([b"\\ud83d", b"\\udc00x"]), 1),
    "raw surrogate": lambda rng, row: row.replace(SECRET.encode(), b"\xed\xa0\x80", 1),
    "flipped": lambda rng, row: bytes(byte ^ (rng.random() < 0.02) * rng.randint(1, 255) for byte in row),
    "big number": lambda rng, row: b'{"prompt": "x", "n": ' + b"9" * 5000 + b"}",
    "repeated key": lambda rng, row: b'{"prompt": "first", "prompt": "' + SECRET.encode() + b'"}',
    "two in one": lambda rng, row: row + row,
}


def test_ten_thousand_damaged_rows(tmp_path: Path) -> None:
    rng = random.Random(20)  # noqa: S311 - reproducible, nothing secret
    kinds = [rng.choices(list(DAMAGES), [12 if name == "none" else 1 for name in DAMAGES])[0] for _ in range(ROWS)]
    kinds = [kind if kind not in ("deep", "huge") or rng.random() < 0.1 else "none" for kind in kinds]
    kinds[: ROWS // 4] = ["none"] * (ROWS // 4)  # so that the fast path has something
    lines = [DAMAGES[kind](rng, good(rng, number)).replace(b"\n", b"") for number, kind in enumerate(kinds)]
    path = write_log(tmp_path, b"\n".join(lines))
    found = counted(path, pool_rows=20_000)
    ledger = found.ledger
    blank = sum(not line.strip() for line in lines)
    assert ledger.rows == ROWS - blank == found.distinct + ledger.dropped.total()
    assert found.blank_lines == blank
    assert found.fast_rows > ROWS / 20
    by_line: dict[int, str] = {}
    for bad in found.bad:
        match = re.match(re.escape(str(path)) + r":(\d+)", bad.where)
        assert match, bad.where
        assert SECRET not in bad.what + bad.where + bad.fix
        by_line[int(match[1])] = bad.kind
    assert len(by_line) == len(found.bad)
    kinds_found = Counter(kinds[line - 1] for line in by_line)
    for damage in ("truncated", "latin-1", "utf-16", "NUL", "raw surrogate", "big number", "two in one"):
        assert kinds_found[damage] == kinds.count(damage), damage
    assert kinds_found["surrogate"] == sum(kind == "surrogate" for kind in kinds)
    assert kinds_found["none"] == kinds_found["repeated key"] == 0


def test_of_a_repeated_key_the_last_value_holds(tmp_path: Path) -> None:
    line = b'{"prompt": "first", "prompt": "last"}'
    for fast in (True, False):
        assert read(write_log(tmp_path, line), fast=fast).rows[0].messages[0].content == "last"
