"""What a plan says of a KV cache that is too small."""

from __future__ import annotations

import pytest

from planning import plan, target
from trtpipe.engines.trtllm import memory_checks
from trtpipe.engines.trtllm.capacity import Pool
from trtpipe.engines.trtllm.limits import Limits

BYTES_PER_TOKEN = 524_288  # Llama-2-7B in 16 bit
SEQUENCE = 20 * 128  # 20 blocks


def test_a_window_that_no_release_sets_is_kept_by_the_length() -> None:
    made = plan("phi-3-mini-4k", "h200", weights="fp8", max_seq_len=4096)
    (said,) = [one for one in made.findings if "looks back" in one.what]
    assert said.fix == "max_seq_len: 2047"


@pytest.mark.parametrize(
    ("tokens", "said"),
    [(1664, ["the KV cache holds 1,664 tokens, less than one sequence of max_seq_len 2,560"]), (SEQUENCE, [])],
)
def test_a_cache_that_holds_less_than_one_sequence_is_refused(tokens: int, said: list[str]) -> None:
    limits = Limits(SEQUENCE, SEQUENCE, 1, "", "", "")
    free = tokens * BYTES_PER_TOKEN
    pool = Pool("model", BYTES_PER_TOKEN, tokens, -(-tokens // 128), 128)

    found = memory_checks.fits(
        target("a100x1"), limits, pool, free_bytes=free, gpu_bytes=2 * free, taken="weights", wider=None
    )

    assert [finding.what for finding in found if finding.kind == "refused"] == said
