"""What each tensor- and pipeline-parallel rank holds of a model, by the rules of `core/sharing.py`.

T:tensorrt_llm/models/convert_utils.py (dup_kv_weight, split_embedding).
"""

from __future__ import annotations

from dataclasses import dataclass

from trtpipe.core.sharing import Decoder, Shared, group_step
from trtpipe.quantization.exports.trtllm_layout import FusedLinear


@dataclass(frozen=True)
class Division(Shared):
    """A model over TP x PP ranks; ``intermediate`` includes the zero rows and columns added to it."""

    shape: Decoder
    group_size: int
    tensor_parallel: int
    pipeline_parallel: int
    intermediate: int

    @property
    def step(self) -> int:
        """What a width must be a multiple of."""
        return group_step(self.group_size, self.tensor_parallel)

    def linear_shape(self, linear: FusedLinear) -> tuple[int, int]:
        """Return [out, in] of one rank."""
        widths = self.widths(self.intermediate)
        rows, columns = widths[linear.out_width], widths[linear.in_width]
        if linear.split == "rows":
            return rows // self.tensor_parallel, columns
        return rows, columns // self.tensor_parallel

    @property
    def vocabulary_rows(self) -> int:
        """Rows of embedding and head of one rank: the vocabulary rounded up to a multiple of TP.

        The engine keeps the true vocabulary size, so its sampling layers mask the rows added here.
        """
        return self.vocabulary // self.tensor_parallel

    def kv_heads_of(self, rank: int) -> range:
        """Return the KV heads of a tensor-parallel rank."""
        if self.shape.kv_heads >= self.tensor_parallel:
            count = self.shape.kv_heads // self.tensor_parallel
            return range(rank * count, (rank + 1) * count)
        head = rank // (self.tensor_parallel // self.shape.kv_heads)
        return range(head, head + 1)
