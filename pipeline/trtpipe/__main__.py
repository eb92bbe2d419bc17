"""The entry point: runs the command line and turns every ending into an exit code and a readable text."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import traceback
from typing import TYPE_CHECKING, NoReturn

import click

from trtpipe.cli import trtpipe
from trtpipe.errors import Interrupted, TrtpipeError, UsageFault, system_fault

if TYPE_CHECKING:
    from types import FrameType

READER_GONE = 128 + signal.SIGPIPE


def main() -> NoReturn:
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = _run()
        sys.stdout.flush()
    except BrokenPipeError:
        code = READER_GONE
    if code == READER_GONE:
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
    if "--json" in sys.argv:
        document = {"schema_version": 1, "ok": False, "errors": [one.document() for one in error.each()]}
        print(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        print(error, file=sys.stderr)
    return error.exit_code


if __name__ == "__main__":
    main()
