from __future__ import annotations

import torch

from trtpipe.quantization.statistics import InputStatistics, row_errors


def test_output_energy_equals_a_pass_over_the_tokens() -> None:
    x, weight = torch.randn(35, 16), torch.randn(4, 16)
    statistics = InputStatistics(16, x.device)
    statistics.add(x[:14])
    statistics.add(x[14:])
    assert statistics.tokens == 35
    torch.testing.assert_close(statistics.mean_magnitude, x.abs().mean(dim=0))
    torch.testing.assert_close(
        float(row_errors(weight, statistics.gram).sum()), float((x @ weight.T).square().sum()), rtol=1e-4, atol=0
    )


def test_bfloat16_inputs_are_accumulated_in_float32() -> None:
    ones = torch.ones(1000, 2, dtype=torch.bfloat16)
    statistics = InputStatistics(2, ones.device)
    statistics.add(ones)
    assert statistics.gram.tolist() == [
        [1000.0, 1000.0],
        [1000.0, 1000.0],
    ]  # bfloat16 would have 1000 too, 1001 not
    statistics.add(ones[:1])
    assert statistics.gram[0, 0] == 1001.0
