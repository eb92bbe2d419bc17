"""The ``current`` link moves in one step, and its history survives whatever happens to releases."""

from __future__ import annotations

import errno
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from trtpipe.errors import ConfigError
from trtpipe.release.current import HISTORY, current, history, link, require_current, switch

if TYPE_CHECKING:
    from release.releases import Releases


def test_before_the_first_promotion_there_is_none(releases: Releases) -> None:
    assert current(releases.store) is None
    assert history(releases.store) == []
    with pytest.raises(ConfigError, match="no release is promoted yet"):
        require_current(releases.store)


def test_the_link_is_relative_and_the_history_says_all(releases: Releases) -> None:
    first, second = releases.release(1), releases.release(2)
    switch(releases.store, first, "promote", "v1")
    switch(releases.store, second, "promote", "v2")
    assert not link(releases.store).readlink().is_absolute()
    assert require_current(releases.store) == current(releases.store)
    assert require_current(releases.store).digest == second.digest
    assert [(e["action"], e["release"], e["verdict"], e["previous"]) for e in history(releases.store)] == [
        ("promote", first.id, "v1", None),
        ("promote", second.id, "v2", first.id),
    ]
    assert [path.name for path in link(releases.store).parent.iterdir() if path.name.startswith(".")] == []


def test_a_link_to_a_deleted_release_can_be_moved(releases: Releases) -> None:
    first, second = releases.release(1), releases.release(2)
    switch(releases.store, first, "promote", "v1")
    shutil.rmtree(first.path)
    with pytest.raises(ConfigError, match="not a finished artifact"):
        current(releases.store)
    switch(releases.store, second, "promote", "v2")
    assert require_current(releases.store).id == second.id
    assert history(releases.store)[-1]["previous"] == first.id


def test_half_a_line_of_history_is_told(releases: Releases) -> None:
    switch(releases.store, releases.release(1), "promote", "v1")
    with (releases.store.root / HISTORY).open("a") as file:
        file.write('{"time": "20')
    with pytest.raises(ConfigError, match="the history is damaged"):
        history(releases.store)


def test_a_full_disk_leaves_the_history_whole(releases: Releases, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = releases.release(1), releases.release(2)
    switch(releases.store, first, "promote", "v1")

    def full(_fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        switch(releases.store, second, "promote", "v2")
    assert require_current(releases.store).digest == first.digest
    assert [entry["release"] for entry in history(releases.store)] == [first.id]


@pytest.mark.parametrize("line", [b"5", b"[]", b'{"a": 1}', b"\xff"])
def test_a_line_of_history_that_is_no_promotion_is_told(releases: Releases, line: bytes) -> None:
    releases.store.root.joinpath("triton_repo").mkdir(parents=True, exist_ok=True)
    (releases.store.root / HISTORY).write_bytes(line + b"\n")
    with pytest.raises(ConfigError, match="the history is damaged") as caught:
        history(releases.store)
    assert str(caught.value.where).endswith(":1")
