"""A model folder that is no sound input is refused before a weight is loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from calibration.tiny import END
from tiny_chain import real_model
from trtpipe.errors import ConfigError, Problems
from trtpipe.quantization import preflight


def change(model: Path, **changes: Any) -> None:
    path = model / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def put(model: Path, **tensors: torch.Tensor) -> None:
    path = model / "model.safetensors"
    save_file(load_file(path) | {f"{name}.weight": tensor for name, tensor in tensors.items()}, path, {"format": "pt"})


def test_a_sound_model_passes(tmp_path: Path) -> None:
    preflight.check(real_model(tmp_path / "model"))


def test_a_vocabulary_that_is_not_the_embeddings_is_refused(tmp_path: Path) -> None:
    model = real_model(tmp_path / "model")
    change(model, vocab_size=END + 5)
    with pytest.raises(ConfigError, match=rf"has {END + 1} rows, config.json says vocab_size {END + 5}"):
        preflight.check(model)


def test_a_tokenizer_with_more_ids_than_the_embedding_has_rows_is_refused(tmp_path: Path) -> None:
    model = real_model(tmp_path / "model")
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    tokenizer["added_tokens"][-1]["id"] = 300
    (model / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(ConfigError, match=rf"ids go up to 300, the embedding has {END + 1} rows"):
        preflight.check(model)


def test_a_pieces_list_counts_as_ids(tmp_path: Path) -> None:
    model = real_model(tmp_path / "model")
    (model / "tokenizer.json").write_text(json.dumps({"model": {"vocab": [["a", 0.0]] * 400}}))
    with pytest.raises(ConfigError, match="ids go up to 399"):
        preflight.check(model)


def test_a_tied_head_that_is_another_is_refused(tmp_path: Path) -> None:
    model = real_model(tmp_path / "model")
    embedding = load_file(model / "model.safetensors")["model.embed_tokens.weight"]
    put(model, lm_head=embedding.clone())
    preflight.check(model)
    put(model, lm_head=embedding + 1)
    with pytest.raises(ConfigError, match="ties the head to the embedding, and the files hold another"):
        preflight.check(model)


def test_gemma_2_is_tied_unless_it_says_otherwise(tmp_path: Path) -> None:
    model = real_model(tmp_path / "model")
    path = model / "config.json"
    config = {name: value for name, value in json.loads(path.read_text()).items() if name != "tie_word_embeddings"}
    path.write_text(json.dumps(config | {"model_type": "gemma2"}))
    preflight.check(model)
    path.write_text(json.dumps(config))
    with pytest.raises(ConfigError, match=r"there is no `lm_head\.weight`"):
        preflight.check(model)


def test_a_head_that_is_missing_is_named_with_all_other_problems(tmp_path: Path) -> None:
    model = real_model(tmp_path / "model")
    change(model, tie_word_embeddings=False, vocab_size=999)
    with pytest.raises(Problems) as caught:
        preflight.check(model)
    texts = [problem.what for problem in caught.value.each()]
    assert any("does not tie it" in text for text in texts)
    assert any("vocab_size 999" in text for text in texts)
