"""Repositories that upstream's template tool has filled: what it leaves is judged by what upstream's models make of it.

The values are those of the lines in ``README.md`` and ``docs/llama.md`` of triton-inference-server/tensorrtllm_backend,
branch r26.05. The tool itself puts 0 for a ``max_queue_size`` that is not given.
"""

import re
from pathlib import Path

import pytest

from served_engines import ENGINES
from trtpipe.errors import TrtpipeError
from trtpipe.triton_repo import configs, engine_parameters, parameter_check, python_parameters, repository_check
from upstream_templates import TEMPLATES, filled

# A model that reads what upstream's of that name does.
STAND_IN = "class TritonPythonModel:\n    reads = {}\n"
BATCH = {"triton_max_batch_size": "64"}
README = {
    "preprocessing": BATCH | {"tokenizer_dir": "/llama", "preprocessing_instance_count": "1", "max_queue_size": "0"},
    "tensorrt_llm": BATCH
    | {
        "triton_backend": "tensorrtllm",
        "decoupled_mode": "False",
        "engine_dir": "/engine",
        "max_queue_delay_microseconds": "0",
        "batching_strategy": "inflight_fused_batching",
        "max_queue_size": "0",
        "encoder_input_features_data_type": "TYPE_FP16",
        "logits_datatype": "TYPE_FP32",
    },
    "postprocessing": BATCH | {"tokenizer_dir": "/llama", "postprocessing_instance_count": "1"},
    "ensemble": BATCH | {"logits_datatype": "TYPE_FP32"},
    "tensorrt_llm_bls": BATCH | {"decoupled_mode": "False", "bls_instance_count": "1", "logits_datatype": "TYPE_FP32"},
}
# What the README forgets, and the document on Llama adds.
WHOLE = {
    model: values | {"prompt_embedding_table_data_type": "TYPE_FP16", "max_queue_delay_microseconds": "0"}
    for model, values in README.items()
}
LLAMA = {
    "max_beam_width": "1",
    "max_tokens_in_paged_kv_cache": "2560",
    "max_attention_window_size": "2560",
    "kv_cache_free_gpu_mem_fraction": "0.5",
    "exclude_input_in_output": "True",
    "enable_kv_cache_reuse": "False",
    "accumulate_tokens": "False",
}
# The parameters of all templates.
TEXTS = [
    (model, key.removeprefix("parameters."))
    for model, template in TEMPLATES.items()
    for key in template
    if key.startswith("parameters.")
]
# What can't be left: there is no folder of that name, no such kind of model, or the text is taken as it is.
TOKENIZERS = {("preprocessing", "tokenizer_dir"), ("postprocessing", "tokenizer_dir")}
AS_VALUES = {
    "tensorrtllm": TOKENIZERS
    | {
        ("tensorrt_llm", key)
        for key in ("gpt_model_path", "gpt_model_type", "executor_worker_path", "FORCE_CPU_ONLY_INPUT_TENSORS")
    },
    "python": TOKENIZERS | {("tensorrt_llm", key) for key in ("gpt_model_path", "FORCE_CPU_ONLY_INPUT_TENSORS")},
}


@pytest.fixture
def write(tmp_path):
    """Return a function that fills the templates into a repository, with values for all of them or for one."""

    def fill(values, model="", **given):
        for name, own in values.items():
            version = tmp_path / name / "1"
            version.mkdir(parents=True, exist_ok=True)
            (version / "model.py").write_text(STAND_IN.format(list(python_parameters.READ[name])))
            text = filled(name, own | given if name == model or not model else own)
            (tmp_path / name / "config.pbtxt").write_text(text)
        return tmp_path

    return fill


def put(repository, model, key, value):
    path = repository / model / "config.pbtxt"
    text, found = re.subn(rf'(key: "{key}"[^"]*)"[^"]*"', rf'\1"{value}"', path.read_text())
    assert found == 1, key
    path.write_text(text)


def without(path, key):
    """Return the text of a config without a parameter."""
    return re.sub(rf'parameters {{\n  key: "{key}".*?\n}}\n', "", path.read_text(), flags=re.DOTALL)


def problems(repository):
    with pytest.raises(TrtpipeError) as caught:
        repository_check.check(repository)
    return {(Path(fault.where or "").parent.name, fault.what) for fault in caught.value.each()}


@pytest.mark.parametrize("backend", ["tensorrtllm", "python"])
def test_a_repository_filled_as_documented_is_in_order_and_what_is_left_is_named(write, backend):
    checked = repository_check.check(write(WHOLE, **LLAMA, triton_backend=backend))

    assert checked.models == list(TEMPLATES)
    assert "lora_prefetch_dir" in checked.unset["tensorrt_llm"]
    assert not LLAMA.keys() & set(checked.unset["tensorrt_llm"])
    assert checked.unset["postprocessing"] == ["skip_special_tokens"]


def test_what_the_readme_forgets_is_what_keeps_it_from_loading(write):
    """Two fields that are no texts, each named with its line."""
    repository = write(README)
    found = problems(repository)

    assert {(model, re.findall(r"\$\{\w+\}", what)[0]) for model, what in found} == {
        ("preprocessing", "${max_queue_delay_microseconds}"),
        ("tensorrt_llm", "${prompt_embedding_table_data_type}"),
    }


@pytest.mark.parametrize("backend", ["tensorrtllm", "python"])
def test_every_placeholder_that_counts_as_not_given_may_be_left(write, backend):
    """All those of the templates, apart from the rows that are read as values."""
    read_as_values = AS_VALUES[backend]
    repository = write({model: WHOLE[model] | {"triton_backend": backend} for model in WHOLE})
    for model, key in TEXTS:
        if (model, key) not in read_as_values:
            put(repository, model, key, f"${{{key}}}")

    unset = repository_check.check(repository).unset
    assert {(model, key) for model, keys in unset.items() for key in keys} == set(TEXTS) - read_as_values


@pytest.mark.parametrize("backend", ["tensorrtllm", "python"])
def test_every_placeholder_that_is_read_as_a_value_is_named(write, backend):
    repository = write({model: WHOLE[model] | {"triton_backend": backend} for model in WHOLE})
    for model, key in AS_VALUES[backend]:
        put(repository, model, key, f"${{{key}}}")

    assert problems(repository) == {
        (model, f"placeholder left: ${{{key}}} ({key} is read with it)") for model, key in AS_VALUES[backend]
    }


@pytest.mark.parametrize(
    ("model", "key", "value"),
    [
        ("tensorrt_llm", "lora_prefetch_dir", "/adapters/${name}"),
        ("tensorrt_llm", "guided_decoding_backend", "${backend}"),
        ("preprocessing", "multimodal_model_path", "${vision_dir}"),
        ("tensorrt_llm_bls", "tensorrt_llm_model_name", "tensorrt_llm_${size}"),
    ],
)
def test_a_placeholder_that_is_no_longer_the_templates_own_is_read_as_a_value(write, model, key, value):
    repository = write(WHOLE)
    put(repository, model, key, value)

    assert [where for where, what in problems(repository) if "placeholder left" in what] == [model]


@pytest.mark.parametrize("backend", ["tensorrtllm", "python"])
@pytest.mark.parametrize(("windows", "taken"), [("8192,4096", True), ("8192, 4096", True), ("8192,4096.5", False)])
def test_a_list_of_windows_is_for_both_backends(write, backend, windows, taken):
    """The one in Python took a number only before 24.10."""
    repository = write(WHOLE, triton_backend=backend, max_attention_window_size=windows)

    if taken:
        assert repository_check.check(repository)
    else:
        assert len(problems(repository)) == 1


def test_a_choice_that_needs_what_was_left_is_named(write):
    found = problems(write(WHOLE, decoding_mode="lookahead", lookahead_window_size="4", lookahead_ngram_size="3"))

    assert found == {("tensorrt_llm", "decoding_mode is lookahead, and lookahead_verification_set_size is not given")}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("skip_special_tokens", "nope"),
        ("add_special_tokens", "2"),
        ("accumulate_tokens", "y"),
        ("max_num_images", "-1"),
    ],
)
def test_values_of_which_a_model_in_python_makes_its_default_are_named(write, key, value):
    (found,) = problems(write(WHOLE, **{key: value}))

    assert found[1] == f"{key} is '{value}', which the model can't read"


@pytest.mark.parametrize(
    ("model", "key", "near"),
    [
        ("preprocessing", "add_special_token", "add_special_tokens"),
        ("preprocessing", "template_date", None),
        ("postprocessing", "skip_special_token", "skip_special_tokens"),
        ("tensorrt_llm_bls", "tensorrt_llm_model", "tensorrt_llm_model_name"),
        ("tensorrt_llm", "enable_kv_reuse", "enable_kv_cache_reuse"),
        ("tensorrt_llm", "gpu_weights_percent", None),
    ],
)
def test_what_upstreams_models_in_python_do_not_read_is_an_error(write, model, key, near):
    repository = write(WHOLE, triton_backend="python")
    path = repository / model / "config.pbtxt"
    path.write_text(without(path, key) + f'parameters {{ key: "{key}" value {{ string_value: "1" }} }}\n')
    with pytest.raises(TrtpipeError, match=f"does not read the parameter `{key}`") as caught:
        repository_check.check(repository)

    assert caught.value.where == f"{path}:{len(path.read_text().splitlines())}"
    assert (f"did you mean `{near}`?" if near else "take it out: nothing reads it") == caught.value.fix


def test_a_key_without_which_upstreams_preprocessing_does_not_load_is_missed(write):
    repository = write(WHOLE)
    path = repository / "preprocessing" / "config.pbtxt"
    path.write_text(without(path, "multimodal_model_path"))

    assert problems(repository) == {("preprocessing", "the parameter `multimodal_model_path` is missing")}


def test_without_code_that_can_be_read_a_parameter_of_any_known_model_passes(write):
    repository = write(WHOLE)
    (repository / "postprocessing" / "1" / "model.py").write_text("def (")

    assert repository_check.check(repository)


@pytest.mark.parametrize("kind", ENGINES)
def test_every_parameter_of_this_projects_models_has_a_row(kind):
    for model, config in configs.build(ENGINES[kind]).items():
        rows = python_parameters.READ[model] | python_parameters.READ_BY_OURS.get(model, {})
        if config.backend == "python":
            assert config.parameters.keys() <= rows.keys() | python_parameters.READ_BY_TRITON.keys()


def test_every_parameter_of_the_engines_template_has_a_row():
    assert {key.removeprefix("parameters.") for key in TEMPLATES["tensorrt_llm"] if key.startswith("parameters.")} <= (
        parameter_check.READ_IN_CPP & engine_parameters.LEFT.keys()
    )
