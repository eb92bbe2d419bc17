"""From a population to the two sets: choose, encode, keep to the length limit, and account for every row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from trtpipe.calibration import census as counting
from trtpipe.calibration import ledger as ends
from trtpipe.calibration import select, tokens
from trtpipe.calibration.ledger import Shortfall
from trtpipe.calibration.near import Neighbours
from trtpipe.calibration.reading import Log
from trtpipe.calibration.tokens import Encoded
from trtpipe.errors import ConfigError

if TYPE_CHECKING:
    from trtpipe.calibration.population import Population
    from trtpipe.calibration.row import Row
    from trtpipe.calibration.select import Candidate
    from trtpipe.calibration.settings import Selection
    from trtpipe.core.chat import ChatTokenizer

GENERAL = "general"


@dataclass
class Sets:
    """The encoded sets. ``business``: the chosen candidates of the log among ``calibration``, before any window.

    ``general``: prompts from the general set among ``calibration``. ``over_length``: rows of the log over the limit.
    """

    calibration: list[Encoded] = field(default_factory=list)
    heldout: list[Encoded] = field(default_factory=list)
    business: list[Candidate] = field(default_factory=list)
    general: int = 0
    over_length: int = 0
    shortfalls: list[Shortfall] = field(default_factory=list)


def make(
    population: Population, general: Log, settings: Selection, tokenizer: ChatTokenizer, eos_id: int, where: str
) -> Sets:
    """Make both sets. Raises ConfigError where one is empty, or short of what was asked and that is not allowed."""
    sets = Sets()
    dropped = population.census.ledger.dropped
    candidates = population.candidates
    long = [candidate for candidate in candidates if candidate.counted.tokens > settings.prompt_tokens_max]
    sets.over_length = len(long)
    if settings.over_length == "drop":
        dropped[ends.OVER_LENGTH] += len(long)
        gone = set(map(id, long))
        candidates = [candidate for candidate in candidates if id(candidate) not in gone]
    wanted_general = round(settings.calibration_prompts * settings.general_share)
    chosen = select.choose(
        candidates,
        calibration=settings.calibration_prompts - wanted_general,
        heldout_per_segment=settings.heldout_prompts_per_segment,
        segment_min=settings.segment_prompts_min,
        similarity=settings.near_duplicate_similarity,
    )
    sets.business = chosen.calibration
    sets.heldout = list(_encoded(chosen.heldout, population, settings, tokenizer, eos_id, windows=False))
    of_log = list(_encoded(chosen.calibration, population, settings, tokenizer, eos_id, windows=True))
    of_general = _general(general, wanted_general, chosen, settings, tokenizer, eos_id)
    sets.general = len(of_general)
    sets.calibration = of_log + of_general
    dropped[ends.NEAR_HELDOUT] += chosen.near_heldout
    used = len(chosen.calibration) + len(chosen.heldout) + chosen.near_heldout
    dropped[ends.NOT_NEEDED] += len(candidates) - used
    population.census.ledger.close()
    _check(sets, chosen, settings, population, where)
    return sets


def _encoded(
    candidates: Iterable[Candidate],
    population: Population,
    settings: Selection,
    tokenizer: ChatTokenizer,
    eos_id: int,
    *,
    windows: bool,
) -> Iterable[Encoded]:
    """Yield the samples of rows; a long row is cut or, if asked and allowed here, becomes several windows."""
    ledger = population.census.ledger
    for candidate in candidates:
        item = tokens.encode(candidate.row, candidate.segment, tokenizer, eos_id)
        if len(item.ids) <= settings.prompt_tokens_max:
            ledger.kept += 1
            yield item
        elif windows and settings.over_length == "window":
            ledger.windowed += 1
            yield from tokens.windows(item, settings.prompt_tokens_max, tokenizer.bos_id)
        elif (shorter := tokens.cut(item, settings.prompt_tokens_max)) is not None:
            ledger.cut += 1
            yield shorter
        else:
            ledger.dropped[ends.OVER_LENGTH] += 1


def _general(
    log: Log, count: int, chosen: select.Chosen, settings: Selection, tokenizer: ChatTokenizer, eos_id: int
) -> list[Encoded]:
    """Return ``count`` general prompts in rank order (fewer where it has fewer), none near a held-out row."""
    if not count:
        return []
    census = counting.take(log, pool_rows=settings.pool_rows, pool_rows_per_segment=1, characters_min=1)
    counting.refuse_bad(census, 0.0, str(log.files[0].path))
    heldout = Neighbours((candidate.row for candidate in chosen.heldout), settings.near_duplicate_similarity)
    taken = {candidate.row.id for candidate in (*chosen.calibration, *chosen.heldout)}
    made: list[Encoded] = []
    for row in census.pool.rows:
        named = _named_apart(row, taken)
        item = tokens.encode(named, GENERAL, tokenizer, eos_id)
        if len(made) < count and not heldout.near(row) and len(item.ids) <= settings.prompt_tokens_max:
            made.append(item)
    return made


def _named_apart(row: Row, taken: set[str]) -> Row:
    return replace(row, id=f"{GENERAL}/{row.id}") if row.id in taken else row


def _check(sets: Sets, chosen: select.Chosen, settings: Selection, population: Population, where: str) -> None:
    for name, made in (("calibration", sets.calibration), ("heldout", sets.heldout)):
        if not made:
            raise ConfigError(
                f"the {name} set is empty. Ledger: {population.census.ledger}",
                where=where,
                fix="give more prompts, or allow longer ones",
            )
    found = [
        Shortfall("calibration prompts", settings.calibration_prompts, len(sets.calibration)),
        Shortfall("calibration tokens", settings.calibration_tokens_min, sum(len(x.ids) for x in sets.calibration)),
    ]
    for segment, lacking in chosen.heldout_lacking.items():
        asked = settings.heldout_prompts_per_segment
        found.append(Shortfall(f"held-out prompts of segment `{segment}`", asked, asked - lacking))
    sets.shortfalls = [one for one in found if one.delivered < one.asked]
    if not settings.allow_short:
        ends.refuse_short(sets.shortfalls, population.census.ledger, where)
