"""A checkpoint is tried before the build; a garbled one never reaches trtllm-build, whose stand-in this is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import torch
from safetensors.torch import load_file, save_file

from trtllm_builds import TARGET, Site
from trtpipe.core import golden_ids
from trtpipe.core.store import Store
from trtpipe.errors import ConfigError, ToolFailed

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    made = Site(tmp_path / "site", TARGET | {"sanity": True})
    monkeypatch.setenv("PATH", str(made.install()), prepend=os.pathsep)
    return made


def notes(site: Site) -> str:
    return "\n".join(site.build().record.notes)


def test_a_sound_checkpoint_is_built_and_what_was_found_is_recorded(site: Site) -> None:
    made = site.build()
    assert made.record.figures["sanity_agreement"] == 1.0
    assert made.record.figures["sanity_positions"] > 100
    assert any("chooses the model's token at 100% of " in note for note in made.record.notes)


def test_a_garbled_checkpoint_ends_before_the_build(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in site.checkpoint.glob("*.safetensors"):
        tensors = load_file(path)
        scales = {name: one for name, one in tensors.items() if name.endswith("weights_scaling_factor")}
        save_file(tensors | {name: torch.zeros_like(one) for name, one in scales.items()}, path)
    monkeypatch.setenv("STANDIN_SLEEP_S", "600")  # the build would take that long
    with pytest.raises(ToolFailed) as caught:
        site.build()
    assert caught.value.what.startswith("the checkpoint does not say what its model says: it chooses the model's token")
    assert "prompt " in caught.value.what
    assert caught.value.where == str(site.checkpoint)
    assert "`sanity: false`" in str(caught.value.fix)
    assert Store(site.folder).all("engine") == []


def test_why_nothing_was_tried_is_recorded(site: Site) -> None:
    site.write(sanity=False)
    assert "not tried whether the checkpoint says what its model says: `sanity: false` in the target" in notes(site)
    site.write(sanity=True)
    for path in site.model.glob("*.safetensors"):
        path.unlink()
    assert "its model says: the model's folder has no weights" in notes(site)
    assert len(Store(site.folder).all("engine")) == 2, (
        "an engine that was not tried is not reused where it is asked for"
    )


def test_without_golden_prompts_questions_are_asked(site: Site) -> None:
    (site.checkpoint / golden_ids.FILE).unlink()
    assert site.build().record.figures["sanity_agreement"] == 1.0


def test_damaged_golden_prompts_are_refused(site: Site) -> None:
    (site.checkpoint / golden_ids.FILE).write_text("{")
    with pytest.raises(ConfigError, match="golden prompts can't be read"):
        site.build()
