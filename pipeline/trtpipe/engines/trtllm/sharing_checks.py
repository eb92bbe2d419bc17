"""Can the ranks share the model out? Heads, groups, vocabulary, layers; each refusal with what would be legal."""

from __future__ import annotations

from collections.abc import Iterator

from trtpipe.core.sharing import padded
from trtpipe.engines.trtllm.capability import GROUPWISE, HEAD_WIDTHS
from trtpipe.engines.trtllm.division import GPUS_PER_NODE, Division, legal_text
from trtpipe.engines.trtllm.findings import Finding

LAYERS = "tensorrt_llm/quantization/layers.py"
# What `trtpipe export` writes; families.py has the models.
EXPORTED = "weights: w4a16_awq with kv_dtype: model or fp8_e4m3, of Llama or Qwen2"
# which linears a width belongs to, by the words of division.grouped_widths
HELD_BY = {
    "intermediate size": "mlp.fc, mlp.gate, mlp.proj",
    "hidden size": "the input of attention.qkv, mlp.fc and mlp.gate",
    "width of all attention heads": "attention.dense",
    "width of q, k and v": "attention.qkv",
}


def sharing(division: Division) -> Iterator[Finding]:
    """Yield what stands against the division, then what it adds."""
    yield from _head_findings(division)
    yield from _group_findings(division)
    yield from _stage_findings(division)
    yield from _added(division)


def head_width(division: Division) -> Iterator[Finding]:
    width = division.shape.head_width
    if width not in HEAD_WIDTHS:
        yield Finding(
            "refused",
            f"the engine has no attention kernel for a head width of {width}",
            "config.json head_dim (or hidden_size / num_attention_heads)",
            why=f"supported: {', '.join(map(str, HEAD_WIDTHS))}",
            fix="serve this model with another engine; heads are not padded, that would change what they compute",
            source="decoderMaskedMultiheadAttentionLaunch.h, checked in attentionOp.cpp",
        )


def _head_findings(division: Division) -> Iterator[Finding]:
    shape, size = division.shape, division.tensor_parallel
    legal = f"legal: {legal_text(shape, division.weights, pad=division.widens)}"
    if over := division.heads_left_over:
        yield Finding(
            "refused",
            f"{shape.heads} attention heads cannot be shared by TP {size}: {over} are left over",
            "tensor_parallel",
            why="each rank computes whole heads, as many as every other",
            fix=legal,
            source="tensorrt_llm/layers/attention.py",
        )
    if not division.kv_heads_fit:
        yield Finding(
            "refused",
            f"{shape.kv_heads} KV heads can neither be shared nor repeated by TP {size}",
            "tensor_parallel",
            why="one number must divide the other",
            fix=legal,
            source="tensorrt_llm/models/convert_utils.py dup_kv_weight",
        )


def _group_findings(division: Division) -> Iterator[Finding]:
    shape, group, size = division.shape, division.group_size, division.tensor_parallel
    legal = f"legal: {legal_text(shape, division.weights, pad=division.widens)}"
    if division.weights == "w4a8_awq" and group != 128:
        yield Finding(
            "refused", f"W4A8_AWQ has no kernel for group size {group}", "group_size", fix="group_size: 128",
            source="tensorrt_llm/quantization/functional.py validate_group_size",
        )  # fmt: skip
    if division.weights in GROUPWISE and shape.intermediate % group:
        yield Finding(
            "refused",
            f"group size {group} does not divide the intermediate size {shape.intermediate}",
            "group_size",
            why="a group of weights shares a scale and cannot be cut",
            fix=legal,
            source=LAYERS,
        )
        return
    for name, width in division.unfit_widths().items():
        fix = legal
        if name == "intermediate size" and division.exported:
            target = padded(width, division.step)
            fix += f"; or pad_intermediate: true: widened with zeros to {target}, {target / width - 1:.1%} more MLP"
        elif name == "intermediate size" and division.weights in GROUPWISE:
            fix += f"; or {EXPORTED}, which pad_intermediate: true widens with zeros"
        words = f"group size {group} x TP {size}" if division.weights in GROUPWISE else f"TP {size}"
        groups = f", {width / size / group:g} groups" if division.weights in GROUPWISE else ""
        why = "each rank holds as much as every other"
        if division.weights in GROUPWISE:
            why = (
                "a rank must hold whole groups; the engine would pad the layer, and has no code for that with this "
                "layout"
            )
        if division.pad and not division.exported:
            why += "; pad_intermediate has no effect: upstream's scripts make this checkpoint, and widen nothing"
        yield Finding(
            "refused",
            f"the {name} {width} is no multiple of {division.step} ({words}): {width / size:g} a rank{groups}",
            HELD_BY[name],
            why=why,
            fix=fix,
            source=LAYERS,
        )  # fmt: skip


def node(division: Division) -> Iterator[Finding]:
    """Yield the refusal of more ranks than one node has GPUs."""
    size, stages = division.tensor_parallel, division.pipeline_parallel
    if size * stages > GPUS_PER_NODE:
        yield Finding(
            "refused",
            f"TP {size} x PP {stages} are {size * stages} GPUs, and one node has {GPUS_PER_NODE}",
            "pipeline_parallel, tensor_parallel" if stages > 1 else "tensor_parallel",
            why="one host starts all ranks: launching over several nodes is not supported, neither by the release's "
            "launcher nor by its compose, Kubernetes and systemd files",
            fix=f"TP x PP of {GPUS_PER_NODE} at most; a larger GPU, or fewer bits",
        )


def _stage_findings(division: Division) -> Iterator[Finding]:
    shape, stages, size = division.shape, division.pipeline_parallel, division.tensor_parallel
    if stages > shape.layers:
        yield Finding(
            "refused", f"{shape.layers} layers are too few for {stages} pipeline stages", "pipeline_parallel",
            fix=f"at most {shape.layers}", source="tensorrt_llm/mapping.py",
        )  # fmt: skip
    if division.vocabulary != division.runtime_vocabulary:
        yield Finding(
            "refused",
            f"the vocabulary of {shape.vocabulary} is padded to {division.vocabulary} by the head and to "
            f"{division.runtime_vocabulary} by the runtime",
            "pipeline_parallel",
            why=f"the head pads to a multiple of TP {size}, the runtime's logits buffer to one of TP x PP "
            f"{size * stages}",
            fix="one pipeline stage, or a TP x PP that divides the vocabulary",
            source="models/*/model.py pad_vocab_size, cpp/include/tensorrt_llm/runtime/modelConfig.h",
        )


def _added(division: Division) -> Iterator[Finding]:
    shape, size = division.shape, division.tensor_parallel
    if division.intermediate != shape.intermediate:
        yield Finding(
            "note",
            f"the intermediate size {shape.intermediate} becomes {division.intermediate}",
            HELD_BY["intermediate size"],
            why=f"group size {division.group_size} x TP {size} = {division.step} must divide it; "
            + ("the engine widens it" if division.pads_itself else "the checkpoint is widened with zeros"),
            cost=f"{division.intermediate / shape.intermediate - 1:.1%} more MLP weights and work; the same answers",
            source=LAYERS,
        )
    if more := division.vocabulary - shape.vocabulary:
        yield Finding(
            "note",
            f"the vocabulary of {shape.vocabulary} becomes {division.vocabulary}: {more} zero rows in embedding and "
            "head",
            "transformer.vocab_embedding, lm_head",
            why=f"TP {size} must divide it",
            cost=f"none: ids {shape.vocabulary} to {division.vocabulary - 1} are never sampled, the engine keeps the "
            "true size",
            source="tensorrt_llm/models/*/model.py pad_vocab_size",
        )
    if shape.kv_heads < size and size % shape.kv_heads == 0:
        yield Finding(
            "note",
            f"each of {shape.kv_heads} KV heads stands on {size // shape.kv_heads} ranks",
            "attention.qkv",
            why=f"TP {size} has more ranks than there are KV heads",
            cost=f"{size // shape.kv_heads} times the KV cache of TP {shape.kv_heads}, all ranks together",
            source="tensorrt_llm/models/convert_utils.py dup_kv_weight",
        )
