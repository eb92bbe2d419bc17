"""The child process: another quantizer's checkpoint, made now or given, becomes the canonical int4 checkpoint.

Codes are kept; scales are rounded to bfloat16. KV scales are measured here, on the quantized weights, as for our own.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import torch

from trtpipe.core.worker import Events, serve
from trtpipe.errors import ConfigError, ToolFailed
from trtpipe.quantization import companions, compressed_tensors, device, kv_range
from trtpipe.quantization.exports.rotary import older_form
from trtpipe.quantization.forward import Batch, batches, forward
from trtpipe.quantization.kinds.foreign import Foreign
from trtpipe.quantization.kinds.recognised import MAKERS, Recognised, recognise
from trtpipe.quantization.shards import ShardWriter
from trtpipe.quantization.stack import DecoderStack

WORK = ".foreign"


def work(job: dict[str, Any], events: Events) -> dict[str, Any]:
    """Quantize and take over. The job: model, prompts, folder, kind, python, existing, group_size, kv_scales."""
    folder, model = Path(job["folder"]), Path(job["model"])
    notes: list[str] = []
    compute = device.choose()
    stack = DecoderStack(model, compute.dtype, compute.device)
    source = Path(job["existing"]) if job["existing"] else _quantize(job, folder / WORK, stack, notes)
    foreign = Foreign(source, recognise(source), stack.architecture)
    notes.append(f"taken over: {foreign.recognised.words}; codes as they are, scales rounded to bfloat16")
    with Path(job["prompts"]).open(encoding="utf-8") as file:
        tokens = batches((json.loads(line)["ids"] for line in file), compute.device)
    writer = ShardWriter(folder, stack.layers)
    hidden = [Batch(stack.embed(batch.inputs), batch.mask) for batch in tokens]
    reports: list[dict[str, object]] = []
    for index in range(stack.layers):
        events.progress("take over layer", index, stack.layers)
        hidden, report = _take_over(stack, index, foreign, hidden, writer, job["kv_scales"])
        reports.append(report)
    events.progress("take over layer", stack.layers, stack.layers)
    notes += [
        f"{name}: rounded plainly here, since {MAKERS[foreign.recognised.layout]} left it unquantized"
        for name in sorted(foreign.plainly_rounded)
    ]
    writer.write(stack.layers, {name: tensor.to(device.STORED) for name, tensor in foreign.rest().items()})
    writer.finish()
    _finish(stack, model, folder, foreign.recognised, reports)
    return {
        "layers": reports,
        "notes": notes,
        "calibration_tokens": sum(int(batch.mask.sum()) for batch in tokens),
        "computed_on": str(compute),
        "peak_rss_mib": round(max(_peak_kib(resource.RUSAGE_SELF), _peak_kib(resource.RUSAGE_CHILDREN)) / 1024),
    }


def _quantize(job: dict[str, Any], folder: Path, stack: DecoderStack, notes: list[str]) -> Path:
    """Run the quantizer's script with the Python of its environment; return the checkpoint's folder."""
    kind, out = job["kind"], folder / "checkpoint"
    (folder / "model").mkdir(parents=True)
    for path in Path(job["model"]).iterdir():
        if path.is_file() and path.name != "config.json":
            (folder / "model" / path.name).symlink_to(path.absolute())
    config = json.loads((Path(job["model"]) / "config.json").read_text("utf-8"))
    (folder / "model/config.json").write_text(json.dumps(older_form(config, "bfloat16")), encoding="utf-8")
    task = {
        "model": str(folder / "model"), "prompts": job["prompts"], "folder": str(out),
        "notes": str(folder / "notes.json"),
        "group_size": job["group_size"], "unquantized": _not_foldable(stack) if kind == "modelopt" else [],
    }  # fmt: skip
    (folder / "job.json").write_text(json.dumps(task), encoding="utf-8")
    script = Path(__file__).with_name(f"{kind}_script.py")
    done = subprocess.run([job["python"], str(script), str(folder / "job.json")], check=False)
    if done.returncode:
        raise ToolFailed(
            f"{MAKERS[kind]} ended with status {done.returncode}",
            where=str(script),
            fix="see the log; quantization.kind: awq needs no other environment",
        )
    told = folder / "notes.json"
    notes += json.loads(told.read_text("utf-8")) if told.is_file() else []
    return out


def _not_foldable(stack: DecoderStack) -> list[str]:
    """Return linears that ModelOpt would scale in a way that no other linear can take in.

    Under grouped-query attention o_proj's scale differs between query heads that share one value head.
    """
    config = stack.config
    return ["o_proj"] if config.num_key_value_heads != config.num_attention_heads else []


def _take_over(
    stack: DecoderStack, index: int, foreign: Foreign, hidden: list[Batch], writer: ShardWriter, kv_scales: Any
) -> tuple[list[Batch], dict[str, object]]:
    """Write layer ``index`` and return the next layer's inputs, which come from the quantized layer."""
    started = time.monotonic()
    layer, arguments = stack.layer(index), stack.arguments(index)
    linears, others = foreign.layer(index)
    stored = {name: tensor.to(device.STORED) for name, tensor in others.items()}
    state = {**stored, **{f"{name}.weight": quantized.weight() for name, quantized in linears.items()}}
    _require_shapes(layer, state, foreign.folder, index)
    layer.load_state_dict({name: tensor.to(stack.device, stack.dtype) for name, tensor in state.items()}, assign=True)
    seen = kv_range.KvRange()
    setattr(layer.get_submodule("self_attn"), kv_range.ATTRIBUTE, seen)
    hidden = forward(layer, hidden, arguments, seen)
    tensors = compressed_tensors.layer_tensors(f"model.layers.{index}", linears, stored, seen, kv_scales=kv_scales)
    writer.write(index, {stack.architecture.stored(name): tensor for name, tensor in tensors.items()})
    stack.release(index)
    return hidden, {
        "layer": index,
        "errors": [],
        "key_amax": seen.key_amax,
        "value_amax": seen.value_amax,
        "seconds": round(time.monotonic() - started, 3),
    }


def _require_shapes(layer: torch.nn.Module, state: dict[str, torch.Tensor], folder: Path, index: int) -> None:
    wanted = {name: tuple(tensor.shape) for name, tensor in layer.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in state.items()}
    differing = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    if differing:
        raise ConfigError(
            f"the checkpoint is of another model: layer {index} differs in {', '.join(differing[:3])}",
            where=str(folder),
            fix="give the checkpoint that was made from this model",
        )


def _finish(stack: DecoderStack, model: Path, folder: Path, made: Recognised, reports: list[dict[str, object]]) -> None:
    scheme = compressed_tensors.quantization_config(made.group_size, [], symmetric=made.symmetric)
    companions.write(stack, model, folder, scheme, reports)
    shutil.rmtree(folder / WORK, ignore_errors=True)


def _peak_kib(who: int) -> int:
    return resource.getrusage(who).ru_maxrss


if __name__ == "__main__":
    serve(work)
