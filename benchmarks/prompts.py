"""How long a log of a million prompts takes, and how close 512 chosen prompts are to it.

    nice python benchmarks/prompts.py [--rows 1000000] [--model FOLDER] [--folder /tmp]

Writes the log itself (chat rows, ten segments, the smallest 0.5 %), runs each measurement in a process of its own, and
writes ``benchmarks/results/prompts.json`` with the environment. Needs the sample model's tokenizer: `trtpipe profile`
once in a workspace makes it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trtpipe.calibration import census, closeness, population, select, style, tokenizing
from trtpipe.calibration.settings import Selection
from trtpipe.config.schema import Prompts
from trtpipe.core import environment
from trtpipe.core.progress import Silent

REPOSITORY = Path(__file__).parents[1]
SAMPLE = REPOSITORY / "calibration/prompts/sample.jsonl"
RESULTS = REPOSITORY / "benchmarks/results/prompts.json"
CHOSEN = 512
# Segment -> share of the log, mean number of sentences, whether its prompts are code-like.
SEGMENTS = {
    "support": (0.40, 4, False),
    "search": (0.20, 1, False),
    "summary": (0.12, 16, False),
    "extraction": (0.09, 9, False),
    "coding": (0.07, 8, True),
    "translation": (0.05, 5, False),
    "classification": (0.03, 3, False),
    "rewriting": (0.02, 6, False),
    "analysis": (0.015, 22, False),
    "legal": (0.005, 30, False),
}
DUPLICATES, NEAR_DUPLICATES = 0.04, 0.02
SENTENCES = 40_000
CHOOSING_ROWS = 20_000  # a log that is looked at as a whole: a sample of it would add its own error to the distances


def write_log(path: Path, rows: int, seed: int = 0) -> None:
    """Write the log: sentences of random words of the sample's prompts, lengths spread by a log-normal factor."""
    rng = random.Random(seed)  # noqa: S311 - an invented log, nothing secret
    words = sorted(set(re.findall(r"[A-Za-z]{2,12}", SAMPLE.read_text("utf-8"))))
    sentences = [" ".join(rng.choices(words, k=rng.randint(6, 18))) + ". " for _ in range(SENTENCES)]
    names, shares = list(SEGMENTS), [share for share, _, _ in SEGMENTS.values()]
    system = {
        name: f"You work in {name}. Answer in the language of the request; be brief and correct." for name in names
    }
    kept: list[str] = []
    with path.open("w", encoding="utf-8") as file:
        for number in range(rows):
            draw = rng.random()
            if kept and draw < DUPLICATES + NEAR_DUPLICATES:
                line = rng.choice(kept)
                if draw < NEAR_DUPLICATES:
                    line = f'{{"id": "{number}", ' + line.replace("Please ", "Please do ", 1).partition(", ")[2]
                file.write(line)
                continue
            name = rng.choices(names, shares)[0]
            _, mean, code = SEGMENTS[name]
            count = max(1, round(mean * rng.lognormvariate(-0.2, 0.7)))
            body = "".join(rng.choices(sentences, k=count))
            if code:
                body = "def handle(x):\n    return x\n\n" + body
            text = f"Please {name}: {body}{'Is this right? ' if rng.random() < 0.3 else ''}"
            row: dict[str, Any] = {
                "id": str(number),
                "segment": name,
                "messages": [{"role": "system", "content": system[name]}, {"role": "user", "content": text}],
            }
            if rng.random() < 0.8:
                row["response"] = "".join(rng.choices(sentences, k=max(1, round(count * rng.uniform(0.1, 0.9)))))
            line = json.dumps(row, ensure_ascii=False) + "\n"
            if len(kept) < 2000:
                kept.append(line)
            file.write(line)


def settings(**changes: Any) -> Selection:
    prompts = Prompts(files=[str(SAMPLE)], **changes)
    return Selection(**prompts.model_dump(exclude={"files", "general_file"}))


def read_all(log: Path, _model: Path) -> dict[str, Any]:
    """Everything that is said of all rows: read, ledger, exact duplicates, lengths in characters."""
    chosen = settings()
    found = census.take(
        population.log_of([log], chosen),
        pool_rows=chosen.pool_rows,
        pool_rows_per_segment=population.POOL_ROWS_PER_SEGMENT,
        characters_min=1,
    )
    return {
        "rows": found.ledger.rows,
        "distinct_rows": found.distinct,
        "fast_path_rows": found.fast_rows,
        "pool_rows": len(found.pool.rows),
        "dropped": dict(found.ledger.dropped),
    }


def read_and_measure(log: Path, model: Path, **changes: Any) -> dict[str, Any]:
    """The same, then cleaning, near duplicates, tokens, templates and styles of the pool."""
    chosen = settings(**changes)
    found = population.read(population.log_of([log], chosen), chosen, tokenizing.load(model, "2026-01-01"), Silent())
    return {"pool_rows": found.compared, "near_duplicates": found.near_duplicates, "sample_rows": len(found.sample)}


def measure_every_row(log: Path, model: Path) -> dict[str, Any]:
    return read_and_measure(log, model, pool_rows=2**40)


def pick(found: population.Population, chosen: Selection, count: int) -> select.Chosen:
    """Choose held-out prompts and ``count`` calibration prompts, all of the log."""
    return select.choose(
        found.candidates,
        calibration=count,
        heldout_per_segment=chosen.heldout_prompts_per_segment,
        segment_min=chosen.segment_prompts_min,
        similarity=chosen.near_duplicate_similarity,
    )


def choose(log: Path, model: Path) -> dict[str, Any]:
    """How close ``CHOSEN`` business prompts are to the log, beside the median of 20 random draws."""
    chosen = settings(pool_rows=CHOOSING_ROWS)
    found = population.read(population.log_of([log], chosen), chosen, tokenizing.load(model, "2026-01-01"), Silent())
    picked = pick(found, chosen, CHOSEN)
    pairs = [(candidate, style.of(candidate.row)) for candidate in picked.calibration]
    distances = closeness.distances(pairs, found.sample, seed=0)
    return {
        "rows": found.census.ledger.rows,
        "pool_rows": found.compared,
        "prompts": len(pairs),
        "segments": len({candidate.segment for candidate, _ in pairs}),
        "segments_of_log": len(SEGMENTS),
        "distances": [distance.document() for distance in distances],
        "times_smaller": {d.feature: round(d.random_median / max(d.chosen, 1e-12), 2) for d in distances},
    }


MEASUREMENTS: dict[str, Callable[[Path, Path], dict[str, Any]]] = {
    "read": read_all,
    "read_and_measure": read_and_measure,
    "choose": choose,
    "every_row": measure_every_row,
}


def measured(name: str, log: Path, model: Path) -> dict[str, Any]:
    """Run one measurement in a process of its own."""
    command = [sys.executable, __file__, "--measure", name, "--log", str(log), "--model", str(model)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    print(name, json.dumps(found)[:400], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--only", nargs="*", default=["read", "read_and_measure", "choose"], choices=MEASUREMENTS)
    parser.add_argument("--measure", choices=MEASUREMENTS, help=argparse.SUPPRESS)
    parser.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        started, before = time.monotonic(), os.times()
        found = MEASUREMENTS[given.measure](given.log, given.model)
        after = os.times()
        found["seconds"] = round(time.monotonic() - started, 1)
        found["cpu_seconds"] = round(after.user + after.system - before.user - before.system, 1)
        found["peak_rss_mib"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        print(json.dumps(found))
        return
    logs = {rows: given.folder / f"prompts-{rows}.jsonl" for rows in (given.rows, CHOOSING_ROWS)}
    for rows, path in logs.items():
        if not path.exists():
            write_log(path, rows)
    for name in given.only:
        load = os.getloadavg()[0]
        log = logs[CHOOSING_ROWS if name == "choose" else given.rows]
        found = measured(name, log, given.model) | {"load_average_before": round(load, 2)}
        result = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
        result |= {name: found, "log_rows": given.rows, "log_mib": round(logs[given.rows].stat().st_size / 2**20)}
        result["environment"] = environment.describe()
        RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
