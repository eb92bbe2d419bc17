"""A causal LM opened for one decoder layer at a time: modules by transformers, weights from safetensors on demand."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig
from transformers.masking_utils import create_masks_for_generate

from trtpipe.errors import ConfigError
from trtpipe.quantization import experts, kv_range
from trtpipe.quantization.architectures import architecture_of

INDEX = "model.safetensors.index.json"


class DecoderStack:
    """Embedding, decoder layers and the rest of a model folder, each loaded when asked for."""

    def __init__(self, folder: Path, dtype: torch.dtype, device: torch.device | str = "cpu") -> None:
        """Open the folder; layers compute in ``dtype`` on ``device``.

        Raises ConfigError for a model that is not whole or of an unknown architecture.
        """
        kv_range.register()
        experts.register()
        self.architecture = architecture_of(json.loads((folder / "config.json").read_text("utf-8"))["model_type"])
        self.config: PreTrainedConfig = AutoConfig.from_pretrained(folder, local_files_only=True)
        self.dtype, self.device = dtype, torch.device(device)
        self._files = ExitStack()
        self._tensors = self._open(folder)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(
                self.config,
                dtype=dtype,
                attn_implementation=kv_range.ATTENTION,
                experts_implementation=experts.IMPLEMENTATION,
                trust_remote_code=False,
            )
        model.eval()
        self._decoder: Any = model.model
        self.rotary = type(self._decoder.rotary_emb)(config=self.config).to(self.device)

    def _open(self, folder: Path) -> dict[str, Any]:
        tensors: dict[str, Any] = {}
        for path in sorted(folder.glob("*.safetensors")):
            try:
                file = self._files.enter_context(safe_open(path, framework="pt"))
            except SafetensorError as fault:
                raise ConfigError(
                    f"not a whole safetensors file: {fault}",
                    where=str(path),
                    fix="fetch or copy this file again",
                ) from None
            tensors |= dict.fromkeys(file.keys(), file)
        self._require_indexed(folder, tensors)
        return tensors

    def _require_indexed(self, folder: Path, tensors: dict[str, Any]) -> None:
        index = folder / INDEX
        if index.is_file():
            missing = sorted(json.loads(index.read_text("utf-8"))["weight_map"].keys() - tensors.keys())
            if missing:
                raise ConfigError(
                    f"{len(missing)} tensor(s) of the index are in no file, first {missing[0]}",
                    where=str(index),
                    fix="fetch the missing shard(s)",
                )

    @property
    def layers(self) -> int:
        return int(self.config.num_hidden_layers)

    def tensor(self, name: str) -> torch.Tensor:
        """Load one tensor as it is stored. Raises ConfigError where it is missing or holds NaN or infinity."""
        if name not in self._tensors:
            raise ConfigError(f"the checkpoint has no tensor `{name}`", where=name, fix="use a complete checkpoint")
        tensor: torch.Tensor = self._tensors[name].get_tensor(name).to(self.device)
        if not torch.isfinite(tensor).all():
            raise ConfigError(f"the tensor `{name}` holds NaN or infinity", where=name, fix="use a sound checkpoint")
        return tensor

    @property
    def stored_types(self) -> set[str]:
        """The types that the checkpoint's tensors are stored in, by the names of safetensors: F32, BF16."""
        return {file.get_slice(name).get_dtype() for name, file in self._tensors.items()}

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the embeddings [batch, tokens, hidden] of token ids [batch, tokens]."""
        weight = self.tensor("model.embed_tokens.weight").to(self.dtype)
        embedding = torch.nn.functional.embedding(ids.to(self.device), weight)
        if self.architecture.scaled_embedding:
            # The factor is rounded to the weights' type before it is applied, as the model was trained.
            embedding *= torch.tensor(self.config.hidden_size**0.5, dtype=self.dtype)
        return embedding

    def layer(self, index: int) -> torch.nn.Module:
        """Return decoder layer ``index`` with its weights; the caller drops it before asking for the next."""
        module = self.skeleton(index)
        names = experts.apart(module.state_dict())
        stored = {name: self.architecture.stored(f"model.layers.{index}.{name}") for name in names}
        state = {name: self.tensor(tensor).to(self.dtype) for name, tensor in stored.items()}
        module.load_state_dict(experts.together(state), assign=True)
        return module

    def skeleton(self, index: int) -> torch.nn.Module:
        """Return decoder layer ``index`` with room for its weights and nothing in it."""
        module: torch.nn.Module = self._decoder.layers[index].to_empty(device=self.device)
        return module

    def logits(self, hidden: torch.Tensor, norm: torch.Tensor, head: torch.Tensor) -> torch.Tensor:
        """Return the logits [batch, tokens, vocabulary] of hidden states [batch, tokens, width] behind the last layer.

        ``norm`` [width] and ``head`` [vocabulary, width]: weights of the final norm and of the output head.
        """
        module: torch.nn.Module = self._decoder.norm.to_empty(device=self.device)
        module.load_state_dict({"weight": norm.to(self.device, self.dtype)}, assign=True)
        with torch.inference_mode():
            return torch.nn.functional.linear(module(hidden), head)

    def shapes(self, index: int) -> dict[str, torch.Size]:
        """Return the shapes of layer ``index``'s tensors; nothing is loaded."""
        return {name: tensor.shape for name, tensor in experts.apart(self._decoder.layers[index].state_dict()).items()}

    def arguments(self, index: int) -> Callable[[torch.Tensor], dict[str, Any]]:
        """Return what makes, from hidden states [batch, tokens, hidden], the other arguments of layer ``index``."""
        return partial(self._arguments, index)

    def _arguments(self, index: int, hidden: torch.Tensor) -> dict[str, Any]:
        positions = torch.arange(hidden.shape[1], device=self.device).unsqueeze(0)
        masks = create_masks_for_generate(self.config, inputs_embeds=hidden, attention_mask=None, past_key_values=None)
        return {
            "position_ids": positions,
            "position_embeddings": self.rotary(hidden, positions),
            "attention_mask": masks[self.config.layer_types[index]] if isinstance(masks, dict) else masks,
        }

    def release(self, index: int) -> None:
        """Give the memory of a layer back."""
        self._decoder.layers[index].to("meta")

    def rest(self) -> dict[str, torch.Tensor]:
        """Return the tensors outside the decoder layers: embedding, final norm, output head if it has its own."""
        names = [name for name in self._tensors if not name.startswith("model.layers.")]
        if self.config.tie_word_embeddings:
            names = [name for name in names if name != "lm_head.weight"]
        return {name: self.tensor(name) for name in names}
