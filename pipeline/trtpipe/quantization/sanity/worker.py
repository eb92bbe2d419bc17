"""The child process: model and TensorRT-LLM checkpoint read the same prompts, each in one pass over its layers.

At every position both say which token they would choose next: hundreds of answers of one token, where writing answers
token by token would read all weights once a token. The job: model, checkpoint, prompts (lists of ids).
"""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import torch

from trtpipe.core.sharing import Decoder
from trtpipe.core.worker import Events, serve
from trtpipe.quantization import device
from trtpipe.quantization.forward import Batch, forward
from trtpipe.quantization.sanity.model_files import Layers, open_model
from trtpipe.quantization.sanity.rank_files import RankFiles
from trtpipe.quantization.stack import DecoderStack


def work(job: dict[str, Any], events: Events) -> dict[str, Any]:
    """Return, of ``model`` and ``checkpoint``: ``chosen`` ids by prompt and position, ``loss`` in nats a token.

    Where a layer's outputs are not finite, ``bad_layer`` is its number and the rest is missing.
    """
    compute = device.choose()
    model = Path(job["model"])
    stack = DecoderStack(model, compute.dtype, compute.device)
    shape = Decoder.from_config(stack.config.to_dict())
    found: dict[str, Any] = {}
    for name, layers in (
        ("model", open_model(model, stack)),
        ("checkpoint", RankFiles(Path(job["checkpoint"]), shape)),
    ):
        found[name] = read(stack, layers, job["prompts"], f"read prompts with the {name}", events)
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {**found, "computed_on": str(compute), "peak_rss_mib": round(peak_mib)}


def read(stack: DecoderStack, layers: Layers, prompts: list[list[int]], label: str, events: Events) -> dict[str, Any]:
    ids = [torch.tensor([prompt], device=stack.device) for prompt in prompts]
    embedding = layers.embedding().to(stack.device, stack.dtype)
    hidden = [
        Batch(torch.nn.functional.embedding(one, embedding), torch.ones_like(one, dtype=torch.bool)) for one in ids
    ]
    del embedding
    for index in range(stack.layers):
        events.progress(label, index, stack.layers)
        layer = stack.skeleton(index)
        state = {name: tensor.to(stack.device, stack.dtype) for name, tensor in layers.layer(index).items()}
        layer.load_state_dict(state, assign=True)
        hidden = forward(layer, hidden, stack.arguments(index))
        stack.release(index)
        if not all(torch.isfinite(batch.inputs).all() for batch in hidden):
            return {"bad_layer": index}
    events.progress(label, stack.layers, stack.layers)
    norm, head = layers.norm(), layers.head().to(stack.device, stack.dtype)
    chosen, losses = [], []
    for one, batch in zip(ids, hidden, strict=True):
        logits = stack.logits(batch.inputs, norm, head)[0].float()
        chosen.append(logits.argmax(dim=1).tolist())
        losses.append(torch.nn.functional.cross_entropy(logits[:-1], one[0, 1:], reduction="none"))
    return {"chosen": chosen, "loss": round(torch.cat(losses).mean().item(), 4)}


if __name__ == "__main__":
    serve(work)
