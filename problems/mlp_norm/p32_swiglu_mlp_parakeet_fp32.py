"""SiLU-gated feed-forward block whose gate and up projections are one matrix (Parakeet)."""

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import linear

from problems.mlp_norm.activations import silu
from problems.mlp_norm.draws import linear_weight

SOURCE = (
    "Own work, re-authored from public model code: a gated feed-forward block of Parakeet."
    " The workload class is named by SOL-ExecBench."
)


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, sequence length, model width and width of the hidden layer."""

    batch: int
    seq_len: int
    hidden_size: int = 1_024
    intermediate_size: int = 4_096


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(64, 128),
    "smoke": Sizes(4, 16, hidden_size=64, intermediate_size=256),
    "heldout_1": Sizes(1, 1),
    "heldout_2": Sizes(7, 300),
    "heldout_3": Sizes(8, 128, hidden_size=768, intermediate_size=3_072),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw x, gate_up_weight and down_weight; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    width, inner = sizes.hidden_size, sizes.intermediate_size
    x = torch.randn(sizes.batch, sizes.seq_len, width, dtype=torch.float32, device=device)
    gate_up_weight = linear_weight(2 * inner, width, dtype=torch.float32, device=device)
    down_weight = linear_weight(width, inner, dtype=torch.float32, device=device)
    return [x, gate_up_weight, down_weight]


@torch.no_grad()
def reference(
    x: torch.Tensor, gate_up_weight: torch.Tensor, down_weight: torch.Tensor
) -> torch.Tensor:
    """Return (silu(gate) * up) @ down_weight^T; gate and up are the halves of x @ gate_up_weight^T.

    Args:
        x: [batch, sequence, width], float32; float64 when the anchor is computed.
        gate_up_weight: [2 inner, width], the dtype of x: all rows of the gate, then all of up.
        down_weight: [width, inner], likewise.

    Returns:
        The shape and dtype of x.
    """
    gate, up = linear(x, gate_up_weight).chunk(2, dim=-1)
    return linear(silu(gate) * up, down_weight)


def bytes_moved() -> int:
    """Return the bytes of the full workload: x, both weights and the output once."""
    sizes = WORKLOADS["full"]
    width, inner = sizes.hidden_size, sizes.intermediate_size
    return 4 * (2 * sizes.batch * sizes.seq_len * width + 3 * width * inner)


def flops() -> int:
    """Return the floating-point operations of both products in the full workload."""
    sizes = WORKLOADS["full"]
    return 6 * sizes.batch * sizes.seq_len * sizes.hidden_size * sizes.intermediate_size
