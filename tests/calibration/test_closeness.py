"""A set like its log is close to it, another is not, and random draws stand beside."""

from __future__ import annotations

import random

from calibration.tiny import row
from trtpipe.calibration import closeness, style
from trtpipe.calibration.closeness import Pair
from trtpipe.calibration.row import rank
from trtpipe.calibration.select import Candidate, choose
from trtpipe.calibration.tokens import Counted

RARE, COMMON = "rare", "common"


def log() -> list[Pair]:
    rng = random.Random(5)  # noqa: S311 - reproducible, nothing secret
    pairs = []
    for number in range(4000):
        one = row(f"prompt n{number} about x{number}" + "?" * (number % 3 == 0), name=str(number))
        segment = RARE if number % 200 == 0 else COMMON
        answer = round(rng.lognormvariate(4, 1))
        counted = Counted(one, round(rng.lognormvariate(5, 1) * (3 if segment == RARE else 1)), answer)
        pairs.append((Candidate(counted, segment, 1.0), style.of(one)))
    return sorted(pairs, key=lambda pair: rank(pair[0].row.canonical, 0))


def test_chosen_rows_are_three_times_closer_than_random_ones() -> None:
    pairs = log()
    looks = {candidate.row.id: look for candidate, look in pairs}
    found = choose(
        [candidate for candidate, _ in pairs], calibration=512, heldout_per_segment=8, segment_min=4, similarity=0.99
    )
    chosen = [(candidate, looks[candidate.row.id]) for candidate in found.calibration]
    distances = closeness.distances(chosen, pairs, seed=0)
    assert {candidate.segment for candidate, _ in chosen} == {RARE, COMMON}
    for distance in distances:
        if distance.stratified and distance.feature != "segment":  # a least of 4 where 2.6 are due
            assert distance.chosen * 3 <= distance.random_median, distance
    assert all(distance.chosen < 0.08 for distance in distances)


def test_the_log_itself_has_no_distance_and_a_skewed_set_has() -> None:
    pairs = log()
    assert all(distance.chosen == 0 for distance in closeness.distances(pairs, pairs, seed=0))
    long = sorted(pairs, key=lambda pair: -pair[0].counted.tokens)[:200]
    by_feature = {distance.feature: distance for distance in closeness.distances(long, pairs, seed=0)}
    assert by_feature["tokens"].chosen > 0.8
    assert by_feature["tokens"].random_median < 0.15
