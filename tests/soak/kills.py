"""SIGKILL at random times: 20 in each of calibrate, build-engine, package and check-drift, then one undisturbed run.

    python tests/soak/kills.py [--commands package ...] [--kills 20] [--seed 0] [--model small|sample] [--folder FOLDER]

A run that was never disturbed says which digests the outputs must have. With a small model of random weights it takes
half an hour on two quiet cores, with the sample several times that; quantizer, engine and Triton are the real ones.
The figures go to standard output as JSON, one line a command. The exit status is 1 if anything differs or is left.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "quantization"))

import small_model

from leftovers import SHARED_MEMORY, none_in, processes_in
from trtpipe.core.artifacts import FOLDERS
from trtpipe.core.store import STATE, Store
from workspaces import REPOSITORY, trtpipe

# Command -> the stages that it adds to those of the commands before it.
COMMANDS = {
    "calibrate": ("select-prompts", "calibrate"),
    "build-engine": ("build-engine",),
    "package": ("package",),
    "check-drift": ("score-baseline", "score-release", "check-drift"),
}
DONE = (0, 6, 7)  # with so few prompts the verdict may be any
LEFT_WITHIN_S = 60.0
PROMPTS_PER_SEGMENT = 4
CONFIG = f"""\
prompts:
  files: [prompts.jsonl]
  calibration_prompts: 6
  heldout_prompts_per_segment: 1
  prompt_tokens_max: 256
quantization: {{alpha_grid_points: 4}}
target: {REPOSITORY}/engines/local.yaml
policy: policy.yaml
serving: {{triton_environment: {REPOSITORY}/.venv-triton}}
"""
POLICY = "heldout_prompts_min: 1\nheldout_prompts_per_segment_min: 1\nserved_prompts: 2\n"


@dataclass
class Tally:
    """What happened to one command.

    ``whole_run_s``: the shortest run from the beginning; kills fall within it. ``killed_in``: the stage that a
    killed run had named last.
    """

    command: str
    whole_run_s: float
    kills: int = 0
    finished_before_the_kill: int = 0
    killed_in: Counter[str] = field(default_factory=Counter)
    left_processes: list[str] = field(default_factory=list)
    left_shared_memory: list[str] = field(default_factory=list)
    differing: dict[str, Any] = field(default_factory=dict)

    @property
    def clean(self) -> bool:
        return not (self.left_processes or self.left_shared_memory or self.differing)


def write_workspace(folder: Path, model: str) -> None:
    folder.mkdir(parents=True)
    segments: dict[str, list[str]] = defaultdict(list)
    for line in (REPOSITORY / "calibration/prompts/sample.jsonl").read_text("utf-8").splitlines():
        segments[json.loads(line)["segment"]].append(line)
    chosen = [line for lines in segments.values() for line in lines[:PROMPTS_PER_SEGMENT]]
    (folder / "prompts.jsonl").write_text("\n".join(chosen) + "\n", encoding="utf-8")
    if model == "small":
        model = str(small_model.write(folder.with_name("model"), REPOSITORY / STATE / "downloads"))
    (folder / "trtpipe.yaml").write_text(f"model: {model}\n{CONFIG}")
    (folder / "policy.yaml").write_text(POLICY)
    downloads = REPOSITORY / STATE / "downloads"
    if downloads.is_dir():
        shutil.copytree(downloads, folder / STATE / "downloads")


def finish(folder: Path, command: str) -> list[dict[str, Any]]:
    """Run to the end and return what became of each stage."""
    result = trtpipe(command, "--json", folder=folder)
    if result.code not in DONE:
        sys.exit(f"{command} in {folder}: exit code {result.code}\n{result.stdout}{result.stderr}")
    stages: list[dict[str, Any]] = result.document["stages"]
    return stages


def start_s(folder: Path, command: str) -> float:
    """Return how long the command takes where everything is there already."""
    started = time.monotonic()
    finish(folder, command)
    return time.monotonic() - started


def forget(folder: Path, stages: tuple[str, ...]) -> None:
    """Remove what the stages have made, finished or not."""
    for kind in FOLDERS:
        for artifact in Store(folder).all(kind):
            if artifact.record.parts.stage in stages:
                shutil.rmtree(artifact.path)
        for partial in (folder / FOLDERS[kind]).glob("*.partial"):
            shutil.rmtree(partial)


def disturb(folder: Path, tally: Tally, kills: int, chance: random.Random) -> None:
    """Kill the command again and again; each time it takes up what the one before has left."""
    fresh = True
    while tally.kills < kills:
        started, delay_s = time.monotonic(), chance.uniform(0, tally.whole_run_s)
        said = folder / "said.txt"
        with said.open("w") as file:
            run = subprocess.Popen(
                [sys.executable, "-m", "trtpipe", tally.command], cwd=folder, stdout=subprocess.DEVNULL, stderr=file
            )
        try:
            status = run.wait(delay_s)
        except subprocess.TimeoutExpired:
            status = None
            os.kill(run.pid, signal.SIGKILL)
            run.wait()
            tally.kills += 1
            tally.killed_in[_stage(said)] += 1
        else:
            if status not in DONE:
                sys.exit(f"{tally.command} ended with {status}:\n{said.read_text()}")
            tally.finished_before_the_kill += 1
            if fresh:
                tally.whole_run_s = min(tally.whole_run_s, time.monotonic() - started)
            forget(folder, COMMANDS[tally.command])
        fresh = status is not None
        print(f"{tally.command}: {tally.kills} kills after {delay_s:.1f} s", file=sys.stderr, flush=True)
        if not none_in(folder, LEFT_WITHIN_S):
            tally.left_processes += processes_in(folder).values()
        tally.left_shared_memory += [path.name for path in SHARED_MEMORY.glob(f"trtpipe_{run.pid}_*")]


def _stage(said: Path) -> str:
    lines = [line.split("  ")[0] for line in said.read_text().splitlines() if "  building: " in line]
    return lines[-1] if lines else "before the first stage"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", choices=["small", "sample"], default="small")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "trtpipe-kills")
    options = parser.parse_args()
    chance = random.Random(options.seed)  # noqa: S311 - no secret
    shutil.rmtree(options.folder, ignore_errors=True)
    undisturbed, disturbed = options.folder / "undisturbed", options.folder / "disturbed"
    write_workspace(undisturbed, options.model)
    expected: dict[str, str] = {}
    shared_memory_before = set(SHARED_MEMORY.iterdir())
    tallies = []
    for command in options.commands:
        stages, made = COMMANDS[command], finish(undisturbed, command)
        expected |= {stage["stage"]: stage["digest"] for stage in made}
        making_s = sum(stage["seconds"] for stage in made if stage["stage"] in stages)
        tally = Tally(command, start_s(undisturbed, command) + making_s)
        shutil.copytree(undisturbed, disturbed, copy_function=os.link)
        forget(disturbed, stages)
        disturb(disturbed, tally, options.kills, chance)
        found = {stage["stage"]: stage["digest"] for stage in finish(disturbed, command)}
        tally.differing = {name: [expected[name], found[name]] for name in found if found[name] != expected[name]}
        shutil.rmtree(disturbed)
        tallies.append(tally)
        print(json.dumps(tally.__dict__ | {"whole_run_s": round(tally.whole_run_s, 1)}), flush=True)
    strange = sorted(path.name for path in set(SHARED_MEMORY.iterdir()) - shared_memory_before)
    print(json.dumps({"new_in_shared_memory": strange, "clean": all(tally.clean for tally in tallies)}))
    return 0 if all(tally.clean for tally in tallies) else 1


if __name__ == "__main__":
    sys.exit(main())
