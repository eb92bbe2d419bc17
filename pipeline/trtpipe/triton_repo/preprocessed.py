"""Ask the running preprocessing model for the ids of a prompt, over Triton's ``generate``."""

from __future__ import annotations

import httpx

from trtpipe.triton_repo.exchange import CONNECT_LIMIT_S, TIME_LIMIT_S
from trtpipe.triton_repo.http_events import document, endpoint, faults

PREPROCESSING = "preprocessing"


def ids(url: str, text: str, *, time_limit_s: float = TIME_LIMIT_S) -> list[int]:
    """Return what preprocessing makes of a client's text. Raises NoServer, Refused, OutOfTime, ToolFailed."""
    place = endpoint(url, PREPROCESSING, stream=False)
    timeout = httpx.Timeout(time_limit_s, connect=CONNECT_LIMIT_S)
    with faults(place, time_limit_s):
        response = httpx.post(place, json={"QUERY": text, "REQUEST_OUTPUT_LEN": 1}, timeout=timeout, trust_env=False)
    found = document(response.content, response)["INPUT_ID"]
    return found if isinstance(found, list) else [found]  # Triton writes a tensor of one value as that value
