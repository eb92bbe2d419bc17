"""A tokenizer of one token per byte, with a chat template, and rows for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from trtpipe.calibration.row import Message, Row
from trtpipe.calibration.settings import Selection
from trtpipe.config.schema import Prompts
from trtpipe.core.chat import ChatTokenizer

if TYPE_CHECKING:
    from pathlib import Path

SPECIAL = ("<s>", "</s>", "<turn>", "<end>")
BOS, EOS, TURN, END = range(256, 260)
TEMPLATE = (
    "{% for m in messages %}<turn>{{ m['role'] }}\n{{ m['content'] | trim }}<end>{% endfor %}"
    "{% if add_generation_prompt %}<turn>assistant\n{% endif %}"
)


def model_folder(folder: Path, *, template: str | None = TEMPLATE, **settings: Any) -> Path:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={token: index for index, token in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in SPECIAL])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    values = {"bos_token": "<s>", "eos_token": "<end>", "chat_template": template, **settings}
    given = {name: value for name, value in values.items() if value is not None}
    (folder / "tokenizer_config.json").write_text(json.dumps(given))
    (folder / "config.json").write_text(json.dumps({"eos_token_id": [EOS, END]}))
    return folder


def chat_tokenizer(folder: Path, **settings: Any) -> ChatTokenizer:
    return ChatTokenizer.load(model_folder(folder, **settings))


def row(*contents: str, segment: str | None = None, response: str | None = None, name: str = "r") -> Row:
    return Row(name, segment, tuple(Message("user", content) for content in contents), response, f"log:{name}")


def settings(**changes: Any) -> Selection:
    """Return the config's defaults with these changes."""
    prompts = Prompts(files=["log.jsonl"], **changes)
    return Selection(**prompts.model_dump(exclude={"files", "general_file"}))


def write_log(folder: Path, content: bytes | list[dict[str, Any]], name: str = "log.jsonl") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, list):
        content = b"".join(json.dumps(row).encode() + b"\n" for row in content)
    path.write_bytes(content)
    return path
