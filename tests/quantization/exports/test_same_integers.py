"""One set of codes and scales feeds every layout: a single nibble that differs must show."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from exports import canonical, readers

from trtpipe.quantization.exports import autoawq, trtllm


def exported(tmp_path: Path) -> tuple[Path, Path, Path]:
    source, ranks, awq = tmp_path / "source", tmp_path / "trtllm", tmp_path / "autoawq"
    canonical.make(source)
    ranks.mkdir()
    awq.mkdir()
    trtllm.export(
        source, ranks, tensor_parallel=2, pipeline_parallel=1, dtype="bfloat16", kv_cache="fp8", pad_intermediate=False
    )
    autoawq.export(source, awq)
    return source, ranks, awq


def require_equal(source: Path, ranks: Path, awq: Path) -> None:
    expected = readers.compressed_tensors(source)
    for found in (readers.trtllm(ranks)[0], readers.autoawq(awq)):
        assert found.keys() == expected.keys()
        for name, (codes, scales) in expected.items():
            assert np.array_equal(found[name][0], codes), name
            assert np.array_equal(found[name][1], scales), name


def test_all_exports_hold_the_same_integers_and_scales(tmp_path: Path) -> None:
    require_equal(*exported(tmp_path))


@pytest.mark.parametrize("file", ["trtllm/rank1.safetensors", "autoawq/model-00002-of-00004.safetensors"])
def test_one_nibble_that_differs_is_seen(tmp_path: Path, file: str) -> None:
    folders = exported(tmp_path)
    path = tmp_path / file
    packed = {name: tensor for name, tensor in readers.safetensors(path).items() if tensor.dtype in (np.int8, np.int32)}
    word = next(iter(packed.values())).flat[:64].tobytes()
    data = path.read_bytes()
    place = data.index(word)
    path.write_bytes(data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :])
    with pytest.raises(AssertionError):
        require_equal(*folders)
