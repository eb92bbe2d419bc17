"""SIGKILL at layer 17 of 30: the run that goes on ends in the same bytes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import tiny
import torch

from trtpipe.core import digest

LAYERS, KILLED_AT = 30, 17
LIMIT_S = 300


def start(job: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Start the worker as the stage does; return it with the reading end of its events."""
    read_fd, write_fd = os.pipe()
    with job.open("rb") as file:
        child = subprocess.Popen(
            [sys.executable, "-m", "trtpipe.quantization.worker"],
            stdin=file,
            env={**os.environ, "TRTPIPE_EVENTS_FD": str(write_fd)},
            pass_fds=(write_fd,),
        )
    os.close(write_fd)
    return child, read_fd


def test_a_killed_run_ends_in_the_same_bytes(tmp_path: Path) -> None:
    model = tiny.save(tmp_path / "model", num_hidden_layers=LAYERS)
    prompts = tmp_path / "calibration.jsonl"
    prompts.write_text(json.dumps({"ids": torch.arange(90).tolist()}) + "\n")
    digests = []
    for name in ("straight", "killed"):
        folder = tmp_path / name
        folder.mkdir()
        job = tmp_path / f"{name}.json"
        job.write_text(
            json.dumps({
                "model": str(model), "prompts": str(prompts), "folder": str(folder), "processes": 1,
                "recipe": "awq+clip+round", "group_size": 64, "alpha_grid_points": 4, "symmetric": True,
                "inputs": "quantized", "kv_scales": "separate",
            })
        )  # fmt: skip
        if name == "killed":
            child, events = start(job)
            deadline = time.monotonic() + LIMIT_S
            while not (folder / ".progress" / f"layer-{KILLED_AT - 1:03d}.json").exists():
                assert time.monotonic() < deadline
                time.sleep(0.005)
            os.kill(child.pid, signal.SIGKILL)
            assert child.wait(LIMIT_S) == -signal.SIGKILL
            os.close(events)
            assert not (folder / "model.safetensors.index.json").exists()
        child, events = start(job)
        assert child.wait(LIMIT_S) == 0
        with os.fdopen(events, "rb") as told_by:
            told = told_by.read().decode()
        assert ("going on at layer 1" in told) is (name == "killed")
        digests.append(digest.of_folder(folder))
    assert digests[0] == digests[1]
