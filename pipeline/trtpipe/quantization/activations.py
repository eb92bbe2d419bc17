"""Hidden states between two decoder layers, in a file that a killed run goes on from.

The file is mapped: the kernel holds it in memory while there is room and pages it out when there is none. So it is
the disk that bounds the calibration tokens, not the memory.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import torch

FOLDER = ".progress"


@dataclass(frozen=True)
class Places:
    """Where each batch's hidden states belong. ``resident``: they stay on their device too."""

    tensors: list[torch.Tensor]
    resident: bool

    def put(self, batch: int, states: torch.Tensor) -> torch.Tensor:
        """Store a batch's states and return those to go on with."""
        self.tensors[batch].copy_(states)
        return states if self.resident else self.tensors[batch]


class Activations:
    """The hidden states of all batches, layer after layer, and the reports of the layers that are done.

    Each of several ranks keeps the states of its own prompts; the first one also keeps the reports.
    """

    def __init__(
        self,
        folder: Path,
        shapes: Sequence[tuple[int, ...]],
        dtype: torch.dtype,
        *,
        resident: bool = False,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        """``shapes``: [rows, tokens, width] of each batch."""
        self.folder = folder / FOLDER
        self.folder.mkdir(exist_ok=True)
        self._shapes, self._dtype, self._resident = shapes, dtype, resident
        self._rank, self._of_rank = rank, f"{rank}-of-{ranks}"

    def room(self, layer: int) -> Places:
        """Make room for the inputs of a layer. Raises OSError where the disk has none.

        At once, because a process that writes to a mapped file beyond the end of its disk is killed.
        """
        path = self._unfinished(layer)
        with path.open("wb") as file:
            try:
                os.posix_fallocate(file.fileno(), 0, self._size_bytes)
            except OSError as fault:
                raise OSError(fault.errno, fault.strerror, str(path)) from None
        return Places(self._mapped(path), self._resident)

    def keep(self, layer: int, report: dict[str, object] | None = None) -> None:
        """Note that the inputs of ``layer`` are in their room, and the report of the layer before it."""
        if report is not None and self._rank == 0:
            self._report(layer - 1).write_text(json.dumps(report), encoding="utf-8")
        with self._unfinished(layer).open("rb") as file:
            os.fsync(file.fileno())
        self._unfinished(layer).replace(self._states(layer))
        # The one before stays: a rank may be killed one layer earlier.
        self._states(layer - 2).unlink(missing_ok=True)

    def kept_layer(self) -> int:
        """Return the layer whose inputs are kept of a killed run of the same form; 0 where there is none."""
        kept = [
            int(path.name.split("-")[1])
            for path in self.folder.glob(f"hidden-???-{self._of_rank}")
            if path.stat().st_size == self._size_bytes
        ]
        return max(kept, default=0)

    def resume(self, layer: int) -> tuple[list[torch.Tensor], list[dict[str, object]]]:
        """Return the kept inputs of a layer, and the reports of those before it."""
        reports = [
            json.loads(self._report(index).read_text("utf-8")) for index in range(layer if self._rank == 0 else 0)
        ]
        return self._mapped(self._states(layer)), reports

    def drop(self) -> None:
        """Remove what is kept, of all ranks: states first, without which a killed run begins again."""
        for path in sorted(self.folder.iterdir()):
            path.unlink()
        self.folder.rmdir()

    @property
    def _size_bytes(self) -> int:
        return sum(map(prod, self._shapes)) * self._dtype.itemsize

    def _states(self, layer: int) -> Path:
        return self.folder / f"hidden-{layer:03d}-{self._of_rank}"

    def _unfinished(self, layer: int) -> Path:
        return self.folder / f".hidden-{layer:03d}-{self._of_rank}"

    def _report(self, layer: int) -> Path:
        return self.folder / f"layer-{layer:03d}.json"

    def _mapped(self, path: Path) -> list[torch.Tensor]:
        sizes = [prod(shape) for shape in self._shapes]
        whole = torch.from_file(str(path), shared=True, size=sum(sizes), dtype=self._dtype)
        return [part.view(shape) for part, shape in zip(whole.split(sizes), self._shapes, strict=True)]
