"""Personal data out of prompts, before anything is tokenized: each kind's pattern, its mark, and counts.

Patterns find what has a form: they are a help, not a promise that no name or address is left.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from trtpipe.calibration.row import Row


def _luhn(digits: str) -> bool:
    """The check digit of payment cards (ISO/IEC 7812-1)."""
    values = [int(digit) for digit in digits if digit.isdigit()]
    doubled = [value if index % 2 == 0 else sum(divmod(2 * value, 10)) for index, value in enumerate(reversed(values))]
    return 13 <= len(values) <= 19 and sum(doubled) % 10 == 0


def _iban(text: str) -> bool:
    """The check digits of account numbers (ISO 13616): the rearranged number is 1 modulo 97."""
    plain = text.replace(" ", "").upper()
    return 15 <= len(plain) <= 34 and int("".join(str(int(c, 36)) for c in plain[4:] + plain[:4])) % 97 == 1


def _address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _phone(text: str) -> bool:
    return 8 <= sum(c.isdigit() for c in text) <= 15


def _always(text: str) -> bool:
    return True


# Kind -> its pattern and what decides whether a match is one; in this order, for a card is also digits.
KINDS: dict[str, tuple[re.Pattern[str], Callable[[str], bool]]] = {
    "email": (re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}"), _always),
    "iban": (re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b"), _iban),
    "card": (re.compile(r"(?<![\w.])\d(?:[ -]?\d){12,18}(?![\w.]\d)"), _luhn),
    "key": (re.compile(r"\b(?:sk|pk|ghp|xox[abp]|AKIA)[-_A-Za-z0-9]{16,}"), _always),
    "ip": (re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.]?\d)"), _address),
    "phone": (re.compile(r"(?<![\w.-])(?:\+\d{1,3}[ -]?)(?:\(?\d{1,5}\)?[ -]?){2,5}\d{2,4}(?![\w-])"), _phone),
}


def masked(text: str, counts: Counter[str]) -> str:
    """Return the text with each match replaced by its kind, as ``<email>``; add to the counts."""

    for kind, (pattern, holds) in KINDS.items():

        def mark(match: re.Match[str], kind: str = kind, holds: Callable[[str], bool] = holds) -> str:
            if not holds(match[0]):
                return match[0]
            counts[kind] += 1
            return f"<{kind}>"

        text = pattern.sub(mark, text)
    return text


def mask(row: Row, counts: Counter[str]) -> Row:
    """Return the row with every text masked, tool definitions and calls included."""
    messages = tuple(
        message._replace(content=masked(message.content, counts), more=masked(message.more, counts))
        for message in row.messages
    )
    response = row.response and masked(row.response, counts)
    return replace(row, messages=messages, response=response, tools=masked(row.tools, counts))
