"""An invented prompt document: the content of ``prompts.json``."""

from __future__ import annotations

from typing import Any


def estimate(value: float, half: float = 0.01) -> dict[str, float]:
    return {"value": value, "low": max(value - half, 0.0), "high": value + half}


def quantiles(unit: float) -> dict[str, Any]:
    return {
        name: {"value": unit * factor, "low": unit * factor - 2, "high": unit * factor + 2}
        for name, factor in (("p5", 10), ("p50", 30), ("p95", 90), ("p99", 120), ("max", 150))
    }


def document(*, selection: bool = True, whole_log: bool = False, segment: str = "chat <b>") -> dict[str, Any]:
    chosen = {
        "calibration": {"asked": 128, "delivered": 120},
        "calibration_tokens": {"asked": 0, "delivered": 60_000},
        "general_prompts": 12,
        "heldout_prompts": 96,
        "over_length_rows": 9,
        "shortfalls": ["120 of 128 calibration prompts"],
        "segments": [
            {"segment": segment, "calibration": 81, "calibration_tokens": 30_000, "heldout": 48},
            {"segment": "code", "calibration": 27, "calibration_tokens": 20_000, "heldout": 48},
            {"segment": "general", "calibration": 12, "calibration_tokens": 10_000, "heldout": 0},
        ],
        "distances": [
            {
                "feature": "segment",
                "statistic": "Jensen-Shannon, bits",
                "stratified": True,
                "chosen": 0.0001,
                "random_median": 0.004,
            },
            {
                "feature": "turns",
                "statistic": "Kolmogorov-Smirnov",
                "stratified": False,
                "chosen": 0.02,
                "random_median": 0.03,
            },
        ],
    }
    return {
        "log": {
            "files": ["a&b.jsonl: jsonl, gzip"],
            "shapes": {"chat": 900, "plain": 90},
            "fast_rows": 900,
            "blank_lines": 3,
            "boms_removed": 1,
        },
        "ledger": {
            "rows": 1000,
            "kept": 200,
            "cut": 4,
            "windowed": 0,
            "dropped": {"exact duplicate": 50, "not needed": 736, "unreadable: not JSON": 10},
        },
        "reasons": {
            "exact duplicate": "the same prompt stands earlier in the log",
            "not needed": "both sets were full",
        },
        "findings": [{"kind": "not JSON", "what": "not JSON: x; byte offset 7 of the file", "where": "a&b.jsonl:2:1"}],
        "findings_total": 10,
        "cleaning": {
            "rows_with_control_characters": 2,
            "control_characters_removed": 5,
            "masking": True,
            "rows_masked": 7,
            "masked": {"email": 9},
        },
        "profile": {
            "rows": 1000,
            "distinct_rows": 940,
            "sample_rows": 400,
            "whole_log": whole_log,
            "exact_duplicates_share": 0.05,
            "near_duplicates_share": estimate(0.021),
            "lengths": {
                "prompt_characters": {"p5": 40, "p50": 120, "p95": 400, "p99": 500, "max": 9000},
                "response_characters": {},
                "prompt_tokens": quantiles(4.0),
                "response_tokens": quantiles(2.0),
            },
            "answered_share": estimate(0.9),
            "segments": [
                {"segment": segment, "given": True, "share": 0.75, "low": 0.75, "high": 0.75, "tokens_median": 130.0},
                {"segment": "code", "given": False, "share": 0.25, "low": 0.2, "high": 0.3, "tokens_median": 300.0},
            ],
            "languages": {"latin": estimate(0.9), "zh": estimate(0.1)},
            "style": {
                "shares": {"code": estimate(0.25), "system_prompt": estimate(0.75)},
                "means": {"turns": 1.2, "lines": 4.0, "digits_share": 0.03, "capitals_share": 0.05, "words": 88.0},
            },
            "prefix": {
                "block_tokens": 32,
                "reuse": {"prompts": 400, "prompt_tokens": 50_000, "reused_tokens": 12_000},
                "reuse_share": 0.24,
                "shared_by_most_tokens": 64,
                "cuts": [
                    {
                        "kind": "time",
                        "token": 20,
                        "whole_blocks_before": 0,
                        "prompts_share": 0.5,
                        "values": 199,
                        "share_if_moved": 0.5,
                        "share_regained": 0.26,
                    }
                ],
            },
            "reference": {
                "rows": 400,
                "segments": {segment: 750, "code": 250},
                "prompt_tokens": {"24": 100, "28": 200, "33": 100},
                "response_tokens": {"20": 300, "24": 60},
                "languages": {"latin": 360, "zh": 40},
                "style": {"code": 100, "system_prompt": 300},
            },
        },
        "tokenizer": {"bos_id": None, "pad_id": 2, "eos_ids": [2], "template_date": None},
        "settings": {"seed": 0, "general_share": 0.1},
        "selection": chosen if selection else None,
    }
