"""The rules by which a decoder is shared out, whoever asks."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from trtpipe.core.sharing import Decoder, Shared, group_step

# hidden, intermediate, heads, KV heads, head width, vocabulary, layers
QWEN_7B = Decoder(3584, 18944, 28, 4, 128, 152064, 28)


@dataclass(frozen=True)
class Ranks(Shared):
    shape: Decoder
    tensor_parallel: int
    pipeline_parallel: int = 1


@pytest.mark.parametrize(
    ("size", "left_over", "kv_fits", "qkv"),
    [(1, 0, True, 36 * 128), (4, 0, True, 36 * 128), (7, 0, False, 42 * 128), (8, 4, True, 44 * 128)],
)
def test_heads_are_shared_or_repeated(size: int, left_over: int, kv_fits: bool, qkv: int) -> None:
    ranks = Ranks(QWEN_7B, size)
    assert (ranks.heads_left_over, ranks.kv_heads_fit, ranks.qkv_width) == (left_over, kv_fits, qkv)


def test_every_rank_holds_whole_groups_of_the_least_width() -> None:
    assert (group_step(128, 8), group_step(64, 8), group_step(64, 8, least=128)) == (1024, 512, 1024)
    widths = Ranks(QWEN_7B, 4).widths(19456)
    assert widths == {"intermediate": 19456, "hidden": 3584, "attention": 3584, "qkv": 4608}


def test_head_and_runtime_pad_the_vocabulary_on_their_own() -> None:
    odd = Decoder(4096, 14336, 32, 8, 128, 32002, 32)
    staged = Ranks(odd, 2, 2)
    assert (staged.vocabulary, staged.runtime_vocabulary) == (32002, 32004)
    assert Ranks(odd, 4).vocabulary == Ranks(odd, 4).runtime_vocabulary == 32004


def test_the_first_stages_hold_one_layer_more() -> None:
    ranks = Ranks(QWEN_7B, 1, 3)
    assert [ranks.layers_of(stage) for stage in range(3)] == [range(10), range(10, 19), range(19, 28)]


def test_what_config_json_leaves_out() -> None:
    config = {"hidden_size": 5120, "intermediate_size": 1, "num_attention_heads": 64, "vocab_size": 9,
              "num_hidden_layers": 2}  # fmt: skip
    read = Decoder.from_config(config)
    assert (read.kv_heads, read.head_width) == (64, 80)
    assert Decoder.from_config(config | {"head_dim": 128, "num_key_value_heads": 8}).head_width == 128
