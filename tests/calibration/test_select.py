"""No prompt in both sets, the proportions of the log, and picks that stay as the log grows."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.tiny import row
from trtpipe.calibration import near
from trtpipe.calibration.row import rank
from trtpipe.calibration.select import Candidate, Chosen, choose, length_bin
from trtpipe.calibration.tokens import Counted

SEGMENTS = ("chat", "code", "all")


def candidates(prompts: dict[str, tuple[str, int]], seed: int = 0) -> list[Candidate]:
    """``prompts``: text -> segment and length in tokens."""
    ordered = sorted(prompts, key=lambda text: rank(row(text).canonical, seed))
    return [Candidate(Counted(row(text, name=text), prompts[text][1], 0), prompts[text][0], 1.0) for text in ordered]


def chosen(given_candidates: list[Candidate], *, heldout: int = 3, calibration: int = 1000, least: int = 0) -> Chosen:
    return choose(
        given_candidates,
        calibration=calibration,
        heldout_per_segment=heldout,
        segment_min=least,
        similarity=0.8,
    )


def names(picked: list[Candidate]) -> set[str]:
    return {candidate.row.id for candidate in picked}


# Letters apart from each other, so that only equal texts are near copies.
PROMPTS = st.dictionaries(
    st.integers(0, 10**6).map(lambda number: f"prompt n{number} is about x{number}"),
    st.tuples(st.sampled_from(SEGMENTS), st.integers(1, 999)),
    min_size=1,
    max_size=60,
)


@settings(deadline=None, max_examples=40)
@given(PROMPTS, st.integers(1, 40), st.integers(1, 40), st.integers(0, 5))
def test_every_row_is_in_one_place(prompts: dict[str, tuple[str, int]], heldout: int, count: int, least: int) -> None:
    parts = chosen(candidates(prompts), heldout=heldout, calibration=count, least=least)
    assert not names(parts.heldout) & names(parts.calibration)
    assert len(parts.calibration) == min(count, len(prompts) - len(parts.heldout))
    assert parts.near_heldout == 0
    for segment in {segment for segment, _ in prompts.values()}:
        size = sum(found == segment for found, _ in prompts.values())
        held = sum(candidate.segment == segment for candidate in parts.heldout)
        assert held == min(heldout, size * 2 // 3)
        assert held + parts.heldout_lacking.get(segment, 0) == heldout
    for picked in (parts.heldout, parts.calibration):
        assert len(names(picked)) == len(picked)


@settings(deadline=None, max_examples=40)
@given(PROMPTS, PROMPTS)
def test_heldout_picks_stay_as_the_log_grows(
    prompts: dict[str, tuple[str, int]], more: dict[str, tuple[str, int]]
) -> None:
    before, after = chosen(candidates(prompts)), chosen(candidates(more | prompts))
    for segment in {segment for segment, _ in prompts.values()} - before.heldout_lacking.keys():
        picked = names([candidate for candidate in before.heldout if candidate.segment == segment])
        still = names([candidate for candidate in after.heldout if candidate.segment == segment])
        assert still & prompts.keys() <= picked


def test_calibration_picks_stay_as_the_log_grows() -> None:
    rng = random.Random(0)  # noqa: S311 - reproducible, nothing secret
    log = {f"prompt n{number} is about x{number}": ("all", rng.randint(10, 900)) for number in range(4000)}
    part = dict(list(log.items())[:3600])
    before, after = (names(chosen(candidates(found), calibration=200).calibration) for found in (part, log))
    assert len(before & after) > 150  # a tenth more rows takes about a tenth of the places


@settings(deadline=None, max_examples=25)
@given(PROMPTS, st.randoms(use_true_random=False))
def test_the_order_of_the_log_does_not_matter(prompts: dict[str, tuple[str, int]], shuffler: random.Random) -> None:
    shuffled = list(prompts.items())
    shuffler.shuffle(shuffled)
    first, second = chosen(candidates(prompts), calibration=9), chosen(candidates(dict(shuffled)), calibration=9)
    assert (first.heldout, first.calibration) == (second.heldout, second.calibration)


def test_segments_and_lengths_have_their_proportions_and_a_rare_segment_its_least() -> None:
    rng = random.Random(1)  # noqa: S311 - reproducible, nothing secret
    log = {
        f"prompt n{number} is about x{number}": ("rare" if number % 200 == 0 else "common", rng.choice([10, 100, 900]))
        for number in range(3000)
    }
    found = chosen(candidates(log), calibration=99, least=3)
    common = [candidate.counted.tokens for candidate in found.calibration if candidate.segment == "common"]
    assert len(common) == 96
    assert sorted(common.count(length) for length in (10, 100, 900)) in ([31, 32, 33], [32, 32, 32], [31, 31, 34])


def test_rows_near_a_heldout_row_never_calibrate() -> None:
    words = [f"w{number}" for number in range(40)]
    log = {" ".join([*words[:38], f"end{number}"]): ("all", 50) for number in range(8)}
    log |= {f"prompt n{number} is about x{number}": ("all", 50) for number in range(30)}
    found = chosen(candidates(log), heldout=20)
    heldout = near.Neighbours([candidate.row for candidate in found.heldout], 0.8)
    assert found.near_heldout > 0
    assert not any(heldout.near(candidate.row) for candidate in found.calibration)
    assert len(found.heldout) + len(found.calibration) + found.near_heldout == len(log)


def test_bins_are_fixed_four_to_an_octave() -> None:
    assert [length_bin(tokens) for tokens in (0, 1, 2, 4, 1024)] == [0, 0, 4, 8, 40]


def test_the_ranks_are_the_same_in_every_version() -> None:
    assert rank(row("a").canonical, 0).hex() == "0adef427285e6125e02f3a7bdc9cf598"
    assert rank(row("a").canonical, 1) != rank(row("a").canonical, 0)
    assert row("a", name="x", response="y", segment="z").canonical == row("a").canonical
