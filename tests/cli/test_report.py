"""`trtpipe report`: what is there becomes a page, and nothing is computed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tiny_chain import real_model, write_config, write_prompts


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trtpipe", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stdout + done.stderr
    return done


def test_the_report_of_a_tiny_checkpoint(tmp_path: Path) -> None:
    real_model(tmp_path / "model")
    write_config(tmp_path, model=tmp_path / "model", prompts=write_prompts(tmp_path / "prompts.jsonl"))
    missing = run(tmp_path, "report")
    assert missing.returncode == 3
    assert missing.stderr.startswith("error: there is no checkpoint for this config yet: select-prompts has not run")
    assert run(tmp_path, "calibrate").returncode == 0
    done = run(tmp_path, "report", "--json")
    assert done.returncode == 0, done.stdout
    found = json.loads(done.stdout)
    document = json.loads(Path(found["document"]).read_text("utf-8"))
    assert (found["verdict"], document["heldout"], len(document["layers"])) == (None, None, 2)
    assert {"attention input", "mlp output"} <= {error["group"] for error in document["layers"][0]["errors"]}
    page = Path(found["page"]).read_text("utf-8")
    assert "No drift check has been made on it yet" in page
    assert str(tmp_path) not in page
