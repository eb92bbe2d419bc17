"""What a TensorRT-LLM engine of anybody's became, and what of it is damaged, missing or another target's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from trtllm_builds import TARGET, Site, whats
from trtpipe.chain import trtllm_engine as chain
from trtpipe.core import artifacts
from trtpipe.core.artifacts import Artifact
from trtpipe.engines.trtllm.built import inspection, lock
from trtpipe.errors import ConfigError, Stale


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path / "site").on_path(monkeypatch)


def refused(found: inspection.Inspection) -> list[str]:
    return [finding.what for finding in found.refusals]


def test_o_32_paged_fmha_asked_for_and_off_is_found_in_a_folder_of_anybodys(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who builds by hand: W4A16_AWQ, FP8 KV, paged context FMHA left on by default."""
    _, foretold = site.plan()
    words = foretold.lines[-1].words
    words[words.index("--use_paged_context_fmha") + 1] = "enable"
    done = subprocess.run(words, cwd=site.folder, capture_output=True, text=True, check=True)
    assert "FP8 Paged Context FMHA is disabled because FP8 context FMHA is disabled." in done.stdout
    engine = site.folder / words[words.index("--output_dir") + 1]
    assert [finding.kind for finding in chain.inspect(engine, None, ()).findings] == ["warning"], "no lock"
    # as the user's target has it: FP8 KV, and reuse wanted
    site.write(kv_reuse=True)
    found = chain.inspect(engine, site.target_file, ())
    assert refused(found) == ["use_paged_context_fmha is disable in the engine, and enable was asked for"]
    assert str(found.refusals[0].cost).startswith(
        "no KV reuse and no chunked context: a prompt is prefilled whole, in one step; none of the "
    )
    assert " KV blocks planned is ever reused" in str(found.refusals[0].cost)


def test_a_16_bit_cache_keeps_paged_context_fmha(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(tmp_path / "site", {**TARGET, "kv_dtype": "model", "kv_reuse": True})
    monkeypatch.setenv("PATH", str(site.install()), prepend=os.pathsep)
    found = inspection.inspect(site.build().path)
    assert found.engine.config["build_config"]["plugin_config"]["use_paged_context_fmha"] is True


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, Artifact]:
    """An engine for tests that copy it."""
    site = Site(tmp_path_factory.mktemp("engine") / "site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(site.install()), prepend=os.pathsep)
        return site, site.build()


@pytest.fixture
def engine(made: tuple[Site, Artifact], tmp_path: Path) -> Path:
    return Path(shutil.copytree(made[1].path, tmp_path / "engine"))


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def rewrite(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_flipped_byte_is_found_and_its_file_named(engine: Path) -> None:
    flip(engine / "rank5.engine")
    with pytest.raises(Stale) as caught:
        inspection.inspect(engine)
    assert "rank5.engine" in caught.value.what
    assert caught.value.where == str(engine)


def unrecorded(engine: Path) -> Path:
    (engine / artifacts.RECORD).unlink()
    return engine


def test_missing_and_left_over_ranks_are_all_named(engine: Path) -> None:
    unrecorded(engine)
    (engine / "rank2.engine").unlink()
    (engine / "rank6.engine").unlink()
    (engine / "rank8.engine").write_bytes(b"x" * 10_000)
    with pytest.raises(ConfigError) as caught:
        inspection.inspect(engine)
    assert whats(caught).splitlines()[:3] == [
        "rank 2 of 8 is missing", "rank 6 of 8 is missing", "rank 8 is left over: the engine has 8 ranks",
    ]  # fmt: skip
    assert caught.value.each()[0].where == str(engine / "rank2.engine")


def test_another_version_is_refused(engine: Path, made: tuple[Site, Artifact]) -> None:
    rewrite(unrecorded(engine) / "config.json", version="1.1.0")
    said = refused(chain.inspect(engine, made[0].target_file, ()))
    assert "the engine is of TensorRT-LLM 1.1.0, and the target says 1.2.1" in said
    assert "the engine is of TensorRT-LLM 1.1.0, and the lock says 1.2.1" in said
    rewrite(engine / "config.json", version="1.3.0rc20")
    assert "TensorRT-LLM 1.3.0rc20 has no engines" in refused(inspection.inspect(engine))


def test_another_sm_is_refused_rank_by_rank(engine: Path, made: tuple[Site, Artifact]) -> None:
    rewrite(unrecorded(engine) / lock.LOCK, sm_by_rank=[80] * 7 + [86])
    (finding,) = chain.inspect(engine, made[0].target_file, ()).refusals
    assert finding.what.startswith("built for SM 80, 86 (NVIDIA A100-SXM4-80GB), and the target's a100-80gb is SM 80")
    assert finding.why == "ranks 7: a TensorRT plan runs on the type of GPU that built it"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("target.tensor_parallel=4", "mapping.tp_size is 8 in the engine, and the target says 4"),
        ("target.kv_dtype=model", "quantization.kv_cache_quant_algo is FP8 in the engine, and the target says None"),
        ("target.group_size=128", "quantization.group_size is 64 in the engine, and the target says 128"),
        ("target.dtype=float16", "dtype is bfloat16 in the engine, and the target says float16"),
        ("target.kv_block_tokens=64", "tokens_per_block is 32 in the engine, and 64 was asked for"),
        ("target.max_batch_size=7", "max_batch_size is 512 in the engine, and 7 was asked for"),
    ],
)
def test_an_engine_of_another_target_is_refused(
    engine: Path, made: tuple[Site, Artifact], override: str, said: str
) -> None:
    (finding,) = [one for one in chain.inspect(engine, made[0].target_file, (override,)).refusals if said in one.what]
    counted = ("kv_cache_quant_algo", "tokens_per_block", "max_batch_size")
    assert ("KV blocks of" in str(finding.cost)) is any(name in said for name in counted)


EXPECTED = "expected version, pretrained_config, build_config"


@pytest.mark.parametrize(
    ("text", "said", "fix"),
    [
        ("{", "config.json is damaged", "build it again"),
        ("[]", f"config.json has the keys none, {EXPECTED} (", "give the folder that trtllm-build wrote"),
        (
            '{"builder_config": {}, "plugin_config": {}}',
            f"config.json has the keys builder_config, plugin_config, {EXPECTED} (version, pretrained_config, ",
            "it is an engine of TensorRT-LLM before 0.8",
        ),
        (
            '{"version": "1.2.1", "pretrained_config": {}, "build_config": {}}',
            "(pretrained_config.mapping.tp_size missing)",
            "give the folder that trtllm-build wrote",
        ),
    ],
)
def test_what_is_no_engine_is_told_as_such(tmp_path: Path, text: str, said: str, fix: str) -> None:
    with pytest.raises(ConfigError, match=r"there is no config.json"):
        inspection.inspect(tmp_path)
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ConfigError) as caught:
        inspection.inspect(tmp_path)
    assert said in caught.value.what
    assert fix in str(caught.value.fix)


def test_a_checkpoint_is_no_engine(site: Site) -> None:
    with pytest.raises(ConfigError) as caught:
        inspection.inspect(site.checkpoint)
    assert caught.value.what.startswith("not an engine directory: config.json has the keys architecture, attn_bias, ")
    assert f" more, {EXPECTED} (version, pretrained_config, build_config missing)" in caught.value.what
    assert caught.value.fix == "it is a checkpoint: `trtpipe build-engine --checkpoint` makes an engine of it"


def test_an_engine_of_another_form_is_warned_of(engine: Path) -> None:
    config = json.loads((unrecorded(engine) / "config.json").read_text())
    del config["build_config"]["use_refit"]
    config["build_config"]["plugin_config"]["quantum_plugin"] = None
    (engine / "config.json").write_text(json.dumps(config))
    said = [finding.what for finding in inspection.inspect(engine).findings]
    form = "not the form that this program knows of TensorRT-LLM 1.2.1"
    assert said == [
        f"build_config is without use_refit: {form}",
        f"build_config.plugin_config is with quantum_plugin: {form}",
    ]
