"""Places are shared out exactly, in proportion, within the bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trtpipe.calibration.apportion import apportion

GROUPS = st.dictionaries(st.text(max_size=3), st.tuples(st.floats(0.01, 1000), st.integers(0, 50)), max_size=8)


@given(GROUPS, st.integers(0, 200), st.integers(0, 10))
def test_the_sum_and_the_bounds_hold(groups: dict[str, tuple[float, int]], total: int, least: int) -> None:
    weights = {name: weight for name, (weight, _) in groups.items()}
    most = {name: size for name, (_, size) in groups.items()}
    places = apportion(total, weights, most, least)
    assert sum(places.values()) == min(total, sum(most.values()))
    filled = [name for name in groups if most[name]]
    for name, count in places.items():
        assert min(least, total // len(filled), most[name]) <= count <= most[name]


@given(st.dictionaries(st.text(max_size=3), st.floats(0.01, 1000), min_size=1, max_size=8), st.integers(0, 500))
def test_no_place_is_further_than_one_from_its_share(weights: dict[str, float], total: int) -> None:
    places = apportion(total, weights, dict.fromkeys(weights, 10**6))
    for name, count in places.items():
        assert abs(count - total * weights[name] / sum(weights.values())) < 1


def test_largest_remainder_and_a_least() -> None:
    weights = {"a": 47.0, "b": 16.0, "c": 15.8, "d": 12.0, "e": 6.1, "f": 3.1}  # the textbook case of Hare's method
    assert apportion(10, weights, dict.fromkeys(weights, 99)) == {"a": 5, "b": 2, "c": 1, "d": 1, "e": 1, "f": 0}
    assert apportion(100, {"big": 995.0, "rare": 5.0}, {"big": 500, "rare": 50}, 4) == {"big": 96, "rare": 4}
    assert apportion(100, {"big": 9.0, "small": 1.0}, {"big": 20, "small": 50}) == {"big": 20, "small": 50}
    assert apportion(3, {"a": 1.0, "b": 1.0}, {"a": 0, "b": 0}, 2) == {}
