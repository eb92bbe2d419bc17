from __future__ import annotations

import torch

from trtpipe.quantization.statistics import InputStatistics, OutputEnergy


def test_output_energy_equals_a_pass_over_the_tokens() -> None:
    x, weight = torch.randn(35, 16), torch.randn(4, 16)
    statistics = InputStatistics(16, x.device)
    statistics.add(x[:14])
    statistics.add(x[14:])
    assert statistics.tokens == 35
    torch.testing.assert_close(statistics.mean_magnitude, x.abs().mean(dim=0))
    torch.testing.assert_close(
        float(OutputEnergy(statistics.gram).of_rows(weight).sum()),
        float((x @ weight.T).square().sum()),
        rtol=1e-4,
        atol=0,
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


def test_g_is_whole_at_any_width() -> None:
    for width in (1, 3, 7, 66):
        x = torch.randn(50, width)
        statistics = InputStatistics(width, x.device)
        statistics.add(x)
        torch.testing.assert_close(statistics.gram, x.T @ x)
