"""The verdict and its two forms: JSON and text."""

from __future__ import annotations

import json

import pytest

from drift.synthetic import answers, pair, policy
from trtpipe.drift import gate, metrics, table
from trtpipe.drift.policy import Limits, Policy
from trtpipe.drift.served import judge_served
from trtpipe.drift.verdict import Digests, EngineFacts, Verdict, decide

LENGTHS = [5, 8, 3, 6, 4, 7, 5, 8, 3, 6, 4, 7]
SEGMENT_OF = {f"r{index}": "code" if index % 2 else "[bold]mail" for index in range(12)}
GOOD = [5, 6, 7, 8, 2]


def reached(noise: float, demands: Policy, served: list[int] = GOOD) -> Verdict:
    baseline, candidate = pair(1, LENGTHS, noise)
    return decide(
        Digests(release="a" * 64, baseline="b" * 64, prompt_set="c" * 64),
        EngineFacts(name="vllm", version="1.2", kv_dtype="fp8", kv_scale_source="calibrated", cpu_flags=["avx2"]),
        demands,
        gate.judge_rows(metrics.compare(baseline, candidate), SEGMENT_OF, demands),
        judge_served(answers([served] * 3, [served] * 3), {2}, demands),
    )


def test_no_drift_passes_with_a_reason_for_each_limit() -> None:
    verdict = reached(0.0, policy())
    assert verdict.verdict == "pass"
    assert len(verdict.reasons) == 3 + 2 * 3 + 2
    assert all(finding.value in {0.0, 1.0} for finding in verdict.overall.values())


def test_drift_fails_with_the_failures_first() -> None:
    verdict = reached(2.0, policy(served_prompts=9))
    assert verdict.verdict == "fail"
    told = [reason.rpartition(": ")[2] for reason in verdict.reasons]
    assert told[0] == "the whole interval is beyond"
    assert told == sorted(told, key=lambda why: why != "the whole interval is beyond")
    assert told[-1] == "3 prompt(s), at least 9 needed"
    assert not any("inside" in why for why in told)


def test_lacking_evidence_is_inconclusive() -> None:
    verdict = reached(0.0, policy(heldout_prompts_per_segment_min=7))
    assert verdict.verdict == "inconclusive"
    assert [reason.split(":")[0] for reason in verdict.reasons] == ["segment [bold]mail"] * 3 + ["segment code"] * 3


def test_broken_answers_alone_fail() -> None:
    verdict = reached(0.0, policy(), served=[5] * 9)
    assert verdict.verdict == "fail"
    assert verdict.reasons == ["served: of 3 answers 0 empty, 3 one token over and over (r0, r1, r2)"]


def test_the_document_says_what_was_compared_and_how() -> None:
    verdict = reached(0.3, policy())
    document = json.loads(verdict.model_dump_json())
    assert document["schema_version"] == 1
    assert document["digests"] == {"release": "a" * 64, "baseline": "b" * 64, "prompt_set": "c" * 64}
    assert document["policy"]["why"] == "a test"
    assert document["engine"]["kv_dtype"] == "fp8"
    assert document["intervals"].keys() == {"name", "seed"}
    found = document["overall"]["kl_top20_nats"]
    assert found["value"] == verdict.overall["kl_top20_nats"].value  # all digits
    assert (found["prompts"], found["tokens"]) == (12, sum(LENGTHS))
    assert document["segments"]["code"]["top1_agreement"]["prompts"] == 6
    assert document["served"]["agreement"]["tokens"] == 15
    assert Verdict.model_validate_json(verdict.model_dump_json()) == verdict


def test_the_table_shows_each_finding_once_and_takes_names_as_they_are() -> None:
    wide = Limits(kl_top20_nats_max=0.05, top1_agreement_min=0.001, perplexity_ratio_max=99)
    text = table.render(reached(1.0, policy(overall=wide, why="pilot [red]only")))
    lines = text.splitlines()
    assert lines[0] == "drift check: fail"
    assert sum(line.startswith("overall ") for line in lines) == 3
    assert sum(line.startswith("segment [bold]mail ") for line in lines) == 3
    assert sum(line.startswith("served ") for line in lines) == 1
    assert "- overall: kl_top20_nats" in text
    assert "vllm 1.2, KV fp8 (scales: calibrated), CPU avx2" in text
    assert lines[-1] == "policy:    pilot [red]only"
    assert max(map(len, lines)) <= table.WIDTH
    assert "\x1b" not in text


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_same_scores_give_the_same_verdict(noise: float) -> None:
    assert reached(noise, policy()).model_dump_json() == reached(noise, policy()).model_dump_json()
