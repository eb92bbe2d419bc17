"""Commands on a TensorRT-LLM engine of the stand-in builder and its release, for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from core.stages import stage
from trtllm_builds import Site
from trtpipe.cli import trtpipe
from trtpipe.core.progress import Silent
from trtpipe.core.runner import Making, Runner
from trtpipe.core.store import Store
from trtpipe.errors import TrtpipeError

if TYPE_CHECKING:
    from click.testing import Result


def run(site: Site, *words: str) -> Result:
    command = [*words, "-c", str(site.config_file)]
    return CliRunner().invoke(trtpipe, command, prog_name="trtpipe")


def done(site: Site, *words: str) -> dict[str, Any]:
    result = run(site, *words, "--json", "-q")
    assert result.exception is None, result.exception
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def refused(site: Site, *words: str) -> TrtpipeError:
    fault = run(site, *words).exception
    assert isinstance(fault, TrtpipeError), fault
    for one in fault.each():
        assert one.what, "three parts"
        assert one.where, one.what
        assert one.fix, one.what
    return fault


def give_verdict(site: Site, release: str) -> None:
    """Stand in for the drift check, which no machine without TensorRT-LLM can make of such an engine."""
    store = Store(site.folder)
    (found,) = [one for one in store.all("release") if one.id == release]

    def make(making: Making) -> None:
        (making.folder / "verdict.json").write_text('{"verdict": "pass"}')

    Runner(store, Silent()).obtain(stage(make, name="check-drift", kind="verdict", inputs={"release": found.digest}))


def engine_of(site: Site) -> Path:
    (engine,) = Store(site.folder).all("engine")
    return engine.path
