"""Repositories made elsewhere: each fault is named with file and line, all at once."""

import functools
import re
import shutil
from pathlib import Path

import pytest

from served_engines import ENGINES, TENSORRT_LLM
from trtpipe.errors import ConfigError, TrtpipeError
from trtpipe.triton_repo import configs, pbtxt, repository_check
from trtpipe.triton_repo import repository as repository_module


@pytest.fixture
def repository(tmp_path):
    return write(tmp_path, TENSORRT_LLM)


def write(folder, engine):
    for name, text in texts(engine).items():
        version = folder / name / "1"
        version.mkdir(parents=True)
        (folder / name / "config.pbtxt").write_text(text)
        if 'backend: "python"' in text:
            (version / "model.py").write_text("")
    return folder


@functools.cache
def texts(engine):
    return {name: pbtxt.render(config) for name, config in configs.build(engine).items()}


def own_code(folder):
    """Lay the code of this project's models beside their configs."""
    for model in repository_module.SHARED:
        if (folder / model / "1" / "model.py").exists():
            for module in repository_module.modules(model):
                shutil.copy(module, folder / model / "1")
    return folder


def edit(repository, model, old, new):
    path = repository / model / "config.pbtxt"
    text = path.read_text()
    assert re.search(old, text), old
    path.write_text(re.sub(old, new, text, count=1))


def give(repository, model, key, value):
    edit(repository, model, rf'(key: "{key}"[^"]*)"[^"]*"', rf'\1"{value}"')


def added(key, value):
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'


def faults(repository):
    with pytest.raises(TrtpipeError) as caught:
        repository_check.check(repository)
    return {Path(fault.where or "").relative_to(repository).as_posix(): fault.what for fault in caught.value.each()}


def line_of(repository, model, text):
    lines = (repository / model / "config.pbtxt").read_text().splitlines()
    return f"{model}/config.pbtxt:{next(number for number, line in enumerate(lines, 1) if text in line)}"


@pytest.mark.parametrize("kind", ENGINES)
def test_generated_repositories_are_in_order(tmp_path, kind):
    own_code(write(tmp_path / "model_repository", ENGINES[kind]))

    for folder in (tmp_path, tmp_path / "model_repository"):
        checked = repository_check.check(folder)
        assert (len(checked.models), checked.unset) == (5, {})


def test_placeholders_in_fields_of_any_kind_are_all_named(repository):
    """In numbers and types, where Triton can't even parse the file, and in texts it needs."""
    edit(repository, "tensorrt_llm", "max_batch_size: 64", "max_batch_size: ${triton_max_batch_size}")
    edit(repository, "tensorrt_llm", 'backend: "tensorrtllm"', 'backend: "${triton_backend}"')
    edit(repository, "tensorrt_llm", "decoupled: true", "decoupled: ${decoupled_mode}")
    edit(repository, "ensemble", '(context_logits"\\s*data_type: )TYPE_FP32', r"\1${logits_datatype}")
    found = faults(repository)

    assert {where: re.findall(r"\$\{\w+\}", what) for where, what in found.items()} == {
        "tensorrt_llm/config.pbtxt:2": ["${triton_max_batch_size}"],
        line_of(repository, "tensorrt_llm", "triton_backend"): ["${triton_backend}"],
        line_of(repository, "tensorrt_llm", "decoupled"): ["${decoupled_mode}"],
        line_of(repository, "ensemble", "logits_datatype"): ["${logits_datatype}"],
    }


def test_a_placeholder_in_a_comment_is_none(repository):
    edit(repository, "postprocessing", "name:", "# ${later}\nname:")

    assert repository_check.check(repository)


@pytest.mark.parametrize("folder", ["/models/a#b", "/models/#1", "it's # one"])
def test_what_stands_behind_a_hash_in_quotes_is_part_of_the_value(repository, folder):
    give(repository, "tensorrt_llm", "gpt_model_path", folder)

    assert repository_check.check(repository)


def test_a_placeholder_behind_a_hash_in_quotes_is_found(repository):
    edit(repository, "postprocessing", 'backend: "python"', 'backend: "#1 ${backend}" # ${none}')
    where = line_of(repository, "postprocessing", "${backend}")

    assert "placeholder left: ${backend}" in faults(repository)[where]


def test_a_fault_behind_a_comment_with_quotes_has_its_own_line(repository):
    edit(repository, "ensemble", "max_batch_size: 1", "# it's a \"comment\nmax_batch_sise: 1")

    assert "max_batch_sise" in faults(repository)[line_of(repository, "ensemble", "max_batch_sise")]


def test_missing_models_versions_and_code_are_named(repository):
    (repository / "postprocessing" / "1" / "model.py").unlink()
    (repository / "preprocessing" / "1").rename(repository / "preprocessing" / "one")
    (repository / "tensorrt_llm_bls").rename(repository / "other")
    found = faults(repository)

    assert found["postprocessing/1"] == "the version has no model.py"
    assert found["preprocessing"] == "the model has no version"
    assert found["tensorrt_llm_bls"] == "the model tensorrt_llm_bls is missing"
    assert "called `tensorrt_llm_bls`" in found["other/config.pbtxt:1"]


@pytest.mark.parametrize("key", ["gpt_model_type", "tokenizer_dir", "xgrammar_tokenizer_info_path"])
def test_a_missing_parameter_is_named(repository, key):
    edit(repository, "tensorrt_llm", rf'parameters {{\s*key: "{key}"[^}}]*}}\s*}}\n', "")

    assert faults(repository) == {"tensorrt_llm/config.pbtxt:1": f"the parameter `{key}` is missing"}


def test_a_parameter_that_nothing_reads_is_an_error(repository):
    """The value would have no effect, without a word."""
    edit(repository, "tensorrt_llm", "kv_cache_free_gpu_mem_fraction", "kv_cache_free_gpu_memory_fraction")

    where = line_of(repository, "tensorrt_llm", "memory_fraction")
    with pytest.raises(ConfigError, match="no parameter `kv_cache_free_gpu_memory_fraction`") as caught:
        repository_check.check(repository)
    assert (caught.value.where, caught.value.fix) == (
        str(repository / where),
        "did you mean `kv_cache_free_gpu_mem_fraction`?",
    )


@pytest.mark.parametrize(
    ("kind", "model", "key", "near"),
    [
        ("tensorrt-llm", "preprocessing", "tokeniser_dir", "tokenizer_dir"),
        ("tensorrt-llm", "preprocessing", "add_special_tokens", None),
        ("vllm", "postprocessing", "skip_special_tokens", None),
        ("vllm", "tensorrt_llm_bls", "accumulate_tokens", None),
        ("vllm", "tensorrt_llm", "kv_cache_free_gpu_mem_fraction", None),
        ("vllm", "tensorrt_llm", "max_attention_window_size", None),
        ("vllm", "ensemble", "tokenizer_dir", None),
    ],
)
def test_a_parameter_that_the_models_code_does_not_read_is_an_error(tmp_path, kind, model, key, near):
    repository = own_code(write(tmp_path, ENGINES[kind]))
    path = repository / model / "config.pbtxt"
    path.write_text(path.read_text() + added(key, "8192,4096"))
    with pytest.raises(ConfigError, match=f"does not read the parameter `{key}`") as caught:
        repository_check.check(repository)

    assert caught.value.where == str(repository / line_of(repository, model, f'"{key}"'))
    assert caught.value.fix == (f"did you mean `{near}`?" if near else "take it out: nothing reads it")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("enable_kv_cache_reuse", "yes"),
        ("enable_kv_cache_reuse", "tRUE"),
        ("max_beam_width", "0"),
        ("kv_cache_host_memory_bytes", "-1"),
        *(("num_nodes", text) for text in ("1.5", "1e3", "nan", "1 node", "99999999999", "1,2")),
        *(("kv_cache_free_gpu_mem_fraction", text) for text in ("0", "1", "1.5", "-0.1", "nan", "inf", "90%", "0,9")),
        ("gpu_weights_percent", "1.01"),
        ("max_beam_width", "one"),
        ("batch_scheduler_policy", "max_utilisation"),
        ("gpt_model_type", "inflight"),
    ],
)
def test_values_that_the_backend_can_not_read_are_named(repository, key, value):
    give(repository, "tensorrt_llm", key, value)

    assert faults(repository) == {
        line_of(repository, "tensorrt_llm", key): f"{key} is '{value}', which the backend can't read"
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kv_cache_free_gpu_mem_fraction", "9e-1"),
        ("gpu_weights_percent", "1"),
        ("kv_cache_host_memory_bytes", "34359738368"),
        ("enable_kv_cache_reuse", "TRUE"),
        ("gpt_model_type", "v1"),
    ],
)
def test_values_that_the_backend_reads_as_they_are_meant_pass(repository, key, value):
    give(repository, "tensorrt_llm", key, value)

    assert repository_check.check(repository)


def test_wrong_types_dims_and_tensors_of_other_releases_are_named(repository):
    edit(repository, "tensorrt_llm", '(name: "seed"\\s*data_type: )TYPE_UINT64', r"\1TYPE_INT64")
    edit(repository, "tensorrt_llm", '(name: "stop_words_list"[^}]*dims: )2', r"\g<1>3")
    edit(repository, "tensorrt_llm", '"min_tokens"', '"min_length"')
    edit(repository, "tensorrt_llm", '(name: "lora_config"[^}]*)  optional: true\\n', r"\1")
    edit(repository, "postprocessing", '(name: "SEQUENCE_LENGTH"\\s*data_type: )TYPE_INT32', r"\1TYPE_INT64")
    found = faults(repository)

    assert found[line_of(repository, "tensorrt_llm", '"seed"')] == "`seed` is INT64"
    assert found[line_of(repository, "tensorrt_llm", '"stop_words_list"')] == "`stop_words_list` has dims [3, -1]"
    assert "no tensor `min_length`" in found[line_of(repository, "tensorrt_llm", '"min_length"')]
    assert found[line_of(repository, "tensorrt_llm", '"lora_config"')] == "`lora_config` is not optional"
    assert found[line_of(repository, "postprocessing", '"SEQUENCE_LENGTH"')] == "`SEQUENCE_LENGTH` is INT64"


def test_logits_may_be_of_half_precision(repository):
    for model in ("tensorrt_llm", "ensemble"):
        for name in ("context_logits", "generation_logits"):
            edit(repository, model, f'(name: "{name}"\\s*data_type: )TYPE_FP32', r"\1TYPE_FP16")

    assert repository_check.check(repository)


def test_modes_that_do_not_agree_are_named(repository):
    edit(repository, "tensorrt_llm_bls", "decoupled: true", "decoupled: false")
    where = line_of(repository, "tensorrt_llm_bls", "decoupled")

    assert faults(repository) == {where: "decoupled is false here and true in tensorrt_llm"}


def test_an_ensemble_that_takes_more_than_its_steps_is_named(repository):
    edit(repository, "ensemble", "max_batch_size: 1", "max_batch_size: 8")
    with pytest.raises(TrtpipeError, match="max_batch_size is 8, that of the step preprocessing is 1"):
        repository_check.check(repository)


def test_a_map_that_does_not_fit_is_named_with_its_line(repository):
    edit(repository, "ensemble", 'key: "QUERY"', 'key: "QUERRY"')
    with pytest.raises(TrtpipeError) as caught:
        repository_check.check(repository)
    wheres = {fault.what: Path(fault.where).relative_to(repository).as_posix() for fault in caught.value.each()}

    assert wheres["ensemble: step preprocessing: the model has no input `QUERRY`"] == line_of(
        repository, "ensemble", "QUERRY"
    )
    assert "ensemble: step preprocessing: the required input `QUERY` is not connected" in wheres


def test_a_file_that_is_no_config_is_named_with_its_line(repository):
    edit(repository, "ensemble", "max_batch_size: 1", "max_batch_sise: 1")

    where = line_of(repository, "ensemble", "max_batch_sise")
    assert "max_batch_sise" in faults(repository)[where]


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(ConfigError, match="no such folder"):
        repository_check.check(tmp_path / "none")


def test_what_triton_refuses_or_reads_otherwise_is_named(repository):
    edit(repository, "ensemble", "max_batch_size", "instance_group { count: 1 kind: KIND_CPU }\nmax_batch_size")
    edit(repository, "tensorrt_llm_bls", r"count: \d+", "count: -2")

    assert faults(repository) == {
        line_of(repository, "ensemble", "instance_group"): "Triton loads no ensemble with `instance_group`",
        line_of(repository, "tensorrt_llm_bls", "count"): "the instance count is -2, which Triton reads as 1",
    }


def test_a_number_that_stands_for_nothing_is_named(repository):
    edit(repository, "postprocessing", "data_type: TYPE_STRING", "data_type: 99")

    assert faults(repository) == {line_of(repository, "postprocessing", "99"): "Triton knows no `data_type` 99"}
