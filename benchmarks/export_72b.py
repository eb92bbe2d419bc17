"""Export checkpoints of Qwen2.5-72B's widths to TensorRT-LLM for TP 8: seconds, peak host memory, bytes written.

    python benchmarks/export_72b.py [--layers 2 8 80] [--folder DIR]

The export is the product's own; its source is a checkpoint of random codes whose layers are written to the disk when
they are asked for and removed after, so that DIR needs the output and one layer: 41 GB for 80 layers. Each depth runs
in a process of its own and is kept in ``benchmarks/results/export-72b.json``; a depth that is there is not run again.
What was written is compared with the plan of ``engines/a100x8.yaml`` and deleted.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from trtpipe.chain import plan as planning
from trtpipe.core import environment
from trtpipe.core.progress import Silent
from trtpipe.engines.trtllm.build import checkpoint as preflight
from trtpipe.quantization.exports import trtllm
from trtpipe.quantization.exports.checkpoint import INDEX, Checkpoint

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks/results/export-72b.json"
TARGET = ROOT / "engines/a100x8.yaml"
GROUP, RANKS, GIB = 128, 8, 1 << 30
HIDDEN, INNER, HEADS, KV_HEADS, WIDTH, VOCABULARY = 8192, 29568, 64, 8, 128, 152064
LINEARS = {
    "self_attn.q_proj": (HEADS * WIDTH, HIDDEN), "self_attn.k_proj": (KV_HEADS * WIDTH, HIDDEN),
    "self_attn.v_proj": (KV_HEADS * WIDTH, HIDDEN), "self_attn.o_proj": (HIDDEN, HEADS * WIDTH),
    "mlp.gate_proj": (INNER, HIDDEN), "mlp.up_proj": (INNER, HIDDEN), "mlp.down_proj": (HIDDEN, INNER),
}  # fmt: skip
PEAK = (
    "In memory at a time are the embedding or the head with its eight shares, or one linear of one layer: the peak is "
    "that of the vocabulary of 152,064 rows and does not grow with layers."
)
BIASED = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
NORMS = ("input_layernorm.weight", "post_attention_layernorm.weight")
SCHEME = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": GROUP, "symmetric": True}


def config(layers: int) -> dict[str, Any]:
    return {
        "model_type": "qwen2", "hidden_size": HIDDEN, "intermediate_size": INNER, "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS, "num_hidden_layers": layers, "vocab_size": VOCABULARY,
        "max_position_embeddings": 32768, "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 1e6,
        "tie_word_embeddings": False,
        "quantization_config": {
            "quant_method": "compressed-tensors", "format": "pack-quantized",
            "config_groups": {"group_0": {"weights": SCHEME}},
        },
    }  # fmt: skip


def layer_tensors() -> dict[str, torch.Tensor]:
    """Return a layer of random codes, by names within the layer."""
    torch.manual_seed(0)
    made: dict[str, torch.Tensor] = {name: torch.ones(HIDDEN, dtype=torch.bfloat16) for name in NORMS}
    for name, (rows, columns) in LINEARS.items():
        made[f"{name}.weight_packed"] = torch.randint(-(2**31), 2**31, (rows, columns // 8), dtype=torch.int32)
        made[f"{name}.weight_scale"] = torch.rand(rows, columns // GROUP).add_(0.5).div_(1000).to(torch.bfloat16)
        if name in BIASED:
            made[f"{name}.bias"] = torch.randn(rows).to(torch.bfloat16)
    return made


def make(folder: Path, layers: int) -> None:
    """Write what is not of a layer, a layer without a number, and the index of all."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config(layers)))
    template = layer_tensors()
    save_file(template, folder / "template.safetensors")
    vocabulary = torch.randn(VOCABULARY // 32, HIDDEN, dtype=torch.bfloat16).repeat(32, 1)
    rest = {
        f"model.layers.{layer}.self_attn.{side}_scale": torch.tensor([0.02]) for layer in range(layers) for side in "kv"
    }
    rest |= {"model.norm.weight": torch.ones(HIDDEN, dtype=torch.bfloat16)}
    save_file(
        rest | {"model.embed_tokens.weight": vocabulary, "lm_head.weight": vocabulary.clone()},
        folder / "rest.safetensors",
    )
    names = dict.fromkeys([*rest, "model.embed_tokens.weight", "lm_head.weight"], "rest.safetensors")
    for layer in range(layers):
        names |= dict.fromkeys([f"model.layers.{layer}.{name}" for name in template], f"layer-{layer}.safetensors")
    (folder / INDEX).write_text(json.dumps({"weight_map": names}))


class Lent(Checkpoint):
    """A checkpoint of which one layer's file is there at a time."""

    def _shard(self, name: str) -> Any:
        path = self.folder / self._shards[name]
        if not path.is_file():
            for other in self.folder.glob("layer-*.safetensors"):
                other.unlink()
            _numbered(self.folder / "template.safetensors", path, int(path.stem.removeprefix("layer-")))
        return super()._shard(name)


def _numbered(template: Path, path: Path, layer: int) -> None:
    """Copy a layer under the names of another number: a new header, the same data."""
    with template.open("rb") as source, path.open("wb") as copy:
        header = json.loads(source.read(int.from_bytes(source.read(8), "little")))
        header.pop("__metadata__", None)
        text = json.dumps({f"model.layers.{layer}.{name}": entry for name, entry in header.items()}).encode()
        text += b" " * (-len(text) % 8)
        copy.write(len(text).to_bytes(8, "little") + text)
        shutil.copyfileobj(source, copy, 1 << 24)


def export(folder: Path, layers: int) -> dict[str, Any]:
    """Export ``folder``/source; return what it took. Raises ConfigError where the product's preflight refuses it."""
    out = folder / "out"
    out.mkdir()
    started = time.monotonic()
    planned = trtllm.plan(
        Lent(folder / "source"), tensor_parallel=RANKS, pipeline_parallel=1, dtype="bfloat16", kv_cache="fp8",
        pad_intermediate=True,
    )  # fmt: skip
    planned.write(out, Silent())
    seconds = time.monotonic() - started
    preflight.require(out, planning.plan(folder / "source", TARGET, (), None).plan)
    written = [path.stat().st_size for path in sorted(out.glob("rank*.safetensors"))]
    return {
        "seconds": round(seconds, 1),
        "peak_host_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIB, 2),
        "bytes_written": sum(written),
        "bytes_by_rank": written,
        "intermediate_size": planned.config["intermediate_size"],
        "notes": planned.notes,
    }


def run(layers: int, folder: Path) -> dict[str, Any]:
    """Make a source and export it in a process of its own, whose peak is then the export's alone."""
    with tempfile.TemporaryDirectory(prefix="export-72b-", dir=folder) as place:
        needed, free = layers * 520_000_000 + 13 * GIB, shutil.disk_usage(place).free
        if free < needed:
            raise SystemExit(f"{layers} layers need {needed / 1e9:.0f} GB in {place}, and {free / 1e9:.0f} are free")
        for step in ("make", "export"):
            command = [sys.executable, __file__, "--step", step, "--layers", str(layers), "--folder", place]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        result: dict[str, Any] = json.loads(done.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, nargs="+", default=[2, 8, 80], help="depths to export")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where it writes")
    parser.add_argument("--step", choices=["make", "export"], help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step == "make":
        make(given.folder / "source", given.layers[0])
    elif given.step == "export":
        print(json.dumps(export(given.folder, given.layers[0])))
    else:
        document = json.loads(RESULT.read_text()) if RESULT.is_file() else {"peak": PEAK, "rows": {}}
        for layers in given.layers:
            if (name := f"{layers} layers") not in document["rows"]:
                place = environment.describe() | {
                    "nice": os.nice(0),
                    "load_average_5_min": round(os.getloadavg()[1], 1),
                }
                document["rows"][name] = run(layers, given.folder) | {"environment": place}
                RESULT.write_text(json.dumps(document, indent=2) + "\n")
            print(f"{name}: see {RESULT.name}", file=sys.stderr)


if __name__ == "__main__":
    main()
