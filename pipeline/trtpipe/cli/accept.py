"""``trtpipe accept``."""

from __future__ import annotations

from pathlib import Path

import click

from trtpipe.cli.build_engine import foretold_of, with_target
from trtpipe.cli.common import Options, common
from trtpipe.errors import raise_all

FOLDER = click.Path(path_type=Path, file_okay=False)
COUNT = click.IntRange(1)


@click.command(short_help="Build, serve and measure a TensorRT-LLM target on this machine.")
@click.option("--target", type=click.Path(path_type=Path), help="The target file.  [default: the config's]")
@click.option("--model", type=FOLDER, help="The model's folder.  [default: the config's]")
@click.option("--checkpoint", type=FOLDER, required=True, help="The checkpoint, as `trtpipe export` writes it.")
@click.option("--baseline", type=FOLDER, help="The unquantized model, for the drift check.  [default: the model's]")
@click.option("--profile", type=click.Path(path_type=Path), help="Lengths of your prompts, as for `plan`.")
@click.option("--out", type=click.Path(path_type=Path), help="The file to write.  [default: accept-TARGET.json]")
@click.option("--load-clients", type=COUNT, default=16, show_default=True, help="Clients that ask at the same time.")
@click.option("--load-requests", type=COUNT, default=128, show_default=True, help="Requests of the load in all.")
@click.option("--load-prompt-tokens", type=COUNT, default=512, show_default=True, help="Length of their prompts.")
@click.option("--load-answer-tokens", type=COUNT, default=128, show_default=True, help="Length of their answers.")
@common
def accept(
    options: Options,
    target: Path | None,
    model: Path | None,
    checkpoint: Path,
    baseline: Path | None,
    profile: Path | None,
    out: Path | None,
    **load: int,
) -> None:
    """Build, serve and measure a TensorRT-LLM target on this machine, and write one JSON document of it.

    The engine is built and inspected, packaged and served by Triton's backend in leader mode; then its KV blocks are
    compared with the plan's, known questions are asked for their ids, and a short closed loop is run: time to the first
    token, time per token, tokens per second. What this machine lacks is said first and at once (exit code 4).
    --dry-run says only that. A step that fails does not keep the others from being measured. The loop's prompts are
    made of filler words; the document holds none of yours, and of the held-out ones counts and names of segments.

    Then the server ends, and drift is measured on the config's held-out prompts: the unquantized model is run by
    transformers on the same GPUs, the engine by TensorRT-LLM's executor, which is made to take each prompt's own tokens
    one after the other. The verdict is the policy's, as in `check-drift`; exit code 6 for fail, 7 for inconclusive.


    Example: trtpipe accept --target engines/a100x8.yaml --model /models/qwen --checkpoint /models/awq-tp8
    """
    from trtpipe.chain import released
    from trtpipe.chain.acceptance import drift, host
    from trtpipe.chain.acceptance.measures import LoadSettings
    from trtpipe.chain.acceptance.run import Acceptance, Site
    from trtpipe.chain.acceptance.steps import NAMES
    from trtpipe.cli import accept_text
    from trtpipe.core.runner import Runner
    from trtpipe.triton_repo import overlays

    if target is not None:
        target = target.absolute()
        options = with_target(options, target)
    checkpoint = checkpoint.absolute()
    foretold = foretold_of(options, target, model, checkpoint, profile)
    space = options.workspace()
    addresses = released.addresses_of(space)
    devices = host.require(foretold.planned, checkpoint, addresses)
    site_overlays = overlays.read(space.root / overlays.FOLDER)
    baseline = (baseline or foretold.planned.model).absolute()
    no_drift = drift.why_not(baseline)
    if options.dry_run:
        steps = [name for name in NAMES if no_drift is None or name not in drift.STEPS]
        text = f"this machine has all for: {', '.join(steps)}"
        text += f"\ndrift is not measured: {no_drift}" if no_drift else f"\ndrift is measured against: {baseline}"
        options.result({"dry_run": True, "steps": steps, "no_drift": no_drift}, text)
        return
    limits = foretold.planned.plan.limits
    assert limits is not None  # noqa: S101 - the plan is legal
    wanted = LoadSettings(
        load["load_clients"], load["load_requests"], load["load_prompt_tokens"], load["load_answer_tokens"]
    )
    file = (out or Path(f"accept-{foretold.planned.target.stem}.json")).absolute()
    with options.locked() as (_, store, console):
        site = Site(
            space,
            Runner(store, console),
            foretold,
            checkpoint,
            addresses,
            devices,
            site_overlays,
            file,
            baseline,
            no_drift,
        )
        acceptance = Acceptance(site, wanted.within(limits.seq_len))
        acceptance.run()
    faults = acceptance.steps.faults
    options.result(acceptance.document() | {"file": str(file)}, accept_text.text(acceptance.document(), file))
    if faults and options.as_json:
        raise click.exceptions.Exit(faults[0].exit_code)
    raise_all(faults)
