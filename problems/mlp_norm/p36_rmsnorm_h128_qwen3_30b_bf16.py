"""RMS-normalise half a million 128-wide query and key rows (Qwen3-30B-A3B)."""

from dataclasses import dataclass
from typing import Any

import torch

SOURCE = (
    "FlashInfer-Trace/Bench, definition rmsnorm_h128, record f2872f89-5d8d-403a-9603-5918541cb9e0;"
    " Apache-2.0. Batch size as captured, values redrawn."
)

HIDDEN_SIZE = 128
EPS = 1e-6


@dataclass(frozen=True)
class Sizes:
    """One workload: rows, a factor on their values, and how many of the rows are all zero."""

    n_rows: int
    scale: float = 1.0
    n_zero_rows: int = 0


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(520_128),
    "smoke": Sizes(1_024),
    "heldout_1": Sizes(1),
    "heldout_2": Sizes(100_003, scale=1e-3),
    "heldout_3": Sizes(4_099, n_zero_rows=1),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw hidden_states and weight; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    hidden_states = torch.randn(sizes.n_rows, HIDDEN_SIZE, dtype=torch.bfloat16, device=device)
    if sizes.scale != 1.0:
        hidden_states *= sizes.scale
    middle = sizes.n_rows // 2
    hidden_states[middle : middle + sizes.n_zero_rows] = 0
    weight = 1 + 0.1 * torch.randn(HIDDEN_SIZE, dtype=torch.float32, device=device)
    return [hidden_states, weight.to(torch.bfloat16)]


@torch.no_grad()
def reference(hidden_states: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return hidden_states / sqrt(mean of squares + EPS) * weight, rounded once.

    Args:
        hidden_states: [rows, 128], bfloat16; float64 when the anchor is computed.
        weight: [128], the dtype of hidden_states.
    """
    wide = torch.promote_types(hidden_states.dtype, torch.float32)
    rows = hidden_states.to(wide)
    inverse = torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + EPS)
    return (rows * inverse * weight.to(wide)).to(hidden_states.dtype)


def bytes_moved() -> int:
    """Return the bytes of the full workload: rows read and written, and the weight."""
    return 2 * 2 * WORKLOADS["full"].n_rows * HIDDEN_SIZE + 2 * HIDDEN_SIZE


def flops() -> int:
    """Return the operations of the full workload: five per element, all of them elementwise."""
    return 5 * WORKLOADS["full"].n_rows * HIDDEN_SIZE
