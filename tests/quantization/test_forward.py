from __future__ import annotations

from pathlib import Path

import tiny
import torch

from trtpipe.quantization import kv_range
from trtpipe.quantization.forward import LENGTH_STEP, Batch, batches, collecting, forward
from trtpipe.quantization.stack import DecoderStack


def test_rows_of_nearly_equal_lengths_go_together_and_every_token_counts_once() -> None:
    rows = [[1] * length for length in (5, 70, 64, 65, 128)]
    made = batches(rows, torch.device("cpu"))
    assert [tuple(batch.inputs.shape) for batch in made] == [(2, 64), (3, 128)]
    assert sum(int(batch.mask.sum()) for batch in made) == sum(map(len, rows))


def test_filling_changes_no_real_token_and_no_statistic(tmp_path: Path) -> None:
    stack = DecoderStack(tiny.save(tmp_path), dtype=torch.float64)
    layer, real = stack.layer(0), torch.randn(1, 7, 128, dtype=torch.float64)
    filled = torch.cat([real, 100 * torch.randn(1, LENGTH_STEP - 7, 128, dtype=torch.float64)], dim=1)
    attention, outcomes = layer.get_submodule("self_attn"), []
    groups = stack.architecture.groups_of(layer.state_dict())
    for hidden in (real, filled):
        mask = torch.arange(hidden.shape[1])[None] < 7
        seen = kv_range.KvRange()
        setattr(attention, kv_range.ATTRIBUTE, None)
        with collecting(layer, groups) as collector:
            forward(layer, [Batch(hidden, mask)], stack.arguments(0), collector)
        setattr(attention, kv_range.ATTRIBUTE, seen)
        output = forward(layer, [Batch(hidden, mask)], stack.arguments(0), seen)[0].inputs[mask]
        outcomes.append((output, collector.statistics["mlp output"].gram, seen.key_amax, seen.value_amax))
    (output, gram, *amax), (output_filled, gram_filled, *amax_filled) = outcomes
    torch.testing.assert_close(output_filled, output)
    torch.testing.assert_close(gram_filled, gram)
    assert amax_filled == amax
