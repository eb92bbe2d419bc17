"""What a file has otherwise than its schema says, in words, with the place."""

from __future__ import annotations

import copy
import difflib
import json
import shlex
from functools import reduce
from typing import TYPE_CHECKING, Any, get_args

from trtpipe.config import yaml
from trtpipe.config.source import dotted
from trtpipe.config.target import TensorrtLlmTarget, VllmTarget
from trtpipe.errors import ConfigError, TrtpipeError

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

    from trtpipe.config.source import Source
    from trtpipe.config.yaml import KeyPath

# Kind of pydantic's error -> a value of the right form, for keys without a default.
EXAMPLES = {
    "bool_type": True,
    "int_type": 1,
    "int_from_float": 1,
    "float_type": 0.5,
    "finite_number": 1,
    "dict_type": {"prompt": "body.request"},  # prompts.columns is the only one
}


def told(source: Source, adapter: TypeAdapter[Any], fault: ValidationError) -> list[TrtpipeError]:
    """Return a problem for each value that is wrong."""
    errors: dict[KeyPath, list[Any]] = {}
    for error in fault.errors():
        errors.setdefault(_location(source, error), []).append(error)
    return [_problem(source, adapter, location, found) for location, found in errors.items()]


def _tag(source: Source) -> str | None:
    """Return the target's kind, which pydantic puts first into locations and the file does not have."""
    return source.document.data.get("kind") if source.scope == "target" else None


def _location(source: Source, error: Any) -> KeyPath:
    location: KeyPath = error["loc"]
    if _tag(source) and location[:1] == (_tag(source),):
        location = location[1:]
    if error["type"] in ("missing", "extra_forbidden"):
        return location
    node, depth = source.document.data, 0  # what follows the value's own place names a member of its type
    while depth < len(location) and _holds(node, location[depth]):
        node, depth = node[location[depth]], depth + 1
    return location[:depth]


def _holds(node: Any, part: str | int) -> bool:
    if isinstance(node, dict):
        return part in node
    return isinstance(node, list) and isinstance(part, int) and part < len(node)


def _problem(source: Source, adapter: TypeAdapter[Any], location: KeyPath, errors: list[Any]) -> TrtpipeError:
    name, where = ".".join(map(str, location)), source.where(location)
    if errors[0]["type"] == "extra_forbidden":
        known = _known_keys(adapter, _tag(source), location[:-1])
        near = difflib.get_close_matches(str(location[-1]), known, n=1)
        fix = f"did you mean `{near[0]}`?" if near else f"known keys: {', '.join(known)}"
        return ConfigError(f"unknown key `{name}`", where=where, fix=fix)
    if errors[0]["type"] == "missing":
        return ConfigError(f"`{name}` is missing", where=where, fix=f"add `{location[-1]}:` there")
    if errors[0]["type"].startswith("union_tag"):
        kind = errors[0]["ctx"].get("tag")
        return _no_such_kind(source.where(("kind",)) if kind else where, kind)
    wanted = "; or ".join(error["msg"] for error in errors)
    fix = _fix(source, adapter, location, errors[0])
    return ConfigError(f"`{name or source.document.path.name}`: {wanted}", where=where, fix=fix)


def _no_such_kind(where: str, kind: str | None) -> ConfigError:
    known = [get_args(target.model_fields["kind"].annotation)[0] for target in (VllmTarget, TensorrtLlmTarget)]
    near = difflib.get_close_matches(kind or "", known, n=1)
    what = f"there is no engine kind `{kind}`" if kind else "the target does not say which engine: `kind` is missing"
    fix = f"did you mean `{near[0]}`?" if near else f"write `kind:` with one of {', '.join(known)}"
    return ConfigError(what, where=where, fix=fix)


def _fix(source: Source, adapter: TypeAdapter[Any], location: KeyPath, error: Any) -> str:
    """Return a value of the right form, as it is written where this one stands."""
    if error["type"].startswith("model_") and location:
        return f"it is a section, with the keys {', '.join(_known_keys(adapter, _tag(source), location))}"
    example = _example(error, _schema_of(adapter, _tag(source), location).get("default"))
    if example is None:
        return "correct the value"
    root = source.overriding(location)
    if root is not None:
        changed = _changed(source.document.data, location, example, len(root))
        return f"for instance --set {shlex.quote(f'{dotted(source.scope, root)}={_written(changed)}')}"
    depth = max(index for index, part in enumerate(location, start=1) if isinstance(part, str))
    return f"for instance `{location[depth - 1]}: {_written(_changed(source.document.data, location, example, depth))}`"


def _example(error: Any, default: Any) -> Any:
    """Return a value of the right form: the one that was given where that is possible, else the default."""
    given = error["input"]
    if error["type"] == "list_type" and not isinstance(given, dict):
        return [given]
    if error["type"] == "string_type" and isinstance(given, int | float):
        return str(given)
    if default:
        return default
    if error["type"] == "literal_error":
        return error["ctx"]["expected"].split("'")[1] if "'" in error["ctx"]["expected"] else None
    return EXAMPLES.get(error["type"])


def _changed(data: Any, location: KeyPath, example: Any, depth: int) -> Any:
    """Return what stands at the first ``depth`` parts of the location, with the example at its end."""
    if depth == len(location):
        return example
    whole = node = copy.deepcopy(reduce(lambda found, part: found[part], location[:depth], data))
    for part in location[depth:-1]:
        node = node[part]
    node[location[-1]] = example
    return whole


def _written(value: Any) -> str:
    """Return a value as YAML on one line: bare where that is read as the same text."""
    return value if isinstance(value, str) and _is_bare(value) else json.dumps(value, ensure_ascii=False)


def _is_bare(text: str) -> bool:
    try:
        return bool(yaml.scalar(text) == text)
    except ConfigError:
        return False


def _known_keys(adapter: TypeAdapter[Any], tag: str | None, path: KeyPath) -> list[str]:
    return list(_schema_of(adapter, tag, path)["properties"])


def _schema_of(adapter: TypeAdapter[Any], tag: str | None, path: KeyPath) -> dict[str, Any]:
    """Return the JSON schema of the value at a path; empty for an element of a list."""
    schema = adapter.json_schema()
    node = _resolved({"$ref": schema["discriminator"]["mapping"][tag]} if tag else schema, schema)
    for part in path:
        node = _resolved(node.get("properties", {}).get(part, {}), schema)
    return node


def _resolved(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    reference = node.get("$ref")
    found: dict[str, Any] = schema["$defs"][reference.rsplit("/", 1)[1]] if reference else node
    return found
