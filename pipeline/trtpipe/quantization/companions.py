"""What stands beside a checkpoint's weights: config, tokenizer, and the report on its layers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from trtpipe.quantization.stack import DecoderStack

COPIED = (
    "chat_template.jinja",
    "generation_config.json",
    "merges.txt",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
)


def write(
    stack: DecoderStack, model: Path, folder: Path, scheme: dict[str, Any], reports: list[dict[str, object]]
) -> None:
    """Write them into ``folder``. ``scheme``: the `quantization_config` of config.json."""
    config = {**stack.config.to_dict(), "quantization_config": scheme}
    config.pop("_name_or_path", None)  # where the model lay says nothing about the checkpoint
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    for name in COPIED:
        if (model / name).is_file():
            shutil.copyfile(model / name, folder / name)
    # without the seconds: equal work gives equal bytes
    layers = [{name: value for name, value in report.items() if name != "seconds"} for report in reports]
    (folder / "quantization.json").write_text(json.dumps({"layers": layers}, indent=1) + "\n", encoding="utf-8")
