"""Promote a release that has a passing verdict; go back to the one before."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from trtpipe.core import artifacts
from trtpipe.errors import ConfigError, GateInconclusive, GateRejected
from trtpipe.release.current import current_id, history, require_current, switch

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtpipe.core.artifacts import Artifact
    from trtpipe.core.store import Store


def verdict_of(store: Store, release: Artifact) -> Artifact | None:
    """Return the latest verdict on exactly this release."""
    verdicts = [v for v in store.all("verdict") if v.record.parts.inputs["release"] == release.digest]
    return verdicts[-1] if verdicts else None


def promote(store: Store, release: Artifact, verdict: Artifact | None, may_run: Callable[[Artifact], None]) -> bool:
    """Make ``release`` current on the strength of ``verdict``; False if it was current already.

    ``may_run`` raises where the release can't run on this machine. Raises what it and ``require_promotable`` raise.
    """
    passing = require_promotable(release, verdict)
    may_run(release)
    if is_promoted(store, release):
        return False
    switch(store, release, "promote", passing.id)
    return True


def require_promotable(release: Artifact, verdict: Artifact | None) -> Artifact:
    """Return the passing verdict on exactly this release.

    Raises GateRejected or GateInconclusive without a passing verdict, Stale where a file of the release or of
    the verdict differs from the record.
    """
    if verdict is None or verdict.record.parts.inputs["release"] != release.digest:
        raise GateRejected(
            "the release has no verdict",
            where=release.id,
            fix="trtpipe check-drift; of a TensorRT-LLM engine, trtpipe accept",
        )
    artifacts.verify(verdict)
    outcome = json.loads((verdict.path / "verdict.json").read_text("utf-8"))["verdict"]
    if outcome == "fail":
        raise GateRejected(
            f"the drift check rejected release {release.id}",
            where=str(verdict.path),
            fix="read verdict.json there",
        )
    if outcome != "pass":
        raise GateInconclusive(
            f"the drift check of release {release.id} is inconclusive",
            where=str(verdict.path),
            fix="give more held-out prompts",
        )
    artifacts.verify(release)
    return verdict


def is_promoted(store: Store, release: Artifact) -> bool:
    """True where the release is current and the history says so."""
    entries = history(store)
    return bool(entries) and entries[-1]["digest"] == release.digest and current_id(store) == release.id


def rollback(store: Store, may_run: Callable[[Artifact], None]) -> Artifact:
    """Go back to the release that was current before. Raises what ``previous`` and ``may_run`` raise."""
    release, verdict_id = previous(store)
    may_run(release)
    switch(store, release, "rollback", verdict_id)
    return release


def previous(store: Store) -> tuple[Artifact, str]:
    """Return the whole release that was current before, and the id of its verdict.

    Raises ConfigError if there is none, or none is current; Stale where it has changed.
    """
    now_current = require_current(store)
    last_promotion = {entry["release"]: entry for entry in history(store) if entry["action"] == "promote"}
    before = last_promotion[now_current.id]["previous"] if now_current.id in last_promotion else None
    if before is None or before not in last_promotion:
        raise ConfigError(
            "there is no earlier release to go back to", where=str(now_current.path), fix="trtpipe status"
        )
    release = artifacts.read(now_current.path.with_name(before))
    artifacts.verify(release)
    return release, last_promotion[before]["verdict"]


def find(store: Store, name: str | None) -> Artifact:
    """Return the release called ``name`` (a beginning of its id is enough), or the newest."""
    releases = store.all("release")
    if not releases:
        raise ConfigError("there is no release yet", where=str(store.root), fix="trtpipe run")
    if name is None:
        return releases[-1]
    matching = [release for release in releases if release.id.startswith(name)]
    if len(matching) != 1:
        known = ", ".join(release.id for release in releases)
        raise ConfigError(f"{len(matching)} releases begin with `{name}`", where=known, fix="give one id")
    return matching[0]
