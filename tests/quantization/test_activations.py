from __future__ import annotations

import errno
from pathlib import Path

import pytest
import torch

from trtpipe.quantization import activations
from trtpipe.quantization.activations import Activations

SHAPES = [(3, 64, 8), (1, 128, 8)]


def opened(folder: Path, dtype: torch.dtype = torch.bfloat16, *, resident: bool = False, rank: int = 0) -> Activations:
    return Activations(folder, SHAPES, dtype, resident=resident, rank=rank, ranks=2)


def filled(kept: Activations, layer: int) -> list[torch.Tensor]:
    room = kept.room(layer)
    states = [torch.randn(shape).bfloat16() for shape in SHAPES]
    return [room.put(number, one) for number, one in enumerate(states)]


def test_a_killed_run_goes_on_from_what_was_kept(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    assert kept.kept_layer() == 0
    filled(kept, 0)
    kept.keep(0)
    states = filled(kept, 1)
    kept.keep(1, {"layer": 0})
    filled(kept, 2)  # never kept: the run is killed here
    again = opened(tmp_path)
    assert again.kept_layer() == 1
    resumed, reports = again.resume(1)
    assert reports == [{"layer": 0}]
    assert all(torch.equal(one, other) for one, other in zip(states, resumed, strict=True))


def test_states_lie_in_the_file_unless_they_are_resident(tmp_path: Path) -> None:
    states = torch.randn(SHAPES[0]).bfloat16()
    assert opened(tmp_path).room(0).put(0, states) is not states
    assert opened(tmp_path, resident=True).room(0).put(0, states) is states


def test_two_layers_of_states_are_on_the_disk_and_a_third_in_the_making(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    for layer in range(5):
        filled(kept, layer)
        kept.keep(layer, {} if layer else None)
    names = {path.name for path in (tmp_path / activations.FOLDER).glob("hidden-*")}
    assert names == {"hidden-003-0-of-2", "hidden-004-0-of-2"}
    kept.drop()
    assert not list(tmp_path.iterdir())


def test_states_of_another_type_are_not_gone_on_from(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    filled(kept, 1)
    kept.keep(1, {})
    assert opened(tmp_path, torch.float32).kept_layer() == 0


def test_each_rank_keeps_its_own_and_the_first_the_reports(tmp_path: Path) -> None:
    for rank in (0, 1):
        kept = opened(tmp_path, rank=rank)
        filled(kept, 1)
        kept.keep(1, {"layer": 0, "rank": rank})
    assert [opened(tmp_path, rank=rank).resume(1)[1] for rank in (0, 1)] == [[{"layer": 0, "rank": 0}], []]


def test_a_full_disk_refuses_at_once_and_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    with pytest.raises(OSError, match="No space left") as caught:
        opened(tmp_path).room(0)
    assert caught.value.filename.endswith("hidden-000-0-of-2")
