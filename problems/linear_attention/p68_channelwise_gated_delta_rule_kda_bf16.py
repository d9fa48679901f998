"""Delta rule whose state decays separately in every key channel (Kimi Delta Attention)."""

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from problems.linear_attention import delta_rule, draws

SOURCE = (
    "flash-linear-attention, the naive KDA recurrence and the draws of tests/ops/test_kda.py;"
    " MIT. The code is written anew."
)

NORM_FLOOR = 1e-12


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, tokens, key (and query) heads, value heads, key and value widths."""

    batch: int
    n_tokens: int
    n_key_heads: int = 16
    n_value_heads: int = 16
    key_dim: int = 128
    value_dim: int = 128


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(8, 1_024),
    "smoke": Sizes(2, 96, n_key_heads=2, n_value_heads=2, key_dim=16, value_dim=16),
    "smoke_2": Sizes(2, 96, n_key_heads=2, n_value_heads=4, key_dim=16, value_dim=16),
    "heldout_1": Sizes(2, 3_001),
    "heldout_2": Sizes(2, 500, n_key_heads=8),
    "heldout_3": Sizes(4, 777, n_key_heads=4, n_value_heads=4, key_dim=64),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw q, k, v, g and beta; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    rows = (sizes.batch, sizes.n_tokens)
    q, k = (draws.normal((*rows, sizes.n_key_heads, sizes.key_dim), device) for _ in range(2))
    v = draws.normal((*rows, sizes.n_value_heads, sizes.value_dim), device)
    g = draws.log_decays((*rows, sizes.n_value_heads, sizes.key_dim), device)
    return [q, k, v, g, draws.shares((*rows, sizes.n_value_heads), device)]


@torch.no_grad()
def reference(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, g: torch.Tensor, beta: torch.Tensor
) -> torch.Tensor:
    """Return every token's reading of the state that it has just updated; states start at zero.

    Queries and keys are brought to unit length and queries then scaled by K^-0.5. Per token, with
    a state S of [K, V]: row c of S is multiplied by e^(g_c), u = beta (v - S^T k), S += k u^T,
    o = S^T q.

    Args:
        q: [batch, tokens, key heads, K], bfloat16; float64 when the anchor is computed.
        k: as q. Value head h uses key head h // (value heads / key heads).
        v: [batch, tokens, value heads, V], the dtype of q.
        g: [batch, tokens, value heads, K], the dtype of q: natural log decays, below 0.
        beta: [batch, tokens, value heads], the dtype of q, between 0 and 1.

    Returns:
        The shape and dtype of v.
    """
    wide = torch.promote_types(v.dtype, torch.float32)
    group = v.shape[2] // k.shape[2]
    query, key = (
        functional.normalize(x.to(wide), dim=-1, eps=NORM_FLOOR)
        .repeat_interleave(group, dim=2)
        .transpose(1, 2)
        for x in (q, k)
    )
    batch, _, heads, value_dim = v.shape
    state = torch.zeros(batch, heads, value_dim, k.shape[-1], dtype=wide, device=v.device)
    output, _ = delta_rule.scan(
        state,
        query * k.shape[-1] ** -0.5,
        key=key,
        value=v.to(wide).transpose(1, 2),
        share=beta.to(wide).transpose(1, 2),
        decay=g.to(wide).exp().transpose(1, 2),
    )
    return output.transpose(1, 2).contiguous().to(v.dtype)


def bytes_moved() -> int:
    """Return the bytes of the full workload: every input and the output once."""
    sizes = WORKLOADS["full"]
    keys = 2 * sizes.n_key_heads * sizes.key_dim
    values = sizes.n_value_heads * (sizes.key_dim + 2 * sizes.value_dim + 1)
    return 2 * sizes.batch * sizes.n_tokens * (keys + values)


def flops() -> int:
    """Return the operations of the full workload: 7 per state element and token, recurrent."""
    sizes = WORKLOADS["full"]
    states = sizes.batch * sizes.n_value_heads * sizes.key_dim * sizes.value_dim
    return 7 * sizes.n_tokens * states
