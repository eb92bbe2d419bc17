"""Ask the release, served by a real Triton, some of the held-out prompts."""

from __future__ import annotations

import json
import socket
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

from trtpipe.chain import released
from trtpipe.core import golden_ids
from trtpipe.core.chat import ChatTokenizer
from trtpipe.errors import EnvironmentUnfit, ToolFailed
from trtpipe.triton_repo import client, preprocessed, server

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.chain.scoring import TritonPlace
    from trtpipe.core.artifacts import Artifact
    from trtpipe.core.progress import Reporter
    from trtpipe.core.runner import Making

ANSWER_TOKENS_MAX = 48
ENDING_S = 10.0  # a server that has broken a connection off is about to end, or won't
HOST = "127.0.0.1"


def collect(
    release: Artifact, prompts: Artifact, count: int, triton: TritonPlace, making: Making
) -> list[dict[str, Any]]:
    """Serve the release, and return what ``ask`` does."""
    log = making.log.with_name("triton.log")
    with server.running(
        release.path,
        triton.environment,
        free_addresses(),
        state=triton.state,
        log=log,
        ready_timeout_s=triton.ready_timeout_s,
    ) as running:
        return ask(running, release, prompts, count, making.reporter)


def ask(
    running: server.Server, release: Artifact, prompts: Artifact, count: int, reporter: Reporter
) -> list[dict[str, Any]]:
    """Return scorable rows: each prompt's ids with the ids of the answer that Triton gave, one at a time, greedily.

    The prompts are taken from all segments in turn. Passed over are those that leave no room for an answer, and those
    as long as calibration cuts prompts: the rows have the cut one's ids, and Triton would be asked the whole.
    """
    about = released.read(release)
    tokenizer = ChatTokenizer.load(about.tokenizer)
    cut = prompts.record.parts.parameters["prompt_tokens_max"]
    longest = min(about.context_tokens - ANSWER_TOKENS_MAX, cut - 1)
    chosen = choose(prompts.path / "heldout.jsonl", count, longest)
    rows = []
    for index, row in enumerate(chosen):
        reporter.progress("ask through Triton", index, len(chosen))
        with _last_words_of(running):
            require_same_ids(row, running.addresses.http_url, tokenizer)
            text = client.ask(running.addresses.http_url, row["messages"], max_tokens=ANSWER_TOKENS_MAX).text
        rows.append(_scorable(row, text, tokenizer, about.context_tokens))
    reporter.progress("ask through Triton", len(chosen), len(chosen))
    return rows


def require_same_ids(row: dict[str, Any], http_url: str, tokenizer: ChatTokenizer) -> None:
    """Raise ToolFailed where preprocessing makes other ids of a prompt than calibration did."""
    wanted = row["ids"][: row["prompt_tokens"]]
    found = preprocessed.ids(http_url, golden_ids.GoldenPrompt(row["messages"], wanted).text_input)
    parts = golden_ids.difference(wanted, found, tokenizer.bos_id, tokenizer.tokenizer.id_to_token)
    if parts is not None:
        raise ToolFailed(
            f"the server makes other ids of a prompt than calibration did: {parts}",
            where=f"held-out prompt {row['id']}",
            fix=golden_ids.FIX,
        )


@contextmanager
def _last_words_of(running: server.Server) -> Iterator[None]:
    """Raise ToolFailed with the server's last words where what is asked fails because the server has ended."""
    try:
        yield
    except (EnvironmentUnfit, ToolFailed):
        with suppress(subprocess.TimeoutExpired):
            running.supervisor.wait(ENDING_S)
            server.wait(running)
        raise


def choose(heldout: Path, count: int, prompt_tokens_max: int) -> list[dict[str, Any]]:
    """Return ``count`` held-out rows that fit, one segment after the other.

    Those with tool definitions are passed over: the server's contract has messages only.
    """
    segments: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with heldout.open(encoding="utf-8") as file:
        for row in map(json.loads, file):
            if row["prompt_tokens"] <= prompt_tokens_max and not row.get("tools"):
                segments[row["segment"]].append(row)
    in_turn = chain.from_iterable(zip_longest(*(segments[name] for name in sorted(segments))))
    return [row for row in in_turn if row is not None][:count]


def _scorable(row: dict[str, Any], text: str, tokenizer: ChatTokenizer, context_tokens: int) -> dict[str, Any]:
    """Encode an answer again; an empty one keeps the EOS that the engine must have preferred.

    Encoded again, it may have more tokens than the engine made, but no more than fit.
    """
    prompt_ids = row["ids"][: row["prompt_tokens"]]
    answer_ids = tokenizer.encode(text) or [tokenizer.end_id]
    return {
        "id": row["id"],
        "segment": row["segment"],
        "ids": (prompt_ids + answer_ids)[:context_tokens],
        "prompt_tokens": len(prompt_ids),
        "score_from": len(prompt_ids),
    }


def free_addresses() -> server.Addresses:
    """Return three free ports, so that a check never meets a server that is in use."""
    sockets = [socket.create_server((HOST, 0)) for _ in range(3)]
    ports = [listener.getsockname()[1] for listener in sockets]
    for listener in sockets:
        listener.close()
    return server.Addresses(HOST, *ports)
