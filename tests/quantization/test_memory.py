from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trtpipe.errors import EnvironmentUnfit
from trtpipe.quantization import memory
from trtpipe.quantization.architectures import architecture_of
from trtpipe.quantization.device import Compute

GPU = Compute(torch.device("cuda"), torch.bfloat16, "a GPU")
CPU = Compute(torch.device("cpu"), torch.float32, "a CPU")


def shapes(hidden: int, inner: int, kv: int) -> dict[str, list[int]]:
    rows = {"q": hidden, "k": kv, "v": kv, "o": hidden}
    made = {f"self_attn.{name}_proj.weight": [size, hidden] for name, size in rows.items()}
    return made | {
        "mlp.gate_proj.weight": [inner, hidden],
        "mlp.up_proj.weight": [inner, hidden],
        "mlp.down_proj.weight": [hidden, inner],
        "input_layernorm.weight": [hidden],
        "post_attention_layernorm.weight": [hidden],
    }


def need(hidden: int, inner: int, kv: int, tokens: int, compute: Compute = GPU) -> memory.Need:
    layer = shapes(hidden, inner, kv)
    return memory.need(layer, architecture_of("qwen2").groups_of(layer), hidden, tokens, compute)


@pytest.mark.parametrize(
    ("shape", "measured_gib"),
    [((8192, 29568, 1024), 24.7), ((3584, 18944, 512), 9.5)],  # benchmarks/results/h200.json, 65,536 tokens
)
def test_what_was_measured_is_estimated_and_not_below(shape: tuple[int, int, int], measured_gib: float) -> None:
    estimate = need(*shape, tokens=65_536).total / memory.GIB
    assert measured_gib <= estimate <= 1.35 * measured_gib


@given(st.integers(1, 10_000), st.integers(1, 10_000))
def test_more_tokens_take_more(fewer: int, more: int) -> None:
    one, two = (need(256, 512, 64, tokens, CPU).total for tokens in (fewer, fewer + more))
    assert one < two


def test_too_little_memory_for_a_layer_names_which_memory_and_how_much() -> None:
    found = need(8192, 28672, 1024, 65_536, CPU)
    with pytest.raises(EnvironmentUnfit, match=r"out of RAM: about .* GiB of RAM needed \(one layer") as caught:
        memory.require(found, found.least - 1, CPU)
    assert f"a machine with {found.least / memory.GIB:.1f} GiB of free RAM" in caught.value.fix
    with pytest.raises(EnvironmentUnfit, match="GiB free for each of 2 processes") as caught:
        memory.require(found, found.least, CPU, sharers=2)
    assert f"{2 * found.least / memory.GIB:.1f} GiB of free RAM, or fewer quantization.processes" in caught.value.fix
    with pytest.raises(EnvironmentUnfit, match="out of GPU memory"):
        memory.require(found, memory.GIB, GPU)


def test_activations_alone_may_be_larger_than_the_memory() -> None:
    found = need(8192, 28672, 1024, 65_536, CPU)
    assert memory.require(found, found.total - 1, CPU).endswith("read from disk for each layer, which is slower")
    assert memory.require(found, found.least, CPU).endswith("read from disk for each layer, which is slower")


def test_what_fits_is_said() -> None:
    found = need(256, 512, 64, 1000, CPU)
    assert memory.require(found, 8 * memory.GIB, CPU).endswith("8.0 GiB free")
    assert memory.free_bytes(CPU) > 0
