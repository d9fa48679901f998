"""Ungated delta rule from a random initial state, with outputs and final state (DeltaNet)."""

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from problems.linear_attention import delta_rule, draws

SOURCE = (
    "flash-linear-attention, the naive delta-rule recurrence and the draws of"
    " tests/ops/test_delta.py; MIT. The code is written anew."
)

NORM_FLOOR = 1e-12


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, tokens, heads, key and value widths; or a state of zeros to start."""

    batch: int
    n_tokens: int
    n_heads: int = 16
    key_dim: int = 128
    value_dim: int = 128
    zero_state: bool = False


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(8, 1_024),
    "smoke": Sizes(2, 96, n_heads=2, key_dim=16, value_dim=16),
    "smoke_2": Sizes(2, 96, n_heads=2, key_dim=16, value_dim=32),
    "heldout_1": Sizes(1, 3_001),
    "heldout_2": Sizes(3, 77, zero_state=True),
    "heldout_3": Sizes(4, 500, n_heads=4, key_dim=64, value_dim=128),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw q, k, v, beta and initial_state; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    rows = (sizes.batch, sizes.n_heads, sizes.n_tokens)
    q, k = (draws.normal((*rows, sizes.key_dim), device) for _ in range(2))
    v = draws.normal((*rows, sizes.value_dim), device)
    beta = draws.shares(rows, device)
    shape = (sizes.batch, sizes.n_heads, sizes.key_dim, sizes.value_dim)
    initial_state = torch.randn(shape, dtype=torch.float32, device=device)
    return [q, k, v, beta, torch.zeros_like(initial_state) if sizes.zero_state else initial_state]


@torch.no_grad()
def reference(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    beta: torch.Tensor,
    initial_state: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (o, S): each token's reading of the updated state, and the state after the last.

    Queries and keys are brought to unit length and queries then scaled by K^-0.5. Per token:
    u = beta (v - S^T k), S += k u^T, o = S^T q.

    Args:
        q: [batch, heads, tokens, K], bfloat16; float64 when the anchor is computed.
        k: as q.
        v: [batch, heads, tokens, V], the dtype of q.
        beta: [batch, heads, tokens], the dtype of q, between 0 and 1.
        initial_state: [batch, heads, K, V], float32: the value axis is the fastest.

    Returns:
        o: the shape of v in the dtype of q.
        S: the shape of initial_state, in float32 (float64 in the anchor); fresh storage.
    """
    wide = torch.promote_types(q.dtype, torch.float32)
    query, key = (functional.normalize(x.to(wide), dim=-1, eps=NORM_FLOOR) for x in (q, k))
    output, state = delta_rule.scan(
        initial_state.to(wide).transpose(-1, -2),
        query * q.shape[-1] ** -0.5,
        key=key,
        value=v.to(wide),
        share=beta.to(wide),
    )
    return output.to(q.dtype), state.transpose(-1, -2).contiguous()


def bytes_moved() -> int:
    """Return the bytes of the full workload: q, k, v, beta and o once, the state in and out."""
    sizes = WORKLOADS["full"]
    token = 2 * (2 * sizes.key_dim + 2 * sizes.value_dim + 1)
    state = 2 * 4 * sizes.key_dim * sizes.value_dim
    return sizes.batch * sizes.n_heads * (sizes.n_tokens * token + state)


def flops() -> int:
    """Return the operations of the full workload: 6 per state element and token, recurrent."""
    sizes = WORKLOADS["full"]
    states = sizes.batch * sizes.n_heads * sizes.key_dim * sizes.value_dim
    return 6 * sizes.n_tokens * states
