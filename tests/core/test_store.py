"""Artifacts by key and by age, and one run at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from core.stages import stage
from trtpipe.core.progress import Silent
from trtpipe.core.runner import Runner
from trtpipe.core.store import Store, write_json
from trtpipe.errors import LockBusy

if TYPE_CHECKING:
    from pathlib import Path

HOLDER = """
import sys
from pathlib import Path
from trtpipe.core.store import Store
with Store(Path(sys.argv[1])).lock("trtpipe run"):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_another_process_is_named_and_its_death_frees_the_lock(tmp_path: Path) -> None:
    store = Store(tmp_path)
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        with pytest.raises(LockBusy, match=f"`trtpipe run`, process {holder.pid}, since 20"), store.lock("x"):
            pytest.fail("both hold the lock")
        holder.kill()
        holder.wait()
    with store.lock("trtpipe status"):
        assert json.loads((store.state / "lock.json").read_text())["pid"] == os.getpid()
    assert not (store.state / "lock.json").exists()


def test_all_lists_the_oldest_first_and_nothing_unfinished(tmp_path: Path) -> None:
    runner = Runner(Store(tmp_path), Silent())
    made = [runner.obtain(stage(value=value)) for value in range(5)]
    partial = runner.store.partial("model", "f" * 64, keep=False)
    (partial / "record.json").write_text("{}")
    assert runner.store.all("model") == made


def test_only_the_whole_key_finds(tmp_path: Path) -> None:
    runner = Runner(Store(tmp_path), Silent())
    key = runner.obtain(stage()).record.key
    assert runner.store.find("model", key) is not None
    assert runner.store.find("model", key[:16] + "0" * 48) is None
    assert runner.store.find("engine", key) is None


def test_what_can_not_be_read_counts_as_no_last_run(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.last("small") is None
    store.remember("small", {"a": 1})
    assert store.last("small") == {"a": 1}
    (store.state / "last" / "small.json").write_text("{")
    assert store.last("small") is None


def test_json_is_replaced_and_leaves_no_temporary_file(tmp_path: Path) -> None:
    for value in ({"a": "é"}, {"a": 2}):
        write_json(tmp_path / "x.json", value)
        assert json.loads((tmp_path / "x.json").read_text("utf-8")) == value
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
