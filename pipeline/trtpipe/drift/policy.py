"""What the drift check demands, as this area needs it; the defaults are the config's."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Limits(BaseModel):
    """Limits on the metrics of one scope."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kl_top20_nats_max: float
    top1_agreement_min: float
    perplexity_ratio_max: float


class Policy(BaseModel):
    """Limits, the evidence they need, and why they are what they are."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    why: str
    overall: Limits
    per_segment: Limits
    heldout_prompts_min: int
    heldout_prompts_per_segment_min: int
    confidence: float
    bootstrap_resamples: int
    served_prompts: int
    served_top1_agreement_min: float
