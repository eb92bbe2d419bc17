"""What decides the two sets, apart from the log, the general set and the tokenizer."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class Selection(BaseModel):
    """The config's section ``prompts`` without its files; meanings and defaults stand there."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["auto", "jsonl", "csv", "parquet"]
    shape: Literal["auto", "plain", "chat", "sharegpt", "kserve", "openai-log"]
    columns: dict[str, str]
    bad_rows_share_max: float
    pool_rows: int
    prompt_characters_min: int
    mask_personal_data: bool
    near_duplicate_similarity: float
    prompt_tokens_max: int
    over_length: Literal["cut", "window", "drop"]
    over_length_share_max: float
    calibration_prompts: int
    calibration_tokens_min: int
    general_share: float
    segment_prompts_min: int
    heldout_prompts_per_segment: int
    allow_short: bool
    template_date: str
    seed: int
