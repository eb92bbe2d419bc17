"""The drift policy: how far a release may be from the unquantized model. Defaults are the default policy."""

from __future__ import annotations

from pydantic import Field

from trtpipe.config.schema import Section


class Limits(Section):
    """Limits on the metrics of one scope; each holds for the interval's far end."""

    kl_top20_nats_max: float = Field(
        default=0.05, gt=0, description="Mean lower bound of KL(baseline || candidate) per token."
    )
    top1_agreement_min: float = Field(
        default=0.94, gt=0, le=1, description="Share of positions where both prefer the same token."
    )
    perplexity_ratio_max: float = Field(default=1.03, gt=1, description="Candidate's perplexity over the baseline's.")


class SegmentLimits(Limits):
    """The same limits for one segment; what a policy leaves out keeps the wider default."""

    kl_top20_nats_max: float = Field(default=0.08, gt=0, description="As overall.")
    top1_agreement_min: float = Field(default=0.92, gt=0, le=1, description="As overall.")
    perplexity_ratio_max: float = Field(default=1.06, gt=1, description="As overall.")


class DriftPolicy(Section):
    """What the drift check demands."""

    why: str = Field(default="default limits", description="Why these limits; printed in the verdict.")
    overall: Limits = Field(default=Limits(), description="Limits over all held-out prompts.")
    per_segment: SegmentLimits = Field(
        default=SegmentLimits(),
        description="Limits for each segment alone: wider, since each has fewer prompts.",
    )
    heldout_prompts_min: int = Field(default=100, ge=1, description="Fewer scored prompts than this: inconclusive.")
    heldout_prompts_per_segment_min: int = Field(
        default=20, ge=1, description="A segment with fewer prompts is inconclusive."
    )
    confidence: float = Field(default=0.95, gt=0.5, lt=1, description="Confidence of the intervals.")
    bootstrap_resamples: int = Field(default=2000, ge=200, description="Resamples of prompts for each interval.")
    served_prompts: int = Field(default=20, ge=1, description="Prompts sent through the running Triton.")
    served_top1_agreement_min: float = Field(
        default=0.9,
        gt=0,
        le=1,
        description="Share of served tokens that the release's own engine prefers too, teacher-forced.",
    )
