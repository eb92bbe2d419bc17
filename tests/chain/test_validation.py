"""`trtpipe validate` finds everything that is named and not there, with the rest, each with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from planning import target_path
from tiny_chain import write_prompts
from trtpipe.chain.validation import validate
from trtpipe.errors import Problems, TrtpipeError

CONFIG = """\
model: models/mine
prompts:
  files: [log.jsonl, "old/*.csv"]
  general_file: general.jsonl
  seed: -1
quantization:
  kind: modelopt
target: engine.yaml
policy: limits.yaml
serving: {triton_environment: triton}
"""
TARGET = """\
kind: tensorrt-llm
gpu: a100-80
weights: w4a16_awq
kv_dtype: model
accepted_changes: [max_seq_len, max_seqlen]
"""
UNKNOWN = "accepted_changes names `max_seqlen`, which is no argument whose effect an engine records"


def problems(folder: Path, *overrides: str) -> list[TrtpipeError]:
    with pytest.raises(TrtpipeError) as caught:
        validate(folder / "trtpipe.yaml", overrides)
    return caught.value.each()


def test_all_is_told_at_once_with_file_line_and_column(tmp_path: Path) -> None:
    (tmp_path / "trtpipe.yaml").write_text(CONFIG)
    (tmp_path / "engine.yaml").write_text(TARGET)
    with pytest.raises(Problems) as caught:
        validate(tmp_path / "trtpipe.yaml", ())
    assert caught.value.exit_code == 3
    said = sorted((Path(str(one.where)).name, one.what.replace(str(tmp_path), "")) for one in caught.value.each())
    assert said == [
        ("engine.yaml:1:1", "`chunked_context` is missing"),
        ("engine.yaml:1:1", "`kv_reuse` is missing"),
        ("engine.yaml:2:1", "there is no GPU type `a100-80`"),
        ("engine.yaml:5:33", UNKNOWN),
        ("trtpipe.yaml:10:11", "`serving.triton_environment`: there is no folder /triton"),
        ("trtpipe.yaml:1:1", "`model`: there is no folder /models/mine"),
        ("trtpipe.yaml:3:11", "`prompts.files`: prompt file not found: /log.jsonl"),
        ("trtpipe.yaml:3:22", "`prompts.files`: prompt file not found: /old/*.csv"),
        ("trtpipe.yaml:4:3", "`prompts.general_file`: there is no file /general.jsonl"),
        ("trtpipe.yaml:5:3", "`prompts.seed`: Input should be greater than or equal to 0"),
        ("trtpipe.yaml:7:3", "the quantizer modelopt runs in an environment of its own, and none is given"),
        ("trtpipe.yaml:9:1", "`policy`: there is no /limits.yaml"),
    ]
    assert all(one.fix for one in caught.value.each())


def test_what_an_override_names_is_told_as_its(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    write_prompts(tmp_path / "log.jsonl")
    config = f"model: model\nprompts: {{files: [log.jsonl]}}\ntarget: {target_path('a100x8')}\n"
    (tmp_path / "trtpipe.yaml").write_text(config)
    assert validate(tmp_path / "trtpipe.yaml", ()).target.kind == "tensorrt-llm"
    (found,) = problems(tmp_path, "quantization.kind=existing")
    assert (found.where, found.what) == (
        "--set quantization.kind", "`quantization.checkpoint` is missing, which kind existing takes over"
    )  # fmt: skip
    (found,) = problems(tmp_path, 'prompts.files=["none.jsonl"]')
    assert found.where == "--set prompts.files"


def test_the_repositorys_own_config_and_targets_are_in_order() -> None:
    config = target_path("local").parents[1] / "trtpipe.yaml"
    for target in ("local", "a100x1", "a100x8", "a100x8-reuse", "h200", "l40s"):
        assert validate(config, (f"target={target_path(target)}",)).policy.why
