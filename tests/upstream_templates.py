"""The configs of upstream's templates, key by key, and as files that its template tool has filled.

The facts are ``upstream_templates.toml``, one key a line; a tensor is one key.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import Message
from tritonclient.grpc import model_config_pb2 as mc

from trtpipe.triton_repo.pbtxt import PLACEHOLDER

# model -> key -> value as text, with placeholders
TEMPLATES: dict[str, dict[str, str]] = {
    model: dict(facts["keys"])
    for model, facts in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items()
}
QUOTED = ("backend", "platform", "model_name")


def keys(config: mc.ModelConfig) -> dict[str, str]:
    """Return every field that is set, by its path: all keys of a config, whatever they are."""
    return {path: value for path, value in _keys(config, "") if path != "name"}


def _keys(message: Message, path: str) -> Iterator[tuple[str, str]]:
    if not message.ListFields():
        yield path.rstrip("."), "{}"
    for field, value in message.ListFields():
        here = f"{path}{field.name}"
        if field.name in ("input", "output"):
            yield from ((f"{here}.{tensor.name}", _tensor(tensor)) for tensor in value)
        elif isinstance(value, Mapping):
            yield from ((f"{here}.{key}", getattr(entry, "string_value", entry)) for key, entry in value.items())
        elif isinstance(value, Message):
            yield from _keys(value, f"{here}.")
        elif field.message_type is not None:
            for place, entry in enumerate(value):
                yield from _keys(entry, f"{here}.{getattr(entry, 'model_name', '') or place}.")
        else:
            yield here, _scalar(field, value)


def _scalar(field: Any, value: Any) -> str:
    """Return a scalar, or the scalars of a list, as ``text_format`` has them."""
    values = [value] if isinstance(value, str | bool | int | float) else list(value)
    named = [field.enum_type.values_by_number[one].name if field.enum_type else one for one in values]
    return " ".join(str(one).lower() if isinstance(one, bool) else str(one) for one in named)


def _tensor(tensor: mc.ModelInput | mc.ModelOutput) -> str:
    unnamed = type(tensor)()
    unnamed.CopyFrom(tensor)
    unnamed.ClearField("name")
    return text_format.MessageToString(unnamed, as_one_line=True)


def filled(model: str, values: Mapping[str, str]) -> str:
    """Return the config as the template tool leaves it: with ``values``, other placeholders as they were."""
    tree: dict[str, Any] = {}
    for path, value in TEMPLATES[model].items():
        *parents, name = path.split(".")
        branch = tree
        for parent in parents:
            branch = branch.setdefault(parent, {})
        branch[name] = PLACEHOLDER.sub(lambda found: values.get(found.group()[2:-1], found.group()), value)
    return f'name: "{model}"\n' + "".join(_lines(tree))


def _lines(tree: Mapping[str, Any]) -> Iterator[str]:
    for name, value in tree.items():
        if name in ("input", "output"):
            yield from (f'{name} {{\n  name: "{tensor}"\n  {row}\n}}\n' for tensor, row in value.items())
        elif name == "parameters":
            for key, entry in value.items():
                yield f'parameters {{\n  key: "{key}"\n  value {{\n    string_value: "{entry}"\n  }}\n}}\n'
        elif name in ("input_map", "output_map"):
            yield from (f'{name} {{\n  key: "{inner}"\n  value: "{outer}"\n}}\n' for inner, outer in value.items())
        elif name == "step":
            yield from (f"step {{\n{''.join(_lines(entry))}}}\n" for entry in value.values())
        elif name == "instance_group":
            yield from (f"{name} {{\n{''.join(_lines(entry))}}}\n" for entry in value.values())
        elif isinstance(value, dict):
            yield f"{name} {{\n{''.join(_lines(value))}}}\n"
        elif value == "{}":
            yield f"{name} {{}}\n"
        else:
            yield f'{name}: "{value}"\n' if name in QUOTED else f"{name}: {value}\n"
