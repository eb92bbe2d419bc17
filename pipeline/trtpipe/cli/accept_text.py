"""An acceptance as a person reads it: a line a step, and where the document lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtpipe.cli.plan_text import wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def text(document: dict[str, Any], file: Path) -> str:
    engine, server, machine = document["engine"], document["server"], document["machine"]
    gpus = [gpu["name"] for gpu in machine["gpus"]]
    lines = [*wrapped("machine", f"{len(gpus)} x {', '.join(sorted(set(gpus)))}")]
    if engine:
        reported = engine["builder_reported"] or "nothing"
        lines += wrapped(
            "engine",
            f"TensorRT-LLM {engine['tensorrt_llm']}, TensorRT {engine['tensorrt']}; the builder reported: {reported}",
        )
    if server:
        lines += wrapped("server", f"{server['name']} {server['version']}")
    lines.append("")
    for name, step in document["steps"].items():
        seconds = "" if step["seconds"] is None else f"{step['seconds']:.1f} s"
        first, *others = [*_figures(name, step), *_whys(step)] or [""]
        lines += _row(name, step["state"], seconds, first)
        lines += [line for said in others for line in _row("", "", "", said)]
    ended = "every step that can be measured is done" if document["ok"] else "not accepted: see the steps that failed"
    return "\n".join([*lines, "", ended, f"document: {file}"])


def _figures(name: str, step: dict[str, Any]) -> Iterator[str]:
    if name in SAYS and step.keys() - {"state", "seconds", "why", "errors"}:
        yield from SAYS[name](step).splitlines()


def _whys(step: dict[str, Any]) -> Iterator[str]:
    if "why" in step:
        yield step["why"]
    for error in step.get("errors", ()):
        yield error["what"]


def _row(name: str, state: str, seconds: str, said: str) -> list[str]:
    return wrapped(f"{name:12}{state:14}{seconds:>9}", said) if said else [f"{name:12}{state:14}{seconds:>9}".rstrip()]


def _build(step: dict[str, Any]) -> str:
    return f"{'reused, ' if step['reused'] else ''}built in {step['seconds_when_made']:.1f} s: {step['path']}"


def _inspect(step: dict[str, Any]) -> str:
    limits = ", ".join(f"{name} {value}" for name, value in step["limits"].items())
    return f"{step['world_size']} ranks, {limits}, {len(step['findings'])} findings"


def _kv(step: dict[str, Any]) -> str:
    return (
        f"{step['blocks']:,} blocks of {step['block_tokens']} tokens, planned {step['planned_blocks']:,} "
        f"({step['blocks_of_planned'] or 0:.1%}); {step['full_length_sequences']:,} sequences of full length; "
        f"runtime_reserve_mib: {step['runtime_reserve_mib_measured']} would have been right"
    )


def _golden(step: dict[str, Any]) -> str:
    tokens = sum(len(answer["answer_ids"]) for answer in step["answers"])
    return f"{step['questions']} questions, {tokens} tokens, asked twice"


def _load(step: dict[str, Any]) -> str:
    parts = [
        f"{step['requests']} requests of {step['clients']} clients, {step['failed']} failed",
        f"{step['answer_tokens_per_second']:,} answer tokens/s ({step['answer_tokens']:,} tokens)",
    ]
    for name, label in (("ttft_ms", "first token"), ("tpot_ms", "each further token")):
        spread = step[name]
        if spread["samples"]:
            parts.append(f"{label} p50 {spread['p50']:g} ms, p95 {spread['p95']:g} ms ({spread['samples']} samples)")
    return "; ".join(parts)


def _prompts(step: dict[str, Any]) -> str:
    return f"{step['heldout_prompts']} held-out prompts, {step['scored_tokens']:,} tokens of them scored"


def _drift(step: dict[str, Any]) -> str:
    baseline, agreement = step["baseline"], step["served"]["agreement"]
    findings = (*step["overall"].values(), agreement | {"metric": f"served {agreement['metric']}"})
    verdict = f"{step['verdict']}, against {baseline['runs_with']} in {baseline['dtype']}"
    return "\n".join([verdict, *map(_finding, findings)])


def _finding(found: dict[str, Any]) -> str:
    interval, limit = f"[{found['low']:.4g}, {found['high']:.4g}]", f"{found['bound']} {found['limit']:.4g}"
    evidence = f"{found['prompts']} prompts, {found['tokens']:,} tokens"
    return f"{found['metric']} {found['value']:.4g} {interval}, {limit}: {found['outcome']} ({evidence})"


SAYS = {
    "prompts": _prompts,
    "build": _build,
    "inspect": _inspect,
    "package": lambda step: str(step["path"]),
    "launch": lambda step: f"ready after {step['seconds_to_ready']:.1f} s",
    "kv-blocks": _kv,
    "golden-ids": _golden,
    "load": _load,
    "answers": lambda step: f"{step['prompts']} held-out prompts, up to {step['answer_tokens_max']} tokens each",
    "drift": _drift,
}
