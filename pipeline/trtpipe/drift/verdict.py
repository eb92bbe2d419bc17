"""The verdict: one document that says what was compared, how, and what follows."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from trtpipe.drift import gate, statistics
from trtpipe.drift.gate import Finding, Judgement, Outcome
from trtpipe.drift.policy import Policy
from trtpipe.drift.served import Served

SCHEMA_VERSION: Literal[1] = 1


class Digests(BaseModel):
    """What was compared, by content."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    release: str
    baseline: str
    prompt_set: str


class EngineFacts(BaseModel):
    """On which engine the release was measured: the verdict holds for no other."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    version: str
    kv_dtype: str
    kv_scale_source: str
    cpu_flags: list[str]
    gpus: list[str] = []  # of an engine that runs on GPUs, one a rank


class IntervalMethod(BaseModel):
    """How the intervals were made."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = statistics.METHOD
    seed: int = statistics.SEED


class Verdict(BaseModel):
    """The content of ``verdict.json``. ``reasons``: what decided it, failures first."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1] = SCHEMA_VERSION
    verdict: Outcome
    reasons: list[str]
    digests: Digests
    engine: EngineFacts
    policy: Policy
    intervals: IntervalMethod
    overall: dict[str, Finding]
    segments: dict[str, dict[str, Finding]]
    served: Served


def decide(digests: Digests, engine: EngineFacts, policy: Policy, judgement: Judgement, served: Served) -> Verdict:
    """Put everything together; the verdict is the worst of all outcomes."""
    scopes = [judgement.overall, *judgement.segments.values()]
    findings = [finding for scope in scopes for finding in scope.values()] + [served.agreement]
    judged: list[tuple[Outcome, str]] = [(finding.outcome, finding.reason) for finding in findings]
    judged.append((served.answers_outcome, served.answers_reason))
    verdict = gate.combine(outcome for outcome, _ in judged)
    telling: list[Outcome] = ["pass"] if verdict == "pass" else ["fail", "inconclusive"]
    return Verdict(
        verdict=verdict,
        reasons=[reason for told in telling for outcome, reason in judged if outcome == told],
        digests=digests,
        engine=engine,
        policy=policy,
        intervals=IntervalMethod(),
        overall=judgement.overall,
        segments=judgement.segments,
        served=served,
    )
