"""What a person sees while something runs: stage lines, progress and notes on standard error."""

from __future__ import annotations

import sys
import time

from rich.console import Console as RichConsole
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

LINE_EVERY_S = 5.0


class Console:
    """A ``core.progress.Reporter``. ``verbosity``: -1 errors only, 0 normal, 1 also why stages are reused."""

    def __init__(self, verbosity: int) -> None:
        self.verbosity = verbosity
        self.rich = RichConsole(stderr=True, highlight=False, emoji=False)
        self._bar: Progress | None = None
        self._label = ""
        self._shown = 0.0

    def stage(self, name: str, decision: str) -> None:
        self._end_bar()
        if self.verbosity > 0 or (self.verbosity == 0 and not decision.startswith("reused")):
            self.rich.print(f"[bold]{name}[/]  {escape(decision)}", soft_wrap=True)

    def note(self, text: str) -> None:
        if self.verbosity >= 0:
            self.rich.print(f"  note: {text}", soft_wrap=True, markup=False)

    def progress(self, label: str, done: int, total: int) -> None:
        if self.verbosity < 0:
            return
        if self.rich.is_terminal:
            self._draw(label, done, total)
        elif done >= total or label != self._label or time.monotonic() - self._shown > LINE_EVERY_S:
            self._label, self._shown = label, time.monotonic()
            print(f"  {label} {done}/{total}", file=sys.stderr, flush=True)

    def close(self) -> None:
        self._end_bar()

    def _draw(self, label: str, done: int, total: int) -> None:
        if self._bar is None or self._label != label:
            self._end_bar()
            columns = (
                TextColumn("  {task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
            )
            self._bar = Progress(*columns, console=self.rich, transient=True)
            self._bar.start()
            self._bar.add_task(label, total=total)
            self._label = label
        self._bar.update(self._bar.task_ids[0], completed=done)
        if done >= total:
            self._end_bar()

    def _end_bar(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
