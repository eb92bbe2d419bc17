"""ModelOpt's awq_lite with its TensorRT-LLM export on given ids, timed: run by its own environment's Python."""

from __future__ import annotations

import copy
import json
import sys
import tempfile
import time
from pathlib import Path

import modelopt.torch.quantization as mtq
import torch
from modelopt.torch.export import export_tensorrt_llm_checkpoint
from transformers import AutoModelForCausalLM


def main() -> None:
    model_folder, ids_file, batch, dtype = sys.argv[1:]
    model = AutoModelForCausalLM.from_pretrained(model_folder, dtype=getattr(torch, dtype)).eval()
    ids = torch.tensor(json.loads(Path(ids_file).read_text("utf-8")))
    config = copy.deepcopy(mtq.INT4_AWQ_CFG)
    for entry in config["quant_cfg"]:
        if entry.get("quantizer_name") == "*weight_quantizer":
            entry["cfg"]["block_sizes"] = {-1: 64, "type": "static"}

    def forward(whole: torch.nn.Module) -> None:
        with torch.inference_mode():
            for part in ids.split(int(batch)):
                whole.model(part)  # without the output head, which is not calibrated

    started = time.monotonic()
    mtq.quantize(model, config, forward)
    with tempfile.TemporaryDirectory() as folder:
        export_tensorrt_llm_checkpoint(model, "llama", torch.float16, folder, inference_tensor_parallel=1)
    print(json.dumps({"seconds": time.monotonic() - started}))


if __name__ == "__main__":
    main()
