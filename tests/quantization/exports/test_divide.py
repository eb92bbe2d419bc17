"""Widths of published models: no weights are needed to say what is legal."""

from __future__ import annotations

import pytest

from trtpipe.core.sharing import Decoder
from trtpipe.errors import ConfigError, Problems
from trtpipe.quantization.exports.divide import divide, legal
from trtpipe.quantization.exports.tensor_parallel import Division

#                     hidden intermediate heads kv width vocabulary layers
MODELS = {
    "Llama-3.1-70B": Decoder(8192, 28672, 64, 8, 128, 128256, 80),
    "Llama-2-7B": Decoder(4096, 11008, 32, 32, 128, 32000, 32),
    "Llama-2-13B": Decoder(5120, 13824, 40, 40, 128, 32000, 40),
    "Qwen2.5-72B": Decoder(8192, 29568, 64, 8, 128, 152064, 80),
    "Qwen2.5-32B": Decoder(5120, 27648, 40, 8, 128, 152064, 64),
    "Qwen2.5-14B": Decoder(5120, 13824, 40, 8, 128, 152064, 48),
    "Qwen2.5-7B": Decoder(3584, 18944, 28, 4, 128, 152064, 28),
    "Qwen2.5-0.5B": Decoder(896, 4864, 14, 2, 64, 151936, 24),
}
LEGAL = {  # group 128, group 64, and group 128 with a padded intermediate size, of TP 1 2 4 8
    "Llama-3.1-70B": ([1, 2, 4, 8], [1, 2, 4, 8], [1, 2, 4, 8]),
    "Llama-2-7B": ([1, 2], [1, 2, 4], [1, 2, 4, 8]),
    "Llama-2-13B": ([1, 2, 4], [1, 2, 4, 8], [1, 2, 4, 8]),
    "Qwen2.5-72B": ([1], [1, 2], [1, 2, 4, 8]),
    "Qwen2.5-32B": ([1, 2, 4, 8], [1, 2, 4, 8], [1, 2, 4, 8]),
    "Qwen2.5-14B": ([1, 2, 4], [1, 2, 4, 8], [1, 2, 4, 8]),
    "Qwen2.5-7B": ([1, 2, 4], [1, 2, 4], [1, 2, 4]),
    "Qwen2.5-0.5B": ([1], [1, 2], [1]),
}


def shared(name: str, group_size: int, tensor_parallel: int, *, pad: bool = False, stages: int = 1) -> Division:
    return divide(
        MODELS[name], group_size, tensor_parallel=tensor_parallel, pipeline_parallel=stages, pad_intermediate=pad
    )


@pytest.mark.parametrize("name", MODELS)
def test_legal_tensor_parallel_sizes(name: str) -> None:
    plain, with_padding = legal(MODELS[name], pad_intermediate=False), legal(MODELS[name], pad_intermediate=True)
    found = [[size for size in sizes if size in {1, 2, 4, 8}] for sizes in (plain[128], plain[64], with_padding[128])]
    assert found == list(LEGAL[name])


@pytest.mark.parametrize("tensor_parallel", [2, 4, 8])
def test_o_14_29568_is_refused_and_29696_offered(tensor_parallel: int) -> None:
    with pytest.raises(ConfigError, match="intermediate width 29568 is no multiple") as caught:
        shared("Qwen2.5-72B", 128, tensor_parallel)
    assert caught.value.where == "mlp.fc, mlp.gate, mlp.proj"
    assert caught.value.fix is not None
    assert caught.value.fix.startswith("legal: group 128: TP 1; group 64: TP 1, 2")
    assert caught.value.fix.endswith("or --pad: widen the intermediate size with zeros to 29696")
    assert shared("Qwen2.5-72B", 128, tensor_parallel, pad=True).intermediate == 29696


def test_o_15_the_groups_of_a_rank_are_shown() -> None:
    with pytest.raises(ConfigError, match=r"11008 is no multiple of 512 .* 2752 a rank, 21\.5 groups") as caught:
        shared("Llama-2-7B", 128, 4)
    assert str(caught.value.fix).startswith("legal: group 128: TP 1, 2; group 64: TP 1, 2, 4;")


def test_o_16_a_smaller_group_fits() -> None:
    with pytest.raises(ConfigError, match="13824 is no multiple of 1024"):
        shared("Llama-2-13B", 128, 8)
    assert shared("Llama-2-13B", 64, 8).intermediate // 8 // 64 == 27


@pytest.mark.parametrize("group_size", [16, 32, 256])
def test_o_17_other_group_sizes_are_refused_at_once(group_size: int) -> None:
    with pytest.raises(ConfigError, match=f"no group size {group_size}") as caught:
        shared("Llama-3.1-70B", group_size, 1)
    assert "group 128: TP 1, 2, 4, 8" in str(caught.value.fix)


def test_o_24_a_stated_head_width_decides_the_qkv_rows() -> None:
    shape = Decoder(5120, 27648, 64, 8, 128, 151936, 64)
    division = divide(shape, 128, tensor_parallel=1, pipeline_parallel=1, pad_intermediate=False)
    assert division.qkv_width == 10240
    config = {"hidden_size": 5120, "intermediate_size": 27648, "num_attention_heads": 64, "num_key_value_heads": 8,
              "head_dim": 128, "vocab_size": 151936, "num_hidden_layers": 64}  # fmt: skip
    assert Decoder.from_config(config) == shape
    assert Decoder.from_config({**config, "head_dim": None}).head_width == 80


def test_o_27_heads_that_do_not_divide_are_refused_with_all_problems() -> None:
    with pytest.raises(Problems) as caught:
        shared("Qwen2.5-7B", 128, 8)
    problems = caught.value.each()
    assert problems[0].what == "28 attention heads cannot be shared by TP 8: 4 are left over"
    assert problems[0].fix == "legal: group 128: TP 1, 2, 4; group 64: TP 1, 2, 4"
    assert "18944" in "".join(problem.what for problem in problems)
    with pytest.raises(ConfigError, match="4 KV heads can neither be shared nor repeated by TP 7"):
        shared("Qwen2.5-7B", 64, 7)


def test_kv_heads_are_repeated_in_a_row() -> None:
    shape = Decoder(2048, 11008, 16, 2, 128, 151936, 36)
    division = divide(shape, 64, tensor_parallel=4, pipeline_parallel=1, pad_intermediate=False)
    assert [list(division.kv_heads_of(rank)) for rank in range(4)] == [[0], [0], [1], [1]]
    assert division.qkv_width == (16 + 2 * 4) * 128


def test_stages_differ_by_one_layer_at_most() -> None:
    division = shared("Qwen2.5-7B", 64, 1, stages=3)
    assert [division.layers_of(stage).start for stage in range(3)] == [0, 10, 19]
    assert division.layers_of(2).stop == 28
    with pytest.raises(ConfigError, match="28 layers are too few for 29"):
        shared("Qwen2.5-7B", 64, 1, stages=29)


def test_a_vocabulary_that_head_and_runtime_pad_differently_is_refused() -> None:
    shape = Decoder(4096, 14336, 32, 8, 128, 32002, 32)
    assert divide(shape, 128, tensor_parallel=4, pipeline_parallel=1, pad_intermediate=False).vocabulary_rows == 8001
    with pytest.raises(ConfigError, match="vocabulary of 32002"):
        divide(shape, 128, tensor_parallel=2, pipeline_parallel=2, pad_intermediate=False)
