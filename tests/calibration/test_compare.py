"""Equal traffic stays inside the limits, changed traffic goes beyond them, and the right statistic says so."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from trtpipe.calibration.compare import compare
from trtpipe.calibration.select import length_bin


def traffic(seed: int, rows: int = 800, **changes: Any) -> dict[str, Any]:
    """Return a reference document of drawn traffic."""
    rng = random.Random(seed)  # noqa: S311 - reproducible, nothing secret
    mix = changes.get("mix", {"chat": 6, "code": 3, "rare": 1})
    longer = changes.get("longer", 1.0)
    lengths = [str(length_bin(round(rng.lognormvariate(5, 1) * longer))) for _ in range(rows)]
    return {
        "rows": rows,
        "segments": Counter(rng.choices(list(mix), list(mix.values()), k=rows)),
        "prompt_tokens": Counter(lengths),
        "response_tokens": changes.get("response_tokens", Counter(lengths)),
        "languages": Counter(rng.choices(["latin", "zh"], [9, 1], k=rows)),
        "style": {"code": sum(rng.random() < changes.get("code", 0.3) for _ in range(rows))},
    }


def beyond(**changes: Any) -> set[str]:
    return {finding.feature for finding in compare(traffic(1), traffic(2, **changes)) if not finding.inside}


def test_equal_traffic_is_inside_whatever_the_sample() -> None:
    outside = [
        finding
        for seed in range(100)
        for rows in (30, 800)
        for finding in compare(traffic(seed, rows), traffic(seed + 1000, rows))
        if not finding.inside
    ]
    assert len(outside) <= 2, outside  # of 1000 comparisons, with a tolerance above chance's 99 %


def test_changed_traffic_is_found_by_its_statistic() -> None:
    assert beyond(mix={"chat": 2, "code": 7, "rare": 1}) == {"segments"}
    assert beyond(mix={"chat": 6, "code": 3, "new": 1}) == {"segments"}
    assert beyond(longer=1.8) == {"prompt_tokens", "response_tokens"}
    assert beyond(code=0.6) == {"code"}


def test_traffic_without_answers_is_not_compared_by_them() -> None:
    features = [finding.feature for finding in compare(traffic(1), traffic(2, response_tokens={}))]
    assert features == ["segments", "prompt_tokens", "languages", "code"]


def test_a_finding_says_value_and_limit() -> None:
    (document,) = [finding.document() for finding in compare(traffic(1), traffic(2))][:1]
    assert document.keys() == {"feature", "statistic", "value", "limit", "inside"}
    assert document["limit"] > 0.02
