"""A TensorRT-LLM release goes no step further without a verdict, with a changed or missing file, on other GPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from standins import nvidia_smi
from trtllm_builds import Site
from trtllm_releases import done, engine_of, give_verdict, refused
from trtpipe.core import artifacts
from trtpipe.core.store import Store
from trtpipe.engines.trtllm.built import lock
from trtpipe.errors import ConfigError, EnvironmentUnfit, GateRejected, Stale
from trtpipe.release.current import current_id


@pytest.fixture
def site(with_engine: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return with_engine.copy(tmp_path / "site").on_path(monkeypatch)


def flip(path: Path) -> None:
    """Change a byte of this file alone: a release's files are links to the engine's."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.unlink()
    path.write_bytes(data)


def test_without_a_verdict_it_is_not_promoted(site: Site) -> None:
    done(site, "package")
    fault = refused(site, "promote")
    assert isinstance(fault, GateRejected)
    assert fault.what == "the release has no verdict"


def test_a_flipped_byte_is_refused_by_package_promote_and_serve(site: Site) -> None:
    release = done(site, "package")["release"]
    give_verdict(site, release)
    done(site, "promote")
    flip(site.folder / "triton_repo/releases" / release / "engine/rank5.engine")
    for words in (("promote",), ("serve", "--no-front")):
        fault = refused(site, *words)
        assert isinstance(fault, Stale)
        assert "engine/rank5.engine" in fault.what
    flip(engine_of(site) / "rank3.engine")
    fault = refused(site, "package")
    assert isinstance(fault, Stale)
    assert "rank3.engine" in fault.what


@pytest.mark.parametrize("recorded", [True, False])
def test_a_missing_rank_is_refused(site: Site, recorded: bool) -> None:
    engine = engine_of(site)
    (engine / "rank2.engine").unlink()
    if not recorded:
        (engine / artifacts.RECORD).unlink()
    fault = refused(site, "package", "--engine", str(engine))
    assert isinstance(fault, Stale if recorded else ConfigError)
    assert "rank2.engine" in fault.what if recorded else "rank 2 of 8 is missing" in fault.what


@pytest.mark.parametrize(
    ("gpus", "said"),
    [
        (
            {"name": "NVIDIA A10", "capability": "8.6", "memory_mib": 23028},
            "built for SM 80 (NVIDIA A100-SXM4-80GB), running on SM 86 (NVIDIA A10)",
        ),
        (
            {"name": "NVIDIA A100-PCIE-40GB", "memory_mib": 40960},
            "built for NVIDIA A100-SXM4-80GB, running on NVIDIA A100-PCIE",
        ),
        ({"driver": "550.1"}, "driver is 550.1, and the engine's CUDA needs 580 or newer"),
        ({"count": 4}, "the engine has 8 ranks, one a GPU, and there are 4 GPUs"),
    ],
)
def test_the_wrong_gpus_are_refused_at_each_step(site: Site, gpus: dict[str, Any], said: str) -> None:
    first = done(site, "package")["release"]
    give_verdict(site, first)
    done(site, "promote")
    second = done(site, "package", "--set", "prompts.template_date=2026-02-02")["release"]
    give_verdict(site, second)
    done(site, "promote")
    before = current_id(Store(site.folder))
    nvidia_smi.write(site.folder / "tensorrt-llm/bin", **gpus)
    for words in (("package",), ("promote", first), ("rollback",), ("rollback", "--dry-run"), ("serve",)):
        fault = refused(site, *words)
        assert isinstance(fault, EnvironmentUnfit), words
        assert said in fault.what
        assert str(fault.where).endswith(f"engine/{lock.LOCK}" if words != ("package",) else lock.LOCK)
    assert current_id(Store(site.folder)) == before
