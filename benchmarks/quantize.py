"""Reproduces the tables of quantization: closeness, time and memory on the fixed case, peers included.

    python benchmarks/quantize.py quality MODEL            # ours: each step, symmetric and asymmetric
    python benchmarks/quantize.py speed MODEL --peer DIR   # ours beside ModelOpt's awq_lite in the environment DIR
    python benchmarks/quantize.py tokens MODEL             # what grows with the calibration tokens

Each writes benchmarks/results/<table>-<name>.json, one row after the other; rows that are there are not measured
again.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import fixed_case
import torch

from trtpipe.core import environment
from trtpipe.quantization import device, scales, worker

RESULTS = Path(__file__).parent / "results"
HERE = Path(__file__).parent
# name: (recipe, symmetric, inputs)
STEPS = {
    "rtn": ("rtn", True, "quantized"),
    "awq": ("awq", True, "quantized"),
    "awq+clip": ("awq+clip", True, "quantized"),
    "awq+clip+round": ("awq+clip+round", True, "quantized"),
    "awq+clip+round, original inputs": ("awq+clip+round", True, "original"),
    "rtn, asymmetric": ("rtn", False, "quantized"),
    "awq+clip+round, asymmetric": ("awq+clip+round", False, "quantized"),
}


class Table:
    """A result file with its environment, written after each row."""

    def __init__(self, name: str) -> None:
        self.path = RESULTS / f"{name}.json"
        self.document: dict[str, Any] = {"environment": described(), "rows": {}}
        if self.path.is_file():
            self.document["rows"] = json.loads(self.path.read_text("utf-8"))["rows"]

    def __contains__(self, row: str) -> bool:
        return row in self.document["rows"]

    def add(self, row: str, **figures: Any) -> None:
        self.document["rows"][row] = figures
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text(json.dumps(self.document, indent=1) + "\n", encoding="utf-8")
        print(row, json.dumps(figures), flush=True)


def described() -> dict[str, Any]:
    return {
        **environment.describe(),
        "processor": platform.processor() or platform.machine(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "computed_on": str(device.choose()),
    }


class Quiet:
    def note(self, text: str) -> None: ...

    def progress(self, label: str, done: int, total: int) -> None: ...


def quantize(
    model: Path, ids: list[list[int]], folder: Path, step: tuple[str, bool, str] = STEPS["awq+clip+round"]
) -> dict[str, Any]:
    """Quantize in this process, clipping, rounding and export included; return the worker's result and the time."""
    recipe, symmetric, inputs = step
    folder.mkdir(parents=True)
    job = {
        "model": str(model), "folder": str(folder), "processes": 1,
        "prompts": str(fixed_case.write_prompts(folder.with_suffix(".jsonl"), ids)),
        "recipe": recipe, "symmetric": symmetric, "inputs": inputs,
        "group_size": 64, "alpha_grid_points": 10, "kv_scales": "separate",
    }  # fmt: skip
    started = time.monotonic()
    result = worker.work(job, Quiet())  # type: ignore[arg-type]
    return {**result, "seconds": time.monotonic() - started}


def quality(options: argparse.Namespace) -> None:
    table = Table(f"quality-{options.name}")
    original = fixed_case.open_model(options.model)
    ids = fixed_case.rows("calib", options.first, options.first + options.rows)
    tried = ""
    if options.rows_searched:
        scales.ROWS_SEARCHED = options.rows_searched
        tried = f", {options.rows_searched} rows searched, calibration rows from {options.first}"
    judged = fixed_case.rows("eval", 0, 40) if options.final else fixed_case.rows("calib", 112, 124)
    for step in options.steps or STEPS:
        row = f"{step}, {options.rows} x 512{tried}"
        if row in table:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            made = quantize(options.model, ids, Path(scratch) / "out", STEPS[step])
            candidate = fixed_case.expanded(Path(scratch) / "out", options.model)
        closeness = fixed_case.score(original, {step: candidate}, judged)[step]
        table.add(row, **asdict(closeness), seconds=round(made["seconds"], 1), peak_rss_mib=made["peak_rss_mib"])


def speed(options: argparse.Namespace) -> None:
    """Ours and the peer in turns, each in a process of its own, on the same layers, ids, threads and type."""
    table = Table(f"speed-{options.name}")
    taken: dict[str, list[float]] = {"ours": [], "peer batch 1": [], "peer batch 8": []}
    with tempfile.TemporaryDirectory() as scratch:
        model = first_layers(options.model, options.layers, Path(scratch) / "model")
        ids = Path(scratch) / "ids.json"
        ids.write_text(json.dumps(fixed_case.rows("calib", 0, options.rows)), encoding="utf-8")
        ours = [sys.executable, __file__, "once", str(model), str(ids)]
        peer = [str(options.peer / "bin/python"), str(HERE / "peer_modelopt.py"), str(model), str(ids)]
        for _ in range(options.times):
            for name, command in (
                ("ours", ours),
                ("peer batch 1", [*peer, "1", described()["computed_on"].split()[2].rstrip(":")]),
                ("peer batch 8", [*peer, "8", described()["computed_on"].split()[2].rstrip(":")]),
            ):
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    raise SystemExit(f"{name}: {done.stderr[-3000:]}")
                taken[name].append(json.loads(done.stdout.splitlines()[-1])["seconds"])
                print(name, taken[name], flush=True)
    medians = {name: statistics.median(seconds) for name, seconds in taken.items()}
    best_peer = min(medians["peer batch 1"], medians["peer batch 8"])
    table.add(
        f"{options.rows} x 512, {options.layers} layers",
        seconds={name: [round(one, 2) for one in seconds] for name, seconds in taken.items()},
        ratio_of_medians=round(best_peer / medians["ours"], 2),
    )


def once(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        made = quantize(options.model, json.loads(options.ids.read_text("utf-8")), Path(scratch) / "out")
    peak_rss_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(json.dumps({"seconds": made["seconds"], "peak_rss_mib": peak_rss_mib}))


def tokens(options: argparse.Namespace) -> None:
    """8k, 64k and 256k tokens: the same 128 rows four times over for the last."""
    table = Table(f"tokens-{options.name}")
    with tempfile.TemporaryDirectory() as scratch:
        model = first_layers(options.model, options.layers, Path(scratch) / "model")
        for rows in (16, 128, 512):
            row = f"{rows} x 512, {options.layers} layers"
            if row not in table:
                ids = (fixed_case.rows("calib", 0, 128) * 4)[:rows]
                made = quantize(model, ids, Path(scratch) / f"out-{rows}")
                table.add(row, seconds=round(made["seconds"], 1), peak_rss_mib=made["peak_rss_mib"])


def first_layers(model: Path, layers: int, folder: Path) -> Path:
    """Link a model folder under a config with fewer layers."""
    folder.mkdir()
    for path in model.iterdir():
        (folder / path.name).symlink_to(path.resolve())
    config = json.loads((model / "config.json").read_text("utf-8"))
    (folder / "config.json").unlink()
    config["num_hidden_layers"] = layers
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for command in (quality, speed, tokens, once):
        sub = commands.add_parser(command.__name__)
        sub.set_defaults(run=command)
        sub.add_argument("model", type=Path)
        sub.add_argument("--rows", type=int, default=16)
        sub.add_argument("--layers", type=int, default=30)
        sub.add_argument("--name", default="cpu")
        if command is quality:
            sub.add_argument("--final", action="store_true", help="score on eval.npy instead of rows 112-123 of calib")
            sub.add_argument("--steps", nargs="*", choices=STEPS)
            sub.add_argument("--first", type=int, default=0, help="first calibration row")
            sub.add_argument("--rows-searched", type=int, help="rows of a weight that candidates are compared on")
        if command is speed:
            sub.add_argument("--peer", type=Path, required=True)
            sub.add_argument("--times", type=int, default=3)
        if command is once:
            sub.add_argument("ids", type=Path)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
