"""Worker of the stage ``build-engine``: load the engine once, look at what it became, let it answer.

Job: model (folder), arguments, prompt_ids, answer_tokens_max. Result: resolved, kv_scales (loaded, stored),
answer_ids, load_seconds, answer_seconds, peak_rss_mib.
"""

from __future__ import annotations

import re
import resource
import time
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from vllm import LLM, SamplingParams
from vllm.model_executor.layers.attention import Attention

from trtpipe.core.worker import Events, serve
from trtpipe.engines.vllm_load import load

_KV_SCALE = re.compile(r"\.(k|v)_scale$")


def work(job: dict[str, Any], events: Events) -> dict[str, Any]:
    model, arguments = Path(job["model"]), job["arguments"]
    events.progress("load the engine", 0, 2)
    started = time.monotonic()
    llm = load(model, arguments)
    loaded = time.monotonic()
    events.progress("greedy answer", 1, 2)
    answer = llm.generate(
        {"prompt_token_ids": job["prompt_ids"]},
        SamplingParams(temperature=0.0, max_tokens=job["answer_tokens_max"], detokenize=False),
        use_tqdm=False,
    )
    return {
        "resolved": _resolved(llm),
        "kv_scales_loaded": llm.apply_model(_loaded_kv_scales)[0],
        "kv_scales_stored": _stored_kv_scales(model),
        "answer_ids": list(answer[0].outputs[0].token_ids),
        "load_seconds": round(loaded - started, 2),
        "answer_seconds": round(time.monotonic() - loaded, 2),
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }


def _resolved(llm: LLM) -> dict[str, Any]:
    config = llm.llm_engine.vllm_config
    blocks = config.cache_config.num_gpu_blocks
    return {
        "kv_dtype": config.cache_config.cache_dtype,
        "kv_block_tokens": config.cache_config.block_size,
        "kv_blocks": blocks,
        "kv_tokens": blocks * config.cache_config.block_size,
        "prefix_caching": config.cache_config.enable_prefix_caching,
        "max_model_len": config.model_config.max_model_len,
        "max_num_seqs": config.scheduler_config.max_num_seqs,
        "max_num_batched_tokens": config.scheduler_config.max_num_batched_tokens,
        "chunked_prefill": config.scheduler_config.enable_chunked_prefill,
        "weights_dtype": str(config.model_config.dtype).removeprefix("torch."),
        "threads": torch.get_num_threads(),
        **llm.apply_model(_layers)[0],
    }


def _layers(model: torch.nn.Module) -> dict[str, Any]:
    """Count the layers on the 4-bit kernel, and those of them that quantize activations too."""
    int4 = [layer for layer in model.modules() if hasattr(layer, "use_w4a8")]
    return {
        "attention_layers": sum(isinstance(layer, Attention) for layer in model.modules()),
        "int4_layers": len(int4),
        "w4a8_layers": sum(bool(layer.use_w4a8) for layer in int4),
        "int4_kernels": sorted({str(layer.isa_hint) for layer in int4 if hasattr(layer, "isa_hint")}),
    }


def _loaded_kv_scales(model: torch.nn.Module) -> dict[str, float]:
    scales: dict[str, float] = {}
    for name, layer in model.named_modules():
        if isinstance(layer, Attention):
            owner = name.removesuffix(".attn")
            scales[f"{owner}.k_scale"] = float(layer._k_scale_float)
            scales[f"{owner}.v_scale"] = float(layer._v_scale_float)
    return scales


def _stored_kv_scales(model: Path) -> dict[str, float]:
    scales: dict[str, float] = {}
    for path in sorted(model.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            scales |= {name: file.get_tensor(name).item() for name in file.keys() if _KV_SCALE.search(name)}  # noqa: SIM118
    return scales


if __name__ == "__main__":
    serve(work)
