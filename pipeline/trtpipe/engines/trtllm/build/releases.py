"""What belongs to a release of TensorRT-LLM: the TensorRT that it is built on, its images, the driver that it needs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Release:
    """``image`` builds, ``serving_images`` serve. ``driver_floor``: the oldest major version of NVIDIA's driver."""

    version: str
    tensorrt: str
    image: str
    serving_images: tuple[str, ...]
    driver_floor: int


# TensorRT and serving images: ARGs of dockerfile/Dockerfile.triton.trt_llm_backend in
# triton-inference-server/tensorrtllm_backend, branches r26.04 to r26.07. Driver: these images have CUDA 13, whose
# oldest is 580 (docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html). No digest of an image was
# found in public text: give NAME@sha256:... in container_image.
RELEASES = {
    "1.2.1": Release(
        "1.2.1", "10.14.1.48", "nvcr.io/nvidia/tensorrt-llm/release:1.2.1",
        tuple(f"nvcr.io/nvidia/tritonserver:26.{month}-trtllm-python-py3" for month in ("04", "05", "06", "07")), 580,
    ),
}  # fmt: skip
# where the serving images keep TensorRT-LLM; the python3 on their PATH may be another one
TRITON_PACKAGES = "/opt/venv-tritonserver/lib/python3*/site-packages"
NO_ENGINES_FROM = (1, 3)
WHY_NONE = (
    "1.3 removes the engine path (builder, network, trtllm-build, the Triton backend): pull requests 15918, 15907 and "
    "16369 of NVIDIA/TensorRT-LLM, docs/source/legacy/tensorrt-backend-removal.md"
)


def is_past_engines(version: str) -> bool:
    """True from 1.3 on; its pre-releases count as 1.3."""
    parts = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    return parts >= NO_ENGINES_FROM
