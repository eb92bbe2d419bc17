"""What the scripts give other quantizers to calibrate with, on STAND-INS for these, which quantize nothing."""

from __future__ import annotations

import importlib
import json
import sys
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import tiny

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [{"text": "one\u2028row\u2029of\u0085text", "ids": [3, 1, 4, 1, 5]}, {"text": "another", "ids": [9, 2, 6]}]


@pytest.fixture
def job(tmp_path: Path) -> dict[str, Any]:
    prompts = tmp_path / "calibration.jsonl"
    prompts.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS), encoding="utf-8")
    return {
        "model": str(tiny.save(tmp_path / "model")), "prompts": str(prompts), "folder": str(tmp_path / "made"),
        "notes": str(tmp_path / "notes.json"), "group_size": 64, "unquantized": [],
    }  # fmt: skip


def run(monkeypatch: pytest.MonkeyPatch, kind: str, job: dict[str, Any], modules: dict[str, dict[str, Any]]) -> None:
    for name, held in modules.items():
        module = ModuleType(name)
        vars(module).update(held)
        monkeypatch.setitem(sys.modules, name, module)
    name = f"trtpipe.quantization.kinds.{kind}_script"
    monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.import_module(name).main(job)
    monkeypatch.delitem(sys.modules, name)


def test_autoawq_gets_every_token_of_every_row(monkeypatch: pytest.MonkeyPatch, job: dict[str, Any]) -> None:
    given: dict[str, Any] = {}
    model = SimpleNamespace(
        quantize=lambda _, **options: given.update(options), save_quantized=lambda *_arguments, **_options: None
    )
    loader = SimpleNamespace(from_pretrained=lambda *_arguments, **_options: model)
    search = type("AwqQuantizer", (), {"_compute_best_scale": lambda *_: None})
    run(monkeypatch, "autoawq", job, {
        "awq": {"AutoAWQForCausalLM": loader}, "awq.quantize": {}, "awq.quantize.quantizer": {"AwqQuantizer": search},
    })  # fmt: skip
    assert given["calib_data"] == [[3, 1, 4, 1, 5, 9, 2, 6]]


def test_modelopt_gets_each_row_as_it_is(monkeypatch: pytest.MonkeyPatch, job: dict[str, Any]) -> None:
    given: list[list[int]] = []

    def quantize(model: Any, recipe: dict[str, Any], calibrate: Any) -> None:
        calibrate(lambda ids: given.extend(ids.tolist()))

    run(monkeypatch, "modelopt", job, {
        "modelopt": {}, "modelopt.torch": {}, "modelopt.torch.export": {"export_hf_checkpoint": lambda *_, **__: None},
        "modelopt.torch.quantization": {"INT4_AWQ_CFG": {"quant_cfg": []}, "quantize": quantize},
    })  # fmt: skip
    assert given == [row["ids"] for row in ROWS]
