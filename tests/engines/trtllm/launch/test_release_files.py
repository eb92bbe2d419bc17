"""The launch files of a release say what the engine, the target and the lock say, and are valid in their languages."""

from __future__ import annotations

import itertools
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kubernetes_validate
import pytest
import yaml

import launches
from trtpipe.engines.trtllm.built import lock
from trtpipe.engines.trtllm.launch import metrics, release_files, systemd
from trtpipe.engines.trtllm.launch.line import Ports

if TYPE_CHECKING:
    from collections.abc import Callable

KUBERNETES = ("1.27", "1.37")  # the disruption budget's eviction policy is from 1.27 on
OURS = ("README.md", "compose.yaml", "kubernetes.yaml", systemd.UNIT)


def made(folder: Path, ports: Ports | None = None, target: dict[str, Any] | None = None, **of_engine: Any) -> Any:
    engine = launches.engine(folder / "engine", **of_engine)
    return release_files.files(engine, launches.target(**target or {}), lock.read(engine), ports)


def container_of(files: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(files["compose.yaml"])["services"]["tritonserver"]
    return found


def objects_of(files: dict[str, str]) -> dict[str, Any]:
    return {one["kind"]: one for one in yaml.safe_load_all(files["kubernetes.yaml"])}


@pytest.mark.parametrize("name", OURS)
def test_they_are_as_they_were(tmp_path: Path, golden: Callable[[str, str], None], name: str) -> None:
    golden(f"launch/{name}", made(tmp_path)[name])


@pytest.mark.parametrize(("tp", "pp"), [(1, 1), (4, 2)])
def test_gpus_are_as_many_as_the_engine_has_ranks(tmp_path: Path, tp: int, pp: int) -> None:
    files = made(tmp_path, tp=tp, pp=pp)
    (device,) = container_of(files)["deploy"]["resources"]["reservations"]["devices"]
    assert device["count"] == tp * pp
    (container,) = objects_of(files)["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": tp * pp}
    assert files["README.md"].count("  -n 1 /opt/tritonserver/bin/tritonserver ") == tp * pp


DIGEST = f"sha256:{'a' * 64}"
TRITON = "nvcr.io/nvidia/tritonserver:26.05-trtllm-python-py3"


@pytest.mark.parametrize(
    ("target", "of_lock", "image"),
    [
        ({}, {}, "nvcr.io/nvidia/tritonserver:26.04-trtllm-python-py3"),
        ({}, {"container_image": "nvcr.io/nvidia/tensorrt-llm/release:1.2.1", "container_digest": DIGEST},
         "nvcr.io/nvidia/tritonserver:26.04-trtllm-python-py3"),
        ({}, {"container_image": TRITON, "container_digest": DIGEST}, f"{TRITON}@{DIGEST}"),
        ({}, {"container_image": f"{TRITON}@{DIGEST}", "container_digest": DIGEST}, f"{TRITON}@{DIGEST}"),
        ({}, {"container_image": TRITON}, TRITON),
        ({"serving_image": f"registry.example/triton@{DIGEST}"}, {}, f"registry.example/triton@{DIGEST}"),
    ],
)  # fmt: skip
def test_the_image_is_the_one_that_built_where_it_can_serve(
    tmp_path: Path, target: dict[str, Any], of_lock: dict[str, Any], image: str
) -> None:
    files = made(tmp_path, target=target, **of_lock)
    assert container_of(files)["image"] == image
    assert f"image: {image}\n" in files["kubernetes.yaml"]
    assert ("named by a tag" in files["README.md"]) == ("@sha256:" not in image)


def test_ports_of_the_host_are_on_its_loopback(tmp_path: Path) -> None:
    files = made(tmp_path, Ports(18000, 18001, 18002))
    assert container_of(files)["ports"] == ["127.0.0.1:18000:8000", "127.0.0.1:18001:8001", "127.0.0.1:18002:8002"]


def test_the_autoscaler_reads_series_that_the_backend_has(tmp_path: Path) -> None:
    found = objects_of(made(tmp_path))["HorizontalPodAutoscaler"]["spec"]["metrics"]
    wanted = {}
    for metric in found:
        asked = metric["pods"]["metric"]
        assert asked["name"] == metrics.REQUESTS.name
        ((label, value),) = asked["selector"]["matchLabels"].items()
        assert label == metrics.REQUESTS.label
        assert value in metrics.REQUESTS.values
        wanted[value] = metric["pods"]["target"]["averageValue"]
    # a queue for want of places shows as `active` at `max` only, one for want of KV blocks as `waiting`
    assert wanted == {"active": "204800m", "waiting": "16"}
    with pytest.raises(ValueError, match="has no request_type queued"):
        metrics.REQUESTS.selector("queued")


@pytest.mark.parametrize("version", KUBERNETES)
def test_kubernetes_takes_the_manifests(tmp_path: Path, version: str) -> None:
    objects = objects_of(made(tmp_path))
    assert list(objects) == ["Deployment", "Service", "PodDisruptionBudget", "HorizontalPodAutoscaler"]
    for one in objects.values():
        kubernetes_validate.validate(one, version, strict=True)
    objects["Deployment"]["spec"]["template"]["spec"]["containers"][0]["startupProbe"]["failures"] = 1
    with pytest.raises(kubernetes_validate.ValidationError, match="failures"):
        kubernetes_validate.validate(objects["Deployment"], version, strict=True)


def compose_faults(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_compose_takes_its_file(tmp_path: Path) -> None:
    text, path = made(tmp_path)["compose.yaml"], tmp_path / "compose.yaml"
    path.write_text(text)
    assert compose_faults(path).returncode == 0, compose_faults(path).stdout
    path.write_text(text.replace("shm_size:", "shm_bytes:"))
    assert "shm_bytes" in compose_faults(path).stdout


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    path = tmp_path / systemd.UNIT
    text = systemd.text()

    def said(text: str) -> str:
        path.write_text(text)
        command = ["systemd-analyze", "verify", "--man=no", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        return done.stdout + done.stderr

    assert said(text) == ""
    assert "StopGrace" in said(text.replace("TimeoutStopSec", "StopGrace"))


def compose_calls(release: str, folder: Path) -> list[list[str]]:
    """Run the unit's lines for a release as systemd would, with a stand-in for docker, and return what it was told."""
    docker = folder / "docker"
    docker.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    docker.chmod(0o755)
    meant = {"%f": release, "%%": "%", "$$": "$"}
    calls = []
    for line in re.findall(r"^Exec\w+=(.*)$", systemd.text(), re.MULTILINE):
        words = [re.sub(r"%.|\$\$", lambda found: meant[found[0]], word) for word in shlex.split(line)]
        told = subprocess.run(
            words, env={"PATH": f"{folder}:/usr/bin:/bin"}, capture_output=True, text=True, check=True, timeout=30
        ).stdout
        calls.append(json.loads(told))
    return calls


def test_each_release_under_systemd_is_a_compose_project_of_its_own(tmp_path: Path) -> None:
    names = set()
    for release in ("/srv/releases/a", "/srv/releases/B", "/srv/releases/a b's $HOME"):
        up, down = (dict(itertools.pairwise(call)) for call in compose_calls(release, tmp_path))
        assert (up["compose.yaml"], down["compose.yaml"]) == ("up", "down")
        assert up["--project-name"] == down["--project-name"], "it ends what it has started"
        assert re.fullmatch("[a-z0-9][a-z0-9_-]*", up["--project-name"]), "compose takes no other"
        names.add(up["--project-name"])
    assert len(names) == 3


def test_readiness_is_asked_for_longer_than_the_launcher_waits(tmp_path: Path) -> None:
    files = made(tmp_path, target={"load_time_limit_s": 600})
    (container,) = objects_of(files)["Deployment"]["spec"]["template"]["spec"]["containers"]
    probe = container["startupProbe"]
    assert container["command"][-2:] == ["--time-limit-s", "600"]
    assert 600 < probe["periodSeconds"] * probe["failureThreshold"] < 700
    assert container_of(files)["healthcheck"]["start_period"] == "660s"


@pytest.mark.parametrize(("limit_s", "word"), [(0.3, "0.3"), (1800, "1800"), (2000000.5, "2000000.5")])
def test_a_time_limit_is_not_rounded_on_its_way_to_the_launcher(tmp_path: Path, limit_s: float, word: str) -> None:
    files = made(tmp_path, target={"load_time_limit_s": limit_s})
    assert container_of(files)["command"][-2:] == ["--time-limit-s", word]
    assert f"not answered after {word} s" in files["README.md"]
