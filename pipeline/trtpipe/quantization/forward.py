"""Run all calibration tokens through one decoder layer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

import torch

from trtpipe.quantization.statistics import InputStatistics

TOKENS_PER_BATCH = 4096
# Every new shape costs a CPU kernel of its own in time and memory, so lengths are rounded up to few of them.
LENGTH_STEP = 64


@dataclass(frozen=True)
class Batch:
    """``inputs``: token ids [rows, tokens] or hidden states [rows, tokens, width].

    ``mask`` [rows, tokens] is false where a row is filled up at its end. Attention is causal, so real tokens never
    see the filling, and statistics leave it out.
    """

    inputs: torch.Tensor
    mask: torch.Tensor


class Watcher(Protocol):
    """Something that looks at activations during a pass and must know which of them are real."""

    mask: torch.Tensor


def batches(rows: Iterable[list[int]]) -> list[Batch]:
    """Put rows of token ids of nearly equal lengths together."""
    by_length: dict[int, list[list[int]]] = defaultdict(list)
    for ids in rows:
        by_length[-(-len(ids) // LENGTH_STEP) * LENGTH_STEP].append(ids)
    made = []
    for length, members in sorted(by_length.items()):
        step = max(1, TOKENS_PER_BATCH // length)
        made += [_batch(members[start : start + step], length) for start in range(0, len(members), step)]
    return made


def _batch(rows: list[list[int]], length: int) -> Batch:
    ids = torch.tensor([row + [0] * (length - len(row)) for row in rows])
    mask = torch.tensor([[position < len(row) for position in range(length)] for row in rows])
    return Batch(ids, mask)


def forward(
    layer: torch.nn.Module, hidden: list[Batch], rotary: torch.nn.Module, watcher: Watcher | None = None
) -> list[Batch]:
    """Return the layer's outputs as the next layer's inputs."""
    outputs = []
    with torch.inference_mode():
        for batch in hidden:
            if watcher is not None:
                watcher.mask = batch.mask
            positions = torch.arange(batch.inputs.shape[1]).unsqueeze(0)
            embeddings = rotary(batch.inputs, positions)
            output = layer(batch.inputs, position_ids=positions, position_embeddings=embeddings)
            outputs.append(replace(batch, inputs=output[0] if isinstance(output, tuple) else output))
    return outputs


class Collector:
    """A watcher that accumulates the statistics of each scale group's input."""

    def __init__(self) -> None:
        self.mask = torch.empty(0)
        self.statistics: dict[str, InputStatistics] = {}

    def watch(self, group: str, linear: torch.nn.Linear) -> torch.utils.hooks.RemovableHandle:
        seen = self.statistics[group] = InputStatistics(linear.in_features, linear.weight.device)
        return linear.register_forward_pre_hook(lambda _, args: seen.add(args[0][self.mask]))


@contextmanager
def collecting(layer: torch.nn.Module, inputs: Mapping[str, str]) -> Iterator[Collector]:
    """Collect during forward passes. ``inputs`` maps a group's name to one linear that reads its input."""
    collector = Collector()
    handles = []
    for group, name in inputs.items():
        linear = layer.get_submodule(name)
        assert isinstance(linear, torch.nn.Linear)  # noqa: S101 - the architecture table says so
        handles.append(collector.watch(group, linear))
    try:
        yield collector
    finally:
        for handle in handles:
            handle.remove()
