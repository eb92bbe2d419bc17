from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from trtpipe.quantization.exports.streamed import StreamedFile, TensorSpec

SPECS = [
    TensorSpec("codes", torch.int8, (2, 4)),
    TensorSpec("scale", torch.float32, (1,)),
    TensorSpec("norm", torch.bfloat16, (6,)),
]
TENSORS = {
    "codes": torch.arange(8, dtype=torch.int8).reshape(2, 4),
    "scale": torch.ones(1),
    "norm": torch.ones(6).bfloat16(),
}


def test_the_library_reads_what_was_streamed(tmp_path: Path) -> None:
    with StreamedFile(tmp_path / "rank0.safetensors", SPECS) as file:
        for name, tensor in TENSORS.items():
            file.write(name, tensor)
    read = load_file(tmp_path / "rank0.safetensors")
    assert read.keys() == TENSORS.keys()
    assert all(torch.equal(read[name], tensor) and read[name].dtype == tensor.dtype for name, tensor in TENSORS.items())


def test_a_tensor_that_was_not_announced_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected"), StreamedFile(tmp_path / "rank0.safetensors", SPECS) as file:
        file.write("codes", torch.zeros(4, 2, dtype=torch.int8))
    assert list(tmp_path.iterdir()) == []


def test_an_unfinished_file_gets_no_name(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match="2 tensors of rank0"),
        StreamedFile(tmp_path / "rank0.safetensors", SPECS) as file,
    ):
        file.write("codes", TENSORS["codes"])
    assert list(tmp_path.iterdir()) == []
