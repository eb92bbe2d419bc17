"""The baseline's script, run for real: on a GPU where there is one."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from trtpipe.core import scores
from trtpipe.engines.scoring.scripted import BASELINE, HERE

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("model_type", ["llama", "gemma"])
def test_each_position_has_what_the_model_gives_it(
    model_type: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    expected = request.getfixturevalue(model_type)
    job = tmp_path / "job.json"
    job.write_text(json.dumps({"model": str(expected.model), "rows": str(expected.rows)}))
    done = subprocess.run(
        [sys.executable, "-B", str(HERE / BASELINE), str(job), str(tmp_path)],
        check=True, capture_output=True, text=True, cwd=tmp_path, env={"PATH": ""},
    )  # fmt: skip
    found = scores.load(tmp_path / "scores.npz")
    assert found.row_ids == ("a", "b", "c")
    assert found.row_offsets.tolist() == [0, 4, 6, 9]
    np.testing.assert_allclose(found.observed, expected.observed, atol=1e-5)
    order = np.argsort(-expected.logs, axis=1)
    assert found.top_ids[:, 0].tolist() == found.argmax.tolist() == order[:, 0].tolist()
    np.testing.assert_allclose(found.top, np.take_along_axis(expected.logs, found.top_ids, axis=1), atol=1e-5)
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert (figures["dtype"], figures["rows"], figures["tokens"], figures["places"]) == (
        "float32", 3, 9, {"cuda:0" if torch.cuda.is_available() else "cpu": 1},
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "trtpipe-progress 3 3"
