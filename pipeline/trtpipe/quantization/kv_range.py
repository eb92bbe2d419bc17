"""The range of keys and values as they enter the KV cache: after rotary embedding, before heads are repeated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, sdpa_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

ATTENTION = "trtpipe_kv_range"
ATTRIBUTE = "trtpipe_kv_range"
FP8_E4M3_MAX = 448.0


@dataclass
class KvRange:
    """Largest magnitudes seen by one layer's cache; ``mask`` [rows, tokens] says which tokens are real."""

    key_amax: float = 0.0
    value_amax: float = 0.0
    mask: torch.Tensor = field(default_factory=lambda: torch.empty(0))

    def see(self, key: torch.Tensor, value: torch.Tensor) -> None:
        """Take in keys and values [rows, heads, tokens, head width]."""
        self.key_amax = max(self.key_amax, float(key.transpose(1, 2)[self.mask].abs().amax()))
        self.value_amax = max(self.value_amax, float(value.transpose(1, 2)[self.mask].abs().amax()))

    @property
    def key_scale(self) -> float:
        return self.key_amax / FP8_E4M3_MAX

    @property
    def value_scale(self) -> float:
        return self.value_amax / FP8_E4M3_MAX


def _attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: Any,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    seen = getattr(module, ATTRIBUTE, None)
    if seen is not None:
        seen.see(key, value)
    if options.get("softcap") is not None:
        groups = query.shape[1] // key.shape[1]
        key, value = (tensor.repeat_interleave(groups, dim=1) for tensor in (key, value))
        return _capped(query, key, value, mask, options["scaling"], options["softcap"]), None
    result: tuple[torch.Tensor, None] = sdpa_attention_forward(module, query, key, value, mask, **options)
    return result


def _capped(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    scaling: float,
    softcap: float,
) -> torch.Tensor:
    """Return attention [rows, tokens, heads, head width] over scores kept within ± softcap, as Gemma 2 has it.

    torch's fused attention has no such cap. ``mask``: true where a query may look, None: causal.
    """
    if mask is None:
        mask = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool, device=query.device).tril()
    scores = softcap * torch.tanh(query @ key.transpose(2, 3) * scaling / softcap)
    scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1, dtype=torch.promote_types(scores.dtype, torch.float32)).to(value.dtype)
    return (weights @ value).transpose(1, 2).contiguous()


def register() -> None:
    """Make the measuring attention known to transformers under ``ATTENTION``, with the masks it takes."""
    ALL_ATTENTION_FUNCTIONS.register(ATTENTION, _attention)
    ALL_MASK_ATTENTION_FUNCTIONS.register(ATTENTION, sdpa_mask)
