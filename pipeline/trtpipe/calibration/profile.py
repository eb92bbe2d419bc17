"""The distribution of a log: lengths, segments, style, copies, prefixes; of a sample with its sampling error."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from trtpipe.calibration import ledger as ends
from trtpipe.calibration import prefix, style
from trtpipe.calibration.sampling import Sample
from trtpipe.calibration.segments import derive
from trtpipe.calibration.select import length_bin
from trtpipe.calibration.tokens import rendered

if TYPE_CHECKING:
    from trtpipe.calibration.population import Population
    from trtpipe.core.chat import ChatTokenizer

QUANTILES = (0.05, 0.5, 0.95, 0.99, 1.0)


def of(population: Population, tokenizer: ChatTokenizer, block_tokens: int) -> dict[str, Any]:
    """Return the profile as a JSON document; no text of a prompt is in it."""
    census = population.census
    pairs = population.sample
    sample = Sample(len(pairs), round(sum(candidate.weight for candidate in population.candidates)))
    counted = [candidate.counted for candidate, _ in pairs]
    looks = [look for _, look in pairs]
    read = census.ledger.rows
    return {
        "rows": read,
        "distinct_rows": census.distinct,
        "sample_rows": sample.rows,
        "whole_log": census.pool.whole_log,
        "exact_duplicates_share": census.ledger.dropped[ends.DUPLICATE] / read,
        "near_duplicates_share": Sample(population.compared, census.distinct)
        .share(population.near_duplicates)
        .document(),
        "lengths": {
            "prompt_characters": _exact_quantiles(census.prompt_characters),
            "response_characters": _exact_quantiles([length for length in census.response_characters if length]),
            "prompt_tokens": _quantiles([item.prompt_tokens for item in counted], sample),
            "response_tokens": _quantiles([item.response_tokens for item in counted if item.response_tokens], sample),
        },
        "answered_share": sample.share(sum(item.response_tokens > 0 for item in counted)).document(),
        "segments": _segments(population, sample),
        "languages": {
            name: sample.share(count).document() for name, count in sorted(Counter(x.language for x in looks).items())
        },
        "style": {
            "shares": {name: sample.share(sum(getattr(x, name) for x in looks)).document() for name in style.FLAGS},
            "means": {name: fmean(getattr(x, name) for x in looks) for name in style.NUMBERS} if looks else {},
        },
        "prefix": _prefixes(population, tokenizer, block_tokens),
        "reference": reference(population),
    }


def reference(population: Population) -> dict[str, Any]:
    """Return what later traffic is compared with: counts of the sample by segment, length bin and style."""
    pairs = population.sample
    segments: dict[str, float] = defaultdict(float)
    for candidate, look in zip(population.candidates, population.styles, strict=True):
        # Before small derived segments become "other": what is small depends on the size of the log.
        segments[candidate.row.segment or derive(candidate.row, look)] += candidate.weight
    return {
        "rows": len(pairs),
        "segments": {name: round(weight, 3) for name, weight in sorted(segments.items())},
        "prompt_tokens": _bins([candidate.counted.prompt_tokens for candidate, _ in pairs]),
        "response_tokens": _bins([x.counted.response_tokens for x, _ in pairs if x.counted.response_tokens]),
        "languages": dict(sorted(Counter(look.language for _, look in pairs).items())),
        "style": {name: sum(getattr(look, name) for _, look in pairs) for name in style.FLAGS},
    }


def _bins(lengths: Sequence[int]) -> dict[str, int]:
    return {str(number): count for number, count in sorted(Counter(map(length_bin, lengths)).items())}


def _segments(population: Population, sample: Sample) -> list[dict[str, Any]]:
    weights: dict[str, float] = defaultdict(float)
    tokens: dict[str, list[int]] = defaultdict(list)
    for candidate in population.candidates:
        weights[candidate.segment] += candidate.weight
        tokens[candidate.segment].append(candidate.counted.tokens)
    total = sum(weights.values())
    given = {candidate.row.segment for candidate in population.candidates}
    exact = None not in given  # then all rows were counted
    found = []
    for name in sorted(weights, key=lambda name: (-weights[name], name)):
        share = weights[name] / total
        low, high = (share, share)
        if not exact:
            estimate = sample.share(share * sample.rows)
            low, high = estimate.low, estimate.high
        median = float(np.median(tokens[name]))
        found.append(
            {"segment": name, "given": name in given, "share": share, "low": low, "high": high, "tokens_median": median}
        )
    return found


def _prefixes(population: Population, tokenizer: ChatTokenizer, block_tokens: int) -> dict[str, Any]:
    in_log_order = sorted((candidate.row for candidate, _ in population.sample), key=lambda row: _order(row.place))
    return prefix.analyse([rendered(row, tokenizer) for row in in_log_order], tokenizer, block_tokens).document()


def _order(place: str) -> tuple[str, int]:
    """Sort key of a row's place: file, then the number at its end."""
    file, _, number = place.rpartition(":")
    return file, int(number.removeprefix(" row "))


def _quantiles(lengths: list[int], sample: Sample) -> dict[str, Any]:
    ordered = sorted(lengths)
    return {_name(part): sample.quantile(ordered, part).document() for part in QUANTILES} if ordered else {}


def _exact_quantiles(lengths: Sequence[int]) -> dict[str, int]:
    if not len(lengths):
        return {}
    ordered = np.sort(np.asarray(lengths))
    return {_name(part): int(ordered[round(part * (len(ordered) - 1))]) for part in QUANTILES}


def _name(part: float) -> str:
    return "max" if part == 1.0 else f"p{part * 100:g}"
