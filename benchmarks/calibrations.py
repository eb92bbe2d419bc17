"""KL on held-out business prompts after calibration with chosen prompts, random prompts, and Python source.

    python benchmarks/calibrations.py draw SETS.json --model FOLDER      # the token ids of each set, by seed
    python benchmarks/calibrations.py measure SETS.json --model FOLDER   # where there is a GPU or patience

Writes benchmarks/results/calibrations.json. The sets of a seed have as many tokens as its chosen prompts, and are
judged on its held-out prompts, which none of them is a near copy of.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import fixed_case

RESULTS = Path(__file__).parent / "results/calibrations.json"
SAMPLE = Path(__file__).parents[1] / "calibration/prompts/sample.jsonl"
SEEDS = (0, 1, 2)
PROMPTS = 64


def draw(options: argparse.Namespace) -> None:
    from prompts import pick, settings  # `measure` runs where trtpipe's dependencies are not installed

    from trtpipe.calibration import population, tokenizing, tokens
    from trtpipe.calibration.near import Neighbours
    from trtpipe.core.progress import Silent

    tokenizer = tokenizing.load(options.model, "2026-01-01")
    eos_id = tokenizing.end_of_answer(tokenizer, options.model)
    drawn: dict[str, dict[str, list[list[int]]]] = {}
    for seed in SEEDS:
        chosen = settings(seed=seed, calibration_prompts=PROMPTS)
        found = population.read(population.log_of([SAMPLE], chosen), chosen, tokenizer, Silent())
        picked = pick(found, chosen, PROMPTS)
        near = Neighbours((one.row for one in picked.heldout), chosen.near_duplicate_similarity)
        held = {one.row.id for one in picked.heldout}
        free = [one for one in found.candidates if one.row.id not in held and not near.near(one.row)]
        random.Random(seed).shuffle(free)  # noqa: S311 - a draw to compare with

        def encoded(candidates: list[Any]) -> list[list[int]]:
            made = [tokens.encode(one.row, one.segment, tokenizer, eos_id).ids for one in candidates]
            return [ids[:2048] for ids in made]

        sets = {"chosen prompts": encoded(picked.calibration), "heldout": encoded(picked.heldout)}
        count = sum(map(len, sets["chosen prompts"]))
        sets["random prompts"] = _up_to(count, encoded(free))
        code = fixed_case.rows("code", 0, 128)
        random.Random(seed).shuffle(code)  # noqa: S311
        sets["Python source"] = _up_to(count, code)
        drawn[str(seed)] = sets
        print(seed, {name: (len(rows), sum(map(len, rows))) for name, rows in sets.items()}, flush=True)
    options.sets.write_text(json.dumps(drawn), encoding="utf-8")


def _up_to(count: int, rows: list[list[int]]) -> list[list[int]]:
    """Return the first rows that have ``count`` tokens in all, the last one cut."""
    taken: list[list[int]] = []
    for row in rows:
        left = count - sum(map(len, taken))
        if left <= 0:
            break
        taken.append(row[:left])
    return taken


def measure(options: argparse.Namespace) -> None:
    from quantize import Table, quantize

    table = Table("calibrations")
    original = fixed_case.open_model(options.model)
    for seed, sets in json.loads(options.sets.read_text("utf-8")).items():
        for name in ("chosen prompts", "random prompts", "Python source"):
            row = f"{name}, seed {seed}"
            if row in table:
                continue
            with tempfile.TemporaryDirectory() as scratch:
                made = quantize(options.model, sets[name], Path(scratch) / "out")
                candidate = fixed_case.expanded(Path(scratch) / "out", options.model)
            closeness = fixed_case.score(original, {name: candidate}, sets["heldout"])[name]
            table.add(row, **asdict(closeness), prompts=len(sets[name]), calibration_tokens=made["calibration_tokens"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("draw", "measure"))
    parser.add_argument("sets", type=Path)
    parser.add_argument("--model", type=Path, required=True)
    options = parser.parse_args()
    {"draw": draw, "measure": measure}[options.what](options)


if __name__ == "__main__":
    main()
