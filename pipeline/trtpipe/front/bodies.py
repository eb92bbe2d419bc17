"""The bodies that are served, as models: what is not a field here is refused by its name.

``null`` asks for nothing, as in OpenAI's API, and passes for every field, also for those that are not served.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from typing import Annotated, Any, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from trtpipe.triton_repo.exchange import Options

# OpenAI's default of /v1/completions.
COMPLETION_TOKENS = 16
INT32_MAX = 2**31 - 1  # the contract's type of every number of tokens
STOPS_MAX = 4
Stop = Annotated[str, Field(min_length=1)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class TextPart(_Body):
    type: Literal["text"]
    text: str


class Message(_Body):
    """``content``: a text, or parts of text, which are joined."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[TextPart]

    def plain(self) -> dict[str, str]:
        content = self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)
        # OpenAI's newer word for the same role; chat templates know only the older one.
        return {"role": "system" if self.role == "developer" else self.role, "content": content}


class StreamOptions(_Body):
    include_usage: bool = False


class JsonSchema(_Body):
    """``strict`` and ``description`` are accepted and used for nothing: a schema is always kept."""

    name: str
    schema_: dict[str, Any] = Field(alias="schema")
    strict: bool | None = None
    description: str | None = None


class ResponseFormat(_Body):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None

    @model_validator(mode="after")
    def _schema_with_its_type(self) -> Self:
        if (self.type == "json_schema") != (self.json_schema is not None):
            raise ValueError("response_format: json_schema goes with the type json_schema, and with no other")
        return self

    def options(self) -> Options:
        if self.json_schema:
            guide = json.dumps(self.json_schema.schema_)
            return {"guided_decoding_guide_type": "json_schema", "guided_decoding_guide": guide}
        return {"guided_decoding_guide_type": "json"} if self.type == "json_object" else {}


class Generating(_Body):
    """What both endpoints take. Fields that accept one value only are there because clients send it.

    ``user`` is accepted and used for nothing. ``top_k``, ``repetition_penalty`` and ``min_tokens`` go beyond OpenAI's.
    """

    model: str
    max_tokens: int | None = Field(None, ge=1)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, ge=0, le=1)
    top_k: int | None = Field(None, ge=0, le=INT32_MAX)
    frequency_penalty: float | None = Field(None, ge=-2, le=2)
    presence_penalty: float | None = Field(None, ge=-2, le=2)
    repetition_penalty: float | None = Field(None, gt=0)
    min_tokens: int | None = Field(None, ge=0, le=INT32_MAX)
    seed: int | None = Field(None, ge=0, lt=2**64)
    stop: Stop | Annotated[list[Stop], Field(max_length=STOPS_MAX)] | None = None
    n: Literal[1] | None = None
    user: str | None = None

    @model_validator(mode="after")
    def _options_of_a_stream(self) -> Self:
        if self.stream_options is not None and not self.stream:
            raise ValueError("stream_options needs stream: true")
        return self

    @property
    def answer_tokens(self) -> int | None:
        """How many tokens are asked for; None leaves it to the front."""
        return self.max_tokens

    @property
    @abstractmethod
    def scored(self) -> bool:
        """True where the log probabilities of the answer's tokens are asked for."""

    def options(self) -> Options:
        """Return the engine's inputs. OpenAI samples from everything unless told otherwise, the engine does not."""
        found: dict[str, Any] = {
            name: value
            for name in ("frequency_penalty", "presence_penalty", "repetition_penalty", "min_tokens")
            if (value := getattr(self, name)) is not None
        }
        if self.stop:
            found["stop_words"] = [self.stop] if isinstance(self.stop, str) else self.stop
        if self.scored:
            found["return_log_probs"] = True
        return cast("Options", found | self._randomness())

    def _randomness(self) -> dict[str, Any]:
        if self.temperature == 0 or self.top_p == 0 or self.top_k == 1:
            return {"top_k": 1}
        found: dict[str, Any] = {
            "temperature": 1.0 if self.temperature is None else self.temperature,
            "top_p": 1.0 if self.top_p is None else self.top_p,
        }
        if self.top_k is not None:
            found["top_k"] = self.top_k
        if self.seed is not None:
            found["seed"] = self.seed
        return found


def _only_chosen_tokens(field: str, count: int | None) -> int | None:
    if count:
        raise ValueError(f"`{field}` is {count}: the engine tells the chosen tokens only, which is {field}: 0")
    return count


class ChatBody(Generating):
    """``logprobs`` are of the tokens that the engine has chosen; it does not tell those of others."""

    messages: list[Message] = Field(min_length=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    response_format: ResponseFormat | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None

    @field_validator("top_logprobs")
    @classmethod
    def _no_alternatives(cls, count: int | None) -> int | None:
        return _only_chosen_tokens("top_logprobs", count)

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        if self.max_tokens and self.max_completion_tokens and self.max_tokens != self.max_completion_tokens:
            raise ValueError("max_tokens and max_completion_tokens differ; give one of them")
        return self

    @property
    def answer_tokens(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens

    @property
    def scored(self) -> bool:
        return bool(self.logprobs)

    def options(self) -> Options:
        return {**super().options(), **(self.response_format.options() if self.response_format else {})}

    def conversation(self) -> list[dict[str, str]]:
        return [message.plain() for message in self.messages]


class CompletionBody(Generating):
    """``logprobs``: how many alternatives to tell beside each chosen token; 0 is served."""

    prompt: str
    logprobs: int | None = None
    echo: Literal[False] | None = None
    best_of: Literal[1] | None = None

    @field_validator("logprobs")
    @classmethod
    def _no_alternatives(cls, count: int | None) -> int | None:
        return _only_chosen_tokens("logprobs", count)

    @property
    def scored(self) -> bool:
        return self.logprobs is not None

    @property
    def answer_tokens(self) -> int:
        return self.max_tokens or COMPLETION_TOKENS

    def conversation(self) -> list[dict[str, str]]:
        return [{"role": "user", "content": self.prompt}]
