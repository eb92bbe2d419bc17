"""``trtpipe build-engine`` and ``inspect`` of a TensorRT-LLM target, as a user gives them."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from planning import TARGETS, model, target_path
from standins import nvidia_smi
from standins import trtllm_build as standin
from trtllm_builds import Site
from trtpipe.cli import trtpipe
from trtpipe.engines.trtllm.build import grammar
from trtpipe.errors import ConfigError
from workspaces import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.testing import Result

AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(trtpipe, [str(word) for word in arguments], prog_name="trtpipe")


def dry(name: str | Path, target: str | Path, *more: str) -> Result:
    folder = name if isinstance(name, Path) else model(name)
    path = target if isinstance(target, Path) else target_path(target)
    return run("build-engine", "--target", path, "--model", folder, "--dry-run", *more)


def unbroken(text: str) -> str:
    """Return what was printed without the working folder, whose length decides where lines break."""
    return re.sub(r"\n {9}(?=\S)", " ", text.replace(f"{Path.cwd()}/", ""))


def words(result: Result, number: int = -1) -> list[str]:
    found: list[str] = json.loads(result.stdout)["lines"][number]["words"]
    return found


@pytest.fixture(autouse=True)
def _without_tensorrt_llm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").symlink_to(REPOSITORY / "tests/public_configs")
    (tmp_path / "engines").symlink_to(REPOSITORY / "engines")


def test_a_dry_run_prints_the_lines_without_tensorrt_llm(golden: Callable[[str, str], None]) -> None:
    result = dry(Path("models/qwen2.5-72b"), Path("engines/a100x8.yaml"))
    assert result.exit_code == 0, result.output
    golden("build/qwen2.5-72b-a100x8.txt", unbroken(result.stdout))


@pytest.mark.parametrize("target", TARGETS)
def test_every_targets_line_is_of_upstreams_grammar(target: str) -> None:
    result = dry("llama-3.1-8b", target, "--json")
    assert result.exit_code == 0, result.output
    line = words(result)
    known = {f"--{name}" for name in grammar.grammar()}
    assert line[0] == "trtllm-build"
    assert {word for word in line if word.startswith("--")} <= known


def test_a_plan_that_is_refused_ends_with_its_findings(golden: Callable[[str, str], None]) -> None:
    result = dry(Path("models/qwen2.5-7b"), Path("engines/a100x8-reuse.yaml"))
    assert "4 refused, see above" in str(result.exception)
    golden("build/refused.txt", unbroken(result.stdout))
    as_json = dry("qwen2.5-7b", "a100x8-reuse", "--json")
    assert as_json.exit_code == 3
    document = json.loads(as_json.stdout)
    assert document["ok"] is False
    assert "refused" in {finding["kind"] for finding in document["findings"]}
    assert "lines" not in document


def test_without_a_model_the_configs_is_planned_and_the_sample_is_refused_for_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "trtpipe.yaml").write_text("model: sample\nprompts:\n  files: [a.jsonl]\ntarget: engines/local.yaml\n")
    result = run("build-engine", "--target", "engines/a100x8.yaml", "--dry-run")
    assert isinstance(result.exception, ConfigError)
    assert "9 attention heads cannot be shared by TP 8: 1 are left over" in result.stdout
    assert "the hidden size 576 is no multiple of 1024" in result.stdout
    assert "--model: the config's is the sample" in str(result.exception.fix)
    settings = ["--set", "target.group_size=64", "--json"]
    export, build = json.loads(run("build-engine", "--target", "engines/a100x1.yaml", "--dry-run", *settings).stdout)[
        "lines"
    ]
    assert "model=sample" in export["words"]
    assert build["words"][1:3] == ["--checkpoint_dir", "sample-a100x1-checkpoint"]


def test_what_the_builder_would_change_is_refused_before_it_runs_unless_accepted() -> None:
    limits = {"max_batch_size": 2, "max_seq_len": 2048, "max_num_tokens": 8192}
    settings = [word for key, value in limits.items() for word in ("--set", f"target.{key}={value}")]
    result = dry("llama-3.1-8b", "a100x1", "--json", *settings)
    assert result.exit_code == 3
    (refused,) = [finding for finding in json.loads(result.stdout)["findings"] if finding["kind"] == "refused"]
    assert refused["what"].startswith("max_num_tokens is 4096 in the engine, and 8192 was asked for")
    assert "accepted_changes: [max_num_tokens]" in refused["fix"]
    assert (
        dry(
            "llama-3.1-8b", "a100x1", "--json", *settings, "--set", "target.accepted_changes=[max_num_tokens]"
        ).exit_code
        == 0
    )
    wrong = dry("llama-3.1-8b", "a100x1", "--json", "--set", "target.accepted_changes=[max_seqlen]")
    assert "accepted_changes names `max_seqlen`" in wrong.stdout


def quantized(folder: Path, quantization: dict[str, Any], **changes: Any) -> Path:
    folder.mkdir()
    config = json.loads((model("llama-3.1-8b") / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes | {"quantization_config": quantization}))
    return folder


def test_o_23_an_autoawq_checkpoint_goes_through_the_converter(tmp_path: Path) -> None:
    folder = quantized(tmp_path / "awq", AWQ)
    settings = ["--set", "target.weights=w4a16_gptq", "--set", "target.dtype=float16"]
    result = dry(folder, "a100x1", "--json", *settings)
    assert words(result, 0) == [
        "python3", "examples/models/core/llama/convert_checkpoint.py", "--model_dir", str(folder), "--tp_size", "1",
        "--pp_size", "1", "--dtype", "float16", "--output_dir", "awq-a100x1-checkpoint",
    ]  # fmt: skip
    with_kv = dry(folder, "a100x1", "--json", *settings, "--set", "target.kv_dtype=fp8_e4m3",
                  "--set", "target.kv_reuse=false", "--set", "target.chunked_context=false")  # fmt: skip
    assert "--fp8_kv_cache" in words(with_kv, 0)


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ([], "trtpipe export -c llama-3.1-8b-a100x1-workspace/trtpipe.yaml --set target="),
        (["target.weights=fp8"], "quantize.py --model_dir"),
        (["target.kv_dtype=int8", "target.kv_reuse=false", "target.chunked_context=false"],
         "--tp_size 1 --pp_size 1 --awq_block_size 128 --kv_cache_dtype int8"),
    ],
)  # fmt: skip
def test_who_makes_the_checkpoint(settings: list[str], part: str) -> None:
    gpu = "h200" if "target.weights=fp8" in settings else "a100x1"
    more = [word for setting in settings for word in ("--set", setting)]
    lines = json.loads(dry("llama-3.1-8b", gpu, "--json", *more).stdout)["lines"]
    assert part in " ".join(lines[-2]["words"])


@pytest.mark.parametrize(
    ("settings", "first", "flags"),
    [
        (["target.weights=fp8"], 512, "--dtype bfloat16 --qformat fp8"),
        (["target.weights=w4a8_awq"], 32, "--qformat w4a8_awq"),
        (["target.kv_dtype=int8", "target.kv_reuse=false", "target.chunked_context=false"], 32,
         "--tp_size 1 --pp_size 1 --awq_block_size 128 --kv_cache_dtype int8"),
    ],
)  # fmt: skip
def test_upstreams_quantizer_is_given_the_users_own_texts(
    tmp_path: Path, settings: list[str], first: int, flags: str
) -> None:
    more = [word for setting in settings for word in ("--set", setting)]
    result = dry("llama-3.1-8b", "h200", "--json", *more)
    init, texts, quantizing = (line["words"] for line in json.loads(result.stdout)["lines"][:3])
    folder = str(tmp_path / "llama-3.1-8b-h200-workspace/calibration/texts")
    assert init == ["trtpipe", "init", "llama-3.1-8b-h200-workspace"]
    assert texts[:4] == ["trtpipe", "export", "-c", "llama-3.1-8b-h200-workspace/trtpipe.yaml"]
    assert texts[-2:] == ["--out", folder]
    assert quantizing[quantizing.index("--calib_dataset") + 1] == folder
    assert flags in " ".join(quantizing)
    assert f"calibrated on its first {first} texts" in json.loads(result.stdout)["lines"][2]["purpose"]
    said = [finding["cost"] for finding in json.loads(result.stdout)["findings"] if finding["kind"] == "note"]
    assert any("news articles from the network" in str(cost) for cost in said)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    made = Site(tmp_path / "site")
    monkeypatch.setenv("PATH", str(made.install()), prepend=os.pathsep)
    monkeypatch.chdir(made.folder)
    (made.folder / "trtpipe.yaml").write_text(
        f"model: model\nprompts:\n  files: [{REPOSITORY / 'calibration/prompts/sample.jsonl'}]\ntarget: target.yaml\n"
    )
    return made


def test_a_real_build_and_its_inspection(site: Site) -> None:
    built = run("build-engine", "--checkpoint", "checkpoint", "--json")
    assert built.exit_code == 0, built.output
    (stage,) = json.loads(built.stdout)["stages"]
    assert (stage["stage"], stage["decision"], stage["reused"]) == ("build-engine", "built: first run", False)
    found = run("inspect", stage["path"], "--target", "target.yaml", "--json")
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert (document["ok"], document["world_size"], document["sm_by_rank"]) == (True, 8, [80] * 8)
    text = run("inspect", stage["path"]).stdout
    assert "ranks    8 of 8" in text
    assert "paged context FMHA off" in text
    other = run("inspect", stage["path"], "--target", "target.yaml", "--json", "--set", "target.gpu=l40s")
    assert other.exit_code == 3
    assert "is SM 89" in other.stdout


def test_an_engine_is_held_against_this_machine(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = json.loads(run("build-engine", "--checkpoint", "checkpoint", "--json").stdout)["stages"][0]["path"]
    assert run("inspect", path, "--here").exit_code == 0
    older = standin.install(tmp_path / "older", grammar.FILE, version="1.1.0")
    nvidia_smi.write(older, name="NVIDIA A10", capability="8.6", memory_mib=23028, driver="580.1", count=1)
    monkeypatch.setenv("PATH", str(older), prepend=os.pathsep)
    said = str(run("inspect", path, "--here").exception)
    assert "built with TensorRT-LLM 1.2.1, running TensorRT-LLM 1.1.0" in said
    assert "the engine has 8 ranks, one a GPU, and there are 1 GPUs" in said


def test_the_line_of_the_export_runs_as_it_is_printed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the config and the settings that were given, from another folder than the config's."""
    (site.folder / "conf").mkdir()
    config = (site.folder / "trtpipe.yaml").rename(site.folder / "conf/mine.yaml")
    config.write_text(config.read_text().replace("model: model", f"model: {site.model}"))
    given = ["--set", "target=../target.yaml", "--set", "prompts.files=[log.jsonl]", "--set", "target.version=1.2.1"]
    line = words(run("build-engine", "-c", "conf/mine.yaml", *given, "--dry-run", "--json"), 0)
    assert line[:5] == ["trtpipe", "export", str(site.model), "-c", str(config)]
    made = run(*line[1:])
    assert made.exit_code == 0, made.output
    assert (site.folder / "model-target-checkpoint/rank7.safetensors").is_file()


def test_where_there_is_no_config_a_line_makes_one_first(site: Site) -> None:
    (site.folder / "trtpipe.yaml").unlink()
    first, export, _build = json.loads(dry(site.model, site.target_file, "--json").stdout)["lines"]
    assert first["words"] == ["trtpipe", "init", "model-target-workspace"]
    for line in (first, export):
        made = run(*line["words"][1:])
        assert made.exit_code == 0, made.output
    assert (site.folder / "model-target-checkpoint/rank7.safetensors").is_file()
    with_none = run("build-engine", "-c", "no.yaml", "--target", site.target_file, "--model", site.model, "--dry-run")
    assert "the file does not exist" in str(with_none.exception)


def test_a_build_needs_a_checkpoint_and_a_local_engine_none(site: Site) -> None:
    assert "none is given" in str(run("build-engine").exception)
    local = run("build-engine", "--target", REPOSITORY / "engines/local.yaml", "--checkpoint", "checkpoint")
    assert "are for TensorRT-LLM" in str(local.exception)


def test_a_checkpoint_that_is_given_is_looked_at_in_a_dry_run_too(site: Site) -> None:
    assert run("build-engine", "--checkpoint", "checkpoint", "--dry-run").exit_code == 0
    (site.checkpoint / "rank1.safetensors").unlink()
    assert "the checkpoint lacks rank 1" in str(
        run("build-engine", "--checkpoint", "checkpoint", "--dry-run").exception
    )


def test_a_tensorrt_llm_checkpoint_is_no_model(site: Site) -> None:
    said = run("plan", "--model", "checkpoint").exception
    assert isinstance(said, ConfigError)
    assert said.what == "this is a TensorRT-LLM checkpoint, and a plan is of the model that it was made from"
    assert "--checkpoint" in str(said.fix)
