"""What is said about the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from trtpipe.core import environment
from trtpipe.errors import EnvironmentUnfit


@pytest.mark.parametrize(
    ("flags", "can"),
    [((), False), (("avx2",), False), (("avx2", "avx512f"), True), (("amx_tile",), True)],
)
def test_fp8_kv_needs_avx512_or_amx(monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], can: bool) -> None:
    monkeypatch.setattr(environment, "cpu_flags", lambda: flags)
    assert environment.cpu_has_fp8_kv() is can


def test_the_description_fits_into_a_record() -> None:
    described = environment.describe()
    assert described["cpu_cores"] >= 1
    assert described["memory_gib"] > 0.1
    assert set(described["cpu_flags"]) <= set(environment.TELLING_CPU_FLAGS)


def test_a_missing_package_names_the_extra() -> None:
    assert environment.version_of("pydantic", extra="vllm")[0] == "2"
    with pytest.raises(EnvironmentUnfit) as caught:
        environment.version_of("no-such-package", extra="vllm")
    assert caught.value.fix is not None
    assert "trtpipe[vllm]" in caught.value.fix


def test_a_containers_limit_counts_where_it_is_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable: 8000 kB\n")
    monkeypatch.setattr(environment, "MEMORY_FILE", tmp_path / "meminfo")
    monkeypatch.setattr(environment, "CGROUP", tmp_path)
    assert environment.free_memory_bytes() == 8000 << 10
    (tmp_path / "memory.current").write_text("1024\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert environment.free_memory_bytes() == 8000 << 10
    (tmp_path / "memory.max").write_text("5120\n")
    assert environment.free_memory_bytes() == 4096
