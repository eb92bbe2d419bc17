"""The forward hook, on a small model that is driven as the engine drives its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from trtpipe.core.scores import TOP_TOKENS, Scores
from trtpipe.engines.scored_rows import ScoredRow
from trtpipe.engines.vllm_tap import SLICE_POSITIONS, Tap
from trtpipe.errors import ToolFailed

if TYPE_CHECKING:
    from collections.abc import Callable

VOCABULARY = 50


class Bigram(torch.nn.Module):
    """The next token's logits depend on the current token alone."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.logits = torch.randn(VOCABULARY, VOCABULARY, generator=generator)

    def forward(self, *, input_ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.one_hot(input_ids.to(torch.int64), VOCABULARY).to(torch.float32)

    def compute_logits(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden @ self.logits


def run(model: Bigram, *prompts: tuple[int, ...]) -> None:
    """One engine step that holds ``prompts`` one after another."""
    model(
        input_ids=torch.tensor([token for prompt in prompts for token in prompt], dtype=torch.int32),
        positions=torch.cat([torch.arange(len(prompt)) for prompt in prompts]),
    )


def scored(rows: list[ScoredRow], drive: Callable[[Bigram], None], baseline: Scores | None = None) -> Scores:
    model = Bigram()
    tap = Tap(rows, baseline, lambda done: None)
    hook = tap.attach(model)
    drive(model)
    hook.remove()
    return tap.scores()


A = ScoredRow("a", (3, 1, 4, 1, 5), 2)
B = ScoredRow("b", (9, 2, 6), 1)
EXPECTED = torch.log_softmax(Bigram().logits, dim=-1).numpy()


def test_each_position_is_scored_from_the_token_before_it() -> None:
    found = scored([A, B], lambda model: run(model, A.ids[:-1], B.ids[:-1]))
    assert found.row_ids == ("a", "b")
    assert found.row_offsets.tolist() == [0, 3, 5]
    assert found.token_ids.tolist() == [4, 1, 5, 2, 6]
    pairs = [(1, 4), (4, 1), (1, 5), (9, 2), (2, 6)]
    np.testing.assert_allclose(found.observed, [EXPECTED[pair] for pair in pairs], atol=1e-5)
    for position, (before, _) in enumerate(pairs):
        order = np.argsort(-EXPECTED[before])[:TOP_TOKENS]
        assert found.top_ids[position].tolist() == order.tolist()
        np.testing.assert_allclose(found.top[position], EXPECTED[before][order], atol=1e-5)
        assert found.argmax[position] == order[0]


def test_the_order_and_the_steps_of_the_scheduler_do_not_matter() -> None:
    together = scored([A, B], lambda model: run(model, A.ids[:-1], B.ids[:-1]))

    def apart(model: Bigram) -> None:
        run(model, B.ids[:-1])
        run(model, A.ids[:-1])

    np.testing.assert_array_equal(scored([A, B], apart).observed, together.observed)


def test_a_candidate_is_read_at_the_baselines_tokens() -> None:
    baseline = scored([A, B], lambda model: run(model, A.ids[:-1], B.ids[:-1]))
    wanted = baseline.top_ids[:, ::-1].copy()
    shuffled = Scores(**{**vars(baseline), "top_ids": wanted})
    candidate = scored([A, B], lambda model: run(model, A.ids[:-1], B.ids[:-1]), shuffled)
    np.testing.assert_array_equal(candidate.top_ids, wanted)
    np.testing.assert_array_equal(candidate.top, baseline.top[:, ::-1])
    np.testing.assert_array_equal(candidate.argmax, baseline.argmax)


def test_rows_that_share_a_prompt_are_scored_each() -> None:
    twin = ScoredRow("twin", (*A.ids[:-1], 8), 2)
    found = scored([A, twin], lambda model: run(model, A.ids[:-1], twin.ids[:-1]))
    assert found.token_ids.tolist() == [4, 1, 5, 4, 1, 8]
    np.testing.assert_allclose(found.observed[[2, 5]], [EXPECTED[1, 5], EXPECTED[1, 8]], atol=1e-5)


def test_a_row_longer_than_a_slice_is_whole() -> None:
    ids = tuple(position % VOCABULARY for position in range(2 * SLICE_POSITIONS + 3))
    found = scored([ScoredRow("long", ids, 1)], lambda model: run(model, ids[:-1]))
    np.testing.assert_allclose(found.observed, EXPECTED[list(ids[:-1]), list(ids[1:])], atol=1e-5)


def test_a_prompt_in_chunks_is_refused() -> None:
    def chunked(model: Bigram) -> None:
        model(input_ids=torch.tensor(A.ids[2:4]), positions=torch.arange(2, 4))

    with pytest.raises(ToolFailed, match="no row waiting"):
        scored([A], chunked)


def test_a_prompt_that_comes_twice_is_refused() -> None:
    with pytest.raises(ToolFailed, match="no row waiting"):
        scored([A], lambda model: run(model, A.ids[:-1], A.ids[:-1]))


def test_a_row_left_out_is_named() -> None:
    with pytest.raises(ToolFailed, match="did not run 1 of 2 rows, first b"):
        scored([A, B], lambda model: run(model, A.ids[:-1]))


def test_nan_logits_are_no_scores() -> None:
    def broken(model: Bigram) -> None:
        model.logits[:] = float("nan")
        run(model, A.ids[:-1])

    with pytest.raises(ToolFailed, match="observed holds a value that is no log-probability"):
        scored([A], broken)
