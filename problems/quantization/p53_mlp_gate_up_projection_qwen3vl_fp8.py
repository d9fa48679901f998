"""Two FP8 block-scaled projections of quantised operands, joined by SwiGLU gating (Qwen3-VL)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.quantization.draws import tiled_weight
from problems.quantization.fp8_blocks import (
    BLOCK,
    Fp8Blocks,
    product,
    quantise_rows,
    quantise_tiles,
)
from problems.tolerance import Frobenius, Tolerance

SOURCE = (
    "Own work, re-authored from public model code: the feed-forward block of Qwen3-VL, PyTorch's"
    " block-scaling recipes. The workload class is named by SOL-ExecBench."
)

TOLERANCE = Tolerance((Frobenius(6e-3),))


@dataclass(frozen=True)
class Sizes:
    """One workload: rows, outputs and inner size."""

    m: int
    n: int = 18_944
    k: int = 3_584


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(m=8_704),
    "smoke": Sizes(m=64, n=384, k=256),
    "heldout_1": Sizes(m=1),
    "heldout_2": Sizes(m=1_003),
    "heldout_3": Sizes(m=512, n=6_144, k=2_048),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw x and both weights in float32 and quantise them; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    drawn = torch.randn(sizes.m, sizes.k, dtype=torch.float32, device=device)
    operands = [quantise_rows(drawn)]
    for _ in ("gate", "up"):
        weight = tiled_weight(sizes.n, sizes.k, dtype=torch.float32, device=device)
        operands.append(quantise_tiles(weight))
    return [tensor for operand in operands for tensor in (operand.codes, operand.scales)]


@torch.no_grad()
def reference(
    x: torch.Tensor,
    scale_x: torch.Tensor,
    gate_proj_weight: torch.Tensor,
    scale_gate: torch.Tensor,
    up_proj_weight: torch.Tensor,
    scale_up: torch.Tensor,
) -> torch.Tensor:
    """Return silu(x @ gate^T) * (x @ up^T), [M, N], rounded once at the end.

    Scales are decode scales: an element is its code's value times its block's scale.

    Args:
        x: [M, K], float8_e4m3fn.
        scale_x: [M, K / 128], float32; float64 when the anchor is computed. The result is
            bfloat16, or float64 with it.
        gate_proj_weight: [N, K], float8_e4m3fn.
        scale_gate: [N / 128, K / 128], the dtype of scale_x; one per 128 x 128 tile.
        up_proj_weight: [N, K], float8_e4m3fn.
        scale_up: as scale_gate.
    """
    wide = torch.promote_types(scale_x.dtype, torch.float32)
    left = Fp8Blocks(x, scale_x)
    gate = product(left, Fp8Blocks(gate_proj_weight, scale_gate), wide)
    up = product(left, Fp8Blocks(up_proj_weight, scale_up), wide)
    narrow = torch.bfloat16 if wide is torch.float32 else wide
    return (torch.nn.functional.silu(gate) * up).to(narrow)


def bytes_moved() -> int:
    """Return the bytes of the full workload: codes and scales of x and weights, and the output."""
    sizes = WORKLOADS["full"]
    activation = sizes.m * (sizes.k + 4 * sizes.k // BLOCK)
    weight = sizes.n * sizes.k + 4 * (sizes.n // BLOCK) * (sizes.k // BLOCK)
    return activation + 2 * weight + 2 * sizes.m * sizes.n


def flops() -> int:
    """Return the floating-point operations of both products in the full workload."""
    sizes = WORKLOADS["full"]
    return 2 * 2 * sizes.m * sizes.n * sizes.k
