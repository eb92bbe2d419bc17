"""A served workspace goes over to what becomes current, and stays where that can't be served."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from trtpipe.chain import following
from trtpipe.chain.following import Following, held
from trtpipe.core import artifacts
from trtpipe.core.artifacts import Artifact
from trtpipe.core.store import Store
from trtpipe.errors import ToolFailed
from trtpipe.triton_repo.server import Addresses, Server

FIRST, SECOND = Addresses("127.0.0.1", 1, 2, 3), Addresses("127.0.0.1", 11, 12, 13)
SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


class Site:
    """Servers that only sleep.

    ``broken``: releases that don't start; ``slow``: those that start until unwanted; ``lingering``: those that take
    their time to end. ``fault``: why the front does not go over.
    """

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder)
        self.broken: set[str] = set()
        self.slow: set[str] = set()
        self.lingering: set[str] = set()
        self.fault: Exception | None = None
        self.began: list[tuple[str, Addresses]] = []
        self.ended: list[str] = []
        self.over: list[str] = []
        self.said: list[str] = []
        (folder / "triton_repo").mkdir()

    def make_current(self, name: str) -> Artifact:
        link = self.store.root / "triton_repo" / "current"
        link.unlink(missing_ok=True)
        link.symlink_to(f"releases/{name}")
        return Artifact(link.parent / "releases" / name, None)  # type: ignore[arg-type]

    @contextmanager
    def start(self, release: Artifact, at: Addresses, is_unwanted: Callable[[], bool]) -> Iterator[Server]:
        self.began.append((release.id, at))
        if release.id in self.slow:
            while not is_unwanted():
                pass
            self.ended.append(release.id)
        if release.id in self.broken | self.slow:
            raise ToolFailed("it does not start", where="here", fix="none")
        with subprocess.Popen(SLEEP) as process:
            yield Server(at, process, Path("log"), 0.0)
            time.sleep(0.3 if release.id in self.lingering else 0)
            process.kill()
        self.ended.append(release.id)

    async def go_over(self, served: Any) -> int:
        assert served[0] not in self.ended
        if self.fault is not None:
            raise self.fault
        self.over.append(served[0])
        return 0

    def served(self, release: Artifact, at: Addresses) -> Any:
        return release.id, at

    def following(self) -> Following:
        return Following(self.store, self.start, (FIRST, SECOND), self.served, self.go_over, self.said.append)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setattr(following, "POLL_S", 0.02)
    monkeypatch.setattr(artifacts, "read", lambda path: Artifact(path, None))  # type: ignore[arg-type]
    monkeypatch.setattr(following.servable, "require", lambda release, note: None)
    return Site(tmp_path)


def follow(site: Site, *steps: Callable[[], bool]) -> None:
    """Serve release a, then take each step and wait until it is true."""

    async def run() -> None:
        with held(site.start, site.make_current("a"), FIRST) as first:
            task = asyncio.ensure_future(site.following().run(first))
            try:
                for step in steps:
                    async with asyncio.timeout(20):
                        while not step():
                            await asyncio.sleep(0.01)
                            assert not task.done(), task.exception()
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


def test_each_release_that_becomes_current_takes_the_ports_that_are_free(site: Site) -> None:
    def goes_over(name: str) -> Callable[[], bool]:
        return lambda: bool(site.make_current(name)) and site.over[-1:] == [name]

    follow(site, goes_over("b"), lambda: site.ended == ["a"], goes_over("c"), lambda: site.ended == ["a", "b"])

    assert site.began == [("a", FIRST), ("b", SECOND), ("c", FIRST)]
    assert site.ended == ["a", "b", "c"]


def test_what_can_t_be_served_is_said_once_and_changes_nothing(site: Site) -> None:
    site.broken = {"b"}
    looks = iter(range(20))

    follow(
        site,
        lambda: bool(site.make_current("b")) and len(site.said) == 2,
        lambda: next(looks) == 19,  # meanwhile it is looked at again and again
    )

    assert site.said[1].startswith("release b can't be served, a still is: error: it does not start")
    assert (len(site.said), site.over, site.ended) == (2, [], ["a"])


def test_a_stop_does_not_wait_for_a_start(site: Site) -> None:
    site.slow = {"b"}

    follow(site, lambda: bool(site.make_current("b")) and site.began[-1][0] == "b")

    assert sorted(site.ended) == ["a", "b"]


def test_a_stop_while_the_old_server_ends_ends_both(site: Site) -> None:
    site.lingering = {"a"}

    follow(site, lambda: bool(site.make_current("b")) and site.over == ["b"])

    assert sorted(site.ended) == ["a", "b"]


@pytest.mark.parametrize("fault", [ToolFailed("no", where="here", fix="none"), ValueError("no"), KeyError("no")])
def test_a_server_that_the_front_can_t_go_over_to_is_ended(site: Site, fault: Exception) -> None:
    site.fault = fault

    follow(site, lambda: bool(site.make_current("b")) and len(site.said) == 2)

    assert "`trtpipe promote b` has it tried again" in site.said[1]
    assert site.ended == ["b", "a"]


def test_a_server_that_ends_by_itself_is_told(site: Site) -> None:
    async def run() -> None:
        with held(site.start, site.make_current("a"), FIRST) as first:
            first.server.result().supervisor.kill()
            await site.following().run(first)

    with pytest.raises(ToolFailed, match="Triton ended by itself"):
        asyncio.run(run())
