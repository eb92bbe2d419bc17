"""The quantizing child process: model folder + calibration set -> int4 checkpoint, one decoder layer at a time."""

from __future__ import annotations

import json
import resource
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from trtpipe.core.worker import Events, serve
from trtpipe.errors import ConfigError
from trtpipe.quantization import companions, compressed_tensors, device, experts, kv_range, memory, ranks
from trtpipe.quantization.activations import Activations
from trtpipe.quantization.forward import Batch, batches, collecting, discard, forward
from trtpipe.quantization.layer import quantize_layer
from trtpipe.quantization.recipes import RECIPES, Scheme
from trtpipe.quantization.shards import ShardWriter
from trtpipe.quantization.stack import DecoderStack


@dataclass(frozen=True)
class Run:
    """What stays the same over all layers."""

    stack: DecoderStack
    activations: Activations
    writer: ShardWriter
    scheme: Scheme
    inputs: str
    kv_scales: Any


def work(job: dict[str, Any], events: Events) -> dict[str, Any]:
    """Quantize. The job: model, prompts, folder, processes, and the fields of ``AwqRecipe``.

    Raises ConfigError where a process would have no prompt.
    """
    with Path(job["prompts"]).open(encoding="utf-8") as file:
        prompts = sum(1 for _ in file)
    if job["processes"] > prompts:
        raise ConfigError(
            f"{job['processes']} processes share {prompts} calibration prompts: some would have none",
            where="quantization.processes",
            fix="take fewer processes, or more prompts",
        )
    return ranks.run(quantize, job, events) if job["processes"] > 1 else quantize(job, events)


def quantize(job: dict[str, Any], events: Events) -> dict[str, Any]:
    """Quantize in this process: alone, or as one of several ranks."""
    torch.manual_seed(0)
    folder, model = Path(job["folder"]), Path(job["model"])
    compute = device.choose()
    events.note(f"computed on {compute}")
    stack = DecoderStack(model, compute.dtype, compute.device)
    with Path(job["prompts"]).open(encoding="utf-8") as file:
        tokens = batches(ranks.share([json.loads(line)["ids"] for line in file]), compute.device)
    run = _prepare(job, stack, tokens, resident=_fits(stack, tokens, compute, events))
    if "F32" in run.stack.stored_types:
        events.note("float32 weights that stay unquantized are stored rounded to bfloat16")
    first, hidden, reports = _begin(run, tokens)
    if first:
        events.note(f"going on at layer {first} of {run.stack.layers} where an earlier run ended")
    for index in range(first, run.stack.layers):
        events.progress("quantize layer", index, run.stack.layers)
        hidden, report = _quantize_one(run, index, hidden)
        reports.append(report)
        run.activations.keep(index + 1, report)
    events.progress("quantize layer", run.stack.layers, run.stack.layers)
    # Before the end, because the first rank then removes what the others may still be writing.
    calibration_tokens = ranks.add_up(sum(int(batch.mask.sum()) for batch in tokens))
    if ranks.place()[0] == 0:
        _finish(run, model, folder, reports)
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "layers": reports,
        "calibration_tokens": calibration_tokens,
        "computed_on": str(compute),
        "peak_rss_mib": round(peak_mib),
    }


def _fits(stack: DecoderStack, tokens: list[Batch], compute: device.Compute, events: Events) -> bool:
    """Say what memory is needed and free, and return whether activations stay on a GPU.

    Raises EnvironmentUnfit where not even the rest would fit.
    """
    shapes = max((stack.shapes(index) for index in range(stack.layers)), key=len)
    count = sum(batch.mask.numel() for batch in tokens)
    needed = memory.need(shapes, stack.architecture.groups_of(shapes), stack.config.hidden_size, count, compute)
    on_cpu = compute.device.type == "cpu"
    # Processes on one CPU share its memory; of GPUs each has its own.
    free, sharers = memory.free_bytes(compute), ranks.place()[1] if on_cpu else 1
    events.note(memory.require(needed, free, compute, sharers=sharers))
    return needed.total <= free and not on_cpu


def _prepare(job: dict[str, Any], stack: DecoderStack, tokens: list[Batch], *, resident: bool) -> Run:
    folder, (rank, count) = Path(job["folder"]), ranks.place()
    shapes = [(*batch.mask.shape, stack.config.hidden_size) for batch in tokens]
    activations = Activations(folder, shapes, stack.dtype, resident=resident, rank=rank, ranks=count)
    scheme = Scheme(RECIPES[job["recipe"]], job["group_size"], job["alpha_grid_points"], job["symmetric"])
    return Run(stack, activations, ShardWriter(folder, stack.layers), scheme, job["inputs"], job["kv_scales"])


def _begin(run: Run, tokens: list[Batch]) -> tuple[int, list[Batch], list[dict[str, object]]]:
    """Return the first layer to quantize, its inputs, and the reports of those before it."""
    layer = ranks.agree_on_least(run.activations.kept_layer())
    if layer:
        kept, reports = run.activations.resume(layer)
        return layer, [Batch(states, batch.mask) for states, batch in zip(kept, tokens, strict=True)], reports
    room = run.activations.room(0)
    embedded = [
        Batch(room.put(number, run.stack.embed(batch.inputs)), batch.mask) for number, batch in enumerate(tokens)
    ]
    run.activations.keep(0)
    return 0, embedded, []


def _quantize_one(run: Run, index: int, hidden: list[Batch]) -> tuple[list[Batch], dict[str, object]]:
    """Quantize layer ``index`` and return the next layer's inputs."""
    started = time.monotonic()
    stack = run.stack
    layer, arguments = stack.layer(index), stack.arguments(index)
    groups = stack.architecture.groups_of(experts.apart(layer.state_dict()))
    from_original = run.inputs == "original"
    put = run.activations.room(index + 1).put
    with collecting(layer, groups, outputs=from_original) as collector:
        original = forward(layer, hidden, arguments, collector, put if from_original else discard)
    for statistics in collector.statistics.values():
        statistics.sum_over_ranks()
    with torch.inference_mode():
        quantized = quantize_layer(
            layer, groups, stack.config, collector.statistics, scheme=run.scheme, stored=device.STORED
        )
    seen = kv_range.KvRange()
    setattr(layer.get_submodule("self_attn"), kv_range.ATTRIBUTE, seen)
    quantized_outputs = forward(layer, hidden, arguments, seen, discard if from_original else put)
    seen.key_amax, seen.value_amax = ranks.agree_on_largest([seen.key_amax, seen.value_amax])
    tensors = compressed_tensors.layer_tensors(
        f"model.layers.{index}", quantized.linears, quantized.others, seen, kv_scales=run.kv_scales
    )
    if ranks.place()[0] == 0:
        run.writer.write(index, {stack.architecture.stored(name): tensor for name, tensor in tensors.items()})
    stack.release(index)
    report: dict[str, object] = {
        "layer": index,
        "errors": [asdict(error) for error in quantized.errors],
        "key_amax": seen.key_amax,
        "value_amax": seen.value_amax,
        "seconds": round(time.monotonic() - started, 3),
    }
    return original if from_original else quantized_outputs, report


def _finish(run: Run, model: Path, folder: Path, reports: list[dict[str, object]]) -> None:
    """Write what is left once all layers are there: the other weights, the config, the tokenizer, the report."""
    run.writer.write(run.stack.layers, {name: tensor.to(device.STORED) for name, tensor in run.stack.rest().items()})
    run.writer.finish()
    run.activations.drop()
    unquantized = map(run.stack.architecture.stored, run.stack.architecture.unquantized)
    scheme = compressed_tensors.quantization_config(run.scheme.group_size, unquantized, symmetric=run.scheme.symmetric)
    companions.write(run.stack, model, folder, scheme, reports)


if __name__ == "__main__":
    serve(work)
