"""One way from a conversation to token ids: the same in calibration, in the drift check and in the server.

This module stands alone (standard library, jinja2, tokenizers), because a copy of it runs inside Triton's
preprocessing model. It renders templates as ``apply_chat_template`` of transformers does.
"""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import jinja2
import jinja2.ext
import jinja2.meta
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from jinja2.nodes import Node
    from jinja2.parser import Parser

# What a template, or a file of another form than expected, can end in.
UNEXPECTED = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError)
NAMED_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
DATE_VARIABLES = frozenset({"date_string", "strftime_now"})


class ChatError(ValueError):
    """The model folder or the conversation can't be used; the text is one plain sentence."""


@dataclass(frozen=True)
class ChatTokenizer:
    """A tokenizer with its chat template.

    ``bos_id``: the token that starts every prompt, or None where the tokenizer wants none.
    ``eos_ids``: the tokens that end an answer.
    ``date_variables``: which of ``DATE_VARIABLES`` the template reads. ``strftime_now`` gets the pinned date;
    ``date_string`` is left to the template's own default, as transformers leaves it.
    ``reads_tools``: whether the template writes tool definitions.
    """

    tokenizer: Tokenizer
    template: jinja2.Template | None
    named_tokens: Mapping[str, str]
    bos_id: int | None
    eos_ids: frozenset[int]
    pad_id: int
    pad_source: Literal["pad token", "first eos"]
    date_variables: frozenset[str]
    reads_tools: bool

    @classmethod
    def load(cls, folder: Path, *, date: str | None = None) -> ChatTokenizer:
        """Read a Hugging Face model folder.

        ``date`` (ISO 8601) is the day that the template gets to see; None means the day of each call, in UTC.
        Raises ChatError where a file is missing or damaged, or neither a pad nor an eos token is defined.
        """
        try:
            return cls._load(folder, date)
        except ChatError:
            raise
        except UNEXPECTED as fault:
            raise ChatError(
                f"a file beside the tokenizer in {folder} has not the form expected of it: "
                f"{type(fault).__name__}: {fault}"
            ) from None

    @classmethod
    def _load(cls, folder: Path, date: str | None) -> ChatTokenizer:
        tokenizer = _tokenizer(folder / "tokenizer.json")
        settings = _json(folder / "tokenizer_config.json")
        named_tokens = _named_tokens(settings, _json(folder / "special_tokens_map.json"))
        named_ids = _named_ids(tokenizer, named_tokens)
        eos_ids = _eos_ids(folder, named_ids.get("eos_token"))
        if not eos_ids and "pad_token" not in named_ids:
            raise ChatError(
                "the model defines neither a pad token nor an eos token; add eos_token_id to its config.json"
            )
        source = _template_source(folder, settings)
        environment = _environment()
        template = None if source is None else _compile(environment, source, date)
        variables = jinja2.meta.find_undeclared_variables(environment.parse(source or ""))
        return cls(
            tokenizer=tokenizer,
            template=template,
            named_tokens=named_tokens,
            bos_id=_wanted_bos(tokenizer, settings, named_ids.get("bos_token")),
            eos_ids=frozenset(eos_ids),
            pad_id=named_ids["pad_token"] if "pad_token" in named_ids else eos_ids[0],
            pad_source="pad token" if "pad_token" in named_ids else "first eos",
            date_variables=DATE_VARIABLES & variables,
            reads_tools="tools" in variables,
        )

    @property
    def has_template(self) -> bool:
        return self.template is not None

    @property
    def end_id(self) -> int:
        """The token that ends an answer: of several the one that the tokenizer calls its eos token; -1 of none."""
        named: int | None = self.tokenizer.token_to_id(self.named_tokens.get("eos_token", ""))
        return min(self.eos_ids, default=-1) if named is None else named

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Any] | None = None,
        add_generation_prompt: bool = True,
    ) -> str:
        """Return the conversation as the model expects it to be written; a template may ignore ``tools``.

        Raises ChatError where the folder has no template or the template refuses the messages.
        """
        if self.template is None:
            raise ChatError("the model has no chat template; send a plain prompt, or give it a template")
        try:
            return self.template.render(
                messages=messages,
                tools=tools,
                documents=None,
                add_generation_prompt=add_generation_prompt,
                **self.named_tokens,
            )
        except (jinja2.TemplateError, *UNEXPECTED) as fault:
            raise ChatError(f"the chat template refuses the messages: {fault}") from None

    def encode(self, text: str) -> list[int]:
        """Return the ids of ``text``: special tokens written in it are recognised, nothing is added.

        Raises ChatError where the text is none: JSON can spell half of a surrogate pair.
        """
        try:
            return self.tokenizer.encode(text, add_special_tokens=False).ids
        except TypeError:
            where = next((n for n, character in enumerate(text) if "\ud800" <= character <= "\udfff"), 0)
            raise ChatError(f"character {where} is half of a surrogate pair, which is no character") from None

    def encode_plain(self, text: str) -> list[int]:
        """Return the ids of a prompt without roles: BOS in front where the tokenizer wants one, once."""
        return self._with_bos(self.encode(text))

    def encode_chat(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Any] | None = None) -> list[int]:
        """Return the ids of a conversation up to where the answer begins: BOS where wanted, once."""
        return self._with_bos(self.encode(self.render(messages, tools=tools)))

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """Return what ``encode_plain`` returns, for each of many texts, on all cores."""
        found = self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [self._with_bos(encoding.ids) for encoding in found]

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        return self.tokenizer.decode(ids, skip_special_tokens=skip_special_tokens)

    def _with_bos(self, ids: list[int]) -> list[int]:
        if self.bos_id is None or ids[:1] == [self.bos_id]:
            return ids
        return [self.bos_id, *ids]


def _tokenizer(path: Path) -> Tokenizer:
    if not path.is_file():
        raise ChatError(f"there is no tokenizer at {path}")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as fault:  # the library raises nothing narrower
        raise ChatError(f"{path} can't be read as a tokenizer: {fault}") from None
    # A saved tokenizer may carry the lengths of an earlier batch, which would cut or pad prompts unseen.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _json(path: Path) -> dict[str, Any]:
    """Read one of the folder's optional JSON files; an absent one is empty."""
    if not path.is_file():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (TypeError, ValueError) as fault:
        raise ChatError(f"{path} does not hold a JSON object: {fault}") from None


def _named_tokens(settings: Mapping[str, Any], special_tokens_map: Mapping[str, Any]) -> dict[str, str]:
    """Return the tokens that templates know by name; a token is written as text or as an object."""
    values = {name: settings.get(name) or special_tokens_map.get(name) for name in NAMED_TOKENS}
    return {name: value["content"] if isinstance(value, dict) else value for name, value in values.items() if value}


def _named_ids(tokenizer: Tokenizer, named_tokens: Mapping[str, str]) -> dict[str, int]:
    ids: dict[str, int] = {}
    for name, token in named_tokens.items():
        token_id = tokenizer.token_to_id(token)
        if token_id is None:
            raise ChatError(f"the {name} is {token!r}, which the tokenizer's vocabulary lacks")
        ids[name] = token_id
    return ids


def _wanted_bos(tokenizer: Tokenizer, settings: Mapping[str, Any], bos_id: int | None) -> int | None:
    """Return the BOS id if prompts start with one: as ``add_bos_token`` says, else as the tokenizer does."""
    wanted = settings.get("add_bos_token")
    if wanted is None:
        wanted = bos_id in tokenizer.encode("").ids
    return bos_id if wanted else None


def _eos_ids(folder: Path, named_eos_id: int | None) -> list[int]:
    """Return the ending tokens: of generation_config.json, else config.json; then the tokenizer's own."""
    generation, model = _json(folder / "generation_config.json"), _json(folder / "config.json")
    found = generation.get("eos_token_id", model.get("eos_token_id"))
    ids = found if isinstance(found, list) else [] if found is None else [found]
    return ids if named_eos_id is None or named_eos_id in ids else [*ids, named_eos_id]


def _template_source(folder: Path, settings: Mapping[str, Any]) -> str | None:
    """Return the template: a file of its own wins over tokenizer_config.json, as in transformers."""
    path = folder / "chat_template.jinja"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    value = settings.get("chat_template")
    if not isinstance(value, list):
        return value
    templates = {entry["name"]: str(entry["template"]) for entry in value}
    if "default" not in templates:
        raise ChatError(f"of the model's chat templates ({', '.join(templates)}) none is called default")
    return templates["default"]


class _GenerationBlock(jinja2.ext.Extension):
    """Lets ``{% generation %}`` blocks through: they mark answers for training and print their content."""

    tags = {"generation"}  # noqa: RUF012 - jinja2 declares it as an instance variable

    def parse(self, parser: Parser) -> list[Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols, _GenerationBlock]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    return environment


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON without the HTML escapes of Jinja's own filter, which would put them into prompts."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _compile(environment: ImmutableSandboxedEnvironment, source: str, date: str | None) -> jinja2.Template:
    try:
        pinned = None if date is None else datetime.date.fromisoformat(date)
    except ValueError:
        raise ChatError(f"the template date {date!r} is not a day like 2026-07-26") from None

    def strftime_now(pattern: str) -> str:
        return (pinned or datetime.datetime.now(datetime.UTC).date()).strftime(pattern)

    try:
        return environment.from_string(source, globals={"strftime_now": strftime_now})
    except jinja2.TemplateSyntaxError as fault:
        raise ChatError(f"the chat template has an error in line {fault.lineno}: {fault.message}") from None
