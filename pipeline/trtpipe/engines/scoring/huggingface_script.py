"""Score rows with the unquantized Hugging Face model: one pass over each row, on the GPUs where there are any.

Runs as `python huggingface_script.py JOB OUT`, with a Python that has torch and transformers; TensorRT-LLM 1.2.1 brings
transformers 4.57.1 and accelerate (its requirements.txt). The job: model, rows (JSONL). Into the folder OUT go
scores.npz and figures.json.
"""

from __future__ import annotations

import importlib.util
import json
import resource
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import markers
import positions
import torch
import transformers
from positions import Part, Row

# Float32 logits of so many positions are in memory at once, beside the model's own of a whole row.
SLICE_POSITIONS = 256


def main(job: dict[str, Any], out: Path) -> None:
    started = time.monotonic()
    model = load(Path(job["model"]))
    loaded = time.monotonic()
    rows, parts = positions.rows_of(Path(job["rows"])), []
    for done, row in enumerate(rows, start=1):
        parts.append(score(model, row))
        markers.tell(markers.PROGRESS, f"{done} {len(rows)}")
    positions.save(out / "scores.npz", rows, parts)
    dtype = str(model.dtype).removeprefix("torch.")
    figures = {
        "runs_with": f"Hugging Face transformers {transformers.__version__}, torch {torch.__version__}",
        "dtype": dtype, "kv_dtype": f"{dtype}, without a cache: one pass over each row", "places": places(model),
        "rows": len(rows), "tokens": sum(row.tokens for row in rows), "load_seconds": round(loaded - started, 2),
        "seconds": round(time.monotonic() - loaded, 2),
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }  # fmt: skip
    (out / "figures.json").write_text(json.dumps(figures), encoding="utf-8")


def load(folder: Path) -> Any:
    """Open the model in the type that it is stored in, spread over all GPUs by accelerate, else on the CPU."""
    config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    how: dict[str, Any] = {}
    if torch.cuda.is_available():
        if importlib.util.find_spec("accelerate") is None:
            markers.refuse("this Python has no accelerate, which spreads the unquantized model over the GPUs")
        how["device_map"] = "auto"
    if getattr(config, "attn_logit_softcapping", None):
        how["attn_implementation"] = "eager"  # the fused kernel of torch leaves Gemma 2's soft cap out
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, config=config, dtype="auto", local_files_only=True, use_safetensors=True, **how
    ).eval()
    slow = {name: count for name, count in places(model).items() if name in ("cpu", "disk")}
    if how.get("device_map") and slow:
        markers.tell(markers.NOTE, f"the GPUs do not hold the unquantized model, parts of it elsewhere: {slow}")
    return model


def places(model: Any) -> dict[str, int]:
    """Return how many of the model's parts lie on each device."""
    spread = getattr(model, "hf_device_map", None) or {"": model.device}
    return dict(Counter(f"cuda:{place}" if isinstance(place, int) else str(place) for place in spread.values()))


@torch.inference_mode()
def score(model: Any, row: Row) -> Part:
    """Run all of a row but its last token, which is only predicted, never read."""
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    ids = torch.tensor([row.ids[:-1]], device=device)
    logits = model(ids, use_cache=False, logits_to_keep=row.tokens).logits[0, -row.tokens :]
    observed = torch.tensor(row.ids[row.score_from :], device=logits.device)
    parts = [
        positions.of(logits[start : start + SLICE_POSITIONS], observed[start : start + SLICE_POSITIONS], None)
        for start in range(0, row.tokens, SLICE_POSITIONS)
    ]
    return Part(*(column.cpu() for column in positions.joined(parts)))


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text("utf-8")), Path(sys.argv[2]))
