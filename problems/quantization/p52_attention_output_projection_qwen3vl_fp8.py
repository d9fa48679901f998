"""Attention output projection with on-the-fly FP8 block quantisation and a bias (Qwen3-VL)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.quantization.draws import tiled_weight
from problems.quantization.fp8_blocks import BLOCK, product, quantise_rows, quantise_tiles
from problems.tolerance import Frobenius, Tolerance

SOURCE = (
    "Own work, re-authored from public model code: the attention of Qwen3-VL, PyTorch's"
    " block-scaling recipes. The workload class is named by SOL-ExecBench."
)

TOLERANCE = Tolerance((Frobenius(6e-3),))

OUTLIER = 1e7


@dataclass(frozen=True)
class Sizes:
    """One workload: rows, outputs and inner size, and what is peculiar about the rows.

    With `outliers`, one element of each block is so large that its neighbours vanish, and meets
    a weight of zero: only the bias is left.
    """

    m: int
    n: int = 7_680
    k: int = 7_680
    outliers: bool = False
    n_zero_rows: int = 0


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(m=32 * 512),
    "smoke": Sizes(m=64, n=256, k=384),
    "heldout_1": Sizes(m=1),
    "heldout_2": Sizes(m=4_100, outliers=True),
    "heldout_3": Sizes(m=1_000, n=5_120, k=4_096, n_zero_rows=1),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw attn_output, o_proj_weight and o_proj_bias; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    attn_output = torch.randn(sizes.m, sizes.k, dtype=torch.bfloat16, device=device)
    o_proj_weight = tiled_weight(sizes.n, sizes.k, dtype=torch.bfloat16, device=device)
    o_proj_bias = torch.randn(sizes.n, dtype=torch.bfloat16, device=device)
    if sizes.outliers:
        attn_output[:, ::BLOCK] = OUTLIER
        o_proj_weight[:, ::BLOCK] = 0
    attn_output[: sizes.n_zero_rows] = 0
    return [attn_output, o_proj_weight, o_proj_bias]


@torch.no_grad()
def reference(
    attn_output: torch.Tensor, o_proj_weight: torch.Tensor, o_proj_bias: torch.Tensor
) -> torch.Tensor:
    """Return attn_output @ o_proj_weight^T + o_proj_bias, [M, N], both factors through FP8.

    The factors are quantised in float32: attn_output with a scale per 128 neighbours of a row,
    o_proj_weight with a scale per 128 x 128 tile. The bias is added before the only rounding.

    Args:
        attn_output: [M, K], bfloat16; float64 when the anchor is computed.
        o_proj_weight: [N, K], the dtype of attn_output.
        o_proj_bias: [N], likewise.
    """
    wide = torch.promote_types(attn_output.dtype, torch.float32)
    projected = product(quantise_rows(attn_output), quantise_tiles(o_proj_weight), wide)
    return (projected + o_proj_bias.to(wide)).to(attn_output.dtype)


def bytes_moved() -> int:
    """Return the bytes of the full workload: both factors, the bias and the output."""
    sizes = WORKLOADS["full"]
    return 2 * (sizes.m * sizes.k + sizes.n * sizes.k + sizes.n + sizes.m * sizes.n)


def flops() -> int:
    """Return the floating-point operations of the product in the full workload."""
    sizes = WORKLOADS["full"]
    return 2 * sizes.m * sizes.n * sizes.k
