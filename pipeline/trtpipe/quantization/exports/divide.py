"""Whether a model can be shared out over ranks in whole groups, and how: refusals with what would be legal.

Rules of TensorRT-LLM: `tensorrt_llm/quantization/layers.py` (WeightOnlyGroupwiseQuantLinear and its row form round both
features, the global ones, up to a multiple of max(64, group size) x TP; the checkpoint must have that shape),
`tensorrt_llm/layers/attention.py` (heads), `tensorrt_llm/models/convert_utils.py` (dup_kv_weight).
"""

from __future__ import annotations

from trtpipe.errors import ConfigError, TrtpipeError, raise_all
from trtpipe.quantization.exports.tensor_parallel import Division, ModelShape
from trtpipe.quantization.exports.trtllm_layout import LINEARS, Width

GROUP_SIZES = (128, 64)  # TensorRT-LLM issue 988; layers.py checks it with validate_group_size


def divide(
    shape: ModelShape, group_size: int, *, tensor_parallel: int, pipeline_parallel: int, pad_intermediate: bool
) -> Division:
    """Share a model out. With ``pad_intermediate`` the MLP is widened by zeros where the group rule needs it.

    Raises ConfigError (all problems at once) with the legal group sizes and TP values.
    """
    if group_size not in GROUP_SIZES:
        raise ConfigError(
            f"TensorRT-LLM's int4 kernels have no group size {group_size}", where="group_size", fix=_legal_text(shape)
        )
    intermediate = padded(shape.intermediate, group_size, tensor_parallel) if pad_intermediate else shape.intermediate
    raise_all(
        _problems(shape, group_size, tensor_parallel, intermediate)
        + _pipeline_problems(shape, tensor_parallel, pipeline_parallel)
    )
    return Division(shape, group_size, tensor_parallel, pipeline_parallel, intermediate)


def padded(intermediate: int, group_size: int, tensor_parallel: int) -> int:
    """Return the next intermediate size that every rank can hold in whole groups."""
    step = group_size * tensor_parallel
    return -(-intermediate // step) * step


def legal(shape: ModelShape, *, pad_intermediate: bool) -> dict[int, list[int]]:
    """Return the legal TP values of each group size."""
    found = {}
    for group_size in GROUP_SIZES:
        sizes = []
        for size in range(1, shape.heads + 1):
            intermediate = padded(shape.intermediate, group_size, size) if pad_intermediate else shape.intermediate
            if not _problems(shape, group_size, size, intermediate, advise=False):
                sizes.append(size)
        found[group_size] = sizes
    return found


def _problems(
    shape: ModelShape, group_size: int, tensor_parallel: int, intermediate: int, *, advise: bool = True
) -> list[TrtpipeError]:
    fix = _legal_text(shape) if advise else None
    problems: list[TrtpipeError] = []
    if over := shape.heads % tensor_parallel:
        problems.append(
            ConfigError(
                f"{shape.heads} attention heads cannot be shared by TP {tensor_parallel}: {over} are left over",
                where="attention.qkv, attention.dense",
                fix=fix,
            )
        )
    if shape.kv_heads % tensor_parallel and tensor_parallel % shape.kv_heads:
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
    step = group_size * tensor_parallel
    for width, value in (shape.widths(tensor_parallel) | {"intermediate": intermediate}).items():
        if value % step:
            offer = ""
            if width == "intermediate" and advise:
                size = padded(value, group_size, tensor_parallel)
                offer = f"; or --pad: widen the intermediate size with zeros to {size}"
            problems.append(
                ConfigError(
                    f"the {width} width {value} is no multiple of {step} (group size {group_size} x TP "
                    f"{tensor_parallel}): {value / tensor_parallel:g} a rank, {value / step:g} groups",
                    where=_layers_with(width),
                    fix=f"{fix}{offer}" if fix else None,
                )
            )
    return problems


def _pipeline_problems(shape: ModelShape, tensor_parallel: int, pipeline_parallel: int) -> list[TrtpipeError]:
    problems: list[TrtpipeError] = []
    if pipeline_parallel > shape.layers:
        problems.append(
            ConfigError(
                f"{shape.layers} layers are too few for {pipeline_parallel} pipeline stages",
                where="pipeline_parallel",
                fix=f"at most {shape.layers}",
            )
        )
    # the head is padded to a multiple of TP, the runtime's logits buffer to one of TP x PP:
    # models/llama/model.py (pad_vocab_size), cpp/include/tensorrt_llm/runtime/modelConfig.h (getVocabSizePadded)
    ranks = tensor_parallel * pipeline_parallel
    if -shape.vocabulary % tensor_parallel != -shape.vocabulary % ranks:
        problems.append(
            ConfigError(
                f"the vocabulary of {shape.vocabulary} is padded differently by the head (to TP "
                f"{tensor_parallel}) and by the runtime (to TP x PP {ranks})",
                where="lm_head",
                fix="use one pipeline stage, or a TP x PP that divides the vocabulary",
            )
        )
    return problems


def _layers_with(width: Width) -> str:
    return ", ".join(linear.name for linear in LINEARS if width in {linear.out_width, linear.in_width})


def _legal_text(shape: ModelShape) -> str:
    return "legal: " + "; ".join(
        f"group {group_size}: TP {', '.join(map(str, sizes)) or 'none'}"
        for group_size, sizes in legal(shape, pad_intermediate=False).items()
    )
