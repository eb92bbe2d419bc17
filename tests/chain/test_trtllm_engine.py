"""A TensorRT-LLM engine through the stand-in builder: built and locked; and what is refused before it is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from standins import trtllm_build as standin
from trtllm_builds import Site, whats
from trtpipe.chain import trtllm_engine as chain
from trtpipe.core.progress import Silent
from trtpipe.core.runner import Runner
from trtpipe.core.store import Store
from trtpipe.engines.trtllm.built import inspection, lock
from trtpipe.errors import ConfigError, EnvironmentUnfit


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path / "site").on_path(monkeypatch)


@pytest.mark.parametrize("model_type", ["llama", "qwen2"])
def test_an_engine_of_eight_ranks_is_built_inspected_and_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model_type: str
) -> None:
    site = Site(tmp_path / "site", model_type=model_type)
    monkeypatch.setenv("PATH", str(site.install()), prepend=os.pathsep)
    made = site.build()
    assert {f"rank{rank}.engine" for rank in range(8)} < made.record.outputs.keys()
    assert {"config.json", "request.json", "engine.lock.json"} < made.record.outputs.keys()
    assert made.record.parts.versions == {"tensorrt_llm": "1.2.1", "tensorrt": "10.14.1.48"}
    assert made.record.figures["world_size"] == 8
    assert made.record.figures["peak_host_mib_of_a_rank"] == 123.5
    assert made.record.figures["builder_warnings"] == [], "nothing was asked for that the builder takes away"
    assert any("paged context FMHA is switched off" in note for note in made.record.notes)
    found = inspection.inspect(made.path)
    assert (found.findings, found.verified, found.engine.world_size) == ((), True, 8)
    assert found.lock is not None
    assert found.lock.sm_by_rank == [80] * 8
    assert (found.lock.driver_floor, found.lock.tensorrt) == (580, "10.14.1.48")
    caches = site.folder / ".trtpipe/timing-caches"
    assert [path.name for path in caches.iterdir()] == [
        "tensorrt-llm-1.2.1-tensorrt-10.14.1.48-nvidia-a100-sxm4-80gb.cache"
    ]


def test_an_equal_build_is_reused_and_another_limit_is_not(site: Site) -> None:
    first = site.build()
    assert site.build().path == first.path
    site.write(max_batch_size=4)
    assert site.build().path != first.path


def test_the_script_beside_the_log_builds_the_same_again(site: Site) -> None:
    made = site.build()
    (run,) = (site.folder / ".trtpipe/runs").iterdir()
    subprocess.run([run / "reproduce.sh"], check=True, capture_output=True)
    for name in ("config.json", "rank7.engine"):
        assert (run / "again" / name).read_bytes() == (made.path / name).read_bytes()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"version": "1.3.0rc21", "builder": False}, "TensorRT-LLM 1.3.0rc21 builds no engines: 1.3 removes"),
        ({"version": "1.1.0"}, "TensorRT-LLM 1.1.0 on TensorRT 10.14.1.48, and the target is for 1.2.1"),
        ({"builder": False}, "its builder can't be imported: ModuleNotFoundError"),
    ],
)
def test_an_installation_that_builds_no_such_engine_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], said: str
) -> None:
    site = Site(tmp_path / "site")
    monkeypatch.setenv("PATH", str(site.install(**options)), prepend=os.pathsep)
    with pytest.raises(EnvironmentUnfit) as caught:
        site.build()
    assert said in caught.value.what
    assert "tensorrt-llm==1.2.1" in str(caught.value.fix)
    assert not site.engines.exists()


def test_without_tensorrt_llm_the_way_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(tmp_path / "site")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentUnfit) as caught:
        site.build()
    assert caught.value.what == "there is no trtllm-build here, and neither docker nor podman to run it in"
    assert "nvcr.io/nvidia/tensorrt-llm/release:1.2.1" in str(caught.value.fix)


DIGEST = "sha256:" + "ab" * 32
IMAGE = "nvcr.io/nvidia/tensorrt-llm/release"


@pytest.mark.parametrize(
    ("image", "digest", "note"),
    [
        (f"{IMAGE}:1.2.1", DIGEST, f"built in {IMAGE}@{DIGEST}: {IMAGE}:1.2.1, which the target names, can come to "),
        (f"{IMAGE}:1.2.1", None, "it has no digest"),
        (f"{IMAGE}@{DIGEST}", DIGEST, f"built in {IMAGE}@{DIGEST}"),
    ],
)
def test_without_tensorrt_llm_on_the_host_the_container_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, image: str, digest: str | None, note: str
) -> None:
    site = Site(tmp_path / "site")
    docker = standin.install_docker(tmp_path / "docker", site.install(), digest)
    monkeypatch.setenv("PATH", str(docker), prepend=os.pathsep)
    site.write(container_image=image)
    made = site.build()
    assert any(note in said for said in made.record.notes)
    kept = lock.read(made.path)
    assert (kept.container_image, kept.container_digest) == (image, digest)
    build, killed = (docker / "calls.txt").read_text().splitlines()[-2:]
    assert f"--volume {site.checkpoint}:{site.checkpoint}:ro" in build
    runs = image if digest is None else f"{IMAGE}@{DIGEST}"
    calls = (docker / "calls.txt").read_text().splitlines()
    assert f"{runs} trtllm-build --checkpoint_dir {site.checkpoint}" in build
    assert all(f" {runs} " in call for call in calls if call.startswith("run ")), "probed and built in the same bytes"
    assert killed == f"kill {build.split('--name ')[1].split()[0]}", "the client's end is not the container's"


def test_without_docker_podman_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(tmp_path / "site")
    podman = standin.install_docker(tmp_path / "podman", site.install(), DIGEST, name="podman")
    monkeypatch.setenv("PATH", f"{podman}:/usr/bin:/bin")
    monkeypatch.setattr("os.getuid", lambda: 1000)
    made = site.build()
    assert inspection.inspect(made.path).findings == ()
    build = (podman / "calls.txt").read_text().splitlines()[-2]
    assert " --security-opt label=disable " in build
    assert " --userns keep-id --user 1000:" in build


def gpus(programs: Path, line: str, count: int = 8) -> None:
    named = "," in line  # else it is what the driver says instead of GPUs
    lines = "".join(f"{number}, GPU-{number}, {line}\n" if named else f"{line}\n" for number in range(count))
    (programs / "nvidia-smi").write_text("#!/bin/sh\ncat <<'END'\n" + lines + "END\n")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("NVIDIA A10, 8.6, 23028, 580.1, 22500", "and this machine has NVIDIA A10 (SM 86, 23028 MiB)"),
        ("NVIDIA A100-SXM4-40GB, 8.0, 40960, 580.1, 40337", "and this machine has NVIDIA A100-SXM4-40GB"),
        ("NVIDIA A100-SXM4-80GB, 8.0, 81920, 550.1, 81153", "driver 550.1 is too old: this release's CUDA needs 580"),
        ("No devices were found", "the NVIDIA driver does not list the GPUs: No devices were found"),
    ],
)
def test_the_wrong_gpus_are_refused_before_the_build(site: Site, line: str, said: str) -> None:
    gpus(site.folder / "tensorrt-llm/bin", line)
    with pytest.raises(EnvironmentUnfit) as caught:
        site.build()
    assert said in caught.value.what or said in f"{caught.value.what}: {line}"
    assert not site.engines.exists()


def test_an_older_driver_that_the_images_take_builds_with_a_note(site: Site) -> None:
    gpus(site.folder / "tensorrt-llm/bin", "NVIDIA A100-SXM4-80GB, 8.0, 81920, 535.261.03, 81153")
    assert any(note.startswith("driver 535.261.03 is older than 580: it runs") for note in site.build().record.notes)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kv_dtype": "model"}, "quantization.kv_cache_quant_algo is FP8, and the plan says None"),
        ({"tensor_parallel": 4}, "mapping.tp_size is 8, and the plan says 4"),
        ({"dtype": "float16"}, "dtype is bfloat16, and the plan says float16"),
    ],
)
def test_a_checkpoint_that_is_not_the_plans_is_refused_before_anything(
    site: Site, change: dict[str, Any], said: str
) -> None:
    site.write(**change)
    with pytest.raises(ConfigError) as caught:
        site.build()
    assert f"the checkpoint's {said}" in whats(caught)
    assert caught.value.each()[0].where == str(site.checkpoint / "config.json")


def test_a_checkpoint_that_lacks_ranks_or_is_none_is_refused(site: Site) -> None:
    (site.checkpoint / "rank1.safetensors").unlink()
    (site.checkpoint / "rank4.safetensors").write_bytes(b"")
    with pytest.raises(ConfigError) as caught:
        site.build()
    assert whats(caught).splitlines() == ["the checkpoint lacks rank 1", "the checkpoint lacks rank 4"]
    _, foretold = site.plan()
    with pytest.raises(ConfigError, match="no `architecture` and `mapping`"):
        chain.build(Runner(Store(site.folder), Silent()), foretold, site.model)
