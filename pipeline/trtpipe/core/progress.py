"""How long work tells that it is alive. Areas report; only the command line decides what is shown."""

from __future__ import annotations

from typing import Protocol


class Reporter(Protocol):
    """Receives what happens during a run."""

    def stage(self, name: str, decision: str) -> None:
        """A stage begins or is reused; ``decision`` says which, and why."""

    def progress(self, label: str, done: int, total: int) -> None:
        """``done`` of ``total`` steps of the work called ``label`` are finished."""

    def note(self, text: str) -> None:
        """Something the user should know: a choice, a default, a value that was changed."""


class Silent:
    """A reporter for callers that want none."""

    def stage(self, name: str, decision: str) -> None: ...

    def progress(self, label: str, done: int, total: int) -> None: ...

    def note(self, text: str) -> None: ...
