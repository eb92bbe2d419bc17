"""The entry point: runs the command line and turns every ending into an exit code and a readable text."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import traceback
from contextlib import suppress
from itertools import takewhile
from typing import TYPE_CHECKING, NoReturn

import click

from trtpipe.cli import trtpipe
from trtpipe.errors import ConfigError, EnvironmentUnfit, Interrupted, TrtpipeError, UsageFault, system_fault

if TYPE_CHECKING:
    from types import FrameType

READER_GONE = 128 + signal.SIGPIPE


def main() -> NoReturn:
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = _run()
        if sys.stdout is not None:  # where it was closed before the start
            sys.stdout.flush()
    except BrokenPipeError:
        code = READER_GONE
    except OSError as fault:  # standard output cannot be written to, and what was to be said is lost
        code = EnvironmentUnfit.exit_code
        with suppress(OSError, AttributeError):
            print(system_fault(fault), file=sys.stderr)
    if sys.stdout is not None and code in {READER_GONE, EnvironmentUnfit.exit_code}:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the last flush complains
    sys.exit(code)


def _run() -> int:
    try:
        code = trtpipe.main(prog_name="trtpipe", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except SystemExit:  # Click ends this way, with 1, when nobody reads standard output any more
        return READER_GONE
    except click.exceptions.NoArgsIsHelpError as fault:
        fault.show()
        return UsageFault.exit_code
    except click.ClickException as fault:
        error = _usage(fault)
    except (KeyboardInterrupt, click.Abort):
        error = Interrupted("interrupted", fix="run the same command again to go on")
    except TrtpipeError as fault:
        error = fault
    except OSError as fault:
        error = system_fault(fault)
    except RuntimeError as fault:
        # pathlib's word for a link that leads to itself, wherever a path is made absolute
        looped = str(fault).startswith("Symlink loop")
        error = ConfigError(str(fault), fix="correct that link") if looped else _bug()
    except Exception:
        error = _bug()
    return _report(error)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise Interrupted("stopped by SIGTERM", fix="run the same command again to go on")


def _usage(error: click.ClickException) -> TrtpipeError:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "trtpipe"
    return UsageFault(error.format_message(), where=path, fix=f"{path} --help")


def _bug() -> TrtpipeError:
    with tempfile.NamedTemporaryFile("w", prefix="trtpipe-bug-", suffix=".txt", delete=False) as file:
        traceback.print_exc(file=file)
    kind, value, _ = sys.exc_info()
    return TrtpipeError(
        f"this is a bug in trtpipe: {kind.__name__ if kind else ''}: {value}",
        where=file.name,
        fix="please report it with that file",
    )


def _report(error: TrtpipeError) -> int:
    """Show an error; with ``--json`` as a JSON document on standard output."""
    if "--json" in takewhile(lambda word: word != "--", sys.argv):  # behind `--` it is a prompt
        document = {"schema_version": 1, "ok": False, "errors": [one.document() for one in error.each()]}
        print(json.dumps(document, indent=2))  # in ASCII, which every terminal and pipe takes
    else:
        print(error, file=sys.stderr)
    return error.exit_code


if __name__ == "__main__":
    main()
