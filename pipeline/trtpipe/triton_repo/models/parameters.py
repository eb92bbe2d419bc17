"""What is refused of any request: fields that no tensor has, which Triton passes on and nothing would read, and beams.

A copy of this module runs inside two of Triton's models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

# What HTTP and gRPC clients may send beside tensors; all others are misspelled or unserved tensors.
PROTOCOL_PARAMETERS = frozenset({"id", "priority", "timeout", "sequence_id", "sequence_start", "sequence_end"})

# What every engine of either kind is built for and configured with.
BEAMS = 1


class RequestError(ValueError):
    """The request can't be served; the text is for the client."""


def refuse_unknown(parameters: Mapping[str, Any]) -> None:
    """Raise RequestError naming the unknown fields. An empty text asks for nothing and passes."""
    unknown = [
        name
        for name, value in parameters.items()
        if name not in PROTOCOL_PARAMETERS and not name.startswith("triton_") and value != ""
    ]
    if unknown:
        raise RequestError(f"unknown field(s): {', '.join(sorted(unknown))}; the model's config lists what is served")


def refuse_beams(beams: int) -> None:
    """Raise RequestError where more or fewer than the served number of beams are asked for."""
    if beams != BEAMS:
        raise RequestError(f"beam_width is {beams}; only {BEAMS} is served")
