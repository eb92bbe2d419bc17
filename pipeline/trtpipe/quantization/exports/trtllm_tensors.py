"""The tensors of each rank of a TensorRT-LLM `W4A16_AWQ` checkpoint: what they will be, and what they are.

ModelOpt writes and TensorRT-LLM `tensorrt_llm/models/modeling_utils.py` (preprocess_perlayer_weights) reads:
codes int8 [out / 2, in], `weights_scaling_factor` float32 [out, in / group], `prequant_scaling_factor` [in] in the type
of the model. The last is required for all five linears, `mlp.fc` and `mlp.gate` included: `quantization/quantize.py`
(weight_only_groupwise_quantize) gives `pre_quant_scale` to every ColumnLinear and RowLinear that is not excluded,
`quantization/layers.py` then registers the tensor without a value, and `load` refuses a checkpoint without it
("Required but not provided tensors"). Here it is one everywhere, because every scale is folded. Layers count from the
first of the rank's stage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from trtpipe.errors import ConfigError
from trtpipe.quantization.exports import nibbles
from trtpipe.quantization.exports.checkpoint import Checkpoint
from trtpipe.quantization.exports.streamed import TensorSpec
from trtpipe.quantization.exports.tensor_parallel import Division
from trtpipe.quantization.exports.trtllm_layout import LINEARS, NORMS, FusedLinear
from trtpipe.quantization.grid import Quantized

EMBEDDING, NORM, HEAD = "model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"
OUT_EMBEDDING, OUT_NORM = "transformer.vocab_embedding.weight", "transformer.ln_f.weight"


@dataclass(frozen=True)
class Forms:
    """What decides the set of tensors. ``biased``: the linears that have a bias."""

    division: Division
    dtype: torch.dtype
    biased: tuple[str, ...]
    fp8_kv_cache: bool


def specs(forms: Forms, stage: int) -> list[TensorSpec]:
    """Return the tensors of every rank of a stage, in the order of ``tensors``."""
    division, dtype = forms.division, forms.dtype
    vocabulary = (division.vocabulary_rows, division.shape.hidden)
    found = [TensorSpec(OUT_EMBEDDING, dtype, vocabulary)] if stage == 0 else []
    for index in range(len(division.layers_of(stage))):
        prefix = f"transformer.layers.{index}"
        for linear in LINEARS:
            found += _linear_specs(forms, linear, f"{prefix}.{linear.name}")
        if forms.fp8_kv_cache:
            found.append(TensorSpec(f"{prefix}.attention.kv_cache_scaling_factor", torch.float32, (1,)))
        found += [TensorSpec(f"{prefix}.{name}.weight", dtype, (division.shape.hidden,)) for name in NORMS]
    if stage == division.pipeline_parallel - 1:
        found += [TensorSpec(OUT_NORM, dtype, (division.shape.hidden,)), TensorSpec(HEAD, dtype, vocabulary)]
    return found


def _linear_specs(forms: Forms, linear: FusedLinear, name: str) -> list[TensorSpec]:
    rows, columns = forms.division.linear_shape(linear)
    found = [
        TensorSpec(f"{name}.weight", torch.int8, (rows // 2, columns)),
        TensorSpec(f"{name}.weights_scaling_factor", torch.float32, (rows, columns // forms.division.group_size)),
        TensorSpec(f"{name}.prequant_scaling_factor", forms.dtype, (columns,)),
    ]
    return [*found, TensorSpec(f"{name}.bias", forms.dtype, (rows,))] if linear.name in forms.biased else found


def tensors(forms: Forms, stage: int, checkpoint: Checkpoint) -> Iterator[tuple[str, list[torch.Tensor]]]:
    """Yield name and the tensors of all TP ranks; one linear is in memory at a time."""
    division, ranks = forms.division, range(forms.division.tensor_parallel)
    if stage == 0:
        yield OUT_EMBEDDING, _vocabulary(forms, checkpoint, EMBEDDING)
    for index, layer in enumerate(division.layers_of(stage)):
        source, prefix = f"model.layers.{layer}", f"transformer.layers.{index}"
        for linear in LINEARS:
            yield from _linear_tensors(forms, linear, f"{prefix}.{linear.name}", checkpoint, source)
        if forms.fp8_kv_cache:
            # one scale for keys and values: modeling_utils.py preprocess_weights takes the larger of two as well
            scale = torch.tensor([max(checkpoint.kv_scales(layer))], dtype=torch.float32)
            yield f"{prefix}.attention.kv_cache_scaling_factor", [scale] * len(ranks)
        for name, theirs in NORMS.items():
            norm = cast(checkpoint.tensor(f"{source}.{theirs}.weight"), forms.dtype, f"{source}.{theirs}.weight")
            yield f"{prefix}.{name}.weight", [norm] * len(ranks)
    if stage == division.pipeline_parallel - 1:
        yield OUT_NORM, [cast(checkpoint.tensor(NORM), forms.dtype, NORM)] * len(ranks)
        yield HEAD, _vocabulary(forms, checkpoint, HEAD if checkpoint.has(HEAD) else EMBEDDING)


def _vocabulary(forms: Forms, checkpoint: Checkpoint, name: str) -> list[torch.Tensor]:
    rows, shape = forms.division.vocabulary_rows, forms.division.shape
    if checkpoint.shape(name) != (shape.vocabulary, shape.hidden):
        raise ConfigError(
            f"`{name}` is {list(checkpoint.shape(name))}, config.json says [{shape.vocabulary}, {shape.hidden}]",
            where=str(checkpoint.folder),
            fix="make vocab_size and the embedding agree",
        )
    ranks = range(forms.division.tensor_parallel)
    return [cast(checkpoint.rows(name, rank * rows, (rank + 1) * rows), forms.dtype, name) for rank in ranks]


def _linear_tensors(
    forms: Forms, linear: FusedLinear, name: str, checkpoint: Checkpoint, source: str
) -> Iterator[tuple[str, list[torch.Tensor]]]:
    division = forms.division
    whole = [checkpoint.linear(f"{source}.{one}") for one in linear.sources]
    parts = [_share(division, linear, whole, rank) for rank in range(division.tensor_parallel)]
    yield f"{name}.weight", [nibbles.pack_row_pairs(part.codes) for part in parts]
    yield f"{name}.weights_scaling_factor", [part.scales.float() for part in parts]
    yield f"{name}.prequant_scaling_factor", [torch.ones(part.codes.shape[1], dtype=forms.dtype) for part in parts]
    if linear.name in forms.biased:
        biases = [checkpoint.tensor(f"{source}.{one}.bias") for one in linear.sources]
        shared = [_bias_share(division, linear, biases, rank) for rank in range(len(parts))]
        yield f"{name}.bias", [cast(bias, forms.dtype, f"{source} {linear.name}.bias") for bias in shared]


def _share(division: Division, linear: FusedLinear, whole: list[Quantized], rank: int) -> Quantized:
    """Return the part of one rank of a linear given as its sources."""
    if linear.split == "columns":
        columns = division.linear_shape(linear)[1]
        groups = columns // division.group_size
        codes, scales = whole[0].codes, whole[0].scales
        return Quantized(
            _window(codes, 1, rank * columns, (rank + 1) * columns, 0),
            _window(scales, 1, rank * groups, (rank + 1) * groups, 1),
        )
    pieces = list(zip(whole, _row_ranges(division, linear, rank), strict=True))
    return Quantized(
        torch.cat([_window(one.codes, 0, rows.start, rows.stop, 0) for one, rows in pieces]),
        torch.cat([_window(one.scales, 0, rows.start, rows.stop, 1) for one, rows in pieces]),
    )


def _bias_share(division: Division, linear: FusedLinear, biases: list[torch.Tensor], rank: int) -> torch.Tensor:
    """Return a rank's bias. Where columns are split it is whole: the loader clears it on all ranks but the first."""
    if linear.split == "columns":
        return biases[0]
    ranges = _row_ranges(division, linear, rank)
    return torch.cat([_window(bias, 0, rows.start, rows.stop, 0) for bias, rows in zip(biases, ranges, strict=True)])


def _row_ranges(division: Division, linear: FusedLinear, rank: int) -> list[range]:
    """Return a rank's rows of each source: its heads and KV heads, or its share of the MLP."""
    if linear.out_width == "qkv":
        width = division.shape.head_width
        count = division.shape.heads // division.tensor_parallel * width
        heads = division.kv_heads_of(rank)
        keys = range(heads.start * width, heads.stop * width)
        return [range(rank * count, (rank + 1) * count), keys, keys]
    count = division.linear_shape(linear)[0]
    return [range(rank * count, (rank + 1) * count)]


def _window(tensor: torch.Tensor, dimension: int, start: int, end: int, filling: int) -> torch.Tensor:
    """Return start..end along a dimension; past the tensor's end it is filled."""
    size = tensor.shape[dimension]
    kept = tensor.narrow(dimension, min(start, size), max(0, min(end, size) - min(start, size)))
    missing = end - start - kept.shape[dimension]
    if not missing:
        return kept
    shape = list(tensor.shape)
    shape[dimension] = missing
    return torch.cat([kept, torch.full(shape, filling, dtype=tensor.dtype)], dim=dimension)


def cast(tensor: torch.Tensor, dtype: torch.dtype, name: str) -> torch.Tensor:
    """Return a tensor in another type. Raises ConfigError where a value leaves its range."""
    made = tensor.to(dtype)
    if not torch.isfinite(made).all():
        raise ConfigError(
            f"`{name}` holds values that {str(dtype).removeprefix('torch.')} cannot hold",
            where=name,
            fix="export in bfloat16",
        )
    return made
