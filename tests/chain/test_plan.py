"""A plan from files: model folder, tokenizer, target, profile; and it says what the export does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planning import config, model, target_path
from trtpipe.chain import plan as chain
from trtpipe.core.sharing import Decoder
from trtpipe.engines.trtllm.division import Division
from trtpipe.engines.trtllm.families import FAMILIES
from trtpipe.engines.trtllm.shape import DecoderShape
from trtpipe.errors import ConfigError, UsageFault
from trtpipe.quantization.exports import divide
from trtpipe.quantization.exports.trtllm_layout import MODELS

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.engines.trtllm.findings import Finding


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Llama-3.1-8B's config.json with a tokenizer of two words."""
    write(tmp_path)
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {"a": 0, "b": 1}}, "added_tokens": []}))
    return tmp_path


def write(folder: Path, **changes: Any) -> None:
    (folder / "config.json").write_text(json.dumps(config("llama-3.1-8b", **changes)))


def findings(folder: Path, target: str = "a100x1", *overrides: str) -> tuple[Finding, ...]:
    return chain.plan(folder, target_path(target), overrides, None).plan.findings


def test_a_whole_folder_has_nothing_against_it(folder: Path) -> None:
    assert findings(folder) == ()


def test_findings_about_the_target_name_file_line_and_column(folder: Path) -> None:
    (changed,) = [finding for finding in findings(folder, "a100x8") if finding.kind == "changed"]
    assert changed.where == f"{target_path('a100x8')}:10:1 (kv_dtype)"
    (refused,) = findings(folder, "a100x1", "target.weights=w4a8_awq")[:1]
    assert refused.where == "--set target.weights (weights, kv_dtype, gpu)"


def test_ids_beyond_the_vocabulary_are_refused(folder: Path) -> None:
    tokenizer = {"model": {"vocab": {"a": 0}}, "added_tokens": [{"id": 128256}]}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (said,) = findings(folder)
    assert (said.kind, said.what) == ("refused", "the tokenizer's ids go up to 128256, the vocabulary has 128256")
    (folder / "tokenizer.json").unlink()
    assert [finding.kind for finding in findings(folder)] == ["note"]


def test_o_23_an_autoawq_folder_is_gptq_and_awq_is_an_error(folder: Path) -> None:
    awq = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
    write(folder, quantization_config=awq)
    (said,) = findings(folder)
    assert said.kind == "refused"
    assert said.what.startswith("the model is AutoAWQ, 4 bits, group size 128, with zero points")
    assert "that is W4A16_GPTQ, and the target says W4A16_AWQ" in said.what
    assert findings(folder, "a100x1", "target.weights=w4a16_gptq") == ()


@pytest.mark.parametrize(
    ("scheme", "weights", "legal"),
    [(True, "w4a16_awq", True), (False, "w4a16_awq", False), (False, "w4a16_gptq", True)],
)
def test_a_checkpoint_of_this_program_is_known(folder: Path, weights: str, *, scheme: bool, legal: bool) -> None:
    group = {"weights": {"num_bits": 4, "group_size": 128, "symmetric": scheme}}
    ours = {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": group}}
    write(folder, quantization_config=ours)
    assert (findings(folder, "a100x1", f"target.weights={weights}") == ()) is legal


def test_a_quantization_that_no_engine_is_made_of_is_refused(folder: Path) -> None:
    write(folder, quantization_config={"quant_method": "bitsandbytes"})
    assert findings(folder)[0].what.startswith("not a checkpoint that can be taken over: quant_method bitsandbytes")


def test_who_makes_the_checkpoint_is_said_where_export_does_not(folder: Path) -> None:
    write(folder, model_type="mistral", architectures=["MistralForCausalLM"])
    (said,) = findings(folder)
    assert said.what == "`trtpipe export` writes no W4A16_AWQ checkpoint with 16-bit KV cache of this model"


def test_a_rotary_scaling_that_the_engine_lacks_is_refused(folder: Path) -> None:
    write(folder, rope_scaling={"type": "yarn", "factor": 4.0})
    (said,) = findings(folder)
    assert (said.kind, said.what) == ("refused", "the engine has no rotary scaling `yarn` for this model")
    write(folder, rope_scaling={"type": "linear", "factor": 2.0})
    assert findings(folder) == ()


def test_files_that_are_wrong_are_refused_as_such(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a plan is of a TensorRT-LLM engine") as caught:
        chain.plan(folder, target_path("local"), (), None)
    assert str(caught.value.where).endswith("local.yaml:3:1")
    with pytest.raises(UsageFault, match=r"`prompts.seed` is no key of the target"):
        chain.plan(folder, target_path("a100x1"), ("prompts.seed=1",), None)
    with pytest.raises(ConfigError, match=r"there is no config.json"):
        chain.plan(tmp_path / "nowhere", target_path("a100x1"), (), None)
    with pytest.raises(ConfigError, match="there is no GPU type") as caught:
        chain.plan(folder, target_path("a100x1"), ("target.gpu=a100-80",), None)
    assert (caught.value.where, caught.value.fix) == ("--set target.gpu", "did you mean `a100-80gb`?")


@settings(deadline=None)  # other work may hold the cores
@given(
    hidden=st.integers(1, 64), intermediate=st.integers(1, 400), heads=st.integers(1, 64), kv_heads=st.integers(1, 16),
    size=st.integers(1, 8), stages=st.integers(1, 4), group=st.sampled_from([64, 128]), vocabulary=st.integers(1, 40),
    pad=st.booleans(),
)  # fmt: skip
def test_the_plan_says_of_every_shape_what_the_export_does(
    hidden: int, intermediate: int, heads: int, kv_heads: int, size: int, stages: int, group: int, vocabulary: int,
    *, pad: bool,
) -> None:  # fmt: skip
    """Both stand on core/sharing.py; what each says of its own must agree: what is legal, and how wide it is."""
    made = {
        "model_type": "llama", "hidden_size": hidden * 64, "intermediate_size": intermediate * 64,
        "num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": 128, "num_hidden_layers": 4,
        "vocab_size": vocabulary, "max_position_embeddings": 4096,
    }  # fmt: skip
    division = Division(DecoderShape.of(made, "config.json"), "w4a16_awq", group, size, stages, pad)
    from trtpipe.engines.trtllm.sharing_checks import sharing

    refused = [finding for finding in sharing(division) if finding.kind == "refused"]
    try:
        exported = divide.divide(
            Decoder.from_config(made), group, tensor_parallel=size, pipeline_parallel=stages, pad_intermediate=pad
        )
    except ConfigError:
        assert refused
        return
    assert not refused
    assert exported.intermediate == division.intermediate
    assert exported.step == division.step


def test_the_families_that_are_exported_are_those_that_the_export_knows() -> None:
    assert {family.model_type for family in FAMILIES if family.exported} == {known.model_type for known in MODELS}


def test_the_public_models_are_shared_out_as_the_export_shares_them() -> None:
    for name in ("qwen2.5-72b", "qwen2.5-7b", "llama-3.1-70b", "llama-2-7b"):
        made = json.loads((model(name) / "config.json").read_text())
        ours = DecoderShape.of(made, name)
        for pad in (False, True):
            legal = divide.legal(Decoder.from_config(made), pad_intermediate=pad)
            for group, sizes in legal.items():
                planned = [size for size in sizes if Division(ours, "w4a16_awq", group, size, 1, pad).is_legal]
                assert planned == sizes
