"""The line that runs the builder in a container, of docker and of podman, as root and as a user."""

from __future__ import annotations

from pathlib import Path

import pytest

from trtpipe.engines.trtllm.build import container
from trtpipe.errors import EnvironmentUnfit

BOTH = "--ipc host --ulimit memlock=-1 --ulimit stack=67108864"
SELINUX = "--device nvidia.com/gpu=all --security-opt label=disable"
NAMED = "--env HOME=/tmp --env USER=trtpipe"


@pytest.mark.parametrize(
    ("engine", "uid", "options"),
    [
        ("docker", 1000, f"--gpus all {BOTH} --user 1000:100 {NAMED}"),
        ("docker", 0, f"--gpus all {BOTH} --user 0:100 {NAMED}"),
        ("podman", 1000, f"{SELINUX} --ipc host --ulimit host --userns keep-id --user 1000:100 {NAMED}"),
        ("podman", 0, f"{SELINUX} {BOTH} --user 0:100 {NAMED}"),  # root's podman refuses keep-id
    ],
)
def test_files_belong_to_the_user_and_folders_can_be_written(
    monkeypatch: pytest.MonkeyPatch, engine: str, uid: int, options: str
) -> None:
    monkeypatch.setattr("os.getuid", lambda: uid)
    monkeypatch.setattr("os.getgid", lambda: 100)
    line = container.wrapped(
        engine, "image:1", ["trtllm-build", "--workers", "8"], read=[Path("/in")], written=[Path("/out"), Path("/run")],
        label="build",
    )  # fmt: skip
    assert " ".join(line) == (
        f"{engine} run --rm --init --name build {options} --volume /in:/in:ro --volume /out:/out --volume /run:/run "
        "--workdir /out image:1 trtllm-build --workers 8"
    )
    probed = container.plain(engine, container.Image("image:1"))
    assert " ".join(probed) == f"{engine} run --rm {options.partition(' --user')[0]} image:1"


def engine(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> str:
    """Put a STAND-IN for docker on PATH that does what the script says."""
    (folder / "docker").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return "docker"


MINE, OTHER = "registry.example/team/image", "mirror.example/image"


@pytest.mark.parametrize(
    ("name", "listed", "reference", "digest"),
    [
        (f"{MINE}:1", [f"{OTHER}@sha256:o", f"{MINE}@sha256:m"], f"{MINE}@sha256:m", "sha256:m"),
        (f"{MINE}:1", [f"{MINE}@sha256:all", f"{MINE}@sha256:one"], f"{MINE}@sha256:all", "sha256:all"),
        (f"{MINE}@sha256:one", [f"{MINE}@sha256:all", f"{MINE}@sha256:one"], f"{MINE}@sha256:one", "sha256:one"),
        (f"{MINE}:1", [f"{OTHER}@sha256:o"], f"{OTHER}@sha256:o", None),
        (f"{MINE}:1", [], f"{MINE}:1", None),
    ],
    ids=["own", "several", "pinned", "of another repository", "never pulled"],
)
def test_bytes_are_named_as_the_engine_lists_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, listed: list[str], reference: str, digest: str | None
) -> None:
    image = container.inspect(engine(tmp_path, monkeypatch, f"printf '%s\\n' {' '.join(listed)}"), name)
    assert (image.reference, image.digest) == (reference, digest)
    assert sorted(image.references) == sorted(listed)


@pytest.mark.parametrize(
    "said", ["Error response from daemon: No such image: image:1", "Error: image:1: image not known"]
)
def test_an_image_that_is_not_here_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    docker = engine(tmp_path, monkeypatch, f"echo '{said}' >&2; exit 1")
    assert container.find(docker, "image:1") is None
    with pytest.raises(EnvironmentUnfit, match="the image image:1 is not on this machine"):
        container.inspect(docker, "image:1")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'permission denied while trying to connect' >&2; exit 1", "permission denied while trying to connect"),
        ("exit 125", "exit status 125"),
        ("exec sleep 5", "no answer in 0.1 s"),
    ],
)
def test_an_engine_that_does_not_answer_is_no_image_that_is_not_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    monkeypatch.setattr(container, "INSPECT_LIMIT_S", 0.1 if "sleep" in script else 60)
    with pytest.raises(EnvironmentUnfit) as caught:
        container.find(engine(tmp_path, monkeypatch, script), "image:1")
    assert caught.value.what == f"docker does not tell whether the image image:1 is here: {said}"
