"""Every failure a user can meet, one class per exit code.

    TrtpipeError                1   a bug; anything that is none of the below
    ├── UsageFault              2   the command line was used wrongly
    ├── ConfigError             3   config or input data is wrong
    ├── EnvironmentUnfit        4   this machine lacks something
    ├── ToolFailed              5   an engine, Triton or another program failed
    ├── GateRejected            6   drift beyond the policy, or no passing verdict
    ├── GateInconclusive        7   not enough evidence to say pass or fail
    ├── LockBusy                8   another run holds the workspace
    ├── Stale                   9   what was asked about no longer matches
    └── Interrupted           130   Ctrl-C or SIGTERM

An error has three parts: what is wrong, where it is, what to do about it.
"""

# ruff: noqa: N818 - the names say what happened, and each is an error already

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypedDict


class ErrorDocument(TypedDict):
    """The JSON form of an error, as printed with ``--json`` and passed up by workers."""

    exit_code: int
    what: str
    where: str | None
    fix: str | None
    log: str | None


class TrtpipeError(Exception):
    """Root of all errors. ``what``, ``where`` and ``fix`` are one short text each; ``log``: a file that says more."""

    exit_code = 1

    def __init__(self, what: str, *, where: str | None = None, fix: str | None = None, log: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.fix = fix
        self.log = log

    def __str__(self) -> str:
        return render(self.each())

    def each(self) -> list[TrtpipeError]:
        """Return the single errors that this one stands for."""
        return [self]

    def document(self) -> ErrorDocument:
        return ErrorDocument(exit_code=self.exit_code, what=self.what, where=self.where, fix=self.fix, log=self.log)


class UsageFault(TrtpipeError):
    """The command line was used wrongly in a way that Click cannot see."""

    exit_code = 2


class ConfigError(TrtpipeError):
    """The config file, the target, the policy or the input data is wrong."""

    exit_code = 3


class EnvironmentUnfit(TrtpipeError):
    """The machine lacks a package, a CPU feature, memory, a port or a permission."""

    exit_code = 4


class ToolFailed(TrtpipeError):
    """A child process ended badly or out of time."""

    exit_code = 5


class GateRejected(TrtpipeError):
    """The drift check said no, or a release without a passing verdict was to be promoted."""

    exit_code = 6


class GateInconclusive(TrtpipeError):
    """The drift check could not tell pass from fail."""

    exit_code = 7


class LockBusy(TrtpipeError):
    """Another process works on the same workspace."""

    exit_code = 8


class Stale(TrtpipeError):
    """A recorded result no longer matches its inputs."""

    exit_code = 9


class Interrupted(TrtpipeError):
    """The user or the system asked to stop."""

    exit_code = 130


class Problems(ConfigError):
    """Several problems of one preflight, reported together; the first one decides the exit code."""

    def __init__(self, problems: list[TrtpipeError]) -> None:
        super().__init__(f"{len(problems)} problems found")
        self.problems = problems
        self.exit_code = problems[0].exit_code

    def each(self) -> list[TrtpipeError]:
        return self.problems


def raise_all(problems: list[TrtpipeError]) -> None:
    """Raise one error for all ``problems``, those inside others included; return if there are none."""
    single = [one for problem in problems for one in problem.each()]
    if len(single) == 1:
        raise single[0]
    if single:
        raise Problems(single)


def from_document(document: ErrorDocument) -> TrtpipeError:
    """Rebuild the error that a worker passed up as JSON."""
    kinds = {kind.exit_code: kind for kind in TrtpipeError.__subclasses__()}
    kind = kinds.get(document["exit_code"], TrtpipeError)
    return kind(document["what"], where=document["where"], fix=document["fix"], log=document["log"])


# What code meets in a file of a user that has another form than the one it reads.
UNEXPECTED = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError)


@contextmanager
def expecting(path: object, fix: str) -> Iterator[None]:
    """Around code that reads ``path``, a file of the user's. Raises ConfigError where it has not the form expected."""
    try:
        yield
    except UNEXPECTED as fault:
        kind = type(fault).__name__
        what = f"the file has not the form expected of it: {kind}: {fault}"
        raise ConfigError(what, where=str(path), fix=fix) from None
    except IsADirectoryError:
        raise ConfigError("a folder, where a file is expected", where=str(path), fix=fix) from None


def system_fault(error: OSError) -> EnvironmentUnfit:
    """Say that the system refused something: a full disk, a read-only folder, a missing permission."""
    return EnvironmentUnfit(
        f"the system refused: {error.strerror or error}",
        where=str(error.filename) if error.filename else None,
        fix="free disk space, or correct the permissions there, and run the same command again",
    )


def render(problems: list[TrtpipeError]) -> str:
    """Return the text shown to a person: a line for each part that there is."""
    lines: list[str] = []
    for problem in problems:
        lines.append(f"error: {problem.what}")
        if problem.where:
            lines.append(f"  where: {problem.where}")
        if problem.fix:
            lines.append(f"  fix:   {problem.fix}")
        if problem.log:
            lines.append(f"  log:   {problem.log}")
    return "\n".join(lines)
