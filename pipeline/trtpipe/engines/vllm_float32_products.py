"""A vLLM plugin for CPUs without AVX-512: products of bfloat16 activations are made in float32.

The CPU build of vLLM has no 4-bit kernel for such a CPU, and torch's bfloat16 product there is seven times slower
than its float32 one. So 4-bit weights are expanded to float32 when they are loaded, unquantized ones are widened, and
each product is rounded to bfloat16 once: what matrix units for bfloat16 do, which accumulate in float32 as well.

vLLM loads it in each of its processes where ``VLLM_PLUGINS`` names it (``vllm_arguments``).
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import linear
from vllm.model_executor.kernels.linear import MPLinearKernel, MPLinearLayerConfig, register_linear_kernel
from vllm.model_executor.layers import utils
from vllm.model_executor.layers.quantization.utils.quant_utils import unpack_quantized_values_into_int32
from vllm.platforms import current_platform
from vllm.scalar_type import scalar_types

KERNEL_NAME = "float32"


class ExpandedLinearKernel(MPLinearKernel):  # type: ignore[misc] # vLLM is not typed
    """4-bit weights as compressed-tensors stores them, held as float32 [out, in]."""

    @classmethod
    def get_min_capability(cls) -> int:
        return -1  # CPUs have none

    @classmethod
    def can_implement(cls, c: MPLinearLayerConfig) -> tuple[bool, str | None]:
        fits = c.weight_type in {scalar_types.uint4, scalar_types.uint4b8}
        return fits, None if fits else f"{c.weight_type} is not a 4-bit type"

    def process_weights_after_loading(self, layer: Any) -> None:
        packed, scales, packed_zeros = self._get_weight_params(layer)
        if packed.packed_dim != 1:
            raise ValueError("expected the layout of compressed-tensors: codes packed along the input")
        kind = self.config.weight_type
        codes = unpack_quantized_values_into_int32(packed.data, kind, 1)
        if self.config.zero_points:
            zeros = unpack_quantized_values_into_int32(packed_zeros.data, kind, 0)
        else:
            zeros = torch.full(scales.shape, kind.bias, dtype=torch.int32)
        grouped = codes.unflatten(1, (scales.shape[1], -1)) - zeros.unsqueeze(2)
        layer.expanded = (grouped * scales.data.float().unsqueeze(2)).flatten(1)
        setattr(layer, self.w_q_name, None)
        layer.use_w4a8 = False
        layer.isa_hint = KERNEL_NAME

    def apply_weights(self, layer: Any, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        return product(x, layer.expanded, bias)


def product(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """Return x Wᵀ + b in the type of ``x`` [..., in], for a float32 weight [out, in]."""
    return linear(x.float(), weight, None if bias is None else bias.float()).to(x.dtype)


def register() -> None:
    """Make vLLM compute so in this process; nothing changes where the CPU has AVX-512."""
    if torch.cpu._is_avx512_supported():
        return
    register_linear_kernel(ExpandedLinearKernel, current_platform._enum)
    native = utils.dispatch_cpu_unquantized_gemm

    def dispatch(layer: Any, remove_weight: bool) -> None:
        if layer.weight.is_meta or layer.weight.ndim != 2 or layer.weight.dtype != torch.bfloat16:
            native(layer, remove_weight)
            return
        wide = layer.weight.detach().float()
        layer.cpu_linear = lambda x, _, bias: product(x, wide, bias)
        if remove_weight:
            layer.weight = torch.nn.Parameter(torch.empty(0, dtype=torch.bfloat16), requires_grad=False)

    utils.dispatch_cpu_unquantized_gemm = dispatch
