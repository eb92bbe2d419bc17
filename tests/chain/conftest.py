"""A workspace with a finished TensorRT-LLM engine of the stand-in builder, made once for all files that copy it."""

from __future__ import annotations

import pytest

from trtllm_builds import Site


@pytest.fixture(scope="session", params=["llama", "qwen2"])
def with_engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = Site(tmp_path_factory.mktemp("packaged") / "site", model_type=request.param)
    with pytest.MonkeyPatch.context() as patch:
        site.on_path(patch).build()
    return site
