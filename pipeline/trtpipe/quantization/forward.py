"""Run all calibration tokens through one decoder layer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import torch

from trtpipe.quantization import experts
from trtpipe.quantization.architectures import ScaleGroup
from trtpipe.quantization.statistics import InputStatistics

# On a GPU the batches are larger, because starting its kernels costs more than a batch's memory.
TOKENS_PER_BATCH = {"cpu": 4096, "cuda": 16384}
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


def batches(rows: Iterable[list[int]], device: torch.device) -> list[Batch]:
    """Put rows of token ids of nearly equal lengths together."""
    by_length: dict[int, list[list[int]]] = defaultdict(list)
    for ids in rows:
        by_length[-(-len(ids) // LENGTH_STEP) * LENGTH_STEP].append(ids)
    made = []
    for length, members in sorted(by_length.items()):
        step = max(1, TOKENS_PER_BATCH[device.type] // length)
        made += [_batch(members[start : start + step], length, device) for start in range(0, len(members), step)]
    return made


def _batch(rows: list[list[int]], length: int, device: torch.device) -> Batch:
    ids = torch.tensor([row + [0] * (length - len(row)) for row in rows])
    mask = torch.tensor([[position < len(row) for position in range(length)] for row in rows])
    return Batch(ids.to(device), mask.to(device))


def discard(batch: int, states: torch.Tensor) -> torch.Tensor:
    """Keep nothing of a batch's outputs: only the watcher's view of the pass is wanted."""
    return states.new_empty(0)


def forward(
    layer: torch.nn.Module,
    hidden: list[Batch],
    arguments: Callable[[torch.Tensor], dict[str, Any]],
    watcher: Watcher | None = None,
    put: Callable[[int, torch.Tensor], torch.Tensor] | None = None,
) -> list[Batch]:
    """Return the layer's outputs as the next layer's inputs. ``arguments``: `DecoderStack.arguments` of the layer.

    ``put`` stores the outputs of a batch and returns what stands for them. There are none where the watcher has seen
    enough before they were computed.
    """
    outputs = []
    with torch.inference_mode():
        for number, batch in enumerate(hidden):
            inputs = batch.inputs.to(batch.mask.device)
            if watcher is not None:
                watcher.mask = batch.mask
            try:
                output = layer(inputs, **arguments(inputs))
            except Enough:
                continue
            states = output[0] if isinstance(output, tuple) else output
            outputs.append(replace(batch, inputs=states if put is None else put(number, states)))
    return outputs


class Enough(Exception):  # noqa: N818 # not a fault
    """All inputs have been seen: what the layer would make of the last one is not asked for."""


class Collector:
    """A watcher that accumulates the statistics of each scale group's input."""

    def __init__(self) -> None:
        self.last: InputStatistics | None = None
        self.mask = torch.empty(0)
        self.statistics: dict[str, InputStatistics] = {}
        self._experts: dict[int, InputStatistics] = {}

    def watch(self, group: ScaleGroup, width: int, device: torch.device) -> InputStatistics:
        """Return the group's statistics of inputs of a width, empty as yet."""
        seen = self.statistics[group.name] = InputStatistics(width, device)
        if group.expert is not None:
            self._experts[group.expert] = seen
        return seen

    def see(self, seen: InputStatistics, inputs: torch.Tensor) -> None:
        """Take in inputs [..., width] of all tokens."""
        seen.add(inputs.flatten(0, -2)[self.mask.flatten()])
        if seen is self.last:
            raise Enough

    def see_expert(self, expert: int, inputs: torch.Tensor, tokens: torch.Tensor) -> None:
        """Take in inputs [n, width] of the tokens [n] that an expert got."""
        self._experts[expert].add(inputs[self.mask.flatten()[tokens]])


@contextmanager
def collecting(layer: torch.nn.Module, groups: Sequence[ScaleGroup], *, outputs: bool = True) -> Iterator[Collector]:
    """Collect the statistics of the groups' inputs during forward passes; without ``outputs`` they end with those."""
    collector = Collector()
    weights = experts.apart(layer.state_dict())
    with ExitStack() as watching:
        for group in groups:
            weight = weights[f"{group.linears[0]}.weight"]
            seen = collector.watch(group, weight.shape[1], weight.device)
            module = layer.get_submodule(group.watched)
            if group.expert is None:
                watching.enter_context(_before(module, partial(collector.see, seen)))
            else:
                setattr(module, experts.ATTRIBUTE, collector.see_expert)
                watching.callback(setattr, module, experts.ATTRIBUTE, None)
        if not outputs and groups[-1].expert is None:
            collector.last = collector.statistics[groups[-1].name]
        yield collector


def _before(module: torch.nn.Module, see: Callable[[torch.Tensor], None]) -> torch.utils.hooks.RemovableHandle:
    """Show a module's inputs before it computes; the handle ends that as a context."""
    return module.register_forward_pre_hook(lambda _, inputs: see(inputs[0]))
