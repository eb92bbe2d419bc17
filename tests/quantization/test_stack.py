"""Layer by layer gives what transformers gives in one pass: masks, caps and embedding factors included."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tiny
import torch

from trtpipe.errors import ConfigError
from trtpipe.quantization.forward import Batch, forward
from trtpipe.quantization.stack import DecoderStack


@pytest.mark.parametrize("model_type", tiny.OWN)
def test_the_last_layers_output_is_transformers(tmp_path: Path, model_type: str) -> None:
    stack = DecoderStack(tiny.own(tmp_path, model_type), dtype=torch.float64)
    model = tiny.model_of(tmp_path)
    ids = torch.randint(0, 96, (2, 40))
    hidden = [Batch(stack.embed(ids), torch.ones(ids.shape, dtype=torch.bool))]
    for index in range(stack.layers):
        hidden = forward(stack.layer(index), hidden, stack.arguments(index))
    with torch.inference_mode():
        expected = model.model(ids).last_hidden_state
        # transformers' eager attention takes the softmax in float32
        assert float((model.model.norm(hidden[0].inputs) - expected).norm() / expected.norm()) < 1e-6


def test_an_unknown_model_type_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "mamba"}))
    with pytest.raises(ConfigError, match="`mamba`") as caught:
        DecoderStack(tmp_path, torch.float32)
    assert "gemma2, llama, mistral" in str(caught.value.fix)
