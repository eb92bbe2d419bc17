"""Only what passed, byte for byte, becomes current; and there is a way back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trtpipe.errors import ConfigError, EnvironmentUnfit, GateInconclusive, GateRejected, Stale, TrtpipeError
from trtpipe.release import promote as promotion
from trtpipe.release.current import current, history, link, require_current
from trtpipe.release.promote import find, rollback, verdict_of
from workspaces import trtpipe, write_config

if TYPE_CHECKING:
    from release.releases import Releases
    from trtpipe.core.artifacts import Artifact
    from trtpipe.core.store import Store


def anywhere(release: Artifact) -> None:
    """Nothing keeps the release from running here."""


def promote(store: Store, release: Artifact) -> bool:
    """Promote on the latest verdict, as the command does."""
    return promotion.promote(store, release, verdict_of(store, release), anywhere)


def test_a_passing_release_becomes_current_once(releases: Releases) -> None:
    release = releases.passing(1)
    assert promote(releases.store, release) is True
    assert promote(releases.store, release) is False
    assert require_current(releases.store).digest == release.digest
    assert len(history(releases.store)) == 1


@pytest.mark.parametrize(
    ("outcomes", "error"),
    [
        ([], GateRejected),
        (["fail"], GateRejected),
        (["inconclusive"], GateInconclusive),
        (["pass", "fail"], GateRejected),
        (["something else"], GateInconclusive),
    ],
)
def test_without_a_passing_verdict_nothing_moves(
    releases: Releases, outcomes: list[str], error: type[TrtpipeError]
) -> None:
    release = releases.release(1)
    for outcome in outcomes:
        releases.verdict(release, outcome)
    with pytest.raises(error):
        promote(releases.store, release)
    assert current(releases.store) is None
    assert history(releases.store) == []


def test_the_verdict_on_another_release_does_not_count(releases: Releases) -> None:
    releases.passing(1)
    with pytest.raises(GateRejected, match="no verdict"):
        promote(releases.store, releases.release(2))


def test_the_verdict_at_hand_counts_even_if_a_later_one_failed(releases: Releases) -> None:
    release = releases.release(1)
    passed = releases.verdict(release, "pass")
    releases.verdict(release, "fail")
    assert promotion.promote(releases.store, release, passed, anywhere) is True
    with pytest.raises(GateRejected, match="no verdict"):
        promotion.promote(releases.store, releases.release(2), passed, anywhere)


def test_a_changed_release_and_an_edited_verdict_are_refused(releases: Releases) -> None:
    release = releases.release(1)
    verdict = releases.verdict(release, "fail")
    (verdict.path / "verdict.json").write_text('{"verdict": "pass"}')
    with pytest.raises(Stale, match=r"verdict\.json"):
        promote(releases.store, release)
    other = releases.passing(2)
    (other.path / "file").write_text("RELEASE 2")
    with pytest.raises(Stale, match="file"):
        promote(releases.store, other)
    assert current(releases.store) is None


def test_a_promotion_that_was_cut_short_is_done_again(releases: Releases) -> None:
    release = releases.passing(1)
    promote(releases.store, release)
    link(releases.store).unlink()
    assert promote(releases.store, release) is True
    assert require_current(releases.store).id == release.id


def test_rollback_goes_back_step_by_step_with_the_right_verdicts(releases: Releases) -> None:
    made = [releases.passing(value) for value in (1, 2, 3)]
    for release in made:
        promote(releases.store, release)
    assert rollback(releases.store, anywhere).id == made[1].id
    assert rollback(releases.store, anywhere).id == made[0].id
    assert require_current(releases.store).id == made[0].id
    with pytest.raises(ConfigError, match="no earlier release"):
        rollback(releases.store, anywhere)
    verdict_of = {entry["release"]: entry["verdict"] for entry in history(releases.store)[:3]}
    assert len(set(verdict_of.values())) == 3
    for entry in history(releases.store)[3:]:
        assert (entry["action"], entry["verdict"]) == ("rollback", verdict_of[entry["release"]])


def test_after_a_rollback_the_next_promotion_goes_back_to_what_was_current(releases: Releases) -> None:
    first, second, third = (releases.passing(value) for value in (1, 2, 3))
    promote(releases.store, first)
    promote(releases.store, second)
    rollback(releases.store, anywhere)
    promote(releases.store, third)
    assert rollback(releases.store, anywhere).id == first.id


def test_rollback_refuses_a_changed_release(releases: Releases) -> None:
    first, second = releases.passing(1), releases.passing(2)
    promote(releases.store, first)
    promote(releases.store, second)
    (first.path / "more").touch()
    with pytest.raises(Stale):
        rollback(releases.store, anywhere)
    assert require_current(releases.store).id == second.id


def test_what_cannot_run_here_is_neither_promoted_nor_gone_back_to(releases: Releases) -> None:
    def nowhere(release: Artifact) -> None:
        raise EnvironmentUnfit("built for other GPUs", where=release.id, fix="build it here")

    first, second = releases.passing(1), releases.passing(2)
    with pytest.raises(EnvironmentUnfit, match="built for other GPUs"):
        promotion.promote(releases.store, first, verdict_of(releases.store, first), nowhere)
    assert history(releases.store) == []
    promote(releases.store, first)
    promote(releases.store, second)
    with pytest.raises(EnvironmentUnfit, match="built for other GPUs"):
        rollback(releases.store, nowhere)
    assert require_current(releases.store).id == second.id


def test_a_link_set_by_hand_has_no_way_back(releases: Releases) -> None:
    release = releases.passing(1)
    link(releases.store).symlink_to(f"releases/{release.id}")
    with pytest.raises(ConfigError, match="no earlier release"):
        rollback(releases.store, anywhere)


def test_releases_are_found_by_the_beginning_of_their_id(releases: Releases) -> None:
    with pytest.raises(ConfigError, match="there is no release yet"):
        find(releases.store, None)
    made = [releases.release(value) for value in range(4)]
    assert find(releases.store, None) == made[-1]
    assert find(releases.store, made[1].id[:8]) == made[1]
    for name, count in (("", 4), ("no", 0)):
        with pytest.raises(ConfigError, match=f"{count} releases begin"):
            find(releases.store, name)


def test_the_dry_runs_say_what_would_move_and_move_nothing(releases: Releases) -> None:
    first, second = releases.passing(1), releases.passing(2)
    root = releases.store.root
    write_config(root)
    assert trtpipe("promote", first.id, "--dry-run", folder=root).stdout == f"release {first.id} would become current\n"
    assert current(releases.store) is None
    promote(releases.store, first)
    assert "is current already" in trtpipe("promote", first.id, "--dry-run", folder=root).stdout
    promote(releases.store, second)
    assert trtpipe("rollback", "--dry-run", "--json", folder=root).document == {
        "schema_version": 1, "ok": True, "dry_run": True, "release": first.id, "digest": first.digest,
    }  # fmt: skip
    assert require_current(releases.store).id == second.id
    assert trtpipe("promote", releases.release(3).id, "--dry-run", folder=root).code == 6
