"""What belongs to a release of TensorRT-LLM: the TensorRT that it is built on, its images, the driver that it needs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Release:
    """``image`` builds, ``serving_images`` serve. ``driver_floor``: the oldest major version of NVIDIA's driver.

    ``older_drivers``: older ones under which the images run all the same, on GPUs of data centres.
    """

    version: str
    tensorrt: str
    image: str
    serving_images: tuple[str, ...]
    driver_floor: int
    older_drivers: tuple[int, ...]


# TensorRT and serving images: ARGs of dockerfile/Dockerfile.triton.trt_llm_backend in
# triton-inference-server/tensorrtllm_backend, branches r26.04 to r26.07. Driver: these images have CUDA 13, whose
# oldest is 580 (docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html). Older branches: images of
# CUDA carry its forward-compatibility package (cuda-compat) and say in NVIDIA_REQUIRE_CUDA which branches it takes. 535
# and 570 stand there in CUDA 13.0.3, 13.1.1 and 13.2.1, as texts that quote the images have it; 550 and 575 no longer
# in 13.2, which the serving images have. No digest of an image was found in public text: give NAME@sha256:... in
# container_image.
RELEASES = {
    "1.2.1": Release(
        "1.2.1", "10.14.1.48", "nvcr.io/nvidia/tensorrt-llm/release:1.2.1",
        tuple(f"nvcr.io/nvidia/tritonserver:26.{month}-trtllm-python-py3" for month in ("04", "05", "06", "07")),
        driver_floor=580, older_drivers=(535, 570),
    ),
}  # fmt: skip
# where the serving images keep TensorRT-LLM; the python3 on their PATH may be another one
TRITON_PACKAGES = "/opt/venv-tritonserver/lib/python3*/site-packages"
NO_ENGINES_FROM = (1, 3)
WHY_NONE = (
    "1.3 removes the engine path (builder, network, trtllm-build, the Triton backend): pull requests 15918, 15907 and "
    "16369 of NVIDIA/TensorRT-LLM, docs/source/legacy/tensorrt-backend-removal.md"
)


# What the driver calls GPUs that forward compatibility is not for.
CONSUMER = ("GeForce", "TITAN")


def fit_of_driver(
    driver: str, gpu_names: Collection[str], *, floor: int, older: Collection[int]
) -> Literal["new", "compatible", "old"]:
    """Return whether a driver runs a release's CUDA: by itself, through the images' compatibility package, or not."""
    branch = int(driver.split(".", maxsplit=1)[0])
    if branch >= floor:
        return "new"
    consumer = any(word in name for word in CONSUMER for name in gpu_names)
    return "compatible" if branch in older and not consumer else "old"


def compatible_words(driver: str, floor: int) -> str:
    """Say under which condition such a driver is enough."""
    return (
        f"driver {driver} is older than {floor}: it runs this CUDA through NVIDIA's forward-compatibility package, "
        "which the images carry; outside of them cuda-compat-13 has to be installed"
    )


def needed_words(floor: int, older: Collection[int]) -> str:
    branches = " or ".join(map(str, older))
    return f"{floor} or newer" + (f", or branch {branches} on a data-centre GPU" if older else "")


def is_past_engines(version: str) -> bool:
    """True from 1.3 on; its pre-releases count as 1.3."""
    parts = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    return parts >= NO_ENGINES_FROM
