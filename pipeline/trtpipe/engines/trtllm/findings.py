"""What a plan has to say, one matter each."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["refused", "changed", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """One matter. ``kind``: refused, the target can't be had; changed, the builder does otherwise than asked.

    ``what`` it is, ``where`` it stands, ``why`` it is so, its ``cost`` to the user, the ``fix`` (ways out), and the
    ``source`` that says so.
    """

    kind: Kind
    what: str
    where: str
    why: str | None = None
    cost: str | None = None
    fix: str | None = None
    source: str | None = None

    def document(self) -> dict[str, Any]:
        return asdict(self)
