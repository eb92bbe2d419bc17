"""Time, memory and each step's rate at 7B and 72B shapes on one GPU, with random weights.

    python benchmarks/gpu.py OUT.json [--shape 7b|72b] [--layers N] [--recipe R] [--peer] [--anchor]

Rows are added to OUT.json; a row that is there is not measured again. Every call begins with the anchor, a bfloat16
product of 8192 x 8192 x 8192, so that rows of different calls can be compared. All layers share one random layer.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import gpu_kernels
import torch
from safetensors.torch import save_file
from transformers import Qwen2Config

from trtpipe.quantization import (
    clipping,
    device,
    forward,
    layer,
    recipes,
    refit,
    rounding,
    scales,
    stack,
    statistics,
)
from trtpipe.quantization import experts as mixture

SHAPES: dict[str, dict[str, int]] = {
    "7b": {"hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28, "num_key_value_heads": 4},
    "72b": {"hidden_size": 8192, "intermediate_size": 29568, "num_attention_heads": 64, "num_key_value_heads": 8},
    "tiny": {"hidden_size": 128, "intermediate_size": 384, "num_attention_heads": 4, "num_key_value_heads": 2},
}
VOCABULARY = 4096  # neither embedding nor head is measured
TOKENS_PER_ROW = 512


def gpu_seconds() -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def anchor_tflops() -> float:
    if not torch.cuda.is_available():
        return 0.0
    left, right = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    for _ in range(3):
        left @ right
    started = gpu_seconds()
    for _ in range(10):
        left @ right
    return round(10 * 2 * 8192**3 / (gpu_seconds() - started) / 1e12, 1)


class OneLayer(stack.DecoderStack):
    """Every decoder layer reads layer 0's tensors."""

    def tensor(self, name: str) -> torch.Tensor:
        parts = name.split(".")
        if parts[1] == "layers":
            parts[2] = "0"
        return super().tensor(".".join(parts))


def model(shape: str, layers: int, folder: Path) -> Path:
    """Write a Qwen2 of a shape with one random layer."""
    folder.mkdir(exist_ok=True)
    config = Qwen2Config(**SHAPES[shape], num_hidden_layers=layers, vocab_size=VOCABULARY, tie_word_embeddings=True)
    config.architectures = ["Qwen2ForCausalLM"]
    config.save_pretrained(folder)
    hidden, inner = config.hidden_size, config.intermediate_size
    kv = config.num_key_value_heads * hidden // config.num_attention_heads
    generator = torch.Generator(device.choose().device).manual_seed(0)

    def random(*size: int, spread: float = 0.02, centre: float = 0.0) -> torch.Tensor:
        values = torch.randn(*size, generator=generator, device=generator.device) * spread + centre
        return values.bfloat16().cpu()

    prefix = "model.layers.0"
    linears = {"q": (hidden, hidden), "k": (kv, hidden), "v": (kv, hidden), "o": (hidden, hidden)}
    tensors = {f"{prefix}.self_attn.{name}_proj.weight": random(*size) for name, size in linears.items()}
    tensors |= {f"{prefix}.self_attn.{name}_proj.bias": random(linears[name][0]) for name in "qkv"}
    tensors |= {
        f"{prefix}.mlp.gate_proj.weight": random(inner, hidden),
        f"{prefix}.mlp.up_proj.weight": random(inner, hidden),
        f"{prefix}.mlp.down_proj.weight": random(hidden, inner),
        f"{prefix}.input_layernorm.weight": random(hidden, spread=0.2, centre=1.0),
        f"{prefix}.post_attention_layernorm.weight": random(hidden, spread=0.2, centre=1.0),
        "model.embed_tokens.weight": random(VOCABULARY, hidden, spread=1.0),
        "model.norm.weight": random(hidden, centre=1.0),
    }
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def trace(shape: str, layers: int, rows: int, recipe: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ours(shape, 2, rows, recipe, Path(folder) / "first", steps=False)
        with torch.profiler.profile(activities=list(torch.profiler.supported_activities())) as seen:
            ours(shape, layers, rows, recipe, Path(folder) / "second", steps=False)
    print(seen.key_averages().table(sort_by="self_device_time_total", row_limit=45, max_name_column_width=70))


class Stopwatch:
    """Seconds by step and layer; a step's own steps are counted in both."""

    def __init__(self, layers: int) -> None:
        self.layer = 0
        self.seconds: dict[str, list[float]] = defaultdict(lambda: [0.0] * layers)

    def add(self, step: str, seconds: float) -> None:
        self.seconds[step][self.layer] += seconds

    @contextmanager
    def around(self, *places: tuple[Any, str, str]) -> Iterator[None]:
        """Time calls of functions: (owner, function, step)."""
        with ExitStack() as replaced:
            for owner, name, step in places:
                replaced.enter_context(mock.patch.object(owner, name, self._timed(getattr(owner, name), step)))
            yield

    def _timed(self, function: Any, step: str) -> Any:
        def timed(*arguments: Any, **options: Any) -> Any:
            started = gpu_seconds()
            made = function(*arguments, **options)
            self.add(step, gpu_seconds() - started)
            return made

        return timed


def ours(shape: str, layers: int, rows: int, recipe: str, folder: Path, *, steps: bool) -> dict[str, Any]:
    """Quantize all layers as the worker does, without writing; with ``steps`` each step is timed, which costs syncs."""
    compute = device.choose()
    opened = OneLayer(model(shape, layers, folder), compute.dtype, compute.device)
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(0, VOCABULARY, (rows, TOKENS_PER_ROW), generator=generator).tolist()
    hidden = [forward.Batch(opened.embed(one.inputs), one.mask) for one in forward.batches(ids, compute.device)]
    group = 128 if SHAPES[shape]["intermediate_size"] % 128 == 0 else 64
    scheme = recipes.Scheme(recipes.RECIPES[recipe], group, 10, symmetric=True)
    watch, by_layer = Stopwatch(layers), []
    places = [
        (statistics.InputStatistics, "add", "G"),
        (scales, "search", "scale search"),
        (clipping, "search", "clipping"),
        (rounding, "unit_factor", "factorisation"),
        (rounding, "compensated", "compensated rounding, with factorisation"),
        (refit, "refitted", "refit"),
    ]
    with watch.around(*(places if steps else [])):
        for index in range(layers):
            watch.layer = index
            started = gpu_seconds()
            module, arguments = opened.layer(index), opened.arguments(index)
            loaded = gpu_seconds()
            groups = opened.architecture.groups_of(mixture.apart(module.state_dict()))
            with forward.collecting(module, groups, outputs=False) as collector:
                forward.forward(module, hidden, arguments, collector)
            collected = gpu_seconds()
            with torch.inference_mode():
                layer.quantize_layer(
                    module, groups, opened.config, collector.statistics, scheme=scheme, stored=device.STORED
                )
            quantized = gpu_seconds()
            hidden = forward.forward(module, hidden, arguments)
            ended = gpu_seconds()
            opened.release(index)
            watch.add("load", loaded - started)
            watch.add("first pass, with G", collected - loaded)
            watch.add("search and rounding", quantized - collected)
            watch.add("second pass", ended - quantized)
            by_layer.append(ended - loaded)
    gpu_gib = torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else 0.0
    return {
        "layers": layers, "tokens": rows * TOKENS_PER_ROW, "group_size": group,
        "compute_seconds": round(sum(by_layer), 2),
        "seconds_per_layer_median": round(median(by_layer), 4),
        "seconds_first_layer": round(by_layer[0], 3),
        "seconds_per_layer_by_step": {name: round(median(seconds), 4) for name, seconds in watch.seconds.items()},
        "gpu_peak_gib": round(gpu_gib, 1),
        "host_peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 1),
    }  # fmt: skip


def peer(shape: str, layers: int, rows: int, folder: Path) -> dict[str, Any]:
    """ModelOpt's awq_lite on the same layers, batch 8 three times and 1 once; without its export, after a warm-up."""
    import modelopt.torch.quantization as mtq
    from transformers import Qwen2ForCausalLM

    path = model(shape, 1, folder)
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(0, VOCABULARY, (rows, TOKENS_PER_ROW), generator=generator)
    config = mtq.INT4_AWQ_CFG
    seconds: dict[str, list[float]] = defaultdict(list)
    for batch, count in ((8, 1), *((8, layers),) * 3, (1, layers)):
        whole = Qwen2ForCausalLM.from_pretrained(path, dtype=torch.bfloat16).cuda().eval()
        one = whole.model.layers[0]
        whole.model.layers = torch.nn.ModuleList(
            [one, *(_copy(one, whole.config, number) for number in range(1, count))]
        )
        whole.config.num_hidden_layers = count
        whole.config.layer_types = ["full_attention"] * count

        def run(inner: Any, batch: int = batch) -> None:
            with torch.inference_mode():
                for part in ids.split(batch):
                    inner.model(part.cuda(), use_cache=False)

        started = gpu_seconds()
        mtq.quantize(whole, config, run)
        taken = (gpu_seconds() - started) / count
        print(f"ModelOpt, batch {batch}: {taken:.2f} s a layer of {count}", flush=True)
        if (batch, count) != (8, 1):
            seconds[f"batch {batch}"].append(round(taken, 3))
        del whole
        torch.cuda.empty_cache()
    return {"layers": layers, "tokens": rows * TOKENS_PER_ROW, "seconds_per_layer": dict(seconds)}


def _copy(one: torch.nn.Module, config: Any, number: int) -> torch.nn.Module:
    from transformers.models.qwen2.modeling_qwen2 import Qwen2DecoderLayer

    made = Qwen2DecoderLayer(config, 0).to("cuda", torch.bfloat16).eval()
    made.load_state_dict(one.state_dict())
    made.self_attn.layer_idx = number
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--shape", choices=SHAPES, default="7b")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--rows", type=int, default=128)
    parser.add_argument("--recipe", choices=recipes.RECIPES, default="awq+clip+round")
    parser.add_argument("--steps", action="store_true", help="time each step")
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--trace", action="store_true", help="print what the GPU spends its time on, and stop")
    options = parser.parse_args()
    gpu_kernels.check()
    if options.trace:
        trace(options.shape, options.layers, options.rows, options.recipe)
        return
    document = json.loads(options.out.read_text("utf-8")) if options.out.is_file() else {"rows": {}, "anchors": []}
    document["environment"] = {"computed_on": str(device.choose()), "torch": torch.__version__}
    document["anchors"].append({"bf16_tflops": anchor_tflops(), "at": time.strftime("%Y-%m-%d %H:%M:%S")})
    what = "ModelOpt awq_lite" if options.peer else options.recipe
    row = f"{options.shape}, {options.layers} layers, {options.rows} x 512, {what}{', steps' if options.steps else ''}"
    if row not in document["rows"]:
        with tempfile.TemporaryDirectory() as folder:
            if options.peer:
                figures = peer(options.shape, options.layers, options.rows, Path(folder))
            else:
                figures = ours(
                    options.shape, options.layers, options.rows, options.recipe, Path(folder), steps=options.steps
                )
        document["rows"][row] = {**figures, "anchor_bf16_tflops": document["anchors"][-1]["bf16_tflops"]}
        print(row, json.dumps(document["rows"][row]), flush=True)
    options.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
