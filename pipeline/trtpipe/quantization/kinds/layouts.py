"""Read one linear of the layouts that other quantizers write: codes as they are, scales rounded to bfloat16.

AutoAWQ: `awq/modules/linear/gemm.py`. GPTQ: AutoGPTQ `auto_gptq/nn_modules/qlinear/qlinear_cuda_old.py` (pack: codes
along the input, zero points less one). ModelOpt: `modelopt/torch/export/quant_utils.py` (to_quantized_weight).
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from trtpipe.errors import ConfigError
from trtpipe.quantization.exports import nibbles
from trtpipe.quantization.grid import ASYMMETRIC, SYMMETRIC, Quantized

Tensors = Callable[[str], torch.Tensor]


def autoawq(tensors: Tensors, name: str) -> Quantized:
    """`qweight` int32 [in, out / 8], `qzeros` int32 [in / group, out / 8], `scales` [in / group, out]."""
    codes, zeros = (nibbles.unpack_awq(tensors(f"{name}.{part}")) for part in ("qweight", "qzeros"))
    scales = tensors(f"{name}.scales").T.to(torch.bfloat16).contiguous()
    return Quantized(codes.T.contiguous(), scales, zeros.T.contiguous())


def gptq(tensors: Tensors, name: str, *, symmetric: bool, zero_offset: int) -> Quantized:
    """`qweight` int32 [in / 8, out], `qzeros` int32 [in / group, out / 8] plus ``zero_offset``, `scales`, `g_idx`.

    Symmetric ones have the zero point 8 everywhere.
    """
    codes = nibbles.unpack_columns(tensors(f"{name}.qweight").T.contiguous())
    scales = tensors(f"{name}.scales").T.to(torch.bfloat16).contiguous()
    zeros = nibbles.unpack_columns(tensors(f"{name}.qzeros")).T.contiguous() + zero_offset
    groups = torch.arange(codes.shape[1]) // (codes.shape[1] // scales.shape[1])
    if not torch.equal(tensors(f"{name}.g_idx").long(), groups):
        raise ConfigError(
            "its groups are not of neighbouring columns (desc_act): no layout here can hold them",
            where=f"{name}.g_idx",
            fix="use a GPTQ checkpoint made with desc_act false",
        )
    wanted = (-SYMMETRIC[0], -SYMMETRIC[0]) if symmetric else ASYMMETRIC
    if int(zeros.min()) < wanted[0] or int(zeros.max()) > wanted[1]:
        raise ConfigError(
            f"a zero point is {int(zeros.max())}, and config.json allows {wanted[0]} to {wanted[1]}",
            where=f"{name}.qzeros",
            fix="check `sym` and `checkpoint_format` in its quantization_config",
        )
    return Quantized(codes + SYMMETRIC[0], scales) if symmetric else Quantized(codes, scales, zeros)


def modelopt(tensors: Tensors, name: str, row_scale: torch.Tensor | None) -> Quantized:
    """`weight` uint8 [out / 2, in], `weight_scale` float32 [out, in / group]; rows times ``row_scale`` [out] if any."""
    scales = tensors(f"{name}.weight_scale").float()
    if row_scale is not None and len(row_scale) != len(scales):
        raise ConfigError(
            f"the {len(row_scale)} scales on what reads `{name}` differ between query heads that share a value head: "
            "no linear can take them in",
            where=f"{name}.weight",
            fix="vLLM serves this checkpoint as it is; quantization.kind modelopt makes one without such scales",
        )
    if row_scale is not None:
        scales = scales * row_scale.float().unsqueeze(1)
    return Quantized(nibbles.unpack_row_pairs(tensors(f"{name}.weight")), scales.to(torch.bfloat16))
