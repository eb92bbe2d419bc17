"""The stage ``export`` of a calibration set's texts, for a quantizer that takes texts and makes the tokens itself."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict

from trtpipe.core.chat import ChatTokenizer
from trtpipe.core.runner import Making, Stage

if TYPE_CHECKING:
    from trtpipe.core.artifacts import Artifact

SET = "calibration.jsonl"
# By this name `datasets.load_dataset(FOLDER, split="train")` finds it, with a column `text`: what TensorRT-LLM reads
# of a folder (tensorrt_llm/quantization/quantize_by_modelopt.py get_calib_dataloader).
FILE = "train.jsonl"


class Texts(BaseModel):
    """What decides an export of texts, apart from the set and the tokenizer."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    layout: Literal["calibration-texts"] = "calibration-texts"


def stage(prompts: Artifact, model: Path) -> Stage:
    """Build the stage. ``prompts``: the prompt set; ``model``: the folder whose tokenizer made its tokens."""
    return Stage(
        name="export",
        kind="prompt-set",
        revision=1,
        inputs={"prompts": prompts.digest},
        parameters=Texts(),
        versions={"tokenizers": importlib.metadata.version("tokenizers")},
        make=lambda making: _make(making, prompts.path, model),
    )


def _make(making: Making, prompts: Path, model: Path) -> None:
    tokenizer = ChatTokenizer.load(model)
    count = same = 0
    with (prompts / SET).open(encoding="utf-8") as rows, (making.folder / FILE).open("w", encoding="utf-8") as file:
        for row in rows:
            ids: list[int] = json.loads(row)["ids"]
            if tokenizer.bos_id is not None and ids[:1] == [tokenizer.bos_id]:
                ids = ids[1:]  # the reader's tokenizer puts it in front
            text = tokenizer.decode(ids, skip_special_tokens=False)
            count, same = count + 1, same + (tokenizer.encode(text) == ids)
            file.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
    making.figures |= {"texts": count, "texts_of_equal_tokens": same}
    making.note(f"{FILE} holds the text of {count} prompts: keep it where the log may be")
    if same < count:
        making.note(f"{count - same} of {count} texts become other tokens again: they were cut within a word")
