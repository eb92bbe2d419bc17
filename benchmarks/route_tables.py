"""The tables of what was measured on the served release: all its routes, and the bare engine beside them."""

from __future__ import annotations

from typing import Any

from result_files import results, table


def routes() -> str:
    """Tokens a second of the full route, and what each process spends on a token."""
    found = results("routes")
    lead = (
        f"{found['clients']} clients at once, {found['rounds']} rounds of {found['requests_a_round']} requests each, "
        f"{found['answer_tokens_a_round']:,} answer tokens a round, prompts of {found['prompt_tokens_median']:.0f} "
        "tokens (median):\n\n"
    )
    speed = table(
        ("way", "tokens a second, median of the rounds", "share of the bare engine's (95 % interval)"),
        (
            (way, tokens_per_s, _share(found["ratio_to_bare_engine"].get(way)))
            for way, tokens_per_s in found["median_tokens_per_s"].items()
        ),
    )
    spent = found["processor_ms_per_token"]
    processes = list(dict.fromkeys(process for way in spent.values() for process in way))
    rest = table(
        ("process, CPU ms a token", *spent),
        ((process, *(way.get(process, "-") for way in spent.values())) for process in processes),
    )
    return f"{lead}{speed}\n{rest}"


def _share(ratio: dict[str, Any] | None) -> str:
    if ratio is None:
        return "-"
    low, high = ratio["interval_95"]
    return f"{ratio['of_medians']:.3f} ({low:.3f} to {high:.3f})"


def at_once() -> str:
    """All routes at once, then what cancelling each of them did."""
    found = results("mixed")
    asked, equal, closed = found["at_once"], found["equal_texts"], found["closed_sockets"]
    state = "answers" if closed["answers_afterwards"] else "does not answer"
    lead = (
        f"{asked['requests']} requests at once on {len(asked['by_route'])} routes: {asked['answered_whole']} answered "
        f"whole, {asked['lost_or_short']} lost or short, {asked['tokens']:,} tokens in {asked['seconds']} s (half of "
        f"the answers after {asked['seconds_to_half_of_the_answers']} s). Greedy texts of {equal['prompts']} prompts, "
        f"one at a time: {equal['prompts_with_one_text_on_all_routes']} have one text on all {equal['routes']} routes. "
        f"{closed['sockets']} closed sockets: all ended after {closed['all_ended_after_s']} s, the server {state} "
        "afterwards.\n\n"
    )
    return lead + table(
        ("route", "asked", "whole", "a cancelled request", "its KV blocks free after, s"),
        (
            (
                route,
                counts["asked"],
                counts["whole"],
                "ends" if found["cancelled"][route]["engine"] == "cancelled" else "runs to its last token",
                found["cancelled"][route]["blocks_free_after_s"],
            )
            for route, counts in asked["by_route"].items()
        ),
    )
