"""Key-value compression, RMS norm, FP8 requantisation and expansion (DeepSeek-V3.1's MLA)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.quantization.draws import tiled_weight
from problems.quantization.fp8_blocks import BLOCK, product, quantise_rows, quantise_tiles
from problems.tolerance import Frobenius, Tolerance

SOURCE = (
    "Own work, re-authored from public model code: the kv_a and kv_b projections of DeepSeek-V3,"
    " PyTorch's block-scaling recipes. The workload class is named by SOL-ExecBench."
)

TOLERANCE = Tolerance((Frobenius(2.1e-2), Frobenius(6e-3)))

ROPE_DIM = 64
# A head's key without rotation, then its value, 128 wide each.
HEAD_WIDTH = 128 + 128
EPS = 1e-6
OUTLIER_GAIN = 1e20


@dataclass(frozen=True)
class Sizes:
    """One workload: sequences and their length, model width, rank, padded outputs and heads.

    With `outliers`, one channel of each block of the norm's weight is so large that the others
    vanish when the normed rows are quantised, and meets a weight of zero: nothing is left.
    """

    batch: int
    length: int
    hidden: int = 7_168
    rank: int = 512
    padded: int = 640
    n_heads: int = 128
    outliers: bool = False


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(64, 256),
    "smoke": Sizes(2, 32, hidden=512, rank=128, padded=256, n_heads=4),
    "heldout_1": Sizes(1, 3),
    "heldout_2": Sizes(5, 511),
    "heldout_3": Sizes(2, 64, outliers=True),
    "heldout_4": Sizes(4, 128, hidden=4_096, n_heads=64),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw hidden_states, both projections and the norm's weight; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    dtype = torch.bfloat16
    shape = (sizes.batch, sizes.length, sizes.hidden)
    hidden_states = torch.randn(shape, dtype=dtype, device=device)
    kv_a_proj_weight = tiled_weight(sizes.padded, sizes.hidden, dtype=dtype, device=device)
    kv_a_layernorm_weight = 1 + 0.1 * torch.randn(sizes.rank, dtype=dtype, device=device)
    n_expanded = sizes.n_heads * HEAD_WIDTH
    kv_b_proj_weight = tiled_weight(n_expanded, sizes.rank, dtype=dtype, device=device)
    if sizes.outliers:
        kv_a_layernorm_weight[::BLOCK] *= OUTLIER_GAIN
        kv_b_proj_weight[:, ::BLOCK] = 0
    return [hidden_states, kv_a_proj_weight, kv_a_layernorm_weight, kv_b_proj_weight, EPS]


@torch.no_grad()
def reference(
    hidden_states: torch.Tensor,
    kv_a_proj_weight: torch.Tensor,
    kv_a_layernorm_weight: torch.Tensor,
    kv_b_proj_weight: torch.Tensor,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (kv_expanded, k_rope), both in the dtype of hidden_states.

    Rows are projected, rounded, and split: the first `rank` columns are RMS-normalised, weighted
    and projected again, the next 64 are k_rope as they are, the rest is padding. All factors of
    both products go through FP8, with a scale per 128 neighbours of a row and per 128 x 128 tile
    of a weight.

    Args:
        hidden_states: [batch, length, width], bfloat16; float64 when the anchor is computed.
        kv_a_proj_weight: [padded, width], the dtype of hidden_states, as all weights.
        kv_a_layernorm_weight: [rank].
        kv_b_proj_weight: [heads * 256, rank].
        eps: added to the mean of squares.

    Returns:
        kv_expanded: [batch, length, heads, 256], a head's key before its value.
        k_rope: [batch, length, 1, 64], not rotated.
    """
    dtype = hidden_states.dtype
    wide = torch.promote_types(dtype, torch.float32)
    rank = kv_a_layernorm_weight.shape[0]
    rows = quantise_rows(hidden_states)
    compressed = product(rows, quantise_tiles(kv_a_proj_weight), wide).to(dtype)
    kv = compressed[..., :rank].to(wide)
    k_rope = compressed[..., rank : rank + ROPE_DIM].unsqueeze(2)
    kv = kv * torch.rsqrt(kv.square().mean(dim=-1, keepdim=True) + eps)
    normed = quantise_rows(kv_a_layernorm_weight * kv.to(dtype))
    expanded = product(normed, quantise_tiles(kv_b_proj_weight), wide).to(dtype)
    return torch.unflatten(expanded, -1, (-1, HEAD_WIDTH)), k_rope


def bytes_moved() -> int:
    """Return the bytes of the full workload; padding counts, for it shares tiles with k_rope."""
    sizes = WORKLOADS["full"]
    n_rows = sizes.batch * sizes.length
    n_expanded = sizes.n_heads * HEAD_WIDTH
    weights = sizes.padded * sizes.hidden + sizes.rank + n_expanded * sizes.rank
    return 2 * (n_rows * (sizes.hidden + n_expanded + ROPE_DIM) + weights)


def flops() -> int:
    """Return the floating-point operations of both products in the full workload."""
    sizes = WORKLOADS["full"]
    n_weights = sizes.padded * sizes.hidden + sizes.n_heads * HEAD_WIDTH * sizes.rank
    return 2 * sizes.batch * sizes.length * n_weights
