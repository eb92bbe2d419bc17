"""One set of codes and scales feeds every layout, by the real command: a single nibble that differs must show."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from exports import canonical, readers

from trtpipe.cli import trtpipe
from workspaces import write_config

LAYOUTS = {"tensorrt-llm": ("--tensor-parallel", "2"), "autoawq": (), "compressed-tensors": ()}


def exported(tmp_path: Path, layout: str, *options: str) -> Path:
    write_config(tmp_path)
    command = ["export", "-c", str(tmp_path / "trtpipe.yaml"), "--json", "-q", "--format", layout, *options]
    done = CliRunner().invoke(trtpipe, [*command, "--out", str(tmp_path / layout), str(tmp_path / "source")])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["path"] == str(tmp_path / layout)
    return tmp_path / layout


def read(folder: Path) -> readers.Linears:
    if folder.name == "tensorrt-llm":
        return readers.trtllm(folder)[0]
    return readers.autoawq(folder) if folder.name == "autoawq" else readers.compressed_tensors(folder)


def require_equal(folder: Path, expected: readers.Linears) -> None:
    found = read(folder)
    assert found.keys() == expected.keys()
    for name, (codes, scales) in expected.items():
        assert np.array_equal(found[name][0], codes), name
        assert np.array_equal(found[name][1], scales), name


@pytest.mark.parametrize(("layout", "options"), LAYOUTS.items())
@pytest.mark.parametrize("symmetric", [True, False])
def test_every_layout_holds_the_integers_in_memory(
    tmp_path: Path, layout: str, options: tuple[str, ...], symmetric: bool
) -> None:
    if layout == "tensorrt-llm" and not symmetric:
        return  # refused: tests/cli/test_export.py
    memory = canonical.make(tmp_path / "source", symmetric=symmetric)
    folder = exported(tmp_path, layout, *options)
    expected = {}
    for name, quantized in memory.linears.items():
        zeros = 0 if quantized.zeros is None else quantized.zeros.repeat_interleave(quantized.group_size, dim=1)
        expected[name] = ((quantized.codes - zeros).numpy(), quantized.scales.float().numpy())
    require_equal(folder, expected)


@pytest.mark.parametrize(
    "file",
    [
        "tensorrt-llm/rank1.safetensors",
        "autoawq/model-00002-of-00004.safetensors",
        "compressed-tensors/model-00003-of-00004.safetensors",
    ],
)
def test_one_nibble_that_differs_is_seen(tmp_path: Path, file: str) -> None:
    canonical.make(tmp_path / "source")
    layout = file.partition("/")[0]
    folder = exported(tmp_path, layout, *LAYOUTS[layout])
    expected = readers.compressed_tensors(tmp_path / "source")
    require_equal(folder, expected)
    path = tmp_path / file
    packed = {name: tensor for name, tensor in readers.safetensors(path).items() if tensor.dtype in (np.int8, np.int32)}
    word = next(iter(packed.values())).flat[:64].tobytes()
    data = path.read_bytes()
    place = data.index(word)
    path.write_bytes(data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :])
    with pytest.raises(AssertionError):
        require_equal(folder, expected)
