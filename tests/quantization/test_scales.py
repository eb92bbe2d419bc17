from __future__ import annotations

import pytest
import torch

from trtpipe.quantization import scales
from trtpipe.quantization.grid import quantize
from trtpipe.quantization.statistics import InputStatistics, OutputEnergy


def search(weight: torch.Tensor, statistics: InputStatistics, grid_points: int) -> scales.Found:
    return scales.search(
        weight, statistics.gram, statistics.mean_magnitude, lambda values: values,
        group_size=64, grid_points=grid_points, symmetric=True,
    )  # fmt: skip


def outlier_inputs() -> torch.Tensor:
    x = torch.randn(512, 64, generator=torch.Generator().manual_seed(1))
    x[:, 3] *= 40
    return x


def test_scaling_protects_the_channel_with_large_activations() -> None:
    x = outlier_inputs()
    weight = torch.randn(32, 64, generator=torch.Generator().manual_seed(2))
    statistics = InputStatistics(64, x.device)
    statistics.add(x)
    found = search(weight, statistics, grid_points=20)
    assert found.family != "none"
    assert found.error_scaled < found.error_rounding / 2
    assert found.scale.argmax() == 3


def test_the_error_from_statistics_is_the_error_on_the_tokens() -> None:
    x = outlier_inputs()
    weight = torch.randn(32, 64, generator=torch.Generator().manual_seed(2))
    statistics = InputStatistics(64, x.device)
    statistics.add(x)
    scale = scales.balanced(statistics.mean_magnitude, 0.5)
    rounded = quantize(weight * scale, 64).weight() / scale
    on_tokens = float((x @ (rounded - weight).T).square().sum())
    error = scales.output_error(weight, scale, OutputEnergy(statistics.gram), 64, symmetric=True)
    assert float(error) == pytest.approx(on_tokens, rel=1e-3)


def test_no_grid_points_is_plain_rounding() -> None:
    x, weight = outlier_inputs(), torch.randn(8, 64)
    statistics = InputStatistics(64, x.device)
    statistics.add(x)
    found = search(weight, statistics, grid_points=0)
    assert found.family == "none"
    assert torch.equal(found.scale, torch.ones(64))


def test_tied_scales_are_equal_within_a_query_group() -> None:
    magnitude = torch.arange(1.0, 17.0)  # 4 query heads of width 4, 2 KV heads
    tied = scales.tied(magnitude, 4, 2)
    assert tied.tolist() == [3, 4, 5, 6, 3, 4, 5, 6, 11, 12, 13, 14, 11, 12, 13, 14]
    assert scales.untied(tied, 4, 2).tolist() == [3, 4, 5, 6, 11, 12, 13, 14]


def test_both_families_are_tried_and_the_better_one_is_taken() -> None:
    """A channel whose weights are all small costs nothing to scale up: only the weights' own magnitude tells."""
    generator = torch.Generator().manual_seed(3)
    weight = torch.randn(64, 64, generator=generator)
    weight[:, 5] *= 0.02
    x = torch.randn(512, 64, generator=generator)
    statistics = InputStatistics(64, x.device)
    statistics.add(x)
    found = search(weight, statistics, grid_points=20)
    assert found.family == "activations and weights"
    assert found.error_scaled < found.error_rounding


def test_a_sample_of_rows_finds_nearly_the_scale_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    x, weight = outlier_inputs(), torch.randn(256, 64, generator=torch.Generator().manual_seed(4))
    statistics = InputStatistics(64, x.device)
    statistics.add(x)
    whole = search(weight, statistics, grid_points=10)
    monkeypatch.setattr(scales, "ROWS_SEARCHED", 32)
    sampled = search(weight, statistics, grid_points=10)
    assert sampled.error_scaled < whole.error_scaled * 1.05
