"""Numbers, durations and names as a person reads them. Values are rounded here and nowhere before."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")


def number(value: float | None) -> str:
    """Return four significant digits, thousands apart; JSON writes what is not finite as null."""
    if value is None or not math.isfinite(value):
        return "not finite"
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def measured(value: float | None) -> str:
    """Return a number for a column: four significant digits, trailing zeros kept."""
    if value is None or not math.isfinite(value) or abs(value) >= 1000:
        return number(value)
    return f"{value:#.4g}".rstrip(".")


def margin(excess: float | None) -> str:
    """Say on which side of a limit a value lies, and how far."""
    if excess is None or not math.isfinite(excess):
        return "distance not finite"
    return f"beyond by {excess:.2g}" if excess > 0 else f"inside by {abs(excess):.2g}"


def shown(value: Any) -> str:
    """Return a figure of any kind on one line."""
    match value:
        case None | True | False:
            return {None: "none", True: "yes", False: "no"}[value]
        case int() | float():
            return number(value)
        case Mapping():
            return ", ".join(f"{name} {shown(item)}" for name, item in value.items())
        case str():
            return value or "(empty)"
        case Sequence():
            return ("; " if value and isinstance(value[0], Mapping) else ", ").join(map(shown, value)) or "none"
    return str(value)


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{seconds:.1f} s"


def size(size_bytes: int) -> str:
    power = min(max(size_bytes.bit_length() - 1, 0) // 10, len(_SIZES) - 1)
    scaled = size_bytes / 1024**power
    return f"{scaled:.1f} {_SIZES[power]}" if power else f"{size_bytes} B"


def moment(created: str) -> str:
    """Return a record's time to the minute; records are in UTC."""
    return f"{created[:10]} {created[11:16]} UTC"


def words(name: str) -> str:
    return name.replace("_", " ")


def percent(share: float) -> str:
    """Return three significant digits."""
    return f"{share * 100:#.3g}".rstrip(".") + " %"


def change(share: float) -> str:
    return f"{share * 100:+.0f} %".replace("-", "−")


def fingerprint(digest: str) -> str:
    """Return enough of a SHA-256 to recognise it by."""
    return digest[:12]
