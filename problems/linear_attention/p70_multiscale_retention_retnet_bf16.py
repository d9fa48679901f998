"""Causal retention: score matrices that fade at a fixed rate per head (RetNet)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.linear_attention import draws
from problems.tolerance import PerHead, Tolerance

SOURCE = (
    "flash-linear-attention, naive retention and the draws of tests/ops/test_retention.py; MIT."
    " The code is written anew."
)

# Slowly fading heads are five times as large as the fastest one.
TOLERANCE = Tolerance((PerHead(axis=1),))

CHUNK_OF_WORK = 128


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, tokens, heads, key and value widths."""

    batch: int
    n_tokens: int
    n_heads: int = 8
    key_dim: int = 256
    value_dim: int = 512


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(8, 1_024),
    "smoke": Sizes(2, 96, n_heads=4, key_dim=16, value_dim=32),
    "heldout_1": Sizes(1, 2_500),
    "heldout_2": Sizes(3, 77),
    "heldout_3": Sizes(4, 600, n_heads=4, key_dim=128, value_dim=256),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw q, k and v; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    rows = (sizes.batch, sizes.n_heads, sizes.n_tokens)
    q, k = (draws.normal((*rows, sizes.key_dim), device) for _ in range(2))
    return [q, k, draws.normal((*rows, sizes.value_dim), device)]


@torch.no_grad()
def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return ((K^-0.5 q) k^T * M) v, where M_ij = gamma^(i - j) for i >= j and else 0.

    Head h, counted from 0 whatever the number of heads, has gamma = 1 - 2^(-5 - h). There is no
    softmax and no other normalisation.

    Args:
        q: [batch, heads, tokens, K], bfloat16; float64 when the anchor is computed.
        k: as q.
        v: [batch, heads, tokens, V], the dtype of q.

    Returns:
        The shape of v and the dtype of q.
    """
    wide = torch.promote_types(q.dtype, torch.float32)
    heads = torch.arange(q.shape[1], dtype=wide, device=q.device)
    log2_gamma = torch.log2(1 - torch.exp2(-5 - heads))
    time = torch.arange(q.shape[2], dtype=wide, device=q.device)
    distance = time.unsqueeze(-1) - time
    # Masked as an exponent: powers of negative distances would overflow.
    exponent = (distance * log2_gamma[:, None, None]).masked_fill(distance < 0, -torch.inf)
    scores = (q.to(wide) * q.shape[-1] ** -0.5) @ k.to(wide).transpose(-1, -2)
    output: torch.Tensor = (scores * torch.exp2(exponent)) @ v.to(wide)
    return output.to(q.dtype)


def bytes_moved() -> int:
    """Return the bytes of the full workload: every input and the output once."""
    sizes = WORKLOADS["full"]
    token = 2 * (2 * sizes.key_dim + 2 * sizes.value_dim)
    return sizes.batch * sizes.n_heads * sizes.n_tokens * token


def flops() -> int:
    """Return the operations of the full workload in chunks of 128, fewer than without a state.

    4 per state element and token, and within the chunk one product with keys and one with values,
    of which half is masked.
    """
    sizes = WORKLOADS["full"]
    keys, values = sizes.key_dim, sizes.value_dim
    token = 4 * keys * values + CHUNK_OF_WORK * (keys + values)
    return sizes.batch * sizes.n_heads * sizes.n_tokens * token
