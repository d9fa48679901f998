"""Gated linear attention: outer products written into a state that decays by key channel (GLA)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.linear_attention import draws

SOURCE = (
    "flash-linear-attention, the naive GLA recurrence and the draws of tests/ops/test_gla.py;"
    " MIT. The code is written anew."
)

CHUNK_OF_WORK = 64


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, tokens, heads, key and value widths."""

    batch: int
    n_tokens: int
    n_heads: int = 4
    key_dim: int = 256
    value_dim: int = 512


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(8, 1_024),
    "smoke": Sizes(2, 96, n_heads=2, key_dim=16, value_dim=32),
    "heldout_1": Sizes(2, 1_500),
    "heldout_2": Sizes(1, 77),
    "heldout_3": Sizes(4, 600, n_heads=8, key_dim=128, value_dim=256),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw q, k, v and gk; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    rows = (sizes.batch, sizes.n_tokens, sizes.n_heads)
    q, k = (draws.normal((*rows, sizes.key_dim), device) for _ in range(2))
    v = draws.normal((*rows, sizes.value_dim), device)
    return [q, k, v, draws.log_decays((*rows, sizes.key_dim), device)]


@torch.no_grad()
def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, gk: torch.Tensor) -> torch.Tensor:
    """Return every token's reading of the state that it has just updated; states start at zero.

    Per token, with a state S of [K, V]: row c of S is multiplied by e^(gk_c), S += k v^T,
    o = S^T (K^-0.5 q). A token's own decay does not touch its own write.

    Args:
        q: [batch, tokens, heads, K], bfloat16; float64 when the anchor is computed.
        k: as q; neither is normalised.
        v: [batch, tokens, heads, V], the dtype of q.
        gk: [batch, tokens, heads, K], the dtype of q: natural log decays, below 0.

    Returns:
        The shape of v and the dtype of q.
    """
    wide = torch.promote_types(q.dtype, torch.float32)
    query = q.to(wide) * q.shape[-1] ** -0.5
    key, value, decay = k.to(wide), v.to(wide), gk.to(wide).exp()
    batch, n_tokens, heads, value_dim = v.shape
    state = torch.zeros(batch, heads, q.shape[-1], value_dim, dtype=wide, device=q.device)
    output = torch.empty_like(value)
    for t in range(n_tokens):
        written = key[:, t].unsqueeze(-1) * value[:, t].unsqueeze(-2)
        state = state * decay[:, t].unsqueeze(-1) + written
        output[:, t] = (query[:, t].unsqueeze(-2) @ state).squeeze(-2)
    return output.to(q.dtype)


def bytes_moved() -> int:
    """Return the bytes of the full workload: every input and the output once."""
    sizes = WORKLOADS["full"]
    token = 2 * (3 * sizes.key_dim + 2 * sizes.value_dim)
    return sizes.batch * sizes.n_tokens * sizes.n_heads * token


def flops() -> int:
    """Return the operations of the full workload in chunks of 64, fewer than token by token.

    4 per state element and token, and within the chunk one product with keys and one with values,
    of which half is masked.
    """
    sizes = WORKLOADS["full"]
    keys, values = sizes.key_dim, sizes.value_dim
    token = 4 * keys * values + CHUNK_OF_WORK * (keys + values)
    return sizes.batch * sizes.n_tokens * sizes.n_heads * token
