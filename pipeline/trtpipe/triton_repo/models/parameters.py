"""What is refused of any request: fields that no tensor has, which Triton passes on and nothing would read, and beams.

A copy of this module runs inside three of Triton's models.
"""

from __future__ import annotations

import json
from typing import Any

# Triton's own, with why they do nothing here. HTTP passes all of them on, gRPC tells of the time limit alone.
WITHOUT_EFFECT = {
    "timeout": "a request is not timed out in the queue; let the client give up, which cancels it",
    "priority": "requests are served in the order of their arrival",
    **dict.fromkeys(("sequence_id", "sequence_start", "sequence_end"), "no state is kept between requests"),
}

# What every engine of either kind is built for and configured with.
BEAMS = 1


class RequestError(ValueError):
    """The request can't be served; the text is for the client."""


def refuse_unread(request: Any) -> None:
    """Raise RequestError naming the fields that nothing reads. An empty text asks for nothing and passes."""
    given = {name: value for name, value in json.loads(request.parameters() or "{}").items() if value != ""}
    given["timeout"] = given.get("timeout") or request.timeout()  # microseconds; 0 where there is none
    told = [f"{name} has no effect: {reason}" for name, reason in WITHOUT_EFFECT.items() if given.get(name)]
    known = {"id", *WITHOUT_EFFECT}
    if unknown := sorted(name for name in given.keys() - known if not name.startswith("triton_")):
        told.append(f"unknown field(s): {', '.join(unknown)}; the model's config lists what is served")
    if told:
        raise RequestError("; ".join(told))


def refuse_beams(beams: int) -> None:
    """Raise RequestError where more or fewer than the served number of beams are asked for."""
    if beams != BEAMS:
        raise RequestError(f"beam_width is {beams}; only {BEAMS} is served")
