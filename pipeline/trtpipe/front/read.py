"""A request's body read as one of ``bodies``, or refused with every problem by its field."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from pydantic import ValidationError

from trtpipe.front.bodies import Generating
from trtpipe.front.errors import ApiError

Body = TypeVar("Body", bound=Generating)


def read(kind: type[Body], content: bytes) -> Body:
    """Read a request's body. Raises ApiError with all problems; ``param`` is the first one's field."""
    try:
        document = _without_nulls(json.loads(content))
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ApiError(400, r"the body holds half of a surrogate pair (\ud83d alone), which is no character") from None
    except ValueError as fault:
        raise ApiError(400, f"the body is no JSON: {fault}") from None
    except RecursionError:
        raise ApiError(400, "the body is nested too deeply") from None
    if not isinstance(document, dict):
        raise ApiError(400, "the body must be a JSON object")
    try:
        return kind.model_validate(document)
    except ValidationError as fault:
        problems: dict[str, str] = {}
        for error in fault.errors(include_url=False, include_input=False, include_context=False):
            field = _field(error["loc"], document)
            problems.setdefault(field, _words(error, field))
        raise ApiError(400, "; ".join(problems.values()), param=next(iter(problems)) or None) from None


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        # A schema means its nulls: {"const": null}.
        kept = {name: inner for name, inner in value.items() if inner is not None}
        return {name: inner if name == "schema" else _without_nulls(inner) for name, inner in kept.items()}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value


def _field(location: tuple[int | str, ...], document: Any) -> str:
    """Return the field as a client would write it; what pydantic adds names members of a union."""
    found: list[str] = []
    for part in location:
        if isinstance(document, dict) and part in document:
            found.append(f".{part}")
        elif isinstance(document, list) and isinstance(part, int) and part < len(document):
            found.append(f"[{part}]")
        else:
            if isinstance(document, dict) and not found:
                found.append(f".{part}")  # a field that is missing
            break
        document = document[part]
    return "".join(found).removeprefix(".")


def _words(error: Any, field: str) -> str:
    match error["type"]:
        case "extra_forbidden":
            return f"`{field}` is not supported"
        case "missing":
            return f"`{field}` is missing: {error['loc'][-1]}"
        case "value_error":
            return str(error["msg"]).removeprefix("Value error, ")
        case "literal_error":
            return f"`{field}`: only {error['msg'].removeprefix('Input should be ')} is supported"
        case _:
            return f"`{field}`: {error['msg']}"
