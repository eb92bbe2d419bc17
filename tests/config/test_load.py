"""Config, target and policy are read together, and everything wrong in them is told together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from trtpipe.config.load import target_file, workspace
from trtpipe.config.policy import DriftPolicy
from trtpipe.errors import ConfigError, Problems, TrtpipeError, UsageFault

if TYPE_CHECKING:
    from trtpipe.config.load import Workspace

CONFIG = "model: sample\nprompts:\n  files: [a.jsonl]\ntarget: engine.yaml\npolicy: policy.yaml\n"
TARGET = "kind: vllm\nweights: w4a16\nkv_dtype: [bfloat16]\n"
POLICY = "why: test\nper_segment:\n  kl_top20_nats_max: 0.2\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, config=CONFIG, target=TARGET, policy=POLICY)
    return tmp_path


def write(folder: Path, **texts: str) -> None:
    names = {"config": "trtpipe.yaml", "target": "engine.yaml", "policy": "policy.yaml"}
    for name, text in texts.items():
        (folder / names[name]).write_text(text)


def load(folder: Path, *overrides: str) -> Workspace:
    return workspace(folder / "trtpipe.yaml", overrides)


def problems(folder: Path, *overrides: str) -> list[TrtpipeError]:
    with pytest.raises(TrtpipeError) as caught:
        load(folder, *overrides)
    return caught.value.each()


def test_the_repositorys_own_config_is_valid() -> None:
    space = workspace(Path(__file__).parents[2] / "trtpipe.yaml")
    assert space.target.kind == "vllm"
    assert space.policy.why


def test_all_three_files_are_read_relative_to_the_config(folder: Path) -> None:
    space = load(folder)
    assert space.root == folder
    assert space.resolve("../x") == folder.parent / "x"
    assert space.config.prompts.files == ["a.jsonl"]
    assert space.target.kind == "vllm"
    assert space.policy.why == "test"


def test_a_partly_given_section_keeps_its_own_defaults(folder: Path) -> None:
    default, given = DriftPolicy().per_segment, load(folder).policy.per_segment
    assert given == default.model_copy(update={"kl_top20_nats_max": 0.2})
    assert default.top1_agreement_min < DriftPolicy().overall.top1_agreement_min


def test_without_a_policy_the_default_holds(folder: Path) -> None:
    write(folder, config=CONFIG.replace("policy: policy.yaml\n", ""))
    assert load(folder).policy == DriftPolicy()
    assert load(folder, "policy.confidence=0.9").policy.confidence == 0.9


def test_overrides_go_to_their_file(folder: Path) -> None:
    write(folder, target=TARGET.replace("w4a16", "wrong"))
    (folder / "other.yaml").write_text(TARGET)
    space = load(
        folder,
        "prompts.seed=7",
        "serving.http_port=1",
        "target=other.yaml",
        "target.threads=3",
        "policy.why=x",
    )
    assert (space.config.prompts.seed, space.config.serving.http_port) == (7, 1)
    assert space.target.model_dump()["threads"] == 3
    assert space.policy.why == "x"


def test_the_problems_of_all_files_come_as_one_error(folder: Path) -> None:
    write(
        folder,
        config=CONFIG + "serving: {http_port: 0}\nmodle: x\n",
        target=TARGET + "kv_pool_mib: -1\n",
        policy="confidence: 2\n",
    )
    with pytest.raises(Problems) as caught:
        load(folder)
    assert caught.value.exit_code == 3
    assert sorted((one.what, Path(str(one.where)).name) for one in caught.value.each()) == [
        ("`confidence`: Input should be less than 1", "policy.yaml:1:1"),
        ("`kv_pool_mib`: Input should be greater than or equal to 16", "engine.yaml:4:1"),
        ("`serving.http_port`: Input should be greater than or equal to 1", "trtpipe.yaml:6:11"),
        ("unknown key `modle`", "trtpipe.yaml:7:1"),
    ]


def test_files_that_are_missing_are_told_with_the_rest(folder: Path) -> None:
    write(folder, config=CONFIG.replace("sample", "[1]"))
    for name in ("engine.yaml", "policy.yaml"):
        (folder / name).unlink()
    found = problems(folder)
    assert [one.what for one in found[1:]] == ["the file does not exist"] * 2
    assert [Path(str(one.where)).name for one in found] == ["trtpipe.yaml:1:1", "engine.yaml", "policy.yaml"]


def test_a_missing_target_key_does_not_hide_the_policy(folder: Path) -> None:
    write(folder, config=CONFIG.replace("target: engine.yaml\n", ""), policy="confidence: 2\n")
    assert [one.what.split(":")[0] for one in problems(folder)] == ["`target` is missing", "`confidence`"]


@pytest.mark.parametrize(
    ("override", "what", "fix"),
    [
        ("modle=x", "unknown key `modle`", "did you mean `model`?"),
        ("prompts.sed=1", "unknown key `prompts.sed`", "did you mean `seed`?"),
        ("target.vllm=1", "unknown key `vllm`", "known keys: kind, weights, kv_dtype"),
        ("target.kv_pol_mib=1", "unknown key `kv_pol_mib`", "did you mean `kv_pool_mib`?"),
        ("target.gpu=a100", "unknown key `gpu`", "known keys"),
        ("policy.overall.kl=1", "unknown key `overall.kl`", "known keys: kl_top20_nats_max"),
        ("prompts={}", "`prompts.files` is missing", "add `files:` there"),
        ("prompts.files=[1]", "`prompts.files.0`: Input should be a valid string", "correct"),
        ("target.threads=x", "`threads`: Input should be a valid integer; or Input should be 'auto'", ""),
        ("target.threads=0", "`threads`: Input should be greater than or equal to 1; or", ""),
        ("target.kind=x", "there is no engine kind `x`", "write `kind:` with one of vllm, tensorrt-llm"),
        ("target.kind=vlm", "there is no engine kind `vlm`", "did you mean `vllm`?"),
        ("target.kv_dtype=[fp8]", "`kv_dtype.0`: Input should be 'fp8_e4m3' or 'bfloat16'", ""),
        ("quantization.time_limit_s=1e999", "`quantization.time_limit_s`: Input should be a finite", ""),
        ("prompts.seed=true", "`prompts.seed`: Input should be a valid integer", ""),
        ("prompts.seed=18446744073709551616", "`prompts.seed`: Input should be less than", ""),
        ("target.prefix_caching=no", "`prefix_caching`: Input should be a valid boolean", ""),
    ],
)
def test_one_wrong_override(folder: Path, override: str, what: str, fix: str) -> None:
    (found,) = problems(folder, override)
    assert isinstance(found, ConfigError)
    assert found.what.startswith(what)
    assert found.fix is not None
    assert found.fix.startswith(fix)
    assert found.where == f"--set {override.partition('=')[0]}"


def test_a_target_without_kind_is_told_in_plain_words(folder: Path) -> None:
    (folder / "engine.yaml").write_text("weights: w4a16\n")
    (found,) = problems(folder)
    assert found.what == "the target does not say which engine: `kind` is missing"
    assert found.where == f"{folder / 'engine.yaml'}:1:1"


@pytest.mark.parametrize("override", ["seed", "=1", "prompts.files.0=x", "policy.why.deeper=1"])
def test_an_override_that_fits_nowhere_is_a_usage_fault(folder: Path, override: str) -> None:
    (found,) = problems(folder, override)
    assert isinstance(found, UsageFault)
    assert str(found.where).startswith("--set")


def test_a_file_that_holds_no_mapping(folder: Path) -> None:
    write(folder, target="- a\n")
    (found,) = problems(folder)
    assert found.what == "the file must hold a mapping"
    assert found.where == f"{folder / 'engine.yaml'}:1:1"


def test_a_target_is_read_on_its_own(folder: Path) -> None:
    path = folder / "engine.yaml"
    read = target_file(path, ("target.threads=3",))
    assert read.target.kind == "vllm"
    assert read.target.model_dump()["threads"] == 3
    assert (read.where("weights"), read.where("threads")) == (f"{path}:2:1", "--set target.threads")


def test_everything_wrong_in_a_target_is_told_together(folder: Path) -> None:
    path = folder / "engine.yaml"
    path.write_text("kind: tensorrt-llm\ngpu: a100-80gb\nweights: w4a16\nkv_dtype: fp8\nkv_reuse: 1\nkv_bloc: 2\n")
    with pytest.raises(Problems) as caught:
        target_file(path)
    said = [(problem.where, problem.what.split(":")[0]) for problem in caught.value.each()]
    assert said == [
        (f"{path}:3:1", "`weights`"), (f"{path}:4:1", "`kv_dtype`"), (f"{path}:5:1", "`kv_reuse`"),
        (f"{path}:1:1", "`chunked_context` is missing"), (f"{path}:6:1", "unknown key `kv_bloc`"),
    ]  # fmt: skip


@pytest.mark.parametrize("override", ["prompts.seed=1", "policy.confidence=0.9", "model=x"])
def test_a_target_takes_overrides_of_its_own_keys_only(folder: Path, override: str) -> None:
    with pytest.raises(UsageFault, match="is no key of the target"):
        target_file(folder / "engine.yaml", (override,))


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ('model="a\\0b"', "NUL"),
        ('prompts.files=["a\\0b"]', "NUL"),
        ('model=""', "at least 1 character"),
        ('prompts.files=[""]', "at least 1 character"),
        ("prompts.template_date=2026-13-45", "month must be in 1..12"),
        ('serving.host="a\\nb"', "pattern"),
        ('serving.host=""', "pattern"),
        ("serving.grpc_port=8000", "must differ"),
        ("serving.front_port=8002", "must differ"),
        ("serving.front_host=a b", "should match pattern"),
    ],
)
def test_values_that_could_not_be_used_are_refused_at_once(folder: Path, override: str, said: str) -> None:
    (problem,) = problems(folder, override)
    assert said in str(problem)


def test_a_fault_within_a_targets_section_has_its_place(folder: Path) -> None:
    write(folder, target=f"{TARGET}triton:\n  bls_instances: 2\n  queue_max: 4\n  preprocessing_instances: 0\n")

    found = {problem.what: (problem.where, problem.fix) for problem in problems(folder)}
    target = folder / "engine.yaml"
    assert found["unknown key `triton.queue_max`"] == (f"{target}:6:3", "did you mean `queue_requests_max`?")
    (wrong,) = [where for what, (where, _) in found.items() if what.startswith("`triton.preprocessing_instances`")]
    assert wrong == f"{target}:7:3"


def test_the_delay_of_the_queue_is_tensorrt_llms_alone(folder: Path) -> None:
    (problem,) = problems(folder, "target.triton.queue_delay_us=600")
    assert problem.what == "unknown key `triton.queue_delay_us`"
    assert problem.where == "--set target.triton.queue_delay_us"
