"""Options that every command has, and the way results are printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trtpipe.errors import UsageFault

if TYPE_CHECKING:
    from trtpipe.cli.console import Console
    from trtpipe.config.load import Workspace
    from trtpipe.core.store import Store

DEFAULT_CONFIG = "trtpipe.yaml"
Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Options:
    """The common options, as given."""

    config: Path
    settings: tuple[str, ...]
    as_json: bool
    verbosity: int
    dry_run: bool
    wait_s: float

    @classmethod
    def take(cls, given: dict[str, Any]) -> Options:
        """Take the common options out of what Click has read. Raises UsageFault for -q with -v."""
        quiet, verbose = given.pop("quiet"), given.pop("verbose")
        if quiet and verbose:
            raise UsageFault("-q and -v exclude each other", where="-q -v", fix="give one of them")
        return cls(
            given.pop("config"),
            given.pop("settings"),
            given.pop("as_json"),
            verbosity=int(verbose) - int(quiet),
            dry_run=given.pop("dry_run", False),
            wait_s=given.pop("wait_s", 0.0),
        )

    def workspace(self) -> Workspace:
        from trtpipe.config.load import workspace

        return workspace(self.config, self.settings)

    @contextmanager
    def console(self) -> Iterator[Console]:
        from trtpipe.cli.console import Console

        console = Console(self.verbosity)
        try:
            yield console
        finally:
            console.close()

    @contextmanager
    def locked(self) -> Iterator[tuple[Workspace, Store, Console]]:
        """Read the config, hold the workspace's lock, and give what a changing command needs."""
        from trtpipe.core.store import Store, command_line

        space = self.workspace()
        store = Store(space.root)
        with self.console() as console, store.lock(command_line(), wait_s=self.wait_s, note=console.note):
            yield space, store, console

    def result(self, document: dict[str, Any], text: str) -> None:
        """Print the result: the JSON document with ``--json``, else the text."""
        if self.as_json:
            document = {"schema_version": 1, "ok": True, **document}
            click.echo(json.dumps(document, ensure_ascii=False, indent=2))
        else:
            click.echo(text)


def common(command: Command) -> Command:
    """Give a command the common options; its function receives them as ``options``."""

    def gather(ctx: click.Context, **given: Any) -> Any:
        options = Options.take(given)
        return ctx.invoke(command, options=options, **given)

    decorators = (
        click.option(
            "-c",
            "--config",
            type=click.Path(path_type=Path),
            default=DEFAULT_CONFIG,
            show_default=True,
            envvar="TRTPIPE_CONFIG",
            show_envvar=True,
            help="The config file.",
        ),
        click.option(
            "--set",
            "settings",
            multiple=True,
            metavar="PATH=VALUE",
            help="Override one value, such as prompts.seed=1, target.kv_pool_mib=512 or policy.confidence=0.9.",
        ),
        click.option("--json", "as_json", is_flag=True, help="Print the result, or the error, as one JSON document."),
        click.option("-q", "--quiet", is_flag=True, help="No progress."),
        click.option("-v", "--verbose", is_flag=True, help="Say more: also why stages are reused."),
    )
    wrapped: Any = click.pass_context(gather)
    wrapped.__doc__ = command.__doc__
    wrapped.__name__ = command.__name__
    wrapped.__click_params__ = getattr(command, "__click_params__", [])
    for decorator in reversed(decorators):
        wrapped = decorator(wrapped)
    result: Command = wrapped
    return result
