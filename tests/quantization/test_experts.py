from __future__ import annotations

from pathlib import Path

import tiny
import torch

from trtpipe.quantization import experts
from trtpipe.quantization.forward import Batch, collecting, forward
from trtpipe.quantization.stack import DecoderStack


def test_apart_and_together_are_inverse() -> None:
    fused = {
        experts.GATE_UP: torch.randn(3, 8, 4),
        experts.DOWN: torch.randn(3, 4, 4),
        "mlp.gate.weight": torch.ones(1),
    }
    apart = experts.apart(fused)
    assert torch.equal(apart["mlp.experts.2.up_proj.weight"], fused[experts.GATE_UP][2, 4:])
    together = experts.together(apart)
    assert together.keys() == fused.keys()
    assert all(torch.equal(together[name], tensor) for name, tensor in fused.items())


def test_each_expert_counts_the_real_tokens_that_it_got(tmp_path: Path) -> None:
    stack = DecoderStack(tiny.own(tmp_path, "qwen2_moe"), dtype=torch.float32)
    layer = stack.layer(0)
    hidden = torch.randn(2, 30, 128)
    mask = torch.arange(30)[None] < torch.tensor([[30], [11]])
    routed: list[torch.Tensor] = []
    layer.get_submodule("mlp.gate").register_forward_hook(lambda _, __, output: routed.append(output[2]))
    groups = stack.architecture.groups_of(experts.apart(layer.state_dict()))
    with collecting(layer, groups) as collector:
        forward(layer, [Batch(hidden, mask)], stack.arguments(0), collector)
    chosen = routed[0][mask.flatten()]
    for expert in range(4):
        assert collector.statistics[f"expert {expert} output"].tokens == int((chosen == expert).sum())
    assert collector.statistics["mlp input"].tokens == collector.statistics["shared expert output"].tokens == 41
    assert getattr(layer.get_submodule("mlp.experts"), experts.ATTRIBUTE) is None
