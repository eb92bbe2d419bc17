"""Quantize with AutoAWQ and write its GEMM checkpoint.

Runs with the Python of AutoAWQ's own environment, as `python autoawq_script.py job.json`; nothing of this package is
there. The job: model, prompts (JSONL with `ids`), folder, notes (file to write), group_size.
"""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import Any

import torch
from awq import AutoAWQForCausalLM
from awq.quantize.quantizer import AwqQuantizer

CLIP_LEFT_OUT = "AutoAWQ's clip search is left out: on a CPU it takes about an hour for 135 million parameters"
BLOCK_TOKENS = 512
ROWS_AT_ONCE = 8


def main(job: dict[str, Any]) -> None:
    on_gpu = torch.cuda.is_available()
    notes = [] if on_gpu else [restore_weights(), CLIP_LEFT_OUT]
    with Path(job["prompts"]).open(encoding="utf-8") as file:  # splitlines would cut at U+2028, which a prompt may have
        rows = [json.loads(line)["ids"] for line in file]
    ids = [token for row in rows for token in row]
    size = min(BLOCK_TOKENS, len(ids))
    blocks = [ids[start : start + size] for start in range(0, len(ids) - size + 1, size)]
    notes.append(
        f"AutoAWQ takes blocks of equal length: {len(rows)} prompts joined, cut into {len(blocks)} of {size} tokens, "
        f"{len(ids) - len(blocks) * size} of {len(ids)} tokens left over"
    )
    model = AutoAWQForCausalLM.from_pretrained(
        job["model"], safetensors=True, torch_dtype=torch.bfloat16, device_map="auto" if on_gpu else "cpu"
    )
    model.quantize(
        None,
        quant_config={"zero_point": True, "q_group_size": job["group_size"], "w_bit": 4, "version": "GEMM"},
        calib_data=blocks,
        max_calib_samples=len(blocks),
        max_calib_seq_len=size,
        n_parallel_calib_samples=ROWS_AT_ONCE,
        apply_clip=on_gpu,
    )
    model.save_quantized(job["folder"], safetensors=True)
    Path(job["notes"]).write_text(json.dumps(notes), encoding="utf-8")


def restore_weights() -> str:
    """Let the scale search restore the weights that it has changed; return what was done.

    It keeps them by `.cpu()` (awq/quantize/quantizer.py, _compute_best_scale): on a CPU that is no copy, each try
    damages the weights for the next, and the checkpoint is destroyed without a message.
    """
    search = AwqQuantizer._compute_best_scale
    signature = inspect.signature(search)

    def restoring(*arguments: Any, **named: Any) -> Any:
        module = signature.bind(*arguments, **named).arguments["module2inspect"]
        kept = module.state_dict
        module.state_dict = lambda: {name: tensor.detach().clone() for name, tensor in kept().items()}
        try:
            return search(*arguments, **named)
        finally:
            del module.state_dict

    AwqQuantizer._compute_best_scale = restoring
    return "AutoAWQ 0.2.9 destroys the weights on a CPU: its scale search was given a copy of them to restore"


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text("utf-8")))
