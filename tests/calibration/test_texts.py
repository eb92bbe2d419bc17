"""A calibration set as text: special tokens written out, BOS left to the reader, and what is cut counted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from calibration.tiny import BOS, END, TURN, model_folder
from core.stages import stage
from trtpipe.calibration import texts
from trtpipe.core.chat import ChatTokenizer
from trtpipe.core.progress import Silent
from trtpipe.core.runner import Making, Runner
from trtpipe.core.store import Store

if TYPE_CHECKING:
    from pathlib import Path


def test_each_row_is_the_text_of_its_tokens_without_the_bos_that_the_reader_adds(tmp_path: Path) -> None:
    model = model_folder(tmp_path / "model", add_bos_token=True)
    letters = list(range(3))
    half = ChatTokenizer.load(model).tokenizer.token_to_id("Ã")  # the first byte of a character of two
    rows = [[BOS, TURN, *letters, END], [TURN, *letters], [BOS, half]]

    def make(making: Making) -> None:
        lines = "".join(json.dumps({"ids": ids}) + "\n" for ids in rows)
        (making.folder / texts.SET).write_text(lines)

    runner = Runner(Store(tmp_path / "space"), Silent())
    prompts = runner.obtain(stage(make, name="select-prompts", kind="prompt-set"))
    made = runner.obtain(texts.stage(prompts, model))
    written = [json.loads(line)["text"] for line in (made.path / texts.FILE).read_text("utf-8").splitlines()]
    assert written[0].startswith("<turn>")
    assert written[0].endswith("<end>")
    assert written[1] == written[0].removesuffix("<end>")
    assert made.record.figures == {"texts": 3, "texts_of_equal_tokens": 2}
    assert made.record.notes[1] == "1 of 3 texts become other tokens again: they were cut within a word"
