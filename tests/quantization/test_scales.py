from __future__ import annotations

import pytest
import torch

from trtpipe.quantization import scales
from trtpipe.quantization.statistics import InputStatistics


def outlier_inputs() -> torch.Tensor:
    x = torch.randn(512, 64, generator=torch.Generator().manual_seed(1))
    x[:, 3] *= 40
    return x


def test_scaling_protects_the_channel_with_large_activations() -> None:
    x = outlier_inputs()
    weight = torch.randn(32, 64, generator=torch.Generator().manual_seed(2))
    statistics = InputStatistics(64, x.device)
    statistics.add(x)
    found = scales.search(weight, statistics, statistics.mean_magnitude, group_size=64, grid_points=20)
    assert found.alpha > 0
    assert found.error_scaled < found.error_rounding / 2
    assert found.scale.argmax() == 3


def test_the_error_from_statistics_is_the_error_on_the_tokens() -> None:
    x = outlier_inputs()
    weight = torch.randn(32, 64, generator=torch.Generator().manual_seed(2))
    statistics = InputStatistics(64, x.device)
    statistics.add(x)
    scale = scales.candidate(statistics.mean_magnitude, 0.5)
    rounded = scales.quantize(weight * scale, 64).weight() / scale
    on_tokens = float((x @ (rounded - weight).T).square().sum())
    assert scales.output_error(weight, scale, statistics, 64) == pytest.approx(on_tokens, rel=1e-3)


def test_no_grid_points_is_plain_rounding() -> None:
    x, weight = outlier_inputs(), torch.randn(8, 64)
    statistics = InputStatistics(64, x.device)
    statistics.add(x)
    found = scales.search(weight, statistics, statistics.mean_magnitude, group_size=64, grid_points=0)
    assert found.alpha == 0
    assert torch.equal(found.scale, torch.ones(64))


def test_tied_scales_are_equal_within_a_query_group() -> None:
    magnitude = torch.arange(1.0, 17.0)  # 4 query heads of width 4, 2 KV heads
    tied = scales.tied_magnitude(magnitude, 4, 2)
    assert tied.tolist() == [3, 4, 5, 6, 3, 4, 5, 6, 11, 12, 13, 14, 11, 12, 13, 14]
    assert scales.untied(tied, 4, 2).tolist() == [3, 4, 5, 6, 11, 12, 13, 14]
