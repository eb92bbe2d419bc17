"""The tensors of one model's config against the contract of TensorRT-LLM 1.2.1."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping

from google.protobuf.message import Message
from tritonclient.grpc import model_config_pb2 as mc

from trtpipe.errors import ConfigError, TrtpipeError
from trtpipe.triton_repo.contract import Model, Tensor
from trtpipe.triton_repo.pbtxt import PLACEHOLDER
from trtpipe.triton_repo.source import Source

BACKEND = "tensorrtllm"
# What the templates leave open -> the types that the backend takes for it.
OPEN_TYPES = {
    "context_logits": ("FP32", "FP16"),
    "generation_logits": ("FP32", "FP16"),
    "draft_logits": ("FP32", "FP16"),
    "prompt_embedding_table": ("FP16", "BF16"),
    "encoder_input_features": ("FP16", "BF16", "FP32"),
}
RENAMED = {"min_length": "min_tokens", "random_seed": "seed", "return_kv_cache_reuse_stats": "return_perf_metrics"}


def tensors(source: Source, model: Model) -> Iterator[TrtpipeError]:
    """Yield what is wrong with the tensors of ``model``, whose rows are upstream's."""
    config = source.config
    # Models in Python may have tensors of their own; the backend in C++ knows these only.
    closed = in_cpp(config)
    for rows, found, last in ((model.inputs, config.input, False), (model.outputs, config.output, True)):
        wanted = {row.name: row for row in rows}
        for tensor in found:
            where = source.at(tensor.name, last=last)
            if tensor.name in wanted:
                yield from _tensor(tensor, wanted[tensor.name], where)
            elif closed or tensor.name in RENAMED:
                yield unknown(f"TensorRT-LLM 1.2.1 has no tensor `{tensor.name}`", tensor.name, wanted, where)
        missing = [row.name for row in rows if _needed(row, model, last)]
        for name in sorted(set(missing) - {tensor.name for tensor in found}):
            yield ConfigError(
                f"the {'output' if last else 'required input'} `{name}` is missing",
                where=source.at("output" if last else "input"),
                fix="add it as TensorRT-LLM's template has it",
            )


def scheduling(config: mc.ModelConfig) -> str | None:
    """Return the name of the field that says how requests are scheduled; None where there is none."""
    found: str | None = config.WhichOneof("scheduling_choice")
    return found


def enums(source: Source, message: Message) -> Iterator[TrtpipeError]:
    """Yield the numbers in ``message``, and in all that it holds, that stand for nothing in their field."""
    for field, value in message.ListFields():
        if isinstance(value, Mapping):
            entries = list(value.values())
        else:
            entries = list(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes) else [value]
        for entry in entries:
            if isinstance(entry, Message):
                yield from enums(source, entry)
            elif field.enum_type is not None and entry not in field.enum_type.values_by_number:
                names = ", ".join(field.enum_type.values_by_name)
                where = source.at_number(field.name, entry)
                yield ConfigError(f"Triton knows no `{field.name}` {entry}", where=where, fix=f"one of {names}")


def instances(source: Source) -> Iterator[TrtpipeError]:
    """Yield counts that Triton would read otherwise, and what it refuses beside the steps of an ensemble.

    Source: ``model_config_utils.cc`` and ``ensemble_utils.cc`` of triton-inference-server/core.
    """
    config = source.config
    for group in config.instance_group:
        if group.count < 0:
            what = f"the instance count is {group.count}, which Triton reads as 1"
            yield ConfigError(what, where=source.at_number("count", group.count), fix="make it 1 or more")
    if scheduling(config) == "ensemble_scheduling":
        given = {field.name for field, _ in config.ListFields()}
        for name in ("instance_group", "optimization", "model_warmup"):
            if name in given:
                yield ConfigError(
                    f"Triton loads no ensemble with `{name}`",
                    where=source.at(name),
                    fix="take it out: its steps have their own",
                )


def in_cpp(config: mc.ModelConfig) -> bool:
    """True for the engine's backend, also where its name is still a placeholder."""
    return config.backend == BACKEND or bool(PLACEHOLDER.fullmatch(config.backend))


def _needed(row: Tensor, model: Model, is_output: bool) -> bool:
    return row.name in {"output_ids", "sequence_length", "OUTPUT", "text_output"} if is_output else not row.optional


def _tensor(tensor: mc.ModelInput | mc.ModelOutput, row: Tensor, where: str) -> Iterator[TrtpipeError]:
    type_, dims = mc.DataType.Name(tensor.data_type).removeprefix("TYPE_"), tuple(tensor.dims)
    types = OPEN_TYPES.get(row.name, (row.type,))
    if type_ not in (*types, "INVALID"):
        yield ConfigError(f"`{row.name}` is {type_}", where=where, fix=f"make it {' or '.join(types)}")
    if dims != row.dims:
        yield ConfigError(f"`{row.name}` has dims {list(dims)}", where=where, fix=f"make them {list(row.dims)}")
    if row.optional and not tensor.optional:
        yield ConfigError(f"`{row.name}` is not optional", where=where, fix="add `optional: true`")


def unknown(what: str, name: str, names: Iterable[str], where: str) -> ConfigError:
    """Return what is said of a name that nothing reads, with the nearest of those that are."""
    near = RENAMED.get(name) or next(iter(difflib.get_close_matches(name, list(names), 1)), None)
    return ConfigError(
        what,
        where=where,
        fix=f"did you mean `{near}`?" if near else "take it out: nothing reads it",
    )
