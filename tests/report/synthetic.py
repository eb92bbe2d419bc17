"""A small verdict and a small run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trtpipe.core.artifacts import FOLDERS, Artifact, KeyParts, Kind, Output, Record
from trtpipe.core.runner import Outcome

KEY_FIGURES = {"select-prompts": ["heldout_prompts"], "calibrate": ["group_size"], "package": [], "check-drift": []}
UNITS = {"kl_top20_nats": "nats per token", "top1_agreement": "share of tokens"}


def finding(metric: str, value: float, limit: float, outcome: str = "pass", **changes: object) -> dict[str, Any]:
    bound = "min" if metric == "top1_agreement" else "max"
    return {
        "metric": metric,
        "unit": UNITS[metric],
        "value": value,
        "low": value - 0.01,
        "high": value + 0.02,
        "limit": limit,
        "bound": bound,
        "excess": value - limit if bound == "max" else limit - value,
        "prompts": 42,
        "tokens": 15632,
        "outcome": outcome,
        "reason": f"overall: {metric} {value}",
    } | changes


def verdict(segment: str = "coding", outcome: str = "fail") -> dict[str, Any]:
    limits = {"kl_top20_nats_max": 0.1, "top1_agreement_min": 0.9, "perplexity_ratio_max": 1.1}
    overall = [finding("kl_top20_nats", 0.0712, 0.1), finding("top1_agreement", 0.895, 0.9, "inconclusive")]
    worst = [finding("kl_top20_nats", 0.31, 0.2, outcome), finding("top1_agreement", 1.0, 0.85)]
    return {
        "schema_version": 1,
        "verdict": outcome,
        "reasons": [f"segment {segment}: kl_top20_nats 0.31 [0.3, 0.33], max 0.2: the whole interval is beyond"],
        "digests": {"release": "a" * 64, "baseline": "b" * 64, "prompt_set": "c" * 64},
        "engine": {
            "name": "vllm",
            "version": "1.2",
            "kv_dtype": "fp8_e4m3",
            "kv_scale_source": "calibrated",
            "cpu_flags": ["avx512f", "amx_tile"],
            "gpus": [],
        },
        "policy": {
            "why": "a test & nothing else",
            "overall": limits,
            "per_segment": limits,
            "heldout_prompts_min": 100,
            "heldout_prompts_per_segment_min": 20,
            "confidence": 0.95,
            "bootstrap_resamples": 2000,
            "served_prompts": 2,
            "served_top1_agreement_min": 0.9,
        },
        "intervals": {"name": "bootstrap by prompt", "seed": 1},
        "overall": {found["metric"]: found for found in overall},
        "segments": {segment: {found["metric"]: found for found in worst}},
        "served": {
            "agreement": finding("top1_agreement", 0.97, 0.9, prompts=2, tokens=16),
            "answers_outcome": "pass",
            "answers_reason": "served: of 2 answers 1 empty, 0 one token over and over (p2)",
            "prompts": [
                {"id": "p1", "tokens": 15, "agreeing_tokens": 14, "empty": False, "one_token_repeated": False},
                {"id": "p2", "tokens": 1, "agreeing_tokens": 1, "empty": True, "one_token_repeated": False},
            ],
        },
    }


def layers() -> list[dict[str, Any]]:
    """Two layers: one group that the recipe helps, one that it does not."""

    def errors(factor: int) -> list[dict[str, Any]]:
        return [
            error("attention input", 0.012 * factor, 0.006 * factor, 0.004 * factor, alpha=0.3),
            error("mlp output", 0.02 * factor, 0.02 * factor, 0.02 * factor),
        ]

    kv = {"key_amax": 11.0, "value_amax": 0.5}
    return [{"layer": i, "errors": errors(1 + i), **kv, "seconds": 1.5 + i} for i in range(2)]


def error(group: str, plain: float, awq: float, final: float, *, alpha: float = 0.0) -> dict[str, Any]:
    errors = {"plain_rounding": plain, "awq": awq, "final": final}
    outliers = {"outlier_channels": 2, "largest_channel": 7, "largest_over_median": 31.5}
    return {"group": group, "tokens": 100, "alpha": alpha, **errors, "clipped_share": 0.25, "damping": 0.01, **outliers}


CALIBRATE = {
    "group_size": 64,
    "calibration_tokens": 8192,
    "peak_rss_mib": 1536,
    "relative_error_plain_rounding_mean": 0.024,
    "relative_error_awq_mean": 0.0195,
    "relative_error_final_mean": 0.018,
}


def outcomes(root: Path, note: str = "30 plain prompt(s) taken as one user message each") -> list[Outcome]:
    """A run of four stages, the first one reused."""
    return [
        _outcome(root, "select-prompts", "prompt-set", "reused", {"heldout_prompts": 210}, notes=[note]),
        _outcome(
            root,
            "calibrate",
            "checkpoint",
            "built: parameters.group_size 128 -> 64",
            {**CALIBRATE, "per_layer": layers()},
            parameters={"recipe": "awq"},
        ),
        _outcome(root, "package", "release", "built: first run", {"models": ["ensemble", "tensorrt_llm"]}),
        _outcome(root, "check-drift", "verdict", "built: first run", {"verdict": "fail"}),
    ]


def _outcome(
    root: Path,
    stage: str,
    kind: Kind,
    decision: str,
    figures: dict[str, Any],
    *,
    parameters: dict[str, Any] | None = None,
    notes: list[str] | None = None,
) -> Outcome:
    parts = KeyParts(
        stage=stage, revision=1, inputs={"model": "d" * 64}, parameters=parameters or {}, versions={"tool": "1.0"}
    )
    record = Record(
        kind=kind,
        key="e" * 64,
        parts=parts,
        digest="f" * 64,
        outputs={"a.bin": Output(sha256="0" * 64, size_bytes=3 * 2**20)},
        figures=figures,
        notes=notes or [],
        seconds=285.9,
        created="2024-05-06T07:08:09.123+00:00",
        environment={"cpu_cores": 2},
    )
    return Outcome(
        stage, decision, decision == "reused", 1.5, Artifact(root / FOLDERS[kind] / "0123456789abcdef", record)
    )
