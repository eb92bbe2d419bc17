"""The quantizing child process: model folder + calibration set -> int4 checkpoint, one decoder layer at a time."""

from __future__ import annotations

import json
import resource
import shutil
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from trtpipe.core.worker import Events, serve
from trtpipe.quantization import compressed_tensors, device, experts, kv_range
from trtpipe.quantization.forward import Batch, batches, collecting, forward
from trtpipe.quantization.layer import quantize_layer
from trtpipe.quantization.recipes import RECIPES
from trtpipe.quantization.shards import ShardWriter
from trtpipe.quantization.stack import DecoderStack

COPIED = (
    "chat_template.jinja",
    "generation_config.json",
    "merges.txt",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
)


def work(job: dict[str, Any], events: Events) -> dict[str, Any]:
    """Quantize. The job: model, prompts, folder, recipe, group_size, alpha_grid_points."""
    torch.manual_seed(0)
    folder, model = Path(job["folder"]), Path(job["model"])
    compute = device.choose()
    events.note(f"computed on {compute.device} in {str(compute.dtype).removeprefix('torch.')}: {compute.reason}")
    stack = DecoderStack(model, compute.dtype, compute.device)
    writer = ShardWriter(folder, stack.layers)
    with Path(job["prompts"]).open(encoding="utf-8") as file:
        tokens = batches(json.loads(line)["ids"] for line in file)
    kept = writer.resume()
    first, inputs, reports = kept or (0, [stack.embed(batch.inputs) for batch in tokens], [])
    hidden = [Batch(states, batch.mask) for states, batch in zip(inputs, tokens, strict=True)]
    if first:
        events.note(f"going on at layer {first} of {stack.layers} where an earlier run ended")
    for index in range(first, stack.layers):
        events.progress("quantize layer", index, stack.layers)
        hidden, report = _quantize_one(stack, index, hidden, writer, job)
        reports.append(report)
        writer.keep(index, [batch.inputs for batch in hidden], report)
    events.progress("quantize layer", stack.layers, stack.layers)
    writer.write(stack.layers, {name: tensor.to(device.STORED) for name, tensor in stack.rest().items()})
    writer.finish()
    _write_config(stack, folder, job["group_size"])
    for name in COPIED:
        if (model / name).is_file():
            shutil.copyfile(model / name, folder / name)
    # without the seconds: equal work gives equal bytes
    layers = [{name: value for name, value in report.items() if name != "seconds"} for report in reports]
    (folder / "quantization.json").write_text(json.dumps({"layers": layers}, indent=1) + "\n", encoding="utf-8")
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "layers": reports,
        "calibration_tokens": sum(int(batch.mask.sum()) for batch in tokens),
        "peak_rss_mib": round(peak_mib),
    }


def _quantize_one(
    stack: DecoderStack,
    index: int,
    hidden: list[Batch],
    writer: ShardWriter,
    job: dict[str, Any],
) -> tuple[list[Batch], dict[str, object]]:
    """Quantize layer ``index`` and return the next layer's inputs, which come from the quantized layer."""
    started = time.monotonic()
    layer = stack.layer(index)
    groups = stack.architecture.groups_of(experts.apart(layer.state_dict()))
    arguments = stack.arguments(index)
    with collecting(layer, groups) as collector:
        forward(layer, hidden, arguments, collector)
    with torch.inference_mode():
        quantized = quantize_layer(
            layer,
            groups,
            stack.config,
            collector.statistics,
            recipe=RECIPES[job["recipe"]],
            group_size=job["group_size"],
            grid_points=job["alpha_grid_points"],
            stored=device.STORED,
        )
    seen = kv_range.KvRange()
    setattr(layer.get_submodule("self_attn"), kv_range.ATTRIBUTE, seen)
    hidden = forward(layer, hidden, arguments, seen)
    prefix = f"model.layers.{index}"
    tensors = compressed_tensors.layer_tensors(prefix, quantized.linears, quantized.others, seen)
    writer.write(index, {stack.architecture.stored(name): tensor for name, tensor in tensors.items()})
    stack.release(index)
    report: dict[str, object] = {
        "layer": index,
        "errors": [asdict(error) for error in quantized.errors],
        "key_amax": seen.key_amax,
        "value_amax": seen.value_amax,
        "seconds": round(time.monotonic() - started, 3),
    }
    return hidden, report


def _write_config(stack: DecoderStack, folder: Path, group_size: int) -> None:
    config = stack.config.to_dict()
    unquantized = map(stack.architecture.stored, stack.architecture.unquantized)
    config["quantization_config"] = compressed_tensors.quantization_config(group_size, unquantized)
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    serve(work)
