"""The line that runs the builder in a container, of docker and of podman, as root and as a user."""

from __future__ import annotations

from pathlib import Path

import pytest

from trtpipe.engines.trtllm.build import container

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
    probed = container.plain(engine, container.Image("image:1", None))
    assert " ".join(probed) == f"{engine} run --rm {options.partition(' --user')[0]} image:1"
