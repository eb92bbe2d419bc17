"""Every ending has its exit code and a readable text; never a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import trtpipe
from trtpipe import __main__, cli
from trtpipe.core.store import Store

if TYPE_CHECKING:
    from typing import Any

CONFIG = "model: sample\nprompts: {files: [a.jsonl]}\ntarget: engine.yaml\n"
TARGET = "kind: vllm\nweights: w4a16\nkv_dtype: [bfloat16]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "trtpipe.yaml").write_text(CONFIG)
    (tmp_path / "engine.yaml").write_text(TARGET)
    (tmp_path / "a.jsonl").write_text('{"prompt": "one"}\n')
    return tmp_path


def run(folder: Path, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "trtpipe", *arguments],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "TRTPIPE_CONFIG"} | options,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stdout + done.stderr
    return done


def test_done_is_0_with_the_result_on_standard_output(folder: Path) -> None:
    done = run(folder, "validate")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{folder / 'trtpipe.yaml'}: valid (model sample, engine vllm)\n"


def test_json_results(folder: Path) -> None:
    document = json.loads(run(folder, "validate", "--json", "--set", "prompts.seed=3").stdout)
    assert (document["schema_version"], document["ok"]) == (1, True)
    assert document["config"]["prompts"]["seed"] == 3
    document = json.loads(run(folder, "status", "--json").stdout)
    assert document == {"schema_version": 1, "ok": True, "current": None, "releases": [], "history": []}


def test_the_config_may_come_from_the_environment(folder: Path) -> None:
    assert run(folder / "..", "validate", TRTPIPE_CONFIG=str(folder / "trtpipe.yaml")).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["validat"], 2, "error: No such command 'validat'"),
        (["validate", "--no"], 2, "error: No such option"),
        (["validate", "--set", "seed"], 2, "error: not of the form path=value: seed"),
        (["validate", "--set", "prompts..seed=1"], 2, "error: not of the form path=value: prompts..seed=1"),
        (["validate", "-c", "no.yaml"], 3, "error: the file does not exist"),
        (["validate", "--set", "prompts.seed=-1"], 3, "error: `prompts.seed`: Input should be greater"),
        (["promote"], 3, "error: there is no release yet"),
        (["promote", "3f2a"], 3, "error: there is no release yet"),
        (["rollback"], 3, "error: no release is promoted yet"),
        (["serve"], 3, "error: no release is promoted yet"),
    ],
)
def test_errors_have_three_parts_and_a_code(folder: Path, arguments: list[str], code: int, said: str) -> None:
    done = run(folder, *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    what, where, fix = done.stderr.splitlines()
    assert what.startswith(said)
    assert where.startswith("  where: ")
    assert fix.startswith("  fix:   ")
    as_json = run(folder, *arguments, "--json")
    assert (as_json.returncode, as_json.stderr) == (code, "")
    document = json.loads(as_json.stdout)
    assert document["ok"] is False
    assert document["errors"][0]["exit_code"] == code
    assert f"error: {document['errors'][0]['what']}" == what


def test_a_prompt_is_no_option(folder: Path) -> None:
    nobody_answers = ["ask", "--set", "serving.http_port=1"]
    done = run(folder, *nobody_answers, "--", "--json")
    assert (done.returncode, done.stdout, done.stderr.splitlines()[0]) == (4, "", "error: no server answers")
    assert json.loads(run(folder, *nobody_answers, "--json", "--", "--json").stdout)["errors"][0]["exit_code"] == 4


def test_json_lists_all_problems(folder: Path) -> None:
    done = run(folder, "validate", "--json", "--set", "prompts.seed=-1", "--set", "target.kv_pool_mib=0")
    assert len(json.loads(done.stdout)["errors"]) == 2


def test_without_a_command_the_help_is_shown_as_a_usage_fault(folder: Path) -> None:
    done = run(folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Usage: trtpipe" in done.stderr


def test_the_version(folder: Path) -> None:
    assert run(folder, "--version").stdout == f"trtpipe, version {trtpipe.__version__}\n"


def test_a_busy_workspace_is_8(folder: Path) -> None:
    with Store(folder).lock("trtpipe run"):
        done = run(folder, "rollback")
    assert done.returncode == 8
    assert f"`trtpipe run`, process {os.getpid()}" in done.stderr


def test_a_system_that_refuses_is_4(folder: Path) -> None:
    (folder / ".trtpipe").write_text("a file where a folder must be")
    done = run(folder, "rollback")
    assert done.returncode == 4
    assert ".trtpipe" in done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["status"], ["validate", "-c", "no.yaml", "--json"]])
def test_a_reader_that_is_gone_is_no_error(folder: Path, arguments: list[str]) -> None:
    read_fd, write_fd = os.pipe()
    os.close(read_fd)
    done = subprocess.run(
        [sys.executable, "-m", "trtpipe", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONUNBUFFERED": ""},
        stdout=write_fd,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write_fd)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        (RuntimeError("odd"), 1, "this is a bug in trtpipe: RuntimeError: odd"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_unforeseen_endings(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    fault: BaseException,
    code: int,
    said: str,
) -> None:
    def fail(*_: object) -> None:
        raise fault

    monkeypatch.setattr(cli.LazyGroup, "invoke", fail)
    monkeypatch.setattr(sys, "argv", ["trtpipe", "status"])
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit) as caught:
        __main__.main()
    assert caught.value.code == code
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    for report in tmp_path.glob("trtpipe-bug-*.txt"):
        assert str(report) in error
        assert "RuntimeError: odd" in report.read_text()
    assert len(list(tmp_path.iterdir())) == (code == 1)


WAITING = """
import sys, time
from trtpipe import __main__, cli
def wait(*_):
    print("waiting", flush=True)
    time.sleep(60)
cli.LazyGroup.invoke = wait
sys.argv = ["trtpipe", "status"]
__main__.main()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_130(number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", WAITING], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"waiting\n"
        child.send_signal(number)
        _, error = child.communicate(timeout=20)
    assert child.returncode == 130
    assert b"Traceback" not in error
    assert b"run the same command again" in error


@pytest.mark.parametrize("given", [["validate"], ["validate", "--json", "-c", "nope"]])
def test_an_output_that_cannot_be_written_is_4_and_no_traceback(folder: Path, given: list[str]) -> None:
    for redirection in ("> /dev/full", ">&-"):
        command = f'"{sys.executable}" -m trtpipe {" ".join(given)} {redirection}'
        done = subprocess.run(["/bin/sh", "-c", command], cwd=folder, capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr
        assert done.returncode in {0, 3, 4}
        if "full" in redirection:
            assert done.returncode == 4


def test_a_link_that_leads_to_itself_is_3(folder: Path) -> None:
    (folder / "triton_repo").mkdir()
    (folder / "triton_repo/current").symlink_to("current")
    done = run(folder, "status")
    assert (done.returncode, "Symlink loop" in done.stderr) == (3, True)


def test_not_a_number_is_no_time_to_wait(folder: Path) -> None:
    done = run(folder, "calibrate", "--wait", "nan")
    assert (done.returncode, "no number of seconds" in done.stderr) == (2, True)
