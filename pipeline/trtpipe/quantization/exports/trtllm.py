"""Write a TensorRT-LLM checkpoint (`W4A16_AWQ`) for `trtllm-build`: config.json and one file a rank."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from trtpipe.core.progress import Reporter
from trtpipe.core.sharing import Decoder
from trtpipe.errors import ConfigError
from trtpipe.quantization.exports.checkpoint import Checkpoint
from trtpipe.quantization.exports.divide import divide
from trtpipe.quantization.exports.scales import float16_note
from trtpipe.quantization.exports.streamed import StreamedFile
from trtpipe.quantization.exports.tensor_parallel import Division
from trtpipe.quantization.exports.trtllm_config import trtllm_config
from trtpipe.quantization.exports.trtllm_layout import LINEARS, TrtllmModel, model_of
from trtpipe.quantization.exports.trtllm_tensors import HEAD, Forms, specs, tensors


@dataclass(frozen=True)
class TrtllmExport:
    """A checkpoint whose division over ranks is settled; ``notes``: what is added, shared, repeated or left out."""

    checkpoint: Checkpoint
    forms: Forms
    config: dict[str, Any]
    notes: list[str]

    def write(self, folder: Path, reporter: Reporter) -> None:
        """Write all ranks' files, then config.json. In memory at a time: one linear of one layer, or the embedding."""
        for stage in range(self.forms.division.pipeline_parallel):
            self._write_stage(folder, stage, reporter)
        (folder / "config.json").write_text(json.dumps(self.config, indent=4) + "\n", encoding="utf-8")

    def _write_stage(self, folder: Path, stage: int, reporter: Reporter) -> None:
        """Write the files of all TP ranks of a pipeline stage side by side."""
        planned, size = specs(self.forms, stage), self.forms.division.tensor_parallel
        with ExitStack() as opened:
            files = [
                opened.enter_context(StreamedFile(folder / f"rank{stage * size + rank}.safetensors", planned))
                for rank in range(size)
            ]
            for done, (name, shares) in enumerate(tensors(self.forms, stage, self.checkpoint), 1):
                for file, share in zip(files, shares, strict=True):
                    file.write(name, share)
                reporter.progress(f"write tensors of stage {stage}", done, len(planned))


def plan(
    checkpoint: Checkpoint,
    *,
    tensor_parallel: int,
    pipeline_parallel: int,
    dtype: Literal["bfloat16", "float16"],
    kv_cache: Literal["fp8", "model"],
    pad_intermediate: bool,
) -> TrtllmExport:
    """Settle how a canonical checkpoint is exported. ``dtype`` is that of activations, norms, embedding and head.

    Raises ConfigError where the model cannot be shared out so.
    """
    model = model_of(checkpoint.config["model_type"])
    if not checkpoint.symmetric:
        raise ConfigError(
            "W4A16_AWQ has no zero points, and this checkpoint is asymmetric",
            where=str(checkpoint.folder),
            fix="trtpipe export --format autoawq, and TensorRT-LLM's convert_checkpoint.py makes W4A16_GPTQ of it; "
            "or calibrate with a symmetric grid",
        )
    division = divide(
        Decoder.from_config(checkpoint.config),
        checkpoint.group_size,
        tensor_parallel=tensor_parallel,
        pipeline_parallel=pipeline_parallel,
        pad_intermediate=pad_intermediate,
    )
    _require_biases(checkpoint, model)
    if kv_cache == "fp8":
        checkpoint.require_kv_scales()
    forms = Forms(division, getattr(torch, dtype), model.biases(checkpoint.config), kv_cache == "fp8")
    config = trtllm_config(checkpoint.config, division, dtype=dtype, fp8_kv_cache=forms.fp8_kv_cache)
    notes = _notes(checkpoint, division, forms)
    if dtype == "float16":
        notes += float16_note(checkpoint)
    return TrtllmExport(checkpoint, forms, config, notes)


def _require_biases(checkpoint: Checkpoint, model: TrtllmModel) -> None:
    """Refuse a checkpoint whose biases are not those that the engine's model has."""
    expected = model.biases(checkpoint.config)
    for linear in LINEARS:
        for one in linear.sources:
            name = f"model.layers.0.{one}.bias"
            if checkpoint.has(name) != (linear.name in expected):
                raise ConfigError(
                    f"`{name}` is {'present' if checkpoint.has(name) else 'missing'}, which {model.architecture} in "
                    "TensorRT-LLM cannot hold with this config.json",
                    where=str(checkpoint.folder),
                    fix="check attention_bias and mlp_bias in config.json",
                )


def _notes(checkpoint: Checkpoint, division: Division, forms: Forms) -> list[str]:
    shape, notes = division.shape, []
    if division.intermediate != shape.intermediate:
        notes.append(
            f"intermediate size {shape.intermediate} padded with zeros to {division.intermediate}: "
            f"group size {division.group_size} x TP {division.tensor_parallel} must divide it"
        )
    if more := division.vocabulary_rows * division.tensor_parallel - shape.vocabulary:
        notes.append(f"{more} zero rows added to embedding and head for TP {division.tensor_parallel}; never sampled")
    if shape.kv_heads < division.tensor_parallel:
        notes.append(
            f"each of {shape.kv_heads} KV heads repeated on {division.tensor_parallel // shape.kv_heads} ranks"
        )
    if not checkpoint.has(HEAD):
        notes.append("the embedding, which is tied, is written twice: as embedding and as head")
    if forms.fp8_kv_cache:
        notes.append("KV cache FP8: the larger of a layer's two scales holds for keys and values")
        notes.append(  # tensorrt_llm/builder.py build(): only a log line there says so
            "with an FP8 KV cache under W4A16_AWQ, trtllm-build switches paged context FMHA off: no KV reuse and no "
            "chunked context; --kv-cache model keeps both"
        )
        if "attention.qkv" in forms.biased:
            notes.append(  # TensorRT-LLM issue 4218: Qwen2.5 answered gibberish
                "FP8 KV caches of models with biased q, k and v have been seen to fail: check this engine's drift "
                "before it serves, or --kv-cache model"
            )
    elif checkpoint.has("model.layers.0.self_attn.k_scale"):
        notes.append("the FP8 KV scales of the checkpoint are left out: the KV cache keeps the model's type")
    if checkpoint.config.get("use_sliding_window"):
        notes.append("sliding-window attention is no part of the checkpoint: set max_attention_window at run time")
    return notes
