"""Residual sum, RMS norm and SiLU-gated feed-forward block at 405B widths (Hermes, Llama 3.1)."""

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import linear

from problems.mlp_norm.activations import silu
from problems.mlp_norm.draws import linear_weight
from problems.mlp_norm.norms import rms_norm

SOURCE = (
    "Own work, re-authored from public model code: norm and feed-forward block of a Llama layer at"
    " the sizes of Hermes 3 405B. The workload class is named by SOL-ExecBench."
)

EPS = 1e-5


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, sequence length, model width and width of the hidden layer."""

    batch: int
    seq_len: int
    hidden_size: int = 16_384
    intermediate_size: int = 53_248


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(64, 128),
    "smoke": Sizes(2, 32, hidden_size=128, intermediate_size=416),
    "heldout_1": Sizes(1, 17),
    "heldout_2": Sizes(2, 2_048),
    "heldout_3": Sizes(4, 128, hidden_size=4_096, intermediate_size=14_336),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw hidden_states, residual, the norm's weight, gate, up, down and eps; the caller seeds."""
    sizes = WORKLOADS[workload]
    width, inner = sizes.hidden_size, sizes.intermediate_size

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.bfloat16, device=device)

    hidden_states, residual = (normal(sizes.batch, sizes.seq_len, width) for _ in range(2))
    norm_weight = normal(width) * 0.1 + 1.0
    gate_weight, up_weight, down_weight = (
        linear_weight(n_out, n_in, dtype=torch.bfloat16, device=device)
        for n_out, n_in in ((inner, width), (inner, width), (width, inner))
    )
    return [hidden_states, residual, norm_weight, gate_weight, up_weight, down_weight, EPS]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    hidden_states: torch.Tensor,
    residual: torch.Tensor,
    norm_weight: torch.Tensor,
    gate_weight: torch.Tensor,
    up_weight: torch.Tensor,
    down_weight: torch.Tensor,
    eps: float,
) -> torch.Tensor:
    """Return (silu(y @ gate_weight^T) * (y @ up_weight^T)) @ down_weight^T, y the normalised sum.

    The sum is rounded to the dtype of hidden_states before the norm; the norm and its weight are
    computed in float32 and rounded once. The products, SiLU and the gating round once each. The
    sum is neither added to the result nor returned.

    Args:
        hidden_states: [batch, sequence, width], bfloat16; float64 when the anchor is computed.
        residual: as hidden_states.
        norm_weight: [width], the dtype of hidden_states.
        gate_weight: [inner, width], likewise.
        up_weight: as gate_weight.
        down_weight: [width, inner], likewise.
        eps: what the norm adds to the mean of squares.

    Returns:
        The shape and dtype of hidden_states.
    """
    wide = torch.promote_types(hidden_states.dtype, torch.float32)
    total = hidden_states + residual
    y = (norm_weight.to(wide) * rms_norm(total.to(wide), eps)).to(total.dtype)
    return linear(silu(linear(y, gate_weight)) * linear(y, up_weight), down_weight)


def bytes_moved() -> int:
    """Return the bytes of the full workload: both addends, weights and the output once."""
    sizes = WORKLOADS["full"]
    width, inner = sizes.hidden_size, sizes.intermediate_size
    return 2 * (3 * sizes.batch * sizes.seq_len * width + width + 3 * width * inner)


def flops() -> int:
    """Return the floating-point operations of the three products in the full workload."""
    sizes = WORKLOADS["full"]
    return 6 * sizes.batch * sizes.seq_len * sizes.hidden_size * sizes.intermediate_size
