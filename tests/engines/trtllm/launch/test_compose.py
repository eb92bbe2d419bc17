"""The image that a release's compose file names, read back: a damaged file is the record's matter, and no crash."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trtpipe.engines.trtllm.launch import compose

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("content", "image"),
    [
        (b"services: {tritonserver: {image: registry.example/triton:1}}", "registry.example/triton:1"),
        (b"services: {tritonserver: {image: 26.04}}", None),
        (b"services: {tritonserver: {}}", None),
        (b"services: [", None),
        (b"services: 2026-99-99", None),
        (b"image: \xff", None),
        (None, None),
    ],
)
def test_the_image_of_a_compose_file(tmp_path: Path, content: bytes | None, image: str | None) -> None:
    if content is not None:
        (tmp_path / compose.FILE).write_bytes(content)
    assert compose.image_of(tmp_path) == image
