"""Equal stages are made once; whatever differs is named; what fails leaves nothing that looks finished."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import pytest

from core.stages import stage
from trtpipe.core.progress import Silent
from trtpipe.core.runner import Runner
from trtpipe.core.store import Store
from trtpipe.errors import ConfigError, EnvironmentUnfit, Problems, ToolFailed, raise_all

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.core.runner import Making


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(Store(tmp_path), Silent())


def must_not_run(making: Making) -> None:
    pytest.fail(f"{making.folder} is made again")


def test_an_equal_stage_is_reused(runner: Runner) -> None:
    first, second = runner.obtain(stage()), runner.obtain(stage(make=must_not_run))
    assert first == second
    assert [(o.reused, o.decision) for o in runner.outcomes] == [
        (False, "built: first run"),
        (True, "reused"),
    ]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"value": 2}, "parameters.value 1 -> 2"),
        ({"versions": {"tool": "2"}}, "versions.tool 1 -> 2"),
        ({"revision": 3}, "revision 1 -> 3"),
        ({"inputs": {"input": "f" * 64}}, "inputs.input 000000000000 -> ffffffffffff"),
        ({"inputs": {}}, "inputs.input 000000000000 -> none"),
    ],
)
def test_a_change_makes_it_anew_and_is_named(runner: Runner, changed: dict[str, Any], said: str) -> None:
    old = runner.obtain(stage())
    new = runner.obtain(stage(**changed))
    assert old.path != new.path
    assert runner.outcomes[-1].decision == f"built: {said}"
    assert runner.obtain(stage(make=must_not_run)) == old


def test_a_damaged_artifact_is_made_anew(runner: Runner) -> None:
    (runner.obtain(stage()).path / "file").write_text("longer than before")
    assert (runner.obtain(stage()).path / "file").read_text() == "content"
    assert runner.outcomes[-1].decision == "built: damaged since: file"


def test_a_deleted_artifact_is_made_anew(runner: Runner) -> None:
    (runner.obtain(stage()).path / "record.json").unlink()
    runner.obtain(stage())
    assert runner.outcomes[-1].decision == "built: the earlier result is gone"


def test_the_record_holds_what_the_stage_said(runner: Runner) -> None:
    def make(making: Making) -> None:
        making.figures["size_tokens"] = 3
        making.note("chose 3")

    record = runner.obtain(stage(make=make)).record
    assert (record.figures, record.notes, record.outputs) == ({"size_tokens": 3}, ["chose 3"], {})


def test_an_error_names_the_stages_log(runner: Runner) -> None:
    def fail(making: Making) -> None:
        making.log.write_text("much")
        raise_all([ConfigError("one", where="there"), ToolFailed("two", where=str(making.log))])

    with pytest.raises(Problems) as caught:
        runner.obtain(stage(make=fail))
    one, two = caught.value.each()
    assert one.log == two.where
    assert one.log == str(next((runner.store.state / "runs").glob("small-*/log.txt")))
    assert two.log is None


def test_what_the_system_refuses_is_located_and_leaves_no_half(runner: Runner) -> None:
    def fill(making: Making) -> None:
        (making.folder / "half").write_text("x")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(EnvironmentUnfit, match="No space left") as caught:
        runner.obtain(stage(make=fill))
    assert str(caught.value.where).endswith(".partial")
    assert not list((runner.store.root / "calibration/models").iterdir())


def test_what_is_foreseen_changes_nothing(runner: Runner) -> None:
    assert runner.foresee(stage()) == (None, "first run")
    assert list(runner.store.root.iterdir()) == []
    made = runner.obtain(stage())
    assert runner.foresee(stage())[0] == made
    assert runner.foresee(stage(value=2)) == (None, "parameters.value 1 -> 2")


@pytest.mark.parametrize("resumable", [False, True])
def test_a_failed_stage_leaves_no_artifact_and_resumes_only_if_it_can(runner: Runner, resumable: bool) -> None:
    def fail(making: Making) -> None:
        (making.folder / "half").touch()
        making.log.write_text("old words")
        raise RuntimeError

    def go_on(making: Making) -> None:
        assert (making.folder / "half").exists() == resumable
        assert not making.log.exists()

    with pytest.raises(RuntimeError):
        runner.obtain(stage(make=fail, resumable=resumable))
    assert runner.store.all("model") == []
    runner.obtain(stage(make=go_on, resumable=resumable))
    assert [folder.name for folder in (runner.store.root / "calibration/models").iterdir()] == [
        runner.outcomes[-1].artifact.id
    ]
