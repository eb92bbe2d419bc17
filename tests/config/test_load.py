"""Config, target and policy are read together, and everything wrong in them is told together."""

from __future__ import annotations

from pathlib import Path

import pytest

from config_files import CONFIG, TARGET, load, problems, write
from trtpipe.config import starter
from trtpipe.config.load import target_file, workspace
from trtpipe.config.policy import DriftPolicy
from trtpipe.errors import Problems, UsageFault


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
    write(folder, config=CONFIG.replace("policy: policy.yaml\n", "").replace("sample", "/models/mine"))
    assert load(folder).policy == DriftPolicy()
    assert load(folder, "policy.confidence=0.9").policy.confidence == 0.9


def test_only_the_sample_has_the_samples_limits(tmp_path: Path) -> None:
    starter.write(tmp_path)
    sample, other = load(tmp_path), load(tmp_path, "model=/models/mine")
    assert sample.policy.overall.top1_agreement_min == 0.77
    assert load(tmp_path, "policy.confidence=0.9").policy == sample.policy.model_copy(update={"confidence": 0.9})
    assert other.policy == DriftPolicy()
    assert other.policy.overall.top1_agreement_min == 0.94


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


def test_where_there_is_no_config_the_way_to_one_is_told(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path)
    assert (problem.what, problem.where) == ("the file does not exist", str(tmp_path / "trtpipe.yaml"))
    assert "`trtpipe init`" in str(problem.fix)
    (tmp_path / "trtpipe.yml").write_text(CONFIG)
    (problem,) = problems(tmp_path)
    assert problem.fix == f"did you mean {tmp_path / 'trtpipe.yml'}?"


def test_files_that_are_missing_are_told_with_the_rest(folder: Path) -> None:
    write(folder, config=CONFIG.replace("sample", "[1]"))
    for name in ("engine.yaml", "policy.yaml"):
        (folder / name).unlink()
    found = problems(folder)
    assert [one.what for one in found[1:]] == [
        f"`target`: there is no {folder / 'engine.yaml'}", f"`policy`: there is no {folder / 'policy.yaml'}"
    ]  # fmt: skip
    assert [Path(str(one.where)).name for one in found] == [f"trtpipe.yaml:{line}:1" for line in (1, 4, 5)]


def test_a_missing_target_key_does_not_hide_the_policy(folder: Path) -> None:
    write(folder, config=CONFIG.replace("target: engine.yaml\n", ""), policy="confidence: 2\n")
    assert [one.what.split(":")[0] for one in problems(folder)] == ["`target` is missing", "`confidence`"]


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
        ('serving.host="a\\nb"', "not a host"),
        ('serving.host=""', "not a host"),
        ("serving.host=..", "not a host"),
        ("serving.host='1:2'", "not an IPv6 address"),
        ("serving.front_host='fe80::1%eth0'", "zones"),
        ("serving.grpc_port=8000", "must differ"),
        ("serving.front_port=8002", "must differ"),
        ("serving.front_host=a b", "not a host"),
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
