"""The document about a log and the sets made from it: what the report shows. No text of a prompt is in it."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from trtpipe.calibration import closeness, profile, style, tokenizing
from trtpipe.calibration.ledger import REASONS

if TYPE_CHECKING:
    from trtpipe.calibration.population import Population
    from trtpipe.calibration.sets import Sets
    from trtpipe.calibration.settings import Selection
    from trtpipe.core.chat import ChatTokenizer

FINDINGS_SHOWN = 200
EXAMPLES_PER_SEGMENT = 2


def of(
    population: Population, sets: Sets | None, settings: Selection, tokenizer: ChatTokenizer, block_tokens: int
) -> dict[str, Any]:
    """Return the whole document; ``sets`` None: of a log that nothing was chosen from."""
    census, cleaned = population.census, population.cleaned
    return {
        "log": {
            "files": census.files,
            "shapes": dict(sorted(census.shapes.items())),
            "fast_rows": census.fast_rows,
            "blank_lines": census.blank_lines,
            "boms_removed": census.boms_removed,
        },
        "ledger": census.ledger.document,
        "reasons": {reason: REASONS.get(reason, "") for reason in sorted(census.ledger.dropped)},
        "findings": [{"kind": bad.kind, "what": bad.what, "where": bad.where} for bad in census.bad[:FINDINGS_SHOWN]],
        "findings_total": len(census.bad),
        "cleaning": {
            "rows_with_control_characters": cleaned.rows_with_control_characters,
            "control_characters_removed": cleaned.control_characters_removed,
            "masking": settings.mask_personal_data,
            "rows_masked": cleaned.rows_masked,
            "masked": dict(sorted(cleaned.masked.items())),
        },
        "profile": profile.of(population, tokenizer, block_tokens),
        "tokenizer": tokenizing.figures(tokenizer, settings.template_date),
        "settings": settings.model_dump(mode="json"),
        "selection": None if sets is None else _selection(population, sets, settings),
    }


def _selection(population: Population, sets: Sets, settings: Selection) -> dict[str, Any]:
    heldout = Counter(item.segment for item in sets.heldout)
    calibration = Counter(item.segment for item in sets.calibration)
    tokens: dict[str, int] = defaultdict(int)
    for item in sets.calibration:
        tokens[item.segment] += len(item.ids)
    pairs = [(candidate, style.of(candidate.row)) for candidate in sets.business]
    return {
        "calibration": {"asked": settings.calibration_prompts, "delivered": len(sets.calibration)},
        "calibration_tokens": {"asked": settings.calibration_tokens_min, "delivered": sum(tokens.values())},
        "general_prompts": sets.general,
        "heldout_prompts": len(sets.heldout),
        "over_length_rows": sets.over_length,
        "shortfalls": [str(shortfall) for shortfall in sets.shortfalls],
        "segments": [
            {
                "segment": name,
                "calibration": calibration[name],
                "calibration_tokens": tokens[name],
                "heldout": heldout[name],
            }
            for name in sorted(calibration | heldout)
        ],
        "distances": [distance.document() for distance in closeness.distances(pairs, population.sample, settings.seed)]
        if pairs
        else [],
    }


def examples(population: Population) -> dict[str, list[str]]:
    """Return the first prompts of each segment as text: only for whoever asks for it."""
    found: dict[str, list[str]] = defaultdict(list)
    for candidate in population.candidates:
        if len(found[candidate.segment]) < EXAMPLES_PER_SEGMENT:
            found[candidate.segment].append(candidate.row.asked)
    return dict(sorted(found.items()))
