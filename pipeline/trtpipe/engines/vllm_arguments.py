"""The arguments and environment of the local engine, every one that matters spelled out.

vLLM fills what is left out from the model, the host or its own release; each such default has changed results
unseen at least once, so none is left to it.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from trtpipe.errors import EnvironmentUnfit

KvDtype = Literal["fp8_e4m3", "bfloat16"]

# Tokens of one engine step. While serving, a long prompt is cut into such chunks so that the decode steps of
# other requests are not held up; while scoring there is nobody to wait.
SERVING_STEP_TOKENS_MAX = 2048
SCORING_STEP_TOKENS_MIN = 4096

# No plugin but our own, and that only where it is needed.
NATIVE = {"VLLM_PLUGINS": ""}
FLOAT32_PRODUCTS = {
    "VLLM_PLUGINS": "trtpipe_float32_products",
    # It would be taken first, and this CPU's build of vLLM lacks the code behind it.
    "VLLM_DISABLED_KERNELS": "CPUWNA16LinearKernel",
}
FLOAT32_REASON = (
    "products: float32, rounded to bfloat16; 4-bit weights are expanded as they are loaded, because vLLM has no "
    "4-bit kernel for a CPU without AVX-512"
)


class VllmSettings(BaseModel):
    """What the target says about the local engine; the meanings are those of the target file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kv_dtype: tuple[KvDtype, ...]
    kv_block_tokens: int
    kv_pool_mib: int
    max_model_len: int
    max_num_seqs: int
    prefix_caching: bool
    threads: int | Literal["auto"]


class VllmPlan(BaseModel):
    """What the engine is started with."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    arguments: dict[str, Any]
    environment: dict[str, str]
    reasons: tuple[str, ...]


def plan(settings: VllmSettings, *, cpu_has_fp8_kv: bool, cpu_has_avx512: bool, cpu_cores: int) -> VllmPlan:
    """Choose the arguments. Raises EnvironmentUnfit where the CPU can do none of the wanted KV types."""
    kv_dtype, kv_reason = _kv_dtype(settings.kv_dtype, cpu_has_fp8_kv)
    threads = cpu_cores if settings.threads == "auto" else settings.threads
    step_tokens = max(settings.max_num_seqs, min(settings.max_model_len, SERVING_STEP_TOKENS_MAX))
    reasons = [kv_reason]
    if settings.threads == "auto":
        reasons.append(f"OpenMP threads: {threads}, the cores that this process may use")
    if not cpu_has_avx512:
        reasons.append(FLOAT32_REASON)
    arguments: dict[str, Any] = {
        "quantization": "compressed-tensors",
        "dtype": "bfloat16",
        "kv_cache_dtype": kv_dtype,
        "block_size": settings.kv_block_tokens,
        "kv_cache_memory_bytes": settings.kv_pool_mib << 20,
        # Only checked, never used, once kv_cache_memory_bytes is given; it is a share of RAM here.
        "gpu_memory_utilization": 0.5,
        "max_model_len": settings.max_model_len,
        "max_num_seqs": settings.max_num_seqs,
        "max_num_batched_tokens": step_tokens,
        "enable_chunked_prefill": True,
        "enable_prefix_caching": settings.prefix_caching,
        "enforce_eager": True,
        "tensor_parallel_size": 1,
        "seed": 0,
        "load_format": "safetensors",
        "trust_remote_code": False,
        # "auto" would take sampling defaults from the model's generation_config.json.
        "generation_config": "vllm",
        "max_logprobs": 20,
    }
    environment = _environment(threads) | (NATIVE if cpu_has_avx512 else FLOAT32_PRODUCTS)
    return VllmPlan(arguments=arguments, environment=environment, reasons=tuple(reasons))


def for_scoring(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments for teacher forcing: the same numerics, whole prompts, no reuse between them."""
    return {
        **arguments,
        "enable_prefix_caching": False,
        "enable_chunked_prefill": False,
        "max_num_batched_tokens": max(arguments["max_model_len"], SCORING_STEP_TOKENS_MIN),
        "skip_tokenizer_init": True,
    }


def for_baseline(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments for the unquantized model with an unquantized KV cache."""
    pool_growth = 1 if arguments["kv_cache_dtype"] == "bfloat16" else 2
    return {
        **arguments,
        "quantization": None,
        # Never "auto": that becomes FP8 without a word where a checkpoint declares KV scales.
        "kv_cache_dtype": "bfloat16",
        # As many tokens as before, so that both sides are batched alike.
        "kv_cache_memory_bytes": arguments["kv_cache_memory_bytes"] * pool_growth,
    }


def _kv_dtype(preferences: tuple[KvDtype, ...], cpu_has_fp8_kv: bool) -> tuple[KvDtype, str]:
    for kv_dtype in preferences:
        if kv_dtype == "bfloat16" or cpu_has_fp8_kv:
            first = kv_dtype == preferences[0]
            reason = "the target's first choice" if first else "the CPU has neither AVX-512 nor AMX for FP8"
            return kv_dtype, f"KV cache: {kv_dtype}: {reason}"
    raise EnvironmentUnfit(
        f"this CPU can't hold the KV cache as {' or '.join(preferences)}: it has neither AVX-512 nor AMX",
        where="kv_dtype of the target",
        fix="add bfloat16 to kv_dtype, or use another machine",
    )


def _environment(threads: int) -> dict[str, str]:
    return {
        # Without this, 4-bit weights meet 8-bit activations wherever the CPU has AMX.
        "VLLM_CPU_INT4_W4A8": "0",
        # Pinned and spinning OpenMP threads starve Triton and the clients on the same cores.
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_WAIT_POLICY": "passive",
        "OMP_NUM_THREADS": str(threads),
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        # Otherwise the presence of the triton package decides.
        "VLLM_USE_V2_MODEL_RUNNER": "0",
        "VLLM_HOST_IP": "127.0.0.1",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }
