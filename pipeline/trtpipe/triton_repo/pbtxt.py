"""Triton model configs as protobuf messages, and their text form in ``config.pbtxt``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from google.protobuf import text_format
from google.protobuf.message import Message
from tritonclient.grpc.model_config_pb2 import ModelConfig

from trtpipe.errors import ConfigError, TrtpipeError

PLACEHOLDER = re.compile(r"\$\{[^}]*\}?")


def render(config: ModelConfig) -> str:
    """Return the content of ``config.pbtxt``.

    Raises ConfigError where a ``${...}`` is left in any field: Triton reads it as the value, without a word.
    """
    left = [f"{path}: {text}" for path, text in _texts(config, config.name) if PLACEHOLDER.search(text)]
    if left:
        raise ConfigError(
            f"placeholder left in the model config: {'; '.join(left)}",
            where=f"{config.name}/config.pbtxt",
            fix="give the value, or leave the field out",
        )
    text: str = text_format.MessageToString(config)
    if parse(text, f"{config.name}/config.pbtxt") != config:
        raise TrtpipeError("the printed model config reads back differently", where=f"{config.name}/config.pbtxt")
    return text


def parse(text: str, where: str) -> ModelConfig:
    """Read a ``config.pbtxt``. Raises ConfigError with ``where``, the line, and a placeholder found in that line."""
    try:
        return text_format.Parse(text, ModelConfig())
    except text_format.ParseError as fault:
        line = fault.GetLine()
        found = PLACEHOLDER.search(text.splitlines()[line - 1]) if line else None
        raise ConfigError(
            f"placeholder left: {found.group()}" if found else f"not a model config: {fault}",
            where=f"{where}:{line}" if line else where,
            fix="give the value" if found else "correct that line",
        ) from None


def _texts(message: Message, path: str) -> Iterator[tuple[str, str]]:
    """Yield every text in ``message``, map keys included, with the path of its field."""
    for field, value in message.ListFields():
        here = f"{path}.{field.name}"
        if isinstance(value, Mapping):
            entries = [part for pair in value.items() for part in pair]
        elif isinstance(value, str | Message):
            entries = [value]
        else:
            entries = list(value) if isinstance(value, Iterable) else []
        for entry in entries:
            if isinstance(entry, str):
                yield here, entry
            elif isinstance(entry, Message):
                yield from _texts(entry, here)
