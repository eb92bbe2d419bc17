"""The parameters of one model's config against what reads them: the backend in C++, or a model in Python."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from trtpipe.errors import ConfigError, TrtpipeError
from trtpipe.triton_repo import engine_parameters as known
from trtpipe.triton_repo import model_code
from trtpipe.triton_repo import python_parameters as python
from trtpipe.triton_repo.config_check import in_cpp, unknown
from trtpipe.triton_repo.engine_parameters import Left
from trtpipe.triton_repo.pbtxt import PLACEHOLDER
from trtpipe.triton_repo.source import Source

ENGINE = "tensorrt_llm"
READ_IN_CPP = {*known.FIXED, *known.KEYS.values(), *known.LEFT_OUT, *known.LEFT}
NEEDED = {"preprocessing": ("tokenizer_dir",), "postprocessing": ("tokenizer_dir",), ENGINE: ("gpt_model_path",)}
# A text that is cut off, or read to its first other character, would be another number.
WHOLE_NUMBER = re.compile(r"[+-]?\d+")
DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
WHOLE_NUMBERS = known.WHOLE_NUMBERS | python.WHOLE_NUMBERS
TRUTHS = {"true", "True", "TRUE", "1", "false", "False", "FALSE", "0"}


def check(source: Source) -> Iterator[TrtpipeError]:
    """Yield what is wrong: parameters that are missing or that nothing reads, placeholders and other bad values."""
    config = source.config
    given = {key: value.string_value for key, value in config.parameters.items()}
    cpp = in_cpp(config)
    unset = {*left_unset(source), *(key for key, value in given.items() if not value)}
    in_code = frozenset() if cpp else model_code.texts(source.path)
    yield from _missing(source, given, in_code)
    for key, value in given.items():
        where = source.at_parameter(key)
        if cpp and key not in READ_IN_CPP:
            yield unknown(f"TensorRT-LLM 1.2.1 has no parameter `{key}`", key, READ_IN_CPP, where)
        elif not cpp and _is_unread(source, key, in_code, unset):
            read = [name for name in _rows(source) if name in (in_code or _rows(source))]
            yield unknown(f"the model does not read the parameter `{key}`", key, read, where)
        elif key not in unset and (placeholder := PLACEHOLDER.search(value)):
            yield ConfigError(
                f"placeholder left: {placeholder.group()} ({key} is read with it)", where=where, fix="give the value"
            )
        elif key not in unset and source.model in python.READ and (wanted := _unreadable(key, value, cpp=cpp)):
            reader = "backend" if cpp else "model"
            yield ConfigError(f"{key} is {value!r}, which the {reader} can't read", where=where, fix=f"give {wanted}")
    if cpp:
        yield from _needed_with(source, given, unset)


def left_unset(source: Source) -> list[str]:
    """Return the parameters whose placeholder was left, where it counts as not given."""
    given = {key: value.string_value for key, value in source.config.parameters.items()}
    wholly = {key: value for key, value in given.items() if PLACEHOLDER.fullmatch(value)}
    rows = {key: _left(source, key) for key in wholly}
    return sorted(
        key
        for key, value in wholly.items()
        if rows[key] == "unset" or (rows[key] == "unset if its own" and value == f"${{{key}}}")
    )


def _is_unread(source: Source, key: str, in_code: frozenset[str], unset: set[str]) -> bool:
    """True where neither Triton nor the model's code has the key; without code, where no known model has it.

    A key of the templates that is left open asks for nothing. The code of other models is not looked at.
    """
    if source.model not in python.READ or key in python.READ_BY_TRITON:
        return False
    of_template = READ_IN_CPP if source.model == ENGINE else python.READ[source.model]
    return key not in (in_code or _rows(source)) and not (key in unset and key in of_template)


def _rows(source: Source) -> Mapping[str, Left]:
    """Return what the models in Python of that name read, upstream's and this project's, and Triton for them."""
    return python.READ.get(source.model, {}) | python.READ_BY_OURS.get(source.model, {}) | python.READ_BY_TRITON


def _left(source: Source, key: str) -> Left:
    """Return what becomes of a placeholder; one that none of upstream's models in Python reads asks for nothing."""
    if in_cpp(source.config):
        return known.LEFT.get(key, "value")
    return _rows(source).get(key, "unset" if source.model in python.READ else "value")


def _missing(source: Source, given: Mapping[str, str], in_code: frozenset[str]) -> Iterator[TrtpipeError]:
    name = source.model
    needed = (*known.MANDATORY, *known.MUST_EXIST) if in_cpp(source.config) else NEEDED.get(name, ())
    may_be_empty = {*known.MUST_EXIST} if name == ENGINE else {python.MUST_EXIST.get(name)}
    if python.MUST_EXIST.get(name) in in_code:
        needed = (*needed, python.MUST_EXIST[name])
    for key in needed:
        if key not in given:
            yield ConfigError(f"the parameter `{key}` is missing", where=f"{source.path}:1", fix="the model needs it")
        elif not given[key] and key not in may_be_empty:
            yield ConfigError(f"the parameter `{key}` is empty", where=source.at_parameter(key), fix="give its value")


def _needed_with(source: Source, given: Mapping[str, str], unset: set[str]) -> Iterator[TrtpipeError]:
    for (choice, value), needed in known.NEEDED_WITH.items():
        for key in needed if given.get(choice) == value else ():
            if key in unset or key not in given:
                yield ConfigError(
                    f"{choice} is {value}, and {key} is not given", where=source.at_parameter(choice), fix="give it"
                )


def _unreadable(key: str, value: str, *, cpp: bool) -> str | None:
    """Return what a value should be where it is not that."""
    choices = (known if cpp else python).CHOICES
    fits, wanted = True, ""
    if key in known.TRUTHS:
        fits, wanted = value in TRUTHS, "true or false"
    elif key in python.WORDS:
        fits, wanted = value.lower() in python.WORDS[key].split(), f"one of {python.WORDS[key]}"
    elif key in choices:
        fits, wanted = value in choices[key], f"one of {', '.join(filter(None, choices[key]))}"
    elif key in known.SHARES:
        ends = known.SHARES[key]
        fits, wanted = _is_share(value, ends=ends), f"a number {'from 0 to 1' if ends else 'above 0 and below 1'}"
    elif key in WHOLE_NUMBERS:
        least, most = WHOLE_NUMBERS[key], 2 ** (63 if key in known.BYTES else 31) - 1
        entries = value.split(",") if key in known.LISTS else [value]
        fits = all(WHOLE_NUMBER.fullmatch(entry.strip()) and least <= int(entry) <= most for entry in entries)
        wanted = f"a whole number from {least} to {most}"
    return None if fits else wanted


def _is_share(text: str, *, ends: bool) -> bool:
    if not DECIMAL.fullmatch(text):
        return False
    return 0 < float(text) < 1 or (ends and float(text) in {0, 1})
