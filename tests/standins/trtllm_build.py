"""STAND-IN for TensorRT-LLM's `trtllm-build`, for tests: it compiles nothing, and no engine of it can be loaded.

What is upstream's: the argument grammar (the product's arguments.toml, whose rows name their sources), the changes that
`tensorrt_llm/builder.py` makes without asking (written here from its text, apart from the product's own rewrites.py),
the layout of the engine folder, and the log lines. A rank's "engine" is the checkpoint's rank file behind a header.

Environment: STANDIN_SM, STANDIN_VERSION, STANDIN_SLEEP_S (a rank), and what goes wrong: STANDIN_KILL_RANK (the build is
killed there), STANDIN_SKIP_RANK (not written, exit 0), STANDIN_SHORT_RANK (cut off), STANDIN_REWRITE (a switch off).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

GRAMMAR = Path(os.environ.get("STANDIN_GRAMMAR", ""))
HEADER = b"STAND-IN, not a TensorRT plan\n"
SM = int(os.environ.get("STANDIN_SM", "80"))
FP8_WORKFLOW = ("FP8", "W4A8_AWQ", "NVFP4")
# plugin.py PluginConfig: what no argument sets, with its defaults
UNEXPOSED: dict[str, Any] = {
    "qserve_gemm_plugin": None, "identity_plugin": None, "weight_only_groupwise_quant_matmul_plugin": None,
    "weight_only_quant_matmul_plugin": None, "smooth_quant_plugins": True, "smooth_quant_gemm_plugin": None,
    "layernorm_quantization_plugin": None, "rmsnorm_quantization_plugin": None, "quantize_per_token_plugin": False,
    "quantize_tensor_plugin": False,
}  # fmt: skip
SPECULATIVE = {None: 1, "draft_tokens_external": 2, "medusa": 4, "lookahead_decoding": 8, "eagle": 32}


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("trtllm-build", allow_abbrev=False)
    for row in tomllib.loads(GRAMMAR.read_text())["argument"]:
        names = [f"--{name}" for name in (row["name"], *row.get("aliases", []))]
        if row["kind"] == "flag":
            made.add_argument(*names, action="store_true")
        elif row["kind"] in ("paths", "texts"):
            made.add_argument(*names, nargs="+")
        else:
            kind = int if row["kind"] == "count" else str
            made.add_argument(*names, type=kind, default=row.get("default"), choices=row.get("values"))
    return made


def log(severity: str, text: str) -> None:
    print(f"[01/01/2026-00:00:00] [TRT-LLM] [{severity}] {text}", flush=True)


def plugin_config(args: argparse.Namespace) -> dict[str, Any]:
    rows = tomllib.loads(GRAMMAR.read_text())["argument"]
    values = {"switch": {"enable": True, "disable": False}, "plugin": {"disable": None}}
    return (
        UNEXPOSED
        | {"dtype": "float16", "manage_weights": args.fast_build, "paged_kv_cache": None}
        | {
            row["name"]: values.get(row["kind"], {}).get(getattr(args, row["name"]), getattr(args, row["name"]))
            for row in rows
            if row.get("recorded", "").startswith("build_config.plugin_config.") and row["kind"] in (*values, "count")
        }
    )


def attention(plugins: dict[str, Any], quantization: dict[str, Any]) -> None:
    """Switch paged and FP8 context FMHA as build() does."""
    kv = quantization["kv_cache_quant_algo"]
    if quantization["quant_algo"] not in FP8_WORKFLOW:
        if plugins["use_fp8_context_fmha"]:
            log(
                "W", "FP8 Context FMHA is disabled because it must be used together with the fp8 quantization workflow."
            )
        plugins["use_fp8_context_fmha"] = False
        if plugins["use_paged_context_fmha"] and kv == "FP8":
            log("W", "FP8 Paged Context FMHA is disabled because FP8 context FMHA is disabled.")
            plugins["use_paged_context_fmha"] = False
    elif SM < 89:
        plugins["use_fp8_context_fmha"] = False
        plugins["use_paged_context_fmha"] = plugins["use_paged_context_fmha"] and kv != "FP8"
    elif plugins["use_paged_context_fmha"]:
        plugins["use_fp8_context_fmha"] = kv == "FP8"
    if kv == "INT8":
        plugins["use_paged_context_fmha"] = False


def rewritten(args: argparse.Namespace, model: dict[str, Any]) -> dict[str, Any]:
    """Return build_config after what build() does to it."""
    plugins, quantization = plugin_config(args), model["quantization"]
    plugins |= {"dtype": model["dtype"], "paged_kv_cache": args.kv_cache_type in (None, "paged"), "paged_state": False}
    seq_len, step = args.max_seq_len or model["max_position_embeddings"], args.max_num_tokens
    step = max(min(step, seq_len * args.max_batch_size), plugins["tokens_per_block"])
    if args.multiple_profiles == "enable" and args.opt_num_tokens is not None:
        raise RuntimeError("multiple_profiles is enabled, while opt_num_tokens is set.")
    if plugins["reduce_fusion"] and (model["mapping"]["tp_size"] == 1 or model["architecture"] != "LlamaForCausalLM"):
        log("W", "Overriding reduce_fusion to False")
        plugins["reduce_fusion"] = False
    mode = SPECULATIVE[args.speculative_decoding_mode]
    if mode != 1:
        seq_len, step = seq_len + args.max_draft_len, max(step, args.max_batch_size * (args.max_draft_len + 1))
    attention(plugins, quantization)
    if str(quantization["quant_algo"]).startswith("W4A"):
        plugins["weight_only_groupwise_quant_matmul_plugin"] = model["dtype"]
    plugins["nccl_plugin"] = model["dtype"] if model["mapping"]["world_size"] > 1 else None
    if (name := os.environ.get("STANDIN_REWRITE")) is not None:
        plugins[name] = False
    kept = ("max_beam_width", "max_batch_size", "opt_num_tokens", "max_prompt_embedding_table_size", "max_draft_len",
            "gather_context_logits", "gather_generation_logits", "profiling_verbosity", "enable_debug_output",
            "weight_sparsity", "weight_streaming", "max_encoder_input_len", "monitor_memory", "input_timing_cache",
            "output_timing_cache")  # fmt: skip
    return {name: getattr(args, name) for name in kept} | {
        "max_input_len": min(args.max_input_len, seq_len), "max_seq_len": seq_len, "max_num_tokens": step,
        "kv_cache_type": args.kv_cache_type or "paged", "strongly_typed": True, "use_strip_plan": False,
        "speculative_decoding_mode": mode, "plugin_config": plugins, "lora_config": {}, "opt_batch_size": 8,
        "force_num_profiles": None, "use_refit": False, "use_mrope": False,
    }  # fmt: skip


def build(args: argparse.Namespace) -> None:
    print("[TensorRT-LLM] TensorRT-LLM version: STAND-IN, which compiles nothing", flush=True)
    checkpoint, out = Path(args.checkpoint_dir), Path(args.output_dir)
    out.mkdir(parents=True, exist_ok=True)
    model = json.loads((checkpoint / "config.json").read_text())
    if args.logits_dtype is not None:
        model["logits_dtype"] = args.logits_dtype
    config = rewritten(args, model)
    for rank in range(model["mapping"]["world_size"]):
        log("I", "Total time of constructing network from module object 0.1 seconds")
        time.sleep(float(os.environ.get("STANDIN_SLEEP_S", "0")))
        if os.environ.get("STANDIN_KILL_RANK") == str(rank):
            os.kill(os.getpid(), signal.SIGKILL)
        print("[01/01/2026-00:00:00] [TRT] [I] Engine generation completed in 0.1 seconds.", flush=True)
        log("I", "Build phase peak memory: 123.50 MB, children: 0.00 MB")
        if rank == 0:
            version = os.environ.get("STANDIN_VERSION", "1.2.1")
            document = {"version": version, "pretrained_config": model, "build_config": config}
            (out / "config.json").write_text(json.dumps(document, indent=4))
            Path(args.output_timing_cache).write_bytes(b"STAND-IN timing cache\n")
        if os.environ.get("STANDIN_SKIP_RANK") == str(rank):
            continue
        weights = (checkpoint / f"rank{rank}.safetensors").read_bytes()
        if os.environ.get("STANDIN_SHORT_RANK") == str(rank):
            weights = weights[: len(weights) // 2]
        (out / f"rank{rank}.engine").write_bytes(HEADER + weights)
        log("I", "Engine serialized. Total time: 00:00:00")
    log("I", "Total time of building all engines: 00:00:01")


def install(folder: Path, grammar: Path, *, version: str = "1.2.1", builder: bool = True) -> Path:
    """Make a folder for PATH with this stand-in as `trtllm-build`, and an `nvidia-smi` of eight A100s."""
    from standins import nvidia_smi  # not at the top: the copy that runs as `trtllm-build` has no neighbours

    site, programs = folder / "site", folder / "bin"
    (site / "tensorrt_llm").mkdir(parents=True)
    programs.mkdir()
    (site / "tensorrt_llm/__init__.py").write_text("print('[TensorRT-LLM] TensorRT-LLM version: a stand-in')\n")
    if builder:
        (site / "tensorrt_llm/builder.py").write_text("")
    (site / "tensorrt_llm/bindings").mkdir()
    (site / "tensorrt_llm/bindings/__init__.py").write_text("")
    shutil.copyfile(Path(__file__).with_name("trtllm_executor.py"), site / "tensorrt_llm/bindings/executor.py")
    for name, number in (("tensorrt_llm", version), ("tensorrt", "10.14.1.48")):
        about = site / f"{name}-{number}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n")
    shutil.copyfile(__file__, programs / "standin.py")
    python = programs / "python-of-the-stand-in"
    python.write_text(f'#!/bin/sh\nexport PYTHONPATH={site} STANDIN_GRAMMAR={grammar}\nexec {sys.executable} "$@"\n')
    build_script = f"#!{python}\nimport runpy\nrunpy.run_path({str(programs / 'standin.py')!r}, run_name='__main__')\n"
    (programs / "trtllm-build").write_text(build_script)
    nvidia_smi.write(programs)
    for path in programs.iterdir():
        path.chmod(0o755)
    return programs


def install_docker(
    folder: Path, programs: Path, digest: str | None, *, name: str = "docker", serving: Path | None = None
) -> Path:
    """Make a folder for PATH with a STAND-IN for docker, or podman; ``install``'s is in its image, and not on PATH.

    ``serving``: what another ``install`` made, for Triton's images; None where none of them is there.
    """
    (programs / "python3").symlink_to(programs / "python-of-the-stand-in")
    folder.mkdir()
    (programs / "nvidia-smi").rename(folder / "nvidia-smi")
    told = f"echo nvcr.io/nvidia/tensorrt-llm/release@{digest}" if digest else "true"
    absent = "echo 'Error response from daemon: No such image' >&2; exit 1"
    if serving is not None:
        (serving / "python3").symlink_to(serving / "python-of-the-stand-in")
    script = f"""#!/bin/sh
echo "$@" >> {folder}/calls.txt
case "$1" in
image)
  case "$*" in *tritonserver*) {"true" if serving else absent} ;; *) {told} ;; esac ;;
run)
  while [ "${{1#nvcr.io/}}" = "$1" ]; do shift; done
  case "$1" in *tritonserver*) inside={serving} ;; *) inside={programs} ;; esac
  shift
  PATH=$inside:$PATH exec "$@" ;;
esac
"""
    (folder / name).write_text(script)
    (folder / name).chmod(0o755)
    return folder


if __name__ == "__main__":
    build(parser().parse_args())
