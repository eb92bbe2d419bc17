"""``reproduce.sh``: how to do by hand again what a stage did, apart from its artifact."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

JOB = "job.json"
SCRIPT = "reproduce.sh"
AGAIN = "again"  # the folder, beside the script, that takes the outputs
PARTIAL_SUFFIX = ".partial"


def of_command(folder: Path, arguments: Sequence[str]) -> None:
    """Write a script that gives the running command again: for stages that need no worker."""
    words = " ".join(map(shlex.quote, [sys.executable, "-m", "trtpipe", *arguments]))
    _write(folder, ["# Gives the command again that ran this stage.", f"cd {shlex.quote(str(Path.cwd()))}", words])


def of_worker(folder: Path, module: str, job: Mapping[str, Any], environment: Mapping[str, str]) -> None:
    """Write a worker's job, and a script that runs it into ``again/``.

    What a stage had put into its unfinished folder before is linked there from that folder or the finished one.
    """
    again = folder / AGAIN
    work = next((path for value in job.values() if (path := _unfinished(value))), None)
    text = json.dumps(job, indent=2, ensure_ascii=False)
    lines = [
        "# Runs this stage's worker again, with its job from job.json; what it writes goes to again/.",
        "# Events come on standard output, what the libraries print on standard error.",
        'cd "$(dirname "$0")"',
        f"rm -rf {AGAIN} && mkdir {AGAIN}",
    ]
    if work is not None:
        text = text.replace(json.dumps(str(work), ensure_ascii=False)[1:-1], str(again.absolute()))
        lines += _links(work)
    lines += [f"export {name}={shlex.quote(value)}" for name, value in sorted(environment.items())]
    lines.append(f"export TRTPIPE_EVENTS_FD=3\nexec {shlex.quote(sys.executable)} -m {module} <{JOB} 3>&1 1>&2")
    (folder / JOB).write_text(text + "\n", encoding="utf-8")
    _write(folder, lines)


def of_tool(folder: Path, command: Sequence[str], work: Path) -> None:
    """Write a script that runs a program's line again, with ``again/`` instead of the unfinished folder ``work``.

    What a stage had put there before is linked, as for a worker.
    """
    again = str((folder / AGAIN).absolute())
    words = " ".join(shlex.quote(word.replace(str(work), again)) for word in command)
    _write(folder, [
        "# Runs this stage's program again; what it writes goes to again/.",
        'cd "$(dirname "$0")"',
        f"rm -rf {AGAIN} && mkdir {AGAIN}",
        *_links(work),
        f"exec {words}",
    ])  # fmt: skip


def _unfinished(value: Any) -> Path | None:
    """Return the unfinished artifact's folder that a job's value names or holds, if it does."""
    if isinstance(value, str):
        path = Path(value)
        return next((folder for folder in (path, *path.parents) if folder.name.endswith(PARTIAL_SUFFIX)), None)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return next((found for item in value if (found := _unfinished(item))), None)
    return None


def _links(work: Path) -> list[str]:
    files = sorted(path.relative_to(work) for path in work.rglob("*") if path.is_file())
    if not files:
        return []
    finished = work.with_name(work.name.removesuffix(PARTIAL_SUFFIX))
    folders = sorted({file.parent for file in files} - {Path()})
    return [
        f'made={shlex.quote(str(work))}; [ -d "$made" ] || made={shlex.quote(str(finished))}',
        *(f"mkdir -p {shlex.quote(f'{AGAIN}/{folder}')}" for folder in folders),
        f"for name in {' '.join(shlex.quote(str(file)) for file in files)}; do",
        f'  [ ! -e "$made/$name" ] || ln -s "$made/$name" "{AGAIN}/$name"',
        "done",
    ]


def _write(folder: Path, lines: Sequence[str]) -> None:
    path = folder / SCRIPT
    path.write_text("\n".join(["#!/bin/sh", *lines[:1], "set -eu", *lines[1:]]) + "\n", encoding="utf-8")
    path.chmod(0o755)
