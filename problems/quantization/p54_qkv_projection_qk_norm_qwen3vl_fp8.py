"""FP8 query, key and value projections with bias, then per-head RMS norms (Qwen3-VL)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.quantization.draws import tiled_weight
from problems.quantization.fp8_blocks import product, quantise_rows, quantise_tiles
from problems.tolerance import Frobenius, Tolerance

SOURCE = (
    "Own work, re-authored from public model code: the attention of Qwen3-VL, PyTorch's"
    " block-scaling recipes. The workload class is named by SOL-ExecBench."
)

TOLERANCE = Tolerance((Frobenius(6e-3),) * 3)

HEAD_DIM = 128
EPS = 1e-5


@dataclass(frozen=True)
class Sizes:
    """One workload: sequences and their length, model width, query and key-value heads."""

    batch: int
    length: int
    hidden: int = 7_680
    n_heads: int = 60
    n_kv_heads: int = 8


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(64, 256),
    "smoke": Sizes(2, 32, hidden=512, n_heads=4, n_kv_heads=1),
    "heldout_1": Sizes(1, 77),
    "heldout_2": Sizes(5, 300),
    "heldout_3": Sizes(2, 256, hidden=4_096, n_heads=32, n_kv_heads=4),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw hidden_states, the weights, the biases and the norms' weights; the caller seeds."""
    sizes = WORKLOADS[workload]
    dtype = torch.bfloat16
    shape = (sizes.batch, sizes.length, sizes.hidden)
    hidden_states = torch.randn(shape, dtype=dtype, device=device)
    widths = [HEAD_DIM * heads for heads in (sizes.n_heads, sizes.n_kv_heads, sizes.n_kv_heads)]
    weights = [tiled_weight(width, sizes.hidden, dtype=dtype, device=device) for width in widths]
    biases = [torch.randn(width, dtype=dtype, device=device) for width in widths]
    norms = [1 + 0.1 * torch.randn(HEAD_DIM, dtype=dtype, device=device) for _ in ("q", "k")]
    return [hidden_states, *weights, *biases, *norms, EPS]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    hidden_states: torch.Tensor,
    q_weight: torch.Tensor,
    k_weight: torch.Tensor,
    v_weight: torch.Tensor,
    q_bias: torch.Tensor,
    k_bias: torch.Tensor,
    v_bias: torch.Tensor,
    q_norm_weight: torch.Tensor,
    k_norm_weight: torch.Tensor,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return (q, k, v), each [batch, heads, length, 128] in the dtype of hidden_states.

    Each is hidden_states @ weight^T + bias, both factors through FP8: hidden_states with a scale
    per 128 neighbours, the weight with one per 128 x 128 tile. Every head of q and k is then
    RMS-normalised and weighted; v is not.

    Args:
        hidden_states: [batch, length, width], bfloat16; float64 when the anchor is computed.
        q_weight: [heads * 128, width], the dtype of hidden_states, as all that follow.
        k_weight: [kv heads * 128, width].
        v_weight: [kv heads * 128, width].
        q_bias: [heads * 128].
        k_bias: [kv heads * 128].
        v_bias: [kv heads * 128].
        q_norm_weight: [128], the same for every head.
        k_norm_weight: [128], likewise.
        eps: added to the mean of squares.
    """
    wide = torch.promote_types(hidden_states.dtype, torch.float32)
    rows = quantise_rows(hidden_states)
    width = q_norm_weight.shape[0]

    def project(weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        projected = product(rows, quantise_tiles(weight), wide) + bias.to(wide)
        return torch.unflatten(projected.to(hidden_states.dtype), -1, (-1, width)).transpose(1, 2)

    q = _rms_norm(project(q_weight, q_bias), q_norm_weight, eps)
    k = _rms_norm(project(k_weight, k_bias), k_norm_weight, eps)
    return q, k, project(v_weight, v_bias)


def _rms_norm(heads: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    wide = heads.to(torch.promote_types(heads.dtype, torch.float32))
    normed = wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps)
    return weight * normed.to(heads.dtype)


def bytes_moved() -> int:
    """Return the bytes of the full workload: inputs read once, the three outputs written."""
    sizes = WORKLOADS["full"]
    n_rows = sizes.batch * sizes.length
    width = _projected_width(sizes)
    return 2 * (n_rows * (sizes.hidden + width) + width * (sizes.hidden + 1) + 2 * HEAD_DIM)


def flops() -> int:
    """Return the floating-point operations of the projections in the full workload."""
    sizes = WORKLOADS["full"]
    return 2 * sizes.batch * sizes.length * sizes.hidden * _projected_width(sizes)


def _projected_width(sizes: Sizes) -> int:
    return HEAD_DIM * (sizes.n_heads + 2 * sizes.n_kv_heads)
