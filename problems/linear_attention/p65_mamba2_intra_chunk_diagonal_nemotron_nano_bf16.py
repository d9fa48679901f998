"""Diagonal block of the Mamba-2 scan: decayed, grouped scores within each chunk (Nemotron Nano)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.linear_attention import draws, ssd

SOURCE = (
    "Own work, re-authored from public model code: the intra-chunk term of Nemotron-H's Mamba-2"
    " mixer. The workload class is named by SOL-ExecBench."
)


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, chunks, tokens of a chunk, heads, their width, groups, state width."""

    batch: int
    n_chunks: int
    chunk: int = 128
    n_heads: int = 64
    head_dim: int = 128
    n_groups: int = 8
    state_dim: int = 128


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(16, 1),
    "smoke": Sizes(2, 2, chunk=32, n_heads=4, head_dim=16, n_groups=2, state_dim=16),
    "heldout_1": Sizes(2, 5),
    "heldout_2": Sizes(3, 2, chunk=77),
    "heldout_3": Sizes(4, 3, chunk=64, n_heads=32, head_dim=64, n_groups=4, state_dim=64),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw hidden_states, a_cumsum, B and C; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    rows = (sizes.batch, sizes.n_chunks, sizes.chunk)
    hidden_states = draws.normal((*rows, sizes.n_heads, sizes.head_dim), device)
    shape = (sizes.batch, sizes.n_heads, sizes.n_chunks, sizes.chunk)
    a_cumsum = draws.uniform(-0.02, 0.0, shape=shape, device=device)
    B, C = (draws.normal((*rows, sizes.n_groups, sizes.state_dim), device) for _ in range(2))
    return [hidden_states, a_cumsum, B, C]


@torch.no_grad()
def reference(
    hidden_states: torch.Tensor, a_cumsum: torch.Tensor, B: torch.Tensor, C: torch.Tensor
) -> torch.Tensor:
    """Return, per chunk and head, Y_i = sum over j <= i of (C_i . B_j) e^(a_(j+1) + ... + a_i) x_j.

    Args:
        hidden_states: [batch, chunks, tokens, heads, P], bfloat16; float64 when the anchor is
            computed: x.
        a_cumsum: [batch, heads, chunks, tokens], the same dtype: each step's own log decay, at
            most 0. Despite the name nothing has been summed.
        B: [batch, chunks, tokens, groups, N], the same dtype. Head h uses group
            h // (heads / groups).
        C: as B.

    Returns:
        The shape and dtype of hidden_states.
    """
    wide = torch.promote_types(hidden_states.dtype, torch.float32)
    x, keys, queries = (part.to(wide).movedim(3, 1) for part in (hidden_states, B, C))
    output = ssd.diagonal(x, a_cumsum.to(wide), keys, queries)
    return output.movedim(1, 3).contiguous().to(hidden_states.dtype)


def bytes_moved() -> int:
    """Return the bytes of the full workload: every input and the output once."""
    sizes = WORKLOADS["full"]
    heads = sizes.n_heads * (2 * sizes.head_dim + 1)
    token = 2 * (heads + 2 * sizes.n_groups * sizes.state_dim)
    return sizes.batch * sizes.n_chunks * sizes.chunk * token


def flops() -> int:
    """Return the operations of the full workload: the causal half, scores once per group."""
    sizes = WORKLOADS["full"]
    return ssd.diagonal_flops(
        sizes.batch * sizes.n_chunks * sizes.chunk,
        chunk=sizes.chunk,
        heads=sizes.n_heads,
        groups=sizes.n_groups,
        head_dim=sizes.head_dim,
        state_dim=sizes.state_dim,
    )
