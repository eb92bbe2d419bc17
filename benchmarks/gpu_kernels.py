"""Whether the GPU's kernels give what the CPU's code gives: looked at before anything is timed."""

from __future__ import annotations

import torch

from trtpipe.quantization import cholesky, clipping, grid, rounding, statistics


def check() -> None:
    """Stop unless the GPU's kernels give what the CPU's code gives, but for ties of float32."""
    if not torch.cuda.is_available():
        return
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(4096, 512, generator=generator) * torch.rand(512, generator=generator).mul(2).exp()
    weight, scale = torch.randn(300, 512, generator=generator), torch.rand(512, generator=generator) + 0.5
    gram = x.T @ x
    for symmetric in (True, False):
        on_cpu, on_gpu = (
            _by_each_kernel(weight.to(where), scale.to(where), gram.to(where), symmetric=symmetric)
            for where in ("cpu", "cuda")
        )
        for name, expected in on_cpu.items():
            differs = (on_gpu[name].cpu().float() - expected.float()).abs() > 0.01 * expected.float().abs() + 1e-3
            print(f"{name}, symmetric {symmetric}: {float(differs.float().mean()):.5f} differ", flush=True)
            if differs.float().mean() > 0.02:
                raise SystemExit(f"{name}: the kernel is wrong")
    big = torch.randn(9000, 6000, generator=generator).cuda()
    big = big.T @ big
    lower, faults = cholesky.lower_factor(big)
    off = (lower @ lower.T - big).abs().max() / big.diagonal().max()
    print(f"Cholesky factor by blocks: off by {float(off):.1e}", flush=True)
    if faults or off > 0.01:
        raise SystemExit("the Cholesky factor is wrong")


def _by_each_kernel(
    weight: torch.Tensor, scale: torch.Tensor, gram: torch.Tensor, *, symmetric: bool
) -> dict[str, torch.Tensor]:
    energy = statistics.OutputEnergy(gram)
    kept = clipping.search(weight, gram, energy, 64, symmetric=symmetric)
    laid = grid.fit(weight, 64, symmetric=symmetric)
    return {
        "error of rounding": grid.rounding_error(weight, 64, symmetric=symmetric, scale=scale),
        "clipping": kept,
        "compensated rounding": rounding.compensated(weight, gram, laid)[0].codes,
    }
