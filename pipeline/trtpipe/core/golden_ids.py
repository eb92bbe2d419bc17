"""Golden prompts: their token ids are stored at calibration, and whatever serves must make the same ids of them.

This module stands alone (standard library), because a copy of it runs inside Triton's preprocessing model.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import shutil
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

FILE = "golden.json"
# What decides a prompt's ids, beside the day that the template sees: files of the model's folder, and who reads them.
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja")
LIBRARIES = ("tokenizers", "jinja2")
FIX = "take the tokenizer files, the libraries and the template's date of the calibration, or calibrate again"


class GoldenError(ValueError):
    """The ids are not those of calibration; the text says where they part and, as known, why. What to do: FIX."""


@dataclass(frozen=True)
class GoldenPrompt:
    """A conversation up to where the answer begins, and its ids."""

    messages: list[dict[str, str]]
    ids: list[int]

    @property
    def text_input(self) -> str:
        """What a client sends to the preprocessing model: a single user's message is sent as plain text."""
        if [message["role"] for message in self.messages] == ["user"]:
            return self.messages[0]["content"]
        return json.dumps({"messages": self.messages}, ensure_ascii=False)


@dataclass(frozen=True)
class Surroundings:
    """``digests``: SHA-256 by tokenizer file; ``versions``: by library; ``template_date``: ISO 8601."""

    digests: dict[str, str]
    versions: dict[str, str]
    template_date: str

    @classmethod
    def here(cls, tokenizer: Path, template_date: str) -> Surroundings:
        files = [tokenizer / name for name in TOKENIZER_FILES if (tokenizer / name).is_file()]
        return cls(
            {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files},
            {name: importlib.metadata.version(name) for name in LIBRARIES},
            template_date,
        )

    def changes(self, other: Surroundings) -> list[str]:
        """Return in words what is otherwise in ``other``."""
        names = sorted(self.digests.keys() | other.digests.keys())
        said = [f"{name} is another file" for name in names if self.digests.get(name) != other.digests.get(name)]
        said += [
            f"{name} is {other.versions.get(name)}, and was {version}"
            for name, version in self.versions.items()
            if other.versions.get(name) != version
        ]
        if other.template_date != self.template_date:
            said.append(f"the template's date is {other.template_date}, and was {self.template_date}")
        return said


@dataclass(frozen=True)
class Golden:
    """The content of ``golden.json``. ``bos_id``: what each prompt begins with, once; None where there is none."""

    prompts: list[GoldenPrompt]
    bos_id: int | None
    made_with: Surroundings

    def write(self, folder: Path) -> None:
        text = json.dumps({"schema_version": 1, **asdict(self)}, ensure_ascii=False)
        (folder / FILE).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Golden:
        """Raises GoldenError where the file is missing or not what ``write`` has written."""
        try:
            found = json.loads(path.read_text("utf-8"))
            prompts = [GoldenPrompt(**prompt) for prompt in found["prompts"]]
            return cls(prompts, found["bos_id"], Surroundings(**found["made_with"]))
        except (OSError, ValueError, LookupError, TypeError) as fault:
            raise GoldenError(f"the golden prompts can't be read: {type(fault).__name__}: {fault}") from None

    def require(
        self, encode: Callable[[GoldenPrompt], Sequence[int]], spell: Callable[[int], str | None], here: Surroundings
    ) -> None:
        """Raise GoldenError for the first prompt of which ``encode`` makes other ids. ``spell``: a token's text."""
        for number, prompt in enumerate(self.prompts, 1):
            said = difference(prompt.ids, list(encode(prompt)), self.bos_id, spell)
            if said is not None:
                why = "; ".join(self.made_with.changes(here)) or "neither files nor libraries have changed"
                raise GoldenError(
                    f"golden prompt {number} of {len(self.prompts)} ({len(prompt.messages)} message(s), "
                    f"{len(prompt.ids)} ids): {said}. Since calibration: {why}"
                )


def difference(
    wanted: list[int], found: list[int], bos_id: int | None, spell: Callable[[int], str | None]
) -> str | None:
    """Say where ids part from those that are wanted, and whether BOS is repeated in front; None where they are equal.

    Only the two tokens at that place are spelled: no prompt is written out.
    """
    if found == wanted:
        return None
    pairs = enumerate(zip_longest(found, wanted))
    position, (ours, theirs) = next((place, pair) for place, pair in pairs if pair[0] != pair[1])
    times = next((place for place, token in enumerate(found) if token != bos_id), len(found))
    bos = "" if bos_id is None or times == 1 else f"; BOS ({bos_id}) stands {times} times in front instead of once"
    return f"position {position} is {_token(ours, spell)} instead of {_token(theirs, spell)}{bos}"


def _token(token: int | None, spell: Callable[[int], str | None]) -> str:
    return "the end" if token is None else f"{token} {spell(token)!r}"


def carry(source: Path, folder: Path) -> bool:
    """Copy the golden prompts from one artifact into the next; False where there are none."""
    found = (source / FILE).is_file()
    if found:
        shutil.copyfile(source / FILE, folder / FILE)
    return found
