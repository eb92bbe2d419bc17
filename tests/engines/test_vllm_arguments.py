"""What the local engine is started with, and why."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

import pytest

from trtpipe.engines.vllm_arguments import VllmPlan, VllmSettings, for_baseline, for_scoring, plan
from trtpipe.errors import EnvironmentUnfit


def planned(
    *, cpu_has_fp8_kv: bool = True, cpu_has_avx512: bool = True, cpu_cores: int = 6, **changes: Any
) -> VllmPlan:
    settings: dict[str, Any] = {
        "kv_dtype": ("fp8_e4m3", "bfloat16"),
        "kv_block_tokens": 32,
        "kv_pool_mib": 256,
        "max_model_len": 2048,
        "max_num_seqs": 16,
        "prefix_caching": True,
        "threads": "auto",
    }
    return plan(
        VllmSettings(**{**settings, **changes}),
        cpu_has_fp8_kv=cpu_has_fp8_kv,
        cpu_has_avx512=cpu_has_avx512,
        cpu_cores=cpu_cores,
    )


def test_the_target_reaches_the_engine() -> None:
    arguments = planned(kv_block_tokens=64, kv_pool_mib=128, max_num_seqs=4, prefix_caching=False).arguments
    assert arguments["block_size"] == 64
    assert arguments["kv_cache_memory_bytes"] == 128 * 1024 * 1024
    assert (arguments["max_model_len"], arguments["max_num_seqs"]) == (2048, 4)
    assert arguments["enable_prefix_caching"] is False


def test_activations_stay_at_16_bits_whatever_the_cpu_can_do() -> None:
    assert planned().environment["VLLM_CPU_INT4_W4A8"] == "0"


@pytest.mark.parametrize(("threads", "expected"), [("auto", "6"), (3, "3")])
def test_threads_follow_the_cores_unless_given(threads: Any, expected: str) -> None:
    made = planned(threads=threads)
    assert made.environment["OMP_NUM_THREADS"] == expected
    assert any("OpenMP threads: 6" in reason for reason in made.reasons) is (threads == "auto")


@pytest.mark.parametrize(
    ("wanted", "cpu_has_fp8_kv", "taken", "reason"),
    [
        (("fp8_e4m3", "bfloat16"), True, "fp8_e4m3", "first choice"),
        (("fp8_e4m3", "bfloat16"), False, "bfloat16", "neither AVX-512 nor AMX"),
        (("bfloat16", "fp8_e4m3"), True, "bfloat16", "first choice"),
    ],
)
def test_the_kv_type_is_the_first_that_the_cpu_can_do(
    wanted: tuple[str, ...], cpu_has_fp8_kv: bool, taken: str, reason: str
) -> None:
    made = planned(kv_dtype=wanted, cpu_has_fp8_kv=cpu_has_fp8_kv)
    assert made.arguments["kv_cache_dtype"] == taken
    assert reason in made.reasons[0]


def test_no_possible_kv_type_is_an_error() -> None:
    with pytest.raises(EnvironmentUnfit, match="neither AVX-512 nor AMX"):
        planned(kv_dtype=("fp8_e4m3",), cpu_has_fp8_kv=False)


@pytest.mark.parametrize(
    ("max_model_len", "max_num_seqs", "step_tokens"), [(512, 16, 512), (8192, 16, 2048), (64, 128, 128)]
)
def test_a_serving_step_is_bounded(max_model_len: int, max_num_seqs: int, step_tokens: int) -> None:
    arguments = planned(max_model_len=max_model_len, max_num_seqs=max_num_seqs).arguments
    assert arguments["max_num_batched_tokens"] == step_tokens


@pytest.mark.parametrize(("max_model_len", "step_tokens"), [(2048, 4096), (8192, 8192)])
def test_scoring_runs_whole_prompts_without_reuse(max_model_len: int, step_tokens: int) -> None:
    engine = planned(max_model_len=max_model_len).arguments
    scoring = for_scoring(engine)
    assert scoring["enable_prefix_caching"] is False
    assert scoring["enable_chunked_prefill"] is False
    assert scoring["max_num_batched_tokens"] == step_tokens
    numerics = ("quantization", "dtype", "kv_cache_dtype", "block_size", "kv_cache_memory_bytes", "seed")
    assert [scoring[name] for name in numerics] == [engine[name] for name in numerics]


def test_the_baseline_is_unquantized_and_says_so() -> None:
    baseline = for_baseline(planned().arguments)
    assert baseline["quantization"] is None
    assert baseline["kv_cache_dtype"] == "bfloat16"


@pytest.mark.parametrize(("kv_dtype", "growth"), [("fp8_e4m3", 2), ("bfloat16", 1)])
def test_the_baseline_holds_as_many_kv_tokens(kv_dtype: str, growth: int) -> None:
    engine = planned(kv_dtype=(kv_dtype,)).arguments
    assert for_baseline(engine)["kv_cache_memory_bytes"] == growth * engine["kv_cache_memory_bytes"]


def test_without_avx512_products_are_float32_and_that_is_said() -> None:
    made = planned(cpu_has_avx512=False)
    assert made.environment["VLLM_PLUGINS"] == "trtpipe_float32_products"
    assert any("no 4-bit kernel for a CPU without AVX-512" in reason for reason in made.reasons)
    assert made.arguments == planned().arguments
    assert planned().environment["VLLM_PLUGINS"] == ""


def test_the_plugin_is_known_to_vllm_under_its_name() -> None:
    (plugin,) = entry_points(group="vllm.general_plugins", name="trtpipe_float32_products")
    assert callable(plugin.load())
