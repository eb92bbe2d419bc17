"""What a release's launch files say, in one place: the files differ in their language only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtpipe.engines.trtllm.build.releases import needed_words
from trtpipe.engines.trtllm.built import folder
from trtpipe.engines.trtllm.built.lock import release_of
from trtpipe.engines.trtllm.launch.line import EXIT_TIMEOUT_S, Ports
from trtpipe.engines.trtllm.launch.ranks import Ranks

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.config.target import TensorrtLlmTarget
    from trtpipe.engines.trtllm.built.lock import Lock

NAME = "trtpipe"
MOUNT = "/release"  # where containers see the release
START = "launch/start"  # what it imports lies beside it: the image's own PYTHONPATH stays as it is
ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1"}  # the release is read only
POLL_S = 10
STOP_S = EXIT_TIMEOUT_S + 40  # to end in order, before a container is killed


@dataclass(frozen=True)
class Serving:
    """``driver``: the needed; ``batch_size_max``: of the engine; ``pinned``: the image is named by its bytes."""

    ranks: Ranks
    image: str
    ports: Ports
    gpu_name: str
    driver: str
    load_time_limit_s: float
    replicas_max: int
    batch_size_max: int

    @property
    def pinned(self) -> bool:
        return "@sha256:" in self.image

    @property
    def command(self) -> list[str]:
        """What the container runs. Inside it the ports are upstream's."""
        return ["python3", f"{MOUNT}/{START}", MOUNT, "--time-limit-s", self.time_limit_s]

    @property
    def time_limit_s(self) -> str:
        """``load_time_limit_s`` as a word of a line, unrounded: the launcher refuses 0."""
        return f"{self.load_time_limit_s:.15g}"

    @property
    def polls_to_ready(self) -> int:
        """How often readiness is asked for before a start has failed: a little longer than the launcher waits."""
        return int(self.load_time_limit_s // POLL_S) + 6


def of(engine: Path, target: TensorrtLlmTarget, lock: Lock, ports: Ports) -> Serving:
    """Raises ConfigError where the engine is not whole, or its lock names a version that is not known."""
    found = folder.read(engine)
    return Serving(
        ranks=Ranks.of(found),
        image=image_of(target, lock, engine),
        ports=ports,
        gpu_name=lock.gpu_name,
        driver=needed_words(lock.driver_floor, release_of(lock, engine).older_drivers),
        load_time_limit_s=target.load_time_limit_s,
        replicas_max=target.replicas_max,
        batch_size_max=int(found.config["build_config"]["max_batch_size"]),
    )


def image_of(target: TensorrtLlmTarget, lock: Lock, engine: Path) -> str:
    """Return the target's image, else the one that built where it can serve, else the first of the version's.

    Raises ConfigError where the lock, which lies in ``engine``, names a version that is not known.
    """
    if target.serving_image != "auto":
        return target.serving_image
    images = release_of(lock, engine).serving_images
    base = (lock.container_image or "").partition("@")[0]
    if base in images:
        return f"{base}@{lock.container_digest}" if lock.container_digest else base
    return images[0]


def notes(target: TensorrtLlmTarget, lock: Lock, engine: Path) -> list[str]:
    """Return what a person should know of the choice."""
    image = image_of(target, lock, engine)
    pin = "`serving_image: NAME@sha256:...` in the target pins them"
    tagged = f"launch files name {image} by a tag, which can come to mean other bytes: {pin}"
    return [] if "@sha256:" in image else [tagged]
