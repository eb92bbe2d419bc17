"""``trtpipe export``."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from trtpipe.cli.common import Options, common
from trtpipe.errors import UsageFault

if TYPE_CHECKING:
    from trtpipe.chain.export import Foresaid, Source
    from trtpipe.quantization.exports.stage import Layout

TEXTS = "calibration-texts"
LAYOUTS = ("tensorrt-llm", "autoawq", "compressed-tensors", TEXTS)
# Options that only some layouts have; their defaults are in exports/stage.py.
APPLY_TO = {
    "dtype": ("tensorrt-llm",),
    "kv_cache": ("tensorrt-llm",),
    "pad_intermediate": ("tensorrt-llm",),
    "tensor_parallel": ("tensorrt-llm", "autoawq"),
    "pipeline_parallel": ("tensorrt-llm", "autoawq"),
}


@click.command(short_help="Write the checkpoint in the layout of another engine.")
@click.argument("checkpoint", required=False, type=click.Path(path_type=Path))
@click.option("--format", "layout", type=click.Choice(LAYOUTS), required=True, help="The layout to write.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="The folder to write.")
@click.option(
    "--tensor-parallel", type=click.IntRange(1), metavar="N", help="GPUs that share each layer.  [default: 1]"
)
@click.option("--pipeline-parallel", type=click.IntRange(1), metavar="N", help="Stages of layers.  [default: 1]")
@click.option(
    "--dtype",
    type=click.Choice(["bfloat16", "float16"]),
    help="Type of activations, norms, embedding and head (tensorrt-llm).  [default: bfloat16]",
)
@click.option(
    "--kv-cache",
    type=click.Choice(["fp8", "model"]),
    help="FP8 with the calibrated scales, or the type of the model (tensorrt-llm).  [default: fp8]",
)
@click.option(
    "--pad",
    "pad_intermediate",
    is_flag=True,
    default=None,
    help="Widen the MLP with zeros where the ranks could not share it in whole groups (tensorrt-llm).",
)
@common
def export(
    options: Options, checkpoint: Path | None, layout: Layout | Literal["calibration-texts"], out: Path, **given: Any
) -> None:
    """Write CHECKPOINT, a folder, or the workspace's own, in the layout of another engine.

    The codes and scales are repacked, never rounded again. tensorrt-llm: W4A16_AWQ, one file a rank, for
    trtllm-build. autoawq: what TensorRT-LLM's convert_checkpoint.py makes W4A16_GPTQ of, also from asymmetric codes.
    compressed-tensors: a copy for vLLM. What is padded, repeated or left out is shown and recorded in DIR/record.json.
    calibration-texts is no checkpoint: it is the text of what one is calibrated on, as TensorRT-LLM's quantize.py takes
    it (--calib_dataset DIR).

    Example: trtpipe export --format tensorrt-llm --tensor-parallel 8 --pad --out /models/awq-tp8
    """
    from trtpipe.chain import export as chain
    from trtpipe.quantization.exports.stage import Exporting, TrtllmOptions

    chosen = {name: value for name, value in given.items() if value is not None}
    _require_fitting(layout, chosen)
    if layout == "calibration-texts":
        _texts(options, checkpoint, out.absolute())
        return
    exporting = Exporting(layout=layout, options=TrtllmOptions(**chosen) if layout == "tensorrt-llm" else None)
    checkpoint, out = checkpoint and checkpoint.absolute(), out.absolute()
    chain.require_ours(out)
    if options.dry_run:
        with options.console() as console:
            _show(options, chain.foresee(options.workspace(), checkpoint, out, exporting, console))
        return
    with options.locked() as (space, _, console):
        source, made = chain.export(space, checkpoint, out, exporting, console)
    document = {"format": layout, "path": str(out), "digest": made.digest, "notes": made.record.notes}
    lines = [f"{layout}: {out}"]
    if layout == "autoawq" and (convert := _conversion(source, out, chosen)):
        document["convert_command"] = convert
        lines.append(f"next, on a host with TensorRT-LLM's source: {convert}")
    options.result(document, "\n".join(lines))


def _texts(options: Options, checkpoint: Path | None, out: Path) -> None:
    from trtpipe.chain import export as chain

    if checkpoint is not None:
        raise UsageFault(
            f"the texts are of the workspace's calibration set, and {checkpoint} has none",
            where="the command line",
            fix="leave CHECKPOINT out",
        )
    chain.require_ours(out)
    if options.dry_run:
        _show(options, chain.foresee_texts(options.workspace(), out))
        return
    with options.locked() as (space, _, console):
        made = chain.export_texts(space, out, console)
    document = {"format": TEXTS, "path": str(out), "digest": made.digest, "notes": made.record.notes}
    options.result(document | made.record.figures, f"{TEXTS}: {made.record.figures['texts']} in {out}")


def _show(options: Options, foresaid: Foresaid) -> None:
    width = max(len(stage.stage) for stage in foresaid.stages)
    lines = [f"{stage.stage:{width}}  {stage.decision:7}  {stage.reason}" for stage in foresaid.stages]
    lines += [f"would be changed: {note}" for note in foresaid.notes or ()]
    document = {"dry_run": True, "stages": [stage.document() for stage in foresaid.stages], "notes": foresaid.notes}
    options.result(document, "\n".join(lines))


def _require_fitting(layout: str, chosen: dict[str, Any]) -> None:
    unfit = [f"--{name.replace('_', '-').removesuffix('-intermediate')}" for name in chosen
             if layout not in APPLY_TO[name]]  # fmt: skip
    if unfit:
        raise UsageFault(
            f"the layout {layout} has no {', '.join(unfit)}", where="the command line", fix="leave that out"
        )


def _conversion(source: Source, out: Path, chosen: dict[str, Any]) -> str | None:
    """Return the line for the host that has TensorRT-LLM; None where no converter of its knows the model."""
    from trtpipe.engines.trtllm.build import scripts

    config = json.loads((source.folder / "config.json").read_text("utf-8"))
    if config["model_type"] not in scripts.CONVERTERS:
        return None
    ranks = {name: chosen.get(name, 1) for name in ("tensor_parallel", "pipeline_parallel")}
    line = scripts.convert(
        config["model_type"], out, out.with_name(f"{out.name}-tensorrt-llm"), dtype="float16",
        vocabulary=config["vocab_size"], **ranks,
    )  # fmt: skip
    return shlex.join(line)
