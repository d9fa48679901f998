"""Add two activations in float32 and RMS-normalise the sum with a weight (Llama 3.1 8B)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.mlp_norm.norms import rms_norm

SOURCE = (
    "FlashInfer-Trace/Bench, definition fused_add_rmsnorm_h4096, record"
    " 3e460c8c-7cad-4071-959f-e689ca024206; Apache-2.0. Batch size as captured, values redrawn."
)

HIDDEN_SIZE = 4_096
EPS = 1e-5


@dataclass(frozen=True)
class Sizes:
    """One workload: rows, a factor on hidden_states, and whether the residual is all zero."""

    n_rows: int
    scale: float = 1.0
    no_residual: bool = False


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(14_509),
    "smoke": Sizes(37),
    "heldout_1": Sizes(1),
    "heldout_2": Sizes(8_191, scale=1e-3, no_residual=True),
    "heldout_3": Sizes(100_003),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw hidden_states, residual and weight; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    hidden_states, residual = (
        torch.randn(sizes.n_rows, HIDDEN_SIZE, dtype=torch.bfloat16, device=device)
        for _ in range(2)
    )
    if sizes.scale != 1.0:
        hidden_states *= sizes.scale
    if sizes.no_residual:
        residual.zero_()
    weight = 1 + 0.1 * torch.randn(HIDDEN_SIZE, dtype=torch.float32, device=device)
    return [hidden_states, residual, weight.to(torch.bfloat16)]


@torch.no_grad()
def reference(
    hidden_states: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor
) -> torch.Tensor:
    """Return x / sqrt(mean of squares of x + EPS) * weight, x = hidden_states + residual.

    The sum is not rounded before the norm, and not returned.

    Args:
        hidden_states: [rows, 4096], bfloat16; float64 when the anchor is computed.
        residual: as hidden_states.
        weight: [4096], the dtype of hidden_states.

    Returns:
        [rows, 4096] in the dtype of hidden_states, rounded once.

    Raises:
        ValueError: the rows are not 4096 wide.
    """
    if hidden_states.shape[-1] != HIDDEN_SIZE:
        raise ValueError(f"rows are {hidden_states.shape[-1]} wide; this norm takes {HIDDEN_SIZE}")
    wide = torch.promote_types(hidden_states.dtype, torch.float32)
    rows = hidden_states.to(wide) + residual.to(wide)
    return (rms_norm(rows, EPS) * weight.to(wide)).to(hidden_states.dtype)


def bytes_moved() -> int:
    """Return the bytes of the full workload: both addends read, rows written, and the weight."""
    return 2 * (3 * WORKLOADS["full"].n_rows + 1) * HIDDEN_SIZE


def flops() -> int:
    """Return the operations of the full workload: six per element, all of them elementwise."""
    return 6 * WORKLOADS["full"].n_rows * HIDDEN_SIZE
