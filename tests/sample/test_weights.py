"""Names, row order and numbers of the converted weights."""

from __future__ import annotations

import numpy as np
import pytest

weights = pytest.importorskip("trtpipe.sample.weights")

HEAD_DIM, HEADS, HIDDEN = 8, 3, 5


def rotated(vector: np.ndarray, position: int, pairs: list[tuple[int, int]]) -> np.ndarray:
    """RoPE on one head, with its rows paired as given."""
    result = np.empty_like(vector)
    for index, (a, b) in enumerate(pairs):
        angle = position * 10000.0 ** (-index / len(pairs))
        result[a] = vector[a] * np.cos(angle) - vector[b] * np.sin(angle)
        result[b] = vector[a] * np.sin(angle) + vector[b] * np.cos(angle)
    return result


def test_attention_scores_do_not_depend_on_the_row_order() -> None:
    random = np.random.default_rng(0)
    query, key = (random.normal(size=(HEADS * HEAD_DIM, HIDDEN)) for _ in range(2))
    x, y = random.normal(size=(2, HIDDEN))
    neighbours = [(row, row + 1) for row in range(0, HEAD_DIM, 2)]
    halves = [(row, row + HEAD_DIM // 2) for row in range(HEAD_DIM // 2)]

    def scores(query: np.ndarray, key: np.ndarray, pairs: list[tuple[int, int]]) -> list[float]:
        heads = zip((query @ x).reshape(HEADS, -1), (key @ y).reshape(HEADS, -1), strict=True)
        return [float(rotated(q, 11, pairs) @ rotated(k, 4, pairs)) for q, k in heads]

    apart = scores(weights.halves_apart(query, HEADS), weights.halves_apart(key, HEADS), halves)
    np.testing.assert_allclose(apart, scores(query, key, neighbours))


@pytest.mark.parametrize(
    ("llama_cpp", "hugging_face"),
    [
        ("token_embd.weight", "model.embed_tokens.weight"),
        ("blk.7.attn_output.weight", "model.layers.7.self_attn.o_proj.weight"),
        ("blk.12.ffn_norm.weight", "model.layers.12.post_attention_layernorm.weight"),
    ],
)
def test_names(llama_cpp: str, hugging_face: str) -> None:
    assert weights.hugging_face_name(llama_cpp) == hugging_face


def test_a_tensor_of_another_architecture_is_not_passed_over() -> None:
    with pytest.raises(KeyError):
        weights.hugging_face_name("blk.0.attn_q_norm.weight")


def test_a_float32_comes_back_as_the_decimal_it_was_made_from() -> None:
    assert weights.shortest(9.999999747378752e-06) == 1e-5
