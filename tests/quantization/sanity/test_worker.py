"""A model and its TensorRT-LLM checkpoint read the same prompts: sound, damaged, and made from each kind of folder."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
import tiny
import torch
from exports import canonical
from safetensors.torch import load_file, save_file

from trtpipe.core.progress import Silent
from trtpipe.quantization.exports import autoawq, trtllm
from trtpipe.quantization.exports.checkpoint import Checkpoint
from trtpipe.quantization.sanity.judge import Judgement, judge
from trtpipe.quantization.sanity.worker import work

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PROMPTS = [list(range(5, 45)), [7, 3, 90] * 12]


class Quiet(Silent):
    """Events of a worker that nobody follows."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A canonical checkpoint ``model`` of random codes, and ``ranks``: what two ranks get of it."""
    folder = tmp_path_factory.mktemp("sanity")
    canonical.make(folder / "model", num_key_value_heads=4)
    (folder / "ranks").mkdir()
    trtllm.plan(
        Checkpoint(folder / "model"), tensor_parallel=2, pipeline_parallel=1, dtype="bfloat16", kv_cache="model",
        pad_intermediate=False,
    ).write(folder / "ranks", Silent())  # fmt: skip
    return folder


def judged(model: Path, checkpoint: Path) -> Judgement:
    events: Any = Quiet()
    result = work({"model": str(model), "checkpoint": str(checkpoint), "prompts": PROMPTS}, events)
    return judge(result, canonical.CONFIG["vocab_size"], str)


def unquantized(made: Path, folder: Path) -> Path:
    return tiny.read_back(made / "model", made / "model", folder / "plain")


def of_autoawq(made: Path, folder: Path) -> Path:
    (folder / "awq").mkdir()
    autoawq.plan(Checkpoint(made / "model")).write(folder / "awq", Silent())
    return folder / "awq"


def test_the_codes_of_a_checkpoint_choose_what_the_codes_of_its_model_do(made: Path) -> None:
    found = judged(made / "model", made / "ranks")
    assert (found.positions, found.agreement, found.fault) == (76, 1.0, None)
    assert found.checkpoint_loss == found.model_loss


@pytest.mark.parametrize("folder_of", [unquantized, of_autoawq])
def test_models_in_other_layouts_are_read_too(
    made: Path, tmp_path: Path, folder_of: Callable[[Path, Path], Path]
) -> None:
    found = judged(folder_of(made, tmp_path), made / "ranks")
    assert found.agreement is not None
    assert found.agreement > 0.9
    assert found.fault is None


def zeroed(scales: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(scales)


def transposed(scales: torch.Tensor) -> torch.Tensor:
    return scales.T.contiguous().reshape(scales.shape)


def not_finite(scales: torch.Tensor) -> torch.Tensor:
    return torch.full_like(scales, torch.inf)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (zeroed, "it chooses the model's token at "),
        (transposed, "it chooses the model's token at "),
        (not_finite, "the outputs of its layer 0 are not finite, and those of the model are"),
    ],
)
def test_garbled_scales_are_found(
    made: Path, tmp_path: Path, damage: Callable[[torch.Tensor], torch.Tensor], said: str
) -> None:
    shutil.copytree(made / "ranks", tmp_path / "ranks")
    for path in (tmp_path / "ranks").glob("*.safetensors"):
        tensors = load_file(path)
        tensors |= {name: damage(one) for name, one in tensors.items() if name.endswith("weights_scaling_factor")}
        save_file(tensors, path)
    fault = judged(made / "model", tmp_path / "ranks").fault
    assert fault is not None
    assert fault.startswith(said)
