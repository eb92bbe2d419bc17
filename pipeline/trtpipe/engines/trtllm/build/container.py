"""The same program in a container: docker or podman, and which bytes of the image it was."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trtpipe.errors import EnvironmentUnfit

ENGINES = ("docker", "podman")
INSPECT_LIMIT_S = 60
# What docker and podman say of an image that they have not; anything else on stderr is a fault of theirs.
ABSENT = re.compile("no such image|image not known", re.IGNORECASE)
# podman under SELinux gives neither the GPUs nor the user's folders to a confined container.
GPUS = {
    "docker": ("--gpus", "all"),
    "podman": ("--device", "nvidia.com/gpu=all", "--security-opt", "label=disable"),
}
# As NVIDIA's documentation runs its images: CUDA needs more locked memory and stack, ranks share memory.
LIMITS = ("--ipc", "host", "--ulimit", "memlock=-1", "--ulimit", "stack=67108864")
# Nobody but root raises a limit: podman would end with "setrlimit: Operation not permitted" (its issue 19319).
LIMITS_OF_A_USER = ("--ipc", "host", "--ulimit", "host")
# The user has no entry in the image's /etc/passwd: Python's getpass, which torch asks, takes USER first.
NAME = ("--env", "HOME=/tmp", "--env", "USER=trtpipe")


@dataclass(frozen=True)
class Image:
    """``references``: NAME@sha256:... of these bytes, those of the image's own repository first.

    There are none where it was never pulled, several where it has other names, or one repository lists the manifest
    under several digests, as podman does with that of all platforms and that of this one.
    """

    name: str
    references: tuple[str, ...] = ()

    @property
    def is_pinned(self) -> bool:
        return "@sha256:" in self.name

    @property
    def reference(self) -> str:
        """What names these bytes: a tag can mean others from one command to the next."""
        return self.name if self.is_pinned or not self.references else self.references[0]

    @property
    def digest(self) -> str | None:
        """sha256:... under which its own repository has it; None where that is not known."""
        repository, _, digest = self.reference.partition("@")
        return digest if digest and repository_of(repository) == repository_of(self.name) else None


def repository_of(name: str) -> str:
    """Return an image's name without tag and digest."""
    bare = name.partition("@")[0]
    path, colon, tag = bare.rpartition(":")
    return path if colon and "/" not in tag else bare


def engine() -> str | None:
    return next((name for name in ENGINES if shutil.which(name)), None)


def inspect(engine: str, name: str) -> Image:
    """Return the image on this machine. Raises what ``find`` does, and where it is not here: nothing is fetched."""
    found = find(engine, name)
    if found is None:
        raise EnvironmentUnfit(
            f"the image {name} is not on this machine", where=engine, fix=f"{engine} pull {name}; then the same command"
        )
    return found


def find(engine: str, name: str) -> Image | None:
    """Return the image, None where it is not on this machine.

    Raises EnvironmentUnfit where that cannot be told: the daemon is down, or not for this user.
    """
    command = [engine, "image", "inspect", "--format", "{{range .RepoDigests}}{{println .}}{{end}}", name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=INSPECT_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise _unanswered(engine, name, f"no answer in {INSPECT_LIMIT_S} s") from None
    except OSError as fault:
        raise _unanswered(engine, name, str(fault)) from None
    if done.returncode and ABSENT.search(done.stderr):
        return None
    if done.returncode:
        raise _unanswered(engine, name, done.stderr.strip() or f"exit status {done.returncode}")
    listed = [line for line in done.stdout.split() if "@" in line]
    return Image(name, tuple(sorted(listed, key=lambda line: repository_of(line) != repository_of(name))))


def _unanswered(engine: str, name: str, said: str) -> EnvironmentUnfit:
    return EnvironmentUnfit(
        f"{engine} does not tell whether the image {name} is here: {said}",
        where=engine,
        fix=f"`{engine} image inspect {name}` has to work for this user: does the service run, and let the user in?",
    )


def plain(engine: str, image: Image) -> list[str]:
    return [engine, "run", "--rm", *_options(engine), image.reference]


def _options(engine: str) -> list[str]:
    return [*GPUS[engine], *(LIMITS_OF_A_USER if _is_rootless(engine) else LIMITS)]


def _is_rootless(engine: str) -> bool:
    return engine == "podman" and os.getuid() != 0


def wrapped(
    engine: str, name: str, command: Sequence[str], *, read: Sequence[Path], written: Sequence[Path], label: str
) -> list[str]:
    """Return the command inside the image: the folders lie at the same paths, files belong to the user.

    A user's podman has numbers of users of its own: without ``keep-id`` the user's number is another there, who may not
    write into the user's folders.
    """
    mounts = [f"{path}:{path}:ro" for path in read] + [f"{path}:{path}" for path in written]
    user = f"{os.getuid()}:{os.getgid()}"
    return [
        engine, "run", "--rm", "--init", "--name", label, *_options(engine),
        *(("--userns", "keep-id") if _is_rootless(engine) else ()), "--user", user, *NAME,
        *(word for mount in mounts for word in ("--volume", mount)), "--workdir", str(written[0]), name, *command,
    ]  # fmt: skip


def by_hand(engine: str, name: str) -> str:
    words = [engine, "run", "--rm", *_options(engine), "--volume", "$PWD:$PWD", "--workdir", "$PWD", name]
    return " ".join(words)


def kill(engine: str, label: str) -> None:
    """End a container whose client has been ended; one that is gone already is no fault."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run([engine, "kill", label], capture_output=True, check=False, timeout=INSPECT_LIMIT_S)
