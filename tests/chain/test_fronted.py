"""What the front is told of a release and the config."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from calibration.tiny import model_folder
from served_engines import LOCAL
from trtpipe.chain import fronted
from trtpipe.config.load import workspace
from trtpipe.core.artifacts import Artifact
from trtpipe.errors import ConfigError
from trtpipe.front.settings import Served
from trtpipe.triton_repo import configs, pbtxt
from workspaces import write_config


class Release:
    """What is read of a release's artifact."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.record = self
        self.parts = self
        self.parameters = {"template_date": "2026-01-01"}


@pytest.fixture
def release(tmp_path: Path) -> Artifact:
    folder = tmp_path / "release"
    model_folder(folder / "engine")
    (folder / "engine" / "engine.json").write_text(json.dumps({"arguments": {"max_model_len": 2048}}))
    (folder / "record.json").write_text("{}")
    config = folder / "model_repository/tensorrt_llm_bls/config.pbtxt"
    config.parent.mkdir(parents=True)
    config.write_text(pbtxt.render(configs.build(LOCAL)["tensorrt_llm_bls"]))
    return Release(folder)  # type: ignore[return-value]


def served(release: Artifact, folder: Path, *overrides: str, key: str | None = None) -> Served:
    write_config(folder)
    return fronted.served(workspace(folder / "trtpipe.yaml", overrides), release, "http://127.0.0.1:8000", key)


def test_a_release_that_does_not_count_tokens_is_refused_before_its_first_request(
    release: Artifact, tmp_path: Path
) -> None:
    config = release.path / "model_repository/tensorrt_llm_bls/config.pbtxt"
    config.write_text(config.read_text().replace("return_num_output_tokens", "other"))

    with pytest.raises(ConfigError, match=r"has no num_output_tokens;"):
        served(release, tmp_path)


def test_limits_come_from_engine_and_config(release: Artifact, tmp_path: Path) -> None:
    found = served(release, tmp_path, "serving.front.body_kib_max=2", "serving.front.model_name=mine")

    assert found.model == "mine"
    assert (found.limits.context_tokens, found.limits.answer_tokens, found.limits.body_bytes) == (2048, 2047, 2048)
    assert found.tokenizer.has_template


def test_the_model_is_called_like_its_folder(release: Artifact, tmp_path: Path) -> None:
    assert served(release, tmp_path, "model=/models/qwen").model == "qwen"


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.2", "example.org", "::"])  # noqa: S104 - refused
def test_an_open_address_needs_a_key(release: Artifact, tmp_path: Path, host: str) -> None:
    with pytest.raises(ConfigError, match="no API key") as caught:
        served(release, tmp_path, f"serving.front_host='{host}'", key="")
    assert fronted.API_KEY in (caught.value.fix or "")
    assert served(release, tmp_path, f"serving.front_host='{host}'", key="secret").api_key == "secret"


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_this_machine_needs_none(release: Artifact, tmp_path: Path, host: str) -> None:
    assert served(release, tmp_path, f"serving.front_host='{host}'").api_key is None
