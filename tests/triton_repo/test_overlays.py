"""A site's own parts of the configs: merged, judged as a whole before anything is written, faults at their lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf import text_format

from served_engines import ENGINES, LOCAL, TENSORRT_LLM
from trtpipe.errors import ConfigError, TrtpipeError
from trtpipe.triton_repo import configs, overlays
from trtpipe.triton_repo.configs import LocalEngine, TensorrtLlmEngine


def write(folder: Path, **texts: str) -> Path:
    for model, text in texts.items():
        (folder / f"{model}.pbtxt").write_text(text)
    return folder


def faults(folder: Path, engine: LocalEngine | TensorrtLlmEngine = TENSORRT_LLM) -> set[tuple[str, str]]:
    """Return what is refused, each with file and line."""
    with pytest.raises(TrtpipeError) as caught:
        overlays.merge(configs.build(engine), overlays.read(folder), None)
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


REORDERED = "the pieces of a stream would overtake each other"
# kind of engine, model, overlay -> what is refused, and the line where it stands
CONTRADICTIONS = {
    "two that end a stream": (
        "vllm", "postprocessing", "\ninstance_group { count: 2 kind: KIND_CPU }",
        2, f"2 instances of postprocessing: {REORDERED}",
    ),
    "two groups, one of them without a count": (
        "tensorrt-llm", "postprocessing", "instance_group { kind: KIND_CPU }\ninstance_group { kind: KIND_CPU }",
        1, f"2 instances of postprocessing: {REORDERED}",
    ),
    "one for each GPU": (
        "tensorrt-llm", "postprocessing", "instance_group { count: 1 }",
        1, f"an instance of postprocessing for each GPU: {REORDERED}",
    ),
    "two engines": (
        "vllm", "tensorrt_llm", "instance_group { count: 2 kind: KIND_CPU }",
        1, "2 instances of tensorrt_llm: each is an engine of its own",
    ),
    "a GPU": (
        "vllm", "preprocessing", "instance_group { count: 1 kind: KIND_GPU }",
        1, "KIND_GPU, and the local engine's models run on the CPU",
    ),
    "less than one": (
        "tensorrt-llm", "preprocessing", "instance_group {\n  count: -1\n  kind: KIND_CPU\n}",
        2, "the instance count is -1, which Triton reads as 1",
    ),
    "an ensemble with instances": (
        "vllm", "ensemble", "# one\ninstance_group { count: 1 kind: KIND_CPU }",
        2, "Triton loads no ensemble with `instance_group`",
    ),
    "an ensemble with an empty part": (
        "vllm", "ensemble", "optimization {}", 1, "Triton loads no ensemble with `optimization`",
    ),
    "batches": (
        "vllm", "tensorrt_llm", "max_batch_size: 8",
        1, "max_batch_size is 8, and the model's code takes one prompt a request",
    ),
    "one answer of what streams": (
        "vllm", "tensorrt_llm_bls", "model_transaction_policy { decoupled: false }",
        1, "decoupled is false, and the model's code streams",
    ),
    "scheduling where there is none": (
        "vllm", "preprocessing", "\n\nsequence_batching {}",
        3, "an overlay can't give preprocessing `sequence_batching`",
    ),
    "scheduling in place of another": (
        "tensorrt-llm", "tensorrt_llm", "sequence_batching {}",
        1, "an overlay can't give tensorrt_llm `sequence_batching`",
    ),
    "an ensemble without steps": (
        "vllm", "ensemble", "dynamic_batching {}", 1, "an overlay can't give ensemble `dynamic_batching`",
    ),
    "a number that stands for nothing": (
        "vllm", "preprocessing", "instance_group {\n  kind: KIND_CPU\n}\nbatch_input { kind: 99 }",
        4, "Triton knows no `kind` 99",
    ),
    "a type that is none": (
        "vllm", "postprocessing", 'output {\n  name: "OUTPUT"\n  data_type: 99\n}', 3, "Triton knows no `data_type` 99",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_what_code_or_triton_contradict_is_refused(tmp_path: Path, case: str) -> None:
    kind, model, text, line, what = CONTRADICTIONS[case]
    assert (f"{model}.pbtxt:{line}", what) in faults(write(tmp_path, **{model: text}), ENGINES[kind])


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("postprocessing", "instance_group { kind: KIND_CPU }"),
        ("postprocessing", "instance_group { count: 0 kind: KIND_CPU }"),
        ("postprocessing", "instance_group { count: 1 kind: KIND_GPU gpus: [0] }"),
        ("tensorrt_llm", "dynamic_batching { max_queue_delay_microseconds: 5 }"),
        ("tensorrt_llm_bls", "instance_group { count: 8 kind: KIND_CPU }"),
    ],
)
def test_what_comes_to_one_instance_or_is_a_sites_own_passes(tmp_path: Path, model: str, text: str) -> None:
    assert overlays.merge(configs.build(TENSORRT_LLM), overlays.read(write(tmp_path, **{model: text})), None).notes


def test_an_empty_part_is_not_as_generated(tmp_path: Path) -> None:
    site = overlays.read(write(tmp_path, preprocessing="optimization {}"))
    assert overlays.merge(configs.build(LOCAL), site, None).notes == [
        "preprocessing: optimization not as generated, by triton_repo/overlays/preprocessing.pbtxt"
    ]


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("name", 'name: ""'),
        ("runtime", 'runtime: "other.so"'),
        ("default_model_filename", 'default_model_filename: "other.py"'),
        ("cc_model_filenames", 'cc_model_filenames { key: "9.0" value: "other.py" }'),
        ("version_policy", "version_policy {}"),
        ("response_cache", "response_cache {}"),
    ],
)
def test_what_decides_which_code_runs_is_refused_as_its_default_too(tmp_path: Path, field: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"an overlay can't change `{field}`") as caught:
        overlays.read(write(tmp_path, preprocessing=f"# ours\n{text}\n"))
    assert caught.value.where == f"{tmp_path / 'preprocessing.pbtxt'}:2"


def test_what_is_no_folder_and_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    (tmp_path / "folder" / "ensemble.pbtxt").mkdir(parents=True)
    (tmp_path / "folder" / "preprocessing.pbtxt").symlink_to(tmp_path / "gone")
    said = {
        "file": ["is not a folder"],
        "link": ["is a link that leads nowhere"],
        "folder": ["is not a file", "is a link that leads nowhere"],
    }
    for name, wanted in said.items():
        with pytest.raises(TrtpipeError) as caught:
            overlays.read(tmp_path / name)
        assert [fault.what for fault in caught.value.each()] == wanted
        assert {fault.exit_code for fault in caught.value.each()} == {3}
        assert all(str(fault.where).startswith(str(tmp_path / name)) and fault.fix for fault in caught.value.each())
