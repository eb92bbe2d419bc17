"""A config against the engine that it names: what that was built for, and how many ranks it has."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from served_engines import TENSORRT_LLM
from trtpipe.errors import TrtpipeError
from trtpipe.triton_repo import configs, engine_check, pbtxt, source

BUILT = {
    "max_batch_size": 64,
    "max_beam_width": 1,
    "max_seq_len": 2560,
    "plugin_config": {"use_paged_context_fmha": False, "tokens_per_block": 128},
}


@pytest.fixture
def engine(tmp_path):
    """Return a function that makes an engine folder, as far as it is looked at."""

    def make(ranks=2, **built):
        folder = tmp_path / "engine"
        folder.mkdir()
        document = {"pretrained_config": {"mapping": {"tp_size": 2, "pp_size": 1}}, "build_config": BUILT | built}
        (folder / "config.json").write_text(json.dumps(document))
        for rank in range(ranks):
            (folder / f"rank{rank}.engine").touch()
        return folder

    return make


def read(tmp_path, **given):
    """Return the config of an engine model on disk, which names the engine as a release does."""
    parameters = replace(TENSORRT_LLM.parameters, engine_folder="../../engine")
    config = configs.build(replace(TENSORRT_LLM, parameters=parameters))["tensorrt_llm"]
    for key, value in given.items():
        config.parameters[key].string_value = value
    path = tmp_path / "model_repository" / "tensorrt_llm" / "config.pbtxt"
    path.parent.mkdir(parents=True)
    path.write_text(pbtxt.render(config))
    found, problems = source.read(path)
    assert not problems
    return found


def faults(found):
    folder = engine_check.folder(found)
    assert folder is not None
    problems: list[TrtpipeError] = list(engine_check.check(found, folder))
    for problem in problems:
        path, line = problem.where.split(":")
        assert "key:" in Path(path).read_text().splitlines()[int(line) - 1]
    return [problem.what for problem in problems]


def test_what_was_built_for_the_engine_fits_it(tmp_path, engine):
    assert engine_check.folder(read(tmp_path)) is None
    made = engine()
    found, _ = source.read(tmp_path / "model_repository" / "tensorrt_llm" / "config.pbtxt")

    assert engine_check.folder(found) == made
    assert faults(found) == []


@pytest.mark.parametrize(
    ("key", "value", "built", "words"),
    [
        ("max_beam_width", "4", {}, "max_beam_width is 4, the engine was built for 1"),
        ("enable_kv_cache_reuse", "true", {}, "enable_kv_cache_reuse is true, and the engine was built without"),
        ("enable_chunked_context", "1", {}, "enable_chunked_context is true, and the engine was built without"),
        ("max_tokens_in_paged_kv_cache", "1664", {}, "1664: 13 blocks of 128, and one sequence may need 2560 tokens"),
        ("max_tokens_in_paged_kv_cache", "2600", {"max_seq_len": 2600}, "2600: 20 blocks of 128"),
        ("gpu_device_ids", "0,1;2", {}, "gpu_device_ids names 1 GPUs, the engine is for 2"),
    ],
)
def test_what_the_engine_was_not_built_for_is_named_with_its_line(tmp_path, engine, key, value, built, words):
    engine(**built)
    (found,) = faults(read(tmp_path, **{key: value}))

    assert words in found


@pytest.mark.parametrize(
    ("given", "built"),
    [
        ({"max_beam_width": "4"}, {"max_beam_width": 4}),
        ({"enable_kv_cache_reuse": "true"}, {"plugin_config": {"use_paged_context_fmha": True}}),
        ({"max_tokens_in_paged_kv_cache": "2560"}, {}),
        ({"max_tokens_in_paged_kv_cache": "1664", "max_attention_window_size": "1024"}, {}),
        ({"gpu_device_ids": "0,1;2,3"}, {}),
    ],
)
def test_what_it_was_built_for_passes(tmp_path, engine, given, built):
    engine(**built)

    assert faults(read(tmp_path, **given)) == []


def test_missing_ranks_are_counted(tmp_path, engine):
    engine(ranks=1)

    assert faults(read(tmp_path)) == ["the engine is for 2 ranks, its folder has 1"]


def test_a_checkpoint_is_no_engine(tmp_path, engine):
    folder = engine()
    (folder / "config.json").write_text('{"architecture": "LlamaForCausalLM", "dtype": "float16"}')
    (found,) = faults(read(tmp_path))

    assert "has the keys architecture, dtype; no build_config" in found


@pytest.mark.parametrize(
    "document",
    [
        {"build_config": None},
        {"build_config": BUILT, "pretrained_config": None},
        {"build_config": BUILT | {"plugin_config": None, "max_beam_width": "x", "max_seq_len": []}},
    ],
)
def test_a_config_of_another_form_is_no_crash(tmp_path, engine, document):
    folder = engine()
    (folder / "config.json").write_text(json.dumps(document))

    for problem in engine_check.check(read(tmp_path), folder):
        assert isinstance(problem, TrtpipeError)
