"""Ask the engine model itself, ids for ids, over Triton's ``generate_stream``: it is decoupled, however it answers."""

from __future__ import annotations

import httpx

from trtpipe.triton_repo.exchange import CONNECT_LIMIT_S, TIME_LIMIT_S
from trtpipe.triton_repo.http_events import Events, endpoint, faults

ENGINE = "tensorrt_llm"


def answer(
    url: str, ids: list[int], *, max_tokens: int, end_id: int, pad_id: int, time_limit_s: float = TIME_LIMIT_S
) -> list[int]:
    """Return the ids of the likeliest answer, the prompt's own not among them.

    Raises NoServer, Refused, OutOfTime, ToolFailed.
    """
    place = endpoint(url, ENGINE, stream=True)
    body = {
        "input_ids": ids, "input_lengths": len(ids), "request_output_len": max_tokens, "end_id": end_id,
        "pad_id": pad_id, "streaming": False,
    }  # fmt: skip
    found: list[int] = []
    timeout = httpx.Timeout(time_limit_s, connect=CONNECT_LIMIT_S)
    with (
        faults(place, time_limit_s),
        httpx.stream("POST", place, json=body, timeout=timeout, trust_env=False) as response,
    ):
        events = Events(response)
        for content in response.iter_bytes():
            for event in events.take(content):
                # Triton writes a tensor of one value as that value
                output, length = event["output_ids"], event["sequence_length"]
                found += (output if isinstance(output, list) else [output])[:length]
        events.finish()
    return found
