"""The lines for upstream's scripts: each of a script's own grammar."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planning import target
from trtpipe.engines.trtllm.build import scripts
from trtpipe.errors import ConfigError

PROGRAMS = scripts.scripts()
IN, OUT = Path("in"), Path("out")


def convert(model_type: str = "llama", **changes: Any) -> str:
    given = {"tensor_parallel": 8, "pipeline_parallel": 2, "dtype": "float16", "vocabulary": 128256} | changes
    return " ".join(scripts.convert(model_type, IN, OUT, **given))


def test_each_model_has_its_script_and_each_script_its_options() -> None:
    assert {name: program.name for name, program in PROGRAMS.items()} == {
        "llama": "examples/models/core/llama/convert_checkpoint.py",
        "qwen": "examples/models/core/qwen/convert_checkpoint.py",
        "quantize": "examples/quantization/quantize.py",
    }
    assert {name: len(program.arguments) for name, program in PROGRAMS.items()} == {
        "llama": 51, "qwen": 22, "quantize": 31,
    }  # fmt: skip
    for program in PROGRAMS.values():
        for row in program.arguments.values():
            assert row.source == program.name
            assert row.default is None or row.fault(row.default) is None, row


@pytest.mark.parametrize(("model_type", "table"), scripts.CONVERTERS.items())
def test_the_converters_lines_have_the_exact_flags(model_type: str, table: str) -> None:
    script = PROGRAMS[table].name
    assert convert(model_type) == (
        f"python3 {script} --model_dir in --tp_size 8 --pp_size 2 --dtype float16 --use_parallel_embedding "
        "--output_dir out"
    )


def test_an_embedding_that_does_not_divide_stands_whole_on_every_rank() -> None:
    assert "--use_parallel_embedding" not in convert(vocabulary=128259)
    assert "--use_parallel_embedding" not in convert(tensor_parallel=1)


def test_only_llamas_converter_has_an_fp8_kv_cache() -> None:
    assert [scripts.has_fp8_kv_cache(name) for name in ("llama", "qwen2")] == [True, False]
    assert "--fp8_kv_cache" in convert(fp8_kv_cache=True)
    with pytest.raises(ConfigError, match="has no argument --fp8_kv_cache") as caught:
        convert("qwen2", fp8_kv_cache=True)
    assert caught.value.fix == "did you mean --int8_kv_cache?"


@pytest.mark.parametrize(
    ("changes", "flags"),
    [
        ({"weights": "fp8", "kv_dtype": "fp8_e4m3", "gpu": "h200"}, "--dtype bfloat16 --qformat fp8"),
        ({"weights": "w4a8_awq", "gpu": "h200"}, "--dtype bfloat16 --qformat w4a8_awq"),
        ({"weights": "model"}, "--dtype bfloat16 --qformat full_prec"),
        (
            {"weights": "model", "kv_dtype": "fp8_e4m3", "kv_reuse": False, "chunked_context": False},
            "--dtype bfloat16 --qformat full_prec",
        ),
        ({"kv_dtype": "int8", "kv_reuse": False, "chunked_context": False}, "--dtype bfloat16 --qformat int4_awq"),
    ],
)
def test_the_quantizers_lines_have_the_exact_flags(changes: dict[str, Any], flags: str) -> None:
    line = " ".join(scripts.quantize(target("a100x1", **changes), IN, OUT, Path("texts")))
    texts = "" if changes == {"weights": "model"} else " --calib_dataset texts"  # 16 bit has nothing to calibrate
    start = (
        f"python3 examples/quantization/quantize.py --model_dir in{texts} {flags} --output_dir out --tp_size 1 "
        "--pp_size 1"
    )
    kv = {"fp8_e4m3": " --kv_cache_dtype fp8", "int8": " --kv_cache_dtype int8"}.get(str(changes.get("kv_dtype")), "")
    block = " --awq_block_size 128" if "awq" in flags else ""
    assert line == f"{start}{block}{kv}"
