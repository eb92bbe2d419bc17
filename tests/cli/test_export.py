"""`trtpipe export`, as a user gives it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from exports import canonical

from planning import target_path
from tiny_chain import real_model, write_config, write_prompts
from trtpipe.core import artifacts
from trtpipe.core.chat import ChatTokenizer

PAD = "intermediate size 960 padded with zeros to 1024: group size 64 x TP 2 must divide it"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_config(tmp_path, model=tmp_path / "model", prompts=tmp_path / "prompts.jsonl")
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trtpipe", "export", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stdout + done.stderr
    return done


def test_the_record_says_what_was_changed(folder: Path) -> None:
    canonical.make(folder / "source", intermediate_size=960)
    options = ["--format", "tensorrt-llm", "--tensor-parallel", "2", "--pad", "--out", "out", "source"]
    foreseen = run(folder, *options, "--dry-run", "--json")
    assert not (folder / "out").exists()
    assert PAD in json.loads(foreseen.stdout)["notes"]
    done = run(folder, *options)
    assert done.returncode == 0, done.stderr
    assert f"note: {PAD}" in done.stderr
    made = artifacts.read(folder / "out")
    artifacts.verify(made)
    assert made.record.notes == json.loads(foreseen.stdout)["notes"]
    assert made.record.parts.parameters["options"]["tensor_parallel"] == 2
    assert sorted(path.name for path in (folder / "out").iterdir()) == [
        "config.json", "rank0.safetensors", "rank1.safetensors", "record.json"
    ]  # fmt: skip
    again = run(folder, *options, "-v")
    assert "export  reused: same inputs and parameters" in again.stderr


@pytest.mark.parametrize(
    ("changes", "options", "code", "said"),
    [
        ({"symmetric": False}, ["--format", "tensorrt-llm"], 3, "fix:   trtpipe export --format autoawq"),
        ({"intermediate_size": 960}, ["--format", "tensorrt-llm", "--tensor-parallel", "2"], 3,
         "or --pad: widen the intermediate size with zeros to 1024"),
        ({}, ["--format", "autoawq", "--dtype", "bfloat16"], 2, "the layout autoawq has no --dtype"),
        ({}, ["--format", "compressed-tensors", "--tensor-parallel", "2"], 2, "has no --tensor-parallel"),
    ],
)  # fmt: skip
def test_what_a_layout_cannot_hold_leaves_nothing(
    folder: Path, changes: dict[str, int | bool], options: list[str], code: int, said: str
) -> None:
    canonical.make(folder / "source", **changes)  # type: ignore[arg-type]
    done = run(folder, *options, "--out", "out", "source")
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert not list(folder.glob("out*"))


def test_a_folder_of_something_else_is_not_overwritten(folder: Path) -> None:
    canonical.make(folder / "source")
    done = run(folder, "--format", "autoawq", "--out", "source", "source")
    assert done.returncode == 3
    assert "is no earlier export: it is not overwritten" in done.stderr
    missing = run(folder, "--format", "autoawq", "--out", "out", "nowhere")
    assert (missing.returncode, "there is no config.json" in missing.stderr) == (3, True)


def test_autoawq_prints_the_conversion(folder: Path) -> None:
    """TensorRT-LLM itself calls this layout W4A16_GPTQ; nothing here calls it W4A16_AWQ."""
    canonical.make(folder / "source", symmetric=False)
    done = run(folder, "--format", "autoawq", "--tensor-parallel", "4", "--out", "out", "--json", "source")
    document = json.loads(done.stdout)
    assert document["convert_command"] == (
        f"python3 examples/models/core/llama/convert_checkpoint.py --model_dir {folder / 'out'} --tp_size 4 "
        f"--pp_size 1 --dtype float16 --use_parallel_embedding --output_dir {folder / 'out-tensorrt-llm'}"
    )
    config = json.loads((folder / "out/config.json").read_text())
    assert config["quantization_config"]["zero_point"] is True
    assert "W4A16_AWQ" not in (folder / "out/config.json").read_text()


def test_the_texts_of_the_calibration_set_are_what_it_was_made_of(folder: Path) -> None:
    real_model(folder / "model")
    write_prompts(folder / "prompts.jsonl")
    options = ["--format", "calibration-texts", "--out", "calibration/texts"]
    foreseen = json.loads(run(folder, *options, "--dry-run", "--json").stdout)
    assert [stage["decision"] for stage in foreseen["stages"]] == ["build", "depends"]
    done = run(folder, *options, "--json")
    assert done.returncode == 0, done.stderr
    (chosen,) = (folder / "calibration/sets").iterdir()
    rows = [json.loads(line) for line in (chosen / "calibration.jsonl").read_text().splitlines()]
    texts = [json.loads(line) for line in (folder / "calibration/texts/train.jsonl").read_text().splitlines()]
    assert [set(text) for text in texts] == [{"text"}] * len(rows)
    tokenizer = ChatTokenizer.load(folder / "model")
    equal = [tokenizer.encode_plain(text["text"]) == row["ids"] for text, row in zip(texts, rows, strict=True)]
    document = json.loads(done.stdout)
    assert (document["texts"], document["texts_of_equal_tokens"]) == (len(rows), sum(equal))
    assert sum(equal) > 0
    assert "calibration/texts" in run(folder, *options).stdout, "an earlier export is written over"
    named = run(folder, *options, "model")
    assert named.returncode == 2
    assert "has none" in named.stderr


def test_the_workspaces_own_checkpoint_is_made_and_exported(folder: Path) -> None:
    """An export needs no engine, so the target may be of the engine that it is for."""
    real_model(folder / "model")
    write_prompts(folder / "prompts.jsonl")
    foreseen = json.loads(run(folder, "--format", "autoawq", "--out", "out", "--dry-run", "--json").stdout)
    assert [stage["decision"] for stage in foreseen["stages"]][-1] == "depends"
    assert foreseen["notes"] is None
    settings = ["--set", "quantization.recipe=rtn", "--set", f"target={target_path('a100x8')}"]
    done = run(folder, "--format", "autoawq", "--out", "out", "--json", *settings)
    assert done.returncode == 0, done.stderr
    assert list((folder / "out").glob("*.safetensors"))
