"""Quantize with ModelOpt's `INT4_AWQ_CFG` and write its unified Hugging Face checkpoint.

Runs with the Python of ModelOpt's own environment, as `python modelopt_script.py job.json`; nothing of this package is
there. The job: model, prompts (JSONL with `ids`), folder, group_size, and the linears left unquantized.
"""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

import modelopt.torch.quantization as mtq
import torch
from modelopt.torch.export import export_hf_checkpoint
from transformers import AutoModelForCausalLM


def main(job: dict[str, Any]) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = AutoModelForCausalLM.from_pretrained(job["model"], torch_dtype=torch.bfloat16, local_files_only=True)
    model = model.eval().to(device)
    with Path(job["prompts"]).open(encoding="utf-8") as file:  # splitlines would cut at U+2028, which a prompt may have
        rows = [json.loads(line)["ids"] for line in file]

    def calibrate(one: Any) -> None:
        with torch.inference_mode():
            for ids in rows:
                one(torch.tensor([ids], device=device))

    mtq.quantize(model, recipe(job["group_size"], job["unquantized"]), calibrate)
    export_hf_checkpoint(model, dtype=torch.bfloat16, export_dir=job["folder"])


def recipe(group_size: int, unquantized: list[str]) -> dict[str, Any]:
    """Return ModelOpt's own recipe at another group size, without the linears of these names."""
    changed: dict[str, Any] = copy.deepcopy(mtq.INT4_AWQ_CFG)
    for entry in changed["quant_cfg"]:
        if entry["quantizer_name"] == "*weight_quantizer":
            entry["cfg"]["block_sizes"] = {-1: group_size, "type": "static"}
    changed["quant_cfg"] += [{"quantizer_name": f"*{name}*", "enable": False} for name in unquantized]
    return changed


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text("utf-8")))
