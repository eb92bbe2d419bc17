"""No prompt in both sets, and the picks of a growing log stay the picks."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from calibration.tiny import row
from trtpipe.calibration.sources import Row
from trtpipe.calibration.split import Split, rank, split

SEGMENTS = ("chat", "code", "all")
ROWS = st.dictionaries(st.text(max_size=5), st.sampled_from(SEGMENTS), min_size=1, max_size=60).map(
    lambda prompts: [row(prompt, segment=segment, name=prompt) for prompt, segment in prompts.items()]
)


def divide(rows: list[Row], *, heldout: int = 3, calibration: int = 1000, seed: int = 0) -> Split:
    return split(rows, heldout_per_segment=heldout, calibration_max=calibration, seed=seed)


@given(ROWS, st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**64 - 1))
def test_every_row_is_in_one_place(rows: list[Row], heldout: int, calibration: int, seed: int) -> None:
    parts = divide(rows, heldout=heldout, calibration=calibration, seed=seed)
    assert not {r.messages for r in parts.heldout} & {r.messages for r in parts.calibration}
    assert len(parts.heldout) + len(parts.calibration) + parts.not_needed == len(rows)
    assert len(parts.calibration) <= calibration
    for segment in {r.segment for r in rows}:
        size = sum(r.segment == segment for r in rows)
        held = sum(r.segment == segment for r in parts.heldout)
        assert held == min(heldout, size * 2 // 3)
        assert held + parts.shortfalls.get(segment, 0) == heldout


@given(ROWS, ROWS)
def test_the_picks_stay_as_the_log_grows(rows: list[Row], more: list[Row]) -> None:
    known = {r.messages for r in rows}
    before, after = divide(rows), divide([*rows, *(r for r in more if r.messages not in known)])
    for segment in {r.segment for r in rows} - before.shortfalls.keys():
        picked = {r.messages for r in before.heldout if r.segment == segment}
        still = {r.messages for r in after.heldout if r.segment == segment}
        assert still & known <= picked
    for old, new in ((before.calibration, after.calibration), (before.heldout, after.heldout)):
        kept = {r.messages for r in old} & {r.messages for r in new}
        assert [r for r in old if r.messages in kept] == [r for r in new if r.messages in kept]


@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_the_log_does_not_matter(rows: list[Row], shuffler: random.Random) -> None:
    shuffled = rows.copy()
    shuffler.shuffle(shuffled)
    assert divide(rows) == divide(shuffled)


def test_the_seed_decides_and_id_and_response_do_not() -> None:
    rows = [row(str(number)) for number in range(100)]
    picked = [{r.messages for r in divide(rows, heldout=40, seed=seed).heldout} for seed in (0, 1)]
    assert picked[0] != picked[1]
    assert rank(row("a", name="x", response="y"), 0) == rank(row("a"), 0)


def test_shortfalls_are_counted_by_segment() -> None:
    rows = [row(str(number), segment="code") for number in range(4)]
    assert divide(rows).shortfalls == {"code": 1}


def test_the_ranks_are_the_same_in_every_version() -> None:
    assert rank(row("a"), 0).hex() == "d89d8fce0738dbcfbd47620f08343397"
