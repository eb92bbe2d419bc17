"""A TensorRT-LLM engine of the stand-in builder as a release: packaged, promoted, rolled back, and each refusal."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from calibration.tiny import TEMPLATE
from standins import trtllm_build as standin
from trtllm_builds import TARGET, Site
from trtllm_releases import done, engine_of, give_verdict, refused, run
from trtpipe.core import artifacts, golden_ids, model_folder
from trtpipe.core.chat import ChatTokenizer
from trtpipe.core.store import Store
from trtpipe.engines.trtllm.build import grammar
from trtpipe.engines.trtllm.built import lock
from trtpipe.errors import ConfigError, EnvironmentUnfit
from trtpipe.release.current import current_id
from trtpipe.triton_repo import pbtxt, repository_check

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def site(with_engine: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return with_engine.copy(tmp_path / "site").on_path(monkeypatch)


def test_an_engine_is_packaged_promoted_and_rolled_back(site: Site) -> None:
    first = done(site, "package")["release"]
    folder = site.folder / "triton_repo/releases" / first
    checked = repository_check.check(folder)
    assert (len(checked.models), checked.engine) == (5, (folder / "engine").resolve())
    config = pbtxt.parse((folder / "model_repository/tensorrt_llm/config.pbtxt").read_text(), "config")
    assert (config.backend, config.max_batch_size) == ("tensorrtllm", 512)
    values = {key: value.string_value for key, value in config.parameters.items()}
    seen_from = folder / "model_repository/tensorrt_llm"
    assert (seen_from / values["gpt_model_path"] / "rank7.engine").samefile(engine_of(site) / "rank7.engine")
    assert values["enable_kv_cache_reuse"] == values["enable_chunked_context"] == "false"
    assert values["kv_cache_free_gpu_mem_fraction"] == "0.9"
    for model in ("preprocessing", "postprocessing", "tensorrt_llm_bls"):
        config = pbtxt.parse((folder / f"model_repository/{model}/config.pbtxt").read_text(), "config")
        tokenizer = folder / "model_repository" / model / config.parameters["tokenizer_dir"].string_value
        assert ChatTokenizer.load(tokenizer).encode("a") == ChatTokenizer.load(site.model).encode("a")
        assert (folder / f"model_repository/{model}/1/model.py").is_file()
    assert {"README.md", "compose.yaml", "kubernetes.yaml", "start"} < {
        path.name for path in (folder / "launch").iterdir()
    }
    assert any("by a tag" in note for note in artifacts.read(folder).record.notes), "the launch files' image"
    assert lock.read(folder / "engine") == lock.read(engine_of(site))

    give_verdict(site, first)
    assert done(site, "promote")["changed"] is True
    second = done(site, "package", "--set", "prompts.template_date=2026-02-02")["release"]
    give_verdict(site, second)
    done(site, "promote")
    assert current_id(Store(site.folder)) == second
    assert done(site, "rollback")["release"] == first
    assert current_id(Store(site.folder)) == first


def test_what_is_copied_of_a_model_is_all_that_its_tokenizer_reads(site: Site, tmp_path: Path) -> None:
    (site.model / "generation_config.json").write_text('{"eos_token_id": [7]}')
    (site.model / "chat_template.jinja").write_text(TEMPLATE + "{# its own file #}")
    release = done(site, "package")["release"]
    kept = site.folder / "triton_repo/releases" / release / "tokenizer"
    assert {path.name for path in kept.iterdir()} <= set(model_folder.TOKENIZER_FILES)
    ours, theirs = ChatTokenizer.load(kept), ChatTokenizer.load(site.model)
    assert (ours.eos_ids, ours.named_tokens) == (theirs.eos_ids, theirs.named_tokens)
    messages = [{"role": "user", "content": "x"}]
    assert ours.render(messages) == theirs.render(messages)
    assert (kept / "chat_template.jinja").is_file()


def test_golden_prompts_come_along_from_the_checkpoint_and_are_tried_as_preprocessing_loads(site: Site) -> None:
    folder = site.folder / "triton_repo/releases" / done(site, "package")["release"]
    config = pbtxt.parse((folder / "model_repository/preprocessing/config.pbtxt").read_text(), "config")
    given = config.parameters["golden_prompts"].string_value
    path = folder / "model_repository/preprocessing" / given
    assert path.read_bytes() == (site.checkpoint / golden_ids.FILE).read_bytes()
    assert artifacts.read(folder).record.figures["golden_prompts"] == 5
    assert "secret" not in path.read_text()


def test_a_tokenizer_of_other_ids_than_at_calibration_makes_no_release(site: Site) -> None:
    settings = site.model / "tokenizer_config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"add_bos_token": True}))
    fault = refused(site, "package")
    assert "golden prompt 1 of 5 (1 message(s), " in fault.what
    assert "position 0 is 256 '<s>' instead of 258 '<turn>'" in fault.what
    assert fault.what.endswith("Since calibration: tokenizer_config.json is another file")
    assert fault.where == str(Path(str(fault.where)).parent / "tokenizer")
    assert fault.fix == golden_ids.FIX
    assert Store(site.folder).all("release") == []


def test_the_workspaces_overlays_are_merged_and_judged_before_anything_is_written(site: Site) -> None:
    overlay = site.folder / "triton_repo/overlays/tensorrt_llm.pbtxt"
    overlay.parent.mkdir(parents=True)
    overlay.write_text('parameters {\n  key: "kv_cache_free_gpu_mem_fraction"\n  value { string_value: "all" }\n}\n')
    for words in (("package",), ("package", "--dry-run")):
        fault = refused(site, *words)
        assert fault.what == "kv_cache_free_gpu_mem_fraction is 'all', which the backend can't read"
        assert fault.where == f"{overlay}:2"
    assert Store(site.folder).all("release") == []
    overlay.write_text(overlay.read_text().replace("all", "0.7"))
    folder = site.folder / "triton_repo/releases" / done(site, "package")["release"]
    config = pbtxt.parse((folder / "model_repository/tensorrt_llm/config.pbtxt").read_text(), "config")
    assert config.parameters["kv_cache_free_gpu_mem_fraction"].string_value == "0.7"


def test_an_equal_package_is_reused_and_a_dry_run_makes_nothing(site: Site) -> None:
    assert "package  build" in run(site, "package", "--dry-run").stdout
    assert Store(site.folder).all("release") == []
    done(site, "package")
    assert "package  reuse" in run(site, "package", "--engine", str(engine_of(site)), "--dry-run").stdout
    assert done(site, "package")["stages"][0]["reused"] is True


def test_what_the_target_says_of_serving_holds_without_a_new_build(site: Site) -> None:
    image = f"registry.example/triton@sha256:{'0' * 64}"
    models = "preprocessing_instances=2 bls_instances={} queue_requests_max={} queue_delay_us=0"
    site.write(kv_memory_share=0.8, serving_image=image, load_time_limit_s=900.0, replicas_max=5)
    site.write(triton={"queue_requests_max": 64, "bls_instances": 3})
    folder = site.folder / "triton_repo/releases" / done(site, "package")["release"]
    config = pbtxt.parse((folder / "model_repository/tensorrt_llm/config.pbtxt").read_text(), "config")
    assert config.parameters["kv_cache_free_gpu_mem_fraction"].string_value == "0.8"
    assert config.dynamic_batching.default_queue_policy.max_queue_size == 64
    assert image in (folder / "launch/compose.yaml").read_text()
    assert "maxReplicas: 5" in (folder / "launch/kubernetes.yaml").read_text()
    assert artifacts.read(folder).record.parts.parameters["load_time_limit_s"] == 900
    assert artifacts.read(folder).record.notes == [
        "kv_memory_share: 0.8, as the target says now; 0.9 at the build",
        f"serving_image: {image}, as the target says now; auto at the build",
        "load_time_limit_s: 900.0, as the target says now; 1800.0 at the build",
        "replicas_max: 5, as the target says now; 2 at the build",
        f"triton: {models.format(3, 64)}, as the target says now; {models.format(1, 0)} at the build",
    ]


@pytest.mark.parametrize("keys", [("kv_reuse",), ("chunked_context",), ("kv_reuse", "chunked_context")])
def test_what_the_engine_cannot_have_is_refused_and_not_left_out(site: Site, keys: tuple[str, ...]) -> None:
    """An FP8 KV cache under W4A16_AWQ has no paged context FMHA: no edit of the target after the build changes it."""
    site.write(**dict.fromkeys(keys, True))
    fault = refused(site, "package")
    assert [one.what for one in fault.each()] == [
        f"{key} is true in the target, and the engine was built without paged context FMHA, which it needs"
        for key in keys
    ]
    assert all("kv_dtype: model" in str(one.fix) for one in fault.each())
    assert Store(site.folder).all("release") == []


def test_chunked_context_that_the_engine_needs_is_not_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path / "site", TARGET | {
        "kv_dtype": "model", "kv_reuse": True, "chunked_context": True, "max_num_tokens": 64,
    })  # fmt: skip
    monkeypatch.setenv("PATH", str(site.install()), prepend=os.pathsep)
    site.write_config()
    site.build()
    site.write(chunked_context=False)
    fault = refused(site, "package")
    assert isinstance(fault, ConfigError)
    assert fault.what.endswith("the engine takes 64 tokens a step, its sequences 128")


@pytest.mark.parametrize("words", [("package",), ("promote",), ("serve",)])
def test_the_wrong_version_is_refused_at_each_step(site: Site, words: tuple[str, ...]) -> None:
    release = done(site, "package")["release"]
    give_verdict(site, release)
    if words == ("serve",):
        done(site, "promote")
    shutil.rmtree(site.folder / "tensorrt-llm")
    site.install(version="1.1.0")
    fault = refused(site, *words)
    assert isinstance(fault, EnvironmentUnfit)
    assert fault.what == "built with TensorRT-LLM 1.2.1, running TensorRT-LLM 1.1.0"
    assert "nvcr.io/nvidia/tritonserver:26.04-trtllm-python-py3" in str(fault.fix)


@pytest.fixture
def with_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], Site]:
    """Return a function that makes a workspace whose machine has docker and no TensorRT-LLM, with a finished engine.

    Its argument: the TensorRT-LLM in Triton's image; None where that image is not on the machine.
    """

    def make(serving: str | None) -> Site:
        site = Site(tmp_path / "site")
        site.write_config()
        other = standin.install(tmp_path / "serving", grammar.FILE, version=serving) if serving else None
        docker = standin.install_docker(tmp_path / "docker", site.install(), f"sha256:{'ab' * 32}", serving=other)
        monkeypatch.setenv("PATH", f"{docker}:/usr/bin:/bin")
        site.build()
        return site

    return make


def test_with_docker_alone_the_image_that_serves_is_compared_and_not_the_one_that_built(
    with_docker: Callable[[str | None], Site],
) -> None:
    site = with_docker("1.1.0")
    assert refused(site, "package").what == "built with TensorRT-LLM 1.2.1, running TensorRT-LLM 1.1.0"


def test_what_is_not_compared_is_said(with_docker: Callable[[str | None], Site]) -> None:
    site = with_docker(None)
    result = run(site, "package")
    assert result.exception is None, result.exception
    said = (
        "TensorRT-LLM and TensorRT were not compared with the engine's lock: "
        "nvcr.io/nvidia/tritonserver:26.04-trtllm-python-py3, which serves, is not here"
    )
    (release,) = Store(site.folder).all("release")
    assert said in release.record.notes
    give_verdict(site, release.id)
    assert said in run(site, "promote").stderr


@pytest.mark.parametrize(
    ("file", "changes", "said"),
    [
        ("config.json", {"version": "1.1.0"}, "the engine is of TensorRT-LLM 1.1.0, and the lock says 1.2.1"),
        (lock.LOCK, {"sm_by_rank": [80] * 7 + [86]}, "built for SM 80, 86"),
        (lock.LOCK, {"tensorrt_llm": "1.1.0"}, "the lock names TensorRT-LLM 1.1.0, a version that this program does "),
        (lock.LOCK, {"sm_by_rank": [80] * 4}, "the lock is of 4 ranks, and the engine has 8"),
    ],
)
def test_an_engine_that_its_lock_does_not_fit_is_refused(
    site: Site, file: str, changes: dict[str, Any], said: str
) -> None:
    engine = engine_of(site)
    (engine / artifacts.RECORD).unlink()
    path = engine / file
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    assert any(said in one.what for one in refused(site, "package", "--engine", str(engine)).each())


def test_an_engine_without_a_lock_or_of_another_model_is_refused(site: Site) -> None:
    engine = engine_of(site)
    fault = refused(site, "package", "--set", f"model={site.folder}")
    assert fault.what == "there is no config.json"
    config = site.model / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"hidden_size": 96}))
    assert refused(site, "package").what == "the model's hidden_size is 96, the engine's 512"
    (engine / lock.LOCK).unlink()
    assert refused(site, "package").what == "there is no TensorRT-LLM engine yet"
    fault = refused(site, "package", "--engine", str(engine))
    assert fault.what == "the engine has no lock: nothing says where it may run"
