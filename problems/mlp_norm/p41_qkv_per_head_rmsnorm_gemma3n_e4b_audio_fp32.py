"""Query, key and value projections, the first two RMS-normalised per head (Gemma 3n E4B audio)."""

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import linear

from problems.mlp_norm.draws import linear_weight
from problems.mlp_norm.norms import rms_norm

SOURCE = (
    "Own work, re-authored from public model code: projections with per-head norms at the sizes of"
    " Gemma 3n E4B's audio tower. The workload class is named by SOL-ExecBench."
)

EPS = 1e-6


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, sequence length, model width, heads and their width."""

    batch: int
    seq_len: int
    hidden_size: int = 1_024
    num_heads: int = 8
    head_dim: int = 128


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(64, 128),
    "smoke": Sizes(2, 32, hidden_size=128, num_heads=4, head_dim=32),
    "heldout_1": Sizes(1, 1),
    "heldout_2": Sizes(5, 333),
    "heldout_3": Sizes(4, 128, hidden_size=768, num_heads=12, head_dim=64),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw hidden_states, three projections, two norm weights and eps; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    shape = (sizes.batch, sizes.seq_len, sizes.hidden_size)
    hidden_states = torch.randn(shape, dtype=torch.float32, device=device)
    n_out = sizes.num_heads * sizes.head_dim
    projections = [
        linear_weight(n_out, sizes.hidden_size, dtype=torch.float32, device=device)
        for _ in range(3)
    ]
    norm_weights = [
        torch.randn(sizes.head_dim, dtype=torch.float32, device=device) * 0.1 + 1.0
        for _ in range(2)
    ]
    return [hidden_states, *projections, *norm_weights, EPS]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    hidden_states: torch.Tensor,
    q_weight: torch.Tensor,
    k_weight: torch.Tensor,
    v_weight: torch.Tensor,
    q_norm_weight: torch.Tensor,
    k_norm_weight: torch.Tensor,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return (q, k, v) of every head; q and k are divided by their head's root mean square.

    Args:
        hidden_states: [batch, sequence, width], float32; float64 when the anchor is computed.
        q_weight: [heads * head width, width], the dtype of hidden_states.
        k_weight: as q_weight.
        v_weight: as q_weight.
        q_norm_weight: [head width], likewise; every head uses the same, as it stands.
        k_norm_weight: as q_norm_weight.
        eps: what the norms add to the mean of squares.

    Returns:
        Three tensors [batch, sequence, heads, head width] in the dtype of hidden_states, of
        separate storage.
    """
    heads = (-1, q_norm_weight.shape[0])
    q, k, v = (
        torch.unflatten(linear(hidden_states, weight), -1, heads)
        for weight in (q_weight, k_weight, v_weight)
    )
    return rms_norm(q, eps) * q_norm_weight, rms_norm(k, eps) * k_norm_weight, v


def bytes_moved() -> int:
    """Return the bytes of the full workload: tokens, weights and the three outputs once."""
    sizes = WORKLOADS["full"]
    n_out = sizes.num_heads * sizes.head_dim
    activations = sizes.batch * sizes.seq_len * (sizes.hidden_size + 3 * n_out)
    return 4 * (activations + 3 * n_out * sizes.hidden_size + 2 * sizes.head_dim)


def flops() -> int:
    """Return the floating-point operations of the three products in the full workload."""
    sizes = WORKLOADS["full"]
    n_out = sizes.num_heads * sizes.head_dim
    return 6 * sizes.batch * sizes.seq_len * sizes.hidden_size * n_out
