"""A site's own parts of the configs: merged, judged as a whole before anything is written, faults at their lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf import text_format

from served_engines import ENGINES, TENSORRT_LLM
from trtpipe.errors import ConfigError, TrtpipeError
from trtpipe.triton_repo import configs, overlays


def write(folder: Path, **texts: str) -> Path:
    for model, text in texts.items():
        (folder / f"{model}.pbtxt").write_text(text)
    return folder


def faults(folder: Path) -> set[tuple[str, str]]:
    """Return what is refused, each with file and line."""
    with pytest.raises(TrtpipeError) as caught:
        overlays.merge(configs.build(TENSORRT_LLM), overlays.read(folder), None)
    assert all(fault.fix for fault in caught.value.each())
    return {(Path(str(fault.where)).relative_to(folder).as_posix(), fault.what) for fault in caught.value.each()}


@pytest.mark.parametrize("kind", ENGINES)
def test_without_overlays_the_configs_are_as_generated(tmp_path: Path, kind: str) -> None:
    generated = configs.build(ENGINES[kind])
    for folder in (tmp_path, tmp_path / "none"):
        merged = overlays.merge(generated, overlays.read(folder), None)
        assert (merged.configs, merged.notes) == (generated, [])
    assert overlays.digest_of({}) == {}


def test_fields_lists_and_keys_of_maps_replace_what_is_generated(tmp_path: Path) -> None:
    given = overlays.read(
        write(
            tmp_path,
            preprocessing="# four of them\ninstance_group { count: 4 kind: KIND_CPU }\n",
            tensorrt_llm='parameters { key: "executor_worker_path" value { string_value: "/w" } }\n'
            "dynamic_batching { preferred_batch_size: [8] max_queue_delay_microseconds: 0 }\n",
        )
    )
    generated = configs.build(TENSORRT_LLM)
    merged = overlays.merge(generated, given, None)
    assert [group.count for group in merged.configs["preprocessing"].instance_group] == [4]
    batching = merged.configs["tensorrt_llm"].dynamic_batching
    assert list(batching.preferred_batch_size) == [8]
    assert batching.default_queue_policy.max_queue_size == 256, "what the overlay does not name stays"
    before, after = (dict(one["tensorrt_llm"].parameters) for one in (generated, merged.configs))
    assert after.pop("executor_worker_path").string_value == "/w"
    before.pop("executor_worker_path", None)
    assert after == before
    assert merged.notes == [
        "preprocessing: instance_group not as generated, by triton_repo/overlays/preprocessing.pbtxt",
        "tensorrt_llm: dynamic_batching, parameters not as generated, by triton_repo/overlays/tensorrt_llm.pbtxt",
    ]
    assert overlays.digest_of(given) != overlays.digest_of({"preprocessing": given["preprocessing"]})


def test_a_value_that_is_the_default_replaces_another_one_too(tmp_path: Path) -> None:
    write(tmp_path, tensorrt_llm="model_transaction_policy {\n  decoupled: false\n}\n")
    line = line_of("tensorrt_llm_bls", "decoupled")
    said = f"tensorrt_llm_bls/config.pbtxt:{line}: decoupled is true here and false in tensorrt_llm"
    assert faults(tmp_path) == {("tensorrt_llm.pbtxt:2", said)}
    write(tmp_path, tensorrt_llm_bls="model_transaction_policy { decoupled: false }")
    merged = overlays.merge(configs.build(TENSORRT_LLM), overlays.read(tmp_path), None)
    assert merged.configs["tensorrt_llm"].model_transaction_policy.decoupled is False


def line_of(model: str, text: str) -> str:
    lines = text_format.MessageToString(configs.build(TENSORRT_LLM)[model]).splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if text in line]
    return str(number)


def test_everything_that_the_whole_is_not_is_named_at_the_overlays_lines(tmp_path: Path) -> None:
    write(
        tmp_path,
        tensorrt_llm="# ours\n"
        'parameters { key: "kv_cache_free_gpu_mem_fraction" value { string_value: "most" } }\n'
        'parameters { key: "enable_kv_cache_reus" value { string_value: "true" } }\n',
        postprocessing='\noutput { name: "OUTPUT" data_type: TYPE_INT32 dims: [-1] }\n',
        ensemble="max_batch_size: 128\n",
    )
    found = faults(tmp_path)
    assert found >= {
        ("tensorrt_llm.pbtxt:2", "kv_cache_free_gpu_mem_fraction is 'most', which the backend can't read"),
        ("tensorrt_llm.pbtxt:3", "TensorRT-LLM 1.2.1 has no parameter `enable_kv_cache_reus`"),
        ("ensemble.pbtxt:1", "max_batch_size is 128, that of the step tensorrt_llm is 64"),
        ("postprocessing.pbtxt:2", "`OUTPUT` is INT32"),
    }


def test_what_is_no_overlay_is_refused_all_at_once(tmp_path: Path) -> None:
    write(
        tmp_path,
        postprocesing="",
        preprocessing='parameters {\n  key: "tokenizer_dir"\n  value { string_value: "${tokenizer}" }\n}\n',
        ensemble='\nname: "other"\n',
        tensorrt_llm="instance_groups { count: 1 }\n",
    )
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / ".keep").write_text("")
    with pytest.raises(TrtpipeError) as caught:
        overlays.read(tmp_path)
    found = {Path(str(fault.where)).name: fault.what for fault in caught.value.each()}
    assert found.keys() == {
        "postprocesing.pbtxt", "notes.txt", "preprocessing.pbtxt:2", "ensemble.pbtxt:2", "tensorrt_llm.pbtxt:1",
    }  # fmt: skip
    assert found["ensemble.pbtxt:2"] == "an overlay can't change `name`"
    assert found["notes.txt"] == "`notes.txt` is the overlay of no model"
    assert isinstance(caught.value.each()[0], ConfigError)
