"""Where a locked engine can't run. Standard library only: a release carries this module into its container."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from trtpipe.engines.trtllm.build.releases import RELEASES, compatible_words, fit_of_driver, needed_words
from trtpipe.errors import EnvironmentUnfit

if TYPE_CHECKING:
    from trtpipe.engines.trtllm.build.gpu_query import Device

FIX_GPU = "build it on the type of GPU that serves it"


class Locked(Protocol):
    """What the rules read of an engine's lock; ``lock.Lock`` says what each is."""

    @property
    def tensorrt_llm(self) -> str: ...
    @property
    def tensorrt(self) -> str: ...
    @property
    def backend(self) -> str: ...
    @property
    def container_image(self) -> str | None: ...
    @property
    def container_digest(self) -> str | None: ...
    @property
    def driver_floor(self) -> int: ...
    @property
    def gpu_name(self) -> str: ...
    @property
    def sm_by_rank(self) -> Sequence[int]: ...


@dataclass(frozen=True)
class Host:
    """What an engine would run on. ``tensorrt_llm``, ``tensorrt``: None where nothing here tells the version.

    ``image``: what serves, where it is asked for from outside; ``image_references``: NAME@sha256:... of its bytes.
    """

    tensorrt_llm: str | None
    tensorrt: str | None
    driver: str
    gpu_names: list[str]
    sms: list[int]
    image: str | None = None
    image_references: Sequence[str] = ()

    @classmethod
    def of(
        cls, found: Sequence[Device], *, tensorrt_llm: str | None, tensorrt: str | None, image: str | None = None,
        image_references: Sequence[str] = (),
    ) -> Host:  # fmt: skip
        return cls(
            tensorrt_llm=tensorrt_llm, tensorrt=tensorrt, driver=found[0].driver if found else "0",
            gpu_names=[one.name for one in found], sms=[one.sm for one in found], image=image,
            image_references=image_references,
        )  # fmt: skip


def faults(lock: Locked, host: Host, *, ranks: int, where: str) -> Iterator[EnvironmentUnfit]:
    """Yield every reason why the engine can't run on the host."""
    yield from version_faults(lock, host, where=where)
    yield from gpu_faults(lock, host, ranks=ranks, where=where)


def version_faults(lock: Locked, host: Host, *, where: str) -> Iterator[EnvironmentUnfit]:
    release = RELEASES.get(lock.tensorrt_llm)
    images = f"serve it in one of {', '.join(release.serving_images)}" if release else "serve it where it was built"
    for name, built, running in (
        ("TensorRT-LLM", lock.tensorrt_llm, host.tensorrt_llm),
        ("TensorRT", lock.tensorrt, host.tensorrt),
    ):
        if running is not None and running != built:
            yield EnvironmentUnfit(f"built with {name} {built}, running {name} {running}", where=where, fix=images)
    if host.image is not None and host.image == lock.container_image:
        yield from _image_faults(lock, host, where)


def _image_faults(lock: Locked, host: Host, where: str) -> Iterator[EnvironmentUnfit]:
    """Yield what one name has come to mean; another image than the one that built is compared by its versions."""
    built, here = lock.container_digest, host.image_references
    if built is not None and here and built not in {reference.partition("@")[2] for reference in here}:
        yield EnvironmentUnfit(
            f"built in {host.image} when that was {built}, and here it is {', '.join(here)}",
            where=where,
            fix=f"pull {built} again, or name the bytes that you mean in the target: serving_image: {here[0]}",
        )


def notes(lock: Locked, host: Host) -> list[str]:
    """Return under which conditions the engine runs on a host that nothing stands against."""
    compatible = _fit_of_driver(lock, host) == "compatible"
    return [compatible_words(host.driver, lock.driver_floor)] if compatible else []


def _fit_of_driver(lock: Locked, host: Host) -> str:
    if not host.sms:
        return "new"  # that there is no GPU is told as such
    return fit_of_driver(host.driver, host.gpu_names, floor=lock.driver_floor, older=_older_drivers(lock))


def _older_drivers(lock: Locked) -> tuple[int, ...]:
    release = RELEASES.get(lock.tensorrt_llm)
    return release.older_drivers if release else ()


def gpu_faults(lock: Locked, host: Host, *, ranks: int, where: str) -> Iterator[EnvironmentUnfit]:
    """Yield what is wrong with the GPUs and their driver."""
    if _fit_of_driver(lock, host) == "old":
        needed = needed_words(lock.driver_floor, _older_drivers(lock))
        yield EnvironmentUnfit(
            f"the driver is {host.driver}, and the engine's CUDA needs {needed}",
            where=where,
            fix="install such a driver",
        )
    if len(host.sms) < ranks:
        yield EnvironmentUnfit(
            f"the engine has {ranks} ranks, one a GPU, and there are {len(host.sms)} GPUs",
            where=where,
            fix="serve it on a machine with as many GPUs, or build for fewer",
        )
    built = sorted(set(lock.sm_by_rank))
    others = sorted({sm for sm in host.sms if sm not in built})
    names = sorted({name for name in host.gpu_names if name != lock.gpu_name})
    if others or (len(built) > 1 and host.sms):
        yield EnvironmentUnfit(
            f"built for SM {', '.join(map(str, built))} ({lock.gpu_name}), running on SM "
            f"{', '.join(map(str, sorted(set(host.sms))))} ({', '.join(sorted(set(host.gpu_names)))})",
            where=where,
            fix=FIX_GPU,
        )
    elif names:
        yield EnvironmentUnfit(f"built for {lock.gpu_name}, running on {', '.join(names)}", where=where, fix=FIX_GPU)
