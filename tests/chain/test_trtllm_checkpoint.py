"""Checkpoints for `trtllm-build`: ours and a user's own, held against upstream's table; and who makes which."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from planning import config, target, target_path
from trtllm_builds import Site
from trtpipe.chain import plan as planning
from trtpipe.chain import trtllm_checkpoint as chain
from trtpipe.core import weight_files
from trtpipe.engines.trtllm import plan as engine_plan
from trtpipe.engines.trtllm.build import checkpoint, checkpoint_layout
from trtpipe.errors import ConfigError
from workspaces import REPOSITORY

if TYPE_CHECKING:
    from trtpipe.engines.trtllm.plan import Plan

MODELOPT = json.loads((REPOSITORY / "tests/quantization/exports/modelopt-0.47.0.json").read_text("utf-8"))
SIZES = {"I8": 1, "BF16": 2, "F32": 4}
KEYS = {
    part: {row["name"] for row in checkpoint_layout.table()[part]} for part in ("config", "quantization", "mapping")
}


@pytest.mark.parametrize("model_type", ["llama", "qwen2"])
def test_what_we_write_is_what_upstream_reads(tmp_path: Path, model_type: str) -> None:
    site = Site(tmp_path / "site", model_type=model_type)
    written = json.loads((site.checkpoint / "config.json").read_text("utf-8"))
    assert written.keys() - KEYS["config"] == {"producer"}, "says who wrote it; taken and not used"
    assert written["quantization"].keys() <= KEYS["quantization"]
    assert written["mapping"].keys() <= KEYS["mapping"]
    made = planning.plan(site.model, site.target_file, (), None).plan
    for rank in range(8):
        held = weight_files.names(site.checkpoint / f"rank{rank}.safetensors")
        assert held == set(checkpoint_layout.expected(made, 0)) | {"lm_head.weight"}
    checkpoint.require(site.checkpoint, made)


def modelopts(folder: Path, model_type: str, **changes: Any) -> Plan:
    """Write ModelOpt's TP 8 export with the names, types and shapes that it was seen to have; return its plan."""
    (case,) = [one for one in MODELOPT["cases"] if (one["model_type"], one["tensor_parallel"]) == (model_type, 8)]
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(case["config"] | changes))
    for group in case["files"]:
        header, end = {}, 0
        for name, (kind, shape) in group["tensors"].items():
            start, end = end, end + SIZES[kind] * (shape[0] * (shape[1] if len(shape) > 1 else 1))
            header[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, end]}
        text = json.dumps(header).encode()
        for rank in group["ranks"]:
            with (folder / f"rank{rank}.safetensors").open("wb") as file:
                file.write(len(text).to_bytes(8, "little") + text)
                file.truncate(8 + len(text) + end)
    dimensions = MODELOPT["hugging_face"] | {"model_type": model_type}
    return engine_plan.make(dimensions, target("a100x8", max_seq_len=128), where="config.json")


@pytest.mark.parametrize("model_type", ["llama", "qwen2"])
def test_an_export_of_modelopt_is_used_as_it_is(tmp_path: Path, model_type: str) -> None:
    made = modelopts(tmp_path / "modelopt", model_type, qwen_type="qwen2")
    assert made.refusals == []
    checkpoint.require(tmp_path / "modelopt", made)


def test_what_trtllm_build_would_refuse_or_misread_is_refused_in_the_first_second(tmp_path: Path) -> None:
    folder = tmp_path / "modelopt"
    made = modelopts(folder, "qwen2")
    path = folder / "config.json"
    written = json.loads(path.read_text("utf-8"))
    written["quantization"] |= {"awq_block_size": 128, "has_zero_point": True}
    written["mapping"] |= {"nodes": 1}
    path.write_text(json.dumps(written))
    (folder / "rank3.safetensors").write_bytes(b"\x02" + b"\0" * 7 + b"{}")
    with pytest.raises(ConfigError) as caught:
        checkpoint.require(folder, made)
    said = [problem.what for problem in caught.value.each()]
    count, dense = len(set(checkpoint_layout.expected(made, 0))), "transformer.layers.0.attention.dense"
    *others, lacking = said
    assert lacking == (
        f"rank 3 lacks {count} tensor(s) that its engine needs: {dense}.prequant_scaling_factor, {dense}.weight, "
        f"{dense}.weights_scaling_factor and {count - 3} more"
    )
    assert others == [
        "the checkpoint's config.json has no `qwen_type`",
        "`quantization` has `awq_block_size`, and TensorRT-LLM refuses what it does not know there",
        "`mapping` has `nodes`, and TensorRT-LLM refuses what it does not know there",
        "the checkpoint's quantization.has_zero_point is True, and the plan says False",
    ]  # fmt: skip


@pytest.mark.parametrize("written", [None, {"model_type": "llama"}], ids=["none", "hugging-face"])
def test_a_folder_of_something_else_names_the_command_that_prints_the_line(
    tmp_path: Path, written: dict[str, Any] | None
) -> None:
    """`accept` and `build-engine --checkpoint --dry-run` print none themselves."""
    made = engine_plan.make(config("llama-3.1-70b"), target("a100x8"), where="config.json")
    if written is not None:
        (tmp_path / "config.json").write_text(json.dumps(written))
    with pytest.raises(ConfigError, match="no TensorRT-LLM checkpoint") as caught:
        checkpoint.require(tmp_path, made)
    assert "`trtpipe build-engine --dry-run` without --checkpoint prints the line that makes" in str(caught.value.fix)


def test_awq_under_the_label_of_gptq_is_refused(tmp_path: Path) -> None:
    """As hand-made routes have it: input scales, no zero points, and the name of the other format."""
    folder = tmp_path / "modelopt"
    modelopts(folder, "llama")
    path = folder / "config.json"
    written = json.loads(path.read_text("utf-8"))
    written["quantization"] |= {"quant_algo": "W4A16_GPTQ", "kv_cache_quant_algo": None}
    path.write_text(json.dumps(written))
    gptq = target("a100x8", weights="w4a16_gptq", kv_dtype="model", max_seq_len=128)
    made = engine_plan.make(MODELOPT["hugging_face"] | {"model_type": "llama"}, gptq, where="config.json")
    with pytest.raises(ConfigError) as caught:
        checkpoint.require(folder, made)
    said = [problem.what for problem in caught.value.each()]
    assert "the checkpoint's quantization.has_zero_point is False, and the plan says True" in said
    assert "the checkpoint's quantization.pre_quant_scale is True, and the plan says False" in said
    assert sum("has input scales, which W4A16_GPTQ has not: " in one for one in said) == 8
    assert sum(".attention.dense.zero, " in one for one in said) == 8


def test_a_width_that_the_engine_pads_by_itself_is_the_models_own_in_the_checkpoint(tmp_path: Path) -> None:
    gptq = target("a100x8-reuse", weights="w4a16_gptq", pad_intermediate=False)
    made = engine_plan.make(config("qwen2.5-72b"), gptq, where="config.json")
    written = {"architecture": "Qwen2ForCausalLM", "mapping": {}, "intermediate_size": 29568}
    (tmp_path / "config.json").write_text(json.dumps(written))
    with pytest.raises(ConfigError) as caught:
        checkpoint.require(tmp_path, made)
    assert not any("intermediate_size" in problem.what for problem in caught.value.each())


AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True, "desc_act": False}
GROUP = {"weights": {"num_bits": 4, "group_size": 128, "symmetric": False}}
OURS = {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": GROUP}}
AS_GPTQ = ("target.weights=w4a16_gptq",)
SETTINGS = ("prompts.seed=1", "model=other")
CONFIG = "-c FILE --set prompts.seed=1"
TAKEN_OVER = (
    f"trtpipe export {CONFIG} --set model=other --set quantization.kind=existing --set quantization.checkpoint=MODEL"
)
AS_AUTOAWQ = "--set quantization.group_size=128 --format autoawq --out OUT-autoawq"
CONVERTED = (
    "python3 examples/models/core/llama/convert_checkpoint.py --model_dir {} --tp_size 8 --pp_size 1 --dtype bfloat16 "
    "--use_parallel_embedding --output_dir OUT"
)


def lines(folder: Path, quantization: dict[str, Any] | None, *overrides: str, **changes: Any) -> list[str]:
    folder.mkdir(exist_ok=True)
    written = config("llama-3.1-70b", **changes)
    (folder / "config.json").write_text(
        json.dumps(written | ({"quantization_config": quantization} if quantization else {}))
    )
    planned = planning.plan(folder, target_path("a100x8-reuse"), overrides, None)
    assert planned.plan.refusals == []
    made = chain.lines(planned, Path("OUT"), chain.Config(Path("FILE"), SETTINGS))
    return [" ".join(line.words).replace(str(folder), "MODEL") for line in made]


@pytest.mark.parametrize("quantization", [AWQ, GPTQ], ids=["autoawq", "gptq"])
def test_what_the_converter_reads_goes_through_it(tmp_path: Path, quantization: dict[str, Any]) -> None:
    assert lines(tmp_path / "model", quantization, *AS_GPTQ) == [CONVERTED.format("MODEL")]


@pytest.mark.parametrize(
    ("quantization", "first"),
    [
        (GPTQ | {"sym": False}, f"{TAKEN_OVER} {AS_AUTOAWQ}"),
        (GPTQ | {"checkpoint_format": "gptq_v2"}, f"{TAKEN_OVER} {AS_AUTOAWQ}"),
        ({name: value for name, value in AWQ.items() if name != "zero_point"}, f"{TAKEN_OVER} {AS_AUTOAWQ}"),
        (
            OURS,
            f"trtpipe export MODEL {CONFIG} --set model=other --format autoawq --out OUT-autoawq",
        ),
        (
            None,
            f"trtpipe export {CONFIG} --set model=MODEL --set quantization.symmetric=false {AS_AUTOAWQ}",
        ),
    ],
    ids=["asymmetric", "gptq_v2", "no-zero_point", "ours", "unquantized"],
)
def test_what_it_would_misread_or_not_read_is_written_as_autoawq_first(
    tmp_path: Path, quantization: dict[str, Any] | None, first: str
) -> None:
    assert lines(tmp_path / "model", quantization, *AS_GPTQ) == [first, CONVERTED.format("OUT-autoawq")]


def test_a_hugging_face_checkpoint_of_modelopt_is_taken_over_and_exported(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    own = {"quant_algo": "W4A16_AWQ", "group_size": 128, "has_zero_point": False, "pre_quant_scale": True}
    (folder / "hf_quant_config.json").write_text(json.dumps({"quantization": own}))
    (line,) = lines(folder, None)
    assert line == (
        f"{TAKEN_OVER} --set quantization.group_size=128 --format tensorrt-llm --tensor-parallel 8 "
        "--pipeline-parallel 1 --dtype bfloat16 --kv-cache model --pad --out OUT"
    )
    int8 = ("target.kv_dtype=int8", "target.kv_reuse=false", "target.chunked_context=false")
    with pytest.raises(ConfigError, match=r"only TensorRT-LLM's quantize\.py makes one with weights w4a16_awq"):
        lines(folder, None, *int8)


def test_what_no_script_makes_is_refused_by_the_plan(tmp_path: Path) -> None:
    fp8 = (*AS_GPTQ, "target.kv_dtype=fp8_e4m3", "target.kv_reuse=false", "target.chunked_context=false")
    assert " --fp8_kv_cache " in lines(tmp_path / "model", AWQ, *fp8)[0]
    written = config("qwen2.5-72b") | {"quantization_config": AWQ}
    (tmp_path / "model/config.json").write_text(json.dumps(written))
    made = planning.plan(tmp_path / "model", target_path("a100x8-reuse"), fp8, None).plan
    assert [said.what for said in made.refusals] == ["TensorRT-LLM's converter of `qwen2` has no FP8 KV cache"]
