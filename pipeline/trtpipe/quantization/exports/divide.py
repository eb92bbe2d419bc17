"""Whether a model can be shared out over ranks in whole groups, and how: refusals with what would be legal."""

from __future__ import annotations

from trtpipe.core.sharing import GROUP_SIZES, Decoder, Width, group_step, padded
from trtpipe.errors import ConfigError, TrtpipeError, raise_all
from trtpipe.quantization.exports.tensor_parallel import Division
from trtpipe.quantization.exports.trtllm_layout import LINEARS


def divide(
    shape: Decoder, group_size: int, *, tensor_parallel: int, pipeline_parallel: int, pad_intermediate: bool
) -> Division:
    """Share a model out. With ``pad_intermediate`` the MLP is widened by zeros where the group rule needs it.

    Raises ConfigError (all problems at once) with the legal group sizes and TP values.
    """
    if group_size not in GROUP_SIZES:
        raise ConfigError(
            f"TensorRT-LLM's int4 kernels have no group size {group_size}", where="group_size", fix=_legal_text(shape)
        )
    division = _divided(shape, group_size, tensor_parallel, pipeline_parallel, pad=pad_intermediate)
    raise_all(_problems(division) + _pipeline_problems(division))
    return division


def _divided(shape: Decoder, group_size: int, tensor_parallel: int, pipeline_parallel: int, *, pad: bool) -> Division:
    intermediate = padded(shape.intermediate, group_step(group_size, tensor_parallel)) if pad else shape.intermediate
    return Division(shape, group_size, tensor_parallel, pipeline_parallel, intermediate)


def legal(shape: Decoder, *, pad_intermediate: bool) -> dict[int, list[int]]:
    """Return the legal TP values of each group size."""
    return {
        group_size: [
            size
            for size in range(1, shape.heads + 1)
            if not _problems(_divided(shape, group_size, size, 1, pad=pad_intermediate), advise=False)
        ]
        for group_size in GROUP_SIZES
    }


def _problems(division: Division, *, advise: bool = True) -> list[TrtpipeError]:
    shape, group_size, tensor_parallel = division.shape, division.group_size, division.tensor_parallel
    fix = _legal_text(shape) if advise else None
    problems: list[TrtpipeError] = []
    if over := division.heads_left_over:
        problems.append(
            ConfigError(
                f"{shape.heads} attention heads cannot be shared by TP {tensor_parallel}: {over} are left over",
                where="attention.qkv, attention.dense",
                fix=fix,
            )
        )
    if not division.kv_heads_fit:
        problems.append(
            ConfigError(
                f"{shape.kv_heads} KV heads can neither be shared nor repeated by TP {tensor_parallel}",
                where="attention.qkv",
                fix=fix,
            )
        )
    if shape.intermediate % group_size:
        problems.append(
            ConfigError(
                f"group size {group_size} does not divide the intermediate size {shape.intermediate}",
                where=_layers_with("intermediate"),
                fix=fix,
            )
        )
        return problems
    step = division.step
    for width, value in division.widths(division.intermediate).items():
        if value % step:
            offer = ""
            if width == "intermediate" and advise:
                offer = f"; or --pad: widen the intermediate size with zeros to {padded(value, step)}"
            problems.append(
                ConfigError(
                    f"the {width} width {value} is no multiple of {step} (group size {group_size} x TP "
                    f"{tensor_parallel}): {value / tensor_parallel:g} a rank, {value / step:g} groups",
                    where=_layers_with(width),
                    fix=f"{fix}{offer}" if fix else None,
                )
            )
    return problems


def _pipeline_problems(division: Division) -> list[TrtpipeError]:
    shape, tensor_parallel, pipeline_parallel = division.shape, division.tensor_parallel, division.pipeline_parallel
    problems: list[TrtpipeError] = []
    if pipeline_parallel > shape.layers:
        problems.append(
            ConfigError(
                f"{shape.layers} layers are too few for {pipeline_parallel} pipeline stages",
                where="pipeline_parallel",
                fix=f"at most {shape.layers}",
            )
        )
    if division.vocabulary != division.runtime_vocabulary:
        problems.append(
            ConfigError(
                f"the vocabulary of {shape.vocabulary} is padded differently by the head (to TP "
                f"{tensor_parallel}) and by the runtime (to TP x PP {tensor_parallel * pipeline_parallel})",
                where="lm_head",
                fix="use one pipeline stage, or a TP x PP that divides the vocabulary",
            )
        )
    return problems


def _layers_with(width: Width) -> str:
    return ", ".join(linear.name for linear in LINEARS if width in {linear.out_width, linear.in_width})


def _legal_text(shape: Decoder) -> str:
    return "legal: " + "; ".join(
        f"group {group_size}: TP {', '.join(map(str, sizes)) or 'none'}"
        for group_size, sizes in legal(shape, pad_intermediate=False).items()
    )
