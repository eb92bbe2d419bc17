"""What Triton served against what the engine prefers."""

from __future__ import annotations

import pytest

from drift.synthetic import answers, policy
from trtpipe.drift.served import judge_served

EOS = frozenset({2})
GOOD = [5, 6, 7, 8, 9, 2]


def test_counts_are_by_prompt() -> None:
    other = [5, 6, 1, 8, 1, 2]
    found = judge_served(answers([GOOD, GOOD, [5, 2]], [GOOD, other, [5, 2]]), EOS, policy())
    assert [(p.id, p.tokens, p.agreeing_tokens) for p in found.prompts] == [("r0", 6, 6), ("r1", 6, 4), ("r2", 2, 2)]
    assert found.agreement.value == 12 / 14
    assert (found.agreement.prompts, found.agreement.tokens) == (3, 14)
    assert found.agreement.outcome == "inconclusive"


def test_what_the_engine_prefers_passes_and_anything_else_fails() -> None:
    assert judge_served(answers([GOOD] * 3, [GOOD] * 3), EOS, policy()).agreement.outcome == "pass"
    shifted = [6, 7, 8, 9, 2, 5]
    assert judge_served(answers([GOOD] * 3, [shifted] * 3), EOS, policy()).agreement.outcome == "fail"


def test_fewer_answers_than_asked_for_are_inconclusive() -> None:
    found = judge_served(answers([GOOD] * 2, [GOOD] * 2), EOS, policy())
    assert found.agreement.outcome == "inconclusive"
    assert "2 prompt(s), at least 3 needed" in found.agreement.reason


@pytest.mark.parametrize(
    ("answer", "empty", "repeated"),
    [
        ([2], True, False),
        ([5], False, False),
        ([5, 5, 5], False, False),
        ([5, 5, 5, 5], False, True),
        ([7, 5, 5, 5, 5, 5, 5], False, True),
        ([7, 5, 5, 5, 5], False, False),  # exactly 80 % may be
        (GOOD, False, False),
    ],
)
def test_answers_that_are_none(answer: list[int], empty: bool, repeated: bool) -> None:
    prompt = judge_served(answers([answer], [answer]), EOS, policy()).prompts[0]
    assert (prompt.empty, prompt.one_token_repeated) == (empty, repeated)


@pytest.mark.parametrize(
    ("served", "outcome"),
    [
        ([GOOD, GOOD, [2], [5] * 9], "pass"),
        ([GOOD, [2], [2], [5] * 9], "fail"),
        ([[2]] * 3, "fail"),
    ],
)
def test_a_server_that_mostly_says_nothing_fails_however_well_it_agrees(served: list[list[int]], outcome: str) -> None:
    found = judge_served(answers(served, served), EOS, policy())
    assert found.agreement.value == 1.0
    assert found.answers_outcome == outcome
    assert "r2" in found.answers_reason
