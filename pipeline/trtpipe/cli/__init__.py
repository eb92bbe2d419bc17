"""The command line. Commands are loaded when called, so that ``--help`` answers at once."""

from __future__ import annotations

import importlib

import click

from trtpipe import __version__

# name -> what `trtpipe --help` says; the command lives in the module of the same name
COMMANDS = {
    "init": "Write a workspace with the embedded sample's config and prompts.",
    "run": "Run the whole chain and promote what passes the drift check.",
    "validate": "Check the config, target and policy, and that what they name is there.",
    "profile": "Describe a log of prompts, and what would be chosen from it.",
    "calibrate": "Select prompts and quantize the model to an int4 checkpoint.",
    "export": "Write the checkpoint in the layout of another engine.",
    "plan": "Say what TensorRT-LLM would make of a model and a target.",
    "build-engine": "Build the target's engine from the checkpoint.",
    "inspect": "Say what a TensorRT-LLM engine is, and what it became otherwise than asked for.",
    "package": "Make the Triton release from the engine.",
    "check-drift": "Compare the release with the unquantized model.",
    "promote": "Make a release with a passing verdict the current one.",
    "rollback": "Go back to the release that was current before.",
    "status": "Show the current release, verdicts and history.",
    "report": "Write the calibration quality report.",
    "serve": "Serve the current release with Triton.",
    "reload": "Load the served models again, after the engine has died.",
    "ask": "Ask the served model.",
    "accept": "Build, serve and measure a TensorRT-LLM target on this machine.",
}
# Commands that change the workspace -> the chain's property that they obtain, if they obtain one.
CHANGING = {
    "run": "verdict",
    "calibrate": "checkpoint",
    "build-engine": None,  # these two foresee by themselves: the local engine has a chain, TensorRT-LLM has not
    "package": None,
    "check-drift": "verdict",
    "promote": None,
    "rollback": None,
    "export": None,
    "accept": None,
}


class LazyGroup(click.Group):
    """Finds a command's module by its name and imports it on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        module = importlib.import_module(f"trtpipe.cli.{name}")
        command: click.Command = getattr(module, name)
        if cmd_name not in CHANGING:
            return command
        from trtpipe.cli.changing import changing

        return changing(command, CHANGING[cmd_name])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="trtpipe")
def trtpipe() -> None:
    """Calibrate, build, package, check and promote 4-bit LLM engines for Triton.

    Exit codes: 0 done, 1 bug, 2 usage, 3 config or input, 4 environment not fit, 5 tool failed,
    6 gate rejected, 7 gate inconclusive, 8 lock busy, 9 stale, 130 interrupted.
    """
