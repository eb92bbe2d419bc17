"""The steps of an acceptance: what each gave, and why those that gave nothing did not."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from trtpipe.errors import Interrupted, TrtpipeError, system_fault

if TYPE_CHECKING:
    from collections.abc import Callable

State = Literal["done", "failed", "not measured", "not run"]
# In this order; each builds on those before it, except the measurements of the server, which stand alone.
NAMES = ("prompts", "build", "inspect", "package", "launch", "kv-blocks", "golden-ids", "load", "answers", "drift")


@dataclass(frozen=True)
class Step:
    """``seconds``: None where nothing ran; ``why``: it did not run, or was not measured."""

    state: State
    seconds: float | None = None
    figures: dict[str, Any] = field(default_factory=dict)
    faults: tuple[TrtpipeError, ...] = ()
    why: str | None = None

    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = {"state": self.state, "seconds": self.seconds, **self.figures}
        if self.why:
            found["why"] = self.why
        if self.faults:
            found["errors"] = [fault.document() for fault in self.faults]
        return found


class CheckFailed(Exception):  # noqa: N818 - a finding with its figures, turned into a step's faults
    """What was measured is there, and is not what it must be."""

    def __init__(self, figures: dict[str, Any], faults: list[TrtpipeError]) -> None:
        super().__init__(str(faults[0]))
        self.figures = figures
        self.faults = faults


class Steps:
    """Runs steps and keeps what came of each; a failed one does not end the command."""

    def __init__(self, begun: Callable[[str], None]) -> None:
        self._begun = begun
        self._found: dict[str, Step] = {}

    def run(self, name: str, work: Callable[[], dict[str, Any]]) -> bool:
        """Run one; ``work`` returns its figures. True where it is done."""
        self._begun(name)
        started = time.monotonic()
        figures: dict[str, Any] = {}
        faults: list[TrtpipeError] = []
        try:
            figures = work()
        except Interrupted:
            raise
        except CheckFailed as failed:
            figures, faults = failed.figures, failed.faults
        except TrtpipeError as fault:
            faults = fault.each()
        except OSError as fault:
            faults = [system_fault(fault)]
        seconds = round(time.monotonic() - started, 3)
        self._found[name] = Step("failed" if faults else "done", seconds, figures, tuple(faults))
        return not faults

    def leave_out(self, name: str, why: str) -> None:
        self._found[name] = Step("not measured", why=why)

    @property
    def whole(self) -> bool:
        """Whether every step has run and is right, but for those that are left out on purpose."""
        return all(step.state in ("done", "not measured") for step in self.all().values())

    @property
    def faults(self) -> list[TrtpipeError]:
        return [fault for step in self.all().values() for fault in step.faults]

    def all(self) -> dict[str, Step]:
        """Return every step by name; those after one that they build on, and that failed, have not run."""
        failed = next((name for name, step in self._found.items() if step.state == "failed"), "the command")
        waiting = Step("not run", why=f"{failed} ended before")
        return {name: self._found.get(name, waiting) for name in NAMES}
