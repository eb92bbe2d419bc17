"""The number of processes is the engine's, not a person's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import launches
from trtpipe.engines.trtllm.built import folder
from trtpipe.engines.trtllm.launch import ranks
from trtpipe.engines.trtllm.launch.ranks import Ranks
from trtpipe.errors import UsageFault

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("tp", "pp"), [(1, 1), (4, 1), (8, 1), (4, 2)])
def test_they_are_read_from_the_engine(tmp_path: Path, tp: int, pp: int) -> None:
    found = Ranks.of(folder.read(launches.engine(tmp_path / "engine", tp=tp, pp=pp)))
    assert (found.tensor_parallel, found.pipeline_parallel, found.count) == (tp, pp, tp * pp)
    ranks.require(found, None, {})
    ranks.require(found, tp * pp, {})


def test_another_number_is_refused_with_both() -> None:
    with pytest.raises(UsageFault) as caught:
        ranks.require(Ranks(4, 1), 1, {})
    assert caught.value.what == "the engine has 4 ranks (TP 4 x PP 1), and 1 were asked for"


@pytest.mark.parametrize("name", ["OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "PMI_SIZE"])
def test_a_launch_within_mpi_is_refused_with_both(name: str) -> None:
    with pytest.raises(UsageFault, match=r"4 ranks .* and MPI has started 2 of this launcher"):
        ranks.require(Ranks(4, 1), None, {name: "2"})
