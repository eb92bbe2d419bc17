"""A TensorRT-LLM engine through the stand-in builder: built, inspected, locked; and everything that can go wrong."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from standins import trtllm_build as standin
from trtllm_builds import TARGET, Site
from trtpipe.chain import trtllm_engine as chain
from trtpipe.core import artifacts
from trtpipe.core.artifacts import Artifact
from trtpipe.core.progress import Silent
from trtpipe.core.runner import Runner
from trtpipe.core.store import Store
from trtpipe.engines.trtllm.built import inspection, lock
from trtpipe.errors import ConfigError, EnvironmentUnfit, Stale, ToolFailed, TrtpipeError


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    made = Site(tmp_path / "site")
    monkeypatch.setenv("PATH", str(made.install()), prepend=os.pathsep)
    return made


def built(site: Site) -> Path:
    return site.folder / "engines/built"


def leftovers(site: Site) -> list[str]:
    """Return what lies where engines lie, apart from finished ones."""
    folder = built(site)
    return (
        [path.name for path in folder.iterdir() if not (path / artifacts.RECORD).is_file()] if folder.exists() else []
    )


def whats(caught: pytest.ExceptionInfo[TrtpipeError]) -> str:
    return "\n".join(one.what for one in caught.value.each())


def refused(found: inspection.Inspection) -> list[str]:
    return [finding.what for finding in found.refusals]


@pytest.mark.parametrize("model_type", ["llama", "qwen2"])
def test_an_engine_of_eight_ranks_is_built_inspected_and_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model_type: str
) -> None:
    site = Site(tmp_path / "site", model_type=model_type)
    monkeypatch.setenv("PATH", str(site.install()), prepend=os.pathsep)
    made = site.build()
    assert {f"rank{rank}.engine" for rank in range(8)} < made.record.outputs.keys()
    assert {"config.json", "request.json", "engine.lock.json"} < made.record.outputs.keys()
    assert made.record.parts.versions == {"tensorrt_llm": "1.2.1", "tensorrt": "10.14.1.48"}
    assert made.record.figures["world_size"] == 8
    assert made.record.figures["peak_host_mib_of_a_rank"] == 123.5
    assert made.record.figures["builder_warnings"] == [], "nothing was asked for that the builder takes away"
    assert any("paged context FMHA is switched off" in note for note in made.record.notes)
    found = inspection.inspect(made.path)
    assert (found.findings, found.verified, found.engine.world_size) == ((), True, 8)
    assert found.lock is not None
    assert found.lock.sm_by_rank == [80] * 8
    assert (found.lock.driver_floor, found.lock.tensorrt) == (580, "10.14.1.48")
    caches = site.folder / ".trtpipe/timing-caches"
    assert [path.name for path in caches.iterdir()] == [
        "tensorrt-llm-1.2.1-tensorrt-10.14.1.48-nvidia-a100-sxm4-80gb.cache"
    ]


def test_an_equal_build_is_reused_and_another_limit_is_not(site: Site) -> None:
    first = site.build()
    assert site.build().path == first.path
    site.write(max_batch_size=4)
    assert site.build().path != first.path


def test_the_script_beside_the_log_builds_the_same_again(site: Site) -> None:
    made = site.build()
    (run,) = (site.folder / ".trtpipe/runs").iterdir()
    subprocess.run([run / "reproduce.sh"], check=True, capture_output=True)
    for name in ("config.json", "rank7.engine"):
        assert (run / "again" / name).read_bytes() == (made.path / name).read_bytes()


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("STANDIN_KILL_RANK", "killed by SIGKILL, rank 3, 4, 5, 6, 7 of 8 not written"),
        ("STANDIN_SKIP_RANK", "trtllm-build failed: exit status 0, rank 3 of 8 not written"),
        ("STANDIN_SHORT_RANK", "rank 3 is short: "),
    ],
)
def test_o_34_a_rank_that_failed_is_named_and_nothing_is_published(
    site: Site, monkeypatch: pytest.MonkeyPatch, variable: str, said: str
) -> None:
    monkeypatch.setenv(variable, "3")
    with pytest.raises(TrtpipeError) as caught:
        site.build()
    assert said in whats(caught)
    (problem,) = caught.value.each()
    assert problem.log or problem.where
    if variable == "STANDIN_KILL_RANK":
        assert "--set target.build_workers=1" in str(problem.fix)
        assert "| [01/01/2026-00:00:00]" in problem.what, "the last lines of the log"
    assert Store(site.folder).all("engine") == []
    assert not (site.folder / ".trtpipe/timing-caches").exists()
    monkeypatch.delenv(variable)
    assert inspection.inspect(site.build().path).findings == ()
    assert leftovers(site) == []


def test_a_build_out_of_time_is_ended(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_SLEEP_S", "30")
    site.write(build_time_limit_s=1)
    with pytest.raises(ToolFailed, match="did not finish within 1 s"):
        site.build()
    assert Store(site.folder).all("engine") == []


KILLED = """
import sys
sys.path[:0] = {paths!r}
from standins import trtllm_build as standin
from trtllm_builds import TARGET, Site
from pathlib import Path
import trtllm_builds
site = object.__new__(Site); site.folder = Path({folder!r}); site.target = trtllm_builds.TARGET
site.build()
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_build_leaves_no_engine_and_no_process(
    site: Site, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    monkeypatch.setenv("STANDIN_SLEEP_S", "600")
    script = KILLED.format(paths=sys.path, folder=str(site.folder))
    log, deadline = None, time.monotonic() + 180
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL) as child:
        while not (log and log.stat().st_size) and time.monotonic() < deadline and child.poll() is None:
            log = next(iter(site.folder.glob(".trtpipe/runs/*/log.txt")), None)
            time.sleep(0.1)
        child.send_signal(how)
    assert log, "the build has begun"
    assert log.stat().st_size
    deadline = time.monotonic() + 60
    while (alive := builders(site)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert alive == []
    assert Store(site.folder).all("engine") == []
    monkeypatch.setenv("STANDIN_SLEEP_S", "0")
    assert inspection.inspect(site.build().path).findings == ()
    assert leftovers(site) == [], "the next build cleared what the killed one had begun"


def builders(site: Site) -> list[str]:
    lines = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().split(b"\0")
        except OSError:
            continue
        if str(site.folder).encode() in b" ".join(words) and b"--checkpoint_dir" in words:
            lines.append(shlex.join(word.decode() for word in words))
    return lines


def test_a_flag_that_became_something_else_blocks_with_its_cost(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_REWRITE", "multiple_profiles")
    with pytest.raises(ToolFailed) as caught:
        site.build()
    assert "multiple_profiles is disable in the engine, and enable was asked for" in whats(caught)
    assert "cost: kernels are chosen for one size of step" in whats(caught)
    assert Store(site.folder).all("engine") == []
    site.write(accepted_changes=["multiple_profiles"])
    made = site.build()
    assert any("multiple_profiles is disable" in note and "(accepted)" in note for note in made.record.notes)
    assert [finding.kind for finding in inspection.inspect(made.path).findings] == ["changed"]


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


def test_o_45_another_sm_is_refused_rank_by_rank(engine: Path, made: tuple[Site, Artifact]) -> None:
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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"version": "1.3.0rc21", "builder": False}, "TensorRT-LLM 1.3.0rc21 builds no engines: 1.3 removes"),
        ({"version": "1.1.0"}, "TensorRT-LLM 1.1.0 on TensorRT 10.14.1.48, and the target is for 1.2.1"),
        ({"builder": False}, "its builder can't be imported: ModuleNotFoundError"),
    ],
)
def test_an_installation_that_builds_no_such_engine_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], said: str
) -> None:
    site = Site(tmp_path / "site")
    monkeypatch.setenv("PATH", str(site.install(**options)), prepend=os.pathsep)
    with pytest.raises(EnvironmentUnfit) as caught:
        site.build()
    assert said in caught.value.what
    assert "tensorrt-llm==1.2.1" in str(caught.value.fix)
    assert not built(site).exists()


def test_without_tensorrt_llm_the_way_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(tmp_path / "site")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentUnfit) as caught:
        site.build()
    assert caught.value.what == "there is no trtllm-build here, and neither docker nor podman to run it in"
    assert "nvcr.io/nvidia/tensorrt-llm/release:1.2.1" in str(caught.value.fix)


DIGEST = "sha256:" + "ab" * 32
IMAGE = "nvcr.io/nvidia/tensorrt-llm/release"


@pytest.mark.parametrize(
    ("image", "digest", "note"),
    [
        (f"{IMAGE}:1.2.1", DIGEST, f"built in {IMAGE}@{DIGEST}: {IMAGE}:1.2.1, which the target names, can come to "),
        (f"{IMAGE}:1.2.1", None, "it has no digest"),
        (f"{IMAGE}@{DIGEST}", DIGEST, f"built in {IMAGE}@{DIGEST}"),
    ],
)
def test_without_tensorrt_llm_on_the_host_the_container_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, image: str, digest: str | None, note: str
) -> None:
    site = Site(tmp_path / "site")
    docker = standin.install_docker(tmp_path / "docker", site.install(), digest)
    monkeypatch.setenv("PATH", str(docker), prepend=os.pathsep)
    site.write(container_image=image)
    made = site.build()
    assert any(note in said for said in made.record.notes)
    kept = lock.read(made.path)
    assert (kept.container_image, kept.container_digest) == (image, digest)
    build, killed = (docker / "calls.txt").read_text().splitlines()[-2:]
    assert f"--volume {site.checkpoint}:{site.checkpoint}:ro" in build
    runs = image if digest is None else f"{IMAGE}@{DIGEST}"
    calls = (docker / "calls.txt").read_text().splitlines()
    assert f"{runs} trtllm-build --checkpoint_dir {site.checkpoint}" in build
    assert all(f" {runs} " in call for call in calls if call.startswith("run ")), "probed and built in the same bytes"
    assert killed == f"kill {build.split('--name ')[1].split()[0]}", "the client's end is not the container's"


def test_without_docker_podman_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(tmp_path / "site")
    podman = standin.install_docker(tmp_path / "podman", site.install(), DIGEST, name="podman")
    monkeypatch.setenv("PATH", f"{podman}:/usr/bin:/bin")
    monkeypatch.setattr("os.getuid", lambda: 1000)
    made = site.build()
    assert inspection.inspect(made.path).findings == ()
    build = (podman / "calls.txt").read_text().splitlines()[-2]
    assert " --security-opt label=disable " in build
    assert " --userns keep-id --user 1000:" in build


def gpus(programs: Path, line: str, count: int = 8) -> None:
    named = "," in line  # else it is what the driver says instead of GPUs
    lines = "".join(f"{number}, GPU-{number}, {line}\n" if named else f"{line}\n" for number in range(count))
    (programs / "nvidia-smi").write_text("#!/bin/sh\ncat <<'END'\n" + lines + "END\n")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("NVIDIA A10, 8.6, 23028, 580.1, 22500", "and this machine has NVIDIA A10 (SM 86, 23028 MiB)"),
        ("NVIDIA A100-SXM4-40GB, 8.0, 40960, 580.1, 40337", "and this machine has NVIDIA A100-SXM4-40GB"),
        ("NVIDIA A100-SXM4-80GB, 8.0, 81920, 550.1, 81153", "driver 550.1 is too old: this release's CUDA needs 580"),
        ("No devices were found", "the NVIDIA driver does not list the GPUs: No devices were found"),
    ],
)
def test_the_wrong_gpus_are_refused_before_the_build(site: Site, line: str, said: str) -> None:
    gpus(site.folder / "tensorrt-llm/bin", line)
    with pytest.raises(EnvironmentUnfit) as caught:
        site.build()
    assert said in caught.value.what or said in f"{caught.value.what}: {line}"
    assert not built(site).exists()


def test_an_older_driver_that_the_images_take_builds_with_a_note(site: Site) -> None:
    gpus(site.folder / "tensorrt-llm/bin", "NVIDIA A100-SXM4-80GB, 8.0, 81920, 535.261.03, 81153")
    assert any(note.startswith("driver 535.261.03 is older than 580: it runs") for note in site.build().record.notes)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kv_dtype": "model"}, "quantization.kv_cache_quant_algo is FP8, and the plan says None"),
        ({"tensor_parallel": 4}, "mapping.tp_size is 8, and the plan says 4"),
        ({"dtype": "float16"}, "dtype is bfloat16, and the plan says float16"),
    ],
)
def test_a_checkpoint_that_is_not_the_plans_is_refused_before_anything(
    site: Site, change: dict[str, Any], said: str
) -> None:
    site.write(**change)
    with pytest.raises(ConfigError) as caught:
        site.build()
    assert f"the checkpoint's {said}" in whats(caught)
    assert caught.value.each()[0].where == str(site.checkpoint / "config.json")


def test_a_checkpoint_that_lacks_ranks_or_is_none_is_refused(site: Site) -> None:
    (site.checkpoint / "rank1.safetensors").unlink()
    (site.checkpoint / "rank4.safetensors").write_bytes(b"")
    with pytest.raises(ConfigError) as caught:
        site.build()
    assert whats(caught).splitlines() == ["the checkpoint lacks rank 1", "the checkpoint lacks rank 4"]
    _, foretold = site.plan()
    with pytest.raises(ConfigError, match="no `architecture` and `mapping`"):
        chain.build(Runner(Store(site.folder), Silent()), foretold, site.model)
