"""Chunked Mamba-2 scan from a given state, with stable segment sums and a skip (Granite 4)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.linear_attention import draws, ssd

SOURCE = (
    "Own work, re-authored from public model code: the chunked scan of Bamba, GraniteMoeHybrid and"
    " Mamba-2. The workload class is named by SOL-ExecBench."
)

CHUNK = 256


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, tokens, heads, their width, groups, state width."""

    batch: int
    n_tokens: int
    n_heads: int = 16
    head_dim: int = 64
    n_groups: int = 1
    state_dim: int = 256


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(8, 1_024),
    "smoke": Sizes(2, 192, n_heads=4, head_dim=16, state_dim=32),
    "smoke_2": Sizes(2, 72, n_heads=4, head_dim=16, state_dim=32),
    "heldout_1": Sizes(2, 3_000),
    "heldout_2": Sizes(1, 77),
    "heldout_3": Sizes(4, 512, n_heads=8, head_dim=128, n_groups=2, state_dim=128),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw hidden_states, A, B, C, D and initial_state; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    batch, n_tokens, heads = sizes.batch, sizes.n_tokens, sizes.n_heads
    hidden_states = draws.normal((batch, n_tokens, heads, sizes.head_dim), device)
    A = draws.uniform(-0.02, -0.0005, shape=(batch, heads, n_tokens), device=device)
    groups = (batch, n_tokens, sizes.n_groups, sizes.state_dim)
    B, C = (draws.normal(groups, device) for _ in range(2))
    D = draws.normal((heads,), device)
    initial_state = draws.normal((batch, heads, sizes.head_dim, sizes.state_dim), device)
    return [hidden_states, A, B, C, D, initial_state]


@torch.no_grad()
def reference(  # noqa: PLR0913
    hidden_states: torch.Tensor,
    A: torch.Tensor,
    B: torch.Tensor,
    C: torch.Tensor,
    D: torch.Tensor,
    initial_state: torch.Tensor,
    *,
    chunk: int = CHUNK,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (y, final_state) of S_t = e^A_t S_(t-1) + x_t B_t^T, y_t = S_t C_t + D x_t.

    Args:
        hidden_states: [batch, tokens, heads, P], bfloat16; float64 when the anchor is computed.
            This is x, already multiplied by any time step.
        A: [batch, heads, tokens], the same dtype: log decays, at most 0. Heads come before time.
        B: [batch, tokens, groups, N], the same dtype. Head h uses group h // (heads / groups).
        C: as B.
        D: [heads], the same dtype.
        initial_state: [batch, heads, P, N], the same dtype.
        chunk: tokens that are handled together; no output depends on it but by rounding.

    Returns:
        y: [batch, tokens, heads * P] in the dtype of hidden_states.
        final_state: the shape of initial_state, the same dtype.
    """
    wide = torch.promote_types(hidden_states.dtype, torch.float32)
    x, keys, queries = (part.to(wide).transpose(1, 2) for part in (hidden_states, B, C))
    y, final_state = ssd.scan(
        x, A.to(wide), keys, queries, chunk=chunk, state=initial_state.to(wide)
    )
    y = y + D.to(wide)[:, None, None] * x
    return y.transpose(1, 2).flatten(2).to(hidden_states.dtype), final_state.to(hidden_states.dtype)


def bytes_moved() -> int:
    """Return the bytes of the full workload: inputs and outputs once."""
    sizes = WORKLOADS["full"]
    heads = sizes.n_heads * (2 * sizes.head_dim + 1)
    token = 2 * (heads + 2 * sizes.n_groups * sizes.state_dim)
    state = 2 * 2 * sizes.n_heads * sizes.head_dim * sizes.state_dim
    return sizes.batch * (sizes.n_tokens * token + state) + 2 * sizes.n_heads


def flops() -> int:
    """Return the operations of the full workload: causal halves, scores once per group."""
    sizes = WORKLOADS["full"]
    n_tokens, heads = sizes.batch * sizes.n_tokens, sizes.n_heads
    head_dim, state_dim = sizes.head_dim, sizes.state_dim
    within = ssd.diagonal_flops(
        n_tokens,
        chunk=CHUNK,
        heads=heads,
        groups=sizes.n_groups,
        head_dim=head_dim,
        state_dim=state_dim,
    )
    return within + ssd.carried_flops(n_tokens, heads=heads, head_dim=head_dim, state_dim=state_dim)
