"""The fixed case: a model and token rows in, KL, top-1 agreement and perplexity of quantized checkpoints out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from compressed_tensors.compressors.pack_quantized.helpers import unpack_from_int32
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Closeness:
    """Means over ``tokens`` positions; KL(original || quantized) in nats."""

    kl_nats: float
    kl_standard_error_nats: float
    top1_agreement: float
    perplexity: float
    tokens: int


def rows(name: str, start: int, end: int) -> list[list[int]]:
    """Return rows of a data file as lists of token ids."""
    ids: list[list[int]] = np.load(DATA / f"{name}.npy")[start:end].tolist()
    return ids


def open_model(folder: Path) -> Any:
    where = "cuda" if torch.cuda.is_available() else "cpu"
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).to(where).eval()


def expanded(checkpoint: Path, model: Path) -> Any:
    """Return the plain float32 model that a compressed-tensors checkpoint stands for, by upstream's unpacker."""
    tensors = {name: tensor for path in checkpoint.glob("*.safetensors") for name, tensor in load_file(path).items()}
    made = open_model(model)
    state = made.state_dict()
    quantized = 0
    for name in state:
        source = name if name in tensors or name != "lm_head.weight" else "model.embed_tokens.weight"
        if f"{source}_packed" in tensors:
            state[name] = _weight(tensors, source)
            quantized += 1
        else:
            state[name] = tensors[source].float()
    made.load_state_dict(state)
    linears = sum(isinstance(module, torch.nn.Linear) for module in made.modules()) - 1
    if quantized != linears:
        raise SystemExit(f"{checkpoint}: {quantized} of {linears} linears have codes")
    return made


def _weight(tensors: dict[str, torch.Tensor], name: str) -> torch.Tensor:
    rows_, columns = tensors[f"{name}_shape"].tolist()
    codes = unpack_from_int32(tensors[f"{name}_packed"], 4, torch.Size([rows_, columns])).float()
    scales = tensors[f"{name}_scale"].float()
    if f"{name}_zero_point" in tensors:
        shape = torch.Size([rows_, scales.shape[1]])
        zeros = unpack_from_int32(tensors[f"{name}_zero_point"], 4, shape, packed_dim=0).float()
        codes -= zeros.repeat_interleave(columns // scales.shape[1], dim=1)
    return codes * scales.repeat_interleave(columns // scales.shape[1], dim=1)


@torch.inference_mode()
def score(original: Any, candidates: dict[str, Any], ids: list[list[int]]) -> dict[str, Closeness]:
    """Score all candidates row by row against the original, in float32."""
    torch.backends.cuda.matmul.allow_tf32 = False
    seen: dict[str, list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]] = {name: [] for name in candidates}
    for one in ids:
        row = torch.tensor(one, device=original.device)
        before = original(row[None]).logits[0, :-1].log_softmax(dim=1)
        probabilities, observed = before.exp(), row[1:, None]
        for name, candidate in candidates.items():
            after = candidate(row[None]).logits[0, :-1].log_softmax(dim=1)
            kl = (probabilities * (before - after)).sum(dim=1)
            agrees = before.argmax(dim=1) == after.argmax(dim=1)
            seen[name].append((kl, agrees.float(), -after.gather(1, observed)[:, 0]))
    return {name: _closeness(parts) for name, parts in seen.items()}


def _closeness(parts: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]) -> Closeness:
    kl, agrees, surprise = zip(*parts, strict=True)  # [positions] each
    by_row = torch.stack([row.mean() for row in kl])
    return Closeness(
        kl_nats=round(float(torch.cat(kl).mean()), 5),
        kl_standard_error_nats=round(float(by_row.std() / len(by_row) ** 0.5), 5),
        top1_agreement=round(float(torch.cat(agrees).mean()), 5),
        perplexity=round(float(torch.cat(surprise).mean().exp()), 3),
        tokens=len(torch.cat(kl)),
    )


def write_prompts(path: Path, ids: list[list[int]]) -> Path:
    """Write rows as the calibration set that a worker reads."""
    path.write_text("".join(json.dumps({"ids": row}) + "\n" for row in ids), encoding="utf-8")
    return path
